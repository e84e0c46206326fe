use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sampling parameters of a call. The provider chooses those that are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[must_use]
pub struct Sampling {
    /// The temperature, from 0: 0 selects the most probable token, 1 samples from the model's own distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The nucleus threshold, from 0 to 1: sampling is limited to the most probable tokens with this cumulative
    /// probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The seed: the same seed requests the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The frequency penalty, from -2 to 2: a token gets less probable each time it is written. It ends lists and texts that
    /// repeat themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl Sampling {
    crate::setters! {
        /// Sets the temperature, from 0 (default: the provider's).
        ///
        /// ```
        /// use formwork_core::Sampling;
        ///
        /// let sampling = Sampling::default().with_temperature(0.2).with_seed(7);
        /// assert_eq!((sampling.temperature, sampling.top_p, sampling.seed), (Some(0.2), None, Some(7)));
        /// ```
        pub const fn with_temperature(Some(temperature): f64);
        /// Sets the nucleus threshold, from 0 to 1 (default: the provider's).
        pub const fn with_top_p(Some(top_p): f64);
        /// Sets the seed (default: none, each answer may differ).
        pub const fn with_seed(Some(seed): u64);
        /// Sets the frequency penalty, from -2 to 2 (default: the provider's, usually 0).
        pub const fn with_frequency_penalty(Some(frequency_penalty): f64);
    }
}
