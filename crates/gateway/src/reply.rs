//! The outcome of a request, in the words of no protocol.

use formwork_core::evidence::Evidence;
use formwork_core::{Confidence, Cost, JsonPath, LogProb, Outcome, Trust, Usage, Warning};
use serde::Serialize;
use serde_json::{Value, json};

/// The answers to a request, and their cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reply {
    /// One for each answer that was asked for.
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
    /// Every call that was made.
    pub(crate) calls: usize,
    /// Whether it comes from the cache of validated values.
    pub(crate) is_cached: bool,
    /// The warnings of all outcomes.
    pub(crate) warnings: Vec<Warning>,
    /// The paths of the members that are `null`, because the text does not state them.
    pub(crate) not_stated: Vec<JsonPath>,
    /// The history of the leaves of the only value; `None` for several answers, texts, and values from the cache.
    pub(crate) trust: Option<Trust>,
    /// The places of the values of the only answer and the confidence in them, if the request asks for them.
    pub(crate) support: Option<Support>,
}

/// The support of the values of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Support {
    pub(crate) evidence: Vec<Evidence>,
    /// `None` for values from the cache, whose calls are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confidence: Option<Vec<Confidence>>,
}

impl Support {
    pub(crate) fn of(outcome: &Outcome<Value>) -> Self {
        Self { evidence: outcome.evidence().to_vec(), confidence: Some(outcome.confidence()) }
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The model's reasoning before the answer, where the target shows it; empty in streams, which have it in pieces.
    pub(crate) thinking: String,
    pub(crate) content: Content,
    pub(crate) finish: Finish,
    /// The tokens of the text, if the request asks for their log probabilities and the target has them.
    pub(crate) log_probs: Vec<LogProb>,
}

impl Choice {
    /// Returns an answer without reasoning.
    pub(crate) const fn new(content: Content, finish: Finish) -> Self {
        Self { thinking: String::new(), content, finish, log_probs: Vec::new() }
    }

    /// Returns a refusal. One without a reason has the finish of a filter, because clients of Chat Completions would see an empty answer.
    pub(crate) const fn refused(reason: String) -> Self {
        let finish = if reason.is_empty() { Finish::Filtered } else { Finish::Refused };
        Self::new(Content::Refusal(reason), finish)
    }

    /// Returns the tokens of the text with their log probabilities, as OpenAI and Ollama write them, without alternatives; `None` if they
    /// are not known.
    pub(crate) fn tokens(&self) -> Option<Vec<Value>> {
        let mut rest = self.content.text().as_bytes();
        let mut tokens = Vec::with_capacity(self.log_probs.len());
        for one in &self.log_probs {
            let (bytes, more) = rest.split_at_checked(one.length as usize)?;
            rest = more;
            let (token, log) = (String::from_utf8_lossy(bytes), f64::from(one.milli) / 1e3);
            tokens.push(json!({"token": token, "logprob": log, "bytes": bytes, "top_logprobs": []}));
        }
        (rest.is_empty() && !tokens.is_empty()).then_some(tokens)
    }
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Text(String),
    /// The model's reason to decline; may be empty.
    Refusal(String),
    /// Calls of tools, and the text before them, which may be empty.
    Calls {
        text: String,
        calls: Vec<Called>,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) name: String,
    /// A JSON document.
    pub(crate) arguments: String,
}

impl Content {
    /// Returns one call of a tool.
    pub(crate) fn call(name: String, arguments: String) -> Self {
        Self::Calls { text: String::new(), calls: vec![Called { name, arguments }] }
    }

    /// Returns the text; of a refusal, the reason.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Refusal(text) | Self::Calls { text, .. } => text,
        }
    }

    /// Returns the calls of tools.
    pub(crate) fn calls(&self) -> &[Called] {
        match self {
            Self::Calls { calls, .. } => calls,
            _ => &[],
        }
    }
}

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
    Refused,
    /// The text is cut: the model refused after its beginning, or a filter removed the rest.
    Filtered,
    Call,
}

impl Finish {
    /// Returns why a response of the Responses API is incomplete; `None` if it is complete.
    pub(crate) const fn incomplete(self) -> Option<&'static str> {
        match self {
            Self::Length => Some("max_output_tokens"),
            Self::Filtered => Some("content_filter"),
            Self::Stop | Self::Refused | Self::Call => None,
        }
    }
}

/// The facts about a response beside the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The identifier of the run.
    pub(crate) run: String,
    /// The model, as the client asked for it.
    pub(crate) model: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// The places of the request that nothing acts on.
    pub(crate) ignored: Vec<String>,
}

impl Reply {
    /// Returns the extension in the usage of every protocol.
    pub(crate) fn extension<'m>(&'m self, meta: &'m Meta) -> Extension<'m> {
        Extension {
            run: &meta.run,
            calls: self.calls,
            cost_usd: self.cost.micro_usd.map(|micro| micro as f64 / 1e6),
            cached: self.is_cached.then_some(true),
            not_stated: &self.not_stated,
            ignored: &meta.ignored,
            trust: self.trust.as_ref(),
            support: self.support.as_ref(),
        }
    }
}

/// The member `formwork` of the usage.
#[derive(Debug, Serialize)]
pub(crate) struct Extension<'m> {
    run: &'m str,
    calls: usize,
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<bool>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_stated: &'m [JsonPath],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ignored: &'m [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<&'m Trust>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    support: Option<&'m Support>,
}

impl Meta {
    /// Returns an identifier in the form of a protocol: `chatcmpl-…`, `msg_…`.
    pub(crate) fn id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.run.replace('-', ""))
    }

    /// Returns the identifier of a call, by the number of its answer and its own.
    pub(crate) fn call_id(&self, prefix: &str, answer: usize, nth: usize) -> String {
        let id = self.id(prefix);
        match (answer, nth) {
            (0, 0) => id,
            (answer, 0) => format!("{id}_{answer}"),
            (answer, nth) => format!("{id}_{answer}_{nth}"),
        }
    }
}
