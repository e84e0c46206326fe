//! `cargo evals grounded`: entities and arguments of functions, extracted in process with and without the rule `grounded`.
//!
//! Both answers to a row come from the same model and prompt at one temperature; under the rule, the model writes texts only along the words of
//! the input. The tables also show how well the log probabilities of the tokens tell right values from wrong ones (AUROC).

use std::sync::Arc;

use formwork_core::{JsonPath, Outcome, Segment, Usage};
use formwork_eval::auroc;
use formwork_evidence::{Counterpart, Index, counterparts};
use formwork_extract::Extractor;
use formwork_local::{Local, LocalOptions};
use serde_json::Value;

use crate::accepted::{is_accepted, is_accepted_member};
use crate::bench::runtime;
use crate::corpora::text;
use crate::data::{Data, Drawn, entities, f1, grounded_texts, hits};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The data
    #[arg(long, value_enum)]
    data: Data,
    #[command(flatten)]
    drawn: Drawn,
    /// A known model of the local engine, or the path of a GGUF file
    #[arg(long, default_value = "default")]
    model: String,
    /// The temperature of all calls, 0 to 2
    #[arg(long, default_value_t = 0.0)]
    temperature: f64,
    /// Print each row: its results, values and output tokens
    #[arg(short, long)]
    verbose: bool,
}

/// The results of one configuration.
#[derive(Default)]
struct Arm {
    rows: usize,
    valid: usize,
    right: usize,
    /// The values that are right, all values of answers, and all values of the gold.
    hits: usize,
    given: usize,
    wanted: usize,
    /// The rows that would be right with other texts of the input; of entities, the values of the gold whose text is in an answer.
    reachable: usize,
    /// The different texts in each answer with entities.
    texts: usize,
    usage: Usage,
    /// Each leaf with its score, the product of the probabilities of its tokens, and whether it is right.
    leaves: Vec<([f64; 2], bool)>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let (rows, examples) = args.drawn.read(args.data)?;
    let options = LocalOptions::new().with_model(args.model.as_str());
    let local = Arc::new(Local::open(options).map_err(|error| error.to_string())?);
    let runtime = runtime().map_err(|error| format!("the runtime cannot be started: {error}"))?;
    let mut arms = [Arm::default(), Arm::default()];
    for row in &rows {
        for (arm, is_grounded) in arms.iter_mut().zip([false, true]) {
            runtime.block_on(arm.row(args, &local, &examples, row, is_grounded))?;
        }
    }
    println!(
        "{:?}, {} rows by seed {}, temperature {}",
        args.data,
        rows.len(),
        args.drawn.seed,
        args.temperature
    );
    arms.iter().zip(["off", "on"]).for_each(|(arm, name)| arm.print(name));
    Ok(())
}

impl Arm {
    async fn row(
        &mut self,
        args: &Args,
        local: &Arc<Local>,
        examples: &[Value],
        row: &Value,
        is_grounded: bool,
    ) -> Result<(), String> {
        // The text is the question alone: no argument is a word of the function's description.
        let input = args.data.input(row);
        let mut builder = Extractor::<Value>::for_document(args.data.name(row), row["schema"].clone())
            .with_target(Arc::clone(local))
            .with_temperature(args.temperature)
            .with_max_tokens(512)
            .with_system(args.data.system(row));
        for example in examples {
            builder = builder.with_example(text(example, "input"), &example["answer"]);
        }
        if is_grounded {
            builder = builder.with_rules(grounded_texts(&row["schema"]));
        }
        let extractor = builder.build().map_err(|error| format!("{}: {error}", text(row, "id")))?;
        let source = input.clone();
        let extracted = extractor.extract(input).await;
        let usage = extracted.as_ref().map_or_else(|error| error.usage(), Outcome::usage);
        self.usage = self.usage.plus(usage);
        self.rows += 1;
        let is_right = match args.data {
            Data::Entities => self.named(extracted.as_ref().ok(), &row["gold"]),
            Data::Functions => {
                self.arguments(extracted.as_ref().ok(), &row["accepted"], &Index::new(&source))
            }
        };
        self.valid += usize::from(extracted.is_ok());
        self.right += usize::from(is_right);
        if args.verbose {
            let (mark, on) =
                (if is_right { "right" } else { "wrong" }, if is_grounded { "on" } else { "off" });
            let shown = extracted.map_or_else(|error| error.to_string(), |outcome| outcome.value.to_string());
            println!("{} {on} {mark} {} {shown}", text(row, "id"), usage.output_tokens);
        }
        Ok(())
    }

