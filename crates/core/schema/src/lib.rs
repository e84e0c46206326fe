//! JSON Schema for Formwork: compiles schemas, validates values with readable violations, and lints and compares schemas.
//!
//! - [`compile`] turns a document into a [`Compiled`] schema. The result is cached by the hash of the document.
//! - [`contract`] and [`contract_for`] create a [`Contract`](formwork_core::Contract) in one step.
//! - [`compare`] decides whether values of an old version of a schema are valid under a new one.
//! - [`lint`] finds mistakes in a schema that compiles: misspelled keywords, parts that no value satisfies.
//! - [`unwrapped`] returns the schema inside of a vendor's wrapper, and [`says_nothing`] finds schemas that every value satisfies.
//!
//! Nothing is ever downloaded: a `$ref` to another document is an error. Patterns run in linear time; a pattern with
//! look-around or back-references has a limit on its backtracking.
//!
//! # Bounds
//! No schema and no value takes unbounded time or stack. [`compile`] rejects a schema that is nested deeper than 127
//! levels, has more than 10,000 definitions, or whose unions and references would take unbounded comparisons for one value.
//! [`lint`] searches for parts that no value satisfies only where that is cheap. A thread with 2 MB of stack is enough, in
//! dev builds too.
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
mod lint;
mod location;
mod places;
mod request;
mod shape;
mod subschema;
mod variant;
mod words;

pub use build::Formats;
pub use compare::{Change, ChangeKind, Comparison, Compatibility, compare};
pub use compile::{Compiled, compile, compile_with, contract, contract_for};
pub use error::SchemaError;
pub use formwork_core::nearest;
pub use lint::lint;
pub use request::{SaysNothing, says_nothing, unwrapped, wrapped};
