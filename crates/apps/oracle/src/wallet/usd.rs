use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Unexpected};
use serde::{Serialize, Serializer};

use super::scalar::scalar;

/// An amount in US dollars, in whole cents, so that sums are exact in any order.
///
/// It is parsed from a JSON number or a decimal text, and rounded to cents. Negative and infinite amounts, and amounts
/// from 10^15, are rejected.
///
/// ```
/// use formwork_oracle::wallet::Usd;
///
/// assert_eq!("12.345".parse(), Ok(Usd::from_cents(1235)));
/// assert_eq!(Usd::from_cents(123_456_789).to_string(), "1234567.89");
/// assert!("NaN".parse::<Usd>().is_err());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Usd(u64);

/// 10^15 US dollars, more than exists.
const END: f64 = 1e15;

impl Usd {
    /// Creates an amount of cents.
    pub const fn from_cents(cents: u64) -> Self {
        Self(cents)
    }

    /// Returns the amount in cents.
    pub const fn cents(self) -> u64 {
        self.0
    }

    /// Returns the sum, at most the largest amount.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 100.0
    }

    pub(super) fn from_dollars(dollars: f64) -> Result<Self, String> {
        if dollars.is_nan() || dollars.is_infinite() {
            return Err(format!("{dollars} is no amount: give a number of US dollars, or leave it out"));
        }
        if dollars < 0.0 {
            return Err(format!("{dollars} is negative: an amount is 0 or more, whichever way it went"));
        }
        if dollars >= END {
            return Err(format!("{dollars} is more than there is: give US dollars, not the smallest unit"));
        }
        // The amount is below 10^17 cents, so it fits.
        Ok(Self((dollars * 100.0).round() as u64))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl FromStr for Usd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let dollars = text.parse().map_err(|_| {
            let text = super::text::quoted(text, 40);
            format!("{text} is no amount: write US dollars as in 1234.56, without signs or separators")
        })?;
        Self::from_dollars(dollars)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(100) {
            serializer.serialize_u64(self.0 / 100)
        } else {
            serializer.serialize_f64(self.dollars())
        }
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "an amount: a number of US dollars from 0", |found| {
            Some(Self::from_dollars(match found {
                Unexpected::Float(dollars) => dollars,
                Unexpected::Unsigned(dollars) => dollars as f64,
                Unexpected::Signed(dollars) => dollars as f64,
                _ => return None,
            }))
        })
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An amount in US dollars, rounded to cents.",
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1_000_000_000_000_000u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_invalid_amount_is_reported_with_the_reason() {
        for (text, words) in [
            ("NaN", "no amount"),
            ("-inf", "no amount"),
            ("-0.01", "negative"),
            ("1e15", "smallest unit"),
            ("$5", "without signs"),
            ("1,000", "without signs"),
            ("", "without signs"),
        ] {
            let error = text.parse::<Usd>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!("-0".parse(), Ok(Usd::default()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(cents in 0..100_000_000_000_000_u64) {
            let amount = Usd::from_cents(cents);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), amount);
        }
    }
}
