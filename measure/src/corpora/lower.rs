//! Scores lowering on real schemas in each dialect. Every valid instance must survive lowering and lifting, and every completion
//! must lift to a valid document or be reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use formwork_core::{Enforcement, Lift, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::{Dialect, Dialects, lint, lower_value};
use formwork_json::is_same;
use formwork_schema::{Compiled, compile};
use formwork_testkit::instance;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use proptest::strategy::{Strategy as _, ValueTree as _};
use serde_json::Value;
use toktrie::ApproximateTokEnv;

use super::{Args, percent, rows, runner, text};

/// The number of timed runs per schema and dialect. The fastest run counts.
const RUNS: usize = 3;

/// The number of generated completions per lowered schema.
const ANSWERS: usize = 2;

/// Returns the selected dialects of servers that enforce a schema.
pub(super) fn dialects(args: &Args) -> Vec<Arc<dyn Dialect>> {
    let is_named = |name: &str| args.dialect.is_empty() || args.dialect.iter().any(|one| one == name);
    let is_wanted =
        |one: &&Arc<dyn Dialect>| one.enforcement() == Enforcement::Schema && is_named(one.name());
    Dialects::builtin().iter().filter(is_wanted).cloned().collect()
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env())
        .map_err(|error| format!("llguidance does not start: {error}"))?;
    factory.quiet();
    let rows = rows(&args.folder.join("schemas_maskbench.jsonl"))?;
    for dialect in dialects(args) {
        let mut score = Score::default();
        for row in &rows {
            score.schema(args, &*dialect, row, &factory);
        }
        score.print(dialect.name(), rows.len());
    }
    Ok(())
}

#[derive(Default)]
struct Score {
    refused: usize,
    /// Schemas with a part that is lowered to JSON in a string.
    texts: usize,
    /// Schemas with a part that is lowered to a list of leaves.
    leaves: usize,
    valid: usize,
    /// Valid instances that lift to an equal document.
    whole: usize,
    /// Valid instances that lift to a document without additional properties of closed objects.
    closed: usize,
    /// Valid instances whose completions llguidance allows, of those that were tested with it.
    generated: (usize, usize),
    invalid: usize,
    /// Invalid instances that the lowered schema excludes.
    kept_out: usize,
    answers: usize,
    /// Completions that lift to an invalid document without a violation.
    silent: usize,
    lint: usize,
    times: Vec<(Duration, String)>,
    ratios: Vec<(f64, String)>,
    losses: BTreeMap<String, usize>,
}

impl Score {
    fn schema(&mut self, args: &Args, dialect: &dyn Dialect, row: &Value, factory: &ParserFactory) {
        let (schema, id) = (&row["schema"], text(row, "id"));
        let Ok(original) = compile(schema) else { return };
        let request = LowerRequest::new(schema).with_tighten(Tighten::Closed);
        let mut fastest = Duration::MAX;
        let mut lowered = dialect.lower(&request);
        for _ in 0..RUNS {
            let start = Instant::now();
            lowered = dialect.lower(&request);
            fastest = fastest.min(start.elapsed());
        }
        self.times.push((fastest, id.to_owned()));
        let report = |what: &str, more: &str| {
            if args.prints(&format!("lower {} {what}", dialect.name())) {
                println!("{} {id}: {what} {more}", dialect.name());
            }
        };
        let lowered = match lowered {
            Ok(lowered) => lowered,
            Err(refused) => {
                self.refused += 1;
                return report("refused", &refused.to_string());
            }
        };
        let Some(sent) = &lowered.schema else { return };
        self.texts += usize::from(lowered.lift.iter().any(|op| op.lift == Lift::ParseJson));
        self.leaves += usize::from(lowered.lift.iter().any(|op| op.lift == Lift::Leaves));
        for loss in &lowered.losses {
            *self.losses.entry(format!("{} {:?}", loss.keyword, loss.kind)).or_default() += 1;
        }
        self.ratios.push((sent.to_string().len() as f64 / schema.to_string().len() as f64, id.to_owned()));
        if let Some(finding) = lint(dialect.name(), sent).first() {
            self.lint += 1;
            report("lint", &finding.to_string());
        }
        let Ok(compiled) = compile(sent) else { return report("does not compile", "") };
        let matcher = (dialect.name() == "llguidance").then(|| matcher(factory, sent));
        for instance in row["instances"].as_array().into_iter().flatten() {
            let data = &instance["data"];
            let answer = lower_value(data, &lowered).filter(|answer| compiled.is_valid(answer));
            let back = answer
                .clone()
                .map(|answer| lift(answer, &lowered))
                .filter(|(_, problems)| problems.is_empty());
            let is_whole = back.as_ref().is_some_and(|(value, _)| is_same(value, data));
            if instance["valid"] == true {
                self.valid += 1;
                self.whole += usize::from(is_whole);
                self.closed += usize::from(!is_whole && back.is_some());
                if back.is_none() {
                    report("lost", &data.to_string());
                }
                if let (Some(Ok(matcher)), Some(answer)) = (&matcher, &answer) {
                    let writes = writes(matcher, answer);
                    self.generated.0 += usize::from(writes);
                    self.generated.1 += 1;
                    if !writes {
                        report("not written", &answer.to_string());
                    }
                }
            } else {
                self.invalid += 1;
                self.kept_out += usize::from(!is_whole);
            }
        }
        if let Some(Err(error)) = &matcher {
            report("not taken", error);
        }
        self.answers(sent, &lowered, &original, &report);
    }

