//! The scores of many documents in little memory.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::RowScore;

/// The scores of documents, in their order. A million documents with short ids take about 25 MB, an eighth of a `Vec<RowScore>`.
///
/// ```
/// use formwork_eval::{RowScore, Rows};
/// use serde_json::json;
///
/// let rows: Rows = [RowScore { id: json!("a"), score: 0.5 }, RowScore { id: json!(7), score: 1.0 }].into_iter().collect();
/// assert_eq!((rows.len(), rows.iter().nth(1).unwrap().id), (2, json!(7)));
/// assert_eq!(json!(rows)[0], json!({"id": "a", "score": 0.5}));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// The ids as JSON, one after the other.
    ids: String,
    /// The length of each id in bytes, and the score.
    rows: Vec<(u32, [u8; 8])>,
}

impl Rows {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: &RowScore) {
        let id = row.id.to_string();
        // An id of 4 GiB does not fit into a row of the gold.
        self.rows.push((u32::try_from(id.len()).unwrap_or_default(), row.score.to_le_bytes()));
        self.ids.push_str(&id);
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Iterates over the rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = RowScore> {
        self.texts().map(|(id, score)| RowScore { id: serde_json::from_str(id).unwrap_or_default(), score })
    }

    /// Iterates over the ids as JSON, with the scores.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, f64)> {
        let mut start = 0;
        self.rows.iter().map(move |(length, score)| {
            let end = start + *length as usize;
            let id = self.ids.get(start..end).unwrap_or_default();
            start = end;
            (id, f64::from_le_bytes(*score))
        })
    }
}

impl FromIterator<RowScore> for Rows {
    fn from_iter<I: IntoIterator<Item = RowScore>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.push(&row));
        all
    }
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<RowScore>::deserialize(deserializer).map(Self::from_iter)
    }
}
