//! The report of a run for people, on standard error.

use std::time::Duration;

use formwork_core::{
    Ask, Call, CallRecord, CallResult, Error, Estimates, Failure, Outcome, Warning, WarningKind,
};
use formwork_extract::{Next, Observer, RunId, Started};
use serde_json::Value;

use crate::stderr::say;

/// The maximum number of printed characters of an answer.
const SHOWN: usize = 2000;

/// An observer that prints every event, for `-v`.
pub(crate) struct Report;

impl Observer for Report {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        let Started { attempt, target, ask, call, .. } = started;
        say!("attempt {attempt}: asking {target} for {}{}", part(ask), sampling(call));
        for message in &call.messages {
            say!("  {:?}: {}", message.role, indented(&message.text()));
        }
        for loss in &call.lowered.losses {
            say!("  lowered: {loss}");
        }
    }

    fn call_finished(&self, _: RunId, call: &CallRecord) {
        let seconds = call.ended.since(call.started).as_secs_f64();
        let usage = call.usage;
        say!(
            "attempt {}: {}, {:.1} s, {} tokens in ({} cached), {} out",
            call.attempt,
            call.target,
            seconds,
            usage.input_tokens,
            usage.cached_tokens,
            usage.output_tokens
        );
        if !call.text.is_empty() {
            say!("  answer: {}", indented(&call.text));
        }
        for edit in &call.edits {
            say!("  edit: {edit}");
        }
        if call.restrained {
            say!("  restrained: the policy for tiny models ended a value before the model did");
        }
        if let Some(observation) = &call.observation {
            say!("  noted: {observation}");
        }
        for note in &call.notes {
            say!("  noted: {note}");
        }
        match &call.verdict {
            CallResult::Accepted if !call.closed.is_empty() => {
                let paths: Vec<_> = call.closed.iter().map(ToString::to_string).collect();
                say!("  accepted, although the limit of tokens cut {}", paths.join(", "));
            }
            CallResult::Accepted => say!("  accepted"),
            CallResult::Cancelled => say!("  cancelled"),
            CallResult::Probe => say!("  before it: a probe of the server, or a part of the document"),
            CallResult::Failed { failure } => report(failure),
        }
        weaker(call);
    }

    fn done(&self, _: RunId, result: &Result<Outcome<Value>, Error>) {
        warnings(result).for_each(|warning| say!("warning: {warning}"));
    }

    fn skipping(&self, _: RunId, target: &str, wait: Duration) {
        say!("skipping {target} for {:.0} s: it was out of service", wait.as_secs_f64());
    }

    fn asking(&self, _: RunId, next: &Next<'_>) {
        let wait = if next.wait.is_zero() { String::new() } else { format!(" after {:?}", next.wait) };
        say!("next: attempt {} asks {} for {}{wait}", next.attempt, next.target, part(next.ask));
        if next.estimates != Estimates::default() {
            say!("  estimated: {}", next.estimates);
        }
    }
}

/// Returns the warnings of an outcome, but for what is printed with the calls: their notes, and a weaker output mode that a call
/// of this run led to.
pub(crate) fn warnings<T>(result: &Result<Outcome<T>, Error>) -> impl Iterator<Item = &Warning> {
    result.iter().flat_map(|outcome| {
        let steps_down = outcome.calls.iter().any(|call| call.observation.is_some());
        let is_printed =
            move |kind| kind == WarningKind::Note || kind == WarningKind::WeakerMode && steps_down;
        outcome.warnings.iter().filter(move |warning| !is_printed(warning.kind))
    })
}

/// Prints what a call showed about the output mode of its target.
pub(crate) fn weaker(call: &CallRecord) {
    if let Some(observation) = &call.observation {
        say!("{observation}; enough of these lead to a weaker output mode");
    }
}

fn report(failure: &Failure) {
    match failure {
        Failure::Fault(fault) => say!("  failed: {fault}"),
        Failure::Refused { reason } => say!("  refused: {}", indented(reason)),
        other => say!("  rejected: {}", other.class()),
    }
    for violation in failure.violations() {
        say!("    {violation}");
    }
    if failure.left_out() > 0 {
        say!("    and {} more", failure.left_out());
    }
}

fn part(ask: &Ask) -> String {
    match ask {
        Ask::Patch(paths) => paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        _ => "the whole document".to_owned(),
    }
}

fn sampling(call: &Call) -> String {
    let mut words = String::new();
    if let Some(temperature) = call.sampling.temperature {
        words.push_str(&format!(", temperature {temperature}"));
    }
    if let Some(penalty) = call.sampling.frequency_penalty {
        words.push_str(&format!(", frequency penalty {penalty}"));
    }
    if let Some(seed) = call.sampling.seed {
        words.push_str(&format!(", seed {seed}"));
    }
    words
}

/// Returns a shortened text of a prompt or an answer, without control characters for terminals.
pub(crate) fn indented(text: &str) -> String {
    let mut excerpt: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > SHOWN {
        excerpt.push('…');
    }
    excerpt.replace('\n', "\n    ")
}