    /// Generates completions of the lowered schema and validates the lifted documents.
    fn answers(
        &mut self,
        sent: &Value,
        lowered: &Lowered,
        original: &Compiled,
        report: &impl Fn(&str, &str),
    ) {
        let mut runner = runner();
        let strategy = instance(sent);
        for _ in 0..ANSWERS {
            let Ok(tree) = strategy.new_tree(&mut runner) else { return };
            self.answers += 1;
            let (value, problems) = lift(tree.current(), lowered);
            // If lifting reports no violation, the validator of the contract must report one.
            let mut found = formwork_core::Report::default();
            formwork_core::Validator::validate(original, &value, &formwork_core::Context::EMPTY, &mut found);
            if problems.is_empty() && found.is_empty() && !original.is_valid(&value) {
                self.silent += 1;
                report("silent", &value.to_string());
            }
        }
    }

    fn print(mut self, dialect: &str, schemas: usize) {
        let kept = self.whole + self.closed;
        println!(
            "lowering, {dialect}: {kept} of {} valid instances come back = {:.2} % ({} without members that closed objects do not name); {} of {schemas} schemas refused",
            self.valid,
            percent(kept, self.valid),
            self.closed,
            self.refused,
        );
        println!(
            "  {} of {schemas} schemas with JSON in a string for a part, {} with a list of leaves; {:.2} % served by structure alone",
            self.texts,
            self.leaves,
            percent(schemas - self.refused - self.texts, schemas),
        );
        println!(
            "  {} of {} made-up answers lift to an invalid document without a violation; {} schemas with a finding of the linter",
            self.silent, self.answers, self.lint
        );
        println!(
            "  {} of {} invalid instances are refused by the lowered schema alone = {:.1} %",
            self.kept_out,
            self.invalid,
            percent(self.kept_out, self.invalid)
        );
        if self.generated.1 > 0 {
            let (written, total) = self.generated;
            println!(
                "  {written} of {total} answers are written by llguidance itself = {:.2} %",
                percent(written, total)
            );
        }
        self.times.sort();
        self.ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let (Some((median, _)), Some((most, id))) =
            (self.times.get(self.times.len() / 2), self.times.last())
        {
            println!(
                "  time: median {:.0} µs, most {:.1} ms ({id})",
                median.as_secs_f64() * 1e6,
                most.as_secs_f64() * 1e3
            );
        }
        let at = |share: f64| self.ratios.get((self.ratios.len() as f64 * share) as usize);
        if let (Some(median), Some(high), Some((most, id))) = (at(0.5), at(0.99), self.ratios.last()) {
            println!(
                "  size beside the input: median {:.2}, 99 % {:.2}, most {most:.1} ({id})",
                median.0, high.0
            );
        }
    }
}

/// Returns an llguidance matcher for this schema, with the separators of the in-process engine.
fn matcher(factory: &ParserFactory, schema: &Value) -> Result<Matcher, String> {
    let mut schema = schema.clone();
    schema["x-guidance"] =
        serde_json::json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    let matcher = Matcher::new(factory.create_parser(TopLevelGrammar::from_json_schema(schema)));
    match matcher.get_error() {
        Some(error) => Err(error),
        None => Ok(matcher),
    }
}

/// Returns whether llguidance allows a model to write this completion.
fn writes(matcher: &Matcher, answer: &Value) -> bool {
    let mut matcher = matcher.clone();
    // llguidance requires an escape for this control character; JSON does not.
    let text = formwork_core::spaced(answer).replace('\u{7f}', "\\u007f");
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let taken = matcher.try_consume_tokens(&tokens).unwrap_or(0);
    taken == tokens.len() && matcher.is_accepting().unwrap_or(false)
}
