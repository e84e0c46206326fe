//! A ledger of a million runs: the time that its pages take, and the memory of the process.
//!
//! ```sh
//! cargo run --release --manifest-path measure/Cargo.toml --example million -- /tmp/million.db
//! ```
//!
//! The first start fills the file with runs of 30 days: 40 contracts, 6 models, 20 keys, one run in ten with a violation.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use formwork_core::{ErrorKind, Time, Usage};
use formwork_ledger::{
    Ledger, NewKey, RecordId, RunOutcome, RunQuery, RunRecord, Settings, StoredCall, ViolationRecord,
};

const RUNS: u64 = 1_000_000;
const DAYS: u64 = 30;
const START: u64 = 1_793_000_000_000;

/// A number that looks random and is the same in every run.
const fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 31;
    mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn fill(path: &Path) -> Result<(), Box<dyn Error>> {
    let ledger = Ledger::open(path, Settings::default())?;
    let keys: Vec<_> = (0..20)
        .map(|nth| Ok(ledger.add_key(NewKey::new(format!("key-{nth}")), Time(START))?.0.id))
        .collect::<Result<_, formwork_ledger::Error>>()?;
    for nth in 0..RUNS {
        let random = mix(nth);
        let started = Time(START + nth * (DAYS * 86_400_000 / RUNS));
        let took = 120 + (1 << (random % 12)) + random % 97;
        let (target, model) = ("main", format!("model-{}", random % 6));
        let mut run = RunRecord::new("/v1/chat/completions", started)
            .with_contract(Some(format!("contract-{}", (random >> 8) % 40)), None)
            .with_key(keys.get((random >> 16) as usize % keys.len()).copied())
            .with_labels(Some(format!("user-{}", (random >> 24) % 500)), vec!["nightly".to_owned()]);
        run.ended = Time(started.0 + took);
        let mut call = StoredCall::new(target, model.clone(), started, run.ended);
        call.usage = Usage::new(random % 4000, random % 700);
        if random.is_multiple_of(10) {
            let mut first = call.clone();
            first.class = "invalid".into();
            let path = format!("$.items[{}].price", random % 30);
            first.violations =
                vec![ViolationRecord { class: "type".into(), path, message: "expected a number".into() }];
            run.calls.push(first);
        }
        if random.is_multiple_of(50) {
            run.outcome = RunOutcome::Failed(ErrorKind::Rejected);
            run.message = Some("no answer satisfied the contract".to_owned());
        }
        call.number = run.calls.len() as u32 + 1;
        (run.target, run.model, run.usage, run.micro_usd) =
            (target.to_owned(), model, call.usage, Some(random % 9000));
        run.calls.push(call);
        ledger.record(run);
        if nth % 5_000 == 0 {
            ledger.flush_blocking()?;
        }
    }
    ledger.flush_blocking()?;
    println!("{:?}", ledger.health());
    Ok(())
}

/// Returns the processor time of this thread; none on systems that do not tell.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// Prints the median and the 95th percentile of 60 times, and the 95th percentile of the processor times.
fn time(
    name: &str,
    mut read: impl FnMut(u64) -> Result<usize, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (mut took, mut worked) = (Vec::new(), Vec::new());
    let mut rows = 0;
    for nth in 0..60 {
        let (start, before) = (Instant::now(), spent());
        rows = read(nth)?;
        took.push(start.elapsed());
        worked.push(spent().saturating_sub(before));
    }
    took.sort_unstable();
    worked.sort_unstable();
    let at =
        |times: &[Duration], share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let [p50, p95, cpu] = [at(&took, 50), at(&took, 95), at(&worked, 95)];
    println!("{name:<36} {rows:>7} rows, p50 {p50:>9.2?}, p95 {p95:>9.2?}, processor p95 {cpu:>9.2?}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a file: `-- /tmp/million.db`")?;
    let path = Path::new(&path);
    if !path.exists() {
        fill(path)?;
    }
    let ledger = Ledger::open(path, Settings::default())?;
    let end = START + DAYS * 86_400_000;
    for days in [1, 7, 30] {
        time(&format!("overview, {days} days"), |_| {
            let since = Time(end - days * 86_400_000);
            Ok(ledger.overview(since)?.all.runs as usize + ledger.reasons(since, None, 50)?.len())
        })?;
    }
    let all = || RunQuery { since: Some(Time(START)), scan: 50_000, ..RunQuery::default() };
    let text = |text: &str| Some(text.to_owned());
    let rejected = Some(RunOutcome::Failed(ErrorKind::Rejected));
    let price = text("$.items[*].price");
    for (name, query) in [
        ("list, all", all()),
        ("list, a contract", RunQuery { contract: text("contract-7"), ..all() }),
        (
            "list, a contract and an outcome",
            RunQuery { contract: text("contract-7"), outcome: rejected, ..all() },
        ),
        (
            "list, a class, a path, a contract",
            RunQuery { class: text("type"), path: price, contract: text("contract-7"), ..all() },
        ),
        ("list, a user", RunQuery { user: text("user-7"), ..all() }),
        ("list, a text that is rare", RunQuery { text: text("user-499"), ..all() }),
        ("list, a text that no run has", RunQuery { text: text("nowhere"), ..all() }),
        ("list, a tag that no run has", RunQuery { tag: text("nowhere"), ..all() }),
        ("list, a model that no run has", RunQuery { model: text("nowhere"), ..all() }),
        (
            "list, a feedback that no run has",
            RunQuery { feedback: Some(formwork_ledger::Feedback::Bad), ..all() },
        ),
    ] {
        time(name, |_| Ok(ledger.runs(&query)?.runs.len()))?;
    }
    let ids: Vec<RecordId> =
        ledger.runs(&RunQuery { limit: 1000, ..all() })?.runs.iter().map(|run| run.id).collect();
    time("one run", |nth| {
        let id = ids.get(nth as usize * 16 % ids.len()).ok_or("no runs")?;
        Ok(ledger.run(*id)?.map_or(0, |run| run.calls.len()))
    })?;
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status
            .lines()
            .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
            .for_each(|line| println!("{line}"));
    }
    Ok(())
}
