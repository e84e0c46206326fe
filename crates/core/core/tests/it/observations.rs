//! Observations of a run about its targets: the schemas that they refuse, and the proof that they ignore one.

use std::sync::Arc;

use formwork_core::*;
use serde_json::{Value, json};

use crate::support::*;

/// Sends the schema unchanged, with the lowering report of a test.
#[derive(Debug)]
struct Lossy(Vec<Loss>);

impl Lower for Lossy {
    fn name(&self) -> &str {
        "lossy"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let (schema, enforcement) = (Some(request.schema.clone()), Enforcement::Schema);
        Ok(Lowered::new(enforcement, schema).with_losses(self.0.clone()))
    }
}

fn loss(pointer: &str, keyword: &str, kind: LossKind) -> Loss {
    Loss::new(pointer, keyword, kind)
}

/// Returns the observation after one answer to a schema that was lowered with this report.
fn taught(losses: Vec<Loss>, reply: Reply) -> Option<Box<Observation>> {
    let target = Target::new("primary", Capabilities::new(Enforcement::Schema))
        .with_mode(Arc::new(Lossy(losses)))
        .with_mode(Arc::new(AsIs("prompt", Enforcement::None)));
    let plan = Plan::new(contract(), vec![target]).build().unwrap();
    drive(&plan, input(), &[reply, Reply::Says(GOOD)]).run.ledger()[0].observation.clone()
}

/// Returns the proof in an answer that the server did not enforce the schema, and whether the answer is prose.
fn reason(reply: Reply) -> Option<(String, bool)> {
    let observation = taught(Vec::new(), reply)?;
    match observation.kind {
        ObservationKind::Ignored => Some((observation.reason, false)),
        ObservationKind::Prose => Some((observation.reason, true)),
        _ => None,
    }
}

const MISSING: &str = r#"{"score": 700, "parts": {"a": 70, "b": 70}}"#;
const WRONG_TYPE: &str = r#"{"score": 700, "parts": {"a": "70", "b": 70}, "note": "fine"}"#;
const UNKNOWN: &str = r#"{"score": 700, "parts": {"a": 70, "b": 70, "c": 1}, "note": "fine"}"#;

#[test]
fn a_parameter_of_sampling_that_is_refused_is_omitted_and_the_call_made_again() {
    let refused = Reply::Refuses("`temperature` is deprecated for this model.");
    let seed = Reply::Refuses("body.seed: Extra inputs are not permitted");
    let other = Reply::Refuses("Unsupported parameter: 'max_tokens' is not supported with this model.");
    let plan = plan(at_most(0.2));
    let run = drive(&plan, input().with_seed(7), &[refused.clone(), seed, Reply::Says(GOOD)]).run;
    let ledger = run.ledger();
    let skipped: Vec<&[String]> = ledger.iter().map(|call| call.skipped.as_slice()).collect();
    assert_eq!(
        skipped,
        [&[][..], &["temperature".to_owned()], &["temperature".to_owned(), "seed".to_owned()]]
    );
    assert!(ledger.iter().all(|call| call.attempt == ledger[0].attempt), "no further attempt");
    let words: Vec<String> = run.observations().map(ToString::to_string).collect();
    assert_eq!(words.len(), 2);
    assert!(words[0].starts_with("target `primary` refused `temperature`, which is left out from now on: "));
    // The next run starts with what this one learnt, and limits of tokens stay.
    let known = TargetAdvice::default().with_refused_sampling([SamplingParameter::Temperature]);
    let run = run_with(Run::new(&plan, input()), Advice::new([known]));
    let run = drive_run(&plan, run, &[Reply::Says(GOOD)]).run;
    assert_eq!(
        (run.ledger().len(), run.ledger()[0].skipped.as_slice()),
        (1, &["temperature".to_owned()][..])
    );
    let run = drive(&plan, input(), &[other, Reply::Says(GOOD)]).run;
    assert_eq!(run.observations().count(), 0);
}

