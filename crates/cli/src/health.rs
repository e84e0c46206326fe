//! The observations that are in force, as lines for people.

use formwork::providers::observations;
use formwork_batch::{BatchError, View};
use formwork_core::Restriction;
use formwork_extract::Backend;
use serde_json::json;

use crate::ledger::moment;

/// The key under which a batch keeps the identities of its targets.
const TARGETS: &str = "targets";

/// Stores the identities of the targets of a batch, for [`of_batch`].
pub(crate) fn keep_targets(view: &View, backends: &[Backend]) -> Result<(), BatchError> {
    let identities: Vec<&str> = backends.iter().filter_map(Backend::identity).collect();
    view.set_note(TARGETS, json!(identities))
}

/// Returns the observations that are in force for any target, by the evidence of this process and of earlier ones.
pub(crate) fn in_force() -> Vec<Restriction> {
    observations().in_force()
}

/// Returns the observations that are in force for the targets of a batch, by the evidence of this process and of earlier ones.
pub(crate) fn of_batch(view: &View) -> Result<Vec<Restriction>, BatchError> {
    let kept = view.note(TARGETS)?.unwrap_or_default();
    let is_own = |one: &Restriction| {
        kept.as_array().is_some_and(|targets| targets.iter().any(|target| *target == one.target))
    };
    Ok(in_force().into_iter().filter(is_own).collect())
}

/// Returns a line for an observation: its effect, its evidence, and its times.
pub(crate) fn line(restriction: &Restriction) -> String {
    let Restriction { since, last, until, .. } = restriction;
    let last = if since == last { String::new() } else { format!(", last {}", moment(*last)) };
    format!("{restriction} (since {}{last}; until {} UTC at the latest)", moment(*since), moment(*until))
}
