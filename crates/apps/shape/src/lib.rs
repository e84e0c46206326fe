//! Shapes: a notation for the form of JSON, close to JSON itself.
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
//! - [`Shape`] is a parsed shape: a [`Schema`](formwork_core::Schema) that validates values and converts to and from JSON
//!   Schema.
//! - [`ShapeRunner`] gets values of a shape from models, in up to three attempts, each with the errors of the last one.
//! - [`ShapeError`] locates a mistake in a shape's text; [`Unsaid`] is a keyword of JSON Schema that shapes cannot
//!   express.
//!
//! # Grammar
//!
//! In EBNF. Words and texts are tokens, and white space and comments are allowed between any two tokens.
//!
//! ```text
//! shape   = place ;
//! place   = type , { "|" , "null" }                     (* a type, or null as well *)
//!         | literal , { "|" , literal } ;               (* one of these *)
//! type    = "string" | "markdown" | "number" | "integer" | "boolean" | "date" | "any" | short | array | object ;
//! short   = "str" | "text" | "float" | "int" | "bool" ;  (* "text" and "date" among literals are texts *)
//! array   = "[" , place , "]" ;                         (* any number of these *)
//! object  = "{" , [ field , { "," , field } , [ "," ] ] , "}" ;
//! field   = name , { "?" | "~" } , [ ":" , place ] ;    (* ? : it may be left out; ~ : its value stands in the input;
//!                                                        without a place, a string *)
//! name    = text | word ;
//! literal = text | number | "true" | "false" | "null"
//!         | word ;                                      (* among other literals: low | high *)
//! text    = a JSON string (RFC 8259) on one line ;
//! number  = a JSON number ;
//! word    = a letter, "_" or "$", then those, digits, "-" and "." ;
//! comment = ( "//" | "#" ) to the end of the line | "/*" to "*/" ;
//! ```
//!
//! A comment after a field on its line, and comments on the lines above it, describe the field: they become the
//! `description` in JSON Schema. Comments before the first bracket describe the whole value, comments before an array's
//! item describe the item.
//!
//! Objects are open, as in JSON Schema: fields that are not in the shape are accepted. The schema for a model is
//! closed. A text has at most [`MAX_BYTES`] bytes, and brackets are nested at most [`MAX_DEPTH`] deep.
//!
//! | shape | JSON Schema |
//! |---|---|
//! | `string`, `number`, `integer`, `boolean` | `{"type": …}` |
//! | `markdown` | `{"type": "string", "contentMediaType": "text/markdown"}` |
//! | `date` | `{"type": "string", "format": "date"}` |
//! | `any` | `{}` |
//! | `"a" \| "b"` | `{"type": "string", "enum": ["a", "b"]}`; a single one is a `const` |
//! | `T \| null` | `{"type": [T, "null"]}` |
//! | `[T]` | `{"type": "array", "items": T}` |
//! | `{"a"~: T}` | the rule `grounded` for `$.a`, in `x-formwork-rules` of the whole schema |
//! | `{"a": T, "b"?: U}` | `{"type": "object", "properties": {"a": T, "b": U}, "required": ["a"]}` |

mod error;
mod from_schema;
mod grounded;
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
pub use lint::ShapeWarning;
pub use node::{Field, Kind, Node};
pub use runner::{ShapeRunner, ShapeRunnerBuilder, policy};
pub use shape::Shape;

/// The maximum size of a shape's text in bytes.
///
/// ```
/// let text = " ".repeat(formwork_shape::MAX_BYTES + 1);
/// assert!(formwork_shape::Shape::parse(&text).is_err());
/// ```
pub const MAX_BYTES: usize = 256 * 1024;

/// The maximum depth of nested brackets in a shape.
///
/// ```
/// let nested = |depth| format!("{}any{}", "[".repeat(depth), "]".repeat(depth));
/// assert!(formwork_shape::Shape::parse(&nested(formwork_shape::MAX_DEPTH)).is_ok());
/// assert!(formwork_shape::Shape::parse(&nested(formwork_shape::MAX_DEPTH + 1)).is_err());
/// ```
pub const MAX_DEPTH: usize = 64;
