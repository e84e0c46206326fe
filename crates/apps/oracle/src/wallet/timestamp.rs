use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Unexpected};
use serde::{Serialize, Serializer};
use time::error::{Parse, ParseFromDescription, TryFromParsed};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcDateTime};

use formwork_core::Time;

use super::scalar::scalar;

/// A moment on a chain, in whole seconds; `Display` is RFC 3339 in UTC.
///
/// It is parsed from RFC 3339 with an offset, from a date (its first second in UTC), or from seconds since the Unix
/// epoch. The range is 2009, the year of the first chain, to 2199: a number out of that range is in milliseconds, or
/// wrong.
///
/// ```
/// use formwork_oracle::wallet::Timestamp;
///
/// let noon: Timestamp = "2024-02-29T13:00:00+01:00".parse()?;
/// assert_eq!(noon.to_string(), "2024-02-29T12:00:00Z");
/// assert_eq!(noon.days_since("2024-02-01".parse()?), 28);
/// assert!("2023-02-29".parse::<Timestamp>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(u64);

const DAY: u64 = 86_400;
/// 2009-01-01, two days before the first block of the first chain.
const FIRST: u64 = 1_230_768_000;
/// 2200-01-01.
const END: u64 = 7_258_118_400;

impl Timestamp {
    /// Creates a moment of seconds since the Unix epoch.
    ///
    /// # Errors
    /// A message, if the moment is not from 2009 to 2199.
    pub fn from_seconds(seconds: u64) -> Result<Self, String> {
        match seconds {
            FIRST..END => Ok(Self(seconds)),
            END.. => Err(format!("{seconds} is after the year 2199: give seconds, not milliseconds")),
            _ => Err(format!("{seconds} is before the first chain (2009): give seconds since 1970")),
        }
    }

    /// Returns the seconds since the Unix epoch.
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// Returns the number of days since the Unix epoch, in UTC.
    pub const fn day(self) -> u64 {
        self.0 / DAY
    }

    /// Returns the whole days since `earlier`; 0 if `earlier` is later.
    pub const fn days_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / DAY
    }

    /// Returns the date, for example `2024-02-29`.
    pub fn date(self) -> String {
        self.utc().date().to_string()
    }

    fn utc(self) -> UtcDateTime {
        // Every year up to 2199 can be represented.
        UtcDateTime::from_unix_timestamp(self.0.cast_signed()).unwrap_or(UtcDateTime::UNIX_EPOCH)
    }
}

/// Converts to the moment's whole second.
impl TryFrom<Time> for Timestamp {
    type Error = String;

    fn try_from(time: Time) -> Result<Self, String> {
        Self::from_seconds(time.0 / 1000)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let seconds = text.parse().map_err(|_| wrong(text))?;
            return Self::from_seconds(seconds);
        }
        let seconds = rfc3339(text)?;
        let seconds = u64::try_from(seconds).unwrap_or(0);
        if (FIRST..END).contains(&seconds) {
            Ok(Self(seconds))
        } else {
            Err(format!("{} is outside of 2009 to 2199, when there are chains", quoted(text)))
        }
    }
}

/// Returns the seconds since the Unix epoch of a text such as `2024-02-29T12:00:00Z` or `2024-02-29`.
fn rfc3339(text: &str) -> Result<i64, String> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    // `time` accepts any separator.
    if !whole.as_bytes().get(10).is_some_and(|separator| b"Tt ".contains(separator)) {
        return Err(wrong(text));
    }
    match OffsetDateTime::parse(&whole, &Rfc3339) {
        // `time` reads a leap second as the last nanosecond before it; it becomes the start of the next minute.
        Ok(moment) => Ok(moment.unix_timestamp() + i64::from(whole.get(17..19) == Some("60"))),
        Err(Parse::TryFromParsed(TryFromParsed::ComponentRange(range))) => Err(match range.name() {
            "year" | "month" | "day" => format!("there is no day {}", quoted(text)),
            _ => format!("there is no time of day {}", quoted(text)),
        }),
        Err(Parse::ParseFromDescription(ParseFromDescription::InvalidComponent("offset hour")))
            if text
                .get(19..)
                .is_some_and(|rest| rest.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())) =>
        {
            Err(format!("{} says no time zone: add `Z` for UTC", quoted(text)))
        }
        Err(_) => Err(wrong(text)),
    }
}

fn wrong(text: &str) -> String {
    format!(
        "{} is no moment: write RFC 3339 as in \"2024-02-29T12:00:00Z\", a date, or seconds since 1970",
        quoted(text)
    )
}

/// Returns the text, cut for a message.
fn quoted(text: &str) -> String {
    super::text::quoted(text, 40)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a moment: RFC 3339, a date, or whole seconds since 1970", |found| {
            Some(match found {
                Unexpected::Str(text) => text.parse(),
                Unexpected::Unsigned(seconds) => Self::from_seconds(seconds),
                Unexpected::Signed(seconds) => Err(format!("{seconds} is before 1970: there were no chains")),
                _ => return None,
            })
        })
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A moment: RFC 3339 with an offset, a date (its first second in UTC), or seconds since 1970.",
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
                {"type": "integer", "minimum": FIRST, "exclusiveMaximum": END},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Result<u64, String> {
        text.parse::<Timestamp>().map(Timestamp::seconds)
    }

    #[test]
    fn known_moments_are_read() {
        assert_eq!(seconds("2009-01-03T18:15:05Z"), Ok(1_231_006_505), "the first block of all");
        assert_eq!(seconds("2015-07-30T15:26:13Z"), Ok(1_438_269_973), "the first block of Ethereum");
        assert_eq!(seconds("2024-02-29"), Ok(1_709_164_800));
        assert_eq!(seconds("2024-02-29 00:30:00.999+00:30"), Ok(1_709_164_800));
        assert_eq!(seconds("2016-12-31T23:59:60Z"), Ok(1_483_228_800));
        assert_eq!(seconds("1700000000"), Ok(1_700_000_000));
    }

    #[test]
    fn an_invalid_moment_is_reported_with_the_reason() {
        for (text, words) in [
            ("", "RFC 3339"),
            ("yesterday", "RFC 3339"),
            ("2024-13-01", "no day"),
            ("2100-02-29", "no day"),
            ("2024-02-29T24:00:00Z", "no time of day"),
            ("2024-02-29T12:00:00", "time zone"),
            ("2024-02-29T12:00:00.Z", "RFC 3339"),
            ("2024-02-29T12:00:00Zulu", "RFC 3339"),
            ("2024-02-29T12:00:00+2", "RFC 3339"),
            ("1700000000000", "milliseconds"),
            ("1969-07-20", "outside"),
            ("12", "first chain"),
            ("2024-02-2é", "RFC 3339"),
        ] {
            let error = seconds(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(at in FIRST..END) {
            let moment = Timestamp::from_seconds(at).unwrap();
            prop_assert_eq!(seconds(&moment.to_string()), Ok(at));
            prop_assert_eq!(seconds(&moment.date()), Ok(moment.day() * DAY));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = seconds(&text);
        }
    }
}
