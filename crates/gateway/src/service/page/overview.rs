//! The overview of a period.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use formwork_core::Time;
use formwork_extract::ObservationStore;
use formwork_ledger::{HourlyReason, HourlyRuns, Key, Ledger, Recent, format_usd};

use super::filter::Filter;
use super::{Bar, Cell, Table, Visitor, html, read, refused, time, visitor};
use crate::access::now;
use crate::problem::Problem;
use crate::protocol::OpenAi;
use crate::service::Shared;

const DAY: u64 = 24 * 3_600_000;

/// The maximum number of rows of a table.
const MAX_ROWS: usize = 50;

#[derive(Template)]
#[template(path = "page/overview.html")]
struct Page {
    visitor: Visitor,
    periods: [u64; 4],
    days: u64,
    note: &'static str,
    figures: Vec<(&'static str, String)>,
    bars: Vec<Bar>,
    tables: Vec<Table>,
    /// Markup.
    batches: String,
}

/// Answers `GET /`.
pub(super) async fn overview(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Response {
    let visitor = match visitor(&shared, &headers) {
        Ok(visitor) => visitor,
        Err(response) => return *response,
    };
    let wanted = Filter::parse(uri.query().unwrap_or_default());
    let days = wanted.get("days").and_then(|days| days.parse().ok()).unwrap_or(1).clamp(1, 366);
    match page(&shared, visitor, days).await {
        Ok(page) => html(&page),
        Err(problem) => refused(&OpenAi, &problem),
    }
}

async fn page(shared: &Shared, visitor: Visitor, days: u64) -> Result<Page, Problem> {
    let since = Time(now().0.saturating_sub(days * DAY));
    let mut page = Page {
        visitor,
        periods: [1, 7, 30, 90],
        days,
        note: "Runs are not recorded: start the service with a ledger.",
        figures: Vec::new(),
        bars: Vec::new(),
        tables: Vec::new(),
        batches: String::new(),
    };
    if let Some(ledger) = shared.access.ledger() {
        page.note = "";
        read(ledger, move |ledger| Facts::read(ledger, since)).await?.fill(&mut page, since);
    }
    page.tables.push(targets(shared));
    page.tables.push(in_force(shared));
    if let Some(batches) = &shared.batches {
        batches.write(&mut page.batches);
    }
    Ok(page)
}

struct Facts {
    hours: Vec<HourlyRuns>,
    reasons: Vec<HourlyReason>,
    recent: Recent,
    keys: Vec<Key>,
}

/// Runs, calls, runs without an answer, the known cost and the milliseconds of a group.
#[derive(Default, Clone, Copy)]
struct Sum {
    runs: u64,
    calls: u64,
    failed: u64,
    micro_usd: u64,
    unpriced: u64,
    millis: u64,
}

impl Sum {
    fn add(&mut self, hour: &HourlyRuns) {
        self.runs += hour.runs;
        self.calls += hour.calls;
        self.failed += if matches!(hour.outcome.as_str(), "ok" | "fallback") { 0 } else { hour.runs };
        self.micro_usd += hour.micro_usd;
        self.unpriced += hour.unpriced;
        self.millis += hour.millis;
    }

    fn cost(self) -> String {
        let known = format_usd(self.micro_usd);
        if self.unpriced == 0 {
            known
        } else {
            format!("{known}, and {} runs without a price", self.unpriced)
        }
    }

    fn cells(self) -> [Cell; 5] {
        let mean = self.millis.checked_div(self.runs).unwrap_or_default();
        [self.runs.into(), self.failed.into(), self.calls.into(), mean.into(), self.cost().into()]
    }
}

const SUMS: [&str; 6] = ["name", "runs", "without an answer", "calls", "mean ms", "US dollars"];

impl Facts {
    fn read(ledger: &Ledger, since: Time) -> Result<Self, formwork_ledger::Error> {
        Ok(Self {
            hours: ledger.hourly_runs(Some(since), None)?,
            reasons: ledger.hourly_reasons(Some(since), None)?,
            recent: ledger.recent(since)?,
            keys: ledger.keys()?,
        })
    }

    fn fill(self, page: &mut Page, since: Time) {
        let start = (since.0 / 1000).to_string();
        let mut all = Sum::default();
        self.hours.iter().for_each(|hour| all.add(hour));
        let Recent { runs, first_try, median_ms, p95_ms, .. } = self.recent;
        let share = |part: u64, of: u64| match of {
            0 => "-".to_owned(),
            of => format!("{:.1} %", part as f64 * 100.0 / of as f64),
        };
        page.figures = vec![
            ("Runs", all.runs.to_string()),
            ("Without an answer", format!("{} ({})", all.failed, share(all.failed, all.runs))),
            ("Calls", all.calls.to_string()),
            ("US dollars", all.cost()),
            ("Valid at the first try, last 10,000 runs", share(first_try, runs)),
            ("Latency p50, last 10,000 runs", format!("{median_ms} ms")),
            ("Latency p95, last 10,000 runs", format!("{p95_ms} ms")),
        ];
        page.bars = bars(&self.hours);
        page.tables.push(reasons(self.reasons, &start));
        let by = |title, name: fn(&HourlyRuns) -> &str, field: &'static str| {
            let mut groups = BTreeMap::<&str, Sum>::new();
            self.hours.iter().for_each(|hour| groups.entry(name(hour)).or_default().add(hour));
            let mut groups: Vec<_> = groups.into_iter().collect();
            groups.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.runs));
            let row = |(name, sum): (&str, Sum)| {
                let name = if name.is_empty() {
                    "none".into()
                } else {
                    Cell::runs(name, &[(field, name), ("since", &start)])
                };
                std::iter::once(name).chain(sum.cells()).collect()
            };
            Table { title, head: &SUMS, rows: groups.into_iter().take(MAX_ROWS).map(row).collect() }
        };
        page.tables.push(by("By contract", |hour| &hour.contract, "contract"));
        page.tables.push(by("By model", |hour| &hour.model, "model"));
        let row = |key: Key| {
            let runs = Cell::runs(&key.name, &[("key", &key.name), ("since", &start)]);
            let left = key.left().map_or("no limit".to_owned(), format_usd);
            vec![runs, format_usd(key.spent).into(), left.into()]
        };
        page.tables.push(Table {
            title: "Keys, since they were added",
            head: &["key", "US dollars", "left"],
            rows: self.keys.into_iter().take(MAX_ROWS).map(row).collect(),
        });
    }
}

