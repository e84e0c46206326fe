use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::Month;

/// A day in the format `YYYY-MM-DD`. Later days are greater.
///
/// ```
/// use formwork_dialect::registry::Date;
///
/// let checked: Date = "2026-11-21".parse()?;
/// assert!(checked < "2026-11-30".parse()?);
/// assert_eq!("2026-11-30".parse::<Date>()?.days_since_epoch() - checked.days_since_epoch(), 9);
/// assert!("2026-02-29".parse::<Date>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("format" = "date"))]
pub struct Date(time::Date);

/// The Julian day of 1970-01-01.
const EPOCH: i64 = time::UtcDateTime::UNIX_EPOCH.date().to_julian_day() as i64;

impl Date {
    /// Creates a day; `None` if it does not exist or its year is above 9999.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        time::Date::from_calendar_date(i32::from(year), Month::try_from(month).ok()?, day).ok().map(Self)
    }

    /// Returns the days since 1970-01-01, negative before it.
    pub fn days_since_epoch(self) -> i64 {
        i64::from(self.0.to_julian_day()) - EPOCH
    }

    /// Returns the day that many days after 1970-01-01; `None` if its year is not from 0 to 9999.
    ///
    /// This crate reads no clock, so callers compute the present day by it.
    ///
    /// ```
    /// # use formwork_dialect::registry::Date;
    /// assert_eq!(Date::from_days_since_epoch(20_778).unwrap().to_string(), "2026-11-21");
    /// ```
    pub fn from_days_since_epoch(days: i64) -> Option<Self> {
        let day = i32::try_from(days.checked_add(EPOCH)?).ok()?;
        time::Date::from_julian_day(day).ok().filter(|date| date.year() >= 0).map(Self)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` supports a width in format strings.
        f.pad(&self.0.to_string())
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('-');
        let mut number = |digits: usize| -> Option<u16> {
            let part = parts.next()?;
            let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { part.parse().ok() } else { None }
        };
        let read = (number(4), number(2), number(2));
        let date = match read {
            (Some(year), Some(month), Some(day)) if parts.next().is_none() => {
                Self::new(year, u8::try_from(month).unwrap_or(0), u8::try_from(day).unwrap_or(0))
            }
            _ => None,
        };
        date.ok_or_else(|| format!("`{text}` is no day: write it as \"2026-11-21\""))
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Date> for String {
    fn from(date: Date) -> Self {
        date.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn every_day_of_the_calendar_is_there_once_and_in_order() {
        let mut before = Date::new(1599, 12, 31).unwrap();
        let mut days = before.days_since_epoch();
        while before < Date::new(2101, 1, 1).unwrap() {
            days += 1;
            let date = Date::from_days_since_epoch(days).unwrap();
            assert!(date > before && date.days_since_epoch() == days, "{date}");
            assert_eq!(date.to_string().parse(), Ok(date));
            before = date;
        }
        assert_eq!(before.to_string(), "2101-01-01");
        assert_eq!(Date::new(1970, 1, 1).unwrap().days_since_epoch(), 0);
        assert_eq!(Date::new(2000, 3, 1).unwrap().days_since_epoch(), 11_017);
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-11-31",
            "2025-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "26-11-21",
            "2026-1-2",
            "2026-11-21-",
            "2026-11-21T00:00:00",
            "+026-11-21",
            "2026/11/21",
        ] {
            assert!(text.parse::<Date>().unwrap_err().contains("is no day"), "{text}");
        }
        assert_eq!(Date::from_days_since_epoch(i64::MAX), None);
        assert_eq!(Date::from_days_since_epoch(i64::MIN), None);
        assert_eq!(Date::from_days_since_epoch(3_000_000), None);
    }
}
