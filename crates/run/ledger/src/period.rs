use formwork_core::Time;
use serde::{Deserialize, Serialize};

/// The time after which a budget is whole again. Periods begin at midnight UTC; weeks on Mondays.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::Period;
///
/// // 2026-11-24T10:00:00Z, a Tuesday.
/// let now = Time(1_795_514_400_000);
/// assert_eq!(Period::Day.start(now), Time(1_795_478_400_000));
/// assert_eq!(Period::Week.start(now), Time(1_795_392_000_000));
/// assert_eq!(Period::Month.start(now), Time(1_793_491_200_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// A day.
    Day,
    /// Seven days from a Monday.
    Week,
    /// A month of the calendar.
    Month,
}

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

impl Period {
    /// Returns the name in the file, in JSON and in flags: `day`, `week` or `month`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Day, Self::Week, Self::Month].into_iter().find(|period| period.name() == name)
    }

    /// Returns the beginning of the period that contains a time.
    pub const fn start(self, now: Time) -> Time {
        let days = now.0 / DAY;
        let first = match self {
            Self::Day => days,
            // 1970-01-01 was a Thursday.
            Self::Week => days.saturating_sub((days + 3) % 7),
            Self::Month => days - (day_of_month(days) - 1),
        };
        Time(first * DAY)
    }
}

/// Returns the day of the month, from 1, of a number of days since 1970. The calendar repeats itself every 400 years; counted from a first
/// of March, the days before each month follow a line (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
const fn day_of_month(days: u64) -> u64 {
    let of_era = (days + 719_468) % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    of_year - (153 * month + 2) / 5 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_on_their_first_day() {
        // The lengths of the months of 800 years, one after another.
        let (mut day, mut year) = (0, 1970);
        while year < 2770 {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for length in [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
                for within in [0, length / 2, length - 1] {
                    let now = Time((day + within) * DAY + DAY - 1);
                    assert_eq!(Period::Month.start(now), Time(day * DAY), "{year}, day {day}");
                }
                day += length;
            }
            year += 1;
        }
    }
}
