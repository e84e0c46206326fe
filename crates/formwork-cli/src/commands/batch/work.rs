//! Working on a batch: `run`, `resume` and `retry`.

use std::cell::RefCell;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use formwork::config::Section;
use formwork::providers::Providers;
use formwork_batch::{
    Batch, BatchError, Control, Ended, Engine as _, InProcess, MaxFailures, Pace, Spec, Stop, open_files,
    read_rows, start_anew,
};
use formwork_core::{Context, ErrorKind};
use formwork_extract::CancellationToken;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::{Engine, Mode, ResumeArgs, RunArgs, WorkArgs, contract, failed, numbers, provider, restate};
use crate::exit::{Failed, Status};
use crate::rows::BatchOutput;
use crate::stderr::say;
use crate::targets::Targets;
use crate::terminal::Bar;
use crate::{interrupt, output};

/// The most rows that are open at a time where the number is not fixed.
pub(super) const MAX_ROWS: u16 = 256;

/// The key under which a batch keeps how it is worked on.
const SETTINGS: &str = "settings";

/// The order in which the rows of `--estimate` are picked.
const SEED: u64 = 19;

pub(super) fn start(args: &RunArgs, providers: &Providers) -> Result<Status, Failed> {
    let contract = contract::read(&args.contract)?;
    // A contract that cannot be asked for must not leave a folder behind.
    let schema = contract.get("schema").unwrap_or(&Value::Null);
    formwork_schema::compile(schema)
        .map_err(|error| Failed::usage(format!("{}: {error}", args.contract.display())))?;
    let source = crate::files::name(&args.input);
    let batch = match Batch::open(&args.out) {
        Ok(batch) => {
            let rows = read_rows(&args.input).map_err(failed)?;
            batch.check_rows(rows).map_err(failed)?;
            batch
        }
        Err(BatchError::NoBatch(_)) => {
            if is_within(&args.out, &args.input) {
                return Err(Failed::usage(
                    "the folder of the batch is within the folder of the rows: name another one",
                ));
            }
            let spec = Spec {
                part_rows: args.part_rows,
                dedupe: args.dedupe,
                ..Spec::new(contract.clone(), &source)
            };
            let rows = read_rows(&args.input).map_err(failed)?;
            let batch = Batch::create_fallible(&args.out, &spec, rows).map_err(failed)?;
            if batch.view().progress().map_err(failed)?.rows == 0 {
                say!("warning: {source} has no rows");
            }
            batch
        }
        Err(error) => return Err(failed(error)),
    };
    let difference = contract::difference(&batch.view().spec().contract, &contract);
    let new = match (difference.is_empty(), args.new_contract) {
        (true, _) => None,
        (false, true) => Some(contract),
        (false, false) => {
            let path = args.out.clone();
            return Err(failed(BatchError::OtherContract { path, difference }));
        }
    };
    work(batch, &args.work, providers, new)
}

/// Whether a folder is another one or lies in it.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    outer.is_dir() && whole(inner).starts_with(whole(outer))
}

pub(super) fn resume(args: &ResumeArgs, providers: &Providers, retries: bool) -> Result<Status, Failed> {
    let batch = Batch::open(&args.folder).map_err(failed)?;
    if retries {
        start_anew(batch.view()).map_err(failed)?;
        let rows = batch.retry().map_err(failed)?;
        say!("{rows} rejected rows are asked about once more");
    }
    work(batch, &args.work, providers, None)
}

/// How a batch is worked on, as it is kept for the next process.
pub(super) struct Settings {
    named: [Option<String>; 3],
    pub(super) mode: Mode,
    engine: Engine,
    pub(super) ingress: Option<String>,
    pub(super) concurrency: Option<u16>,
    pub(super) budget: Option<f64>,
    max_failures: Option<MaxFailures>,
}

impl Settings {
    /// Returns what the command line says, else what an earlier one said, and keeps it.
    fn of(batch: &Batch, args: &WorkArgs) -> Result<(Self, crate::targets::Named), BatchError> {
        let kept = batch.view().note(SETTINGS)?.unwrap_or_default();
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
        let kept_engine = if is_restate { Engine::Restate } else { Engine::InProcess };
        let settings = Self {
            named: named.kept(),
            mode: args.mode.unwrap_or(kept_mode),
            engine: args.engine.unwrap_or(kept_engine),
            ingress: args.ingress.clone().or_else(|| text("ingress")),
            concurrency: args.concurrency.or(concurrency),
            budget: args.budget.or_else(|| kept.get("budget").and_then(Value::as_f64)),
            max_failures: args.max_failures.or(kept_failures),
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
            "ingress": settings.ingress,
        });
        batch.view().set_note(SETTINGS, stored)?;
        Ok((settings, named))
    }
}

