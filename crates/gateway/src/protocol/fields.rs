//! Members of a request's body, read with errors that name them.

use std::fmt;

use formwork_core::misspelled;
use serde_json::Value;

use super::ignored::{Ignored, asks_for_nothing};
use crate::ask::{Settings, Want};
use crate::contracts::{Known, Schema};
use crate::document::{Document, Member, Node, wrong};
use crate::problem::Problem;

/// Members of servers such as vLLM and SGLang, whose names are similar to others.
const OTHERS: [&str; 6] = ["min_tokens", "models", "top_a", "top_k", "top_n_sigma", "typ_p"];

/// The state that the objects of one body share: the members that nothing acts on, and the schemas that earlier bodies had.
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
    members: Vec<Member<'t>>,
    at: String,
    reader: Reader<'t>,
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        for (name, value) in &self.members {
            self.reader.ignored.note(&self.at, name, value);
        }
    }
}

impl<'t> Fields<'t> {
    /// Reads the body of a request. A schema that is known is not parsed again.
    pub(super) fn body(body: Document<'t>, known: &'t Known) -> Self {
        let reader = Reader { ignored: Ignored::default(), known };
        Self { members: body.into_members(), at: String::new(), reader }
    }

    /// Reads an object within a body; `at` is its place.
    pub(super) fn new(value: Node<'t>, at: impl Into<String>, reader: &Reader<'t>) -> Result<Self, Problem> {
        let at = at.into();
        match value {
            Node::Object(members) => Ok(Self { members, at, reader: reader.clone() }),
            other => Err(wrong(&at, "an object", &other)),
        }
    }

    /// Returns the state that objects within this one share with it.
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

    /// Refuses members that the protocol does not have. Targets of the same protocol may take more than its documentation has, so that
    /// only a name that is nearly one of these is an error for them as well.
    pub(super) fn known(&self, names: &[&str]) -> Result<(), Problem> {
        let unknown =
            || self.members.iter().map(|(name, _)| name.as_ref()).filter(|name| !names.contains(name));
        let meant = |unknown: &str| {
            misspelled(unknown, names.iter().copied(), 2).filter(|_| !OTHERS.contains(&unknown))
        };
        // A name that is nearly one of the protocol is an error wherever it stands.
        let Some(unknown) = unknown().find(|name| meant(name).is_some()).or_else(|| unknown().next()) else {
            return Ok(());
        };
        let meant = meant(unknown);
        let is_unsupported = meant.is_none();
        let meant = meant.map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
        let message = format!("unknown field `{}`{meant}", self.place(unknown));
        Err(Problem { is_unsupported, ..Problem::invalid(self.place(unknown), message) })
    }

