use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Call;
use crate::call::written;

/// The tokens of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[must_use]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Tokens of the prompt that were read from the provider's cache; part of `input_tokens`.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens of the prompt that were written to the provider's cache; part of `input_tokens`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written_tokens: u64,
    /// Tokens that were written to the cache for an hour or longer; part of `written_tokens`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written_hour_tokens: u64,
    /// The cost in millionths of a US dollar that the server reported, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// Tokens of reasoning; part of `output_tokens`.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// Whether the numbers are estimated instead of counted by the provider, as for a call that was cut off.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Creates the usage of a call from the provider's counts, without cached and reasoning tokens.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cached_tokens: 0,
            written_tokens: 0,
            written_hour_tokens: 0,
            micro_usd: None,
            reasoning_tokens: 0,
            estimated: false,
        }
    }

    crate::setters! {
        /// Sets the number of prompt tokens that were read from the provider's cache (default: 0).
        pub const fn with_cached(cached_tokens: u64);
        /// Sets the number of reasoning tokens (default: 0).
        pub const fn with_reasoning(reasoning_tokens: u64);
        /// Sets whether the numbers are estimated (default: `false`).
        pub const fn with_estimated(estimated: bool);
    }

    /// Sets the number of prompt tokens that were written to the provider's cache, for minutes and for an hour (default: 0).
    pub const fn with_written(mut self, minutes: u64, hour: u64) -> Self {
        self.written_tokens = minutes.saturating_add(hour);
        self.written_hour_tokens = hour;
        self
    }

    /// Sets the cost that the server reported, in US dollars (default: none). A negative or infinite cost is ignored.
    pub fn with_dollars(mut self, dollars: Option<f64>) -> Self {
        let dollars = dollars.filter(|dollars| (0.0..1e9).contains(dollars));
        self.micro_usd = dollars.map(|dollars| (dollars * 1e6).ceil() as u64);
        self
    }

    const fn has_no_tokens(&self) -> bool {
        self.input_tokens == 0 && self.output_tokens == 0
    }

    /// Returns the sum of both; it is estimated if one of them is.
    ///
    /// ```
    /// use formwork_core::Usage;
    ///
    /// let sum = Usage::new(900, 40).plus(Usage::new(100, 60).with_cached(80));
    /// assert_eq!(sum, Usage::new(1_000, 100).with_cached(80));
    /// let priced = Usage::new(10, 2).with_dollars(Some(0.25));
    /// assert_eq!(Usage::default().plus(priced), priced);
    /// assert_eq!(priced.plus(Usage::new(10, 2)).micro_usd, None);
    /// ```
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            written_tokens: self.written_tokens.saturating_add(other.written_tokens),
            written_hour_tokens: self.written_hour_tokens.saturating_add(other.written_hour_tokens),
            // The sum of a reported cost and an unknown one is unknown, but a call without tokens costs nothing.
            micro_usd: match (self.micro_usd, other.micro_usd) {
                (Some(one), Some(two)) => Some(one.saturating_add(two)),
                (cost, None) if other.has_no_tokens() => cost,
                (None, cost) if self.has_no_tokens() => cost,
                _ => None,
            },
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            estimated: self.estimated || other.estimated,
        }
    }

    /// Returns this usage, or an estimate where the provider counted no token for an answer of this length in bytes.
    ///
    /// ```
    /// use formwork_core::{Call, Enforcement, Lowered, Message, Usage};
    ///
    /// let call = Call::new([Message::user("Maria is 34.")], Lowered::new(Enforcement::None, None));
    /// let usage = Usage::default().or_estimate(&call, 11);
    /// assert_eq!((usage.input_tokens, usage.output_tokens, usage.estimated), (3, 3, true));
    /// assert_eq!(Usage::new(5, 4).or_estimate(&call, 11), Usage::new(5, 4));
    /// ```
    pub fn or_estimate(self, call: &Call, answered: usize) -> Self {
        if answered == 0 || self.output_tokens > 0 {
            return self;
        }
        let estimate = Self::estimate(call, answered);
        let input_tokens = if self.input_tokens > 0 { self.input_tokens } else { estimate.input_tokens };
        Self { input_tokens, output_tokens: estimate.output_tokens, estimated: true, ..self }
    }

    /// Returns the usage of a call that did not end: what the server has reported so far, and an estimate of what it has not.
    ///
    /// ```
    /// use formwork_core::Usage;
    ///
    /// let estimate = Usage::new(3, 20).with_estimated(true);
    /// assert_eq!(Usage::default().or_more(estimate), estimate);
    /// assert_eq!(Usage::new(50_000, 1).or_more(estimate), Usage::new(50_000, 20).with_estimated(true));
    /// ```
    pub fn or_more(self, estimate: Self) -> Self {
        let input_tokens = if self.input_tokens > 0 { self.input_tokens } else { estimate.input_tokens };
        let output_tokens = self.output_tokens.max(estimate.output_tokens);
        // A reported cost is that of the reported tokens.
        let micro_usd = self.micro_usd.filter(|_| output_tokens == self.output_tokens);
        Self { input_tokens, output_tokens, micro_usd, estimated: true, ..self }
    }

    /// Estimates the usage of a call from lengths, at four bytes per token: its messages, and the schema and the tools that it
    /// sends. `answered` is the length of the answer in bytes.
    pub fn estimate(call: &Call, answered: usize) -> Self {
        let texts = call.messages.iter().flat_map(|message| message.texts()).chain(call.prefill.as_deref());
        let schema = call.lowered.schema_json().map_or("", RawValue::get);
        let prompt_bytes = texts.chain([schema]).map(str::len).sum::<usize>()
            + call.tools.iter().map(written).sum::<usize>();
        Self {
            input_tokens: prompt_bytes.div_ceil(4) as u64,
            output_tokens: answered.div_ceil(4) as u64,
            estimated: true,
            ..Self::default()
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
