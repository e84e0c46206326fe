//! Warnings about models that their vendor retires.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use formwork_dialect::registry::{Date, Entry};

/// For how many days before a model's last day there are warnings.
const AHEAD: i64 = 60;

/// Logs a warning about a model that is retired, or will be within [`AHEAD`] days: once in a process for each model.
pub(super) fn warn(row: &Entry, model: &str, provider: &str) {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

    let Some(words) = today().and_then(|today| notice(row, model, today)) else { return };
    let is_new = WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned());
    #[cfg(feature = "http")]
    if is_new {
        tracing::warn!(target: "formwork", "{words}: name another model in the section `{provider}`");
    }
    #[cfg(not(feature = "http"))]
    let _ = (is_new, words, provider);
}

/// Returns the warning about a model on this day; `None` if its last day is unknown or far away.
fn notice(row: &Entry, model: &str, today: Date) -> Option<String> {
    let source = format!("(source: {}, {})", row.source, row.checked);
    if row.is_retired(today) {
        let since = row.retires.map(|day| format!(" since {day}")).unwrap_or_default();
        return Some(format!("the model `{model}` is retired{since} {source}"));
    }
    let last = row.retires?;
    let days = last.days_since_epoch() - today.days_since_epoch();
    (days <= AHEAD).then(|| format!("the model `{model}` is retired after {last}, in {days} days {source}"))
}

/// Returns the day by this machine's clock, in UTC.
fn today() -> Option<Date> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Date::from_days_since_epoch(i64::try_from(since.as_secs() / 86_400).ok()?)
}

#[cfg(test)]
mod tests {
    use formwork_dialect::registry::Registry;

    use super::*;

    #[test]
    fn a_model_is_warned_of_before_and_after_its_last_day_alone() {
        let row = |more: &str| {
            let text = format!(
                "[[model]]\nmatch = \"m\"\nfamily = \"M\"\nprovider = \"p\"\nnative = \"none\"\nsource = \"s\"\n\
                 checked = \"2026-11-21\"\n{more}"
            );
            Registry::from_toml(&text).unwrap().entries()[0].clone()
        };
        for (more, today, says) in [
            ("", "2030-01-01", None),
            ("retires = \"2026-12-31\"", "2026-11-01", Some("is retired after 2026-12-31, in 60 days")),
            ("retires = \"2026-12-31\"", "2026-10-31", None),
            ("retires = \"2026-12-31\"", "2026-12-31", Some("is retired after 2026-12-31, in 0 days")),
            ("retires = \"2026-12-31\"", "2027-01-01", Some("is retired since 2026-12-31")),
            ("retired = true", "2020-01-01", Some("is retired (source: s, 2026-11-21)")),
        ] {
            let found = notice(&row(more), "m", today.parse().unwrap());
            match says {
                None => assert_eq!(found, None, "{more} {today}"),
                Some(says) => assert!(found.as_ref().is_some_and(|found| found.contains(says)), "{found:?}"),
            }
        }
    }
}
