//! Single decisions of a run: what it accepts, sends and reports.

use std::sync::Arc;

use formwork_core::*;
use serde_json::json;

use crate::support::*;

#[test]
fn a_run_is_of_the_plan_that_it_was_created_with_alone() {
    let of = |name| Plan::new(contract(), vec![target(name)]).build().unwrap();
    let run = Run::new(&of("one"), input());
    assert!(run.is_of(&of("one")) && !run.is_of(&of("other")));
}

#[test]
fn an_answer_that_reads_the_schema_begins_as_the_contract_where_the_model_continues_it() {
    for (enforcement, is_promised, expected) in [
        (Enforcement::None, true, Some("{")),
        (Enforcement::None, false, None),
        (Enforcement::Schema, true, None),
    ] {
        let mut capabilities = Capabilities::new(enforcement);
        capabilities.prefill = is_promised;
        let target = Target::new("one", capabilities).with_mode(Arc::new(AsIs("its", enforcement)));
        let plan = Plan::new(contract(), vec![target]).build().unwrap();
        // The second call requests a patch.
        let driven = drive(&plan, input(), &[Reply::Says(BAD_RANGE), Reply::Says(r#"{"parts": {"a": 70}}"#)]);
        for (_, _, call) in &driven.calls {
            assert_eq!(call.prefill.as_deref(), expected, "{enforcement:?}, promised: {is_promised}");
        }
    }
}

#[test]
fn a_refused_budget_says_what_the_call_may_cost_and_what_is_left() {
    let priced = target("one").with_price(Price::new(1_000_000, 1_000_000));
    for (budget, is_left) in [
        (Cost { tokens: u64::MAX, micro_usd: Some(20) }, "it needs at least $0.000"),
        (Cost { tokens: u64::MAX, micro_usd: Some(20) }, ", and $0.00002 is left"),
        (Cost { tokens: 20, micro_usd: None }, " tokens, and 20 are left"),
        (Cost { tokens: 20, micro_usd: Some(u64::MAX) }, " tokens, and 20 are left"),
    ] {
        let plan = Plan::new(contract(), vec![priced.clone()]).with_max_tokens(40).with_budget(budget);
        let error = drive(&plan.build().unwrap(), input(), &[Reply::Says(GOOD)]).run.finish().unwrap_err();
        assert!(error.to_string().contains(is_left), "{error}");
    }
    let of = || Plan::new(contract(), vec![priced.clone()]).with_max_tokens(40);
    let unlimited = of().build().unwrap();
    let Step::Call { reserve, .. } = Run::new(&unlimited, input()).step(&unlimited, Time(0)).unwrap() else {
        panic!()
    };
    let one_token_short = Cost { tokens: reserve.tokens - 1, ..reserve };
    let short = of().with_budget(one_token_short).build().unwrap();
    let error = drive(&short, input(), &[Reply::Says(GOOD)]).run.finish().unwrap_err().to_string();
    assert!(error.contains(&format!(" tokens, and {} are left", reserve.tokens - 1)), "{error}");
    let denied = drive(&plan(Policy::new(1)), input(), &[Reply::Denies]).run.finish().unwrap_err();
    assert!(denied.to_string().ends_with("the budget does not allow another call"), "{denied}");
}

#[test]
fn the_violations_of_a_repaired_answer_have_no_place_in_what_the_model_wrote() {
    let loose = BAD_RANGE.replace("70}", "70,}");
    for (answer, has_span) in [(BAD_RANGE, true), (&*loose.leak(), false)] {
        let driven = drive(&plan(Policy::new(1)), input(), &[Reply::Says(answer)]);
        let error = driven.run.finish().unwrap_err();
        let violations = error.calls()[0].verdict.failure().unwrap().violations().to_vec();
        assert!(!violations.is_empty());
        assert!(violations.iter().all(|violation| violation.span.is_some() == has_span), "{violations:?}");
    }
}

#[test]
fn the_accepted_value_is_there_as_the_type_of_the_contract_once() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Typed {
        score: u32,
    }
    let plan = Plan::new(contract().with_type::<Typed>(), vec![target("one")]).build().unwrap();
    let mut accepted = drive(&plan, input(), &[Reply::Says(GOOD)]).run;
    assert_eq!(accepted.clone().take_decoded::<u32>(), None);
    assert_eq!(accepted.take_decoded(), Some(Typed { score: 700 }));
    assert_eq!(accepted.take_decoded::<Typed>(), None);
    let mut rejected = drive(&plan, input(), &[Reply::Says(BAD_RANGE)]).run;
    assert_eq!(rejected.take_decoded::<Typed>(), None);
}

#[test]
fn an_event_is_taken_in_its_state_with_the_number_of_the_open_step_alone() {
    type Kind = (&'static str, fn(CallId) -> Event);
    let kinds: [Kind; 5] = [
        ("answered", |id| Event::answered(id, Completion::new(GOOD))),
        ("failed", |id| Event::failed(id, Fault::new(FaultKind::Unreachable, "broken"), Usage::default())),
        ("denied", |id| Event::denied(id, None)),
        ("checked", |id| Event::checked(id, vec![], Cost::default())),
        ("supplied", |id| Event::supplied(id, None)),
    ];
    let plan =
        Plan::new(contract(), vec![target("one")]).with_async_checks().with_fallback().build().unwrap();
    let mut calling = Run::new(&plan, input());
    let Step::Call { id: earlier, call, .. } = calling.step(&plan, Time(0)).unwrap() else { panic!() };
    calling.on(&plan, Time(1), Reply::Says(BAD_RANGE).event(earlier, &call)).unwrap();
    let Step::Call { id: open, .. } = calling.step(&plan, Time(1)).unwrap() else { panic!() };
    let after = |event| {
        let mut run = calling.clone();
        run.on(&plan, Time(2), event).unwrap();
        run.step(&plan, Time(2)).unwrap();
        run
    };
    let checking = after(Event::answered(open, Completion::new(r#"{"parts.a": 70}"#)));
    let falling = after(Event::denied(open, None));
    for (state, run, fitting) in [
        ("calling", &calling, &["answered", "failed", "denied"][..]),
        ("checking", &checking, &["checked"]),
        ("falling back", &falling, &["supplied"]),
    ] {
        let open = match run.clone().step(&plan, Time(2)).unwrap() {
            Step::Call { id, .. } | Step::Check { id, .. } | Step::Fallback { id, .. } => id,
            step => panic!("{state}: {step:?}"),
        };
        for (name, event) in kinds {
            for id in [earlier, open] {
                let mut branch = run.clone();
                let is_taken = branch.on(&plan, Time(3), event(id)).is_ok();
                assert_eq!(is_taken, id == open && fitting.contains(&name), "{state}: {name} {id:?}");
                assert!(is_taken || branch == *run, "{state}: {name} {id:?}");
            }
        }
    }
}

#[test]
fn a_schema_that_the_only_mode_of_a_target_refuses_is_an_error_about_the_schema() {
    let one = Target::new("one", Capabilities::new(Enforcement::Schema));
    let plan = Plan::new(contract(), vec![one.with_mode(Arc::new(AsIs("its", Enforcement::Schema)))]);
    let driven = drive(&plan.build().unwrap(), input(), &[Reply::Fails(FaultKind::SchemaRefused)]);
    assert_eq!((driven.calls.len(), driven.run.finish().unwrap_err().kind()), (1, ErrorKind::Schema));
}

#[test]
fn after_a_wrong_patch_the_document_with_the_patch_is_quoted() {
    let plan = plan(Policy::new(3).with_patching(Patching::Attempt));
    let script = [Reply::Says(BAD_RANGE), Reply::Says(r#"{"parts.a": 300}"#), Reply::Says(GOOD)];
    let driven = drive(&plan, input(), &script);
    let quoted = |text: &str| text.contains(r#""parts""#) && text.contains("300") && text.contains("700");
    let messages = &driven.calls[2].2.messages;
    assert!(messages.iter().any(|message| quoted(&message.text())), "{messages:?}");
}

/// An earlier turn of the model would be taken for the answer that a patch is about. Without one the answer is left out.
#[test]
fn a_patch_in_a_dialogue_follows_its_answer() {
    let dialogue = [Message::user("Hi."), Message::assistant("Hello."), Message::user("Score this wallet.")];
    for (input, has_answer) in [(input(), false), (Input::new(dialogue), true)] {
        let driven = drive(&plan(Policy::new(2)), input, &[Reply::Says(BAD_RANGE), Reply::Says(GOOD)]);
        let messages = &driven.calls[1].2.messages;
        let [.., before, patch] = &messages[..] else { panic!("{messages:?}") };
        assert!(patch.text().contains("except for some values"), "{messages:?}");
        let is_answer = before.role == Role::Assistant && before.text().contains("\"parts\"");
        assert_eq!(is_answer, has_answer, "{messages:?}");
    }
}

#[test]
fn an_answer_beside_a_call_of_a_tool_is_an_answer() {
    let of =
        |text| drive(&plan(Policy::new(1)), input(), &[Reply::Ends(text, Finish::ToolCall)]).run.finish();
    assert!(of(GOOD).is_ok());
    let error = of("").unwrap_err();
    let violations = error.calls()[0].verdict.failure().unwrap().violations().to_vec();
    assert_eq!(violations[0].found, "a call of a tool");
}

#[test]
fn a_patch_has_definitions_only_if_its_values_use_some() {
    let driven = drive(&plan(Policy::new(2)), input(), &[Reply::Says(BAD_RANGE), Reply::Says(GOOD)]);
    let schema = driven.calls[1].2.schema().unwrap();
    assert!(schema["required"] == json!(["parts.a"]) && schema.get("$defs").is_none(), "{schema}");
}

#[test]
fn an_answer_that_was_not_cut_off_is_quoted_whole_with_all_that_is_wrong() {
    let note = "long ".repeat(300);
    let answer: &'static str =
        format!(r#"{{"score": 7000, "parts": {{"a": 170, "b": 70}}, "note": "{note}end"}}"#).leak();
    let driven = drive(&plan(Policy::new(2).with_patching(Patching::Never)), input(), &[Reply::Says(answer)]);
    let messages = driven.calls[1].2.messages.iter().map(|message| message.text()).collect::<String>();
    assert!(messages.contains("long end") && messages.contains("$.parts.a") && messages.contains("$.score"));
}

#[test]
fn rules_are_given_to_a_target_that_promises_them_with_the_whole_document_alone() {
    for has_rules in [true, false] {
        let mut capabilities = Capabilities::new(Enforcement::Schema);
        capabilities.rules = has_rules;
        let target = Target::new("one", capabilities).with_mode(Arc::new(AsIs("its", Enforcement::Schema)));
        let plan = Plan::new(contract(), vec![target]).build().unwrap();
        let driven = drive(&plan, input(), &[Reply::Says(BAD_RANGE), Reply::Says("{}"), Reply::Says(GOOD)]);
        let rules: Vec<_> = driven.calls.iter().map(|(_, _, call)| call.rules.clone()).collect();
        let whole = if has_rules { vec![sum()] } else { vec![] };
        // The second call requests a patch.
        assert_eq!(rules, [whole.clone(), vec![], whole]);
    }
}

#[test]
fn a_target_that_keeps_rules_gets_the_source_of_grounded_values_also_for_a_patch() {
    for (has_rules, target) in [(true, "$.note"), (true, "$"), (true, "$.score"), (false, "$.note")] {
        let mut capabilities = Capabilities::new(Enforcement::Schema);
        capabilities.rules = has_rules;
        let one = Target::new("one", capabilities).with_mode(Arc::new(AsIs("its", Enforcement::Schema)));
        let rule = Rule::grounded(target.parse().unwrap());
        let plan = Plan::new(contract().with_rule(rule.clone()), vec![one]).build().unwrap();
        let script = [Reply::Says(GOOD), Reply::Says(r#"{"note": "wallet"}"#)];
        let driven = drive(&plan, Input::new(["A wallet: 700, 70, 70"]), &script);
        let grounded = |call: &Call| {
            let found = call.rules.iter().find(|rule| matches!(rule, Rule::Grounded { .. })).cloned();
            (found, call.source.as_deref().map(ToOwned::to_owned))
        };
        let seen: Vec<_> = driven.calls.iter().map(|(_, _, call)| grounded(call)).collect();
        let source = || Some("A wallet: 700, 70, 70".to_owned());
        let of = |path: &str| (Some(Rule::grounded(path.parse().unwrap())), source());
        let whole = if has_rules { of(target) } else { (None, None) };
        assert_eq!(seen.first(), Some(&whole), "{target}");
        if target != "$.score" {
            // The second call requests the note.
            let patch = if has_rules { of("$.note") } else { (None, None) };
            assert_eq!(seen.get(1), Some(&patch), "{target}");
        }
    }
}

#[test]
fn a_shared_policy_is_the_policy() {
    let policy = Policy::new(2)
        .with_temperature(Temperature::Steps(vec![0.3]))
        .with_patching(Patching::Never)
        .with_coercion(Coercion::Drop)
        .with_incomplete(true);
    let capabilities = Capabilities::default().with_temperature();
    let shared = Arc::new(policy.clone());
    assert_eq!(RetryPolicy::first(&shared, &capabilities), policy.first(&capabilities));
    assert_eq!(policy.first(&capabilities).temperature, Some(0.3));
    assert!(!RetryPolicy::patches(&shared) && !policy.patches() && RetryPolicy::accepts_incomplete(&shared));
    assert_eq!(RetryPolicy::coercion(&shared), Coercion::Drop);
    let other = Arc::new(Policy::new(2));
    assert_eq!((RetryPolicy::coercion(&other), Policy::default().coercion), (Coercion::Ask, Coercion::Fix));
    assert!(RetryPolicy::patches(&other) && !RetryPolicy::accepts_incomplete(&other));
}

#[test]
fn each_value_has_the_source_of_the_last_answer_that_gave_it() {
    let plan = plan(Policy::new(5).with_patching(Patching::Attempt));
    let without_note = r#"{"score": 700, "parts": {"a": 170, "b": 70}}"#;
    for (script, expected) in [
        (&[BAD_RANGE, r#"{"parts.a": 70}"#][..], &["$", "$.parts.a"][..]),
        (&[without_note, r#"{"parts.a": 70, "note": "fine"}"#], &["$", "$.parts.a", "$.note"]),
        (&[without_note, r#"{"parts.a": 70}"#, r#"{"note": "fine"}"#], &["$", "$.parts.a", "$.note"]),
        // Of a whole document in answer to a patch, the requested values are taken.
        (&[without_note, r#"{"parts.a": 70}"#, GOOD], &["$", "$.parts.a", "$.note"]),
    ] {
        let script: Vec<_> = script.iter().map(|text| Reply::Says(text)).collect();
        let outcome = drive(&plan, input(), &script).run.finish().unwrap();
        let sources: Vec<_> = outcome.provenance.iter().map(|source| source.path.to_string()).collect();
        assert_eq!(sources, expected, "{script:?}");
    }
}

#[test]
fn a_value_of_which_the_rules_leave_one_can_be_patched() {
    let term = |path: &str| Term { path: path.parse().unwrap(), weight: 5.0 };
    let exact = Rule::WeightedSum {
        target: "$.score".parse().unwrap(),
        terms: vec![term("$.parts.a"), term("$.parts.b")],
        tolerance: 0.0,
    };
    let contract = Contract::new(Arc::new(Inline::new("score", schema())), Arc::new(Score)).with_rule(exact);
    let plan = Plan::new(contract, vec![target("one")]).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Says(BAD_SUM), Reply::Says(r#"{"score": 700}"#)]);
    let score = &driven.calls[1].2.schema().unwrap()["properties"]["score"];
    assert!(score["minimum"] == score["maximum"] && score["minimum"].as_f64() == Some(700.0), "{score}");
    assert!(driven.run.finish().is_ok());
}

#[test]
fn the_time_for_which_a_target_is_out_of_service_does_not_pass_while_a_run_is_stored() {
    let plan = Plan::new(contract(), vec![target("one"), target("other")]).build().unwrap();
    for (stored, expected) in [(0, 0), (100_000, 0)] {
        let out = [(1, Time(11_000))];
        let mut run = run_with(Run::new(&plan, input()), out_of_service(out));
        let Step::Call { id, call, .. } = run.step(&plan, Time(1_000)).unwrap() else { panic!() };
        let mut run = run.resumed(Time(1_000), Time(1_000 + stored));
        let now = Time(1_001 + stored);
        run.on(&plan, now, Reply::Fails(FaultKind::Overloaded).event(id, &call)).unwrap();
        let Step::Wait { until, .. } = run.step(&plan, now).unwrap() else { panic!("{stored}") };
        let Step::Call { target, .. } = run.step(&plan, until).unwrap() else { panic!() };
        assert_eq!((until.since(now).as_secs(), target), (2, expected), "stored for {stored} ms");
    }
}

/// Requests what it is given after the first answer, and gives up after the second.
#[derive(Debug)]
struct Asks(Reask);

impl RetryPolicy for Asks {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling::default()
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        if seen.attempts == 1 { Decision::Ask(self.0.clone()) } else { Decision::GiveUp }
    }
}

#[test]
fn a_patch_needs_values_and_a_draft() {
    let patch = |paths: &[&str]| {
        let paths = paths.iter().map(|path| path.parse().unwrap()).collect();
        Reask::new(Ask::Patch(paths), Sampling::default())
    };
    let score = patch(&["$.score"]);
    for (first, reask, is_patch) in [
        (BAD_SUM, score.clone(), true),
        (BAD_SUM, patch(&[]), false),
        (BAD_SUM, score.clone().of_next_target(), true),
        ("I will not.", score, false),
    ] {
        let plan =
            Plan::new(contract(), vec![target("one"), target("other")]).with_policy(Asks(reask.clone()));
        let driven = drive(&plan.build().unwrap(), input(), &[Reply::Says(first), Reply::Says(GOOD)]);
        let words = driven.calls[1].2.messages.last().unwrap().text();
        assert_eq!(words.contains("except for some values"), is_patch, "{first}: {reask:?}");
    }
}

/// Records how many paths a patch could correct, and asks for whole documents.
#[derive(Debug, Default)]
struct Records(Arc<std::sync::Mutex<Vec<usize>>>, bool);

impl RetryPolicy for Records {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling::default()
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        self.0.lock().unwrap().push(seen.patchable.len());
        Decision::GiveUp
    }

    fn patches(&self) -> bool {
        self.1
    }
}

#[test]
fn paths_to_patch_are_computed_for_wrong_values_where_the_policy_may_patch() {
    for (reply, patches, expected) in [
        (Reply::Says(BAD_RANGE), true, 1),
        (Reply::Says(BAD_RANGE), false, 0),
        // The note was cut off: more room is needed, and not another value.
        (Reply::Closes(GOOD, GOOD.find("ine\"").unwrap()), true, 0),
        (Reply::Says("I will not."), true, 0),
    ] {
        let policy = Records(Arc::default(), patches);
        let seen = Arc::clone(&policy.0);
        let plan = Plan::new(contract(), vec![target("one")]).with_policy(policy).build().unwrap();
        drive(&plan, input(), std::slice::from_ref(&reply));
        assert_eq!(*seen.lock().unwrap(), [expected], "{reply:?}");
    }
}
