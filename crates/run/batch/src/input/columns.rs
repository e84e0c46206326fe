//! The columns of a table that make up a row.

use std::fmt;
use std::sync::Arc;

use formwork_json::{JsonPath, Rounded, rounded};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Row;

/// A function that writes the input of a row from its columns, for example a template.
pub type Render = Arc<dyn Fn(&Map<String, Value>) -> Result<String, String> + Send + Sync>;

/// The columns of a table that are the id and the input of a row (default: `id` and `input`). All others are kept as
/// [`Row::columns`].
///
/// ```
/// use std::sync::Arc;
/// use formwork_batch::{Columns, read_rows};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("letters.tsv");
/// std::fs::write(&path, "no\ttitle\ttext\n7\tTrip\tMaria is 34.\n")?;
/// let columns = Columns::default().with_id("no").with_input("text");
/// let row = read_rows(&path, &columns)?.next().unwrap()?.unwrap();
/// assert_eq!((row.id, row.input.as_str(), row.columns.as_str()), ("7".into(), "Maria is 34.", r#"{"title":"Trip"}"#));
///
/// let titled = Columns::default().with_id("no");
/// let titled = titled.with_render(["title"], Arc::new(|row| Ok(format!("{}: {}", row["title"], row["text"]))));
/// assert_eq!(read_rows(&path, &titled)?.next().unwrap()?.unwrap().input, r#""Trip": "Maria is 34.""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Columns {
    id: String,
    input: Input,
}

#[derive(Clone)]
enum Input {
    Column(String),
    /// The columns that the function reads, and the function.
    Rendered(Vec<String>, Render),
}

impl Default for Columns {
    fn default() -> Self {
        Self { id: "id".to_owned(), input: Input::Column("input".to_owned()) }
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Columns").field(&self.needed()).finish()
    }
}

impl Columns {
    /// Sets the column of the ids (default: `id`).
    #[must_use]
    pub fn with_id(mut self, column: impl Into<String>) -> Self {
        self.id = column.into();
        self
    }

    /// Sets the column of the inputs (default: `input`).
    #[must_use]
    pub fn with_input(mut self, column: impl Into<String>) -> Self {
        self.input = Input::Column(column.into());
        self
    }

    /// Writes each input from the columns of its row, of which a table must have `reads` (default: the input is a column). All
    /// columns but the id are kept then.
    #[must_use]
    pub fn with_render<I: Into<String>>(
        mut self,
        reads: impl IntoIterator<Item = I>,
        render: Render,
    ) -> Self {
        self.input = Input::Rendered(reads.into_iter().map(Into::into).collect(), render);
        self
    }

    /// Returns the columns that a table must have.
    pub(super) fn needed(&self) -> Vec<&str> {
        let mut names = vec![self.id.as_str()];
        match &self.input {
            Input::Column(input) => names.push(input),
            Input::Rendered(reads, _) => names.extend(reads.iter().map(String::as_str)),
        }
        names
    }

    /// Returns the row of an object, as the JSON text of each member.
    pub(super) fn row(&self, members: &[(String, &RawValue)]) -> Result<Row, String> {
        let (mut id, mut input) = (None, None);
        let mut kept = String::new();
        for (nth, (name, text)) in members.iter().enumerate() {
            if members.iter().skip(nth + 1).any(|(other, _)| other == name) {
                return Err(format!("two members are called `{name}`: remove one"));
            }
            if *name == self.id {
                id = Some(*text);
            } else if matches!(&self.input, Input::Column(input) if input == name) {
                input = Some(*text);
            } else {
                let separator = if kept.is_empty() { '{' } else { ',' };
                kept.push(separator);
                kept.push_str(&format!("{}:{text}", Value::from(name.as_str())));
            }
        }
        if !kept.is_empty() {
            kept.push('}');
        }
        let input = match &self.input {
            Input::Column(name) => match input.map(|text| serde_json::from_str(text.get())) {
                Some(Ok(Value::String(input))) => input,
                Some(_) => return Err(format!("`{name}` is not a string")),
                None => return Err(format!("the field `{name}` is missing")),
            },
            Input::Rendered(_, render) => {
                let values = members.iter().map(|(name, text)| {
                    let value = serde_json::from_str(text.get()).map_err(|error| error.to_string());
                    value.map(|value| (name.clone(), value))
                });
                render(&values.collect::<Result<_, _>>()?)?
            }
        };
        let Some(id) = id else { return Err(format!("the field `{}` is missing", self.id)) };
        if let Some(number) = self.rounded_id(&format!("{{{}:{id}}}", Value::from(self.id.as_str()))) {
            return Err(format!("{number}; write the id as a string"));
        }
        let id = serde_json::from_str(id.get()).map_err(|error| error.to_string())?;
        Ok(Row { id, input, columns: kept })
    }

    /// Returns the row of a table whose cells are texts.
    pub(super) fn row_of_cells<'c>(
        &self,
        cells: impl Iterator<Item = (&'c str, &'c str)>,
    ) -> Result<Row, String> {
        let texts: Vec<(String, Box<RawValue>)> = cells
            .filter_map(|(name, cell)| {
                Some((name.to_owned(), RawValue::from_string(Value::from(cell).to_string()).ok()?))
            })
            .collect();
        self.row(&texts.iter().map(|(name, text)| (name.clone(), &**text)).collect::<Vec<_>>())
    }

    /// Returns the number in the id of a row that a result would not repeat exactly.
    pub(super) fn rounded_id(&self, row: &str) -> Option<Rounded> {
        let id = JsonPath::root().key(&self.id);
        rounded(row).into_iter().find(|number| number.path.is_within(&id))
    }

    /// Returns the name of the column with the ids.
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}