    /// Scores pairs of type and text; returns whether the answer is the gold.
    fn named(&mut self, outcome: Option<&Outcome<Value>>, gold: &Value) -> bool {
        let wanted = entities(gold).count();
        self.wanted += wanted;
        let Some(outcome) = outcome else { return false };
        let hits = hits(&outcome.value, gold);
        let right = hits.iter().filter(|hit| **hit).count();
        let mut texts: Vec<&Value> = entities(&outcome.value).map(|(_, text)| text).collect();
        texts.sort_unstable_by_key(|text| text.as_str());
        texts.dedup();
        self.texts += texts.len();
        self.reachable += entities(gold).filter(|(_, text)| texts.contains(text)).count();
        self.hits += right;
        self.given += hits.len();
        self.confidence(outcome, hits.iter().copied());
        right == wanted && right == hits.len()
    }

    /// Scores members; returns whether all are accepted.
    fn arguments(&mut self, outcome: Option<&Outcome<Value>>, accepted: &Value, input: &Index<'_>) -> bool {
        let Some(outcome) = outcome else { return false };
        let best = with_best_texts(outcome.value.clone(), accepted, input);
        self.reachable += usize::from(is_accepted(&best, accepted));
        let of = |path: &JsonPath| match path.segments().first() {
            Some(Segment::Key(name)) => {
                outcome.value.get(name).is_some_and(|value| is_accepted_member(name, value, accepted))
            }
            _ => false,
        };
        let leaves: Vec<bool> = outcome.confidence().iter().map(|it| of(&it.path)).collect();
        self.hits += leaves.iter().filter(|right| **right).count();
        self.given += leaves.len();
        self.confidence(outcome, leaves.into_iter());
        is_accepted(&outcome.value, accepted)
    }

    /// Keeps the confidence in each leaf, in the order of the value, beside whether it is right.
    fn confidence(&mut self, outcome: &Outcome<Value>, right: impl Iterator<Item = bool>) {
        let known = outcome.confidence().into_iter().zip(right);
        self.leaves.extend(known.filter_map(|(it, right)| {
            let [product, _] = it.tokens?;
            Some(([it.score, product], right))
        }));
    }

    fn print(&self, name: &str) {
        let Self { rows, valid, right, hits, given, wanted, reachable, texts, usage, leaves } = self;
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        let of = |at: usize| {
            let scored: Vec<(f64, bool)> =
                leaves.iter().map(|(scores, right)| (scores[at], *right)).collect();
            auroc(&scored).map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
        };
        let f1 = match wanted {
            0 => format!(" ({reachable} with the best texts of the input)"),
            _ => {
                let both = f1(*hits, *given, *wanted);
                format!(
                    ", precision {:.1} %, recall {:.1} %, micro F1 {both:.1} % (each text once and in its list: {:.1} %, {:.1} %, {:.1} %)",
                    share(*hits, *given),
                    share(*hits, *wanted),
                    share(*reachable, *texts),
                    share(*reachable, *wanted),
                    f1(*reachable, *texts, *wanted)
                )
            }
        };
        println!(
            "{name}: {rows} rows, {valid} valid, {right} right{f1}, {} output tokens; {hits} of {given} values right; AUROC of {} values: score {}, \
             log probability {}",
            usage.output_tokens,
            leaves.len(),
            of(0),
            of(1)
        );
    }
}

/// Replaces each wrong text by an accepted one that stands in the input, so that the result is right if any choice of texts makes it right.
fn with_best_texts(mut value: Value, accepted: &Value, input: &Index<'_>) -> Value {
    let is_text = |it: &Counterpart<'_>| it.value.is_string();
    let are_texts = |value: &Value| counterparts(value, &Value::Null).iter().all(is_text);
    let stands = |value: &Value| {
        counterparts(value, &Value::Null).iter().all(|it| is_text(it) && input.states(it.value, 1))
    };
    for (name, member) in value.as_object_mut().into_iter().flatten() {
        if are_texts(member) && !is_accepted_member(name, member, accepted) {
            let best = accepted[name].as_array().into_iter().flatten();
            let mut best = best.filter(|one| one.is_array() == member.is_array() && stands(one));
            best.next().into_iter().for_each(|best| *member = best.clone());
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_texts_become_accepted_ones_of_the_input_and_nothing_else_changes() {
        let accepted = json!({"a": ["Rome"], "b": ["far"], "n": [2], "list": [["Rome", "Oslo"]]});
        let input = Index::new("Two days in Rome, then Oslo.");
        let best = |value: Value| with_best_texts(value, &accepted, &input);
        assert_eq!(
            best(json!({"a": "days", "list": ["Oslo"]})),
            json!({"a": "Rome", "list": ["Rome", "Oslo"]})
        );
        let hopeless = json!({"b": "near", "n": 3, "list": "Rome", "other": "x"});
        assert_eq!(best(hopeless.clone()), hopeless);
    }
}