#[test]
fn what_a_held_model_cannot_write_proves_that_it_is_not_held() {
    let proofs = [
        ("I think that it is a good wallet.", "the answer is not JSON"),
        ("Here you are: {\"score\": 700}", "the answer is not JSON"),
        ("{score: 700}", "the answer is not JSON"),
        (MISSING, "the answer breaks `required` at $.note"),
        (WRONG_TYPE, "the answer breaks `type` at $.parts.a"),
        (UNKNOWN, "the answer breaks `additionalProperties` at $.parts.c"),
        ("[]", "the answer breaks `type` at $"),
    ];
    for (text, proof) in proofs {
        let is_prose = proof == "the answer is not JSON";
        assert_eq!(reason(Reply::Says(text)), Some((proof.to_owned(), is_prose)), "{text}");
    }
    let fenced = format!("```json\n{GOOD}\n```");
    assert!(reason(Reply::Says(fenced.leak())).is_some(), "an accepted answer is a proof as well");
}

#[test]
fn what_a_held_model_may_write_proves_nothing() {
    let thought = format!("<think>Let me see.</think>\n{GOOD}");
    let marked = format!("{GOOD}<|im_end|>");
    let texts = [
        GOOD,
        BAD_SUM,
        BAD_RANGE,
        "",
        "  \n",
        r#"{"score": 700, "parts": {"a"#,
        r#"{"score": 7e999, "parts": {}, "note": ""}"#,
        "{\"score\": 700, \"parts\": {\"a\": 70, \"b\": 70}, \"note\": \"two\nlines\"}",
        r#"{"score": 700.0, "parts": {"a": 70, "b": 70}, "note": "x", "note": "y"}"#,
        "<html><body>Bad gateway</body></html>",
        thought.leak(),
        marked.leak(),
    ];
    for text in texts {
        assert_eq!(reason(Reply::Says(text)), None, "{text}");
    }
    for finish in [Finish::Length, Finish::Refused, Finish::Filtered, Finish::ToolCall, Finish::Stopped] {
        for text in ["no JSON here", MISSING, WRONG_TYPE] {
            assert_eq!(reason(Reply::Ends(text, finish.clone())), None, "{finish:?}: {text}");
        }
    }
}

#[test]
fn what_was_closed_or_stopped_from_outside_proves_nothing() {
    let plan = plan(Policy::default());
    for (closed_at, stopped) in [(Some(3), None), (None, Some("runaway"))] {
        let mut run = Run::new(&plan, input());
        let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
        let mut completion = Completion::new(WRONG_TYPE);
        completion.closed_at = closed_at;
        let stopped = stopped.map(|rule| Violation::new(JsonPath::root(), rule, Stage::Read));
        let event = match stopped {
            Some(reason) => Event::stopped(id, completion, reason),
            None => Event::answered(id, completion),
        };
        run.on(&plan, Time(1), event).unwrap();
        assert!(run.observations().all(|observation| observation.kind == ObservationKind::RanAway));
    }
}

#[test]
fn weaker_promises_are_not_broken() {
    for enforcement in [Enforcement::None, Enforcement::JsonObject, Enforcement::Tool] {
        let target = Target::new("weak", Capabilities::new(enforcement))
            .with_mode(Arc::new(AsIs("weak", enforcement)))
            .with_mode(Arc::new(AsIs("prompt", Enforcement::None)));
        let plan = Plan::new(contract(), vec![target]).build().unwrap();
        for text in ["no JSON here", MISSING, WRONG_TYPE] {
            let run = drive(&plan, input(), &[Reply::Says(text), Reply::Says(GOOD)]).run;
            assert_eq!(run.observations().count(), 0, "{enforcement:?}: {text}");
        }
    }
}

#[test]
fn what_the_report_names_is_not_promised() {
    let lost = |text, pointer, keyword, kind| {
        taught(vec![loss(pointer, keyword, kind)], Reply::Says(text)).is_none()
    };
    for kind in [LossKind::Unenforced, LossKind::Loosened] {
        assert!(lost(MISSING, "", "required", kind));
        assert!(lost(WRONG_TYPE, "/properties/parts/properties/a", "type", kind));
        assert!(lost(WRONG_TYPE, "/$defs/part", "type", kind), "a definition may stand anywhere");
        assert!(lost(WRONG_TYPE, "/properties/parts", "properties", kind), "and so may what is inside");
        assert!(lost(WRONG_TYPE, "", "brandNew", kind), "an unknown keyword may mean anything");
        assert!(lost(UNKNOWN, "/properties/parts", "additionalProperties", kind));
        // A loss at another place, or of another kind, excuses nothing.
        assert!(!lost(WRONG_TYPE, "/properties/parts/properties/b", "type", kind));
        assert!(!lost(WRONG_TYPE, "/properties/parts", "type", kind));
        assert!(!lost(WRONG_TYPE, "/properties/parts/properties/a", "maximum", kind));
        assert!(!lost(MISSING, "/properties/parts", "required", kind));
    }
    assert!(!lost(MISSING, "", "required", LossKind::Tightened), "more than promised is kept to as well");
}

