use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Usage;

/// The cost of calls, or a limit on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Tokens of prompt and answer together. As a limit, `u64::MAX` means no limit.
    pub tokens: u64,
    /// Money in millionths of a US dollar. `None` means that the price of a call is not known; as a limit, that money is
    /// not limited.
    pub micro_usd: Option<u64>,
}

/// No tokens and no money.
impl Default for Cost {
    fn default() -> Self {
        Self { tokens: 0, micro_usd: Some(0) }
    }
}

impl Cost {
    /// Returns the sum of both. The sum of an unknown and any amount of money is unknown.
    ///
    /// ```
    /// use formwork_core::Cost;
    ///
    /// let (first, second) = (Cost { tokens: 900, micro_usd: Some(135) }, Cost { tokens: 100, micro_usd: None });
    /// assert_eq!(first.plus(second), Cost { tokens: 1_000, micro_usd: None });
    /// assert!(first.fits(Cost { tokens: 1_000, micro_usd: Some(200) }));
    /// ```
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let micro_usd = match (self.micro_usd, other.micro_usd) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            _ => None,
        };
        Self { tokens: self.tokens.saturating_add(other.tokens), micro_usd }
    }

    /// Returns the rest of this limit after a cost. No limit stays no limit; an unknown cost leaves nothing.
    #[must_use]
    pub const fn minus(self, spent: Self) -> Self {
        let micro_usd = match (self.micro_usd, spent.micro_usd) {
            (Some(limit), Some(spent)) => Some(limit.saturating_sub(spent)),
            (Some(_), None) => Some(0),
            (None, _) => None,
        };
        let tokens =
            if self.tokens == u64::MAX { u64::MAX } else { self.tokens.saturating_sub(spent.tokens) };
        Self { tokens, micro_usd }
    }

    /// Whether it stays within a limit in both respects. What is unknown stays within no limit of money.
    pub const fn fits(self, limit: Self) -> bool {
        let money = match (self.micro_usd, limit.micro_usd) {
            (_, None) => true,
            (Some(cost), Some(limit)) => cost <= limit,
            (None, Some(_)) => false,
        };
        self.tokens <= limit.tokens && money
    }
}

/// The price of a million tokens: millionths of a US dollar in memory, US dollars in files (`0.15`), from 0 to 1,000,000.
///
/// ```
/// use formwork_core::{Price, Usage};
///
/// let price: Price = serde_json::from_str(r#"{"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}"#)?;
/// // 1,000 tokens of prompt, 600 of them read from the cache and 300 written to it.
/// let usage = Usage::new(1_000, 200).with_cached(600).with_written(300, 0);
/// assert_eq!(price.of(usage).micro_usd, Some(100 * 3 + 180 + 1_125 + 200 * 15));
/// assert_eq!(serde_json::to_string(&Price::new(150_000, 600_000))?, r#"{"input":0.15,"output":0.6}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// The price of the prompt.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub input: u64,
    /// The price of the answer, reasoning included.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub output: u64,
    /// The price of tokens of the prompt that are read from the cache (default: that of the prompt).
    #[serde(default, with = "dollars::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1_000_000))]
    pub cache_read: Option<u64>,
    /// The price of tokens of the prompt that are written to the cache for a few minutes (default: that of the prompt).
    #[serde(default, with = "dollars::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1_000_000))]
    pub cache_write: Option<u64>,
    /// The price of tokens of the prompt that are written to the cache for an hour (default: that of `cache_write`).
    #[serde(default, with = "dollars::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1_000_000))]
    pub cache_write_hour: Option<u64>,
    /// The prices of a call with a long prompt (default: the same).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
    /// The part of these prices that a batch API takes, in percent from 0 to 100 (default: 50).
    #[serde(default, deserialize_with = "percent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub batch_percent: Option<u8>,
}

/// The prices of a whole call whose prompt has more tokens than a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LongPrice {
    /// The number of tokens of the prompt above which these prices hold.
    pub above: u64,
    /// The price of the prompt.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub input: u64,
    /// The price of the answer.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub output: u64,
    /// The price of tokens that are read from the cache (default: in proportion to that of the prompt).
    #[serde(default, with = "dollars::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1_000_000))]
    pub cache_read: Option<u64>,
}

fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    crate::within(deserializer, 0..=100, "a percentage from 0 to 100")
}

/// Reads and writes millionths of a dollar as dollars.
mod dollars {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The maximum price, in dollars: a greater number is a mistake in the unit.
    const MAX: f64 = 1e6;

    /// The same for a price that may be missing.
    pub(super) mod optional {
        use serde::{Deserializer, Serializer};

        #[expect(clippy::ref_option, reason = "serde's signature")]
        pub(crate) fn serialize<S: Serializer>(
            micro: &Option<u64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match micro {
                Some(micro) => super::serialize(micro, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<u64>, D::Error> {
            super::deserialize(deserializer).map(Some)
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(micro: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(*micro as f64 / 1e6)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if (0.0..=MAX).contains(&dollars) {
            return Ok((dollars * 1e6).round() as u64);
        }
        Err(D::Error::custom(format!(
            "expected US dollars for a million tokens from 0 to {MAX}, such as 0.15, found {dollars}"
        )))
    }
}

impl Price {
    /// Creates a price from that of the prompt and that of the answer, in millionths of a US dollar for a million tokens.
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cache_read: None,
            cache_write: None,
            cache_write_hour: None,
            long: None,
            batch_percent: None,
        }
    }

    /// Returns the cost of the tokens, rounded up to the millionth of a dollar. The cost that the server reports has precedence.
    pub fn of(self, usage: Usage) -> Cost {
        let cost = usage.unpriced();
        if cost.micro_usd.is_some() {
            return cost;
        }
        let price = self.for_prompt(usage.input_tokens);
        let micro = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.written_tokens.min(usage.input_tokens - cached);
        let for_hour = usage.written_hour_tokens.min(written);
        let write = price.cache_write.unwrap_or(price.input);
        let millionths = micro(usage.input_tokens - cached - written, price.input)
            + micro(cached, price.cache_read.unwrap_or(price.input))
            + micro(written - for_hour, write)
            + micro(for_hour, price.cache_write_hour.unwrap_or(write))
            + micro(usage.output_tokens, price.output);
        let micro_usd = Some(u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX));
        Cost { micro_usd, ..cost }
    }

    /// Returns the highest cost of a call with these tokens, whatever is read from the cache or written to it.
    pub fn at_most(self, usage: Usage) -> Cost {
        let price = self.for_prompt(usage.input_tokens);
        let dearest = price.cache_write.max(price.cache_write_hour).unwrap_or_default().max(price.input);
        Self::new(dearest, price.output).of(usage)
    }

    /// Returns the price in a batch API.
    ///
    /// ```
    /// use formwork_core::Price;
    ///
    /// assert_eq!(Price::new(150_000, 600_001).in_batch(), Price::new(75_000, 300_001));
    /// ```
    #[must_use]
    pub fn in_batch(self) -> Self {
        let part = u64::from(self.batch_percent.unwrap_or(50));
        self.scaled(|micro| micro.saturating_mul(part).div_ceil(100))
    }

    fn scaled(self, scale: impl Fn(u64) -> u64) -> Self {
        Self {
            input: scale(self.input),
            output: scale(self.output),
            cache_read: self.cache_read.map(&scale),
            cache_write: self.cache_write.map(&scale),
            cache_write_hour: self.cache_write_hour.map(&scale),
            long: self.long.map(|long| LongPrice {
                input: scale(long.input),
                output: scale(long.output),
                cache_read: long.cache_read.map(&scale),
                ..long
            }),
            ..self
        }
    }

    /// Returns the prices for a prompt of this length.
    fn for_prompt(self, tokens: u64) -> Self {
        let Some(long) = self.long.filter(|long| tokens > long.above) else { return self };
        let usual = self.input.max(1);
        let all = self.scaled(|micro| {
            let scaled = u128::from(micro) * u128::from(long.input) / u128::from(usual);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        });
        Self { input: long.input, output: long.output, cache_read: long.cache_read.or(all.cache_read), ..all }
    }
}

impl Usage {
    /// Returns the cost of the tokens at an unknown price: the cost that the server reports, if it does.
    pub const fn unpriced(self) -> Cost {
        Cost { tokens: self.input_tokens.saturating_add(self.output_tokens), micro_usd: self.micro_usd }
    }
}
