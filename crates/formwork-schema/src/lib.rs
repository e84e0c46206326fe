//! JSON Schema for Formwork: compiles a schema, reports every violation in words, and lints the schema itself.
//!
//! - [`compile`] makes a [`Compiled`] schema out of a document, once for each document: it is cached by hash.
//! - [`contract`] and [`contract_for`] are the short way to a [`Contract`](formwork_core::Contract).
//! - [`compare`] compares two versions of a schema: which values that were valid are so no longer?
//! - [`lint`] finds what is wrong with a schema although it compiles: misspelled keywords, parts that nothing satisfies.
//!
//! Nothing is ever fetched: a `$ref` to another document is an error. Patterns run in linear time; one that needs
//! look-around or back-references runs with a bound on its backtracking.
//!
//! # Bounds
//! Neither a schema nor a value can take all time or stack there is. [`compile`] refuses a schema that is nested deeper than
//! 127 levels, refers to more than 10000 definitions, or whose unions and references lead to each other in so many ways
//! that comparing one value with all of them would not end. [`lint`] asks whether anything satisfies a schema only where
//! the answer is cheap. A thread with 2 MB of stack is enough, in dev builds as well.
//!
//! `examples/embed-schema.rs` uses it alone.
//!
//! ```
//! use formwork_core::{Context, Report, Validator};
//! use serde_json::json;
//!
//! let schema = json!({"properties": {"risks": {"items": {"type": "string"}}}, "required": ["name", "risks"]});
//! let mut report = Report::default();
//! formwork_schema::compile(&schema)?.validate(&json!({"risks": [123]}), &Context::EMPTY, &mut report);
//! let messages: Vec<_> = report.violations().iter().map(ToString::to_string).collect();
//! assert_eq!(messages, [
//!     "Missing required field at path $.name",
//!     "Type mismatch at $.risks[0]: expected string, found number",
//! ]);
//! # Ok::<(), formwork_schema::SchemaError>(())
//! ```

mod bounds;
mod build;
mod compare;
mod compile;
mod error;
mod examine;
mod finding;
mod lint;
mod location;
mod places;
mod shape;
mod subschema;
mod variant;
mod words;

pub use build::Formats;
pub use compare::{Change, ChangeKind, Comparison, Verdict, compare};
pub use compile::{Compiled, compile, compile_with, contract, contract_for};
pub use error::SchemaError;
pub use finding::LintFinding;
pub use formwork_core::nearest;
pub use lint::lint;