    pub(super) fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { [&self.at, ".", name].concat() }
    }

    /// Takes a member; `null` counts as missing. Of several with the same name, the last one counts.
    pub(super) fn take(&mut self, name: &str) -> Option<Node<'t>> {
        let taken = self.members.extract_if(.., |(member, _)| member == name).last();
        taken.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Takes a member as any value.
    pub(super) fn value(&mut self, name: &str) -> Result<Option<Value>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.value().map(Some).map_err(|error| self.refuse(name, &error.to_string()))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Node::Text(text)) => Ok(Some(text.into_owned())),
            Some(other) => Err(self.expected(name, "a string", &other)),
        }
    }

    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        self.scalar(name, format_args!("true or false"), Value::as_bool)
    }

    /// Reads a number within a range.
    pub(super) fn number(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, Problem> {
        let (least, most) = (range.start(), range.end());
        let what = format_args!("a number from {least} to {most}");
        self.scalar(name, what, |value| value.as_f64().filter(|number| range.contains(number)))
    }

    /// Reads a number of tokens, answers or the like: an integer from 1.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, Problem> {
        let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
        self.scalar(name, format_args!("an integer from 1"), |value| count(value).filter(|count| *count > 0))
    }

    /// Reads a seed. Negative ones are valid in every protocol, and stand for the number of the same bits.
    pub(super) fn seed(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        self.scalar(name, format_args!("an integer"), |value| {
            value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned))
        })
    }

    /// Reads a flag or a number. `what` names what is expected, for the error.
    fn scalar<T>(
        &mut self,
        name: &str,
        what: fmt::Arguments<'_>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let found = match &value {
            Node::Flag(_) | Node::Number(_) => value.value().ok().and_then(|scalar| read(&scalar)),
            _ => None,
        };
        found.map(Some).ok_or_else(|| self.expected(name, &what.to_string(), &value))
    }

    /// Returns the text of a member of an object, which stays.
    pub(super) fn word_in(&self, name: &str, inner: &str) -> Option<String> {
        let (_, Node::Object(members)) = self.members.iter().rfind(|(member, _)| member == name)? else {
            return None;
        };
        match &members.iter().rfind(|(member, _)| member == inner)?.1 {
            Node::Text(text) => Some(text.as_ref().to_owned()),
            _ => None,
        }
    }

    /// Takes a member that is a setting of the model, unless its value asks for nothing, or no model has such a one.
    pub(super) fn setting(&mut self, settings: &mut Settings, name: &str, setting: &'static str) {
        let Some((_, node)) = self.members.iter().rfind(|(member, _)| member == name) else { return };
        let Ok(value) = node.value() else { return };
        if asks_for_nothing(&self.at, name, &value) {
            return;
        }
        let value = match value {
            Value::String(text) if setting == "stop" => Value::Array(vec![text.into()]),
            value => value,
        };
        if settings.add(setting, value, self.place(name)) {
            self.take(name);
        }
    }

    /// Takes a member that asks for the log probabilities of the tokens. They are told of whole texts without tools and formats.
    pub(super) fn log_probs(
        &mut self,
        settings: &mut Settings,
        (name, asks): (&str, &Value),
        ask: (&Want, bool),
    ) {
        let node = self.members.iter().rfind(|(member, _)| member == name);
        let is_asked = node.and_then(|(_, node)| node.value().ok()).is_some_and(|value| value == *asks);
        if is_asked && ask == (&Want::Text, false) && settings.add("top_logprobs", 0.into(), self.place(name))
        {
            self.take(name);
        }
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        Self::new(value, self.place(name), &self.reader).map(Some)
    }

    /// Reads a schema. One whose text is known is not parsed again.
    pub(super) fn schema(&mut self, name: &str) -> Result<Option<Schema>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let schema = match value {
            Node::Unread(text) => self.reader.known.read(text),
            other => other.value().map(Schema::from),
        };
        schema.map(Some).map_err(|error| self.refuse(name, &error.to_string()))
    }

    /// Reads a list; its items come with their places.
    pub(super) fn list(&mut self, name: &str) -> Result<Option<Vec<(String, Node<'t>)>>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Node::List(items)) => Ok(Some(placed(items, &self.place(name)))),
            Some(other) => Err(self.expected(name, "a list", &other)),
        }
    }

    pub(super) fn missing(&self, name: &str) -> Problem {
        Problem::invalid(self.place(name), format!("missing field `{}`", self.place(name)))
    }

    pub(super) fn refuse(&self, name: &str, why: &str) -> Problem {
        Problem::invalid(self.place(name), format!("`{}`: {why}", self.place(name)))
    }

    /// Refuses a member that targets of the same protocol may take.
    pub(super) fn unsupported(&self, name: &str, why: &str) -> Problem {
        Problem { is_unsupported: true, ..self.refuse(name, why) }
    }

    fn expected(&self, name: &str, what: &str, found: &Node<'_>) -> Problem {
        wrong(&self.place(name), what, found)
    }
}

/// Reads the content of a message at a place: a text, or a list whose items `part` reads at their places.
pub(super) fn content<'t, T>(
    value: Node<'t>,
    at: &str,
    text: impl FnOnce(String) -> T,
    part: impl Fn(Node<'t>, &str) -> Result<Option<T>, Problem>,
) -> Result<Vec<T>, Problem> {
    match value {
        Node::Text(whole) => Ok(vec![text(whole.into_owned())]),
        Node::List(items) => {
            placed(items, at).into_iter().filter_map(|(at, item)| part(item, &at).transpose()).collect()
        }
        other => Err(wrong(at, "a string or a list", &other)),
    }
}

/// Returns the items of a list with their places.
fn placed<'t>(items: Vec<Node<'t>>, at: &str) -> Vec<(String, Node<'t>)> {
    items.into_iter().enumerate().map(|(nth, item)| (format!("{at}[{nth}]"), item)).collect()
}