#[test]
fn after_an_impossible_document_the_next_attempt_is_made_in_another_mode() {
    let target = Target::new("primary", Capabilities::new(Enforcement::Schema))
        .with_mode(Arc::new(AsIs("strict", Enforcement::Schema)))
        .with_mode(Arc::new(AsIs("plain", Enforcement::Schema)))
        .with_mode(Arc::new(AsIs("object", Enforcement::JsonObject)))
        .with_mode(Arc::new(AsIs("prompt", Enforcement::None)));
    let plan = Plan::new(contract(), vec![target])
        .with_policy(Policy::new(4).with_patching(Patching::Never))
        .build()
        .unwrap();
    let script = [Reply::Says(MISSING), Reply::Fails(FaultKind::SchemaRefused), Reply::Says(GOOD)];
    let run = drive(&plan, input(), &script).run;
    let dialects: Vec<_> = run.ledger().iter().map(|call| call.dialect.as_str()).collect();
    assert_eq!(dialects, ["strict", "object", "prompt"], "another dialect would be ignored as well");
    let observations: Vec<_> =
        run.observations().map(|observation| (observation.mode, observation.kind)).collect();
    assert_eq!(observations, [(0, ObservationKind::Ignored), (2, ObservationKind::Refused)]);
    assert!(
        run.observations()
            .all(|observation| observation.schema == plan.schema_digest() && observation.name == "primary")
    );
    let outcome = run.finish().unwrap();
    assert_eq!(
        outcome.calls[0].observation.as_ref().unwrap().to_string(),
        "target `primary` ignored the schema (dialect `strict`): the answer breaks `required` at $.note"
    );
}

/// An answer of a mode that enforces less than the first one says so, with both modes and the reason of this run or of earlier runs.
#[test]
fn an_answer_in_a_weaker_mode_has_a_warning_with_the_reason() {
    let plan = plan(Policy::new(4).with_patching(Patching::Never));
    let mut known = Health::new();
    for request in 0..2 {
        let reason = "the answer breaks `required` at $.note".to_owned();
        let evidence = Evidence::new("primary", plan.schema_digest(), Time(0), Shown::Impossible { reason });
        known.record(&evidence.with_request(request), &Thresholds::default());
    }
    let known = || known.clone().advise(&plan, &Thresholds::default(), Time(1), false);
    let weaker = "the answer was produced in the output mode `prompt` instead of `strict`";
    for (advice, script, expected) in [
        (Advice::default(), vec![Reply::Says(GOOD)], None),
        (Advice::default(), vec![Reply::Says(BAD_RANGE), Reply::Says(GOOD)], None),
        (starting_in(&[1]), vec![Reply::Says(GOOD)], Some("")),
        (known(), vec![Reply::Says(GOOD)], Some(": the answer breaks `required` at $.note")),
        (
            Advice::default(),
            vec![Reply::Says(MISSING), Reply::Says(GOOD)],
            Some(": the answer breaks `required` at $.note"),
        ),
        (
            Advice::default(),
            vec![Reply::Fails(FaultKind::SchemaRefused), Reply::Says(GOOD)],
            Some(": scripted"),
        ),
    ] {
        let run = drive_run(&plan, run_with(Run::new(&plan, input()), advice), &script).run;
        let warnings = run.finish().unwrap().warnings;
        let said: Vec<_> = warnings
            .iter()
            .filter(|warning| warning.kind == WarningKind::WeakerMode)
            .map(|warning| warning.message.clone())
            .collect();
        let expected: Vec<_> = expected.iter().map(|reason| format!("{weaker}{reason}")).collect();
        assert_eq!(said, expected, "{script:?}");
    }
}

#[test]
fn after_prose_the_mode_stays_except_in_a_trial() {
    for (is_trial, first, second) in [
        (false, "no JSON", "strict"),
        (true, "no JSON", "prompt"),
        (false, MISSING, "prompt"),
        (true, MISSING, "prompt"),
        (true, BAD_RANGE, "strict"),
    ] {
        let plan = plan(Policy::new(2).with_patching(Patching::Never));
        let advice = if is_trial { TargetAdvice::default().with_trial() } else { TargetAdvice::default() };
        let run = run_with(Run::new(&plan, input()), Advice::new([advice]));
        let run = drive_run(&plan, run, &[Reply::Says(first), Reply::Says(GOOD)]).run;
        let dialects: Vec<_> = run.ledger().iter().map(|call| call.dialect.as_str()).collect();
        assert_eq!(dialects, ["strict", second], "{is_trial}: {first}");
    }
}

