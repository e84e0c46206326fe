//! Examines an answer: reads its text, maps it back and judges it. A function of the contract, the call and the completion.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_json::{Candidate, Edit, JsonPath, Level, Places, ReadError, Rounded, locate, read, splice};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::closed::{CUT, Closed, RUNAWAY, in_document, is_incomplete};
use super::compliance::{self, Proof};
use super::drafts::Draft;
use super::places::{Place, Places as Parts};
use super::question::Question;
use super::rest::unended;
use super::warnings::{self, Ranked};
use crate::feedback::cut_bytes;
use crate::judgement::Decoded;
use crate::lift::{Lifted, lift_exact};
use crate::{
    Ask, Call, Completion, Failure, Finish, Fit, Lowered, Provenance, Report, Source, Stage, Violation,
    Warning, WarningKind, precision, spaced,
};

/// The result of examining an answer.
#[derive(Default)]
pub(super) struct Examined {
    pub(super) draft: Option<Draft>,
    /// All that could be read of an answer that ended early, if the draft is its beginning without values that had not ended.
    pub(super) read: Option<Draft>,
    pub(super) edits: Vec<Edit>,
    pub(super) failure: Option<Failure>,
    /// The proof that the server ignored the schema, if any.
    pub(super) ignored: Option<Proof>,
    /// Whether a value exceeds a bound that lowering added.
    pub(super) exceeds_bound: bool,
}

