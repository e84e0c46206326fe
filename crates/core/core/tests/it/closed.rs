//! Answers that the token limit ended and that the provider closed without the model.

use std::sync::Arc;

use formwork_core::*;
use serde_json::json;

use crate::support::*;

/// Returns the parts of [`GOOD`], each with its first byte and the byte after its last.
fn parts() -> Vec<(&'static str, usize, usize)> {
    let span = |path, text: &str| {
        let start = GOOD.find(text).unwrap();
        (path, start, start + text.len())
    };
    let mut parts = vec![
        ("$", 0, GOOD.len()),
        span("$.score", "700"),
        span("$.parts", r#"{"a": 70, "b": 70}"#),
        span("$.parts.a", "70,"),
        span("$.parts.b", "70}"),
        span("$.note", r#""fine""#),
    ];
    // Without the last character, which distinguishes the two numbers.
    (parts[3].2, parts[4].2) = (parts[3].2 - 1, parts[4].2 - 1);
    parts
}

/// Returns whether a part was begun and not ended where the document was closed. Only a number's own end is ambiguous.
fn is_cut((path, start, end): (&str, usize, usize), at: usize) -> bool {
    let may_go_on = ["$", "$.score", "$.parts.a", "$.parts.b"].contains(&path);
    start < at && (at < end || at == end && may_go_on)
}

fn paths<'p>(paths: impl IntoIterator<Item = &'p JsonPath>) -> Vec<String> {
    let mut paths: Vec<_> = paths.into_iter().map(ToString::to_string).collect();
    paths.sort();
    paths
}

#[test]
fn wherever_the_limit_falls_the_attempt_is_truncated_and_called_again_with_more_room() {
    // A policy that continues answers requests only the values that did not end; see `rest` of formwork-extract.
    let policy = Policy::default().with_patching(Patching::Never);
    let plan = Plan::new(contract(), vec![target("primary")]).with_max_tokens(50).with_policy(policy);
    let plan = plan.build().unwrap();
    for at in 0..=GOOD.len() {
        let driven = drive(&plan, input(), &[Reply::Closes(GOOD, at), Reply::Says(GOOD)]);
        let first = driven.run.ledger()[0].clone();
        let CallResult::Failed { failure: Failure::Truncated { violations, .. } } = &first.verdict else {
            panic!("{at}: {:?}", first.verdict);
        };
        assert_eq!(paths(violations.iter().map(|violation| &violation.path)), paths(&first.closed), "{at}");
        let cut: Vec<_> = parts().into_iter().filter(|part| is_cut(*part, at)).collect();
        let supplied: Vec<_> = parts().into_iter().filter(|(_, start, _)| *start >= at).collect();
        let outermost = supplied.iter().filter(|(path, ..)| {
            !supplied.iter().any(|(outer, ..)| outer != path && path.starts_with(outer))
        });
        let mut expected: Vec<_> = cut.iter().chain(outermost).map(|(path, ..)| (*path).to_owned()).collect();
        expected.sort();
        assert_eq!(paths(&first.closed), expected, "closed at {at}");
        assert_eq!((driven.calls[0].2.max_tokens, driven.calls[1].2.max_tokens), (Some(50), Some(100)));
        assert_eq!(driven.run.finish().unwrap().closed().count(), 0);
        // No better answer followed, so this one is the best, with its violations.
        let error = drive(&plan, input(), &[Reply::Closes(GOOD, at)]).run.finish().unwrap_err();
        let best = error.best().unwrap();
        assert_eq!(best.value, serde_json::from_str::<serde_json::Value>(GOOD).unwrap());
        assert_eq!(paths(best.violations.iter().map(|violation| &violation.path)), expected);
    }
    // Values that the model ended itself before have no marks.
    let driven = drive(&plan, input(), &[Reply::Closes(GOOD, GOOD.len() + 1)]);
    assert_eq!(driven.run.finish().unwrap().provenance.len(), 1);
}

#[test]
fn a_limit_of_the_providers_own_is_doubled_as_well() {
    let plan = Plan::new(contract(), vec![target("primary")]).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Closes(GOOD, 30), Reply::Says(GOOD)]);
    let limits: Vec<_> = driven.calls.iter().map(|(_, _, call)| call.max_tokens).collect();
    assert_eq!(limits, [None, Some(20)], "the answer had used 10 tokens");
}

