//! The text form of ids: `run_` and 13 characters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, RecordId};

/// Crockford's alphabet: digits and letters that people do not mistake for each other.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The characters that 63 bits take.
const LENGTH: usize = 13;

/// The start of the text.
const PREFIX: &str = "run_";

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"run_0000000000000";
        let mut rest = self.0.unsigned_abs();
        for place in text[PREFIX.len()..].iter_mut().rev() {
            *place = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl FromStr for RecordId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::NotAnId(text.chars().take(40).collect());
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == LENGTH).ok_or_else(wrong)?;
        let mut id = 0_u128;
        for byte in digits.bytes() {
            let place =
                ALPHABET.iter().position(|&known| known == byte.to_ascii_lowercase()).ok_or_else(wrong)?;
            id = (id << 5) | place as u128;
        }
        i64::try_from(id).map(Self).map_err(|_| wrong())
    }
}

impl Serialize for RecordId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_read_back() {
        let ids: Vec<_> = (0..10_000).map(|_| RecordId::next()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        for id in [ids[0], RecordId(0), RecordId(i64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in ["", "run_", "7", "run_zzzzzzzzzzzzz", "run_0123456789abcd", "run_01hzy3k8w2m4u"] {
            assert!(wrong.parse::<RecordId>().is_err(), "{wrong}");
        }
    }
}
