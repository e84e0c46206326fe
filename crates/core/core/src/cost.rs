use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The price of a million tokens: millionths of a US dollar in memory, US dollars in files (`0.15`).
///
/// ```
/// use formwork_core::{Price, Usage};
///
/// let price: Price = serde_json::from_str(r#"{"input": 0.15, "output": 0.6}"#)?;
/// assert_eq!(price, Price { input: 150_000, output: 600_000 });
/// assert_eq!(price.of(Usage::new(1_000, 200)).micro_usd, Some(270));
/// assert_eq!(serde_json::to_string(&price)?, r#"{"input":0.15,"output":0.6}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of a million tokens of prompt: in millionths of a US dollar in memory, in US dollars in files, from 0 to
    /// 1,000,000.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub input: u64,
    /// The price of a million tokens of answer, in the same units.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub output: u64,
}

/// Reads and writes millionths of a dollar as dollars.
mod dollars {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The maximum price, in dollars: a greater number is a mistake in the unit.
    const MAX: f64 = 1e6;

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
    /// Returns the cost of the tokens, rounded up to the millionth of a dollar.
    pub fn of(self, usage: Usage) -> Cost {
        let micro = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let millionths = micro(usage.input_tokens, self.input) + micro(usage.output_tokens, self.output);
        Cost {
            micro_usd: Some(u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)),
            ..usage.unpriced()
        }
    }
}

impl Usage {
    /// Returns the cost of the tokens at an unknown price.
    pub const fn unpriced(self) -> Cost {
        Cost { tokens: self.input_tokens.saturating_add(self.output_tokens), micro_usd: None }
    }
}
