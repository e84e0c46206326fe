//! Several targets answer the same question, and their answers are merged value by value.

use std::collections::HashMap;
use std::time::Instant;

use formwork_core::evidence::{Disputed, Index, Merged, MergedPlace, Question, disputed, merge};
use formwork_core::{
    Context, Contract, Error, ErrorKind, JsonPath, Origin, Outcome, Provenance, Settled, Trust, Warning,
    WarningKind,
};
use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::{CancellationToken, Extraction};

/// The maximum number of warnings about disputed values.
const MAX_WARNED: usize = 20;

/// Returns the extraction for a question about some values; see [`Ensemble::with_arbiter`].
type Arbiter<'e> = Box<dyn Fn(&Question, &str) -> Result<Extraction<Value>, Error> + Send + Sync + 'e>;

/// Asks several targets the same question, and merges their answers value by value, by agreement and evidence.
///
/// ```
/// # async fn doc(one: formwork_extract::Extractor<serde_json::Value>, other: formwork_extract::Extractor<serde_json::Value>)
/// # -> Result<(), formwork_core::Error> {
/// use formwork_extract::{CancellationToken, Ensemble};
///
/// let text = "Total: 12.00 EUR";
/// let asked = vec![("one".to_owned(), one.extraction(text)), ("other".to_owned(), other.extraction(text))];
/// let ensemble = Ensemble::new(one.plan().contract(), text, asked);
/// let opinions = ensemble.run(&CancellationToken::new()).await?;
/// println!("{} with {} doubts", opinions.outcome.value, opinions.disputed.len());
/// # Ok(())
/// # }
/// ```
#[must_use = "an ensemble does nothing until `run` is called"]
pub struct Ensemble<'e> {
    contract: &'e Contract,
    text: &'e str,
    asked: Vec<(String, Extraction<Value>)>,
    second_below: Option<f64>,
    arbiter: Option<Arbiter<'e>>,
}

/// A merged answer.
///
/// ```
/// /// Returns the values that no majority and no arbiter decided.
/// fn open(opinions: &formwork_extract::Opinions) -> Vec<String> {
///     opinions.disputed.iter().map(|it| it.path.to_string()).collect()
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Opinions {
    /// The merged value, with the calls and the cost of all targets. If it violates the contract, it is the answer of the first target.
    pub outcome: Outcome<Value>,
    /// The answers of the targets.
    pub answers: Vec<Value>,
    /// The values on which the answers differ, without those that the arbiter decided.
    pub disputed: Vec<Disputed>,
    /// Notes for the reader: targets without an answer, a merged answer that violates the contract.
    pub notes: Vec<String>,
    /// The name of the first target that has an answer.
    pub first: String,
}

impl<'e> Ensemble<'e> {
    /// Creates an ensemble of extractions with their names (default: all are asked at the same time, and disputed values are not asked
    /// again).
    pub fn new(contract: &'e Contract, text: &'e str, asked: Vec<(String, Extraction<Value>)>) -> Self {
        Self { contract, text, asked, second_below: None, arbiter: None }
    }

    formwork_core::setters! {
        /// Sets the confidence, from 0 to 1, below which a value of the first answer makes the others be asked (default: they always are).
        pub const fn with_second_opinion_below(second_below: Option<f64>);
    }

    /// Sets the extraction for one more call about the disputed values alone, with their candidates as an `enum` and "none of these"
    /// (default: none). It gets the question and the name of the first target that has an answer. A shared budget limits it like all
    /// other calls.
    pub fn with_arbiter(
        mut self,
        arbiter: impl Fn(&Question, &str) -> Result<Extraction<Value>, Error> + Send + Sync + 'e,
    ) -> Self {
        self.arbiter = Some(Box::new(arbiter));
        self
    }

