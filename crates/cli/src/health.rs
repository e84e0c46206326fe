//! The observations that are in force, as lines for people.

use formwork::providers::observations;
use formwork_core::Restriction;

use crate::ledger::moment;

/// Returns the observations that are in force for any target, by the evidence of this process and of earlier ones.
pub(crate) fn in_force() -> Vec<Restriction> {
    observations().in_force()
}

/// Returns a line for an observation: its effect, its evidence, and its times.
pub(crate) fn line(restriction: &Restriction) -> String {
    let Restriction { since, last, until, .. } = restriction;
    let last = if since == last { String::new() } else { format!(", last {}", moment(*last)) };
    format!("{restriction} (since {}{last}; until {} UTC at the latest)", moment(*since), moment(*until))
}
