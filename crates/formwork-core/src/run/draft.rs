//! From an answer's text to a document that can be judged, and from there to what a patch may mend.

use std::sync::Arc;

use formwork_json::{
    Candidate, Edit, EditKind, JsonPath, ReadError, Segment, locate_all, read, splice, values_from,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Examined, Run, State, of_answer, tripwire};
use crate::feedback::cut_bytes;
use crate::{
    Ask, Call, Completion, Failure, Finish, Fit, Judgement, Lowered, MAX_PATH, Plan, Provenance, Source,
    Stage, Violation, lift, spaced,
};

/// A document that is not accepted yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Draft {
    /// It as JSON text: what patches are spliced into.
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) provenance: Vec<Provenance>,
    pub(super) warnings: Vec<Violation>,
    /// The entry of the ledger that says what is wrong with it.
    pub(super) entry: usize,
}

impl Run {
    /// Reads, lifts and judges an answer.
    pub(super) fn examine(
        &self,
        plan: &Plan,
        completion: &Completion,
        stopped: Option<Violation>,
    ) -> Examined {
        let failed = Examined::failed;
        if let Some(reason) = stopped {
            return failed(Failure::Stopped { violations: vec![reason] });
        }
        match completion.finish {
            Finish::Refused | Finish::Filtered => {
                return failed(Failure::Refused { reason: cut_bytes(completion.text.trim(), 500) });
            }
            Finish::ToolCall if completion.text.is_empty() => {
                let violation = of_answer("json", "an answer", "a call of a tool");
                return failed(Failure::NotJson { violations: vec![violation] });
            }
            _ => {}
        }
        let candidates = match read(&completion.text, plan.level) {
            Ok(reading) => reading.into_candidates(),
            Err(_) if completion.finish == Finish::Length => return failed(truncated()),
            Err(error) => {
                let violation = of_answer("json", "", &unreadable(&error));
                let ignored = self.promised(completion).and_then(|_| tripwire::unread(completion, &error));
                return Examined { ignored, ..failed(Failure::NotJson { violations: vec![violation] }) };
            }
        };
        match &self.asked {
            Ask::Whole => self.examine_whole(plan, completion, candidates),
            Ask::Patch(paths) => self.examine_patch(plan, completion, paths, candidates),
        }
    }

    /// Takes the candidate that [fits](Fit) the contract best.
    fn examine_whole(&self, plan: &Plan, completion: &Completion, candidates: Vec<Candidate>) -> Examined {
        let mut nearest: Option<(Fit, Draft, Vec<Violation>, Candidate)> = None;
        for mut candidate in candidates {
            let value = std::mem::take(&mut candidate.value);
            let (draft, violations) = self.draft(plan, completion, &candidate, value);
            let schema = plan.contract.schema().document();
            let fit = Fit::new(schema, &candidate, &draft.value, &violations);
            if nearest.as_ref().is_none_or(|(best, ..)| fit > *best) {
                nearest = Some((fit, draft, violations, candidate));
            }
        }
        let Some((_, draft, violations, candidate)) = nearest else {
            return Examined::failed(truncated());
        };
        let ignored = self.promised(completion).and_then(|call| {
            let value = Some(&draft.value).filter(|_| call.lowered.lift.is_empty());
            tripwire::read(call, completion, &candidate, value, &violations)
        });
        let cut = match completion.finish {
            Finish::Length => candidate.closed_at().is_some(),
            // More documents of the sequence may have been on the way.
            Finish::Stopped => candidate.closed_at().is_some() || candidate.is_sequence(),
            _ => false,
        };
        let failure = match violations {
            _ if cut => Some(truncated()),
            violations if violations.is_empty() => None,
            violations => Some(Failure::Invalid { violations }),
        };
        Examined { draft: Some(draft), edits: candidate.all_edits(), failure, ignored }
    }

    /// The open call, if its answer was promised to keep to the schema of the whole document.
    fn promised(&self, completion: &Completion) -> Option<&Call> {
        match &self.state {
            State::Calling { call, .. } if self.asked == Ask::Whole => {
                Some(call.as_ref()).filter(|call| tripwire::is_armed(call, completion))
            }
            _ => None,
        }
    }

    /// Lifts and judges one candidate for the whole document; its value is given beside it.
    fn draft(
        &self,
        plan: &Plan,
        completion: &Completion,
        candidate: &Candidate,
        value: Value,
    ) -> (Draft, Vec<Violation>) {
        let lowered = self.lowered(plan);
        let (value, unlifted) = lift(value, &lowered);
        let untouched = lowered.lift.is_empty() && within(candidate).next().is_none();
        let text = if untouched { candidate.span.of(&completion.text).to_owned() } else { spaced(&value) };
        let source = if candidate.is_exact() { Source::Native } else { Source::Repaired };
        let mut provenance = vec![Provenance { path: JsonPath::root(), source, attempt: self.attempt() }];
        let Judgement { mut violations, warnings, .. } = self.judge(plan, &value, unlifted);
        if let Some(at) =
            completion.closed_at.map(|at| at.saturating_sub(candidate.span.start)).filter(|_| untouched)
        {
            violations.extend(closed(&text, at, &mut provenance, self.attempt()));
        }
        if untouched {
            let spans = locate_all(&text, violations.iter().map(|violation| &violation.path));
            for (violation, span) in violations.iter_mut().zip(spans) {
                violation.span = span.map(|span| span.shifted(candidate.span.start));
            }
        }
        (Draft { text, value, provenance, warnings, entry: self.ledger.len() }, violations)
    }

