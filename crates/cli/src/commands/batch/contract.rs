//! The contract of a batch: how it is read, compared, and asked for.

use std::path::Path;

use formwork::config::Defaults;
use formwork::contract::NamedContract;
use formwork_batch::{Batch, Pace, Question};
use formwork_core::{Error, Layer};
use formwork_extract::{Backend, Extractor, ExtractorBuilder};
use serde_json::Value;

use super::{failed, numbers};
use crate::exit::Failed;
use crate::files;
use crate::flags::usual;
use crate::stderr::say;
use crate::targets::Opened;

/// The maximum number of differences that a message names.
const SHOWN: usize = 3;

/// The member of a stored contract whose schema may say nothing.
const ANY: &str = "any";

/// Reads a contract as a batch keeps it. With `any`, its schema may say nothing.
pub(super) fn read(path: &Path, any: bool) -> Result<Value, Failed> {
    let mut contract = serde_json::to_value(files::contract(path)?).map_err(Failed::usage)?;
    if let Some(members) = contract.as_object_mut().filter(|_| any) {
        members.insert(ANY.to_owned(), Value::Bool(true));
    }
    Ok(contract)
}

/// Returns the places at which two contracts differ, as JSON Pointers with both values; empty for equal ones.
pub(super) fn difference(old: &Value, new: &Value) -> String {
    let mut found = Vec::new();
    compare(old, new, String::new(), &mut found);
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    let mut text = found.join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

fn compare(old: &Value, new: &Value, place: String, found: &mut Vec<String>) {
    let brief = |value: &Value| {
        let text = value.to_string();
        let cut: String = text.chars().take(60).collect();
        if cut.len() < text.len() { format!("{cut}…") } else { cut }
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                let place = format!("{place}/{name}");
                match new.get(name) {
                    Some(other) => compare(value, other, place, found),
                    None => found.push(format!("{place} was {} and is absent", brief(value))),
                }
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                found.push(format!("{place}/{name} is new: {}", brief(value)));
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (nth, (old, new)) in old.iter().zip(new).enumerate() {
                compare(old, new, format!("{place}/{nth}"), found);
            }
        }
        _ if old == new => {}
        _ => found.push(format!("{place} was {} and is {}", brief(old), brief(new))),
    }
}

/// A contract that replaces that of a batch.
pub(super) struct New {
    pub(super) contract: Value,
    /// Whether values that violate it, or answer other instructions or examples, may be set aside.
    pub(super) yes: bool,
}

/// Asks a question about the rows of a batch, maybe under a new contract, after it said what the stored answers spare.
pub(super) fn ask(
    batch: &mut Batch,
    question: Question,
    new: Option<&New>,
    satisfies: impl Fn(&Value, &str) -> bool,
) -> Result<(), Failed> {
    let contract = new.map_or_else(|| batch.view().spec().contract.clone(), |new| new.contract.clone());
    let question = question.with_prompt_of(&contract);
    let judged = batch.judge(&contract, &question, satisfies).map_err(failed)?;
    let cost = numbers::cost_of(batch.view(), judged.open).map_err(failed)?;
    let cost = cost.map(|cost| format!(", for about {cost}")).unwrap_or_default();
    if let Some(new) = new {
        let otherwise = match judged.asked_otherwise {
            0 => String::new(),
            values => format!(", {values} answer other instructions or examples"),
        };
        let found = format!(
            "the new contract: {} values satisfy it, {} stored ones return, {} violate it{otherwise}; {} rows are processed{cost}",
            judged.valid,
            judged.returned(),
            judged.changed() - judged.asked_otherwise,
            judged.open
        );
        if judged.changed() > 0 && !new.yes {
            return Err(Failed::usage(format!(
                "{found}; nothing was changed: add --yes to set {} values aside",
                judged.changed()
            )));
        }
        say!("{found}");
    } else if judged.returned() > 0 {
        let (rows, store) = (judged.returned(), batch.view().store());
        say!(
            "{rows} rows have a valid answer in {} and take no call; {} rows are processed{cost} (--sample 1 asks anew)",
            store.display(),
            judged.open.saturating_sub(batch.view().progress().map_err(failed)?.rejected)
        );
    }
    batch.ask(contract, question, judged).map_err(failed)?;
    Ok(())
}

/// Returns the extractor of a contract, with a pace around each target.
pub(super) fn extractor(
    contract: &Value,
    opened: Opened,
    paces: &mut Vec<Pace>,
    max_rows: u32,
) -> Result<Extractor<Value>, Error> {
    let backends = opened.backends.into_iter().map(|backend| {
        let pace = Pace::new(max_rows);
        paces.push(pace.clone());
        backend.with_layer(&pace as &dyn Layer)
    });
    extractor_of(contract, opened.defaults, backends)
}

/// Returns the extractor of a contract, with the settings of batches where the configuration has none.
pub(crate) fn extractor_of(
    contract: &Value,
    defaults: Defaults,
    backends: impl IntoIterator<Item = Backend>,
) -> Result<Extractor<Value>, Error> {
    let any = contract.get(ANY).is_some_and(|any| *any == Value::Bool(true));
    let contract: NamedContract = serde_json::from_value(contract.clone()).map_err(|error| {
        Error::new(formwork_core::ErrorKind::Config, format!("the contract of the batch: {error}"))
    })?;
    let defaults = defaults.or(usual(3, Some(0.3), 120.0));
    let mut builder = defaults.apply(Extractor::for_document("answer", contract.schema));
    builder = builder.with_rules(contract.rules);
    if any {
        builder = builder.with_any();
    }
    if let Some(instructions) = contract.instructions {
        builder = builder.with_system(instructions);
    }
    for (input, output) in contract.examples {
        builder = builder.with_example(input, output);
    }
    backends.into_iter().fold(builder, ExtractorBuilder::with_target).build()
}
