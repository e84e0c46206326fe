use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{
    Calibrations, Cost, Error, ErrorKind, ModelSettings, Policy, Retries, Temperature, within,
};
use formwork_extract::{Budget, ExtractorBuilder};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use super::common::{delays, is_default, retries, retry_settings, seconds};

/// The search for the places of the values of an answer in its input.
///
/// ```
/// use formwork::config::{Config, Places};
///
/// let text = "[defaults]\nevidence = \"quote\"\n[providers.a]\nkind = \"ollama\"\nmodel = \"m\"";
/// assert_eq!(Config::from_toml(text)?.defaults().evidence, Some(Places::Quote));
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Places {
    /// The values are searched in the text.
    Find,
    /// A model is asked, in one more call, for verbatim quotes of the values that were not found.
    Quote,
}

/// The default settings of extractions, in place of those of each application and command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The maximum number of attempts over all targets (default: that of the application).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// The maximum number of attempts of one target (default: an equal share, rounded up).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = 100))]
    pub attempts_per_target: Option<u32>,
    /// The temperature of the first attempt (default: that of the application). Later attempts never have a higher
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "temperature")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The maximum number of tokens of an answer, at least 1 (default: that of the target).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "tokens")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// The time limit of each input in seconds, including all attempts and delays (default: that of the application).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    #[schemars(range(min = 0.001, max = 86400))]
    pub timeout_seconds: Option<f64>,
    /// The maximum cost of all calls of one command, or of one [`Setup`](crate::Setup), in US dollars, from 0 to 1,000,000 (default: no
    /// limit). Every provider needs a price.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "dollars")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_cost_usd: Option<f64>,
    /// The maximum number of retries of a failed call, from 0 to 100; 0 turns retries off (default: 3). The setting of a provider has
    /// precedence.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "retries")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// The delays before the retries of a failed call in seconds, from 0 to 86400; the last one repeats (default: 2, 4 and 8).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "delays")]
    #[schemars(inner(range(min = 0, max = 86400)))]
    pub retry_delays: Option<Vec<f64>>,
    /// The name of a retry policy that this program registers (default: the standard one). With it,
    /// `max_attempts`, `attempts_per_target` and `temperature` have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<String>,
    /// The file of `eval --calibrate` (default: none), relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<PathBuf>,
    /// The calibrations of that file, once they are [read](Self::with_calibrations).
    #[serde(skip)]
    pub calibrations: Option<Arc<Calibrations>>,
    /// `find` or `quote`, as `extract --evidence` (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub evidence: Option<Places>,
    /// The settings of all models, such as `{ effort = "low" }` (default: none). Those of a provider have precedence.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: ModelSettings,
}