    /// Splices the answered values into the draft and judges the whole.
    fn examine_patch(
        &self,
        plan: &Plan,
        completion: &Completion,
        paths: &[JsonPath],
        candidates: Vec<Candidate>,
    ) -> Examined {
        let Some(candidate) = candidates.into_iter().find(|candidate| candidate.value.is_object()) else {
            let violation =
                of_answer("json", "an object with the values that were asked for", "something else");
            return Examined::failed(Failure::NotJson { violations: vec![violation] });
        };
        let edits = candidate.all_edits();
        let Some(Draft { text, provenance, .. }) = &self.draft else {
            return Examined { edits, ..Examined::failed(truncated()) };
        };
        let (mut text, mut provenance) = (text.clone(), provenance.clone());
        let (answer, unlifted) = lift(candidate.value, &self.lowered(plan));
        for path in paths {
            let Some(value) = answer.get(label(path)) else { continue };
            let Some(patched) = splice(&text, path, value) else { continue };
            text = patched;
            let narrowed = plan.contract.rules().any(|rule| rule.target() == path);
            let source = if narrowed { Source::Narrowed } else { Source::Patched };
            provenance.retain(|part| part.path.is_root() || !part.path.is_within(path));
            provenance.push(Provenance { path: path.clone(), source, attempt: self.attempt() });
        }
        let value = serde_json::from_str(&text).unwrap_or_default();
        let Judgement { violations, warnings, .. } = self.judge(plan, &value, unlifted);
        let draft = Draft { text, value, provenance, warnings, entry: self.ledger.len() };
        let cut =
            completion.finish == Finish::Length && edits.iter().any(|edit| edit.kind == EditKind::Closed);
        let failure = match violations {
            violations if violations.is_empty() && !cut => None,
            violations if violations.is_empty() => Some(truncated()),
            violations => Some(Failure::Invalid { violations }),
        };
        Examined { draft: Some(draft), edits, failure, ignored: None }
    }

    fn judge(&self, plan: &Plan, value: &Value, unlifted: Vec<Violation>) -> Judgement {
        let mut judgement = plan.contract.judge(value, &self.context());
        judgement.violations.splice(0..0, unlifted);
        judgement
    }

    /// The paths that a patch could mend; empty if one of the violations can only be mended by a whole answer.
    pub(super) fn patchable(&self, plan: &Plan) -> Vec<JsonPath> {
        let Some(draft) = &self.draft else { return Vec::new() };
        let mut paths: Vec<JsonPath> = Vec::new();
        for violation in self.violations() {
            let whole_object = matches!(
                violation.rule.as_str(),
                "additionalProperties" | "unevaluatedProperties" | "propertyNames"
            );
            let path = if whole_object { violation.path.parent() } else { Some(violation.path.clone()) };
            let path = path.filter(|path| {
                !path.is_root() && plan.contract.structure().subschema(path, &draft.value).is_some()
            });
            // A name that the model wrote would stand in the schema and in the words of the patch.
            let path = path.filter(|path| label(path).len() <= MAX_PATH);
            let Some(path) = path else { return Vec::new() };
            let reachable = path.get(&draft.value).is_some()
                || path.parent().is_some_and(|parent| parent.get(&draft.value).is_some_and(Value::is_object));
            if !reachable {
                return Vec::new();
            }
            if !paths.iter().any(|outer| path.is_within(outer)) {
                paths.retain(|inner| !inner.is_within(&path));
                paths.push(path);
            }
        }
        if paths.len() > MAX_PATCHED { Vec::new() } else { paths }
    }

    /// The lowered schema of the call that is open.
    fn lowered(&self, plan: &Plan) -> Arc<Lowered> {
        match (&self.state, plan.targets.get(self.target).and_then(|target| target.rungs.get(self.rung))) {
            (State::Calling { call, .. }, _) => Arc::clone(&call.lowered),
            (_, Some(rung)) => Arc::clone(&rung.whole),
            (_, None) => Arc::default(),
        }
    }
}

/// The most values that one patch asks for: beyond, a whole answer is cheaper.
const MAX_PATCHED: usize = 8;

/// The name that a value has in the object that a patch asks for: its path without `$` and the first dot.
pub(super) fn label(path: &JsonPath) -> String {
    let text = path.to_string();
    match path.segments().first() {
        Some(Segment::Key(_)) if text.starts_with("$.") => text.chars().skip(2).collect(),
        _ => text.chars().skip(1).collect(),
    }
}

/// The edits inside of the document, not around it.
fn within(candidate: &Candidate) -> impl Iterator<Item = &Edit> {
    candidate.edits.iter().filter(|edit| candidate.span.contains(edit.span))
}

/// What the provider wrote itself to close the document: whole values are not answers, a cut string is noted.
fn closed(text: &str, at: usize, provenance: &mut Vec<Provenance>, attempt: u32) -> Vec<Violation> {
    let mut violations = Vec::new();
    for path in values_from(text, at) {
        provenance.push(Provenance { path: path.clone(), source: Source::Closed, attempt });
        let violation = Violation::new(path, "closed", Stage::Read);
        violations.push(violation.with_found("the limit of tokens closed the document first"));
    }
    if violations.is_empty() {
        provenance.push(Provenance { path: JsonPath::root(), source: Source::Closed, attempt });
    }
    violations
}

/// Why a text could not be read, as the end of a sentence that begins with "Not JSON".
fn unreadable(error: &ReadError) -> String {
    match error {
        ReadError::Syntax { at, message } => format!("{message} (byte {at})"),
        other => other.to_string(),
    }
}

fn truncated() -> Failure {
    let violation = of_answer("truncated", "a complete document", "the limit of tokens");
    Failure::Truncated { violations: vec![violation] }
}
