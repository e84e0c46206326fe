//! The overview of a period.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use formwork_core::Time;
use formwork_extract::ObservationStore;
use formwork_ledger::{Group, HourlyReason, Key, Ledger, Overview, format_usd};

use super::filter::{Filter, or_none};
use super::{Bar, Cell, Refusal, Table, Visitor, html, read, share, sum, time};
use crate::access::now;
use crate::problem::Problem;
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
    since: String,
    note: &'static str,
    figures: Vec<(&'static str, String)>,
    bars: Vec<Bar>,
    tables: Vec<Table>,
}

/// Answers `GET /`.
pub(super) async fn overview(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
    uri: Uri,
) -> Result<Response, Refusal> {
    let wanted = Filter::parse(uri.query().unwrap_or_default());
    let days = wanted.get("days").and_then(|days| days.parse().ok()).unwrap_or(1).clamp(1, 366);
    html(&page(&shared, visitor, days).await?)
}

async fn page(shared: &Shared, visitor: Visitor, days: u64) -> Result<Page, Problem> {
    // Whole days, as the rollups have them.
    let since = Time((now().0 / DAY).saturating_sub(days) * DAY);
    let mut page = Page {
        visitor,
        periods: [1, 7, 30, 90],
        days,
        since: time(since),
        note: "Runs are not recorded: start the service with a ledger.",
        figures: Vec::new(),
        bars: Vec::new(),
        tables: Vec::new(),
    };
    if let Some(ledger) = shared.access.ledger() {
        page.note = "";
        read(ledger, move |ledger| Facts::read(ledger, since)).await?.fill(&mut page, since);
    }
    page.tables.push(targets(shared));
    page.tables.push(in_force(shared));
    if let Some(batches) = &shared.batches {
        page.tables.extend(batches.tables());
    }
    Ok(page)
}

struct Facts {
    overview: Overview,
    reasons: Vec<HourlyReason>,
    keys: Vec<Key>,
}

const GROUPS: &str =
    "name | runs | without an answer | valid at the first try | calls | p50 ms | p95 ms | US dollars";

/// Returns the cells of a group, after the one of its name.
fn cells(group: &Group) -> [Cell; 7] {
    [
        group.runs.into(),
        group.failed.into(),
        share(group.first_try, group.called).into(),
        group.calls.into(),
        group.percentile(50).into(),
        group.percentile(95).into(),
        cost(group).into(),
    ]
}

fn cost(group: &Group) -> String {
    sum(group.micro_usd, group.unpriced, "runs")
}

impl Facts {
    fn read(ledger: &Ledger, since: Time) -> Result<Self, formwork_ledger::Error> {
        Ok(Self {
            overview: ledger.overview(since)?,
            reasons: ledger.reasons(since, None, MAX_ROWS)?,
            keys: ledger.keys()?,
        })
    }

    fn fill(self, page: &mut Page, since: Time) {
        let start = (since.0 / 1000).to_string();
        let Overview { all, contracts, models, keys, days, .. } = self.overview;
        page.figures = vec![
            ("Runs", all.runs.to_string()),
            ("Without an answer", format!("{} ({})", all.failed, share(all.failed, all.runs))),
            ("Valid at the first try", share(all.first_try, all.called)),
            ("Calls", all.calls.to_string()),
            ("US dollars", cost(&all)),
            ("Latency p50", format!("{} ms", all.percentile(50))),
            ("Latency p95", format!("{} ms", all.percentile(95))),
        ];
        page.bars = bars(&days);
        page.tables.push(reasons(self.reasons, &start));
        let by = |title, groups: Vec<Group>, field: &'static str| {
            let row = |group: Group| {
                let text = if group.name.is_empty() { "none" } else { &group.name };
                let name = Cell::runs(text, &[(field, or_none(&group.name)), ("since", &start)]);
                std::iter::once(name).chain(cells(&group)).collect()
            };
            Table { title, head: GROUPS, rows: groups.into_iter().take(MAX_ROWS).map(row).collect() }
        };
        page.tables.push(by("By contract", contracts, "contract"));
        page.tables.push(by("By model", models, "model"));
        page.tables.push(by("By key", keys, "key"));
        let day = |group: &Group| {
            let (since, until) = (group.day.0 / 1000, (group.day.0 + DAY) / 1000);
            let (since, until) = (since.to_string(), until.to_string());
            let name = Cell::runs(date(group.day), &[("since", &since), ("until", &until)]);
            std::iter::once(name).chain(cells(group)).collect()
        };
        let rows = days.iter().rev().take(MAX_ROWS).map(day).collect();
        page.tables.push(Table { title: "By day (UTC)", head: GROUPS, rows });
        let row = |key: Key| {
            let runs = Cell::runs(&key.name, &[("key", &key.name), ("since", &start)]);
            let left = key.left(now()).map_or("no limit".to_owned(), format_usd);
            vec![runs, format_usd(key.spent).into(), left.into()]
        };
        page.tables.push(Table {
            title: "Keys, since they were added",
            head: "key | US dollars | left",
            rows: self.keys.into_iter().take(MAX_ROWS).map(row).collect(),
        });
    }
}

fn date(day: Time) -> String {
    time(day).get(..10).unwrap_or_default().to_owned()
}

/// Returns a bar for each day of the period that has runs.
fn bars(days: &[Group]) -> Vec<Bar> {
    let nth = |group: &Group| group.day.0 / DAY;
    let (Some(first), Some(last)) = (days.first().map(nth), days.last().map(nth)) else {
        return Vec::new();
    };
    let step = 600.0 / (last - first + 1) as f64;
    let most = days.iter().map(|group| group.runs).max().unwrap_or(1).max(1) as f64;
    let bar = |group: &Group| {
        let height = group.runs as f64 * 76.0 / most;
        let title = format!("{}: {} runs, p95 {} ms", date(group.day), group.runs, group.percentile(95));
        Bar {
            x: (nth(group) - first) as f64 * step,
            y: 80.0 - height,
            width: step * 0.8,
            height,
            class: "",
            title,
        }
    };
    days.iter().map(bar).collect()
}

fn reasons(reasons: Vec<HourlyReason>, start: &str) -> Table {
    let row = |one: HourlyReason| {
        let filter = [
            ("class", one.class.as_str()),
            ("path", &one.path),
            ("called", or_none(&one.model)),
            ("contract", or_none(&one.contract)),
            ("since", start),
        ];
        let count = Cell::runs(one.count, &filter);
        vec![one.class.into(), one.path.into(), one.model.into(), one.contract.into(), count]
    };
    Table {
        title: "Why calls were retried",
        head: "class | path | model | contract | times",
        rows: reasons.into_iter().map(row).collect(),
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
        head: "name | model | modes | passes through",
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
        head: "observation | since | last evidence | until",
        rows: rows.collect(),
    }
}
