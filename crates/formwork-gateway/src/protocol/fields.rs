//! Members of a request's body, read with errors that name them.

use std::borrow::Cow;

use formwork_schema::nearest;
use serde_json::Value;

use super::ignored::Ignored;
use crate::contracts::{Known, Schema};
use crate::document::{Document, Raw};
use crate::problem::Problem;

/// What the objects of one body share: the members that nothing acts on, and the schemas that earlier bodies had.
#[derive(Debug, Clone)]
pub(super) struct Reader<'t> {
    ignored: Ignored,
    known: &'t Known,
}

/// The members of an object, and the location of the object in the body. Members that are never taken are ignored by the service:
/// their names are collected when the object is dropped.
#[derive(Debug)]
pub(super) struct Fields<'t> {
    /// In a list, because the objects of requests are so small that a search costs less than a hash.
    members: Vec<(Cow<'t, str>, Raw<'t>)>,
    at: String,
    reader: Reader<'t>,
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        for (name, value) in &self.members {
            self.reader.ignored.note(&self.at, name, *value);
        }
    }
}

impl<'t> Fields<'t> {
    /// Reads the body of a request. A schema that is known is not parsed again.
    pub(super) fn body(body: &'t Document, known: &'t Known) -> Self {
        let members = body.members().map(|(name, value)| (Cow::Borrowed(name), value)).collect();
        Self { members, at: String::new(), reader: Reader { ignored: Ignored::default(), known } }
    }

    /// Reads an object within a body; `at` is its place.
    pub(super) fn new(value: Raw<'t>, at: impl Into<String>, reader: &Reader<'t>) -> Result<Self, Problem> {
        let at = at.into();
        match value.members() {
            Ok(members) => Ok(Self { members, at, reader: reader.clone() }),
            Err(_) => Err(wrong(&at, "an object", value)),
        }
    }

    /// Returns what objects within this one share with it.
    pub(super) fn reader(&self) -> Reader<'t> {
        self.reader.clone()
    }

    /// Ends the reading of a body. Returns the places of its members that were not read.
    pub(super) fn finish(self) -> Vec<String> {
        let ignored = self.reader.ignored.clone();
        drop(self);
        ignored.places()
    }

    /// Ends the reading of an object that is left out as a whole.
    pub(super) fn skip(mut self, kind: &str) {
        self.members.clear();
        self.reader.ignored.skipped(&self.at, kind);
    }

    /// Refuses members that the protocol does not have.
    pub(super) fn known(&self, names: &[&str]) -> Result<(), Problem> {
        let Some((unknown, _)) = self.members.iter().find(|(name, _)| !names.contains(&&**name)) else {
            return Ok(());
        };
        let meant = nearest(unknown, names.iter().copied());
        let meant = meant.map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
        Err(Problem::invalid(self.place(unknown), format!("unknown field `{}`{meant}", self.place(unknown))))
    }

    pub(super) fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { [&self.at, ".", name].concat() }
    }

    /// Takes a member; `null` counts as missing. Of several with the same name, the last one counts.
    pub(super) fn take(&mut self, name: &str) -> Option<Raw<'t>> {
        let value = self.members.iter().rfind(|(member, _)| member == name)?.1;
        self.members.retain(|(member, _)| member != name);
        Some(value).filter(|value| !value.is_null())
    }

    /// Takes a member as any value.
    pub(super) fn value(&mut self, name: &str) -> Result<Option<Value>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.read().map(Some).map_err(|error| self.refuse(name, &error.to_string()))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        self.read(name, "a string")
    }

    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        self.read(name, "true or false")
    }

    /// Reads a member of a type; `what` names the type.
    fn read<T: serde::de::DeserializeOwned>(&mut self, name: &str, what: &str) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.read().map(Some).map_err(|_| self.expected(name, what, value))
    }

    /// Reads a number within a range.
    pub(super) fn number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.read().ok().filter(|number| range.contains(number));
        let what = || format!("a number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| self.expected(name, &what(), value))
    }

    /// Reads a number of tokens, answers or the like: an integer from 1.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let count = value.read().ok().filter(|count| *count > 0);
        count.map(Some).ok_or_else(|| self.expected(name, "an integer from 1", value))
    }

    /// Reads a seed. Negative ones are valid in every protocol, and stand for the number of the same bits.
    pub(super) fn seed(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let seed = value.read().or_else(|_| value.read().map(i64::cast_unsigned));
        seed.map(Some).map_err(|_| self.expected(name, "an integer", value))
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        Self::new(value, self.place(name), &self.reader).map(Some)
    }

    /// Reads a schema. One whose text is known is not parsed again.
    pub(super) fn schema(&mut self, name: &str) -> Result<Option<Schema>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let schema = self.reader.known.read(value.text());
        schema.map(Some).map_err(|error| self.refuse(name, &error.to_string()))
    }

    /// Reads a list; its items come with their places.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<(String, Raw<'t>)>>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let at = self.place(name);
        items(value, &at).map(Some).ok_or_else(|| self.expected(name, "a list", value))
    }

    pub(super) fn missing(&self, name: &str) -> Problem {
        Problem::invalid(self.place(name), format!("missing field `{}`", self.place(name)))
    }

    pub(super) fn refuse(&self, name: &str, why: &str) -> Problem {
        Problem::invalid(self.place(name), format!("`{}`: {why}", self.place(name)))
    }

    fn expected(&self, name: &str, what: &str, found: Raw<'_>) -> Problem {
        wrong(&self.place(name), what, found)
    }
}

/// The content of a message: a text, or a list of parts with their places.
pub(super) enum Content<'t> {
    Text(String),
    Parts(Vec<(String, Raw<'t>)>),
}

/// Reads the content of a message at a place.
pub(super) fn content<'t>(value: Raw<'t>, at: &str) -> Result<Content<'t>, Problem> {
    if value.is_text() {
        return value.read().map(Content::Text).map_err(|_| wrong(at, "a string or a list", value));
    }
    items(value, at).map(Content::Parts).ok_or_else(|| wrong(at, "a string or a list", value))
}

/// Returns the items of a list with their places; `None` for anything else.
fn items<'t>(value: Raw<'t>, at: &str) -> Option<Vec<(String, Raw<'t>)>> {
    let items = value.items().ok()?.into_iter().enumerate();
    Some(items.map(|(nth, item)| (format!("{at}[{nth}]"), item)).collect())
}

/// Returns the problem of a value of the wrong type or range.
pub(super) fn wrong(at: &str, what: &str, found: Raw<'_>) -> Problem {
    let place = if at.is_empty() { "the body" } else { at };
    Problem::invalid(at, format!("`{place}`: expected {what}, found {found}"))
}
