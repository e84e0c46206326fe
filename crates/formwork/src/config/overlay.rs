//! Replaces values of the configuration file.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The prefix of variables. Two underscores separate the parts of a path, because names contain single ones.
const PREFIX: &str = "FORMWORK__";

/// A value that replaces a value of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The source, for messages.
    pub(super) source: String,
    /// The keys, from the outermost.
    pub(super) path: Vec<String>,
    /// The value: TOML, or a plain string if it is not valid TOML.
    text: String,
    /// Whether a value of the file takes precedence.
    is_default: bool,
}

impl Edit {
    /// Returns the edit of an environment variable; `None` if it does not have the prefix.
    pub(super) fn of_variable(name: &str, value: &str) -> Option<Self> {
        let path = name.get(..PREFIX.len()).filter(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
        let path = path.map(|_| name[PREFIX.len()..].to_lowercase())?;
        let source = format!("the environment variable {name}");
        let path = path.split("__").map(str::to_owned).collect();
        Some(Self { source, path, text: value.to_owned(), is_default: false })
    }

    /// Returns the source, for messages.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the name of the provider that the edit changes, if any.
    pub(super) fn provider(&self) -> Option<&str> {
        match self.path.as_slice() {
            [providers, name, ..] if providers == "providers" => Some(name),
            _ => None,
        }
    }

    /// Sets a string.
    pub(super) fn text(source: &str, path: &[&str], text: &str, is_default: bool) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        // Quotation marks keep a model called `7` from becoming a number.
        let text = serde_json::Value::from(text).to_string();
        Self { source: source.to_owned(), path, text, is_default }
    }

    /// Sets the value in a table. All new values get this span.
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
            return Err("the name is not a setting of the configuration".to_owned());
        }
        // Variables are upper-case, while names in a file can have any case.
        let exact = table.keys().find(|key| key.get_ref().eq_ignore_ascii_case(name)).cloned();
        let there = match exact {
            Some(exact) => Some(exact),
            None => similar(table, name)?,
        };
        let new = || Spanned::new(span.clone(), name.as_str().into());
        if rest.is_empty() {
            if self.is_default && there.is_some() {
                return Ok(());
            }
            // A kept key would keep its old location as well.
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
            _ => Err(format!("`{name}` is not a table")),
        }
    }

    /// Returns the value as TOML, else as a plain string, so that the name of a model needs no TOML quotes within shell quotes.
    fn value(&self, span: &Range<usize>) -> Spanned<DeValue<'_>> {
        match DeValue::parse(&self.text).map(Spanned::into_inner) {
            Ok(value) if !matches!(value, DeValue::Datetime(_)) => at(span, value),
            _ => Spanned::new(span.clone(), DeValue::String(self.text.as_str().into())),
        }
    }
}

/// Returns the key that a variable's name reaches although it has a character such as `-`, which variables write as `_`.
fn similar<'d>(table: &DeTable<'d>, name: &str) -> Result<Option<Spanned<Cow<'d, str>>>, String> {
    let plain = |key: &str| key.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    let mut similar = table.keys().filter(|key| plain(key.get_ref()) == name);
    match (similar.next(), similar.next()) {
        (Some(one), Some(other)) => {
            let (one, other) = (one.get_ref(), other.get_ref());
            Err(format!("the name reaches both `{one}` and `{other}`: rename one of them in the file"))
        }
        (found, _) => Ok(found.cloned()),
    }
}

/// Returns a value with another span, for all nested values too.
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

/// Returns the edits of the environment, in the order of names.
pub(super) fn environment() -> Vec<Edit> {
    let mut edits: Vec<Edit> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter_map(|(name, value)| Edit::of_variable(&name, &value))
        .collect();
    edits.sort_by(|one, other| one.path.cmp(&other.path));
    edits
}