    /// Asks the targets, and then the arbiter. A target or an arbiter without an answer is a note. Targets that are asked later and the
    /// arbiter have the rest of their time limits.
    ///
    /// # Errors
    /// If no target has an answer, the error of the first target that responded, or else of the first one, with the messages and the calls
    /// of the others.
    pub async fn run(self, cancel: &CancellationToken) -> Result<Opinions, Error> {
        let Self { contract, text, mut asked, second_below, arbiter } = self;
        let started = Instant::now();
        let others = if second_below.is_some() && asked.len() > 1 { asked.split_off(1) } else { Vec::new() };
        let mut all = Asked::default();
        all.ask(asked, cancel).await;
        let is_sure = |outcome: &Outcome<Value>| {
            second_below.is_some_and(|limit| outcome.least_sure().is_none_or(|it| !it.is_below(limit)))
        };
        if !all.outcomes.first().is_some_and(|(_, outcome)| is_sure(outcome)) {
            let later =
                |(name, one): (String, Extraction<Value>)| (name, one.with_elapsed(started.elapsed()));
            all.ask(others.into_iter().map(later).collect(), cancel).await;
        }
        let Asked { outcomes, mut failed, mut notes } = all;
        let (names, outcomes): (Vec<String>, Vec<_>) = outcomes.into_iter().unzip();
        let answers: Vec<Value> = outcomes.iter().map(|outcome| outcome.value.clone()).collect();
        let first = names.first().cloned().unwrap_or_default();
        let histories: Vec<History> = outcomes
            .iter()
            .map(|one| History { provenance: one.provenance.clone(), warnings: one.warnings.clone() })
            .collect();
        let Some(mut outcome) = outcomes.into_iter().reduce(|mut sum, other| {
            sum.absorb(other);
            sum
        }) else {
            let first = failed.iter().position(Error::is_answered).unwrap_or_default();
            if failed.is_empty() {
                return Err(Error::new(ErrorKind::Config, "no target was named"));
            }
            let mut error = failed.remove(first);
            failed.iter().for_each(|other| error.absorb(other));
            return Err(error);
        };
        failed.iter().for_each(|error| outcome.absorb_failed(error));
        if let [_] = answers.as_slice() {
            outcome.warnings.extend(notes.iter().map(|note| Warning::new(WarningKind::Note, note)));
            return Ok(Opinions { outcome, answers, disputed: Vec::new(), notes, first });
        }
        let mut merged = merge(&answers.iter().collect::<Vec<_>>(), Some(&Index::new(text)));
        let cx = Context { source: text, ..Context::EMPTY };
        let settled = |merged: &Merged| contract.settle(merged.value.clone(), &cx);
        let mut judged = settled(&merged);
        if let Some((question, arbiter)) = Question::for_disputed(&merged).zip(arbiter) {
            let choice = match arbiter(&question, &first) {
                Ok(extraction) => {
                    extraction.with_elapsed(started.elapsed()).with_cancel(cancel.clone()).run().await
                }
                Err(error) => Err(error),
            };
            match choice {
                Ok(choice) => {
                    let decide = |choices: &Map<String, Value>| {
                        let mut merged = merged.clone();
                        question.decide(&choices.clone().into(), &mut merged);
                        let judged = settled(&merged);
                        (merged, judged)
                    };
                    let mut choices = choice.value.as_object().cloned().unwrap_or_default();
                    let mut decided = decide(&choices);
                    // A choice may make the answer violate the contract, such as each of two values that exclude each other.
                    while judged.judgement.is_accepted() && !decided.1.judgement.is_accepted() {
                        let found = decided.1.judgement.violations.len();
                        let mut others = choices.clone();
                        others.retain(|name, _| {
                            let mut without = choices.clone();
                            without.remove(name);
                            decide(&without).1.judgement.violations.len() >= found
                        });
                        if others.len() == choices.len() {
                            others.clear();
                        }
                        let left_out = choices.keys().filter(|name| !others.contains_key(*name));
                        notes.push(format!(
                            "choices between disputed values violate the contract ({}): those of {} are left out",
                            reason(&decided.1),
                            left_out.cloned().collect::<Vec<_>>().join(", ")
                        ));
                        choices = others;
                        decided = decide(&choices);
                    }
                    (merged, judged) = decided;
                    outcome.absorb(choice);
                }
                Err(error) => {
                    notes.push(format!("disputed values were not decided: {error}"));
                    outcome.absorb_failed(&error);
                }
            }
        }
        if judged.judgement.is_accepted() {
            (outcome.provenance, outcome.warnings) = taken(&histories, &answers, &merged);
            outcome.warnings.extend(judged.coerced.iter().map(Warning::from));
            outcome.value = judged.value;
            outcome.not_stated = contract.not_stated(&outcome.value);
            outcome.origin = Origin::Model { target: names.join(", ") };
        } else {
            let reason = reason(&judged);
            let note =
                format!("the merged answer violates the contract ({reason}); the answer of {first} is used");
            notes.push(note);
            merged.disputed = disputed(&outcome.value, &answers.iter().skip(1).collect::<Vec<_>>());
        }
        let undecided = merged.disputed.iter().take(MAX_WARNED);
        let undecided = undecided.map(|it| {
            Warning::new(WarningKind::Note, "the answers differ, and no choice decided").at(it.path.clone())
        });
        let notes_too = notes.iter().map(|note| Warning::new(WarningKind::Note, note));
        outcome.warnings.extend(notes_too.chain(undecided));
        let Outcome { value, provenance, warnings, not_stated, calls, .. } = &outcome;
        outcome.trust = Trust::of(value, provenance, warnings, not_stated, calls);
        Ok(Opinions { outcome, answers, disputed: merged.disputed, notes, first })
    }
}

