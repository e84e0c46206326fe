//! `formwork runs`: lists recorded runs with their calls, results and retries.

use std::fmt::Write as _;
use std::io;

use clap::Subcommand;
use clap::builder::TypedValueParser;
use formwork_core::Time;
use formwork_ledger::{Feedback, Ledger, Prune, RecordId, RunDetail, RunOutcome, RunQuery, StoredRun};
use serde_json::json;

use crate::exit::{Failed, Status};
use crate::flags::one_of;
use crate::ledger::{Place, dollars, duration, failed, moment, now};
use crate::stderr::say;
use crate::{health, output};

const AFTER_HELP: &str = "\
Examples:
  formwork extract --ledger runs.db -s \"name, age: int\" \"Maria Lindqvist, 34\"
  formwork runs list --ledger runs.db
  formwork runs list --retried --class type --since 24h
  formwork runs list --unsure
  formwork runs show run_06x4d2k8w2m4q
  formwork runs export --since 7d > runs.jsonl
  formwork runs feedback run_06x4d2k8w2m4q good
  formwork runs prune --older-than 90d

Every command that calls models records its runs with --ledger FILE, or in the file of FORMWORK_LEDGER. The file is an SQLite
database with views for your own queries: runs, attempts, violations, reasons, hours, spend.

Exit codes:
  0    done
  1    there is no such run or key
  2    wrong usage, or a file that is no ledger or not readable";

/// List, show, export and delete recorded runs
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

const LIST: &str = "\
Examples:
  formwork runs list
  formwork runs list --outcome rejected --model gpt-5.4-mini --since 24h
  formwork runs list --class type --path \"$.items[*].price\" --json

What earlier calls showed about providers and changes later calls is printed to standard error; see `formwork doctor`.

Exit codes: 0 the runs are printed, 1 there is no such key, 2 wrong usage, or a file that is no ledger.";

const SHOW: &str = "\
Examples:
  formwork runs show run_06x4d2k8w2m4q
  formwork runs show run_06x4d2k8w2m4q --json

Exit codes: 0 the run is printed, 1 there is no such run, 2 wrong usage, or a file that is no ledger.";

const EXPORT: &str = "\
Examples:
  formwork runs export > runs.jsonl
  formwork runs export --feedback bad --since 30d > bad.jsonl

Each line is one complete run, newest first; `formwork runs show --json` prints the same.

Exit codes: 0 the runs are printed, 1 there is no such key, 2 wrong usage, or a file that is no ledger.";

const PRUNE: &str = "\
Examples:
  formwork runs prune --older-than 90d
  formwork runs prune --older-than 7d --bodies

The spending of keys is kept. The hourly sums are kept unless you add --rollups.

Exit codes: 0 done, 2 wrong usage, or a file that is no ledger.";

const FEEDBACK: &str = "\
Examples:
  formwork runs feedback run_06x4d2k8w2m4q good

Exit codes: 0 done, 1 there is no such run, 2 wrong usage, or a file that is no ledger.";

#[derive(Subcommand)]
enum Action {
    /// List runs, newest first
    #[command(after_help = LIST)]
    List {
        #[command(flatten)]
        filter: Filter,
        /// Maximum number of runs
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// List the runs before this id, the last one of the previous page
        #[arg(long, value_name = "RUN")]
        before: Option<RecordId>,
    },
    /// Show one run with its calls
    #[command(after_help = SHOW)]
    Show {
        /// The id of the run
        run: RecordId,
    },
    /// Print runs as JSON Lines
    #[command(after_help = EXPORT)]
    Export {
        #[command(flatten)]
        filter: Filter,
    },
    /// Delete old runs
    #[command(after_help = PRUNE)]
    Prune {
        /// The minimum age of the runs, such as 90d, 12h or 30m
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        older_than: u64,
        /// Delete only the texts of prompts and answers, and keep the runs
        #[arg(long)]
        bodies: bool,
        /// Delete also the hourly sums
        #[arg(long, conflicts_with = "bodies")]
        rollups: bool,
    },
    /// Record whether the answer of a run was good or bad
    #[command(after_help = FEEDBACK)]
    Feedback {
        /// The id of the run
        run: RecordId,
        /// Your verdict
        #[arg(value_parser = feedback())]
        feedback: Feedback,
    },
}

fn feedback() -> impl TypedValueParser<Value = Feedback> {
    one_of(["good", "bad"])
}

/// The filter of runs. A run must match all given options.
#[derive(Debug, Clone, clap::Args)]
struct Filter {
    /// Runs of the last 24h, 30m, 7d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<u64>,
    /// Runs with this outcome: ok, fallback, rejected, not_stated, refused, unavailable, deadline, budget, cancelled,
    /// schema, config
    #[arg(long, value_parser = outcome)]
    outcome: Option<RunOutcome>,
    /// Runs with the contract of this name or digest
    #[arg(long, value_name = "NAME")]
    contract: Option<String>,
    /// Runs whose last call used this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Runs from this command or endpoint
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Runs with the key of this name
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Runs of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Runs with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Runs with a violation or a failed call of this class, such as `type` or `timeout`
    #[arg(long)]
    class: Option<String>,
    /// Runs with a violation at this path; `[*]` is any index
    #[arg(long)]
    path: Option<String>,
    /// Runs with this text in their message, user, tags, contract, model or target
    #[arg(long)]
    text: Option<String>,
    /// Runs with this feedback
    #[arg(long, value_parser = feedback())]
    feedback: Option<Feedback>,
    /// Runs with more than one call
    #[arg(long)]
    retried: bool,
    /// Runs with warnings, or with a value that the text does not state, that was not found in it (of the service: only with --ledger-bodies), that was converted or finished, or that is the fallback's
    #[arg(long)]
    unsure: bool,
}

