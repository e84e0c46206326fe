//! `formwork eval`: compares answers with gold.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use formwork_eval::{Baseline, Evaluation, Gate, Profile, Report, RowScore, page};
use formwork_schema::{Compiled, Formats, compile_with};
use serde_json::Value;

use crate::exit::{Failed, Status};
use crate::flags::one_of;
use crate::jsonl::{BadRow, numbered};
use crate::rows::{EvalAnswer, EvalGold};
use crate::stderr::say;
use crate::{files, output, terminal};

const AFTER_HELP: &str = "\
Examples:
  formwork eval gold.jsonl --answers answers.jsonl
  formwork eval gold.jsonl --answers answers.jsonl --min '$.total >= 0.98' --min 'score >= 0.9'
  formwork eval gold.jsonl --answers new.jsonl --baseline old.jsonl --html eval.html
  formwork eval gold.jsonl --answers answers.jsonl --profile docubench --json > result.json
      gold:    {\"id\", \"expected\", \"schema\"?, \"input\"? or \"file\"?}
      answers: {\"id\", \"value\"}, null for no answer
      result:  {\"score\", \"interval\", \"rows\": [{\"id\", \"score\"}], \"paths\": [{\"path\", \"right\", \"wrong\", \"invented\",
               \"missing\", \"not_stated\", \"accuracy\", \"interval\"}], \"baseline\"?, \"gates\"?, \"notes\"?, \"worst\"?}

Profiles:
  default     the score of a document is the share of right leaves. The schema says how a leaf is compared: `x-formwork-compare` is
              exact, number, {\"as\": \"number\", \"tolerance\": 0.01}, date, text, set or list. Otherwise texts are compared without
              case, white space and punctuation, formats `date` and `date-time` as dates, `enum` and `const` exactly, and the
              items of lists are assigned to each other in any order so that as many leaves as possible are right
  docubench   the rules of DocuBench's scorer

The score is the mean over all documents. Intervals are 95 % intervals by resampling documents.

Exit codes: 0 all gates are passed, 1 a gate failed, the whole interval of the difference from the baseline is below 0, or a row cannot
be scored (unless --allow-failures), 2 a file cannot be used.";

/// Compare answers with hand-verified values
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The gold: one JSON object per line; `-` is standard input
    gold: PathBuf,
    /// The answers: one JSON object per line with `id` and `value`
    #[arg(long, short, value_name = "FILE")]
    answers: PathBuf,
    /// The profile by which documents are scored, see below
    #[arg(long, default_value = "default", value_parser = one_of::<Profile, 2>(["default", "docubench"]))]
    profile: Profile,
    /// The JSON Schema of gold rows without `schema`
    #[arg(long, short)]
    schema: Option<PathBuf>,
    /// An earlier result of `--json`, or other answers to the same gold, to compare with
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// A condition on the score or on the accuracy of a path and all paths below it; can be repeated
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Gate>)]
    min: Vec<Gate>,
    /// Write the result as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The seed of the resamples of the intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Exit with 0 even if rows cannot be scored
    #[arg(long)]
    allow_failures: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The maximum number of notes on standard error, and in the result.
const SHOWN_NOTES: usize = 10;
const MAX_NOTES: usize = 1000;

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    let inputs = [&args.gold, &args.answers].into_iter().chain(&args.schema).chain(&args.baseline);
    files::one_standard_input(&inputs.map(PathBuf::as_path).collect::<Vec<_>>())?;
    let mut notes = Notes::default();
    let common = args.schema.as_deref().map(files::json).transpose()?;
    let answers = Answers::read(&args.answers, &mut notes)?;
    let mut baseline =
        args.baseline.as_deref().map(|path| Earlier::read(path, args.profile, &mut notes)).transpose()?;
    let mut evaluation = Evaluation::new(args.profile);
    let (mut schemas, mut seen) = (Schemas::default(), HashSet::new());
    let progress = terminal::count("rows", None);
    for row in numbered::<EvalGold>(&args.gold)? {
        let (line, row) = row?;
        let place = format!("{}:{line}", files::name(&args.gold));
        let row = match row {
            Ok(row) => row,
            Err(BadRow { message, .. }) => {
                notes.failed(message);
                continue;
            }
        };
        let Some(expected) = &row.expected else {
            notes.failed(format!("{place}: the row has no `expected`: it is not scored"));
            continue;
        };
        let key = row.id.to_string();
        if !seen.insert(key.clone()) {
            notes.failed(format!("{place}: the id {key} is that of an earlier row: it is not scored"));
            continue;
        }
        if let Some(problem) = without_text(&row, &args.gold) {
            notes.add(format!("{place}: {problem}"));
        }
        let schema = row.schema.as_ref().or(common.as_ref());
        let answer = answers.values.get(&key);
        let checks = [
            (place.clone(), "the expected value", Some(expected)),
            (
                answer.map(|(place, _)| place.clone()).unwrap_or_default(),
                "the answer",
                answer.map(|(_, value)| value),
            ),
        ];
        for (at, what, value) in checks {
            if let Some(problem) = schema
                .zip(value.filter(|value| !value.is_null()))
                .and_then(|(schema, value)| schemas.violation(schema, value))
            {
                notes.add(format!("{at}: {what} {problem}: it is scored nevertheless"));
            }
        }
        if answer.is_none() {
            notes.add(format!(
                "{place}: {} has no answer with the id {key}: all of its values are missing",
                files::name(&args.answers)
            ));
        }
        match evaluation.add(row.id.clone(), schema, expected, answer.map(|(_, value)| value)) {
            Ok(_) => {}
            Err(problem) => {
                notes.failed(format!("{place}: {problem}: the row is not scored"));
                continue;
            }
        }
        if let Some(Earlier::Answers(answers, evaluation)) = &mut baseline {
            let answer = answers.values.get(&key).map(|(_, value)| value);
            evaluation.add(row.id, schema, expected, answer).map_err(Failed::usage)?;
        }
        progress.iter().for_each(|bar| bar.inc(1));
    }
    drop(progress);
    if evaluation.is_empty() {
        let first = notes.all.first().map(|note| format!(": {note}")).unwrap_or_default();
        return Err(Failed::usage(format!("{}: there is no row to score{first}", files::name(&args.gold))));
    }
    let mut unknown: Vec<&String> =
        answers.values.iter().filter(|(id, _)| !seen.contains(*id)).map(|(_, (place, _))| place).collect();
    unknown.sort_unstable();
    if let Some(first) = unknown.first() {
        notes.add(format!(
            "{first}: no gold row has the id of this answer ({} such answers): it is ignored",
            unknown.len()
        ));
    }
    let mut report = evaluation.report(args.seed);
    if let Some(earlier) = baseline {
        let rows = earlier.rows(args.seed);
        let nothing = || Failed::usage("the baseline has no document in common with the gold");
        report.baseline = Some(Baseline::new(&rows, &report.rows, args.seed).ok_or_else(nothing)?);
    }
    report.gates =
        args.min.iter().map(|gate| gate.check(&report)).collect::<Result<_, _>>().map_err(Failed::usage)?;
    let failures = notes.failures;
    report.notes = notes.finish();
    if let Some(path) = &args.html {
        let page = page(&report, &files::name(&args.gold));
        fs::write(path, page)
            .map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))?;
    }
    output::either(args.json, &report, || words(&report))?;
    let is_worse = report.baseline.as_ref().is_some_and(Baseline::is_worse);
    let passed = report.gates.iter().all(|gate| gate.ok) && !is_worse;
    Ok(Status::of(passed && (failures == 0 || args.allow_failures)))
}