#[test]
fn a_policy_may_accept_what_was_cut_and_never_what_was_supplied() {
    let plan = plan(Policy::new(1).with_incomplete(true));
    let mut accepted = 0;
    for at in 0..=GOOD.len() {
        let finished = drive(&plan, input(), &[Reply::Closes(GOOD, at)]).run.finish();
        let is_supplied = parts().iter().any(|(_, start, _)| *start >= at);
        assert_eq!(finished.is_ok(), !is_supplied, "closed at {at}");
        let Ok(outcome) = finished else { continue };
        accepted += 1;
        let marks = outcome.provenance.iter().filter(|part| part.source == Source::Closed);
        let expected = parts().into_iter().filter(|part| is_cut(*part, at)).map(|(path, ..)| path.to_owned());
        assert_eq!(paths(marks.map(|part| &part.path)), paths(outcome.closed()));
        assert_eq!(paths(outcome.closed()), expected.collect::<Vec<_>>(), "closed at {at}");
        let warned = outcome.warnings.iter().filter(|warning| warning.kind == WarningKind::Incomplete);
        assert_eq!(paths(warned.filter_map(|warning| warning.path.as_ref())), paths(outcome.closed()));
    }
    assert!(accepted > 3, "{accepted}");
    assert!(policies().iter().all(|policy| !policy.accept_incomplete));
}

/// Requests these values alone after every failure, three times.
#[derive(Debug)]
struct Patches(Vec<JsonPath>);

impl RetryPolicy for Patches {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling::default()
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        if seen.attempts >= 3 {
            return Decision::GiveUp;
        }
        let ask = Ask::Patch(self.0.clone());
        Decision::Ask(Reask::new(ask, seen.sampling).with_max_tokens(seen.max_tokens))
    }
}

