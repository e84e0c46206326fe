//! Shapes: JSON as people write it down.
//!
//! ```text
//! {
//!   "name": string,           // Required field
//!   "rationale": markdown,
//!   "stage"?: "draft" | "final",
//!   "components": [
//!     {
//!       "id": string,
//!       "weight": number | null
//!     }
//!   ],
//!   "risks": [string]
//! }
//! ```
//!
//! - [`Shape`] is a parsed one: a [`Schema`](formwork_core::Schema) that validates, becomes JSON Schema, and comes from it.
//! - [`ShapeRunner`] asks models for values of a shape, up to three times, with everything that was wrong each time.
//! - [`ShapeError`] points at the place of a mistake; [`Unsaid`] is what a shape cannot say of a JSON Schema.
//!
//! `examples/embed-shape.rs` uses this crate alone.
//!
//! # Grammar
//!
//! In EBNF; words and texts are tokens, and white space and comments may stand between any two.
//!
//! ```text
//! shape   = place ;
//! place   = type , { "|" , "null" }                     (* a type, or null as well *)
//!         | literal , { "|" , literal } ;               (* one of these *)
//! type    = "string" | "markdown" | "number" | "integer" | "boolean" | "any" | array | object ;
//! array   = "[" , place , "]" ;                         (* any number of these *)
//! object  = "{" , [ field , { "," , field } , [ "," ] ] , "}" ;
//! field   = name , [ "?" ] , ":" , place ;              (* ? : it may be left out *)
//! name    = text | word ;
//! literal = text | number | "true" | "false" | "null"
//!         | word ;                                      (* among other literals: low | high *)
//! text    = a JSON string (RFC 8259) on one line ;
//! number  = a JSON number ;
//! word    = a letter, "_" or "$", then those, digits, "-" and "." ;
//! comment = "//" to the end of the line | "/*" to "*/" ;
//! ```
//!
//! A comment behind a field, on its line, and comments on lines above it are what is said about the field: the
//! `description` of the JSON Schema. Comments before the first bracket are about the whole, comments before an array's item
//! are about the item.
//!
//! Objects are open, as in JSON Schema: fields that the shape does not name are accepted. What is asked of a model is closed.
//! A text has at most [`MAX_BYTES`] bytes, and brackets are nested at most [`MAX_DEPTH`] deep.
//!
//! | shape | JSON Schema |
//! |---|---|
//! | `string`, `number`, `integer`, `boolean` | `{"type": …}` |
//! | `markdown` | `{"type": "string", "contentMediaType": "text/markdown"}` |
//! | `any` | `{}` |
//! | `"a" \| "b"` | `{"type": "string", "enum": ["a", "b"]}`; a single one is a `const` |
//! | `T \| null` | `{"type": [T, "null"]}` |
//! | `[T]` | `{"type": "array", "items": T}` |
//! | `{"a": T, "b"?: U}` | `{"type": "object", "properties": {"a": T, "b": U}, "required": ["a"]}` |

mod error;
mod from_schema;
mod lex;
mod lint;
mod names;
mod node;
mod parse;
mod runner;
mod shape;
mod to_schema;
mod write;

pub use error::ShapeError;
pub use from_schema::Unsaid;
pub use lint::LintFinding;
pub use node::{Field, Kind, Node};
pub use runner::{ShapeRunner, ShapeRunnerBuilder, policy};
pub use shape::Shape;

/// The most bytes of a shape's text.
pub const MAX_BYTES: usize = 256 * 1024;

/// How deep the brackets of a shape may be nested.
pub const MAX_DEPTH: usize = 64;
