//! The next step is the cheapest one that can help: findings B7, B16 and C1 to C5.

use std::collections::HashSet;
use std::time::Duration;

use formwork_core::*;

use crate::support::*;

const WRONG: Reply = Reply::Says("no JSON");
const RIGHT: Reply = Reply::Says(GOOD);

fn targets(count: usize) -> Vec<Target> {
    (0..count).map(|nth| target(&format!("target {nth}"))).collect()
}

fn planned(count: usize, policy: Policy) -> Plan {
    Plan::new(contract(), targets(count)).with_policy(policy.with_stop_on_repeat(false)).build().unwrap()
}

/// Returns the target of each call.
fn called(driven: &Driven) -> Vec<usize> {
    driven.calls.iter().map(|(_, target, _)| *target).collect()
}

/// Returns whether each call was for a patch.
fn patches(driven: &Driven) -> Vec<bool> {
    driven.run.ledger().iter().map(|call| !call.patched.is_empty()).collect()
}

#[test]
fn wrong_content_continues_to_the_next_target_after_an_equal_share_of_the_attempts() {
    for (count, attempts, set, expected) in [
        (1, 3, None, vec![0, 0, 0]),
        (2, 1, None, vec![0]),
        (2, 2, None, vec![0, 1]),
        (2, 3, None, vec![0, 0, 1]),
        (3, 3, None, vec![0, 1, 2]),
        (3, 8, None, vec![0, 0, 0, 1, 1, 1, 2, 2]),
        (5, 3, None, vec![0, 1, 2]),
        (2, 4, Some(1), vec![0, 1, 1, 1]),
        (2, 4, Some(3), vec![0, 0, 0, 1]),
        (2, 3, Some(9), vec![0, 0, 0]),
    ] {
        let mut policy = Policy::new(attempts);
        policy.attempts_per_target = set;
        let driven = drive(&planned(count, policy), input(), &[WRONG]);
        assert_eq!(called(&driven), expected, "{count} targets, {attempts} attempts, {set:?}");
    }
}

#[test]
fn the_same_wrong_answer_of_another_target_is_no_repetition() {
    let policy = Policy::new(4).with_patching(Patching::Never);
    let plan = Plan::new(contract(), targets(2)).with_policy(policy).build().unwrap();
    // The first target repeats itself and is left; the second one gave that answer only once.
    let driven = drive(&plan, input(), &[WRONG, WRONG, WRONG, RIGHT]);
    assert_eq!(called(&driven), [0, 0, 1, 1]);
    assert!(driven.run.finish().is_ok());
}

