//! Measures what recording costs: processor time of all threads for each run, and durable reservations a second.
//!
//! `cargo run --release --manifest-path measure/Cargo.toml --example cost [FOLDER]`; Linux.

#[path = "../src/cpu.rs"]
mod cpu;

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use cpu::cpu;
use formwork_core::{Time, Usage};
use formwork_ledger::{Ledger, NewKey, RunRecord, Settings, StoredCall, ViolationRecord};

const RUNS: u64 = 100_000;
const NOW: Time = Time(1_795_000_000_000);

/// A run as the gateway sees it: a request of 2 kB, an answer of 600 bytes, one in ten retried.
fn run(nth: u64, key: formwork_ledger::KeyId) -> RunRecord {
    let started = Time(NOW.0 + nth * 2);
    let answer = || Some(r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}, "#.repeat(10));
    let mut run = RunRecord::new("/v1/chat/completions", started)
        .with_key(Some(key))
        .with_contract(Some("person".to_owned()), Some("0123456789abcdef".repeat(4)))
        .with_request(Some(
            r#"{"role": "user", "content": "Maria moved to Lisbon last spring."} "#.repeat(30),
        ));
    run.ended = Time(started.0 + 800);
    (run.target, run.model, run.usage) = ("main".to_owned(), "gpt-5-mini".to_owned(), Usage::new(700, 150));
    run.micro_usd = Some(475);
    if nth.is_multiple_of(10) {
        let mut failed = StoredCall::new("main", "gpt-5-mini", started, run.ended);
        failed.class = "invalid".into();
        failed.violations = vec![ViolationRecord {
            class: "type".to_owned(),
            path: format!("$.items[{}].age", nth % 7),
            message: "Type mismatch: expected number".to_owned(),
        }];
        failed.answer = answer();
        run.calls.push(failed);
    }
    let mut last = StoredCall::new("main", "gpt-5-mini", started, run.ended);
    last.answer = answer();
    run.calls.push(last);
    run
}

/// Records at so many runs a second, or as fast as it goes, and prints what that costs for each run.
fn record(folder: &Path, bodies: bool, pace: Option<u64>, runs: u64) -> Result<(), Box<dyn Error>> {
    let path = folder.join("cost.db");
    let ledger = Ledger::open(&path, Settings { bodies, ..Settings::default() })?;
    let key = ledger.add_key(NewKey::new("k"), NOW)?.0.id;
    // The same work without a ledger, whose time is subtracted.
    let mut costs = [Duration::ZERO; 2];
    for (is_recorded, cost) in [false, true].into_iter().zip(&mut costs) {
        let (before, start) = (cpu()?, Instant::now());
        for nth in 0..runs {
            let run = std::hint::black_box(run(nth, key));
            if is_recorded {
                ledger.record(run);
            }
            if let Some(pace) = pace {
                thread::sleep(
                    Duration::from_secs_f64(nth as f64 / pace as f64).saturating_sub(start.elapsed()),
                );
            } else if is_recorded && nth % 1024 == 0 {
                // Waits for the disk, so that no record is dropped.
                ledger.flush_blocking()?;
            }
        }
        ledger.flush_blocking()?;
        *cost = cpu()?.saturating_sub(before);
    }
    let recording = costs[1].saturating_sub(costs[0]);
    let health = ledger.health();
    ledger.close();
    drop(ledger);
    println!(
        "bodies {bodies:5}, {}: {:.1} µs CPU a run, {} recorded, {} shed, {} bytes a run",
        pace.map_or("at full speed".to_owned(), |pace| format!("{pace} a second")),
        recording.as_secs_f64() * 1e6 / runs as f64,
        health.recorded,
        health.shed_runs + health.shed_bodies,
        fs::metadata(&path)?.len() / runs,
    );
    fs::remove_file(path)?;
    Ok(())
}

/// Reserves and settles from so many threads.
fn spend(folder: &Path, threads: u64) -> Result<(), Box<dyn Error>> {
    let path = folder.join("cost.db");
    let ledger = Ledger::open(&path, Settings::default())?;
    let key = ledger.add_key(NewKey { budget: Some(1_000_000_000), ..NewKey::new("k") }, NOW)?.0.id;
    let each = 4096 / threads;
    let (before, start) = (cpu()?, Instant::now());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    if let Ok(hold) = ledger.reserve_blocking(key, 100, None, NOW) {
                        let _ = hold.settle_blocking(90);
                    }
                }
            });
        }
    });
    let (took, cpu, calls) =
        (start.elapsed().as_secs_f64(), (cpu()? - before).as_secs_f64(), (each * threads) as f64);
    let key = &ledger.keys()?[0];
    println!(
        "{threads:3} callers: {:.0} calls a second reserved and settled, {:.0} µs CPU each, {} spent",
        calls / took,
        cpu * 1e6 / calls,
        key.spent
    );
    drop(ledger);
    fs::remove_file(path)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).map_or_else(env::temp_dir, Into::into);
    for bodies in [false, true] {
        record(&folder, bodies, None, RUNS)?;
        record(&folder, bodies, Some(500), 10_000)?;
    }
    for threads in [1, 8, 64, 256] {
        spend(&folder, threads)?;
    }
    Ok(())
}
