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
    let priced = target("one").with_price(Price { input: 1_000_000, output: 1_000_000 });
    for (budget, is_left) in [
        (Cost { tokens: u64::MAX, micro_usd: Some(20) }, "it may cost up to $0.000"),
        (Cost { tokens: u64::MAX, micro_usd: Some(20) }, ", and $0.00002 is left"),
        (Cost { tokens: 20, micro_usd: None }, " tokens, and 20 are left"),
        (Cost { tokens: 20, micro_usd: Some(u64::MAX) }, " tokens, and 20 are left"),
    ] {
        let plan = Plan::new(contract(), vec![priced.clone()]).with_max_tokens(40).with_budget(budget);
        let error = drive(&plan.build().unwrap(), input(), &[Reply::Says(GOOD)]).run.finish().unwrap_err();
        assert!(error.to_string().contains(is_left), "{error}");
    }
    let denied = drive(&plan(Policy::new(1)), input(), &[Reply::Denies]).run.finish().unwrap_err();
    assert!(denied.to_string().ends_with("the budget does not allow another call"), "{denied}");
}

#[test]
fn the_violations_of_a_repaired_answer_have_no_place_in_what_the_model_wrote() {
    let loose = BAD_RANGE.replace("70}", "70,}");
    for (answer, has_span) in [(BAD_RANGE, true), (&*loose.leak(), false)] {
        let driven = drive(&plan(Policy::new(1)), input(), &[Reply::Says(answer)]);
        let error = driven.run.finish().unwrap_err();
        let violations = error.attempts()[0].verdict.failure().unwrap().violations().to_vec();
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
fn events_of_another_step_change_nothing() {
    let plan =
        Plan::new(contract(), vec![target("one")]).with_async_checks().with_fallback().build().unwrap();
    let mut run = Run::new(&plan, input());
    let Step::Call { id: called, call, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    let denied = |id| Event::denied(id, None);
    run.on(&plan, Time(1), Reply::Says(GOOD).event(called, &call)).unwrap();
    let Step::Check { id: checked, .. } = run.step(&plan, Time(1)).unwrap() else { panic!() };
    let pass = |id| Event::checked(id, vec![], Cost::default());
    for event in [pass(called), denied(called), denied(checked), Event::supplied(checked, None)] {
        let before = run.clone();
        assert_eq!(run.on(&plan, Time(2), event), Err(Misuse::NotExpected));
        assert_eq!(run, before);
    }
    let mut run = Run::new(&plan, input());
    let Step::Call { id: called, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    run.on(&plan, Time(1), denied(called)).unwrap();
    let Step::Fallback { id: asked, .. } = run.step(&plan, Time(1)).unwrap() else { panic!() };
    for event in [Event::supplied(called, None), denied(called), denied(asked), pass(asked)] {
        assert_eq!(run.on(&plan, Time(2), event), Err(Misuse::NotExpected));
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

#[test]
fn an_answer_beside_a_call_of_a_tool_is_an_answer() {
    let of =
        |text| drive(&plan(Policy::new(1)), input(), &[Reply::Ends(text, Finish::ToolCall)]).run.finish();
    assert!(of(GOOD).is_ok());
    let error = of("").unwrap_err();
    let violations = error.attempts()[0].verdict.failure().unwrap().violations().to_vec();
    assert_eq!(violations[0].found, "a call of a tool");
}

#[test]
fn a_patch_has_definitions_only_if_its_values_use_some() {
    let driven = drive(&plan(Policy::new(2)), input(), &[Reply::Says(BAD_RANGE), Reply::Says(GOOD)]);
    let schema = driven.calls[1].2.schema().unwrap();
    assert!(schema["required"] == json!(["parts.a"]) && schema.get("$defs").is_none(), "{schema}");
}
