//! The headers in which vendors report what is left of their limits: `limits.json`.

use std::sync::LazyLock;
use std::time::Duration;

use formwork_core::{Counted, RateLimit, Time};
use http::response::Parts;
use serde::Deserialize;

/// The table. Parsing cannot fail at run time, because a test parses the same file.
static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

const TEXT: &str = include_str!("limits.json");

/// A limit of requests or tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The vendors that send these headers.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    vendor: String,
    counted: Counted,
    /// The header with the size of the limit.
    limit: String,
    /// The header with the number that is left.
    remaining: String,
    /// The header with the time at which the limit is full again.
    reset: String,
}

/// The beginnings of the names of all headers in the table.
const PREFIXES: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "x-tokenlimit-"];

/// Returns the rate limits that the headers of a response report; none of them is full later than in a day. `docs/health.md` names the
/// headers of each vendor.
///
/// ```
/// use std::time::Duration;
/// use formwork_core::{Counted, RateLimit, Time};
/// use formwork_wire::http::Response;
///
/// let response = Response::builder()
///     .header("x-ratelimit-remaining-requests", "0")
///     .header("x-ratelimit-reset-requests", "1m30s");
/// let (head, ()) = response.body(())?.into_parts();
/// let limits = formwork_wire::rate_limits(&head, Time(0));
/// assert_eq!(limits, [RateLimit::new(Counted::Requests, 0, Duration::from_secs(90))]);
/// # Ok::<(), formwork_wire::http::Error>(())
/// ```
pub fn rate_limits(head: &Parts, now: Time) -> Vec<RateLimit> {
    let is_limit = |name: &http::HeaderName| PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
    if !head.headers.keys().any(is_limit) {
        return Vec::new();
    }
    let text = |name: &str| head.headers.get(name)?.to_str().ok().map(str::trim);
    // Some servers send -1 where nothing is limited.
    let number = |name: &str| {
        let number = text(name)?.parse::<f64>().ok()?;
        (number >= 0.0).then_some(number.ceil() as u64)
    };
    let limit = |row: &Row| {
        let full_in = until(text(&row.reset)?, now)?;
        Some(RateLimit::new(row.counted, number(&row.remaining)?, full_in).with_limit(number(&row.limit)))
    };
    TABLE.iter().filter_map(limit).collect()
}

/// Reads the time until a reset: seconds, milliseconds or seconds since 1970, a date (RFC 3339), or a duration such as `1m30.5s`.
fn until(text: &str, now: Time) -> Option<Duration> {
    /// No vendor's limit lasts longer than a day.
    const LONGEST: f64 = 86_400.0;

    let now = Duration::from_millis(now.0).as_secs_f64();
    let seconds = match text.parse::<f64>() {
        Ok(number) if number >= 1e12 => number / 1000.0 - now,
        Ok(number) if number >= 1e9 => number - now,
        Ok(number) => number,
        Err(_) if text.contains(['T', 't']) => date(text)? - now,
        Err(_) => duration(text)?,
    };
    Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST)).ok()
}

/// Reads a duration as Go prints it: numbers with the units `h`, `m`, `s` and `ms`.
fn duration(text: &str) -> Option<f64> {
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|letter: char| letter.is_ascii_alphabetic())?);
        let end = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    Some(seconds)
}

