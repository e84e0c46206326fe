//! Settings in place of those of the file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The beginning of the names of variables. Two underscores stand between the parts of a path: one is part of names.
const PREFIX: &str = "FORMWORK__";

/// A value that is set in place of the file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Where it comes from, for people.
    pub(super) source: String,
    /// From the outside in.
    pub(super) path: Vec<String>,
    /// TOML, or text if it is none.
    text: String,
    /// Leaves alone what the file sets.
    is_default: bool,
}

impl Edit {
    /// Returns the setting of an environment variable; `None` if it is not one of those.
    pub(super) fn of_variable(name: &str, value: &str) -> Option<Self> {
        let path = name.get(..PREFIX.len()).filter(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
        let path = path.map(|_| name[PREFIX.len()..].to_lowercase())?;
        let source = format!("the environment variable {name}");
        let path = path.split("__").map(str::to_owned).collect();
        Some(Self { source, path, text: value.to_owned(), is_default: false })
    }

    /// Returns its source, for people.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The name of the provider that it is about, if it is about one.
    pub(super) fn provider(&self) -> Option<&str> {
        match self.path.as_slice() {
            [providers, name, ..] if providers == "providers" => Some(name),
            _ => None,
        }
    }

    /// Sets a text.
    pub(super) fn text(source: &str, path: &[&str], text: &str, is_default: bool) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        // In quotation marks, so that a model that is called 7 is no number.
        let text = serde_json::Value::from(text).to_string();
        Self { source: source.to_owned(), path, text, is_default }
    }

    /// Sets the value in a table. Everything that is new in it gets this span.
    pub(super) fn apply<'d>(&'d self, table: &mut DeTable<'d>, span: Range<usize>) -> Result<(), String> {
        self.put(table, &self.path, &span)
    }

    fn put<'d>(
        &'d self,
        table: &mut DeTable<'d>,
        path: &'d [String],
        span: &Range<usize>,
    ) -> Result<(), String> {
        let [name, rest @ ..] = path else { return Ok(()) };
        if name.is_empty() {
            return Err("it names no place in the configuration".to_owned());
        }
        // Names in a file may have capitals, which those of variables are written in.
        let there = table.keys().find(|key| key.get_ref().eq_ignore_ascii_case(name)).cloned();
        let new = || Spanned::new(span.clone(), name.as_str().into());
        if rest.is_empty() {
            if self.is_default && there.is_some() {
                return Ok(());
            }
            // A key that stays would stay with its old place, too.
            if let Some(there) = &there {
                table.remove(there);
            }
            let key = there.map_or_else(new, |there| Spanned::new(span.clone(), there.into_inner()));
            table.insert(key, self.value(span));
            return Ok(());
        }
        let key = there.unwrap_or_else(new);
        let empty = || Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
        match table.entry(key).or_insert_with(empty).get_mut() {
            DeValue::Table(inside) => self.put(inside, rest, span),
            _ => Err(format!("`{name}` is no table")),
        }
    }

    /// The value as TOML has it, or the text itself: nobody quotes a model's name twice.
    fn value(&self, span: &Range<usize>) -> Spanned<DeValue<'_>> {
        match DeValue::parse(&self.text).map(Spanned::into_inner) {
            Ok(value) if !matches!(value, DeValue::Datetime(_)) => at(span, value),
            _ => Spanned::new(span.clone(), DeValue::String(self.text.as_str().into())),
        }
    }
}

/// A value with another span, for everything within it too.
fn at<'d>(span: &Range<usize>, value: DeValue<'d>) -> Spanned<DeValue<'d>> {
    let value = match value {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| at(span, item.into_inner())).collect())
        }
        DeValue::Table(members) => {
            let members = members.into_iter().map(|(name, member)| {
                (Spanned::new(span.clone(), name.into_inner()), at(span, member.into_inner()))
            });
            DeValue::Table(members.collect())
        }
        other => other,
    };
    Spanned::new(span.clone(), value)
}

/// Returns the settings of the environment, in the order of its names.
pub(super) fn environment() -> Vec<Edit> {
    let mut edits: Vec<Edit> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter_map(|(name, value)| Edit::of_variable(&name, &value))
        .collect();
    edits.sort_by(|one, other| one.path.cmp(&other.path));
    edits
}
