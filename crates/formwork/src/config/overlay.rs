//! What is set in place of the file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What the names of variables begin with. Two underscores stand between the parts of a path: one is part of names.
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
    /// What an environment variable sets; `None` if it is not one of those.
    pub(super) fn of_variable(name: &str, value: &str) -> Option<Self> {
        let path = name.get(..PREFIX.len()).filter(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
        let path = path.map(|_| name[PREFIX.len()..].to_lowercase())?;
        let source = format!("the environment variable {name}");
        let path = path.split("__").map(str::to_owned).collect();
        Some(Self { source, path, text: value.to_owned(), is_default: false })
    }

    /// Sets a text.
    pub(super) fn text(source: &str, path: &[&str], text: &str, is_default: bool) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        // In quotation marks, so that a model that is called 7 is no number.
        let text = serde_json::Value::from(text).to_string();
        Self { source: source.to_owned(), path, text, is_default }
    }

    pub(super) fn apply<'d>(&'d self, table: &mut DeTable<'d>) -> Result<(), String> {
        self.put(table, &self.path)
    }

    fn put<'d>(&'d self, table: &mut DeTable<'d>, path: &'d [String]) -> Result<(), String> {
        let [name, rest @ ..] = path else { return Ok(()) };
        if name.is_empty() {
            return Err("it names no place in the configuration".to_owned());
        }
        // Names in a file may have capitals, which those of variables are written in.
        let there = table.keys().find(|key| key.get_ref().eq_ignore_ascii_case(name)).cloned();
        let is_there = there.is_some();
        let key = there.unwrap_or_else(|| Spanned::new(0..0, name.as_str().into()));
        if rest.is_empty() {
            if !(self.is_default && is_there) {
                table.insert(key, Spanned::new(0..0, self.value()));
            }
            return Ok(());
        }
        let inside = table.entry(key).or_insert_with(|| Spanned::new(0..0, DeValue::Table(DeTable::new())));
        match inside.get_mut() {
            DeValue::Table(inside) => self.put(inside, rest),
            _ => Err(format!("`{name}` is no table")),
        }
    }

    /// A value as TOML has it, or the text itself: nobody quotes a model's name twice.
    fn value(&self) -> DeValue<'_> {
        match DeValue::parse(&self.text).map(Spanned::into_inner) {
            Ok(value) if !matches!(value, DeValue::Datetime(_)) => value,
            _ => DeValue::String(self.text.as_str().into()),
        }
    }
}

/// What the environment sets, in the order of its names.
pub(super) fn environment() -> Vec<Edit> {
    let mut edits: Vec<Edit> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter_map(|(name, value)| Edit::of_variable(&name, &value))
        .collect();
    edits.sort_by(|one, other| one.path.cmp(&other.path));
    edits
}
