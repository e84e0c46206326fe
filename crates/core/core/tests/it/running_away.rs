//! Tests of schemas with added bounds, of answers that fill a bound, and of token limits.

use std::sync::{Arc, Mutex};

use formwork_core::*;
use serde_json::json;

use crate::support::*;

/// Bounds the note to a tenth of the tokens, in characters.
#[derive(Debug)]
pub(crate) struct Bounding(pub(crate) Enforcement);

impl Lower for Bounding {
    fn name(&self) -> &str {
        "bounding"
    }

    fn enforcement(&self) -> Enforcement {
        self.0
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let mut schema = request.schema.clone();
        let mut bounds = Vec::new();
        if request.tighten == Tighten::Bounded {
            let max = u64::from(request.max_tokens.unwrap_or(100) / 10);
            schema["properties"]["note"]["maxLength"] = json!(max);
            bounds.push(AddedBound::new("/properties/note", max));
        }
        Ok(Lowered::new(self.0, schema).with_bounds(bounds))
    }
}

fn capabilities() -> Capabilities {
    Capabilities::new(Enforcement::Schema)
}

fn bounding(capabilities: Capabilities) -> Target {
    Target::new("primary", capabilities).with_mode(Arc::new(Bounding(Enforcement::Schema)))
}

fn planned(target: Target, policy: Policy) -> Plan {
    Plan::new(contract(), vec![target])
        .with_policy(policy.with_patching(Patching::Never).with_stop_on_repeat(false))
        .build()
        .unwrap()
}

/// Returns the bound of the note in each call.
fn bounds(driven: &Driven) -> Vec<Option<u64>> {
    let bound = |call: &Call| call.lowered.bounds.first().map(|bound| bound.max);
    driven.calls.iter().map(|(_, _, call)| bound(call)).collect()
}

fn kinds(driven: &Driven) -> Vec<ObservationKind> {
    driven.run.observations().map(|observation| observation.kind).collect()
}