fn work(
    mut batch: Batch,
    args: &WorkArgs,
    providers: &Providers,
    new_contract: Option<Value>,
) -> Result<Status, Failed> {
    if batch.view().wanted().map_err(failed)? == Control::Stop(Stop::Cancelled) {
        return Err(failed(BatchError::Cancelled(batch.view().folder().to_owned())));
    }
    batch.view().want(Control::Run).map_err(failed)?;
    let (settings, named) = Settings::of(&batch, args).map_err(failed)?;
    let files = open_files(batch.view()).map_err(failed)?;
    if settings.mode == Mode::Direct && files > 0 {
        say!(
            "warning: {files} files of this batch are with a provider; --mode direct asks for their rows again and pays for \
             both: use --mode provider-batch to wait for them"
        );
    }
    if settings.engine == Engine::Restate {
        return restate::work(batch, args, &settings, new_contract);
    }
    let progress = batch.view().progress().map_err(failed)?;
    let left = settings.budget.map(|budget| (budget - progress.micro_usd as f64 / 1e6).max(0.0));
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        let sections = RefCell::new(Vec::new());
        let noted = |section: Section| {
            sections.borrow_mut().push(section.clone());
            section
        };
        let mut opened = Targets::limited(named, left).open_as(providers, args.verbose, noted).await?;
        let files = match settings.mode {
            Mode::Direct => None,
            Mode::ProviderBatch => Some(provider::files(&mut opened, &sections.into_inner())?),
        };
        let fixed = settings.concurrency.or(opened.is_in_process.then_some(1));
        let rows = fixed.unwrap_or(MAX_ROWS);
        let old = batch.view().spec().contract.clone();
        let current = new_contract.as_ref().unwrap_or(&old);
        let mut paces: Vec<Pace> = Vec::new();
        let extractor =
            contract::extractor(current, opened, &mut paces, u32::from(rows)).map_err(|error| match error
                .kind()
            {
                ErrorKind::Schema | ErrorKind::Config => Failed::usage(error),
                kind => Failed::of(kind, false, error),
            })?;
        if let Some(new) = &new_contract {
            let alike = contract::asks_alike(&old, new);
            let plan = Arc::clone(extractor.plan());
            let keeps = |value: &Value| alike && plan.contract().judge(value, &Context::EMPTY).is_accepted();
            let opened = batch.replace_contract(new.clone(), keeps).map_err(failed)?;
            say!("the contract is replaced: {opened} rows start anew");
        }
        let batch = Arc::new(limited(batch, args, &settings)?);
        let ended = match files {
            Some(files) => {
                let engine = files.engine(extractor);
                shown(&batch, engine.run(Arc::clone(&batch) as _, &cancel)).await
            }
            None => {
                let mut engine = InProcess::new(extractor, usize::from(rows));
                if fixed.is_none() {
                    engine = engine.with_paces(paces);
                }
                shown(&batch, engine.run(Arc::clone(&batch) as _, &cancel)).await
            }
        };
        closed(&batch, ended, args)
    })
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

/// Writes what there is of results, however the engine ended, and says what came of it.
pub(super) fn closed(
    batch: &Batch,
    ended: Result<Ended, BatchError>,
    args: &WorkArgs,
) -> Result<Status, Failed> {
    let closed = batch.close();
    let ended = ended.map_err(failed)?;
    closed.map_err(failed)?;
    report(batch, ended, args)
}

/// Shows the progress on a terminal while the engine works.
pub(super) async fn shown<T>(batch: &Batch, work: impl Future<Output = T>) -> T {
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

/// Says what came of it.
fn report(batch: &Batch, ended: Ended, args: &WorkArgs) -> Result<Status, Failed> {
    let view = batch.view();
    let mut found: BatchOutput = numbers::of(view).map_err(failed)?;
    // This process is about to end.
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
        if let Some(estimate) = &found.estimate {
            let amount = |number| numbers::amount(number, estimate.unit);
            say!(
                "estimate  {} for all {} rows (90 %: {} to {}), by {} of them",
                amount(estimate.expected),
                numbers::grouped(estimate.rows),
                amount(estimate.low),
                amount(estimate.high),
                numbers::grouped(estimate.sampled),
            );
        }
    }
    let folder = view.folder().display();
    match ended {
        Ended::Done => Ok(Status::of(found.rejected == 0 || args.allow_failures)),
        Ended::Stopped(Stop::TooManyFailures) => Err(Failed::no_answer(format!(
            "{} rows were rejected, which is more than --max-failures allows: see rejected-*.jsonl in {folder}; `formwork batch \
             resume {folder} --max-failures 100%` goes on",
            found.rejected
        ))),
        Ended::Stopped(Stop::Cancelled) => {
            Err(Failed::stopped(format!("cancelled; `formwork batch retry {folder}` takes it back")))
        }
        Ended::Stopped(_) => {
            Err(Failed::stopped(format!("paused; `formwork batch resume {folder}` goes on")))
        }
        Ended::Interrupted => {
            Err(Failed::stopped(format!("interrupted; `formwork batch resume {folder}` goes on")))
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
