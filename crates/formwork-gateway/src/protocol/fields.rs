//! Members of a request's body, read with errors that name them.

use std::rc::Rc;

use formwork_schema::nearest;
use serde_json::Value;

use super::ignored::Ignored;
use crate::contracts::Schema;
use crate::document::Schemas;
use crate::problem::Problem;

/// The members of an object, and the location of the object in the body. Members that are never taken are ignored by the service:
/// their names are collected when the object is dropped.
#[derive(Debug)]
pub(super) struct Fields {
    /// In a list, because the objects of requests are so small that a search costs less than a hash.
    members: Vec<(String, Value)>,
    at: String,
    ignored: Ignored,
    /// The schemas of the body, in whose places the members are `null`.
    schemas: Option<Rc<Schemas>>,
}

impl Drop for Fields {
    fn drop(&mut self) {
        for (name, value) in &self.members {
            let schema = if value.is_null() { self.schema_at(name) } else { None };
            self.ignored.note(&self.at, name, schema.as_ref().map_or(value, Schema::value));
        }
    }
}

impl Fields {
    /// Reads the body of a request, with the schemas that are not in it.
    pub(super) fn body(value: Value, schemas: Schemas) -> Result<Self, Problem> {
        let body = Self::new(value, "", &Ignored::default())?;
        Ok(body.with_schemas((!schemas.is_empty()).then(|| Rc::new(schemas))))
    }

    fn with_schemas(mut self, schemas: Option<Rc<Schemas>>) -> Self {
        self.schemas = schemas;
        self
    }

    /// Reads an object within a body; `at` is its place.
    pub(super) fn new(value: Value, at: impl Into<String>, ignored: &Ignored) -> Result<Self, Problem> {
        let at = at.into();
        match value {
            Value::Object(map) => {
                let members = map.into_iter().collect();
                Ok(Self { members, at, ignored: ignored.clone(), schemas: None })
            }
            other => Err(wrong(&at, "an object", &other)),
        }
    }

    /// Returns the collection of ignored members, for objects within this one.
    pub(super) fn ignored(&self) -> Ignored {
        self.ignored.clone()
    }

    /// Ends the reading of a body. Returns the places of its members that were not read.
    pub(super) fn finish(self) -> Vec<String> {
        let ignored = self.ignored();
        drop(self);
        ignored.places()
    }

    /// Ends the reading of an object that is left out as a whole.
    pub(super) fn skip(mut self, kind: &str) {
        self.members.clear();
        self.ignored.skipped(&self.at, kind);
    }

    /// Refuses members that the protocol does not have.
    pub(super) fn known(&self, names: &[&str]) -> Result<(), Problem> {
        let Some(unknown) =
            self.members.iter().map(|(name, _)| name).find(|name| !names.contains(&name.as_str()))
        else {
            return Ok(());
        };
        let meant = nearest(unknown, names.iter().copied());
        let meant = meant.map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
        Err(Problem::invalid(self.place(unknown), format!("unknown field `{}`{meant}", self.place(unknown))))
    }

    pub(super) fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { [&self.at, ".", name].concat() }
    }

    /// Takes a member; `null` counts as missing.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.members.iter().position(|(member, _)| member == name)?;
        Some(self.members.swap_remove(at).1).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.expected(name, "a string", &other)),
        }
    }

    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.expected(name, "true or false", &other)),
        }
    }

    /// Reads a number within a range.
    pub(super) fn number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| range.contains(number));
        let what = || format!("a number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| self.expected(name, &what(), &value))
    }

    /// Reads a number of tokens, answers or the like: an integer from 1.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
        count.map(Some).ok_or_else(|| self.expected(name, "an integer from 1", &value))
    }

    /// Reads a seed. Negative ones are valid in every protocol, and stand for the number of the same bits.
    pub(super) fn seed(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
        seed.map(Some).ok_or_else(|| self.expected(name, "an integer", &value))
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let object = Self::new(value, self.place(name), &self.ignored)?;
        Ok(Some(object.with_schemas(self.schemas.clone())))
    }

    /// Reads a schema.
    pub(super) fn schema(&mut self, name: &str) -> Option<Schema> {
        let schema = self.schema_at(name);
        let value = self.take(name);
        schema.or_else(|| value.map(Schema::from))
    }

    /// Returns the schema that is not in the body but stands in the place of this member.
    fn schema_at(&self, name: &str) -> Option<Schema> {
        let is_here = |place: &str| {
            place.strip_prefix(self.at.as_str()).and_then(|rest| rest.strip_prefix('.')) == Some(name)
        };
        self.schemas.as_ref()?.iter().find(|(place, _)| is_here(place)).map(|(_, schema)| schema.clone())
    }

    /// Reads a list; its items come with their places.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<(String, Value)>>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                let at = self.place(name);
                Ok(Some(
                    items.into_iter().enumerate().map(|(nth, item)| (format!("{at}[{nth}]"), item)).collect(),
                ))
            }
            Some(other) => Err(self.expected(name, "a list", &other)),
        }
    }

    pub(super) fn missing(&self, name: &str) -> Problem {
        Problem::invalid(self.place(name), format!("missing field `{}`", self.place(name)))
    }

    pub(super) fn refuse(&self, name: &str, why: &str) -> Problem {
        Problem::invalid(self.place(name), format!("`{}`: {why}", self.place(name)))
    }

    fn expected(&self, name: &str, what: &str, found: &Value) -> Problem {
        wrong(&self.place(name), what, found)
    }
}

/// Returns the problem of a value of the wrong type or range.
pub(super) fn wrong(at: &str, what: &str, found: &Value) -> Problem {
    let found = match found {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(_) => "a string".to_owned(),
        other => other.to_string(),
    };
    let place = if at.is_empty() { "the body" } else { at };
    Problem::invalid(at, format!("`{place}`: expected {what}, found {found}"))
}
