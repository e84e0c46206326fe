//! A request of any protocol, in the words of none.

use formwork_core::Message;

use crate::contracts::Schema;

/// The request of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ask {
    /// The name that the client gave: a target, a list of targets or an alias.
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) want: Want,
    pub(crate) sampling: Sampling,
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
        Self {
            model,
            messages: Vec::new(),
            want: Want::Text,
            sampling: Sampling::default(),
            count: 1,
            stream: false,
            include_usage: false,
            ignored: Vec::new(),
        }
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

/// The requested kind of answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Want {
    /// Any text.
    Text,
    /// A document that satisfies a schema.
    Json { name: String, schema: Schema },
    /// The arguments of this tool.
    Call(Tool),
    /// The arguments of these tools; text as well unless `required`, which satisfies the schema of the format if there is one.
    Tools { tools: Vec<Tool>, required: bool, format: Option<(String, Schema)> },
}

impl Want {
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