fn outcome(text: &str) -> Result<RunOutcome, String> {
    let names = || RunOutcome::names().collect::<Vec<_>>().join(", ");
    RunOutcome::from_name(text).ok_or_else(|| format!("expected one of {}", names()))
}

/// Returns the time a number of milliseconds ago.
fn ago(millis: u64) -> Time {
    Time(now().0.saturating_sub(millis))
}

impl Filter {
    fn query(&self, ledger: &Ledger) -> Result<RunQuery, Failed> {
        let key = self.key.as_deref().map(|name| ledger.key(name)).transpose().map_err(failed)?;
        Ok(RunQuery {
            since: self.since.map(ago),
            outcome: self.outcome,
            contract: self.contract.clone(),
            model: self.model.clone(),
            source: self.source.clone(),
            key: key.map(|key| key.id),
            user: self.user.clone(),
            tag: self.tag.clone(),
            class: self.class.clone(),
            path: self.path.clone(),
            text: self.text.clone(),
            feedback: self.feedback,
            retried: self.retried,
            unsure: self.unsure,
            ..RunQuery::default()
        })
    }
}

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    let ledger = match &args.action {
        Action::Prune { .. } | Action::Feedback { .. } => args.place.open()?,
        _ => args.place.read()?,
    };
    match &args.action {
        Action::List { filter, limit, before } => {
            let query = RunQuery { limit: usize::from(*limit), before: *before, ..filter.query(&ledger)? };
            let page = ledger.runs(&query).map_err(failed)?;
            for run in &page.runs {
                output::either(args.json, run, || words(run) + "\n")?;
            }
            match page.next {
                Some(next) => say!("there are more: add --before {next}"),
                None if page.runs.is_empty() && !args.json => say!("there are no such runs"),
                None => {}
            }
            for restriction in health::in_force() {
                say!("in force: {}", health::line(&restriction));
            }
        }
        Action::Show { run } => {
            let found = ledger.run(*run).map_err(failed)?;
            let found = found.ok_or_else(|| Failed::no_answer(formwork_ledger::Error::NoSuchRun(*run)))?;
            output::either(args.json, &found, || pages(&found))?;
        }
        Action::Export { filter } => {
            ledger.export(&filter.query(&ledger)?, io::BufWriter::new(io::stdout().lock()))?;
        }
        Action::Prune { older_than, bodies, rollups } => {
            let before = Some(ago(*older_than));
            let prune = Prune {
                runs: before.filter(|_| !bodies),
                bodies: before.filter(|_| *bodies),
                rollups: before.filter(|_| *rollups),
                ..Prune::default()
            };
            let pruned = ledger.prune(prune).map_err(failed)?;
            if args.json {
                output::row(&pruned)?;
            } else if *bodies {
                output::line(format_args!("deleted the texts of {} runs", pruned.bodies))?;
            } else {
                output::line(format_args!(
                    "deleted {} runs and {} hourly sums",
                    pruned.runs, pruned.rollups
                ))?;
            }
        }
        Action::Feedback { run, feedback } => {
            ledger.feedback(*run, *feedback).map_err(failed)?;
            if args.json {
                output::row(&json!({"id": run, "feedback": feedback}))?;
            }
        }
    }
    Ok(Status::Ok)
}

fn words(run: &StoredRun) -> String {
    let StoredRun { id, started, ended, outcome, source, model, calls, .. } = run;
    let mut words = format!("{id}  {}  {outcome}  {source}  {model}", moment(*started));
    let seconds = ended.since(*started).as_secs_f64();
    let calls = if *calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    let cost = dollars(run.micro_usd);
    let _ = write!(words, "  {calls}, {seconds:.1} s, {cost}");
    for text in
        [&run.contract, &run.key_name, &run.user, &run.feedback].into_iter().flatten().chain(&run.tags)
    {
        let _ = write!(words, "  {text}");
    }
    printable(&words)
}

/// Returns a text without control characters for terminals, because clients and models wrote it.
fn printable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() && char != '\t' { '\u{fffd}' } else { char }).collect()
}

fn pages(detail: &RunDetail) -> String {
    let mut text = words(&detail.run);
    text.push('\n');
    let mut add = |indent: usize, line: &str| {
        for line in line.lines() {
            let _ = writeln!(text, "{:indent$}{}", "", printable(line));
        }
    };
    if let Some(message) = &detail.run.message {
        add(2, message);
    }
    if let Some(request) = &detail.request {
        add(2, "request:");
        add(4, request);
    }
    for warning in &detail.run.warnings {
        add(2, &format!("warning: {warning}"));
    }
    for path in &detail.run.not_stated {
        add(2, &format!("not stated: {path}"));
    }
    if let Some(trust) = &detail.run.trust {
        add(2, &format!("history: {trust}"));
    }
    if let Some(evidence) = &detail.run.evidence {
        add(2, &format!("evidence: {evidence}"));
    }
    for call in &detail.calls {
        let took = call.ended.since(call.started).as_secs_f64();
        let (input, output) = (call.usage.input_tokens, call.usage.output_tokens);
        let estimated = if call.usage.estimated { " (estimated)" } else { "" };
        add(
            2,
            &format!(
                "attempt {}: {}  {} ({}), {}, {input} + {output} tokens{estimated}, {took:.1} s, {}",
                call.number,
                call.class,
                call.target,
                call.model,
                call.mode,
                dollars(call.micro_usd)
            ),
        );
        if let Some(message) = &call.message {
            add(4, message);
        }
        for violation in &call.violations {
            add(4, &violation.message);
        }
        if let Some(answer) = &call.answer {
            add(4, "answer:");
            add(6, answer);
        }
    }
    text
}