/// Remarks on the files, with their lines.
#[derive(Default)]
struct Notes {
    all: Vec<String>,
    count: usize,
    /// The number of rows that are not scored.
    failures: usize,
}

impl Notes {
    fn add(&mut self, note: String) {
        self.count += 1;
        if self.count <= SHOWN_NOTES {
            say!("warning: {note}");
        }
        if self.all.len() < MAX_NOTES {
            self.all.push(note);
        }
    }

    fn failed(&mut self, note: String) {
        self.failures += 1;
        self.add(note);
    }

    fn finish(mut self) -> Vec<String> {
        if self.count > SHOWN_NOTES {
            say!("warning: {} more notes, in `notes` of --json", self.count - SHOWN_NOTES);
        }
        if self.count > self.all.len() {
            self.all.push(format!("{} more notes", self.count - self.all.len()));
        }
        self.all
    }
}

/// The answers of a file by their id, each with its file and line.
struct Answers {
    values: HashMap<String, (String, Value)>,
}

impl Answers {
    fn read(path: &Path, notes: &mut Notes) -> Result<Self, Failed> {
        let mut values = HashMap::new();
        for row in numbered::<EvalAnswer>(path)? {
            let (line, row) = row?;
            let place = format!("{}:{line}", files::name(path));
            match row {
                Err(BadRow { message, .. }) => notes.failed(message),
                Ok(EvalAnswer { value: None, .. }) => {
                    notes.failed(format!("{place}: the row has no `value`: write null for no answer"));
                }
                Ok(EvalAnswer { id, value: Some(value) }) => {
                    let id = id.to_string();
                    if let Some((first, _)) = values.get(&id) {
                        notes.failed(format!("{place}: the id {id} is that of {first}, which counts"));
                    } else {
                        values.insert(id, (place, value));
                    }
                }
            }
        }
        Ok(Self { values })
    }
}

