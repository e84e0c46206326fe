//! Deserializes counts, with messages about common mistakes.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected, Visitor};

use super::scalar::scalar;

/// The maximum count: the largest integer that every JSON parser represents exactly.
const MAX: u64 = 1 << 53;

/// Deserializes a count, for `deserialize_with`. `12.0` counts as an integer, as in JSON Schema.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Count::deserialize(deserializer).map(|count| count.0)
}

/// Deserializes counts by name, for `deserialize_with`; a duplicate name is an error.
pub(super) fn counts<'de, D, K>(deserializer: D) -> Result<BTreeMap<K, u64>, D::Error>
where
    D: Deserializer<'de>,
    K: FromStr<Err: Display> + Ord,
{
    struct Counts<K>(PhantomData<K>);
    impl<'de, K: FromStr<Err: Display> + Ord> Visitor<'de> for Counts<K> {
        type Value = BTreeMap<K, u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of counts by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut counts = BTreeMap::new();
            while let Some(Name(name)) = map.next_key()? {
                let Count(count) = map.next_value()?;
                if counts.insert(name, count).is_some() {
                    return Err(de::Error::custom("the same name stands here twice: add its counts up"));
                }
            }
            Ok(counts)
        }
    }
    deserializer.deserialize_map(Counts(PhantomData))
}

/// A key that is deserialized as a string, so that `serde_path_to_error` knows the path of an error.
struct Name<K>(K);

impl<'de, K: FromStr<Err: Display>> Deserialize<'de> for Name<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}

struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a count: a whole number from 0", |found| {
            let number = match found {
                Unexpected::Unsigned(number) if number > MAX => {
                    return Some(Err(format!("{number} is more than any count (2^53)")));
                }
                Unexpected::Unsigned(number) => return Some(Ok(Self(number))),
                Unexpected::Signed(number) => number as f64,
                Unexpected::Float(number) => number,
                _ => return None,
            };
            let what = match number {
                ..0.0 => "negative",
                _ if number.fract() != 0.0 => "no whole number",
                _ if number > MAX as f64 => "more than any count (2^53)",
                _ => return Some(Ok(Self(number as u64))),
            };
            Some(Err(format!("{number} is {what}: a count is a whole number from 0")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<u64, String> {
        serde_json::from_str::<Count>(json).map(|count| count.0).map_err(|error| error.to_string())
    }

    #[test]
    fn whole_numbers_are_counts_however_they_are_written() {
        for (json, count) in [("0", 0), ("12", 12), ("12.0", 12), ("1.2e1", 12), ("-0.0", 0)] {
            assert_eq!(read(json), Ok(count), "{json}");
        }
    }

    #[test]
    fn an_invalid_count_is_reported_with_the_reason() {
        for (json, words) in [
            ("-5", "-5 is negative"),
            ("-5.5", "negative"),
            ("5.5", "no whole number"),
            ("1e300", "2^53"),
            ("18446744073709551615", "2^53"),
            ("\"12\"", "expected a count"),
            ("null", "expected a count"),
            ("[1]", "expected a count"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(words), "{json}: {error}");
        }
    }
}