const CUT: Reply = Reply::Ends(r#"{"score": 700, "parts": {"a": 7"#, Finish::Length);
const RIGHT: Reply = Reply::Says(GOOD);
/// An answer whose note has ten characters.
const FULL: Reply = Reply::Says(r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "0123456789"}"#);

#[test]
fn a_schema_is_bounded_for_one_call_after_the_target_ran_away_with_it() {
    use ObservationKind::{Completed, RanAway};

    let bound = Some(10);
    for (script, calls, observations) in [
        (vec![RIGHT], vec![None], vec![]),
        (vec![FULL], vec![None], vec![]),
        (vec![Reply::Says(BAD_SUM), RIGHT], vec![None, None], vec![]),
        (vec![CUT, RIGHT], vec![None, bound], vec![RanAway]),
        (vec![CUT, Reply::Says(BAD_SUM), RIGHT], vec![None, bound, bound], vec![RanAway]),
        (vec![CUT, CUT, RIGHT], vec![None, bound, bound], vec![RanAway]),
        (vec![CUT, FULL, FULL], vec![None, bound, None], vec![RanAway, Completed]),
        (vec![CUT, FULL, CUT, RIGHT], vec![None, bound, None, bound], vec![RanAway, RanAway]),
    ] {
        let driven = drive(&planned(bounding(capabilities()), Policy::new(4)), input(), &script);
        assert_eq!((bounds(&driven), kinds(&driven)), (calls, observations), "{script:?}");
        assert!(driven.run.finish().is_ok(), "{script:?}");
    }
}

#[test]
fn a_stream_that_was_stopped_as_a_runaway_counts_like_one_that_was_cut() {
    for (rule, bounded) in [("runaway", true), ("type", false)] {
        let plan = planned(bounding(capabilities()), Policy::new(2));
        let mut run = Run::new(&plan, input());
        let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
        let reason = Violation::new(JsonPath::root(), rule, Stage::Read);
        let completion = Completion::new("{\"score\": 7").with_finish(Finish::Stopped);
        run.on(&plan, Time(1), Event::stopped(id, completion, reason)).unwrap();
        let Step::Call { call, .. } = run.step(&plan, Time(1)).unwrap() else { panic!() };
        assert_eq!(!call.lowered.bounds.is_empty(), bounded, "{rule}");
    }
}

#[test]
fn targets_for_which_bounds_are_no_remedy_or_decided_about_stay_as_they_are() {
    let prompt = Target::new("primary", capabilities()).with_mode(Arc::new(Bounding(Enforcement::None)));
    for (target, first, second) in [
        (bounding(capabilities()).with_tighten(Tighten::None), None, None),
        (bounding(capabilities()).with_tighten(Tighten::Bounded), Some(10), Some(10)),
        (bounding(capabilities().with_limit_kept()), None, None),
        (prompt, None, None),
    ] {
        let plan = planned(target, Policy::new(3));
        let driven = drive(&plan, input(), &[CUT, RIGHT]);
        assert_eq!((bounds(&driven), kinds(&driven)), (vec![first, second], vec![]));
        // The observations of other runs do not apply to it either.
        let mut run =
            run_with(Run::new(&plan, input()), Advice::new([TargetAdvice::default().with_bounds()]));
        let Step::Call { call, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
        assert_eq!(call.lowered.bounds.first().map(|bound| bound.max), first);
    }
}

#[test]
fn what_an_earlier_run_saw_bounds_the_first_call_until_a_document_is_complete_without() {
    let plan = planned(bounding(capabilities()), Policy::new(3));
    let mut run = run_with(Run::new(&plan, input()), Advice::new([TargetAdvice::default().with_bounds()]));
    for (reply, bounded) in [(FULL, true), (FULL, false)] {
        let Step::Call { id, call, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
        assert_eq!(!call.lowered.bounds.is_empty(), bounded);
        run.on(&plan, Time(1), reply.event(id, &call)).unwrap();
    }
    assert_eq!(
        run.observations().map(|observation| observation.kind).collect::<Vec<_>>(),
        [ObservationKind::Completed]
    );
    assert!(run.finish().is_ok());
}

/// The accepted answer says that its schema had bounds, whether this run or an earlier one saw the reason.
#[test]
fn an_answer_to_a_bounded_schema_has_a_warning() {
    for (bounded, script, expected) in [
        (false, vec![RIGHT], 0),
        (true, vec![RIGHT], 1),
        (false, vec![CUT, RIGHT], 1),
        // The last call has no bounds, because the answer before was full at one.
        (true, vec![FULL, FULL], 0),
        (false, vec![CUT, FULL, FULL], 0),
    ] {
        let plan = planned(bounding(capabilities()), Policy::new(4));
        let advice = TargetAdvice::default();
        let advice = Advice::new([if bounded { advice.with_bounds() } else { advice }]);
        let run = drive_run(&plan, run_with(Run::new(&plan, input()), advice), &script).run;
        let warnings = run.finish().unwrap().warnings;
        let warnings: Vec<_> =
            warnings.iter().filter(|warning| warning.kind == WarningKind::Bounded).collect();
        assert_eq!(warnings.len(), expected, "{bounded} {script:?}");
        let says = |warning: &&Warning| warning.message.contains("because an answer to it had no end");
        assert!(warnings.iter().all(says), "{warnings:?}");
    }
}

#[test]
fn an_answer_that_is_full_at_a_bound_is_incomplete() {
    let target = || bounding(capabilities()).with_tighten(Tighten::Bounded);
    let error = drive(&planned(target(), Policy::new(1)), input(), &[FULL]).run.finish().unwrap_err();
    assert!(error.to_string().contains("truncated at $.note"), "{error}");
    assert_eq!(error.best().unwrap().value["note"], "0123456789");
    assert!(matches!(error.calls()[0].verdict, CallResult::Failed { failure: Failure::Truncated { .. } }));
    let roomy = target().with_identity("it");
    let plan = Plan::new(contract(), vec![roomy]).with_max_tokens(100).build().unwrap();
    let driven = drive(&plan, input(), &[FULL]);
    assert_eq!(bounds(&driven), [Some(10), Some(20)]);
    assert!(driven.run.finish().is_ok());
    let plan = planned(target(), Policy::new(1).with_incomplete(true));
    let outcome = drive(&plan, input(), &[FULL]).run.finish().unwrap();
    let closed: Vec<String> = outcome
        .provenance
        .iter()
        .filter(|part| part.source == Source::Closed)
        .map(|part| part.path.to_string())
        .collect();
    assert_eq!(closed, ["$.note"]);
}

/// Returns the event that stops a call in a loop.
fn looping(id: CallId, text: &str) -> Event {
    let reason = Watch::for_tiny_model().push(text).unwrap();
    Event::stopped(id, Completion::new(text).with_finish(Finish::Stopped), reason)
}

#[test]
fn a_value_in_which_a_tiny_model_loops_is_ended_and_only_what_the_document_lacks_is_requested() {
    let tiny = || bounding(capabilities()).with_tighten(Tighten::Bounded);
    let call = |run: &mut Run, plan: &Plan| match run.step(plan, Time(0)).unwrap() {
        Step::Call { id, call, .. } => (id, call),
        step => panic!("{step:?}"),
    };
    let noted = format!(r#"{{"score": 700, "parts": {{"a": 70, "b": 70}}, "note": "{}"#, "good ".repeat(9));
    let plan = Plan::new(contract(), vec![tiny()]).build().unwrap();
    let mut run = Run::new(&plan, input());
    let (id, first) = call(&mut run, &plan);
    assert!(first.ends_loops);
    run.on(&plan, Time(1), looping(id, &noted)).unwrap();
    let outcome = run.finish().unwrap();
    assert_eq!(outcome.value, json!({"score": 700, "parts": {"a": 70, "b": 70}, "note": "good"}));
    assert_eq!(outcome.trust.other[&History::Restrained].count, 4);

    let early = format!(r#"{{"score": 700, "note": "{}"#, "good ".repeat(9));
    let mut run = Run::new(&plan, input());
    let (id, _) = call(&mut run, &plan);
    run.on(&plan, Time(1), looping(id, &early)).unwrap();
    let (id, second) = call(&mut run, &plan);
    assert!(matches!(run.ask(), Ask::Patch(paths) if *paths == ["$.parts".parse().unwrap()]), "{second:?}");
    run.on(&plan, Time(2), Reply::Says(r#"{"parts": {"a": 70, "b": 70}}"#).event(id, &second)).unwrap();
    let outcome = run.finish().unwrap();
    assert_eq!(outcome.value, json!({"score": 700, "parts": {"a": 70, "b": 70}, "note": "good"}));
    assert!(outcome.warnings.iter().any(|warning| warning.kind == WarningKind::Restrained));

    // A number ends only at the byte after it.
    let anything = Contract::new(Arc::new(Inline::new("list", json!({}))), Arc::new(Anything));
    let plan = Plan::new(anything, vec![tiny()]).build().unwrap();
    let mut run = Run::new(&plan, input());
    let (id, _) = call(&mut run, &plan);
    run.on(&plan, Time(1), looping(id, &format!(r#"{{"list": [{}"#, "1.5, ".repeat(9)))).unwrap();
    assert_eq!(run.finish().unwrap().value, json!({"list": [1.5]}));

    // A model that is not tiny has a reason for a loop, or none that an end of the value would be an answer to.
    let plan = Plan::new(contract(), vec![bounding(capabilities())]).build().unwrap();
    let mut run = Run::new(&plan, input());
    let (id, first) = call(&mut run, &plan);
    assert!(!first.ends_loops);
    run.on(&plan, Time(1), looping(id, &noted)).unwrap();
    let _ = call(&mut run, &plan);
    assert_eq!(*run.ask(), Ask::Whole);
}

#[test]
fn equal_items_up_to_a_bound_are_a_loop_of_a_tiny_model_and_others_an_incomplete_list() {
    #[derive(Debug)]
    struct Listing;
    impl Lower for Listing {
        fn name(&self) -> &str {
            "listing"
        }

        fn enforcement(&self) -> Enforcement {
            Enforcement::Schema
        }

        fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
            let bounds = vec![AddedBound::new("/properties/list", 3)];
            Ok(Lowered::new(Enforcement::Schema, request.schema.clone()).with_bounds(bounds))
        }
    }
    let schema = json!({"properties": {"list": {"items": {"type": "string"}}}});
    for (tighten, answer, expected) in [
        (Tighten::Bounded, r#"{"list": ["a", "a", "a"]}"#, Some(json!(["a"]))),
        (Tighten::Bounded, r#"{"list": ["a", "a"]}"#, Some(json!(["a", "a"]))),
        (Tighten::Bounded, r#"{"list": ["a", "a", "b"]}"#, None),
        (Tighten::Closed, r#"{"list": ["a", "a", "a"]}"#, None),
    ] {
        let target =
            Target::new("primary", capabilities()).with_mode(Arc::new(Listing)).with_tighten(tighten);
        let contract = Contract::new(Arc::new(Inline::new("list", schema.clone())), Arc::new(Anything));
        let plan = Plan::new(contract, vec![target]).with_policy(Policy::new(1)).build().unwrap();
        let outcome = drive(&plan, input(), &[Reply::Says(answer)]).run.finish().ok();
        let is_ended = expected == Some(json!(["a"]));
        let restrained = outcome.iter().flat_map(|it| it.trust.other.get(&History::Restrained));
        assert_eq!(restrained.map(|leaves| leaves.count).sum::<u64>(), u64::from(is_ended), "{answer}");
        assert_eq!(outcome.map(|outcome| outcome.value["list"].clone()), expected, "{answer}");
    }
}

#[test]
fn a_value_without_an_end_is_not_read_again_by_a_model_that_is_known_to_run_away() {
    // A model that ran away once may have had a reason, and reads its answer.
    for (target, is_left_out) in [
        (bounding(capabilities()).with_tighten(Tighten::Bounded), true),
        (bounding(capabilities()).with_tighten(Tighten::Closed), false),
    ] {
        let script = [if is_left_out { FULL } else { CUT }, RIGHT];
        let driven = drive(&planned(target, Policy::new(2)), input(), &script);
        let dialogue: Vec<String> = driven.calls[1].2.messages.iter().map(|message| message.text()).collect();
        let has_answer = dialogue.iter().any(|text| text.contains("{\"score\": 700"));
        assert_eq!(!has_answer, is_left_out, "{dialogue:?}");
        let feedback = dialogue.last().unwrap();
        assert_eq!(feedback.contains("did not end:\n- $.note\n"), is_left_out, "{feedback}");
    }
    // Another violation requires the answer: the model has to see what is wrong with it.
    let wrong = Reply::Says(r#"{"score": "x", "parts": {"a": 70, "b": 70}, "note": "0123456789"}"#);
    let target = bounding(capabilities()).with_tighten(Tighten::Bounded);
    let driven = drive(&planned(target, Policy::new(2)), input(), &[wrong, RIGHT]);
    assert!(driven.calls[1].2.messages.iter().any(|message| message.text().starts_with("{\"score\": \"x\"")));
}

/// Records what is lowered for a target whose schema is bounded: the policy, the token limit, and the number of dependencies.
#[derive(Debug, Default)]
struct Recording(Mutex<Vec<(Tighten, Option<u32>, usize)>>);

impl Lower for Recording {
    fn name(&self) -> &str {
        "recording"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let seen = (request.tighten, request.max_tokens, request.dependencies.len());
        self.0.lock().unwrap().push(seen);
        Bounding(Enforcement::Schema).lower(request)
    }
}

#[test]
fn documents_and_patches_are_lowered_with_the_bounds_and_rules_of_their_target() {
    for (has_rules, dependencies) in [(false, 0), (true, 1)] {
        let recording = Arc::new(Recording::default());
        let mut capabilities = capabilities().with_default_max_tokens(80);
        capabilities.rules = has_rules;
        let lower: Arc<dyn Lower> = recording.clone();
        let target = Target::new("primary", capabilities).with_tighten(Tighten::Bounded).with_mode(lower);
        let plan = Plan::new(contract(), vec![target]).build().unwrap();
        let script = [Reply::Says(BAD_RANGE), Reply::Says(r#"{"parts.a": 70}"#)];
        assert_eq!(drive(&plan, input(), &script).calls.len(), 2);
        let seen = std::mem::take(&mut *recording.0.lock().unwrap());
        assert_eq!(seen.first(), Some(&(Tighten::Bounded, Some(80), dependencies)), "{seen:?}");
        assert!(seen[1..].iter().all(|patch| *patch == (Tighten::Bounded, Some(80), 0)), "{seen:?}");
        assert!(seen.len() > 1);
        // With twice the tokens the document is lowered again.
        drive(&plan, input(), &[CUT, RIGHT]);
        let seen = std::mem::take(&mut *recording.0.lock().unwrap());
        assert_eq!(seen, [(Tighten::Bounded, Some(160), dependencies)]);
    }
}

#[test]
fn each_value_without_an_end_makes_repetition_dearer_for_a_model_that_is_known_to_run_away() {
    let takes = || capabilities().with_frequency_penalty();
    let bounded = |capabilities| bounding(capabilities).with_tighten(Tighten::Bounded);
    for (target, script, expected) in [
        (bounded(takes()), FULL, [None, Some(0.5), Some(1.0), Some(1.5), Some(2.0), Some(2.0)]),
        (bounded(capabilities()), FULL, [None; 6]),
        // Ordinary models have a reason to repeat, and an answer that is only wrong is not one that repeats.
        (bounding(takes()).with_tighten(Tighten::Closed), CUT, [None; 6]),
        (bounded(takes()), Reply::Says("no"), [None; 6]),
    ] {
        let driven = drive(
            &planned(target, Policy::new(6)),
            input(),
            &std::array::from_fn::<_, 6, _>(|_| script.clone()),
        );
        let penalties: Vec<_> =
            driven.calls.iter().map(|(_, _, call)| call.sampling.frequency_penalty).collect();
        assert_eq!(penalties, expected);
    }
}

fn limits(driven: &Driven) -> Vec<Option<u32>> {
    driven.calls.iter().map(|(_, _, call)| call.max_tokens).collect()
}

#[test]
fn an_answer_has_the_tokens_that_are_configured_else_what_suits_the_target() {
    // 18 bytes of a prompt count as six tokens. Under a budget, the limit follows the lengths of schema and prompt.
    let served = || capabilities().with_default_max_tokens(8192);
    for (capabilities, configured, budget, expected) in [
        (capabilities(), None, false, None),
        (capabilities(), Some(77), false, Some(77)),
        (capabilities(), None, true, Some(1215)),
        (capabilities().with_reasoning_tokens(4000), None, true, Some(5215)),
        (capabilities(), Some(77), true, Some(77)),
        (capabilities(), Some(7777), true, Some(1215)),
        (capabilities().with_output_tokens(500), None, true, Some(500)),
        (capabilities().with_output_tokens(500), None, false, None),
        (served(), None, false, Some(8192)),
        (served(), Some(9000), false, Some(9000)),
        (served().with_context_tokens(4096), None, false, Some(4090)),
        (served().with_context_tokens(100), None, false, Some(256)),
    ] {
        let mut plan = Plan::new(contract(), vec![bounding(capabilities.clone())]);
        if let Some(tokens) = configured {
            plan = plan.with_max_tokens(tokens);
        }
        if budget {
            plan = plan.with_budget(Cost { tokens: u64::MAX, micro_usd: None });
        }
        let driven = drive(&plan.build().unwrap(), input(), &[RIGHT]);
        assert_eq!(limits(&driven), [expected], "{capabilities:?}");
    }
}

#[test]
fn under_a_budget_a_limit_has_room_for_the_reasoning_that_the_request_wants() {
    let none = ModelSettings::default();
    let effort = |effort| ModelSettings { effort: Some(effort), ..none.clone() };
    let unknown = Capabilities::REASONING_TOKENS;
    for (settings, known, room) in [
        (none.clone(), None, 0),
        (none.clone(), Some(4_000), 4_000),
        (effort(Effort::High), None, unknown),
        (effort(Effort::Low), Some(4_000), 4_000),
        (effort(Effort::None), Some(4_000), 0),
        (ModelSettings { reasoning_tokens: Some(9_000), ..none.clone() }, Some(4_000), 9_000),
    ] {
        let mut capabilities = capabilities().with_output_tokens(100_000);
        capabilities.reasoning_tokens = known;
        let plan = Plan::new(contract(), vec![bounding(capabilities)])
            .with_budget(Cost { tokens: u64::MAX, micro_usd: None });
        let input = input().with_settings(Arc::new(settings.clone()));
        let driven = drive(&plan.build().unwrap(), input, &[RIGHT]);
        assert_eq!(limits(&driven), [Some(1_215 + room)], "{settings:?} {known:?}");
    }
}

#[test]
fn a_budget_that_does_not_pay_for_reasoning_lowers_its_room_and_refuses_no_call_that_fits_without_it() {
    // Schema and prompt ask for 1,215 tokens, and the prompt itself counts as well.
    for (budget, expected) in [
        (50_000, Some(26_215..=26_215)),
        (10_000, Some(9_000..=10_000)),
        (2_500, Some(1_215..=2_500)),
        (1_000, None),
    ] {
        let capabilities = capabilities().with_output_tokens(100_000).with_reasoning_tokens(25_000);
        let plan = Plan::new(contract(), vec![bounding(capabilities)])
            .with_budget(Cost { tokens: budget, micro_usd: None });
        let driven = drive(&plan.build().unwrap(), input(), &[RIGHT]);
        let limit = limits(&driven).first().copied().flatten();
        let is_right = limit.zip(expected.clone()).is_some_and(|(limit, expected)| expected.contains(&limit));
        assert!(is_right || limit.is_none() && expected.is_none(), "{budget}: {limit:?}");
    }
}

#[test]
fn twice_the_tokens_after_a_cut_but_no_more_than_the_target_has() {
    let served = || capabilities().with_default_max_tokens(100);
    for (capabilities, configured, expected) in [
        (served(), None, [Some(100), Some(200), Some(400), Some(800)]),
        (served().with_output_tokens(300), None, [Some(100), Some(200), Some(300), Some(300)]),
        (served().with_context_tokens(406), None, [Some(100), Some(200), Some(400), Some(400)]),
        (served().with_output_tokens(50), Some(70), [Some(70); 4]),
        (capabilities(), None, [None; 4]),
    ] {
        let mut plan = Plan::new(contract(), vec![bounding(capabilities.clone())])
            .with_policy(Policy::new(4).with_stop_on_repeat(false));
        if let Some(tokens) = configured {
            plan = plan.with_max_tokens(tokens);
        }
        let driven = drive(&plan.build().unwrap(), input(), &[CUT]);
        assert_eq!(limits(&driven), expected, "{capabilities:?}");
    }
}

#[test]
fn the_next_target_has_its_own_tokens_unless_the_caller_sets_some() {
    let (small, large) = (capabilities().with_default_max_tokens(100), capabilities());
    for (configured, expected) in
        [(None, [Some(100), Some(200), None, None]), (Some(50), [Some(50), Some(100), Some(200), Some(400)])]
    {
        let targets = vec![bounding(small.clone()), bounding(large.clone())];
        let policy = Policy::new(4).with_attempts_per_target(2).with_stop_on_repeat(false);
        let mut plan = Plan::new(contract(), targets).with_policy(policy);
        if let Some(tokens) = configured {
            plan = plan.with_max_tokens(tokens);
        }
        let driven = drive(&plan.build().unwrap(), input(), &[CUT]);
        assert_eq!(limits(&driven), expected);
        assert_eq!(driven.calls.iter().map(|(_, target, _)| *target).collect::<Vec<_>>(), [0, 0, 1, 1]);
    }
}

/// Refuses every schema.
#[derive(Debug)]
struct Unable;

impl Lower for Unable {
    fn name(&self) -> &str {
        "unable"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, _: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        Err(Refused::new("unable", "no notes").with_pointer("/properties/note"))
    }
}

#[test]
fn a_dialect_that_cannot_take_the_schema_is_a_warning_of_every_answer() {
    let target = Target::new("primary", capabilities())
        .with_mode(Arc::new(Unable))
        .with_mode(Arc::new(Bounding(Enforcement::Schema)));
    let plan = planned(target, Policy::new(1));
    assert_eq!(plan.skipped(0).map(|(dialect, _)| dialect).collect::<Vec<_>>(), ["unable"]);
    let outcome = drive(&plan, input(), &[RIGHT]).run.finish().unwrap();
    let warning = outcome.warnings.first().unwrap();
    assert_eq!(warning.kind, WarningKind::Lowering);
    assert!(warning.to_string().contains("#/properties/note: no notes"), "{warning}");
    assert_eq!(plan.skipped(1).count(), 0);

    // A dialect after the current one does not weaken the answer.
    let target = Target::new("primary", capabilities())
        .with_mode(Arc::new(Bounding(Enforcement::Schema)))
        .with_mode(Arc::new(Unable));
    let outcome = drive(&planned(target, Policy::new(1)), input(), &[RIGHT]).run.finish().unwrap();
    assert_eq!(outcome.warnings, []);
}

#[test]
fn a_re_ask_after_a_cut_says_it_once_and_everything_else_that_is_wrong() {
    let full_and_wrong =
        Reply::Says(r#"{"score": 1700, "parts": {"a": 170, "b": 70}, "note": "0123456789"}"#);
    let plan = planned(bounding(capabilities()).with_tighten(Tighten::Bounded), Policy::new(2));
    let driven = drive(&plan, input(), &[full_and_wrong, RIGHT]);
    let last_prompt = driven.calls[1].2.messages.last().unwrap().text();
    for path in ["$.score", "$.parts.a", "$.note"] {
        assert!(last_prompt.contains(path), "{last_prompt}");
    }
    // All places at which a text was open are reported as one cut.
    let closes = Reply::Closes(r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fine"}"#, 55);
    let driven = drive(&planned(bounding(capabilities()), Policy::new(2)), input(), &[closes, RIGHT]);
    let last_prompt = driven.calls[1].2.messages.last().unwrap().text();
    assert!(driven.run.ledger()[0].verdict.failure().unwrap().violations().len() > 1);
    assert_eq!(last_prompt.lines().filter(|line| line.starts_with("- ")).count(), 1, "{last_prompt}");
}

#[test]
fn the_usage_of_an_answer_is_estimated_only_where_its_provider_counted_nothing() {
    let plan = plan(Policy::new(1));
    let text = "{\"score\": 7".repeat(8);
    for (counted, finish, expected_output, estimated) in [
        (Usage::new(7, 900), Finish::Stopped, 900, false),
        (Usage::default(), Finish::Stopped, text.len().div_ceil(4) as u64, true),
        (Usage::default(), Finish::Stop, text.len().div_ceil(4) as u64, true),
        (Usage::new(7, 0), Finish::Stop, text.len().div_ceil(4) as u64, true),
    ] {
        let mut run = Run::new(&plan, input());
        let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!("a call comes first") };
        let completion = Completion::new(&*text).with_finish(finish).with_usage(counted);
        run.on(&plan, Time(1), Event::answered(id, completion)).unwrap();
        let usage = run.ledger()[0].usage;
        assert_eq!((usage.output_tokens, usage.estimated), (expected_output, estimated), "{counted:?}");
    }
}
