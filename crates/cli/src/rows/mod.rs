//! The rows that other programs read and write: the input and output of `--jsonl`, and the output of `--json`.
//!
//! `schemas/` contains the JSON Schema of each row. Input rows are deserialized, result rows are serialized:
//!
//! ```
//! use formwork_cli::rows::ReadInput;
//!
//! let row: ReadInput = serde_json::from_str(r#"{"id": 7, "input": "Sure: {'age': 34,}"}"#)?;
//! assert_eq!((row.id, row.input.as_str()), (7.into(), "Sure: {'age': 34,}"));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod batch;
mod check;
mod config;
mod error;
mod eval;
mod evidence;
mod extract;
mod lower;
mod oracle;
mod read;
mod server;
mod skill;

pub use batch::{BatchEstimate, BatchOutput, BatchState};
pub use check::{CheckInput, CheckOutput};
pub use config::{ConfigOutput, ConfigProvider, ConfigSetting};
pub use error::RowError;
pub use eval::{EvalAnswer, EvalGold};
pub use evidence::{EvidenceInput, EvidenceOutput};
pub use extract::{ExtractError, ExtractInput, ExtractOutput};
pub use lower::{LowerError, LowerInput, LowerOutput};
pub use oracle::{
    OracleCompareOutput, OracleCompared, OracleError, OracleOutput, OracleVersion, OracleVersionScore,
};
pub use read::{ReadInput, ReadOutput, ReadProgress};
pub use server::{DoctorOutput, DoctorState, ModelOutput, ServerModelDetails, ServerModelOutput};
pub use skill::{SkillRow, SkillRunError, SkillRunOutput};
