//! Finds parts of a schema that no value satisfies, where that takes little time and stack.

use formwork_core::{LintFinding, Severity};
use jsonschema::canonical::{self, CanonicalSchema, CanonicalView, UnsatisfiableReason};
use serde_json::Value;

use crate::bounds::{MAX_CANONICAL, is_cheap};

/// Adds a finding for each part that no value satisfies. The schema has to compile.
pub(crate) fn unsatisfiable(schema: &Value, findings: &mut Vec<LintFinding>) {
    if *schema == Value::Bool(false) {
        findings.push(LintFinding::new("", Severity::Error, "no value satisfies `false`"));
        return;
    }
    if !is_cheap(schema) {
        return;
    }
    let Ok(prepared) = canonical::options().offline().prepare(schema) else { return };
    let parts = prepared.unsatisfiable().unwrap_or_default();
    if !parts.contains_key("") && prepared.canonicalize().is_ok_and(|whole| is_nothing(&whole)) {
        findings.push(LintFinding::new("", Severity::Error, "no value satisfies the schema"));
    }
    for (pointer, reason) in parts {
        let message = match reason {
            UnsatisfiableReason::Literal => continue, // `false` is written on purpose
            UnsatisfiableReason::Empty(cause) => format!("no value satisfies {}", part(&cause)),
            UnsatisfiableReason::Conflict(causes) => {
                let parts: Vec<String> = causes.iter().map(part).collect();
                format!("no value satisfies {} together", parts.join(" and "))
            }
        };
        let severity = if pointer.is_empty() { Severity::Error } else { Severity::Warning };
        findings.push(LintFinding::new(pointer, severity, message));
    }
}

/// Returns whether a canonical form is the empty one. [`CanonicalSchema::satisfiability`] has the same result, but searches
/// for a value that satisfies other forms.
fn is_nothing(whole: &CanonicalSchema) -> bool {
    let mut here = whole.clone();
    // One step for each possible level.
    for _ in 0..=MAX_CANONICAL {
        match here.view() {
            CanonicalView::False => return true,
            CanonicalView::Reference(uri) => match whole.definition(&uri) {
                Some(next) => here = next,
                None => return false,
            },
            _ => return false,
        }
    }
    false
}

fn part(cause: &canonical::Cause) -> String {
    match cause.keywords.as_slice() {
        [] => format!("#{}", cause.pointer),
        keywords => keywords.iter().map(|keyword| format!("`{keyword}`")).collect::<Vec<_>>().join(" and "),
    }
}