#[test]
fn the_marks_survive_patches_but_for_the_values_that_are_replaced() {
    let note: JsonPath = "$.note".parse().unwrap();
    let plan =
        Plan::new(contract(), vec![target("primary")]).with_policy(Patches(vec![note])).build().unwrap();
    let at = GOOD.find("\"b\"").unwrap();
    let script = [Reply::Closes(GOOD, at), Reply::Says(r#"{"note": "a whole one"}"#)];
    let error = drive(&plan, input(), &script).run.finish().unwrap_err();
    let closed: Vec<_> = error.calls().iter().map(|call| paths(&call.closed)).collect();
    assert_eq!(closed[0], ["$", "$.note", "$.parts", "$.parts.b"]);
    assert_eq!(closed[1], ["$", "$.parts", "$.parts.b"]);
    assert_eq!(closed[2], closed[1]);
    assert!(
        error
            .calls()
            .iter()
            .all(|call| matches!(&call.verdict, CallResult::Failed { failure: Failure::Truncated { .. } }))
    );
    assert_eq!(error.best().unwrap().value["note"], "a whole one");
    // A patch that was closed marks the values that it did not complete.
    let broken = r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": 3}"#;
    let patch = r#"{"note": "cut off"}"#;
    let script = [Reply::Says(broken), Reply::Closes(patch, patch.find("off").unwrap())];
    let error = drive(&plan, input(), &script).run.finish().unwrap_err();
    assert_eq!(paths(&error.calls()[2].closed), ["$.note"]);
    // The same holds for a patch that ends in the middle, at every level of reading.
    let script = [Reply::Says(broken), Reply::Ends(r#"{"note": "cut"#, Finish::Length)];
    let error = drive(&plan, input(), &script).run.finish().unwrap_err();
    assert_eq!(error.calls()[1].verdict.failure().unwrap().class(), "truncated");
    // A text that was cut off and could be read is not completed by a patch either.
    let cut = r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fi"#;
    let script = [Reply::Ends(cut, Finish::Length), Reply::Says(r#"{"note": "fine"}"#)];
    let error = drive(&plan, input(), &script).run.finish().unwrap_err();
    assert_eq!(paths(&error.calls()[2].closed), ["$"]);
}

/// Sends the schema unchanged, with lift operations for the answer.
#[derive(Debug)]
struct Lifting(Vec<LiftOp>);

impl Lower for Lifting {
    fn name(&self) -> &str {
        "lifting"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let (schema, enforcement) = (Some(request.schema.clone()), self.enforcement());
        Ok(Lowered::new(enforcement, schema).with_lift(self.0.clone()))
    }
}

#[test]
fn the_marks_survive_lifting() {
    let op = |at: &str, lift| LiftOp { at: at.to_owned(), lift };
    let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    let reorder = op("", Lift::Reorder(names(["score", "note", "parts"])));
    let rename = op("", Lift::Rename(vec![("words".to_owned(), "note".to_owned())]));
    let drop = op("", Lift::DropNull(vec!["score".to_owned()]));
    let text = r#"{"parts": {"a": 70, "b": 70}, "note": "fine", "score": 700}"#;
    let renamed = r#"{"parts": {"a": 70, "b": 70}, "words": "fine", "score": 700}"#;
    for (ops, text, marks) in [
        (vec![reorder.clone()], text, vec!["$", "$.note", "$.score"]),
        (vec![drop, reorder], text, vec!["$", "$.note", "$.score"]),
        // Lifting moves values, so no single value is known to be complete.
        (vec![rename], renamed, vec!["$"]),
    ] {
        let target = Target::new("one", Capabilities::new(Enforcement::Schema))
            .with_mode(Arc::new(Lifting(ops.clone())));
        let plan = Plan::new(contract(), vec![target]).with_policy(Policy::new(1)).build().unwrap();
        let at = text.find("ne\"").unwrap();
        let whole = drive(&plan, input(), &[Reply::Says(text)]).run.finish().unwrap();
        assert_eq!(whole.value, serde_json::from_str::<serde_json::Value>(GOOD).unwrap());
        let error = drive(&plan, input(), &[Reply::Closes(text, at)]).run.finish().unwrap_err();
        assert_eq!(paths(&error.calls()[0].closed), marks, "{ops:?}");
        assert_eq!(error.calls()[0].verdict.failure().unwrap().class(), "truncated");
    }
}

#[test]
fn a_restraint_is_reported_in_the_attempt_and_the_outcome() {
    let plan = plan(Policy::default());
    for restrained in [false, true] {
        let mut run = Run::new(&plan, input());
        let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
        let mut completion = Completion::new(GOOD);
        completion.restrained = restrained;
        run.on(&plan, Time(1), Event::answered(id, completion)).unwrap();
        assert_eq!(run.ledger()[0].restrained, restrained);
        let reported = json!(run.ledger()[0]).get("restrained").cloned();
        assert_eq!(reported, restrained.then(|| json!(true)));
        assert_eq!(run.finish().unwrap().is_restrained(), restrained);
    }
}

#[test]
fn of_a_patch_of_two_values_only_the_one_that_was_cut_is_marked() {
    let [score, note] = ["$.score", "$.note"].map(|path| path.parse::<JsonPath>().unwrap());
    let policy = Patches(vec![score, note]);
    let plan = Plan::new(contract(), vec![target("primary")]).with_policy(policy).build().unwrap();
    let broken = r#"{"score": "x", "parts": {"a": 70, "b": 70}, "note": 3}"#;
    let patch = r#"{"score": 700, "note": "cut off"}"#;
    let script = [Reply::Says(broken), Reply::Closes(patch, patch.find("off").unwrap())];
    let error = drive(&plan, input(), &script).run.finish().unwrap_err();
    assert_eq!(paths(&error.calls()[1].closed), ["$.note"]);
}
