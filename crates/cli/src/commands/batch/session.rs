//! The processing of a batch by any engine: the settings that are stored for the next process, the limits, and the end.

use std::future::Future;
use std::time::Duration;

use formwork_batch::{Batch, BatchError, Ended, MaxFailures, Stop};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::{Engine, Mode, WorkArgs, failed, numbers};
use crate::exit::{Failed, Status};
use crate::output;
use crate::rows::BatchOutput;
use crate::stderr::say;
use crate::targets::RetryArgs;
use crate::terminal::Bar;

/// The most rows that are open at a time where the number is not fixed.
pub(super) const MAX_ROWS: u16 = 512;

/// The key under which a batch keeps how it is worked on.
const SETTINGS: &str = "settings";

/// The order in which the rows of `--estimate` are picked.
const SEED: u64 = 19;

/// The settings of the processing of a batch, which are stored for the next process.
pub(super) struct Settings {
    named: [Option<String>; 3],
    pub(super) mode: Mode,
    pub(super) engine: Engine,
    pub(super) ingress: Option<String>,
    pub(super) concurrency: Option<u16>,
    pub(super) budget: Option<f64>,
    pub(super) max_failures: Option<MaxFailures>,
    pub(super) retries: RetryArgs,
    pub(super) sample: u32,
    pub(super) file_rows: Option<u32>,
    /// In seconds.
    pub(super) poll: f64,
    /// In seconds.
    pub(super) grace: f64,
    allow_failures: bool,
    pub(super) pool: Option<String>,
    pub(super) ahead: Option<u32>,
    pub(super) token_env: Option<String>,
}

impl Settings {
    /// Returns the settings of the command line, else those that an earlier command stored, and stores them.
    pub(super) fn of(batch: &Batch, args: &WorkArgs) -> Result<(Self, crate::targets::Named), BatchError> {
        let kept = batch.view().note(SETTINGS)?.unwrap_or_default();
        let number = |key: &str| kept.get(key).and_then(Value::as_f64);
        let text = |key: &str| kept.get(key).and_then(Value::as_str).map(str::to_owned);
        let named = args.named.clone().or_kept([text("config"), text("provider"), text("model")]);
        let failures = kept.get("max_failures");
        let kept_failures = match failures {
            Some(Value::String(share)) => share.parse().ok().map(MaxFailures::Share),
            Some(rows) => rows.as_u64().map(MaxFailures::Rows),
            None => None,
        };
        let concurrency =
            kept.get("concurrency").and_then(Value::as_u64).and_then(|rows| u16::try_from(rows).ok());
        let is_provider_batch = text("mode").as_deref() == Some("provider-batch");
        let kept_mode = if is_provider_batch { Mode::ProviderBatch } else { Mode::Direct };
        let is_restate = text("engine").as_deref() == Some("restate");
        if is_restate && args.engine == Some(Engine::InProcess) {
            say!(
                "warning: rows that are open in Restate continue there, so their calls are made and paid for twice"
            );
        }
        let kept_engine = if is_restate { Engine::Restate } else { Engine::InProcess };
        let settings = Self {
            named: named.kept(),
            mode: args.mode.unwrap_or(kept_mode),
            engine: args.engine.unwrap_or(kept_engine),
            ingress: args.ingress.clone().or_else(|| text("ingress")),
            concurrency: args.concurrency.or(concurrency),
            budget: args.budget.or_else(|| number("budget")),
            max_failures: args.max_failures.or(kept_failures),
            retries: args.retries.clone().or_kept(&kept),
            sample: args.sample.or_else(|| kept.get("sample")?.as_u64()?.try_into().ok()).unwrap_or_default(),
            file_rows: args.file_rows.or_else(|| kept.get("file_rows")?.as_u64()?.try_into().ok()),
            poll: args.poll.or_else(|| number("poll")).unwrap_or(30.0),
            grace: args.grace.or_else(|| number("grace")).unwrap_or(30.0),
            allow_failures: args.allow_failures || kept.get("allow_failures") == Some(&Value::Bool(true)),
            pool: args.pool.clone().or_else(|| text("pool")),
            ahead: args.ahead.or_else(|| kept.get("ahead")?.as_u64()?.try_into().ok()),
            token_env: args.token_env.clone().or_else(|| text("token_env")),
        };
        let [config, provider, model] = &settings.named;
        let failures = match settings.max_failures {
            Some(MaxFailures::Share(share)) => Value::from(share.to_string()),
            Some(MaxFailures::Rows(rows)) => Value::from(rows),
            _ => Value::Null,
        };
        let stored = json!({
            "config": config, "provider": provider, "model": model, "concurrency": settings.concurrency,
            "budget": settings.budget, "max_failures": failures,
            "mode": if settings.mode == Mode::ProviderBatch { "provider-batch" } else { "direct" },
            "engine": if settings.engine == Engine::Restate { "restate" } else { "in-process" },
            "ingress": settings.ingress, "retries": settings.retries.retries,
            "retry_delays": settings.retries.retry_delays, "sample": settings.sample, "file_rows": settings.file_rows,
            "poll": settings.poll, "grace": settings.grace, "allow_failures": settings.allow_failures, "pool": settings.pool,
            "ahead": settings.ahead, "token_env": settings.token_env,
        });
        batch.view().set_note(SETTINGS, stored)?;
        Ok((settings, named))
    }
}

