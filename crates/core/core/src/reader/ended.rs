//! The results of the reader: the prospects of a document, and the values that have ended.

use formwork_json::{JsonPath, Kind, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::{Frame, path_of};
use crate::Violation;

/// The prospects of the first document of a text.
///
/// ```
/// use formwork_core::{Level, Outline, Outlook, Reader};
///
/// let outline = Outline::new(&serde_json::json!({"type": "object", "required": ["age"]}), None);
/// let mut reader = Reader::new(Level::Clean);
/// assert_eq!(reader.push(&outline, "{\"age\": 3", |_| {}), &Outlook::Possible);
/// assert_eq!(reader.push(&outline, "4}", |_| {}), &Outlook::Complete { at: 10 });
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum Outlook {
    /// It can become valid, or a syntax error leaves that to the tolerant reader.
    #[default]
    Possible,
    /// It has ended, and nothing that the reader can judge rejects it.
    Complete {
        /// The byte that decided: its last one, or the byte after a number.
        at: usize,
    },
    /// It cannot become valid, whatever follows.
    Impossible {
        /// The byte that decided.
        at: usize,
        /// The place and the reason.
        violation: Box<Violation>,
    },
}

/// The validity of a value that has ended, as far as it can be known then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// The value satisfies the schema at its place.
    Valid,
    /// Some keyword can be judged only with more of the document, or by the whole contract.
    Undecided,
    /// The document cannot become valid, with it or with a value before it.
    Impossible,
}

/// A value that has just ended.
#[derive(Debug)]
pub struct Ended<'a> {
    /// The containers around it.
    pub(super) frames: &'a [Frame],
    pub(super) text: &'a str,
    /// Its bytes in the text.
    pub span: Span,
    /// Whether it satisfies the schema, as far as it can be known.
    pub validity: Validity,
}

impl Ended<'_> {
    /// Returns the path of the value.
    pub fn path(&self) -> JsonPath {
        path_of(self.frames)
    }

    /// Returns the path of the list and the position in it, if the value is an item of a list that is inside of no other list.
    pub(super) fn item(&self) -> Option<(JsonPath, usize)> {
        let (list, around) = self.frames.split_last()?;
        let is_outermost = around.iter().all(|frame| frame.kind != Kind::Array);
        let index = list.count.checked_sub(1).filter(|_| list.kind == Kind::Array && is_outermost)?;
        Some((path_of(around), index))
    }

    /// Returns the value; `null` if its text is not strict JSON.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.span.of(self.text)).unwrap_or_default()
    }
}
