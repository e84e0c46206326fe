//! Several targets answer the same question, and their answers are merged value by value.

use formwork_core::{Context, Error, ErrorKind, Origin, Outcome};
use formwork_eval::{Disputed, merge_with};
use formwork_evidence::Index;
use formwork_extract::{CancellationToken, Extraction, Extractor};
use futures_util::future::join_all;
use serde_json::Value;

use crate::stderr::say;

/// A merged answer.
pub(super) struct Ensemble {
    /// The merged value, with the calls and the cost of all targets. If it breaks the contract, it is the answer of the first target.
    pub(super) outcome: Outcome<Value>,
    /// The answers of the targets.
    pub(super) answers: Vec<Value>,
    /// The values on which the answers differ.
    pub(super) disputed: Vec<Disputed>,
}

/// Asks all targets at the same time. A target without an answer is a warning.
///
/// # Errors
/// The error of the first target, if no target has an answer.
pub(super) async fn run(
    extractor: &Extractor<Value>,
    asked: Vec<(String, Extraction<Value>)>,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Ensemble, Error> {
    let (names, extractions): (Vec<String>, Vec<_>) = asked.into_iter().unzip();
    let results = join_all(extractions.into_iter().map(|one| one.with_cancel(cancel.clone()).run())).await;
    let (mut outcomes, mut failed) = (Vec::new(), None);
    for (name, result) in names.into_iter().zip(results) {
        match result {
            Ok(outcome) => outcomes.push((name, outcome)),
            Err(error) => {
                say!("warning: {name} has no answer: {error}");
                failed.get_or_insert(error);
            }
        }
    }
    let answers: Vec<Value> = outcomes.iter().map(|(_, outcome)| outcome.value.clone()).collect();
    let merged = merge_with(&answers.iter().collect::<Vec<_>>(), Some(&Index::new(text)));
    let names: Vec<String> = outcomes.iter().map(|(name, _)| name.clone()).collect();
    let all = outcomes.into_iter().map(|(_, outcome)| outcome).reduce(|mut sum, other| {
        sum.usage = sum.usage.plus(other.usage);
        sum.cost = sum.cost.plus(other.cost);
        sum.calls.extend(other.calls);
        sum.warnings.extend(other.warnings);
        sum
    });
    let Some(mut outcome) = all else {
        return Err(failed.unwrap_or_else(|| Error::new(ErrorKind::Config, "no target was named")));
    };
    if let [_] = answers.as_slice() {
        return Ok(Ensemble { outcome, answers, disputed: Vec::new() });
    }
    let contract = extractor.plan().contract();
    let judged = contract.judge(&merged.value, &Context { source: text, ..Context::EMPTY });
    if judged.is_accepted() {
        outcome.value = merged.value;
        let value = &outcome.value;
        outcome.not_stated.retain(|path| path.get(value).is_none_or(Value::is_null));
        outcome.provenance.truncate(1);
        outcome.origin = Origin::Model { target: names.join(", ") };
    } else {
        let reason = judged.violations.first().map(ToString::to_string).unwrap_or_default();
        say!(
            "warning: the merged answer breaks the contract ({reason}); the answer of {} is used",
            names.first().map_or("", String::as_str)
        );
    }
    Ok(Ensemble { outcome, answers, disputed: merged.disputed })
}