/// Returns a bar for each day of the period that has runs.
fn bars(hours: &[HourlyRuns]) -> Vec<Bar> {
    let mut days = BTreeMap::<u64, u64>::new();
    hours.iter().for_each(|hour| *days.entry(hour.hour.0 / DAY).or_default() += hour.runs);
    let (Some((&first, _)), Some((&last, _))) = (days.first_key_value(), days.last_key_value()) else {
        return Vec::new();
    };
    let step = 600.0 / (last - first + 1) as f64;
    let most = days.values().copied().max().unwrap_or(1).max(1) as f64;
    let bar = |(day, runs): (u64, u64)| {
        let height = runs as f64 * 76.0 / most;
        let title = format!("{}: {runs} runs", time(Time(day * DAY)).get(..10).unwrap_or_default());
        Bar { x: (day - first) as f64 * step, y: 80.0 - height, width: step * 0.8, height, title }
    };
    days.into_iter().map(bar).collect()
}

fn reasons(reasons: Vec<HourlyReason>, start: &str) -> Table {
    let mut counts = BTreeMap::new();
    for one in reasons {
        *counts.entry((one.class, one.path, one.model, one.contract)).or_insert(0) += one.count;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let row = |((class, path, model, contract), count): ((String, String, String, String), u64)| {
        // The model of a reason is the call's; that of a run is its last call's, so it is no filter here.
        let filter = [("class", class.as_str()), ("path", &path), ("contract", &contract), ("since", start)];
        let count = Cell::runs(count, &filter);
        vec![class.into(), path.into(), model.into(), contract.into(), count]
    };
    Table {
        title: "Why calls were retried",
        head: &["class", "path", "model", "contract", "times"],
        rows: counts.into_iter().take(MAX_ROWS).map(row).collect(),
    }
}

fn targets(shared: &Shared) -> Table {
    let row = |target: &crate::names::Target| {
        let modes: Vec<String> = target.backend.modes().iter().map(|mode| mode.name().to_owned()).collect();
        let raw = target.raw.as_ref().map_or("-".to_owned(), |raw| format!("{:?}", raw.protocol));
        vec![
            Cell::runs(target.name(), &[("target", target.name())]),
            target.model.as_str().into(),
            modes.join(", ").into(),
            raw.into(),
        ]
    };
    Table {
        title: "Targets",
        head: &["name", "model", "modes", "passes through"],
        rows: shared.engine.names.targets().iter().map(row).collect(),
    }
}

/// Returns the observations about targets that are in force.
fn in_force(shared: &Shared) -> Table {
    let mut found = Vec::new();
    for target in shared.engine.names.targets() {
        let store = target.backend.observation_store().map(ObservationStore::in_force).unwrap_or_default();
        // Several names may share a store.
        found.extend(store.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>());
    }
    let rows = found
        .iter()
        .map(|one| vec![one.into(), time(one.since).into(), time(one.last).into(), time(one.until).into()]);
    Table {
        title: "What is in force about targets",
        head: &["observation", "since", "last evidence", "until"],
        rows: rows.collect(),
    }
}
