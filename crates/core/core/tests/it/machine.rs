//! Single properties of the run machine.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use serde_json::json;

use crate::support::*;

#[test]
fn a_patch_requests_the_wrong_value_alone_and_keeps_every_other_byte() {
    let spaced_out = r#"{"note":  "fine"  , "parts": {"a": 70,"b": 170}, "score": 700}"#;
    let driven = drive(
        &plan(Policy::default()),
        input(),
        &[Reply::Says(spaced_out), Reply::Says(r#"{"parts.b": 70}"#)],
    );
    let patch = &driven.calls[1].2;
    assert_eq!(patch.schema().unwrap()["required"], json!(["parts.b"]));
    assert_eq!(patch.schema().unwrap()["properties"]["parts.b"]["maximum"], 100);
    let words = patch.messages.last().unwrap().text();
    assert!(words.contains("- \"parts.b\" (now 170): expected 100, found 170\n"), "{words}");
    assert!(!words.contains("fine"), "the rest of the answer is not sent again: {words}");
    let outcome = driven.run.finish().unwrap();
    assert_eq!(outcome.value, json!({"note": "fine", "parts": {"a": 70, "b": 70}, "score": 700}));
    assert_eq!(
        outcome.provenance[1],
        Provenance { path: "$.parts.b".parse().unwrap(), source: Source::Patched, attempt: 2 }
    );
    assert_eq!(outcome.calls[1].patched, ["$.parts.b".parse().unwrap()]);
}

#[test]
fn a_missing_member_is_patched_in() {
    let driven = drive(
        &plan(Policy::default()),
        input(),
        &[Reply::Says(r#"{"score": 700, "parts": {"a": 70, "b": 70}}"#), Reply::Says(r#"{"note": "x"}"#)],
    );
    assert!(
        driven.calls[1]
            .2
            .messages
            .last()
            .unwrap()
            .text()
            .contains("- \"note\" (missing): required field is missing")
    );
    assert_eq!(driven.run.finish().unwrap().value["note"], "x");
}

#[test]
fn a_rule_narrows_the_patch_to_what_makes_the_sum_right() {
    let driven =
        drive(&plan(Policy::default()), input(), &[Reply::Says(BAD_SUM), Reply::Says(r#"{"score": 690}"#)]);
    let score = driven.calls[1].2.schema().unwrap()["properties"]["score"].clone();
    assert_eq!(score, json!({"type": "integer", "minimum": 680, "maximum": 720}));
    let outcome = driven.run.finish().unwrap();
    assert_eq!(outcome.provenance[1].source, Source::Narrowed);
}

#[test]
fn the_errors_that_a_report_does_not_keep_are_counted_in_every_message() {
    let extra = (0..600).map(|nth| format!(r#", "m{nth}": 1"#)).collect::<String>();
    let wrong: &'static str = format!("{}{extra}}}", GOOD.trim_end_matches('}')).leak();
    let policy = Policy::new(2).with_patching(Patching::Never).with_stop_on_repeat(false);
    let driven = drive(&plan(policy), input(), &[Reply::Says(wrong), Reply::Says(wrong)]);
    let feedback = driven.calls[1].2.messages.last().unwrap().text();
    let listed = feedback.lines().filter(|line| line.starts_with("- ")).count();
    assert!(
        listed < Report::CAP && feedback.contains(&format!("\n(and {} more)", 600 - listed)),
        "{feedback}"
    );
    let error = driven.run.finish().unwrap_err();
    assert!(error.message().ends_with(" (and 599 more)"), "{error}");
}

#[test]
fn a_narrowing_stays_within_the_schema() {
    let high = r#"{"score": 0, "parts": {"a": 100, "b": 99}, "note": ""}"#;
    let driven = drive(&plan(Policy::default()), input(), &[Reply::Says(high), Reply::Says("{}")]);
    assert_eq!(driven.calls[1].2.schema().unwrap()["properties"]["score"]["maximum"], 1000);
}

#[test]
fn an_unusable_patch_leaves_the_draft_and_its_violations() {
    let driven = drive(
        &plan(Policy::default()),
        input(),
        &[Reply::Says(BAD_SUM), Reply::Says("sorry"), Reply::Says("sorry again")],
    );
    // A patch that corrected nothing is not repeated: the whole document is requested, with its violations.
    let (_, _, call) = &driven.calls[2];
    assert!(call.schema().unwrap()["properties"].get("parts").is_some());
    assert!(call.messages.last().unwrap().text().contains("$.score"), "{:?}", call.messages);
    assert_eq!(driven.run.finish().unwrap_err().best().unwrap().value["score"], 600);
}

#[test]
fn a_whole_answer_is_requested_where_no_patch_can_help() {
    for bad in ["no json", "[]", r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fine", "extra": 1}"#]
    {
        let driven = drive(&plan(Policy::default()), input(), &[Reply::Says(bad), Reply::Says(GOOD)]);
        assert!(driven.run.ledger()[1].patched.is_empty(), "{bad}");
        assert!(driven.calls[1].2.messages.last().unwrap().text().contains("What is wrong with it"));
    }
}

#[test]
fn a_rejected_whole_answer_is_quoted_byte_for_byte_in_the_next_prompt() {
    let prose = format!("The score is:\n{BAD_RANGE}\nGlad to help.");
    let prose: &'static str = prose.leak();
    let answers = [BAD_SUM, BAD_RANGE, prose, "Sorry, no.", "[]", "```json\n{}\n```"];
    // Each pair, because the answer before may leave a document behind that the second one does not replace.
    for (first, second) in
        answers.iter().flat_map(|first| answers.iter().map(move |second| (*first, *second)))
    {
        let policy = Policy::new(3).with_patching(Patching::Never).with_stop_on_repeat(false);
        let script = [Reply::Says(first), Reply::Says(second), Reply::Says(GOOD)];
        let driven = drive(&plan(policy), input(), &script);
        for (call, answer) in driven.calls[1..].iter().zip([first, second]) {
            let quoted = call.2.messages.iter().rfind(|message| message.role == Role::Assistant);
            assert_eq!(
                quoted.map(|message| message.text()).as_deref(),
                Some(answer),
                "{first:?}, {second:?}"
            );
        }
    }
}

#[test]
fn a_patch_within_an_attempt_keeps_its_temperature_and_number() {
    let policy = cooling().with_patching(Patching::Within(1));
    let script = [
        Reply::Says(BAD_SUM),
        Reply::Says(r#"{"score": 1}"#),
        Reply::Says(BAD_SUM),
        Reply::Says(r#"{"score": 700}"#),
    ];
    let driven = drive(&plan(policy), input(), &script);
    let sent: Vec<_> =
        driven.run.ledger().iter().map(|a| (a.attempt, a.sampling.temperature, a.patched.len())).collect();
    assert_eq!(sent, [(1, Some(0.3), 0), (1, Some(0.3), 1), (2, Some(0.2), 0), (2, Some(0.2), 1)]);
    assert!(driven.run.finish().is_ok());
}

#[test]
fn the_same_wrong_answer_twice_ends_it_where_the_policy_says_so() {
    let driven =
        drive(&plan(Policy::new(5).with_patching(Patching::Never)), input(), &[Reply::Says(BAD_RANGE)]);
    assert_eq!(driven.calls.len(), 2);
    let driven = drive(
        &plan(Policy::new(5).with_patching(Patching::Never).with_stop_on_repeat(false)),
        input(),
        &[Reply::Says(BAD_RANGE)],
    );
    assert_eq!(driven.calls.len(), 5);
}

#[test]
fn a_truncated_answer_is_not_accepted_and_gets_more_room() {
    let cut = r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fi"#;
    let plan = Plan::new(contract(), vec![target("primary")]).with_max_tokens(50).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Ends(cut, Finish::Length), Reply::Says(GOOD)]);
    let caps: Vec<_> = driven.calls.iter().map(|(_, _, call)| call.max_tokens).collect();
    assert_eq!(caps, [Some(50), Some(100)]);
    assert!(matches!(
        &driven.run.ledger()[0].verdict,
        CallResult::Failed { failure: Failure::Truncated { .. } }
    ));
    let driven = drive(&plan, input(), &[Reply::Ends(GOOD, Finish::Length)]);
    assert!(driven.run.finish().is_ok(), "complete at the limit is complete");
    let driven = drive(&plan, input(), &[Reply::Ends(cut, Finish::Stop)]);
    assert!(matches!(driven.run.ledger()[0].verdict.failure(), Some(Failure::Truncated { .. })));
}

#[test]
fn a_refusal_goes_to_the_next_target_without_correction() {
    let plan = Plan::new(contract(), vec![target("one"), target("two")]).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Ends("I can't.", Finish::Refused), Reply::Says(GOOD)]);
    assert_eq!(driven.calls[0].2.messages, driven.calls[1].2.messages);
    assert_eq!(driven.run.finish().unwrap().origin, Origin::Model { target: "two".into() });
    let driven = drive(&plan, input(), &[Reply::Ends("I can't.", Finish::Refused)]);
    let error = driven.run.finish().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Refused, "the model refused: I can't.")
    );
    let driven = drive(&plan, input(), &[Reply::Ends("", Finish::Filtered)]);
    assert_eq!(driven.run.finish().unwrap_err().to_string(), "the model refused: it gave no reason");
}

#[test]
fn an_end_before_the_last_attempt_says_why() {
    let policy = Policy::new(5).with_patching(Patching::Never);
    let plan = Plan::new(contract(), vec![target("one")]).with_policy(policy).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Says("{}"), Reply::Says("{}")]);
    let error = driven.run.finish().unwrap_err().to_string();
    let end_message = "no valid answer: after 2 attempts, the last with the same answer as the one before: ";
    assert!(error.starts_with(end_message), "{error}");
}

#[test]
fn the_next_target_hears_what_was_wrong() {
    let plan = Plan::new(contract(), vec![target("one"), target("two")])
        .with_policy(Policy::default().with_attempts_per_target(1))
        .build()
        .unwrap();
    let driven = drive(&plan, input(), &[Reply::Says(BAD_RANGE), Reply::Says(GOOD)]);
    assert_eq!(driven.calls[1].1, 1);
    assert!(driven.calls[1].2.messages.last().unwrap().text().contains("\"parts.a\" (now 170)"));
    assert_eq!(driven.run.ledger()[1].patched.len(), 1, "the values that are right stay");
}

#[test]
fn what_a_target_does_not_take_is_omitted_and_noted() {
    let plain =
        Target::new("plain", Capabilities::default()).with_mode(Arc::new(AsIs("prompt", Enforcement::None)));
    let plan = Plan::new(contract(), vec![plain]).with_policy(cooling()).build().unwrap();
    let driven = drive(&plan, input().with_seed(7), &[Reply::Says(GOOD)]);
    assert_eq!(driven.calls[0].2.sampling, Sampling::default());
    assert_eq!(driven.run.ledger()[0].skipped, ["temperature", "seed"]);
}

#[test]
fn a_temperature_above_that_of_the_target_is_omitted_and_noted() {
    for (max, is_taken) in [(0.2, false), (0.3, true), (1.0, true)] {
        let capabilities = Capabilities::default().with_temperature().with_max_temperature(max);
        let cool = Target::new("cool", capabilities).with_mode(Arc::new(AsIs("prompt", Enforcement::None)));
        let plan = Plan::new(contract(), vec![cool]).with_policy(cooling()).build().unwrap();
        let driven = drive(&plan, input(), &[Reply::Says(GOOD)]);
        assert_eq!(driven.calls[0].2.sampling.temperature, is_taken.then_some(0.3), "{max}");
        assert_eq!(driven.run.ledger()[0].skipped.is_empty(), is_taken, "{max}");
    }
}

#[test]
fn each_attempt_has_a_seed_of_its_own_and_a_repeated_call_the_same() {
    let script =
        [Reply::Says("no"), Reply::Fails(FaultKind::Timeout), Reply::Says("still no"), Reply::Says(GOOD)];
    let driven = drive(&plan(cooling()), input().with_seed(40), &script);
    let seeds: Vec<_> = driven.calls.iter().map(|(_, _, call)| call.sampling.seed).collect();
    assert_eq!(seeds, [Some(40), Some(41), Some(41), Some(42)]);
}

#[test]
fn the_deadline_ends_waits_before_it() {
    let plan =
        Plan::new(contract(), vec![target("one")]).with_deadline(Duration::from_secs(5)).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Fails(FaultKind::Overloaded)]);
    assert_eq!(driven.calls.len(), 2, "after 2 s there is one retry, 4 s more would be too late");
    assert_eq!(driven.calls[0].2.deadline, Some(Time(6_000)));
    let driven = drive(&plan, input(), &[Reply::Limits(3600)]);
    assert_eq!((driven.calls.len(), driven.run.finish().unwrap_err().kind()), (1, ErrorKind::Unavailable));
    // A delay that ends with the deadline leaves no time for the call: the call takes 1 ms, the delay is 2 s.
    let plan = Plan::new(contract(), vec![target("one")])
        .with_deadline(Duration::from_millis(2_001))
        .build()
        .unwrap();
    let driven = drive(&plan, input(), &[Reply::Fails(FaultKind::Overloaded)]);
    assert_eq!((driven.calls.len(), driven.run.finish().unwrap_err().kind()), (1, ErrorKind::Unavailable));
}

#[test]
fn the_budget_is_reserved_before_a_call() {
    let priced = target("one").with_price(Price::new(1_000_000, 1_000_000));
    let plan = |budget: u64| {
        let budget = Cost { tokens: u64::MAX, micro_usd: Some(budget) };
        Plan::new(contract(), vec![priced.clone()]).with_max_tokens(40).with_budget(budget).build().unwrap()
    };
    // The worst case: a token for each byte of prompt and schema, and the token limit.
    let roomy = plan(u64::MAX);
    let mut run = Run::new(&roomy, input());
    let Step::Call { reserve, call, .. } = run.step(&roomy, Time(0)).unwrap() else { panic!() };
    let bytes = input().source.len() + call.schema().unwrap().to_string().len();
    let worst = call.most_input_tokens() + 40;
    assert_eq!(reserve, Cost { tokens: worst, micro_usd: Some(worst) });
    assert!((bytes + 40..bytes + 100).contains(&(worst as usize)), "{worst}");
    assert_eq!(drive(&plan(worst - 1), input(), &[Reply::Says(GOOD)]).calls.len(), 0);
    assert_eq!(drive(&plan(worst), input(), &[Reply::Says(GOOD)]).calls.len(), 1);
    // The cost of the first call leaves too little for the worst case of another one.
    let plan = plan(worst + 44);
    let driven = drive(&plan, input(), &[Reply::Says("no"), Reply::Says("nor this")]);
    let error = driven.run.clone().finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert!(driven.calls.len() == 1 && error.usage().output_tokens == 40, "{error:#}");
}

#[test]
fn what_fails_at_the_deadline_ends_there_and_asks_nobody_else() {
    let targets = vec![target("one"), target("two")];
    let plan = Plan::new(contract(), targets).with_deadline(Duration::from_millis(1)).build().unwrap();
    for reply in [Reply::Fails(FaultKind::Timeout), Reply::Says(BAD_SUM)] {
        let driven = drive(&plan, input(), &[reply]);
        assert_eq!((driven.calls.len(), driven.run.finish().unwrap_err().kind()), (1, ErrorKind::Deadline));
    }
}

#[test]
fn what_validators_reject_is_the_best_only_with_what_they_say() {
    let plan = Plan::new(contract(), vec![target("one")]).with_async_checks().build().unwrap();
    let mut run = Run::new(&plan, input());
    let Step::Call { id, call, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    run.on(&plan, Time(1), Reply::Says(GOOD).event(id, &call)).unwrap();
    let Step::Check { id, .. } = run.step(&plan, Time(1)).unwrap() else { panic!() };
    let violations = vec![Violation::new("$.note".parse().unwrap(), "known", Stage::AsyncCheck)];
    let checked = Event::checked(id, violations, Cost::default());
    run.on(&plan, Time(1), checked).unwrap();
    run.on(&plan, Time(1), Event::Cancelled).unwrap();
    assert_eq!(run.finish().unwrap_err().best().unwrap().violations[0].rule, "known");
}

#[test]
fn a_denied_call_uses_the_fallback() {
    let plan = Plan::new(contract(), vec![target("one")]).with_fallback().build().unwrap();
    assert_eq!(drive(&plan, input(), &[Reply::Denies]).run.finish().unwrap().origin, Origin::Fallback);
}

#[test]
fn async_checks_reject_and_fallbacks_are_judged() {
    let plan =
        Plan::new(contract(), vec![target("one")]).with_async_checks().with_fallback().build().unwrap();
    let mut run = Run::new(&plan, input());
    let Step::Call { id, call, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    run.on(&plan, Time(1), Reply::Says(GOOD).event(id, &call)).unwrap();
    let Step::Check { id, candidate, .. } = run.step(&plan, Time(1)).unwrap() else { panic!() };
    assert_eq!(candidate["score"], 700);
    let unknown =
        Violation::new("$.note".parse().unwrap(), "known", Stage::AsyncCheck).with_expected("a known note");
    let spent = Cost { tokens: 5, micro_usd: Some(1) };
    run.on(&plan, Time(2), Event::checked(id, vec![unknown], spent)).unwrap();
    let Step::Call { id, call, .. } = run.step(&plan, Time(2)).unwrap() else { panic!() };
    assert_eq!(call.schema().unwrap()["required"], json!(["note"]));
    run.on(&plan, Time(3), Reply::Ends("", Finish::Refused).event(id, &call)).unwrap();
    let Step::Fallback { id, .. } = run.step(&plan, Time(3)).unwrap() else { panic!() };
    let value = Some(json!({"score": 9000}));
    run.on(&plan, Time(4), Event::supplied(id, value)).unwrap();
    let error = run.finish().unwrap_err();
    assert!(error.to_string().contains("the fallback's value breaks the contract"), "{error}");
    assert_eq!(error.best().unwrap().value["score"], 700);
}

#[test]
fn cancelling_ends_it_at_once_with_the_ledger() {
    let plan = Plan::new(contract(), vec![target("one")]).with_fallback().build().unwrap();
    let mut run = Run::new(&plan, input());
    run.step(&plan, Time(0)).unwrap();
    run.on(&plan, Time(1), Event::Cancelled).unwrap();
    assert_eq!(run.step(&plan, Time(1)).unwrap(), Step::Done);
    assert_eq!(run.on(&plan, Time(2), Event::Cancelled), Err(Misuse::NotExpected));
    let error = run.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(error.calls()[0].usage.estimated);
}

#[test]
fn an_error_tells_its_story_with_values_masked() {
    let driven = drive(&plan(cooling()), input(), &[Reply::Says(BAD_RANGE), Reply::Fails(FaultKind::Auth)]);
    let error = driven.run.finish().unwrap_err();
    assert_eq!(error.to_string(), "no provider answered: not authorised: scripted");
    let long = format!("{error:#}");
    assert!(
        long.contains("attempt 1, primary: invalid\n    Number out of range at $.parts.a: expected 100"),
        "{long}"
    );
    assert!(!long.contains("170"), "{long}");
    assert_eq!(error.best().unwrap().value["parts"]["a"], 170);
    assert_eq!(error.paths(), [&"$.parts.a".parse::<JsonPath>().unwrap()]);
}

#[test]
fn the_candidate_that_satisfies_the_contract_is_taken() {
    let text = format!(
        "First I had {BAD_RANGE} but the answer is {GOOD}, unlike {{\"score\": 500, \"parts\": {{\"a\": 1, \"b\": 1}}, \"note\": \"much longer than the answer itself\"}}"
    );
    let leaked: &'static str = text.leak();
    let outcome = drive(&plan(cooling()), input(), &[Reply::Says(leaked)]).run.finish().unwrap();
    assert_eq!(
        (outcome.value["note"].as_str(), outcome.provenance[0].source),
        (Some("fine"), Source::Repaired)
    );
}

#[test]
fn violations_point_into_the_answer() {
    let driven = drive(&plan(cooling()), input(), &[Reply::Says(BAD_RANGE)]);
    let CallResult::Failed { failure } = &driven.run.ledger()[0].verdict else { panic!() };
    assert_eq!(failure.violations()[0].span.unwrap().of(BAD_RANGE), "170");
}

#[test]
fn soft_checks_report_and_do_not_reject() {
    let contract = contract().with_soft_check(|_: &serde_json::Value, _: &Context<'_>, out: &mut Report| {
        out.push(
            Violation::new(JsonPath::root().key("note"), "short", Stage::Check).with_expected("more words"),
        );
    });
    let plan = Plan::new(contract, vec![target("one")]).build().unwrap();
    let outcome = drive(&plan, input(), &[Reply::Says(GOOD)]).run.finish().unwrap();
    assert_eq!(outcome.warnings[0].to_string(), "check: short at $.note: expected more words");
}

#[test]
fn checks_see_the_source_and_the_callers_data() {
    let contract = contract().with_rule(Rule::grounded("$.note".parse().unwrap())).with_check(
        |value: &serde_json::Value, cx: &Context<'_>, out: &mut Report| {
            if value["score"].as_u64() > cx.data["cap"].as_u64() {
                out.push(Violation::new(JsonPath::root().key("score"), "cap", Stage::Check));
            }
        },
    );
    let plan = Plan::new(contract, vec![target("one")]).with_policy(cooling()).build().unwrap();
    let input = Input::new(["A FINE wallet"]).with_data(json!({"cap": 500}));
    let driven = drive(&plan, input, &[Reply::Says(GOOD)]);
    let rules: Vec<_> = driven.run.ledger()[0].verdict.clone().into_violations();
    assert_eq!(rules, ["cap"]);
}

trait IntoViolations {
    fn into_violations(self) -> Vec<String>;
}

impl IntoViolations for CallResult {
    fn into_violations(self) -> Vec<String> {
        match self {
            CallResult::Failed { failure } => {
                failure.violations().iter().map(|violation| violation.rule.clone()).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[test]
fn plans_without_targets_or_dialects_are_refused() {
    assert_eq!(Plan::new(contract(), vec![]).build().unwrap_err().kind(), ErrorKind::Config);
    let bare = Target::new("bare", Capabilities::default());
    assert_eq!(
        Plan::new(contract(), vec![bare]).build().unwrap_err().to_string(),
        "cannot be done as configured: target `bare` has no output mode: add a dialect"
    );
}

#[test]
fn a_probe_is_an_entry_of_its_own_and_changes_nothing_else() {
    let right = r#"{"note": "fine", "parts": {"a": 70, "b": 70}, "score": 700}"#;
    let spent = Usage::new(30, 6);
    for policy in policies() {
        for script in [&[right][..], &["no JSON", right], &[BAD_SUM, right], &[BAD_SUM, BAD_SUM, BAD_SUM]] {
            let run = |probed: bool| {
                let plan = plan(policy.clone());
                let (mut run, mut calls, mut answers) = (Run::new(&plan, input()), Vec::new(), script.iter());
                loop {
                    match run.step(&plan, Time(1_000)).unwrap() {
                        Step::Call { id, call, .. } => {
                            let mut completion = Completion::new(*answers.next().unwrap_or(&right));
                            completion.usage = Usage::new(900, 40);
                            completion.probe = Some(Box::new(spent)).filter(|_| probed && calls.is_empty());
                            calls.push(call);
                            run.on(&plan, Time(1_000), Event::answered(id, completion)).unwrap();
                        }
                        _ => return (calls, run.ledger().to_vec(), run.finish()),
                    }
                }
            };
            let ((plain, ledger, result), (calls, mut probed, with_probe)) = (run(false), run(true));
            assert_eq!(calls, plain, "{script:?}");
            let probe = probed.remove(0);
            assert_eq!((&probe.verdict, probe.usage, probe.cost.tokens), (&CallResult::Probe, spent, 36));
            assert_eq!(probed, ledger, "{script:?}");
            match (result, with_probe) {
                (Ok(plain), Ok(probed)) => {
                    assert_eq!(probed.usage, plain.usage.plus(spent));
                    assert_eq!((probed.value, probed.provenance), (plain.value, plain.provenance));
                }
                (Err(plain), Err(probed)) => {
                    assert_eq!(probed.usage(), plain.usage().plus(spent));
                    assert_eq!((probed.kind(), probed.best()), (plain.kind(), plain.best()));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_rule_expects_only_numbers_that_the_schema_allows() {
    // The sum of both parts times 5, within 20, of a score from 0 to 1000.
    for (part, expected) in
        [(0, "from 0 to 20"), (1, "from 0 to 30"), (50, "from 480 to 520"), (100, "from 980 to 1000")]
    {
        let answer = json!({"note": "x", "parts": {"a": part, "b": part}, "score": 250});
        let judgement = contract().judge(&answer, &Context::EMPTY);
        assert_eq!(
            judgement.violations.iter().map(|found| found.expected.as_str()).collect::<Vec<_>>(),
            [expected]
        );
    }
}
