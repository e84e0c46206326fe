use std::ops::Range;
use std::sync::Arc;

use formwork_core::looks_like_key;
use formwork_schema::nearest;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::ConfigError;
use super::overlay::Edit;

/// A TOML text with edits. It is parsed again for each read, so that errors have a location.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) file: Arc<str>,
    pub(crate) text: Arc<str>,
    /// The edits in order; later ones take precedence.
    pub(crate) edits: Vec<Edit>,
    /// Whether the file may run programs.
    pub(crate) is_trusted: bool,
}

impl Document {
    pub(crate) fn new(file: &str, text: &str, edits: Vec<Edit>) -> Self {
        Self { file: file.into(), text: text.into(), edits, is_trusted: true }
    }

    /// Returns the whole document with its edits.
    pub(crate) fn table(&self) -> Result<DeTable<'_>, ConfigError> {
        let table = DeTable::parse(&self.text).map_err(|error| self.error(error.span(), error.message()))?;
        let mut table = table.into_inner();
        for (index, edit) in self.edits.iter().enumerate() {
            edit.apply(&mut table, self.place_of(index))
                .map_err(|why| ConfigError::new(&edit.source, why))?;
        }
        Ok(table)
    }

    /// Returns the span of the values of an edit. It lies after the end of the text, so that the span of an error identifies the edit.
    fn place_of(&self, index: usize) -> Range<usize> {
        let at = self.text.len() + 1 + index;
        at..at + 1
    }

    /// Returns the edit that a span belongs to, or `None` for a span within the text.
    pub(super) fn edit_at(&self, span: &Range<usize>) -> Option<&Edit> {
        self.edits.get(span.start.checked_sub(self.text.len() + 1)?)
    }

    /// Returns the tables of `providers` with their locations; none if the key is missing.
    pub(crate) fn providers(&self) -> Result<Vec<(String, Range<usize>, DeTable<'_>)>, ConfigError> {
        let Some(providers) = self.table()?.remove("providers") else { return Ok(Vec::new()) };
        let span = providers.span();
        let DeValue::Table(providers) = providers.into_inner() else {
            return Err(self.error(Some(span), "`providers` is a table of tables: [providers.primary]"));
        };
        providers
            .into_iter()
            .map(|(name, section)| {
                let (name, span) = (name.into_inner().into_owned(), section.span());
                match section.into_inner() {
                    DeValue::Table(table) => Ok((name, span, table)),
                    _ => {
                        let message = format!("`providers.{name}` is a table: [providers.{name}]");
                        Err(self.error(Some(span), &message))
                    }
                }
            })
            .collect()
    }

    /// Deserializes a part of the document. `also` are keys that are valid in it and deserialized elsewhere.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        table: DeTable<'_>,
        span: Range<usize>,
        also: &[&str],
    ) -> Result<T, ConfigError> {
        T::deserialize(Deserializer::from(Spanned::new(span.clone(), table))).map_err(|error| {
            let span = error.span().filter(|span| !span.is_empty()).unwrap_or(span);
            self.error(Some(span), &advised(error.message(), also))
        })
    }

    /// Returns the span of a setting of a section, or of the section if it does not have this setting.
    pub(crate) fn setting(&self, section: &str, setting: &str) -> Option<Range<usize>> {
        let table = self.table().ok()?;
        let (_, section) = table.iter().find(|(name, _)| name.get_ref() == section)?;
        let settings = section.get_ref().as_table();
        let found = settings.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == setting));
        Some(found.map_or_else(|| section.span(), |(_, value)| value.span()))
    }

    /// Returns the span of a text in quotation marks.
    pub(crate) fn quoted(&self, text: &str) -> Option<Range<usize>> {
        let at = self.text.find(&format!("\"{text}\""))?;
        Some(at..at + text.len() + 2)
    }

    /// Returns an error with the line and column of a span, or with the name of the variable that set the value.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: &str) -> ConfigError {
        if let Some(edit) = span.as_ref().and_then(|span| self.edit_at(span)) {
            return ConfigError::new(&edit.source, message);
        }
        let at = span.and_then(|span| self.text.get(..span.start)).map(|before| {
            let line = before.rsplit('\n').next().unwrap_or_default();
            (before.matches('\n').count() + 1, line.chars().count() + 1)
        });
        let message = message.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
        ConfigError { at, ..ConfigError::new(&self.file, message) }
    }
}

/// Returns serde's message about an unknown name, with the most similar valid name instead of all valid names.
fn advised(message: &str, also: &[&str]) -> String {
    // A value of the wrong type is quoted, and may be a key.
    if let Some((before, rest)) = message.split_once("string \"")
        && let Some((value, after)) = rest.split_once('"')
        && looks_like_key(value)
    {
        return format!("{before}a string that looks like a key{after}");
    }
    let Some(rest) = message.strip_prefix("unknown field `").or(message.strip_prefix("unknown variant `"))
    else {
        return message.to_owned();
    };
    let mut quoted = rest.split('`').step_by(2);
    let Some(unknown) = quoted.next() else { return message.to_owned() };
    match nearest(unknown, quoted.chain(also.iter().copied())) {
        Some(meant) => format!("there is no `{unknown}` here: did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}