impl Defaults {
    /// Returns these settings, with the values of `other` for absent fields.
    ///
    /// ```
    /// use formwork::config::{Config, Defaults};
    ///
    /// let text = "[defaults]\nmax_attempts = 2\n[providers.a]\nkind = \"ollama\"\nmodel = \"m\"";
    /// let flags = Defaults { timeout_seconds: Some(30.0), ..Defaults::default() };
    /// let defaults = flags.or(Config::from_toml(text)?.defaults());
    /// assert_eq!((defaults.max_attempts, defaults.timeout().unwrap().as_secs()), (Some(2), 30));
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_attempts: self.max_attempts.or(other.max_attempts),
            attempts_per_target: self.attempts_per_target.or(other.attempts_per_target),
            temperature: self.temperature.or(other.temperature),
            max_tokens: self.max_tokens.or(other.max_tokens),
            timeout_seconds: self.timeout_seconds.or(other.timeout_seconds),
            max_cost_usd: self.max_cost_usd.or(other.max_cost_usd),
            retries: self.retries.or(other.retries),
            retry_delays: self.retry_delays.or(other.retry_delays),
            retry_policy: self.retry_policy.or(other.retry_policy),
            calibration: self.calibration.or(other.calibration),
            calibrations: self.calibrations.or(other.calibrations),
            evidence: self.evidence.or(other.evidence),
            settings: self.settings.or(other.settings),
        }
    }

    /// Reads the file of `calibration`, if one is named: extractors to which these settings are [applied](Self::apply) then have its
    /// calibrations. The configuration that answers has the `name` of `formwork eval`, which is `default` for the targets of the
    /// configuration; without one, the target that answers counts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be read, or is no file of `formwork eval --calibrate`.
    ///
    /// ```
    /// use formwork::config::Defaults;
    ///
    /// let defaults = Defaults { calibration: Some("/no/such/file.json".into()), ..Defaults::default() };
    /// assert!(defaults.with_calibrations(Some("default")).is_err());
    /// assert_eq!(Defaults::default().with_calibrations(None)?.calibrations, None);
    /// # Ok::<(), formwork::Error>(())
    /// ```
    pub fn with_calibrations(self, name: Option<&str>) -> Result<Self, Error> {
        let Some(file) = &self.calibration else { return Ok(self) };
        let shown = file.display();
        let failed = |message| Error::new(ErrorKind::Config, message);
        let bytes = fs::read(file).map_err(|error| failed(format!("cannot read {shown}: {error}")))?;
        let read = serde_json::from_slice::<Calibrations>(&bytes)
            .map_err(|error| failed(format!("{shown} is no file of `formwork eval --calibrate`: {error}")))?;
        let read = if let Some(name) = name { read.named(name) } else { read };
        Ok(Self { calibrations: Some(Arc::new(read)), ..self })
    }

    /// Returns the time limit of each input, if there is one.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Returns the retry settings, which a [`Backend`](formwork_extract::Backend::with_retries) takes.
    ///
    /// ```
    /// use formwork::config::Config;
    ///
    /// let text = "[defaults]\nretries = 0\n[providers.a]\nkind = \"ollama\"\nmodel = \"m\"";
    /// let retries = Config::from_toml(text)?.defaults().retries();
    /// assert_eq!((retries.retries, retries.delays), (Some(0), None));
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    pub fn retries(&self) -> Retries {
        retry_settings(self.retries, self.retry_delays.as_ref())
    }

    /// Returns a new budget with the limit on money, if there is one.
    pub fn budget(&self) -> Option<Budget> {
        let micro_usd = self.max_cost_usd.map(|dollars| (dollars.clamp(0.0, MAX_COST) * 1e6).round() as u64);
        micro_usd.map(|_| Budget::new(Cost { tokens: u64::MAX, micro_usd }))
    }

    /// Returns a policy with these maximum numbers of attempts, as far as they are set.
    pub fn limit(&self, mut policy: Policy) -> Policy {
        policy.attempts = self.max_attempts.unwrap_or(policy.attempts).max(1);
        let share = self.attempts_per_target.or(policy.attempts_per_target);
        policy.attempts_per_target = share.map(|attempts| attempts.max(1));
        policy
    }

    /// Returns the policy with the maximum numbers of attempts and the temperature; `None` if none of them is set. The second attempt has
    /// two thirds of the first temperature, later attempts have one third.
    pub fn policy(&self) -> Option<Policy> {
        let Self { max_attempts, attempts_per_target, temperature, .. } = *self;
        max_attempts.or(attempts_per_target).map(|_| ()).or(temperature.map(|_| ()))?;
        let policy = self.limit(Policy::default());
        Some(match temperature {
            Some(first) => policy.with_temperature(falling(first)),
            None => policy,
        })
    }

    /// Applies these settings to the builder of an extractor. The second attempt has two thirds of the first temperature, later
    /// attempts have one third.
    pub fn apply<T: DeserializeOwned + Send + 'static>(
        &self,
        mut builder: ExtractorBuilder<T>,
    ) -> ExtractorBuilder<T> {
        if let Some(policy) = self.policy() {
            builder = builder.with_policy(policy);
        }
        if let Some(tokens) = self.max_tokens {
            builder = builder.with_max_tokens(tokens);
        }
        if let Some(calibrations) = self.calibrations.clone() {
            builder = builder.with_calibrations(calibrations);
        }
        match self.timeout() {
            Some(deadline) => builder.with_deadline(deadline),
            None => builder,
        }
    }
}

/// Returns three decreasing temperatures, rounded to be readable in logs.
fn falling(first: f64) -> Temperature {
    let steps = [3.0, 2.0, 1.0].map(|thirds| (first * thirds / 3.0 * 1000.0).round() / 1000.0);
    Temperature::Steps(steps.to_vec())
}

pub(super) fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1..=100, "a number of attempts from 1 to 100")
}

fn temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, 0.0..=2.0, "a temperature from 0 to 2")
}

/// The maximum of `max_cost_usd`, in US dollars.
const MAX_COST: f64 = 1e6;

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    within(deserializer, 0.0..=MAX_COST, "US dollars from 0 to 1000000")
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    within(deserializer, 1..=u32::MAX, "a number of tokens from 1")
}
