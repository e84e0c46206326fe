//! Places of the values of an answer in its input, comparison of values, and alignment of lists.
//!
//! An [`Index`] is made once for an input. [`Index::evidence`] then finds the place of each leaf of a value: the one whose
//! surroundings fit best, if there are several. It makes no call, and the result depends on its arguments alone.
//!
//! ```
//! use formwork_evidence::{Index, Status};
//! use serde_json::json;
//!
//! let index = Index::new("Subtotal: 12.00\nShipping: 0.00\nTotal: 12.00 EUR, due 5 March 2024");
//! let value = json!({"total": 12, "currency": "EUR", "due": "2024-03-05", "buyer": "Ada"});
//! let evidence = index.evidence(&value, None);
//! let found: Vec<_> = evidence.iter().map(|it| (it.path.to_string(), it.status, it.spans.first())).collect();
//! let starts: Vec<_> = found.iter().map(|(_, status, span)| (*status, span.map(|span| span.start))).collect();
//! assert_eq!(starts, [
//!     (Status::Normalised, Some(38)),
//!     (Status::Exact, Some(44)),
//!     (Status::Normalised, Some(53)),
//!     (Status::NotFound, None),
//! ]);
//! ```
//!
//! [`Index::states`] says whether a value stands in the input, and [`Index::nearest`] finds the most similar text.
//! [`Compare`] compares two values, and [`assign`] aligns the items of two lists. [`merge`] makes one answer of several, and [`scores`] orders
//! the leaves of an answer by doubt.

mod align;
mod candidates;
mod choose;
mod clock;
mod compare;
mod csv;
mod date;
mod decimal;
mod doubt;
mod evidence;
mod find;
mod grounded;
mod html;
mod index;
mod label;
mod leaves;
mod merge;
mod numbers;
mod numeral;
mod order;
mod page;
mod pairing;
mod question;
mod record;
mod spelled;
mod stated;
mod status;
mod summary;
mod text;
mod versions;

pub use align::{assign, greedy};
pub use candidates::{Candidates, Prefix};
pub use compare::{Compare, KEYWORD, subschema};
pub use doubt::{LeafScore, merged_scores, scores};
pub use evidence::{Evidence, Span};
pub use html::{html_text, html_value};
pub use index::Index;
pub use leaves::{Counterpart, counterparts};
pub use merge::{Disputed, Merged, MergedPlace, disputed, merge};
pub use page::page;
pub use pairing::Pairing;
pub use question::Question;
pub use stated::is_stated;
pub use status::Status;
pub use summary::Summary;
pub use text::plain;