impl Examined {
    /// Returns the result for an answer without a document.
    fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

/// A candidate that was lifted and judged.
struct Document {
    draft: Draft,
    violations: Vec<Violation>,
    /// The number of violations that a report does not keep.
    left_out: usize,
    /// The violations before values were changed to fit the schema; empty if none was.
    before: Vec<Violation>,
    /// Whether a value exceeds a bound that lowering added.
    exceeds_bound: bool,
}

impl Question<'_> {
    /// Reads, lifts and judges an answer.
    pub(super) fn examine(&self, completion: &Completion, stopped: Option<Violation>) -> Examined {
        let failed = Examined::failed;
        if let Some(reason) = stopped {
            let ignored = Some(self.call).filter(|_| *self.ask == Ask::Whole);
            let ignored = ignored.and_then(|call| compliance::stopped(call, &reason));
            let draft = Some(completion).filter(|_| reason.rule != RUNAWAY);
            let draft = draft.and_then(|completion| self.begun(completion));
            return Examined { draft, ignored, ..failed(Failure::Stopped { violations: vec![reason] }) };
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
        if let Ask::Patch(_) = self.ask
            && let Some(draft) = self.begun(completion)
        {
            return Examined { draft: Some(draft), ..failed(self.truncated()) };
        }
        let candidates = match read(&completion.text, self.plan.options.level) {
            Ok(reading) => reading.into_candidates(),
            Err(error)
                if error == ReadError::Unfinished
                    || completion.finish == Finish::Length
                    || ends_inside(&completion.text) =>
            {
                return Examined { draft: self.begun(completion), ..failed(self.truncated()) };
            }
            Err(error) => {
                let violation = of_answer("json", "", &unreadable(&error));
                let ignored = self.promised(completion).and_then(|_| compliance::unread(completion, &error));
                return Examined { ignored, ..failed(Failure::NotJson { violations: vec![violation] }) };
            }
        };
        match self.ask {
            Ask::Whole => self.examine_whole(completion, candidates),
            Ask::Patch(paths) => self.examine_patch(completion, paths, candidates),
        }
    }

    /// Examines an answer for the whole document, by the candidate that [fits](Fit) the contract best.
    fn examine_whole(&self, completion: &Completion, candidates: Vec<Candidate>) -> Examined {
        let unfinished_end = unfinished_end(&candidates);
        // A single candidate needs no rank.
        let are_ranked = candidates.len() > 1;
        let mut ranked = Vec::new();
        let mut nearest: Option<(Option<Fit>, Document, Candidate)> = None;
        for mut candidate in candidates {
            let value = std::mem::take(&mut candidate.value);
            let document = self.lifted(completion, &candidate, value, &self.call.lowered);
            let schema = self.plan.contract.schema().document();
            let fit =
                are_ranked.then(|| Fit::new(schema, &candidate, &document.draft.value, &document.violations));
            ranked.extend(fit.map(|fit| Ranked::new(fit, &candidate)));
            if nearest.as_ref().is_none_or(|(best, ..)| fit > *best) {
                nearest = Some((fit, document, candidate));
            }
        }
        let Some((fit, document, candidate)) = nearest else {
            return Examined::failed(self.truncated());
        };
        let Document { mut draft, violations, left_out, before, exceeds_bound } = document;
        draft.warnings.extend(fit.and_then(|fit| warnings::of_documents(&candidate, &fit, &ranked)));
        // The server is judged by the document that it sent.
        let is_coerced = !before.is_empty();
        let sent = if is_coerced { &before } else { &violations };
        let ignored = self.promised(completion).and_then(|call| {
            let value = Some(&*draft.value).filter(|_| call.lowered.lift.is_empty() && !is_coerced);
            compliance::read(call, completion, &candidate, value, sent)
        });
        let opening = |at: usize| completion.text.as_bytes().get(at);
        let is_cut = is_unfinished(completion, &candidate) && !self.plan.policy.accepts_incomplete()
            // An aside such as `[1` after an object is no second answer.
            || unfinished_end
                .is_some_and(|at| at != candidate.span.start && opening(at) == opening(candidate.span.start))
            // A sequence that was stopped may have had further documents.
            || completion.finish == Finish::Stopped && candidate.is_sequence();
        let failure = if is_cut { Some(self.truncated()) } else { failure(violations, left_out) };
        let is_closed = completion.closed_at.is_some() && matches!(failure, Some(Failure::Truncated { .. }));
        let (begun, edits) = (Some(completion).filter(|_| is_cut || is_closed), candidate.all_edits());
        let (draft, read) = match begun.and_then(|completion| self.begun(completion)) {
            Some(begun) => (Some(begun), Some(draft)),
            None => (Some(draft), None),
        };
        Examined { draft, read, edits, failure, ignored, exceeds_bound }
    }

    /// Adds the violations of incomplete values, and removes other violations of these values, which the model did not
    /// cause.
    fn add_incomplete(&self, violations: &mut Vec<Violation>, closed: &Closed) {
        let incomplete = closed.violations(self.plan.policy.accepts_incomplete(), self.cut_by);
        violations.retain(|violation| !incomplete.iter().any(|other| other.path == violation.path));
        violations.splice(0..0, incomplete);
    }

    fn truncated(&self) -> Failure {
        let violation = of_answer(CUT, "a complete document", self.cut_by);
        Failure::Truncated { violations: vec![violation], left_out: 0 }
    }

    /// Returns the call, if the provider promised that its answer follows the schema of the whole document.
    fn promised(&self, completion: &Completion) -> Option<&Call> {
        (*self.ask == Ask::Whole && compliance::is_armed(self.call, completion)).then_some(self.call)
    }

    /// Lifts and judges one candidate for the whole document, whose value is passed separately.
    fn lifted(
        &self,
        completion: &Completion,
        candidate: &Candidate,
        value: Value,
        lowered: &Lowered,
    ) -> Document {
        let Lifted { mut value, mut problems, mut rounded, exceeds_bound } =
            lift_exact(value, candidate.rounded.clone(), lowered);
        let mut looped = Vec::new();
        if self.call.ends_loops {
            let is_loop =
                |problem: &mut Violation| problem.rule == CUT && ends_loop(&mut value, &problem.path);
            looped.extend(problems.extract_if(.., is_loop).map(|problem| problem.path));
            rounded.retain(|number| number.path.get(&value).is_some());
        }
        let untouched = lowered.lift.is_empty() && within(candidate).next().is_none() && looped.is_empty();
        let text: Arc<str> = match candidate.span.of(self.text) {
            whole if untouched && whole.len() == self.text.len() => Arc::clone(self.text),
            document if untouched => document.into(),
            _ => spaced(&value).into(),
        };
        let source = if candidate.is_exact() { Source::Native } else { Source::Repaired };
        let provenance = vec![Provenance { path: JsonPath::root(), source, attempt: self.attempt }];
        let mut closed = closed(completion, candidate).lifted(lowered, &value);
        let problems = closed.take_full(problems, self.plan.policy.accepts_incomplete());
        let source = Some(&*text).filter(|_| untouched);
        let Judged { value, mut violations, left_out, warnings, decoded, is_changed, before } =
            self.judge(value, source, &rounded, problems);
        self.add_incomplete(&mut violations, &closed);
        if untouched {
            let paths: Vec<JsonPath> = violations.iter().map(|violation| violation.path.clone()).collect();
            let places = Places::find(&text, &paths);
            for violation in &mut violations {
                let span = places.value(&violation.path);
                violation.span = span.map(|span| span.shifted(candidate.span.start));
            }
        }
        let text = if is_changed { spaced(&value).into() } else { text };
        let value = Arc::new(value);
        let of_answer = warnings::of_answer(completion, &within(candidate).collect::<Vec<_>>());
        let looped = looped.into_iter().map(|path| {
            let message = "a list of equal items had no end, and keeps the first";
            Warning::new(WarningKind::Restrained, message).at(path)
        });
        let warnings = of_answer.into_iter().chain(looped).chain(warnings).collect();
        let entry = self.entry;
        let (rest, prefix, wrong) = (Vec::new(), None, Vec::new());
        let draft =
            Draft { text, value, provenance, warnings, rounded, closed, entry, decoded, rest, prefix, wrong };
        Document { draft, violations, left_out, before, exceeds_bound }
    }

    /// Splices the values of a patch into the draft and judges the whole document.
    fn examine_patch(
        &self,
        completion: &Completion,
        paths: &[JsonPath],
        candidates: Vec<Candidate>,
    ) -> Examined {
        let Some(mut candidate) = candidates.into_iter().find(|candidate| candidate.value.is_object()) else {
            let violation =
                of_answer("json", "an object with the values that were asked for", "something else");
            return Examined::failed(Failure::NotJson { violations: vec![violation] });
        };
        let Some(before) = self.draft else { return Examined::failed(self.truncated()) };
        if self.plan.policy.resumes() && is_unfinished(completion, &candidate) {
            // No value of it has ended.
            return Examined::failed(self.truncated());
        }
        if let Some(draft) = self.whole_instead(completion, paths, &candidate, &before.value) {
            return Examined { draft: Some(draft), edits: candidate.edits, ..Examined::default() };
        }
        let (lowered, cut) = (&self.call.lowered, closed(completion, &candidate));
        let Lifted { value: answer, problems, rounded, .. } =
            lift_exact(std::mem::take(&mut candidate.value), std::mem::take(&mut candidate.rounded), lowered);
        let mut cut = cut.lifted(lowered, &answer);
        let problems = cut.take_full(problems, self.plan.policy.accepts_incomplete());
        let (mut draft, given) = self.patched(before, paths, &answer, &rounded, &cut);
        let unended = unended(paths, &given, &before.value);
        let Judged { value, mut violations, left_out, warnings, decoded, is_changed, .. } =
            self.judge(Value::clone(&draft.value), None, &draft.rounded, problems);
        self.add_incomplete(&mut violations, &draft.closed);
        if is_changed {
            draft.text = spaced(&value).into();
        }
        // Warnings about reading the earlier answers still hold. Those of checks and numbers are replaced, because the whole document
        // was judged anew.
        draft.warnings.retain(|warning| !matches!(warning.kind, WarningKind::Check | WarningKind::Rounded));
        draft.warnings.extend(warnings::of_answer(completion, &within(&candidate).collect::<Vec<_>>()));
        draft.warnings.extend(warnings);
        (draft.value, draft.decoded) = (value.into(), decoded);
        let (edits, failed) = (candidate.edits, Examined::failed(self.truncated()));
        if given.is_empty() && !unended.is_empty() {
            let violation = of_answer(CUT, "a complete document", "an answer without the requested values");
            return Examined::failed(Failure::Truncated { violations: vec![violation], left_out: 0 });
        }
        if !unended.is_empty() {
            // The answer does not say that the list has no further items.
            return Examined { draft: self.unfinished(draft, Vec::new(), unended), edits, ..failed };
        }
        Examined { draft: Some(draft), edits, failure: failure(violations, left_out), ..failed }
    }

    /// Returns the draft of an answer that gives the whole document in place of the requested values, if that is valid and lacks no
    /// member that the document has.
    fn whole_instead(
        &self,
        completion: &Completion,
        paths: &[JsonPath],
        candidate: &Candidate,
        before: &Value,
    ) -> Option<Draft> {
        let members = candidate.value.as_object()?;
        let gives = |part: &Place<'_>| members.contains_key(&part.name());
        if is_unfinished(completion, candidate)
            || !before.as_object()?.keys().all(|name| members.contains_key(name))
            || Parts::new(paths, before).iter().all(gives)
        {
            return None;
        }
        // The schema of the call is that of the requested values.
        let document = self.lifted(completion, candidate, candidate.value.clone(), &Lowered::default());
        document.violations.is_empty().then_some(document.draft)
    }

    /// Returns the draft with the values of a patch, and the paths that the patch gives.
    pub(super) fn patched(
        &self,
        before: &Draft,
        paths: &[JsonPath],
        answer: &Value,
        numbers: &[Rounded],
        cut: &Closed,
    ) -> (Draft, Vec<JsonPath>) {
        let (mut draft, mut given) = (before.clone(), Vec::new());
        (draft.entry, draft.prefix) = (self.entry, None);
        if !draft.rest.is_empty() {
            (draft.rest, draft.wrong, draft.closed) = (Vec::new(), Vec::new(), Closed::default());
        }
        let mut text = Cow::Borrowed(&*before.text);
        for part in Parts::new(paths, &before.value).iter() {
            let (place, path) = (part.in_answer(), part.path);
            let Some(value) = place.get(answer) else { continue };
            let mut pairs = vec![(place.clone(), path.clone())];
            let patched = match value {
                Value::Array(items) if part.is_rest => {
                    let list = path.parent().unwrap_or_default();
                    let from = list.get(&before.value).and_then(Value::as_array).map_or(0, Vec::len);
                    pairs = (0..items.len()).map(|nth| (place.index(nth), list.index(from + nth))).collect();
                    append(&text, &list, items.iter().map(spaced))
                }
                Value::Object(members) if part.is_rest => {
                    let map = path.parent().unwrap_or_default();
                    // Members that the document has already stay.
                    let is_new =
                        |(name, _): &(&String, &Value)| map.key(name.as_str()).get(&before.value).is_none();
                    let new: Vec<_> = members.iter().filter(is_new).collect();
                    let pair =
                        |(name, _): &(&String, &Value)| (place.key(name.as_str()), map.key(name.as_str()));
                    pairs = new.iter().map(pair).collect();
                    let member = |(name, value): (&String, &Value)| {
                        format!("{}: {}", Value::from(name.as_str()), spaced(value))
                    };
                    append(&text, &map, new.into_iter().map(member))
                }
                _ if part.is_rest => None,
                value => splice(&text, path, value),
            };
            let Some(patched) = patched else { continue };
            text = Cow::Owned(patched);
            given.push(path.clone());
            for (place, path) in &pairs {
                let narrowed = self.plan.contract.rules().any(|rule| rule.at(path).is_some());
                let source = if narrowed { Source::Narrowed } else { Source::Patched };
                draft.provenance.retain(|part| part.path.is_root() || !part.path.is_within(path));
                draft.provenance.push(Provenance { path: path.clone(), source, attempt: self.attempt });
                draft.closed.replace(path);
                draft.closed.adopt(cut, place, path);
                draft.rounded.retain(|number| !number.path.is_within(path));
                draft.rounded.extend(numbers.iter().filter_map(|number| {
                    let path = in_document(&number.path, place, path)?;
                    Some(Rounded { path, ..number.clone() })
                }));
            }
        }
        // The text may have numbers beyond the range of a double, which serde_json does not read.
        let reading = read(&text, Level::Clean).map(|reading| reading.into_candidates().swap_remove(0).value);
        draft.value = reading.unwrap_or_default().into();
        draft.text = text.into();
        (draft, given)
    }

    /// Judges a document without its optional members that are `null`, and with the values that the contract lets convert. Its first
    /// violations are those of lifting, then those of its rounded numbers.
    fn judge(
        &self,
        value: Value,
        text: Option<&str>,
        rounded: &[Rounded],
        problems: Vec<Violation>,
    ) -> Judged {
        let mut settled = self.plan.contract.settle_with(value, text, &self.context, self.source);
        let (is_changed, mut warnings) = (settled.is_changed(), settled.warnings());
        let decoded = settled.judgement.take_decoded();
        let (mut violations, mut left_out) = (settled.judgement.violations, settled.judgement.left_out);
        if !rounded.is_empty() {
            let (inexact, were_rounded) = precision(rounded);
            // Such a number is not the `null` that stands in for it.
            let is_null = |path: &JsonPath| path.get(&settled.value).is_some_and(Value::is_null);
            // The schema counts each `null` itself.
            let refused = rounded.iter().filter(|number| !number.is_tolerable()).skip(Report::CAP);
            left_out += refused.filter(|number| !is_null(&number.path)).count();
            let stands_in =
                |path: &JsonPath| is_null(path) && inexact.iter().any(|other| other.path == *path);
            violations.retain(|violation| !stands_in(&violation.path));
            violations.splice(0..0, inexact);
            warnings.extend(were_rounded);
        }
        violations.splice(0..0, problems);
        Judged {
            value: settled.value,
            violations,
            left_out,
            warnings,
            decoded,
            is_changed,
            before: settled.before,
        }
    }
}

/// A document that was judged.
struct Judged {
    /// The document, without members that count as absent.
    value: Value,
    violations: Vec<Violation>,
    /// The number of violations that a report does not keep.
    left_out: usize,
    warnings: Vec<Warning>,
    decoded: Decoded,
    /// Whether the document is another than the answer's.
    is_changed: bool,
    /// The violations before values were changed to fit the schema; empty if none was.
    before: Vec<Violation>,
}

/// Returns the repairs inside of the document, without those of the text around it.
fn within(candidate: &Candidate) -> impl Iterator<Item = &Edit> {
    candidate.edits.iter().filter(|edit| candidate.span.contains(edit.span))
}

/// Returns whether the model did not end the root of a document. Objects, lists and strings have an end of their own, whatever the
/// reason why the model stopped. If it did not stop by itself, a number at the end of the text may miss digits, and a document that
/// has no end as strict JSON was not completed by a lenient reading.
fn is_unfinished(completion: &Completion, candidate: &Candidate) -> bool {
    let text = &completion.text;
    let is_number_at_end = || {
        candidate.span.end == text.len() && candidate.span.of(text).ends_with(|c: char| c.is_ascii_digit())
    };
    let is_stopped = !completion.finish.is_by_model() && completion.closed_at.is_none();
    candidate.closed_at().is_some() || is_stopped && (is_number_at_end() || ends_inside(text))
}

/// Ends a list that fills an added bound after its first item, if its items are equal. Returns whether they are.
fn ends_loop(value: &mut Value, path: &JsonPath) -> bool {
    let Some(items) = path.get_mut(value).and_then(Value::as_array_mut) else { return false };
    let is_loop = items.len() > 1 && items.iter().all(|item| Some(item) == items.first());
    if is_loop {
        items.truncate(1);
    }
    is_loop
}

/// Returns the first byte of the last document of a text, if it has no end. Lenient edits are no sign of that: they make documents
/// of braces in prose.
fn unfinished_end(candidates: &[Candidate]) -> Option<usize> {
    let last =
        candidates.iter().filter(|candidate| !candidate.is_sequence()).max_by_key(|it| it.span.start)?;
    let is_clean = last.edits.iter().all(|edit| edit.kind.level() <= Level::Clean);
    (is_clean && last.closed_at().is_some()).then_some(last.span.start)
}

/// Returns whether a text, read as strict JSON, ends inside of its first object or list, or is an unfinished string.
fn ends_inside(text: &str) -> bool {
    let is_string = text.trim_start().starts_with('"');
    let start = if is_string { Some(0) } else { text.find(['{', '[']) };
    start.and_then(|start| text.get(start..)).is_some_and(|document| {
        serde_json::from_str::<IgnoredAny>(document).is_err_and(|error| error.is_eof())
    })
}

/// Returns the values of an answer's document that are incomplete because of the token limit.
fn closed(completion: &Completion, candidate: &Candidate) -> Closed {
    if is_unfinished(completion, candidate) {
        return Closed::unfinished();
    }
    let Some(at) = completion.closed_at else { return Closed::default() };
    if within(candidate).next().is_some() {
        Closed::whole()
    } else {
        let text = candidate.span.of(&completion.text);
        Closed::of(text, at.saturating_sub(candidate.span.start))
    }
}

/// Returns a text with items at the end of a list, or members at the end of an object, and every other byte unchanged.
fn append(text: &str, container: &JsonPath, items: impl Iterator<Item = String>) -> Option<String> {
    let span = locate(text, container)?;
    let body = span.of(text).strip_suffix([']', '}'])?.trim_end().len();
    let (before, after) = text.split_at_checked(span.start + body)?;
    let mut appended = before.to_owned();
    for (nth, item) in items.enumerate() {
        appended.push_str(if nth == 0 && body == 1 { "" } else { ", " });
        appended.push_str(&item);
    }
    Some(appended + after)
}

/// Returns the failure of a document with these violations; `None` if there are none.
fn failure(violations: Vec<Violation>, left_out: usize) -> Option<Failure> {
    if violations.is_empty() {
        None
    } else if violations.iter().any(is_incomplete) {
        Some(Failure::Truncated { violations, left_out })
    } else {
        Some(Failure::Invalid { violations, left_out })
    }
}

/// Returns the reason why a text could not be read, for a sentence that begins with "Not JSON".
fn unreadable(error: &ReadError) -> String {
    match error {
        ReadError::Syntax { at, message } => format!("{message} (byte {at})"),
        other => other.to_string(),
    }
}

/// Creates a violation of the whole answer.
pub(super) fn of_answer(rule: &str, expected: &str, found: &str) -> Violation {
    Violation::new(JsonPath::root(), rule, Stage::Read).with_expected(expected).with_found(found)
}