#[test]
fn without_another_mode_it_is_said_once() {
    let only = Target::new("only", Capabilities::new(Enforcement::Schema))
        .with_mode(Arc::new(AsIs("strict", Enforcement::Schema)));
    let plan = Plan::new(contract(), vec![only]).with_policy(cooling()).build().unwrap();
    let run = drive(&plan, input(), &[Reply::Says("no"), Reply::Says("nor this")]).run;
    assert_eq!((run.ledger().len(), run.observations().count()), (3, 1));
    let error = run.finish().unwrap_err();
    assert_eq!(format!("{error:#}").matches("did not keep to the schema").count(), 1);
}

#[test]
fn a_refused_patch_says_nothing_about_the_schema() {
    let script = [Reply::Says(BAD_RANGE), Reply::Fails(FaultKind::SchemaRefused), Reply::Says(GOOD)];
    let run = drive(&plan(Policy::new(2)), input(), &script).run;
    let whole = &run.ledger()[2];
    assert_eq!((whole.dialect.as_str(), whole.patched.len()), ("strict", 0), "the whole is requested next");
    assert_eq!(run.observations().count(), 0);
    // A refusal without a word about the schema, too, and once for each target.
    let script = [
        Reply::Says(BAD_RANGE),
        Reply::Fails(FaultKind::BadRequest),
        Reply::Says(BAD_SUM),
        Reply::Says(GOOD),
    ];
    let run = drive(&plan(Policy::new(4)), input(), &script).run;
    let patched: Vec<_> = run.ledger().iter().map(|call| call.patched.len()).collect();
    assert_eq!(patched, [0, 1, 0, 0]);
    assert!(run.finish().is_ok());
}

#[test]
fn a_run_starts_on_the_modes_that_it_is_given() {
    let targets = || vec![target("one"), target("two")];
    let plan = Plan::new(contract(), targets()).with_policy(Policy::default()).build().unwrap();
    let dialects = |starts: &[usize], script: &[Reply]| -> Vec<String> {
        let mut run = run_with(Run::new(&plan, input()), starting_in(starts));
        let mut replies = script.iter();
        while let Step::Call { id, call, .. } = run.step(&plan, Time(0)).unwrap() {
            let Some(reply) = replies.next() else { break };
            run.on(&plan, Time(0), reply.event(id, &call)).unwrap();
            // A run that has begun relies on its own observations.
            run = run_with(run, starting_in(&[9, 9]));
        }
        run.ledger().iter().map(|call| format!("{} {}", call.target, call.dialect)).collect()
    };
    let next = [Reply::Fails(FaultKind::Auth), Reply::Says(GOOD)];
    assert_eq!(dialects(&[], &next), ["one strict", "two strict"]);
    assert_eq!(dialects(&[1], &next), ["one prompt", "two strict"]);
    assert_eq!(dialects(&[0, 7], &next), ["one strict", "two prompt"], "beyond the last stands for the last");
    assert_eq!(
        plan.modes(1).collect::<Vec<_>>(),
        [("strict", Enforcement::Schema), ("prompt", Enforcement::None)]
    );
    assert_eq!(plan.modes(2).count(), 0);
}

#[test]
fn a_lesson_is_data() {
    let observation = taught(Vec::new(), Reply::Says("no")).unwrap();
    let written: Value = serde_json::to_value(&observation).unwrap();
    assert_eq!(written["kind"], "prose");
    assert_eq!(serde_json::from_value::<Observation>(written).unwrap(), *observation);
    let run = drive(&plan(cooling()), input(), &[Reply::Says(GOOD)]).run;
    assert_eq!(json!(run.ledger()[0]).get("observation"), None, "most calls teach nothing");
}

#[test]
fn a_refusal_s_words_are_cut() {
    let plan = plan(cooling());
    let mut run = Run::new(&plan, input());
    let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    let fault = Fault::new(FaultKind::SchemaRefused, "x".repeat(10_000));
    run.on(&plan, Time(0), Event::failed(id, fault, Usage::default())).unwrap();
    assert!(run.observations().next().unwrap().reason.len() < 400);
}
