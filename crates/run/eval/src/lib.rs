//! Compares answers with hand-verified values (*gold*): a score, the counts of each path, intervals, the comparison of two
//! configurations, and gates for CI.
//!
//! ```
//! use formwork_eval::{Evaluation, Profile};
//! use serde_json::json;
//!
//! let mut evaluation = Evaluation::new(Profile::Default);
//! let gold = json!({"name": "Ada", "total": 12.5, "due": null});
//! evaluation.add(json!("a"), None, &gold, Some(&json!({"name": "ADA", "total": 13, "due": "2024-03-05"})))?;
//! let report = evaluation.report(1);
//! assert_eq!(report.score, 1.0 / 3.0);
//! let total = &report.paths[1];
//! assert_eq!((total.path.as_str(), total.tally.right, total.tally.wrong), ("$.total", 0, 1));
//! # Ok::<(), String>(())
//! ```
//!
//! [`Profile`] says how a document is scored. The crate performs no IO: the command `formwork eval` reads the files.

mod baseline;
mod calibration;
mod comparison;
mod docubench;
mod evaluation;
mod gate;
mod gate_result;
mod page;
mod profile;
mod report;
mod row;
mod rows;
mod spent;
mod standard;
mod statistics;
mod tally;

pub use baseline::Baseline;
pub use calibration::{Scored, auroc, calibrate, calibration_error};
pub use comparison::{Comparison, Pair};
pub use evaluation::Evaluation;
pub use gate::Gate;
pub use gate_result::GateResult;
pub use page::page;
pub use profile::Profile;
pub use report::{Difference, PathReport, Report, WorstRow};
pub use row::RowScore;
pub use rows::Rows;
pub use spent::{Effort, Spent};
pub use tally::{Grade, Tally};
