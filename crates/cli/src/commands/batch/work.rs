//! Working on a batch: `run`, `resume` and `retry`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use formwork::config::Section;
use formwork::providers::Providers;
use formwork_batch::{
    Batch, BatchError, Columns, Control, Engine as _, InProcess, MAX_INPUT, Pace, Question, Rows, Spec, Stop,
    open_files, read_rows,
};
use formwork_core::{Context, ErrorKind};
use formwork_extract::CancellationToken;
use formwork_skill::Template;
use serde_json::{Map, Value};

use super::contract::New;
use super::session::{MAX_ROWS, Settings, closed, limited, reopen, with_progress};
use super::{Engine, Mode, ResumeArgs, RunArgs, WorkArgs, contract, failed, provider, restate};
use crate::commands::eval::calibration;
use crate::exit::{Failed, Status};
use crate::flags::set;
use crate::interrupt::{self, Drain};
use crate::stderr::say;
use crate::targets::Targets;
use crate::{configuration, health, log};

/// The end of the message about a template that may name such a column.
const NAMES: &str = "; a template names columns of the letters a to z, digits and `_`: rename other columns";

pub(super) fn start(args: &RunArgs, providers: &Providers) -> Result<Status, Failed> {
    let contract = contract::read(&args.contract, args.any)?;
    // A contract that the targets cannot express must not leave a folder behind.
    let (schema, warning) = crate::files::unwrapped(contract.get("schema").cloned().unwrap_or_default());
    let file = args.contract.display();
    warning.iter().for_each(|warning| say!("warning: {file}: {warning}"));
    formwork_schema::compile(&schema)
        .and_then(|_| crate::files::says_something(&schema, args.any))
        .map_err(|error| Failed::usage(format!("{file}: {error}")))?;
    let source = crate::files::name(&args.source);
    let columns = columns(args)?;
    let batch = match Batch::open(&args.out) {
        Ok(mut batch) => {
            let rows = read_rows(&args.source, &columns).map_err(failed)?;
            if args.new_rows {
                new_rows(&mut batch, &source, rows)?;
            } else {
                batch.check_rows(rows).map_err(failed)?;
            }
            if let Some(store) = &args.store
                && std::path::absolute(store).ok() != std::path::absolute(batch.view().store()).ok()
            {
                return Err(Failed::usage(format!(
                    "the answers of this batch are in {}: leave out --store, or name another folder",
                    batch.view().store().display()
                )));
            }
            batch
        }
        Err(BatchError::NoBatch(_)) => {
            if is_within(&args.out, &args.source) {
                return Err(Failed::usage(
                    "the folder of the batch is within the folder of the rows: name another one",
                ));
            }
            let spec = Spec {
                part_rows: args.part_rows,
                dedupe: args.dedupe,
                store: store_of(args, providers)?,
                ..Spec::new(contract.clone(), &source)
            };
            let rows = read_rows(&args.source, &columns).map_err(failed)?;
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
        (false, true) => Some(New { contract, yes: args.yes }),
        (false, false) => {
            let path = args.out.clone();
            return Err(failed(BatchError::OtherContract { path, difference }));
        }
    };
    work(batch, &args.work, providers, false, new)
}

/// Returns the columns of the rows that the command names.
fn columns(args: &RunArgs) -> Result<Columns, Failed> {
    let has_columns = args.id.is_some() || args.input.is_some() || args.template.is_some();
    if has_columns && args.source.is_dir() {
        return Err(Failed::usage(
            "--id, --input and --template name columns, and a folder has none: leave them out, or name a table",
        ));
    }
    let mut columns = Columns::default();
    columns = set(columns, args.id.clone(), Columns::with_id);
    columns = set(columns, args.input.clone(), Columns::with_input);
    let Some(text) = &args.template else { return Ok(columns) };
    let template = Template::new(text).map_err(|message| {
        let names = if text.is_ascii() { "" } else { NAMES };
        Failed::usage(format!("--template {text:?}: {message}{names}"))
    })?;
    let reads = template.variables().to_vec();
    let render = move |row: &Map<String, Value>| {
        template.render(row, MAX_INPUT).map_err(|message| format!("--template: {message}"))
    };
    Ok(columns.with_render(reads, Arc::new(render)))
}

/// Returns the file for the answers of a new batch; `None` for one in the folder of the batch.
fn store_of(args: &RunArgs, providers: &Providers) -> Result<Option<PathBuf>, Failed> {
    if let Some(store) = &args.store {
        let is_own = std::path::absolute(store).ok() == std::path::absolute(args.out.join("store.db")).ok();
        return Ok(Some(store.clone()).filter(|_| !is_own));
    }
    let config = configuration::find(args.work.named.config(), providers)?;
    formwork::store::default(config.as_ref()).map_err(Failed::usage)
}

/// Replaces the rows of a batch by those of its input.
fn new_rows(batch: &mut Batch, source: &str, rows: Rows) -> Result<(), Failed> {
    let files = open_files(batch.view()).map_err(failed)?;
    if files > 0 {
        return Err(Failed::usage(format!(
            "{files} files of this batch are open at a provider: continue it without --new-rows until their results are there"
        )));
    }
    let kept = batch.replace_rows(source, rows).map_err(failed)?;
    let rows = batch.view().progress().map_err(failed)?.rows;
    say!("{kept} rows are the same as before, {} are new", rows.saturating_sub(kept));
    Ok(())
}

/// Whether a folder is another one or lies in it.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    outer.is_dir() && whole(inner).starts_with(whole(outer))
}