#[test]
fn an_answer_that_the_deadline_cut_off_says_so() {
    let policy = || Policy::new(1).with_patching(Patching::Never);
    for (at, expected) in [(20, "the limit of tokens"), (999, "the deadline"), (1_000, "the deadline")] {
        for text in ["", "{\"score\": 6", "{\"score\": 612, \"parts\": {\"a\": 300"] {
            let plan = Plan::new(contract(), targets(1)).with_policy(policy());
            let plan = plan.with_deadline(Duration::from_secs(1)).build().unwrap();
            let mut run = Run::new(&plan, input());
            let Step::Call { id, call, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
            run.on(&plan, Time(at), Reply::Ends(text, Finish::Length).event(id, &call)).unwrap();
            let CallResult::Failed { failure } = &run.ledger()[0].verdict else { panic!() };
            let found = &failure.violations()[0].found;
            assert!(found.starts_with(expected), "{found} at {at} for {text:?}");
        }
    }
}

#[test]
fn the_wait_that_a_server_requests_is_named_where_it_ends_the_run() {
    let plan = Plan::new(contract(), targets(1)).with_policy(Policy::new(3));
    let plan = plan.with_deadline(Duration::from_secs(60)).build().unwrap();
    let error = drive(&plan, input(), &[Reply::Limits(3_600)]).run.finish().unwrap_err();
    assert!(error.message().ends_with("; the server asks to wait 3600 s"), "{error}");
}

#[test]
fn a_patch_that_mends_nothing_is_followed_by_the_whole() {
    let still_wrong = Reply::Says(r#"{"score": 601}"#);
    let bad = Reply::Says(BAD_SUM);
    for (patching, script, expected) in [
        (Patching::Attempt, vec![bad.clone(), still_wrong.clone(), RIGHT], vec![false, true, false]),
        (Patching::Attempt, vec![bad.clone(), WRONG, bad.clone(), RIGHT], vec![false, true, false, true]),
        (Patching::Within(3), vec![bad.clone(), still_wrong.clone(), RIGHT], vec![false, true, false]),
        (Patching::Never, vec![bad.clone(), bad.clone(), RIGHT], vec![false, false, false]),
        (Patching::Attempt, vec![bad, Reply::Says(r#"{"score": 700}"#)], vec![false, true]),
    ] {
        let driven = drive(&planned(1, Policy::new(4).with_patching(patching)), input(), &script);
        assert_eq!(patches(&driven), expected, "{patching:?}: {script:?}");
        assert!(driven.run.finish().is_ok(), "{patching:?}: {script:?}");
    }
}

/// Returns the target of each call and the delay before it, in seconds.
fn paced(driven: &Driven) -> Vec<(usize, u64)> {
    let mut before = driven.calls[0].0;
    let waits = driven.calls.iter().map(|(at, target, _)| {
        let wait = at.since(before).as_secs();
        before = *at;
        (*target, wait)
    });
    waits.collect()
}

#[test]
fn a_target_that_is_down_is_left_at_once_where_there_is_another_one() {
    for fault in [FaultKind::Unreachable, FaultKind::RateLimited, FaultKind::Auth] {
        let driven = drive(&planned(2, Policy::new(3)), input(), &[Reply::Fails(fault), RIGHT]);
        assert_eq!(paced(&driven), [(0, 0), (1, 0)], "{fault:?}");
        assert_eq!(driven.run.target(), 1);
    }
    let driven = drive(&planned(2, Policy::new(3)), input(), &[Reply::Limits(86_400), RIGHT]);
    assert_eq!(paced(&driven), [(0, 0), (1, 0)]);
    // One time-out or server error says little, three are an outage.
    for fault in [FaultKind::Timeout, FaultKind::Overloaded] {
        let fault = Reply::Fails(fault);
        let driven = drive(&planned(2, Policy::new(3)), input(), &[fault.clone(), RIGHT]);
        assert_eq!(paced(&driven), [(0, 0), (0, 2)]);
        let script = [fault.clone(), fault.clone(), fault, RIGHT];
        let driven = drive(&planned(2, Policy::new(3)), input(), &script);
        assert_eq!(paced(&driven), [(0, 0), (0, 2), (0, 4), (1, 0)]);
    }
    // After the last target there is none to advance to.
    let driven = drive(&planned(2, Policy::new(3)), input(), &[Reply::Fails(FaultKind::Unreachable)]);
    assert_eq!(paced(&driven), [(0, 0), (1, 0), (1, 2), (1, 4), (1, 8)]);
    let driven = drive(&planned(1, Policy::new(3)), input(), &[Reply::Fails(FaultKind::Overloaded)]);
    assert_eq!(paced(&driven), [(0, 0), (0, 2), (0, 4), (0, 8)]);
    let driven = drive(&planned(1, Policy::new(3)), input(), &[Reply::Limits(20), RIGHT]);
    assert_eq!(paced(&driven), [(0, 0), (0, 20)]);
}

#[test]
fn targets_that_are_out_of_service_are_omitted_as_long_as_there_is_another_one() {
    let now = Time(1_000);
    let until = |seconds: u64| now.after(Duration::from_secs(seconds));
    for (count, out, script, expected) in [
        (2, vec![(0, until(30))], vec![RIGHT], vec![(1, 0)]),
        (3, vec![(0, until(30)), (1, until(9))], vec![RIGHT], vec![(2, 0)]),
        (2, vec![(0, until(0))], vec![RIGHT], vec![(0, 0)]),
        (2, vec![(0, until(30)), (1, until(30))], vec![RIGHT], vec![(0, 0)]),
        (1, vec![(0, until(30))], vec![RIGHT], vec![(0, 0)]),
        // A later target is waited for only if the own delay is longer.
        (2, vec![(1, until(1))], vec![Reply::Limits(4), RIGHT], vec![(0, 0), (1, 1)]),
        // One failed call says little about a target.
        (2, vec![(1, until(1))], vec![Reply::Fails(FaultKind::Overloaded), RIGHT], vec![(0, 0), (0, 2)]),
        (2, vec![(1, until(30))], vec![Reply::Fails(FaultKind::Overloaded), RIGHT], vec![(0, 0), (0, 2)]),
        (2, vec![(1, until(10))], vec![Reply::Limits(60), RIGHT], vec![(0, 0), (1, 10)]),
        (3, vec![(1, until(30))], vec![Reply::Fails(FaultKind::Unreachable), RIGHT], vec![(0, 0), (2, 0)]),
        (2, vec![(1, until(30))], vec![WRONG, WRONG, RIGHT], vec![(0, 0), (0, 0), (1, 0)]),
    ] {
        let plan = planned(count, Policy::new(3));
        let run = run_with(Run::new(&plan, input()), out_of_service(out.clone()));
        let driven = drive_run(&plan, run, &script);
        assert_eq!(paced(&driven), expected, "{out:?}: {script:?}");
        assert!(driven.run.finish().is_ok());
    }
}

#[test]
fn a_refusal_is_an_attempt_where_the_policy_says_so() {
    let refused = Reply::Ends("I will not.", Finish::Refused);
    let filtered = Reply::Ends("", Finish::Filtered);
    for (policy, calls) in
        [(cooling(), 3), (corrective(2), 1), (folded(), 1), (at_most(0.7), 1), (Policy::new(3), 1)]
    {
        for reply in [&refused, &filtered] {
            let driven = drive(&planned(1, policy.clone()), input(), std::slice::from_ref(reply));
            assert_eq!(driven.calls.len(), calls, "{policy:?}");
            assert_eq!(driven.run.finish().unwrap_err().kind(), ErrorKind::Refused);
        }
    }
}

#[test]
fn a_budget_without_room_for_a_target_calls_a_cheaper_one() {
    let price = |output: u64| Price::new(0, output * 1_000_000);
    let priced = |output: u64| target(&format!("{output}")).with_price(price(output));
    let plan = |prices: &[u64], budget: u64| {
        let targets = prices.iter().map(|price| priced(*price)).collect();
        let budget = Cost { tokens: u64::MAX, micro_usd: Some(budget) };
        Plan::new(contract(), targets).with_max_tokens(10).with_budget(budget).build().unwrap()
    };
    for (prices, budget, expected) in [
        (&[5, 1][..], 50, vec![0]),
        (&[5, 1], 49, vec![1]),
        (&[5, 7, 1], 49, vec![2]),
        (&[5, 4], 20, vec![]),
        (&[1, 5], 9, vec![]),
    ] {
        let driven = drive(&plan(prices, budget), input(), &[RIGHT]);
        assert_eq!(called(&driven), expected, "{prices:?} within {budget}");
        let kind = driven.run.finish().err().map(|error| error.kind());
        assert_eq!(kind, expected.is_empty().then_some(ErrorKind::Budget));
    }
    let driven = drive(&plan(&[5, 7, 1], 1_000), input(), &[Reply::Denies, RIGHT]);
    assert_eq!(called(&driven), [0, 2]);
    assert!(driven.run.finish().is_ok());
}

#[test]
fn what_arrived_before_a_fault_is_paid_for() {
    let priced = target("one").with_price(Price::new(1_000_000, 2_000_000));
    let plan = Plan::new(contract(), vec![priced]).build().unwrap();
    let mut run = Run::new(&plan, input());
    let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    let usage = Usage::new(7, 8_000);
    let fault = Fault::new(FaultKind::Unreachable, "the stream broke off");
    run.on(&plan, Time(1), Event::failed(id, fault, usage)).unwrap();
    assert_eq!(run.ledger()[0].usage, usage);
    assert_eq!(run.ledger()[0].cost, Cost { tokens: 8_007, micro_usd: Some(16_007) });
}

#[test]
fn a_step_with_another_plan_is_refused_and_changes_nothing() {
    let (own, other) = (planned(1, Policy::new(3)), planned(2, Policy::new(3)));
    let mut run = Run::new(&own, input());
    let before = run.clone();
    assert_eq!(run.step(&other, Time(0)), Err(Misuse::OtherPlan));
    assert_eq!(run, before);
    let error = Error::from(Misuse::OtherPlan);
    assert_eq!((error.kind(), error.to_string().contains("another plan")), (ErrorKind::Config, true));
    assert!(matches!(run.step(&own, Time(0)), Ok(Step::Call { .. })));
}

#[test]
fn warnings_of_validators_are_kept_by_the_run_itself() {
    let plan = Plan::new(contract(), targets(1)).with_async_checks().build().unwrap();
    let mut run = Run::new(&plan, input());
    let Ok(Step::Call { id, call, .. }) = run.step(&plan, Time(0)) else { panic!() };
    run.on(&plan, Time(1), RIGHT.event(id, &call)).unwrap();
    let Ok(Step::Check { id, .. }) = run.step(&plan, Time(1)) else { panic!() };
    let warning = Violation::new("$.note".parse().unwrap(), "tone", Stage::AsyncCheck).as_warning();
    let checked = Event::checked(id, vec![warning.clone()], Cost::default());
    run.on(&plan, Time(2), checked).unwrap();
    let stored = serde_json::to_string(&run).unwrap();
    let run: Run = serde_json::from_str(&stored).unwrap();
    assert_eq!(run.finish().unwrap().warnings, [Warning::from(warning)]);
}

#[test]
fn jitter_is_drawn_from_the_drivers_number_where_the_input_has_no_seed() {
    let backoff = Backoff { jitter: 0.25, ..Backoff::of_seconds(&[40.0]) };
    let plan = planned(1, Policy::new(1).with_backoff(backoff));
    let wait = |run: Run| paced(&drive_run(&plan, run, &[Reply::Fails(FaultKind::Overloaded), RIGHT]))[1].1;
    assert_eq!(wait(Run::new(&plan, input())), 40);
    let drawn: Vec<u64> = (0..20).map(|seed| wait(jittered(Run::new(&plan, input()), seed))).collect();
    assert!(
        drawn.iter().all(|wait| (40..50).contains(wait)) && drawn.iter().any(|wait| *wait != drawn[0]),
        "{drawn:?}"
    );
    let seeded = |jitter| wait(jittered(Run::new(&plan, input().with_seed(7)), jitter));
    assert_eq!(seeded(1), seeded(2), "the seed decides");
}

#[test]
fn each_wait_of_a_run_has_a_jitter_of_its_own() {
    let backoff = Backoff { retries: 8, delays: vec![Duration::from_secs(40)], jitter: 0.5 };
    let plan = planned(1, Policy::new(1).with_backoff(backoff));
    let script: Vec<Reply> =
        std::iter::repeat_n(Reply::Fails(FaultKind::Overloaded), 8).chain([RIGHT]).collect();
    let calls = paced(&drive_run(&plan, Run::new(&plan, input().with_seed(7)), &script));
    let waits: HashSet<u64> = calls.iter().skip(1).map(|call| call.1).collect();
    assert!(calls.len() == 9 && waits.len() > 4, "{calls:?}");
}

#[test]
fn the_last_delay_repeats_and_a_stored_backoff_has_its_seconds() {
    let backoff = Backoff { retries: 4, ..Backoff::of_seconds(&[1.0, 2.5]) };
    let stored = r#"{"retries":4,"delays_seconds":[1.0,2.5],"jitter":0.0}"#;
    assert_eq!(serde_json::to_string(&backoff).unwrap(), stored);
    assert_eq!(serde_json::from_str::<Backoff>(stored).unwrap(), backoff);
    let old = serde_json::from_str::<Backoff>(r#"{"waits":[500],"jitter":0.0}"#).unwrap_err().to_string();
    assert!(old.starts_with("unknown field `waits`, expected one of `retries`, `delays_seconds`"), "{old}");
    for (delays, retries, waits) in [
        (vec![40.0, 80.0], 4, &[0, 40, 80, 80, 80][..]),
        (vec![40.0, 80.0], 1, &[0, 40]),
        (vec![], 2, &[0, 0, 0]),
    ] {
        let plan =
            planned(1, Policy::new(1).with_backoff(Backoff { retries, ..Backoff::of_seconds(&delays) }));
        let script = vec![Reply::Fails(FaultKind::Overloaded); 6];
        let calls = paced(&drive_run(&plan, Run::new(&plan, input()), &script));
        assert_eq!(calls.iter().map(|call| call.1).collect::<Vec<_>>(), waits, "{delays:?} {retries}");
    }
}

#[test]
fn a_run_that_fails_fast_waits_for_no_target_that_is_out_of_service() {
    for (out, script, calls, is_answered) in [
        (Some(30), RIGHT, 0, false),
        (None, RIGHT, 1, true),
        (None, Reply::Fails(FaultKind::Unreachable), 1, false),
        // The server was reached, so its own delay counts.
        (None, Reply::Limits(1), 4, false),
    ] {
        let plan = planned(1, Policy::new(2));
        let until = |seconds| (0, Time(1_000).after(Duration::from_secs(seconds)));
        let run = run_with(Run::new(&plan, input()), out_of_service(out.map(until)).with_fail_fast());
        let driven = drive_run(&plan, run, &[script]);
        let called = driven.calls.len();
        assert_eq!((called, driven.run.finish().is_ok()), (calls, is_answered), "{out:?}");
    }
}

#[test]
fn patches_within_an_attempt_are_limited() {
    const BOTH: &str = r#"{"score": 700, "parts": {"a": 170, "b": 170}, "note": "fine"}"#;
    for (limit, expected) in [
        (0, vec![false, false]),
        (1, vec![false, true, false]),
        (2, vec![false, true, true]),
        (9, vec![false, true, true]),
    ] {
        let policy = Policy::new(2).with_patching(Patching::Within(limit)).with_stop_on_repeat(false);
        // Each patch corrects one of two values.
        let patched = [r#"{"parts.a": 70, "parts.b": 180}"#, r#"{"parts.b": 70}"#].map(Reply::Says);
        let script: Vec<_> = std::iter::once(Reply::Says(BOTH))
            .chain(patched.into_iter().take(limit as usize))
            .chain([RIGHT])
            .collect();
        let driven = drive(&planned(1, policy), input(), &script);
        assert_eq!(patches(&driven), expected, "at most {limit}");
        assert!(driven.run.is_done() && driven.run.finish().is_ok());
    }
    assert!(!Run::new(&planned(1, Policy::default()), input()).is_done());
}

#[test]
fn a_target_that_is_left_for_a_cheaper_one_is_named_in_a_warning_with_the_estimates() {
    let priced = |name: &str, micro: u64| target(name).with_price(Price::new(micro, micro));
    let bad = Reply::Says(BAD_SUM);
    let mended = Reply::Says(r#"{"score": 700}"#);
    let million = 1_000_000;
    for (first, second, patching, expected) in [
        // The next target costs a tenth, so the patch is requested there.
        (Some(10 * million), Some(million), Patching::Attempt, vec![0, 1]),
        // A difference of less than a quarter is within the error of the estimate.
        (Some(5 * million), Some(4 * million), Patching::Attempt, vec![0, 0]),
        (Some(million), Some(10 * million), Patching::Attempt, vec![0, 0]),
        // Without both prices, tokens of different models are not compared.
        (None, Some(million), Patching::Attempt, vec![0, 0]),
        (Some(10 * million), None, Patching::Attempt, vec![0, 0]),
        // The policy does not look at prices.
        (Some(10 * million), Some(million), Patching::Within(1), vec![0, 0]),
    ] {
        let of =
            |name: &str, price: Option<u64>| price.map_or_else(|| target(name), |price| priced(name, price));
        let plan = Plan::new(contract(), vec![of("dear", first), of("cheap", second)]);
        let plan = plan.with_policy(Policy::new(4).with_patching(patching)).build().unwrap();
        let driven = drive(&plan, input(), &[bad.clone(), mended.clone()]);
        assert_eq!(called(&driven), expected, "{first:?}, {second:?}, {patching:?}");
        let estimates = driven.run.estimates();
        let warnings = driven.run.finish().unwrap().warnings;
        let found: Vec<_> = warnings.iter().filter(|one| one.kind == WarningKind::CheaperTarget).collect();
        assert_eq!(found.len(), expected[1], "{warnings:?}");
        for warning in found {
            let names = warning.message.starts_with("`dear` was left for `cheap`");
            assert!(names && warning.message.ends_with(&estimates.to_string()), "{warning}");
        }
    }
    // A target that has had its share of the attempts is left whatever the next one costs.
    let plan = Plan::new(contract(), vec![priced("dear", 10 * million), priced("cheap", million)]);
    let plan = plan.with_policy(Policy::new(2).with_stop_on_repeat(false)).build().unwrap();
    let outcome = drive(&plan, input(), &[WRONG, RIGHT]).run.finish().unwrap();
    assert!(outcome.warnings.iter().all(|warning| warning.kind != WarningKind::CheaperTarget));
}