/// The history of an answer.
struct History {
    provenance: Vec<Provenance>,
    warnings: Vec<Warning>,
}

/// Returns the provenance and the warnings of a merged value: each leaf has those of the answer that it was taken from. Warnings about
/// values that were not taken are left out.
fn taken(histories: &[History], answers: &[Value], merged: &Merged) -> (Vec<Provenance>, Vec<Warning>) {
    let mut provenance: Vec<Provenance> =
        histories.iter().flat_map(|one| one.provenance.first().cloned()).take(1).collect();
    // For each place of an answer, the place in the merged value that has its value.
    let mut places = HashMap::new();
    for MergedPlace { path, answers: from, is_leaf } in &merged.places {
        let value = path.get(&merged.value);
        let mut has_it = from.iter().filter(|(of, at)| answers.get(*of).and_then(|it| at.get(it)) == value);
        let source = if *is_leaf { has_it.next() } else { None };
        for place in from {
            places.insert(place.clone(), (!is_leaf || Some(place) == source).then_some((path, is_leaf)));
        }
        if let Some((of, at)) = source {
            // A longer path replaces a shorter one.
            let parts = histories.get(*of).into_iter().flat_map(|one| &one.provenance);
            let around = parts
                .clone()
                .filter(|part| at.is_within(&part.path))
                .max_by_key(|part| part.path.segments().len());
            let around = around.map(|part| Provenance { path: path.clone(), ..part.clone() });
            let inside = parts.filter(|part| part.path != *at && part.path.is_within(at));
            provenance.extend(
                around.filter(|part| provenance.first().is_none_or(|whole| whole.source != part.source)),
            );
            provenance.extend(inside.map(|part| Provenance {
                path: path.join(part.path.segments().get(at.segments().len()..).unwrap_or_default()),
                ..part.clone()
            }));
        }
    }
    let moved = |of: usize, path: &JsonPath| {
        let steps = path.segments();
        let (depth, place) = (0..=steps.len()).rev().find_map(|depth| {
            let around = steps.get(..depth)?.iter().cloned().collect();
            Some((depth, *places.get(&(of, around))?))
        })?;
        let (to, is_leaf) = place?;
        // Inside of an object or a list that is merged, it is about a value that was left out, or about one that the answer lacks.
        let is_left_out =
            !is_leaf && depth < steps.len() && answers.get(of).is_some_and(|it| path.get(it).is_some());
        (!is_left_out).then(|| to.join(steps.get(depth..).unwrap_or_default()))
    };
    let warnings =
        histories.iter().enumerate().flat_map(|(of, one)| one.warnings.iter().map(move |it| (of, it)));
    let warnings = warnings.filter_map(|(of, warning)| match &warning.path {
        Some(path) => Some(warning.clone().at(moved(of, path)?)),
        None => Some(warning.clone()),
    });
    (provenance, warnings.collect())
}

/// Returns why a value was not accepted.
fn reason(settled: &Settled) -> String {
    settled.judgement.violations.first().map(ToString::to_string).unwrap_or_default()
}

/// The answers so far.
#[derive(Default)]
struct Asked {
    outcomes: Vec<(String, Outcome<Value>)>,
    failed: Vec<Error>,
    notes: Vec<String>,
}

impl Asked {
    /// Asks targets at the same time.
    async fn ask(&mut self, asked: Vec<(String, Extraction<Value>)>, cancel: &CancellationToken) {
        let (names, extractions): (Vec<String>, Vec<_>) = asked.into_iter().unzip();
        let runs = extractions.into_iter().map(|one| one.with_cancel(cancel.clone()).run());
        for (name, result) in names.into_iter().zip(join_all(runs).await) {
            match result {
                Ok(outcome) => self.outcomes.push((name, outcome)),
                Err(error) => {
                    self.notes.push(format!("{name} has no answer: {error}"));
                    self.failed.push(error);
                }
            }
        }
    }
}