/// A baseline.
enum Earlier {
    /// The result of an earlier evaluation.
    Rows(Vec<RowScore>),
    /// Other answers to the same gold.
    Answers(Answers, Evaluation),
}

impl Earlier {
    fn read(path: &Path, profile: Profile, notes: &mut Notes) -> Result<Self, Failed> {
        if path == Path::new("-") {
            return Err(Failed::usage("the baseline cannot be standard input: name a file"));
        }
        if let Ok(report) = serde_json::from_slice::<Report>(&files::bytes(path)?) {
            return Ok(Self::Rows(report.rows));
        }
        Ok(Self::Answers(Answers::read(path, notes)?, Evaluation::new(profile)))
    }

    fn rows(self, seed: u64) -> Vec<RowScore> {
        match self {
            Self::Rows(rows) => rows,
            Self::Answers(_, evaluation) => evaluation.report(seed).rows,
        }
    }
}

/// The compiled schemas of earlier rows, because rows often repeat schemas.
#[derive(Default)]
struct Schemas(HashMap<String, Result<Arc<Compiled>, String>>);

impl Schemas {
    /// Returns why a value does not satisfy a schema.
    fn violation(&mut self, schema: &Value, value: &Value) -> Option<String> {
        let key = schema.to_string();
        if self.0.len() > 64 && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let compile = || compile_with(schema, Formats::Annotate).map_err(|error| error.to_string());
        match self.0.entry(key).or_insert_with(compile) {
            Err(error) => Some(format!("cannot be checked: {error}")),
            Ok(compiled) => {
                let violations = files::violations(compiled, value);
                let more = violations.len().saturating_sub(1);
                let rest = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                violations.first().map(|first| format!("violates its schema: {first}{rest}"))
            }
        }
    }
}

/// Returns why the input of a gold row has no text.
fn without_text(row: &EvalGold, gold: &Path) -> Option<String> {
    if row.input.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Some("the input has no text".to_owned());
    }
    let name = row.file.as_ref().filter(|_| row.input.is_none())?;
    let path = gold.parent().unwrap_or(Path::new("")).join(name);
    match fs::metadata(&path) {
        Ok(file) if file.len() > 0 => None,
        Ok(_) => Some(format!("the file {name} has no text")),
        Err(error) => Some(format!("the file {name} cannot be read: {error}")),
    }
}

/// Returns the result for people.
fn words(report: &Report) -> String {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let range = |range: Option<[f64; 2]>| {
        range.map(|[low, high]| format!("{} to {}", percent(low), percent(high))).unwrap_or_default()
    };
    let mut text = format!(
        "score {} % ({}), {} documents",
        percent(report.score),
        range(report.interval),
        report.rows.len()
    );
    if report.unanswered > 0 {
        text.push_str(&format!(", {} without an answer", report.unanswered));
    }
    text.push_str("\n\n");
    let header = ["path", "accuracy", "95 %", "right", "wrong", "invented", "missing", "not stated"]
        .map(str::to_owned);
    let row = |path: &formwork_eval::PathReport| {
        let tally = path.tally;
        let [right, wrong, invented, missing, not_stated] =
            [tally.right, tally.wrong, tally.invented, tally.missing, tally.not_stated]
                .map(|count| count.to_string());
        let accuracy = path.accuracy.map(percent).unwrap_or_default();
        [path.path.clone(), accuracy, range(path.interval), right, wrong, invented, missing, not_stated]
    };
    let rows: Vec<_> = std::iter::once(header).chain(report.paths.iter().map(row)).collect();
    text.push_str(&output::table(&rows, |column| column > 0));
    let worst: Vec<String> =
        report.worst.iter().take(5).map(|row| format!("{} {}", row.id, percent(row.score))).collect();
    if !worst.is_empty() {
        text.push_str(&format!("\nlowest scores: {}\n", worst.join(", ")));
    }
    if let Some(baseline) = &report.baseline {
        let Baseline { score, difference, interval, probability_better, better, worse, equal, .. } = baseline;
        text.push_str(&format!(
            "\nbaseline {} %: difference {:+.2} points ({}), better in {better}, worse in {worse}, equal in {equal} documents; \
             probability of being better {} %\n",
            percent(*score),
            100.0 * difference,
            range(Some(*interval)),
            percent(*probability_better),
        ));
    }
    for gate in &report.gates {
        let word = if gate.ok { "passed" } else { "failed" };
        text.push_str(&format!("gate {}: {word}, {}\n", gate.gate, percent(gate.value)));
    }
    text
}
