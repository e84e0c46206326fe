//! Arguments of several commands, and the parsers of their values.
//!
//! Their structures have no documentation comments: clap would show them in place of the description of the command.

use std::ops::RangeInclusive;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use formwork::config::Defaults;
use serde::de::DeserializeOwned;
use serde_json::Value;

// The sampling of the answers of a model.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Sampling {
    /// Sampling temperature from 0 to 2; 0 selects the most likely token [default: that of the model]
    #[arg(long, short, value_parser = temperature)]
    pub(crate) temperature: Option<f64>,
    /// Sampling seed: the same seed repeats the same answer, if the provider supports it [default: none]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Maximum number of tokens of an answer, doubled after one that it cut off [default: none for hosted models; the rest of the context, up to 8192, for
    /// self-hosted servers; 512 for tiny models]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
}

impl Sampling {
    /// Returns the settings of these arguments, of the maximum number of attempts and of the time limit in seconds.
    pub(crate) fn defaults(&self, max_attempts: Option<u32>, timeout_seconds: Option<f64>) -> Defaults {
        let Self { temperature, max_tokens, .. } = *self;
        Defaults { max_attempts, temperature, max_tokens, timeout_seconds, ..Defaults::default() }
    }
}

/// Returns the settings that a command uses where neither its arguments nor the configuration has one.
pub(crate) fn usual(attempts: u32, temperature: Option<f64>, seconds: f64) -> Defaults {
    let (max_attempts, timeout_seconds) = (Some(attempts), Some(seconds));
    Defaults { max_attempts, temperature, timeout_seconds, ..Defaults::default() }
}

/// Parses a sampling temperature.
pub(crate) fn temperature(text: &str) -> Result<f64, String> {
    within(text, 0.0..=2.0, "expected a number from 0 to 2")
}

/// Parses a time limit in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    within(text, 0.001..=86_400.0, "expected seconds, from 0.001 to 86400")
}

/// Parses a number in a range. `expected` is the message of the error.
pub(crate) fn within(text: &str, range: RangeInclusive<f64>, expected: &str) -> Result<f64, String> {
    text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| expected.to_owned())
}

/// Returns a parser of a value that has one of these names, in JSON as well.
pub(crate) fn one_of<T, const COUNT: usize>(names: [&'static str; COUNT]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(Value::String(name)))
}

/// Returns a builder after a setting, if there is a value for it.
pub(crate) fn set<B, T>(builder: B, value: Option<T>, with: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => with(builder, value),
        None => builder,
    }
}