/// Opens the rejected rows of a batch, and the open rows of a cancelled one.
pub(super) fn reopen(batch: &Batch) -> Result<(), Failed> {
    let open = batch.view().progress().map_err(failed)?.open();
    let rows = batch.retry().map_err(failed)?;
    match open {
        0 => say!("{rows} rejected rows are processed again"),
        _ => say!("{rows} rejected rows are processed again, and {open} open rows are processed"),
    }
    Ok(())
}

/// Returns the batch with the limits of this process.
pub(super) fn limited(batch: Batch, args: &WorkArgs, settings: &Settings) -> Result<Batch, Failed> {
    if let Some(max) = settings.max_failures {
        batch.stop_at(max);
    }
    if let Some(rows) = args.estimate {
        batch.limit(rows, Some(SEED)).map_err(failed)?;
    } else if let Some(rows) = args.limit {
        batch.limit(rows, None).map_err(failed)?;
    }
    Ok(batch)
}

/// Writes all available results after any end of the engine, and reports the outcome.
pub(super) fn closed(
    batch: &Batch,
    ended: Result<Ended, BatchError>,
    args: &WorkArgs,
    settings: &Settings,
) -> Result<Status, Failed> {
    let closed = batch.close();
    let ended = ended.map_err(failed)?;
    closed.map_err(failed)?;
    report(batch, ended, args, settings)
}

/// Shows the progress on a terminal while the engine works.
pub(super) async fn with_progress<T>(batch: &Batch, work: impl Future<Output = T>) -> T {
    let style = ProgressStyle::with_template("{spinner} {msg}");
    let bar = style.ok().and_then(|style| Bar::open(ProgressBar::new_spinner(), style));
    let mut rate = numbers::Rate::default();
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(Duration::from_millis(500)), if bar.is_some() => {
                if let (Some(bar), Ok(numbers)) = (&bar, numbers::of(batch.view())) {
                    bar.set_message(rate.line(&numbers));
                }
            }
        }
    }
}

/// Reports the outcome.
fn report(batch: &Batch, ended: Ended, args: &WorkArgs, settings: &Settings) -> Result<Status, Failed> {
    let view = batch.view();
    let mut found: BatchOutput = numbers::of(view).map_err(failed)?;
    // The stored state still names this process, which is about to end.
    (found.process, found.state) = (
        None,
        match (found.open, &ended) {
            (0, _) => crate::rows::BatchState::Done,
            (_, Ended::Stopped(Stop::Paused)) => crate::rows::BatchState::Paused,
            (_, Ended::Stopped(Stop::Cancelled)) => crate::rows::BatchState::Cancelled,
            _ => crate::rows::BatchState::Open,
        },
    );
    if args.estimate.is_some() {
        found.estimate = numbers::estimated(view).map_err(failed)?;
    }
    if args.json {
        output::row(&found)?;
    } else {
        say!("{}", numbers::page(&found).trim_end());
    }
    let folder = view.folder().display();
    match ended {
        Ended::Done => Ok(Status::of(found.rejected == 0 || settings.allow_failures)),
        Ended::Stopped(Stop::TooManyFailures) => Err(Failed::no_answer(format!(
            "{} rows were rejected, which is more than --max-failures allows: see rejected-*.jsonl in {folder}; `formwork batch \
             resume {folder} --max-failures 100%` goes on",
            found.rejected
        ))),
        Ended::Stopped(Stop::Cancelled) => {
            Err(Failed::stopped(format!("cancelled; `formwork batch retry {folder}` takes it back")))
        }
        Ended::Interrupted | Ended::Stopped(Stop::Draining) => {
            Err(Failed::stopped(format!("interrupted; `formwork batch resume {folder}` goes on")))
        }
        Ended::Stopped(_) => {
            Err(Failed::stopped(format!("paused; `formwork batch resume {folder}` goes on")))
        }
        Ended::OverBudget(message) => Err(Failed::no_answer(format!(
            "{message}; `formwork batch resume {folder} --budget USD` goes on with more"
        ))),
        Ended::Unavailable(message) => {
            Err(Failed::unavailable(format!("{message}; `formwork batch resume {folder}` goes on")))
        }
        Ended::Config(message) => Err(Failed::usage(message)),
        _ => Err(Failed::usage("the engine ended in a way that this command does not know")),
    }
}
