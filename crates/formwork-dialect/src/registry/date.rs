use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// The number of days from 0000-03-01 to 1970-01-01. Years that start in March have the leap day at their end.
const EPOCH: i64 = 719_468;

impl Date {
    /// Creates a day; `None` if it does not exist or its year is above 9999.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let there_is = year <= 9999 && (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
        there_is.then_some(Self { year, month, day })
    }

    /// Returns the days since 1970-01-01, negative before it.
    pub fn days_since_epoch(self) -> i64 {
        let (month, year) = match i64::from(self.month) {
            month @ ..=2 => (month + 9, i64::from(self.year) - 1),
            month => (month - 3, i64::from(self.year)),
        };
        let before_month = (153 * month + 2) / 5;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        365 * year + leap_days + before_month + i64::from(self.day) - 1 - EPOCH
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
        let days = days.checked_add(EPOCH)?;
        // The calendar repeats every 400 years.
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era.checked_mul(400)? + year + next;
        Self::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?)
    }
}

fn days_of(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` supports a width in format strings.
        f.pad(&format!("{:04}-{:02}-{:02}", self.year, self.month, self.day))
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
