//! The settings of a model, independent of the provider's API.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Sampling;

/// Settings of a model beside messages, schema and temperature. Those that the API does not have are warnings (`ignored_setting`).
///
/// ```
/// use formwork_core::{Effort, ModelSettings};
///
/// let settings: ModelSettings = serde_json::from_str(r#"{"effort": "low", "stop": ["END"], "prompt_cache": "1h"}"#)?;
/// assert_eq!(settings.effort, Some(Effort::Low));
/// let error = serde_json::from_str::<ModelSettings>(r#"{"top_p": 2}"#).unwrap_err();
/// assert!(error.to_string().starts_with("expected a threshold from 0 to 1, found 2"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The amount of reasoning: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max` (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The maximum number of reasoning tokens, from 1 to 1,000,000 (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "budget")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub reasoning_tokens: Option<u32>,
    /// The length of texts: `low`, `medium` or `high` (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    /// The processing tier: a vendor's name such as `auto`, `default`, `flex` or `priority` (default: the vendor's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<ServiceTier>,
    /// Texts at which the answer ends, from 1 to 16 (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "texts")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1)))]
    pub stop: Option<Vec<String>>,
    /// The seed of runs without one of their own, from 0 to 2^63 - 1 (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seed")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: Option<u64>,
    /// The nucleus threshold, from 0 to 1 (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "threshold")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// The number of most probable tokens to which sampling is limited, at least 1 (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "budget")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub top_k: Option<u32>,
    /// The frequency penalty, from -2 to 2 (default: the model's, usually 0).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "penalty")]
    #[schemars(range(min = -2, max = 2))]
    pub frequency_penalty: Option<f64>,
    /// The presence penalty, from -2 to 2 (default: the model's, usually 0).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "penalty")]
    #[schemars(range(min = -2, max = 2))]
    pub presence_penalty: Option<f64>,
    /// The number of alternatives with log probabilities, from 0 to 20 (default: none). Those of the answer count for the confidence.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "alternatives")]
    #[schemars(range(min = 0, max = 20))]
    pub top_logprobs: Option<u32>,
    /// Whether a model may call several tools at once (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tools: Option<bool>,
    /// The prompt cache: `on`, `off`, or the time for which the vendor keeps an entry: `5m`, `30m`, `1h` or `24h` (default: what
    /// pays).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<PromptCache>,
    /// Labels of the request at the vendor (default: none).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The identifier of the end user for the vendor's detection of abuse (default: none). Use no personal data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The amount of reasoning of a model, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the names are those of the vendors; descriptions would triple the JSON Schema"
)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

/// The length of the texts of a model, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the names are those of the vendors; descriptions would triple the JSON Schema"
)]
pub enum Verbosity {
    Low,
    Medium,
    High,
}

/// The processing tier, by the names of the vendors: `Flex` is cheaper and slower, `Priority` and `Fast` are faster and dearer, `Scale`
/// and `Reserved` are paid capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the names are those of the vendors; descriptions would triple the JSON Schema"
)]
pub enum ServiceTier {
    Auto,
    Default,
    Flex,
    Priority,
    Scale,
    Fast,
    Standard,
    StandardOnly,
    Reserved,
}

/// The use of a vendor's prompt cache: on, off, or on for the time for which the vendor keeps an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the names are those of the vendors; descriptions would triple the JSON Schema"
)]
pub enum PromptCache {
    On,
    Off,
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "30m")]
    HalfHour,
    #[serde(rename = "1h")]
    Hour,
    #[serde(rename = "24h")]
    Day,
}

impl ModelSettings {
    /// Returns these settings, with the values of `other` for absent ones.
    ///
    /// ```
    /// use formwork_core::ModelSettings;
    ///
    /// let own = ModelSettings { top_k: Some(5), ..ModelSettings::default() };
    /// let all = ModelSettings { top_k: Some(9), seed: Some(7), ..ModelSettings::default() };
    /// assert_eq!(own.or(all), ModelSettings { top_k: Some(5), seed: Some(7), ..ModelSettings::default() });
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut metadata = other.metadata;
        metadata.extend(self.metadata);
        Self {
            effort: self.effort.or(other.effort),
            reasoning_tokens: self.reasoning_tokens.or(other.reasoning_tokens),
            verbosity: self.verbosity.or(other.verbosity),
            service_tier: self.service_tier.or(other.service_tier),
            stop: self.stop.or(other.stop),
            seed: self.seed.or(other.seed),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            top_logprobs: self.top_logprobs.or(other.top_logprobs),
            parallel_tools: self.parallel_tools.or(other.parallel_tools),
            prompt_cache: self.prompt_cache.or(other.prompt_cache),
            metadata,
            user: self.user.or(other.user),
        }
    }

    /// Returns the parameters of sampling, which are the defaults of the calls to a target.
    pub const fn sampling(&self) -> Sampling {
        let Self { seed, top_p, frequency_penalty, .. } = *self;
        Sampling { temperature: None, top_p, seed, frequency_penalty }
    }
}

/// Deserializes a number of a range; `expected` describes it in the error.
///
/// # Errors
/// An error of the deserializer if the value is of another type or outside of the range.
pub fn within<'de, D: Deserializer<'de>, N: Deserialize<'de> + PartialOrd + fmt::Display>(
    deserializer: D,
    range: RangeInclusive<N>,
    expected: &str,
) -> Result<Option<N>, D::Error> {
    let number = N::deserialize(deserializer)?;
    match range.contains(&number) {
        true => Ok(Some(number)),
        false => Err(D::Error::custom(format!("expected {expected}, found {number}"))),
    }
}

fn budget<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1..=1_000_000, "a number of tokens from 1 to 1000000")
}

fn alternatives<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 0..=20, "a number of tokens from 0 to 20")
}

fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    within(deserializer, 0..=u64::MAX >> 1, "a seed from 0 to 9223372036854775807")
}

fn threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, 0.0..=1.0, "a threshold from 0 to 1")
}

fn penalty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, -2.0..=2.0, "a penalty from -2 to 2")
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    if (1..=16).contains(&texts.len()) && texts.iter().all(|text| !text.is_empty()) {
        return Ok(Some(texts));
    }
    Err(D::Error::custom("expected a list of 1 to 16 texts that are not empty, such as [\"END\"]"))
}
