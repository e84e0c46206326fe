//! A request of any protocol, in the words of none.

use std::sync::Arc;

use formwork_core::{Capabilities, Message, ModelSettings};
use serde_json::{Map, Value};

use crate::contracts::Schema;

/// The request of a client.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ask {
    /// The name that the client gave: a target, a list of targets or an alias.
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) want: Want,
    pub(crate) sampling: Sampling,
    pub(crate) settings: Settings,
    /// The number of answers.
    pub(crate) count: u32,
    pub(crate) stream: bool,
    /// Whether a stream ends with the usage, where the protocol leaves that to the client.
    pub(crate) include_usage: bool,
    /// The places of the members of the request that nothing acts on.
    pub(crate) ignored: Vec<String>,
}

impl Ask {
    /// Returns a request for one answer of any text.
    pub(crate) fn plain(model: String) -> Self {
        Self { model, count: 1, ..Self::default() }
    }

    /// Returns the name of the tool that is called, if it is known before the answer.
    pub(crate) fn called(&self) -> Option<String> {
        match &self.want {
            Want::Call(tool) => Some(tool.name.clone()),
            _ => None,
        }
    }
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// Empty if there is none.
    pub(crate) description: String,
    /// The schema of its arguments.
    pub(crate) parameters: Schema,
}

impl Tool {
    /// Returns the tool as a model is offered it.
    pub(crate) fn for_model(&self) -> formwork_core::Tool {
        formwork_core::Tool {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.value().clone(),
        }
    }
}

/// The settings of the model that a request has.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) values: ModelSettings,
    /// The name and the value of each setting, and its place in the request.
    places: Vec<(&'static str, Value, String)>,
}

impl Settings {
    /// Adds a setting. Returns whether it has such a value.
    pub(crate) fn add(&mut self, name: &'static str, value: Value, place: String) -> bool {
        let one = Map::from_iter([(name.to_owned(), value.clone())]);
        let Ok(one) = serde_json::from_value::<ModelSettings>(one.into()) else { return false };
        self.values = one.or(std::mem::take(&mut self.values));
        self.places.push((name, value, place));
        true
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns whether two members of the request are the same setting.
    pub(crate) fn is_doubled(&self) -> bool {
        let mut names = self.places.iter().map(|(name, ..)| name);
        let mut seen = std::collections::HashSet::new();
        !names.all(|name| seen.insert(*name))
    }

    /// Returns whether the request asks for reasoning.
    pub(crate) const fn reasons(&self) -> bool {
        self.values.effort.is_some() || self.values.reasoning_tokens.is_some()
    }

    /// Returns the settings for calls; `None` if there are none.
    pub(crate) fn shared(&self) -> Option<Arc<ModelSettings>> {
        (!self.is_empty()).then(|| Arc::new(self.values.clone()))
    }

    /// Returns the places of the settings that a target does not take.
    pub(crate) fn lost<'s>(&'s self, promised: &'s Capabilities) -> impl Iterator<Item = &'s str> {
        let is_taken = move |name: &str, value: &Value| match name {
            "frequency_penalty" if promised.frequency_penalty => true,
            // A target without tools has none to call at once.
            "parallel_tools" if !promised.tools => true,
            _ => {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let exact = format!("{name}={value}");
                promised.settings.iter().any(|taken| taken == name || *taken == exact)
            }
        };
        let lost = self.places.iter().filter(move |(name, value, _)| !is_taken(name, value));
        lost.map(|(.., place)| place.as_str())
    }
}

/// The requested kind of answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Want {
    /// Any text.
    #[default]
    Text,
    /// A document that satisfies a schema.
    Json { name: String, schema: Schema },
    /// The arguments of this tool.
    Call(Tool),
    /// The arguments of these tools; text as well unless `required`, which satisfies the schema of the format if there is one.
    Tools { tools: Vec<Tool>, required: bool, format: Option<(String, Schema)> },
}

impl Want {
    /// Returns the same kind of answer where the model may also call tools that have no schema; a text is only judged if it has a
    /// contract.
    pub(crate) fn beside_tools(self, is_judged: bool) -> Self {
        let format = match self {
            Self::Json { name, schema } => Some((name, schema)),
            Self::Text if is_judged => None,
            other => return other,
        };
        Self::Tools { tools: Vec::new(), required: false, format }
    }

    /// Returns whether the answer has to satisfy a schema.
    pub(crate) const fn is_contract(&self) -> bool {
        !matches!(self, Self::Text)
    }
}

/// The sampling parameters and the token limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) seed: Option<u64>,
    pub(crate) max_tokens: Option<u32>,
}
