//! The invariants of runs, over every script of replies and over random ones.

use std::collections::BTreeSet;
use std::time::Duration;

use formwork_core::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::*;

const REPLIES: [Reply; 11] = [
    Reply::Says(GOOD),
    Reply::Says(BAD_SUM),
    Reply::Says(BAD_RANGE),
    Reply::Says("no JSON here"),
    Reply::Says(r#"{"score": 700, "parts.a": 70}"#),
    Reply::Closes(GOOD, GOOD.len() - 4),
    Reply::Ends("I can't help with that.", Finish::Refused),
    Reply::Fails(FaultKind::Overloaded),
    Reply::Fails(FaultKind::Auth),
    Reply::Fails(FaultKind::SchemaRefused),
    Reply::Limits(4),
];

const DEADLINE: Duration = Duration::from_secs(9);
const BUDGET: Cost = Cost { tokens: 5_000, micro_usd: Some(5_000) };

/// Returns the price at which a token costs this number of millionths of a dollar.
fn price(micro_usd: u64) -> Price {
    Price::new(micro_usd * 1_000_000, micro_usd * 1_000_000)
}

fn two_targets(policy: Policy) -> Plan {
    let targets = vec![target("one").with_price(price(1)), target("two").with_price(price(1))];
    Plan::new(contract(), targets)
        .with_policy(policy)
        .with_deadline(DEADLINE)
        .with_budget(BUDGET)
        .with_max_tokens(50)
        .build()
        .unwrap()
}

/// Checks the invariants between the calls of one run.
#[derive(Clone, Default)]
struct Watcher {
    calls: u32,
    waited: Duration,
    target: Option<usize>,
    left: BTreeSet<usize>,
    hottest: Option<f64>,
    enforced: Option<Enforcement>,
    ids: BTreeSet<CallId>,
    /// Whether the run chooses its own token limits. An answer that one of them cut off shows nothing about the model.
    limits_itself: bool,
    /// Whether a budget refused the target of the last step, which was not called.
    refused: BTreeSet<usize>,
    /// Whether a target was called that a budget had refused before.
    has_returned: bool,
}

impl Watcher {
    fn call(&mut self, target: usize, call: &Call) {
        self.calls += 1;
        self.has_returned |= self.refused.contains(&target) && self.target != Some(target);
        if self.target != Some(target) {
            self.left.extend(self.target);
            assert!(!self.left.contains(&target), "a target that was called and left is never called again");
            (self.target, self.hottest, self.enforced) = (Some(target), None, None);
        }
        assert!(self.enforced.is_none_or(|before| call.enforcement() <= before), "modes only go down");
        self.enforced = Some(call.enforcement());
        if let (Some(before), Some(now)) = (self.hottest, call.sampling.temperature) {
            assert!(now <= before, "it never heats up within a target");
        }
        self.hottest = call.sampling.temperature.or(self.hottest);
    }

    /// Takes in a step before its result.
    fn step(&mut self, id: CallId, spent: Cost, reserve: Cost) {
        assert!(self.ids.insert(id), "every call has a number of its own");
        assert!(spent.plus(reserve).fits(BUDGET), "what is spent and reserved stays within the budget");
    }

    fn done(&self, plan: &Plan, run: &Run) {
        assert!(self.calls <= 40, "calls are bounded");
        assert_eq!(run.ledger().len(), self.calls as usize, "every call is in the ledger");
        assert!(self.waited < DEADLINE, "waits end before the deadline");
        if !self.limits_itself {
            observations(run);
        }
        match run.clone().finish() {
            Ok(outcome) => {
                let judged = plan.contract().judge(&outcome.value, &Context::EMPTY);
                assert!(judged.is_accepted(), "an accepted value satisfies the contract: {judged:?}");
                assert_eq!(outcome.closed().count(), 0, "an accepted value is complete");
                assert_eq!(
                    outcome.usage,
                    run.ledger().iter().fold(Usage::default(), |sum, a| sum.plus(a.usage))
                );
            }
            Err(error) => assert_eq!(error.calls().len(), self.calls as usize),
        }
    }
}

/// The replies that are impossible for a server that enforces the schema: prose, and a document.
const PROSE: &str = "no JSON here";
const IMPOSSIBLE: &str = r#"{"score": 700, "parts.a": 70}"#;

/// Checks the invariants of the observations of a run.
fn observations(run: &Run) {
    let (mut ignored, mut prose, mut run_away) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (nth, call) in run.ledger().iter().enumerate() {
        let whole = call.patched.is_empty();
        let refused = matches!(&call.verdict, CallResult::Failed { failure: Failure::Fault(fault) }
            if fault.kind == FaultKind::SchemaRefused);
        let is_held = whole && call.enforcement == Enforcement::Schema && call.finish == Some(Finish::Stop);
        let is_first_prose = is_held && &*call.text == PROSE && prose.insert(call.target.clone());
        let is_last = nth + 1 == run.ledger().len();
        let taught = call.observation.as_ref().map(|observation| observation.kind);
        let cut = whole
            && call.enforcement == Enforcement::Schema
            && call.finish == Some(Finish::Length)
            && matches!(&call.verdict, CallResult::Failed { failure: Failure::Truncated { .. } })
            && !run_away.contains(&call.target);
        let expected = match (whole && refused, is_held && &*call.text == IMPOSSIBLE) {
            (true, _) => Some(ObservationKind::Refused),
            (_, true) => Some(ObservationKind::Ignored),
            _ if is_first_prose => Some(ObservationKind::Prose),
            // At the deadline, the time may be the reason instead of the token limit.
            _ if cut && !(is_last && taught.is_none()) => Some(ObservationKind::RanAway),
            _ => None,
        };
        assert_eq!(call.observation.as_ref().map(|observation| observation.kind), expected, "{call:?}");
        let Some(observation) = &call.observation else { continue };
        if observation.kind == ObservationKind::RanAway {
            run_away.insert(call.target.clone());
            continue;
        }
        assert_eq!((&observation.name, &observation.dialect), (&call.target, &call.dialect));
        if observation.kind == ObservationKind::Prose {
            // The mode stays.
            continue;
        }
        if observation.kind == ObservationKind::Ignored {
            assert!(ignored.insert(observation.target), "it is said once for each target");
        }
        let later = run.ledger().iter().skip(nth + 1).filter(|later| later.target == observation.name);
        let is_last = observation.dialect == "prompt";
        assert!(
            is_last || later.into_iter().all(|later| later.dialect != observation.dialect),
            "it is heeded"
        );
    }
    assert!(run.observations().eq(run.ledger().iter().filter_map(|call| call.observation.as_deref())));
}

/// Walks every script of these replies to the end of the run. Returns the number of ends, and of those after a return to a target
/// that a budget had refused.
fn walk(plan: &Plan, mut run: Run, mut now: Time, mut watcher: Watcher, replies: &[Reply]) -> (usize, usize) {
    loop {
        match run.step(plan, now).unwrap() {
            Step::Wait { until, .. } => {
                watcher.waited += until.since(now);
                now = until;
            }
            Step::Done => {
                watcher.done(plan, &run);
                return (1, usize::from(watcher.has_returned));
            }
            Step::Call { id, target, call, reserve, .. } => {
                let spent = run.ledger().iter().fold(Cost::default(), |sum, call| sum.plus(call.cost));
                watcher.step(id, spent, reserve);
                return replies
                    .iter()
                    .map(|reply| {
                        let (mut branch, mut watcher) = (run.clone(), watcher.clone());
                        let event = reply.event(id, &call);
                        match event {
                            Event::Denied { .. } => _ = watcher.refused.insert(target),
                            _ => watcher.call(target, &call),
                        }
                        let later = now.after(Duration::from_millis(100));
                        branch.on(plan, later, event.clone()).unwrap();
                        let after = branch.clone();
                        assert_eq!(
                            branch.on(plan, later, event),
                            Err(Misuse::NotExpected),
                            "a doubled event is misuse"
                        );
                        assert_eq!(branch, after, "and changes nothing");
                        walk(plan, branch, later, watcher, replies)
                    })
                    .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            }
            _ => unreachable!("this plan has no checks outside of the run"),
        }
    }
}

#[test]
fn every_script_of_replies_keeps_the_laws() {
    let backoff = Backoff::of_seconds(&[2.0]);
    let policies = [
        Policy::new(2).with_attempts_per_target(1).with_backoff(backoff),
        Policy::new(2).with_temperature(Temperature::Steps(vec![0.3, 0.2])).with_backoff(Backoff::none()),
        at_most(0.7).with_patching(Patching::Within(1)).with_backoff(Backoff::none()),
    ];
    let walk_all = |policy| {
        let plan = two_targets(policy);
        walk(&plan, Run::new(&plan, input().with_seed(1)), Time(0), Watcher::default(), &REPLIES).0
    };
    // At the same time, so that the longest test of the program takes all cores.
    let ends: usize = std::thread::scope(|scope| {
        let threads = policies.map(|policy| scope.spawn(move || walk_all(policy)));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(ends > 10_000, "{ends} scripts were walked");
}

#[test]
fn every_script_with_refusals_of_budgets_keeps_the_laws() {
    let replies = [
        Reply::Says(GOOD),
        Reply::Says(BAD_SUM),
        Reply::Ends(r#"{"score": 7"#, Finish::Length),
        Reply::Fails(FaultKind::Auth),
        Reply::Denies,
    ];
    let (mut ends, mut returns) = (0, 0);
    for prices in [[3, 1, 2], [1, 2, 3], [2, 3, 1]] {
        for policy in [Policy::new(3), at_most(0.7).with_attempts_per_target(1)] {
            let names = ["one", "two", "three"].into_iter().zip(prices);
            let targets = names.map(|(name, micro_usd)| target(name).with_price(price(micro_usd)));
            let plan = Plan::new(contract(), targets.collect())
                .with_policy(policy.with_backoff(Backoff::none()))
                .with_deadline(DEADLINE)
                .with_budget(BUDGET)
                .build()
                .unwrap();
            let watcher = Watcher { limits_itself: true, ..Watcher::default() };
            let walked = walk(&plan, Run::new(&plan, input()), Time(0), watcher, &replies);
            (ends, returns) = (ends + walked.0, returns + walked.1);
        }
    }
    assert!(
        ends > 150 && returns > 10,
        "{ends} scripts were walked, {returns} with a return to a refused target"
    );
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let temperature = prop_oneof![
        Just(Temperature::Own),
        prop::collection::vec(0.0..2.0f64, 1..5).prop_map(Temperature::Steps),
        (0.0..2.0f64, 0.0..2.0f64).prop_map(|(first, then)| Temperature::AtMost { first, then }),
    ];
    let patching =
        prop_oneof![Just(Patching::Never), Just(Patching::Attempt), (0u32..4).prop_map(Patching::Within)];
    let backoff = (0u32..5, prop::collection::vec(0.0..5.0f64, 0..4), 0.0..1.0f64)
        .prop_map(|(retries, delays, jitter)| Backoff { retries, jitter, ..Backoff::of_seconds(&delays) });
    let feedback = prop_oneof![
        Just(Policy::new(1).feedback),
        Just(at_most(0.7).feedback),
        Just(corrective(1).feedback),
        Just(folded().feedback)
    ];
    (1u32..6, prop::option::of(1u32..4), temperature, patching, backoff, feedback, any::<bool>()).prop_map(
        |(attempts, per_target, temperature, patching, backoff, feedback, stop)| {
            let policy = Policy::new(attempts)
                .with_temperature(temperature)
                .with_patching(patching)
                .with_backoff(backoff)
                .with_feedback(feedback)
                .with_stop_on_repeat(stop);
            match per_target {
                Some(most) => policy.with_attempts_per_target(most),
                None => policy,
            }
        },
    )
}

fn any_script() -> impl Strategy<Value = Vec<Reply>> {
    prop::collection::vec(prop::sample::select(REPLIES.to_vec()), 1..20)
}

/// Drives a run; if `stored`, it is serialised and read back before every step.
fn trace(plan: &Plan, seed: u64, starts: &[usize], script: &[Reply], stored: bool) -> (Vec<Step>, String) {
    let run = run_with(Run::new(plan, input().with_seed(seed)), starting_in(starts));
    let (mut run, mut now, mut steps, mut calls) = (run, Time(0), Vec::new(), 0);
    loop {
        if stored {
            run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
        }
        let step = run.step(plan, now).unwrap();
        steps.push(step.clone());
        match step {
            Step::Wait { until, .. } => now = until,
            Step::Call { id, call, .. } => {
                let reply = &script[calls % script.len()];
                calls += 1;
                run.on(plan, now, reply.event(id, &call)).unwrap();
            }
            Step::Fallback { id, .. } => {
                let value = Some(json!({"score": 0, "parts": {"a": 0, "b": 0}, "note": ""}));
                run.on(plan, now, Event::supplied(id, value)).unwrap();
            }
            _ => return (steps, format!("{:?}", run.finish())),
        }
    }
}

/// Drives a run that is stored before every step and read so many milliseconds later, or earlier by a clock that was set back.
/// Returns the steps with times as distances from the moment of the step.
fn broken(plan: &Plan, seed: u64, script: &[Reply], gap: i64) -> Vec<String> {
    let (mut run, mut now, mut steps, mut calls) =
        (Run::new(plan, input().with_seed(seed)), Time(1 << 40), Vec::new(), 0);
    loop {
        let later = Time(now.0.checked_add_signed(gap).unwrap());
        run = serde_json::from_str::<Run>(&serde_json::to_string(&run).unwrap()).unwrap().resumed(now, later);
        now = later;
        match run.step(plan, now).unwrap() {
            Step::Wait { until, .. } => {
                steps.push(format!("wait {:?}", until.since(now)));
                now = until;
            }
            Step::Call { id, target, call, .. } => {
                let deadline = call.deadline.map(|deadline| deadline.since(now));
                steps.push(format!("call {target} {:?} {:?} {deadline:?}", call.messages, call.sampling));
                let reply = &script[calls % script.len()];
                calls += 1;
                now = now.after(Duration::from_millis(700));
                run.on(plan, now, reply.event(id, &call)).unwrap();
            }
            Step::Done => {
                let end = run.finish().map(|outcome| outcome.value).map_err(|error| error.to_string());
                steps.push(format!("{end:?}"));
                return steps;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A policy that violates every recommendation, in a plan with every feature.
#[derive(Debug)]
struct Unruly;

impl RetryPolicy for Unruly {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling::default().with_temperature(0.5)
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        let ask = Ask::Patch(vec![JsonPath::root().key("nowhere").index(9)]);
        let reask = Reask::new(ask, seen.sampling.with_temperature(2.0)).within_attempt();
        Decision::Ask(reask.with_max_tokens(seen.max_tokens))
    }
}

#[test]
fn an_unruly_policy_cannot_break_the_laws() {
    let plan = Plan::new(contract(), vec![target("one")]).with_policy(Unruly).build().unwrap();
    for reply in &REPLIES[1..] {
        let driven = drive(&plan, input(), std::slice::from_ref(reply));
        assert!(driven.calls.len() <= MAX_CALLS as usize);
        assert!(driven.calls.iter().all(|(_, _, call)| call.sampling.temperature <= Some(0.5)));
        assert!(driven.run.finish().is_err());
    }
}

proptest! {
    #[test]
    fn storing_and_resuming_before_every_step_changes_nothing(
        policy in any_policy(), script in any_script(), seed: u64, fallback: bool, async_checks: bool,
        starts in prop::collection::vec(0usize..4, 0..4),
    ) {
        let builder = Plan::new(contract(), vec![target("one"), target("two")]).with_policy(policy).with_deadline(DEADLINE);
        let builder = if fallback { builder.with_fallback() } else { builder };
        let plan = if async_checks { builder.with_async_checks() } else { builder }.build().unwrap();
        prop_assert_eq!(trace(&plan, seed, &starts, &script, false), trace(&plan, seed, &starts, &script, true));
    }

    #[test]
    fn a_break_before_every_step_takes_no_time_from_the_run(
        policy in any_policy(), script in any_script(), seed: u64, gap in -3_600_000_i64..1_000_000_000,
    ) {
        let builder = Plan::new(contract(), vec![target("one"), target("two")]).with_policy(policy).with_deadline(DEADLINE);
        let plan = builder.build().unwrap();
        prop_assert_eq!(broken(&plan, seed, &script, 0), broken(&plan, seed, &script, gap));
    }

    #[test]
    fn a_run_that_starts_where_another_ended_is_not_taught_the_same(
        policy in any_policy(), script in any_script(), again in any_script(),
    ) {
        let plan = Plan::new(contract(), vec![target("one"), target("two")]).with_policy(policy).build().unwrap();
        let first = drive(&plan, input(), &script).run;
        let mut starts = vec![0; 2];
        first.observations().for_each(|observation| starts[observation.target] = observation.mode + 1);
        let mut run = run_with(Run::new(&plan, input()), starting_in(&starts));
        let mut calls = 0;
        loop {
            match run.step(&plan, Time(u64::MAX / 2)).unwrap() {
                Step::Call { id, call, .. } => {
                    run.on(&plan, Time(0), again[calls % again.len()].event(id, &call)).unwrap();
                    calls += 1;
                }
                Step::Done => break,
                other => unreachable!("{other:?}"),
            }
        }
        let is_heeded = |observation: &&Observation| {
            observation.dialect != "prompt" && observation.kind != ObservationKind::Prose
        };
        for observation in first.observations().filter(is_heeded) {
            let same = |call: &CallRecord| call.target == observation.name && call.dialect == observation.dialect;
            prop_assert!(!run.ledger().iter().any(same), "{}", observation);
        }
    }

    #[test]
    fn random_policies_keep_the_laws(policy in any_policy(), script in any_script(), seed: u64) {
        let plan = two_targets(policy);
        let (mut run, mut now, mut watcher, mut calls) = (Run::new(&plan, input().with_seed(seed)), Time(0), Watcher::default(), 0);
        loop {
            match run.step(&plan, now).unwrap() {
                Step::Wait { until, .. } => { watcher.waited += until.since(now); now = until }
                Step::Done => break watcher.done(&plan, &run),
                    Step::Call { id, target, call, reserve, .. } => {
                    let spent = run.ledger().iter().fold(Cost::default(), |sum, call| sum.plus(call.cost));
                    watcher.step(id, spent, reserve);
                    watcher.call(target, &call);
                    run.on(&plan, now, script[calls % script.len()].event(id, &call)).unwrap();
                    calls += 1;
                }
            _ => unreachable!("this plan has no checks outside of the run"),
            }
        }
    }

    #[test]
    fn the_size_of_a_reask_does_not_grow(policy in any_policy(), noise in prop::collection::vec("[ -~]{0,200}", 6), long in 0usize..40_000) {
        let answers: Vec<Reply> = noise.iter().enumerate().map(|(n, noise)| {
            let note = noise.replace(['"', '\\'], "'") + &"x".repeat(long);
            let text = format!(r#"{{"score": {}, "parts": {{"a": {n}, "b": 170}}, "note": "{note}"}}"#, 2000 + n);
            Reply::Says(text.leak())
        }).collect();
        let mut policy = policy.with_stop_on_repeat(false);
        policy.attempts = 6;
        let driven = drive(&plan(policy), input(), &answers);
        let size = |call: &Call| call.messages.iter().map(|message| message.text().len()).sum::<usize>();
        let task = size(&driven.calls[0].2);
        for (_, _, call) in &driven.calls[1..] {
            let grown = size(call) - task;
            prop_assert!(grown <= MAX_PREVIOUS + MAX_BYTES + 1024, "{} bytes more than the task", grown);
        }
    }

    #[test]
    fn events_out_of_place_are_misuse_and_change_nothing(script in any_script(), wrong in any_script()) {
        let plan = plan(Policy::default());
        let mut run = Run::new(&plan, input());
        let Step::Call { id: first, call: first_call, .. } = run.step(&plan, Time(0)).unwrap() else { unreachable!() };
        for reply in &script {
            let Step::Call { id, call, .. } = run.step(&plan, Time(u64::MAX / 2)).unwrap() else { break };
            run.on(&plan, Time(0), reply.event(id, &call)).unwrap();
            let before = run.clone();
            for late in &wrong {
                prop_assert_eq!(run.on(&plan, Time(0), late.event(first, &first_call)), Err(Misuse::NotExpected));
            }
            let checked = Event::checked(id, vec![], Cost::default());
            prop_assert_eq!(run.on(&plan, Time(0), checked), Err(Misuse::NotExpected));
            prop_assert_eq!(&run, &before);
        }
    }
}