pub(super) fn resume(args: &ResumeArgs, providers: &Providers, retries: bool) -> Result<Status, Failed> {
    let batch = Batch::open(&args.folder).map_err(failed)?;
    work(batch, &args.work, providers, retries, None)
}

fn work(
    mut batch: Batch,
    args: &WorkArgs,
    providers: &Providers,
    reopened: bool,
    new: Option<New>,
) -> Result<Status, Failed> {
    if !reopened && batch.view().control().map_err(failed)? == Control::Stop(Stop::Cancelled) {
        return Err(failed(BatchError::Cancelled(batch.view().folder().to_owned())));
    }
    if !reopened {
        batch.view().set_control(Control::Run).map_err(failed)?;
    }
    let (settings, named) = Settings::of(&batch, args).map_err(failed)?;
    let files = open_files(batch.view()).map_err(failed)?;
    if settings.mode == Mode::Direct && files > 0 {
        say!(
            "warning: {files} files of this batch are open at a provider; --mode direct requests their rows again, so both are paid for: \
             use --mode provider-batch to wait for the files"
        );
    }
    if settings.engine == Engine::Restate {
        return restate::work(batch, args, &settings, &named, providers, reopened, new);
    }
    // The pauses of a batch whose provider is down are lines of the log.
    log::start(false);
    let progress = batch.view().progress().map_err(failed)?;
    // A call whose result is not known may have been paid for. The engine for files reserves the costs of those that are open itself.
    let open = if settings.mode == Mode::Direct { progress.reserved_micro_usd } else { 0 };
    let spent = (progress.micro_usd + progress.uncertain_micro_usd + open) as f64 / 1e6;
    let left = settings.budget.map(|budget| (budget - spent).max(0.0));
    let (cancel, drain) = (CancellationToken::new(), CancellationToken::new());
    batch.drain_on(drain.clone());
    let grace = Duration::from_secs_f64(settings.grace);
    let begin = move || {
        say!(
            "ending: rows in progress have {} s to finish; once more drops their calls",
            grace.as_secs_f64()
        );
        drain.cancel();
    };
    interrupt::drained(&cancel, Some(Drain { grace, begin: Box::new(begin) }), async {
        let sections = RefCell::new(Vec::new());
        let noted = |section: Section| {
            sections.borrow_mut().push(section.clone());
            section
        };
        let targets = Targets::limited(named, settings.retries.clone(), left);
        let mut opened = targets.open_as(providers, args.verbose, noted).await?;
        calibration::open(&mut opened, None, targets.name(), 0)?;
        health::keep_targets(batch.view(), &opened.backends).map_err(failed)?;
        let files = match settings.mode {
            Mode::Direct => None,
            Mode::ProviderBatch => Some(provider::files(&mut opened, &sections.into_inner(), providers)?),
        };
        let models = opened.models();
        let fixed = settings.concurrency.or(opened.is_in_process.then_some(1));
        let rows = fixed.unwrap_or(MAX_ROWS);
        let old = batch.view().spec().contract.clone();
        let current = new.as_ref().map_or(&old, |new| &new.contract);
        let mut paces: Vec<Pace> = Vec::new();
        let extractor =
            contract::extractor(current, opened, &mut paces, u32::from(rows)).map_err(|error| match error
                .kind()
            {
                ErrorKind::Schema | ErrorKind::Config => Failed::usage(error),
                kind => Failed::of(kind, false, error),
            })?;
        // Whatever cannot be processed is left as it is.
        if reopened {
            reopen(&batch)?;
        }
        let plan = Arc::clone(extractor.plan());
        let satisfies = |value: &Value, source: &str| {
            plan.contract().judge(value, &Context { source, ..Context::EMPTY }).is_accepted()
        };
        let question = Question::of(&extractor).with_sample(settings.sample).with_models(models);
        contract::ask(&mut batch, question, new.as_ref(), satisfies)?;
        let batch = Arc::new(limited(batch, args, &settings)?);
        let ended = match files {
            Some(files) => {
                let engine = files.engine(extractor, &settings);
                with_progress(&batch, engine.run(Arc::clone(&batch) as _, &cancel)).await
            }
            None => {
                let mut engine = InProcess::new(extractor, usize::from(rows));
                if fixed.is_none() {
                    engine = engine.with_paces(paces);
                }
                with_progress(&batch, engine.run(Arc::clone(&batch) as _, &cancel)).await
            }
        };
        closed(&batch, ended, args, &settings)
    })
}