/// Returns the seconds since 1970 of a date such as `2026-11-24T13:00:05Z` or `2026-11-24T14:00:05.5+01:00`.
fn date(text: &str) -> Option<f64> {
    let (day, clock) = text.split_once(['T', 't'])?;
    let (clock, offset) = match clock.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0.0),
        None => {
            let (clock, offset) = clock.split_at(clock.rfind(['+', '-'])?);
            let (hours, minutes) = offset.get(1..)?.split_once(':')?;
            let size = hours.parse::<f64>().ok()? * 3600.0 + minutes.parse::<f64>().ok()? * 60.0;
            (clock, if offset.starts_with('-') { -size } else { size })
        }
    };
    let mut day = day.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (day.next()??, day.next()??, day.next()??);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // The days of years that begin in March, so that the day of a leap year is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(days as f64 * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds - offset)
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    /// 2026-11-24T13:00:00Z.
    const NOW: Time = Time(1_795_525_200_000);

    #[test]
    fn an_empty_limit_says_when_it_is_full_again() {
        let rows: Vec<Row> = serde_json::from_str(TEXT).unwrap();
        assert!(rows.len() >= 10);
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/health.md");
        let page = std::fs::read_to_string(page).unwrap();
        for row in &rows {
            assert!(PREFIXES.iter().any(|prefix| row.remaining.starts_with(prefix)), "{}", row.remaining);
            let listed =
                format!("| {} | `{}` | `{}` | `{}` |", row.vendor, row.limit, row.remaining, row.reset);
            assert!(page.contains(&listed), "docs/health.md lacks {listed}");
        }
        let (requests, tokens) = ("x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens");
        let (again, tokens_again) = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens");
        let anthropic = "anthropic-ratelimit-input-tokens-";
        let (left, reset) = (format!("{anthropic}remaining"), format!("{anthropic}reset"));
        for (headers, expected) in [
            (vec![], None),
            (vec![(requests, "0"), (again, "6m0.5s")], Some(360_500)),
            (vec![(requests, "1"), (again, "6m0s")], None),
            (vec![(requests, "0"), (again, "20ms")], Some(20)),
            // The longest of the empty limits counts.
            (vec![(requests, "0"), (again, "1s"), (tokens, "0"), (tokens_again, "7.66s")], Some(7_660)),
            (vec![(requests, "0"), (again, "1s"), (tokens, "9"), (tokens_again, "7.66s")], Some(1_000)),
            (vec![(&left, "0"), (&reset, "2026-11-24T13:00:05Z")], Some(5_000)),
            (vec![(&left, "0"), (&reset, "2026-11-24T14:00:05.5+01:00")], Some(5_500)),
            (vec![(&left, "0"), (&reset, "2026-11-24T12:00:00Z")], Some(0)),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795525203000")], Some(3_000)),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795525203")], Some(3_000)),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "4")], Some(4_000)),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "soon")], None),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "2026-13-24T12:00:00Z")], None),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1e300")], Some(86_400_000)),
            (vec![("x-ratelimit-remaining", "0")], None),
            (vec![("x-ratelimit-remaining", "-1"), ("x-ratelimit-reset", "4")], None),
            (vec![("x-ratelimit-remaining", "0.5"), ("x-ratelimit-reset", "4")], None),
        ] {
            let response =
                headers.iter().fold(Response::builder(), |all, (name, value)| all.header(*name, *value));
            let (head, ()) = response.body(()).unwrap().into_parts();
            let pause = RateLimit::pause(&rate_limits(&head, NOW)).map(|pause| pause.as_millis());
            assert_eq!(pause, expected, "{headers:?}");
        }
    }

    #[test]
    fn a_limit_says_what_it_counts_and_what_is_left() {
        for row in TABLE.iter() {
            let left = |size: Option<&str>| {
                let response = Response::builder().header(&row.remaining, "7").header(&row.reset, "3");
                let response = size.into_iter().fold(response, |all, size| all.header(&row.limit, size));
                rate_limits(&response.body(()).unwrap().into_parts().0, NOW)
            };
            let limit = RateLimit::new(row.counted, 7, Duration::from_secs(3));
            assert_eq!(left(None), [limit]);
            assert_eq!(left(Some("60")), [limit.with_limit(Some(60))]);
            assert_eq!(left(Some("many")), [limit]);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-02-29T00:00:00Z", 951_782_400.0),
            ("2000-03-01T00:00:00Z", 951_868_800.0),
            ("2026-11-24T13:00:00Z", 1_795_525_200.0),
        ] {
            assert_eq!(date(text), Some(seconds), "{text}");
        }
    }
}
