//! The rules of `Health`: when evidence about a target changes the calls of later runs, and when that ends.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use proptest::prelude::*;

use crate::running_away::Bounding;
use crate::support::*;

const START: Time = Time(1_000_000);

fn after(seconds: u64) -> Time {
    START.after(Duration::from_secs(seconds))
}

/// Returns a plan with two targets, each with a mode that enforces the schema and one that does not.
fn pair() -> Plan {
    let target = |name| {
        Target::new(name, Capabilities::new(Enforcement::Schema))
            .with_mode(Arc::new(Bounding(Enforcement::Schema)))
            .with_mode(Arc::new(AsIs("prompt", Enforcement::None)))
    };
    Plan::new(contract(), vec![target("one"), target("two")]).build().unwrap()
}

/// The first call of a run: its target, whether the schema is enforced, and whether it is bounded.
type First = (usize, bool, bool);

const USUAL: First = (0, true, false);

/// Returns the first call of the next run.
fn next(health: &mut Health, plan: &Plan, now: Time) -> First {
    let advice = health.advise(plan, &Thresholds::default(), now, false);
    let mut run = run_with(Run::new(plan, input()), advice);
    let Step::Call { target, call, .. } = run.step(plan, now).unwrap() else { panic!() };
    (target, call.enforcement() == Enforcement::Schema, !call.lowered.bounds.is_empty())
}

fn reason() -> String {
    "scripted".to_owned()
}

fn impossible() -> Shown {
    Shown::Impossible { reason: reason() }
}

fn prose() -> Shown {
    Shown::Prose { reason: reason() }
}

fn ran_away() -> Shown {
    Shown::RanAway { reason: reason(), longest: Size::default() }
}

fn right(bounded: bool) -> Shown {
    Shown::Complete { size: Size { items: 3, text: 4, name: 5 }, bounded }
}

fn fault(kind: FaultKind, connection: Option<Connection>) -> Shown {
    let fault = Fault::new(kind, "scripted");
    Shown::Failed { fault: connection.into_iter().fold(fault, Fault::with_connection) }
}

fn broken() -> Shown {
    fault(FaultKind::Unreachable, Some(Connection::Broken))
}

/// An answer whose headers leave no further call: the next runs go to the next target, until the limit is full again, or until a
/// later answer has something left. A run with one target calls it in any case.
#[test]
fn a_target_whose_headers_leave_no_call_is_skipped_until_its_limit_is_full() {
    let (plan, mut health) = (pair(), Health::new());
    let pause = Duration::from_secs(90);
    for (pause, first) in [(Some(pause), 1), (Some(Duration::ZERO), 0), (None, 0)] {
        let mut run = Run::new(&plan, input());
        let Step::Call { id, .. } = run.step(&plan, START).unwrap() else { panic!() };
        let limits = pause.map(|pause| RateLimit::new(Counted::Requests, 0, pause)).into_iter().collect();
        let answer = Completion::new(GOOD).with_limits(limits);
        run.on(&plan, START, Event::answered(id, answer)).unwrap();
        run.take_evidence(&plan).iter().for_each(|evidence| {
            health.record(evidence, &Thresholds::default());
        });
        assert_eq!(next(&mut health, &plan, after(89)).0, first, "{pause:?}");
        assert_eq!(next(&mut health, &plan, after(90)).0, 0, "{pause:?}");
    }
    record(&mut health, &plan, 1, START, Shown::LimitReached { pause_ms: 90_000 });
    let listed = health.in_force(&Thresholds::default(), after(1));
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].target.as_str(), listed[0].until), ("one", after(90)));
    assert!(record(&mut health, &plan, 2, after(2), Shown::Answered));
    assert_eq!(next(&mut health, &plan, after(3)), USUAL);
}

/// Records evidence about the first target with the schema of a plan.
fn record(health: &mut Health, plan: &Plan, request: u64, now: Time, shown: Shown) -> bool {
    record_for(health, plan.schema_digest(), request, now, shown)
}

fn record_for(health: &mut Health, schema: &str, request: u64, now: Time, shown: Shown) -> bool {
    let evidence = Evidence::new("one", schema, now, shown).with_request(request);
    health.record(&evidence, &Thresholds::default())
}

#[test]
fn a_schema_is_sent_without_enforcement_after_this_evidence_and_no_less() {
    let plan = pair();
    let different = |shown: Shown, count: u64| (0..count).map(move |nth| (nth, shown.clone()));
    let among = |shown: Shown, every: u64, count: u64| {
        (0..every * count).map(move |nth| (nth, if nth % every == 0 { shown.clone() } else { right(false) }))
    };
    let same = |shown: Shown, count: usize| std::iter::repeat_n((7, shown), count);
    /// A name, what requests showed, and whether the schema is still enforced then.
    type Case = (&'static str, Vec<(u64, Shown)>, bool);

    let begun = |nth: u64| [(nth, Shown::InProse { reason: reason() })];
    let cases: [Case; 14] = [
        ("one impossible document", different(impossible(), 1).collect(), true),
        ("two of one request", same(impossible(), 2).collect(), true),
        ("two of different requests", different(impossible(), 2).collect(), false),
        ("four requests in prose", different(prose(), 4).collect(), true),
        ("five requests in prose", different(prose(), 5).collect(), false),
        (
            "three in prose and the first answer of a fourth",
            different(prose(), 3).chain(begun(3)).collect(),
            true,
        ),
        (
            "four in prose and the first answer of a fifth",
            different(prose(), 4).chain(begun(4)).collect(),
            false,
        ),
        ("the first answers of ten requests in prose", (0..10).flat_map(begun).collect(), true),
        ("five refusals", different(Shown::Declined, 5).collect(), false),
        ("one request in prose, ten times", same(prose(), 10).collect(), true),
        ("every second of ten in prose", among(prose(), 2, 5).collect(), false),
        ("every third of thirty in prose", among(prose(), 3, 10).collect(), true),
        ("every thirtieth of 300 in prose", among(prose(), 30, 10).collect(), true),
        (
            "prose that a later answer corrects",
            (0..9).flat_map(|nth| [(nth, prose()), (nth, right(false))]).collect(),
            true,
        ),
    ];
    for (name, script, is_enforced) in cases {
        let mut health = Health::new();
        for (request, shown) in script {
            record(&mut health, &plan, request, START, shown);
        }
        assert_eq!(next(&mut health, &plan, START), (0, is_enforced, false), "{name}");
        let in_force = health.in_force(&Thresholds::default(), START);
        assert_eq!(in_force.is_empty(), is_enforced, "{name}: {in_force:?}");
        if let [restriction] = in_force.as_slice() {
            assert_eq!(restriction.schema.as_deref(), Some(plan.schema_digest()), "{name}");
            assert_eq!(restriction.kind, RestrictionKind::Unenforced);
        }
    }
}

#[test]
fn after_three_ignored_schemas_every_schema_is_sent_without_enforcement() {
    let plan = pair();
    for (schemas, is_enforced) in [(2, true), (3, false)] {
        let mut health = Health::new();
        for schema in 0..schemas {
            for request in 0..2 {
                record_for(&mut health, &format!("schema {schema}"), request, START, impossible());
            }
        }
        assert_eq!(next(&mut health, &plan, START), (0, is_enforced, false), "{schemas} other schemas");
    }
}

/// Returns the state in which the schema is sent without enforcement.
fn ignored(plan: &Plan) -> Health {
    let mut health = Health::new();
    for request in 0..2 {
        record(&mut health, plan, request, START, impossible());
    }
    health
}

#[test]
fn the_stronger_mode_is_tried_again_after_twenty_calls_or_ten_minutes_and_later_after_each_failure() {
    let plan = pair();
    let weaker = |health: &mut Health, now| {
        let evidence = Evidence::new("one", plan.schema_digest(), now, right(false)).without_enforcement();
        health.record(&evidence, &Thresholds::default());
    };
    // Every run makes one call, and every trial fails.
    let (mut health, mut trials) = (ignored(&plan), Vec::new());
    for run in 1..=300 {
        if next(&mut health, &plan, START).1 {
            trials.push(run);
            record(&mut health, &plan, run, START, impossible());
        }
        weaker(&mut health, START);
    }
    assert_eq!(trials, [21], "a failed trial puts the next one off for 320 calls");
    // Without calls, time decides.
    let mut health = ignored(&plan);
    assert!(!next(&mut health, &plan, after(599)).1);
    assert!(next(&mut health, &plan, after(600)).1);
    assert!(!next(&mut health, &plan, after(600)).1, "one run tries it");
    record(&mut health, &plan, 9, after(601), impossible());
    assert!(!next(&mut health, &plan, after(1799)).1, "a failed trial doubles the time");
    assert!(next(&mut health, &plan, after(1800)).1);
    record(&mut health, &plan, 10, after(1801), right(false));
    assert_eq!(next(&mut health, &plan, after(1801)), USUAL, "a good answer ends it");
    assert!(health.in_force(&Thresholds::default(), after(1801)).is_empty());
}

#[test]
fn bounds_hold_for_one_schema_and_an_hour_and_every_tenth_call_has_none() {
    let plan = pair();
    let bounded = |health: &mut Health, now| next(health, &plan, now).2;
    let mut health = Health::new();
    record_for(&mut health, "another schema", 0, START, ran_away());
    assert_eq!(next(&mut health, &plan, START), USUAL);
    record(&mut health, &plan, 0, START, ran_away());
    let calls: Vec<bool> = (0..20).map(|_| bounded(&mut health, START)).collect();
    let without: Vec<usize> = (0..20).filter(|nth| !calls[*nth]).collect();
    assert_eq!(without, [9, 19]);
    // Complete answers with bounds show nothing; two without them lift the bounds.
    for (shown, is_bounded) in
        [(right(true), true), (right(true), true), (right(false), true), (right(false), false)]
    {
        record(&mut health, &plan, 1, START, shown.clone());
        assert_eq!(bounded(&mut health, START), is_bounded, "{shown:?}");
    }
    for (seconds, is_bounded) in [(3599, true), (3600, false)] {
        let mut health = Health::new();
        record(&mut health, &plan, 0, START, ran_away());
        record(&mut health, &plan, 0, after(3000), ran_away());
        assert_eq!(bounded(&mut health, after(seconds)), is_bounded, "at most an hour: {seconds}");
    }
    let mut health = Health::new();
    record(&mut health, &plan, 0, START, ran_away());
    record(&mut health, &plan, 0, START, Shown::BeyondBound);
    assert!(!bounded(&mut health, START), "a server that does not enforce bounds gets none");
}

#[test]
fn a_target_is_skipped_after_these_faults() {
    use FaultKind::{Auth, BadRequest, BadWire, Overloaded, RateLimited, Timeout, Unreachable};
    let plan = pair();
    let failed = Some(Connection::Failed);
    let limited = |seconds| {
        let wait = Some(Duration::from_secs(seconds));
        Shown::Failed { fault: Fault::new(RateLimited, "scripted").with_retry_after(wait) }
    };
    let good = || Shown::Answered;
    for (script, seconds) in [
        (vec![fault(Unreachable, None)], Some(30)),
        (vec![fault(Unreachable, failed)], Some(30)),
        // A certificate that is not accepted.
        (vec![fault(BadWire, failed)], Some(30)),
        (vec![broken()], None),
        (vec![broken(), broken()], None),
        (vec![broken(), fault(Timeout, None), fault(Overloaded, None)], Some(30)),
        (vec![broken(), good(), broken(), good(), broken()], Some(30)),
        (
            vec![
                broken(),
                good(),
                broken(),
                good(),
                good(),
                good(),
                good(),
                good(),
                good(),
                good(),
                broken(),
            ],
            None,
        ),
        (vec![fault(RateLimited, None)], Some(5)),
        (vec![limited(20)], Some(20)),
        (vec![limited(86_400)], Some(600)),
        (vec![fault(Auth, None), fault(BadRequest, None), fault(BadWire, None)], None),
        (vec![fault(Unreachable, None), good()], None),
    ] {
        let mut health = Health::new();
        for shown in &script {
            record(&mut health, &plan, 0, START, shown.clone());
        }
        let Some(seconds) = seconds else {
            assert_eq!(next(&mut health, &plan, START), USUAL, "{script:?}");
            continue;
        };
        let in_force = health.in_force(&Thresholds::default(), START);
        assert_eq!(in_force[0].kind, RestrictionKind::OutOfService, "{script:?}");
        assert_eq!(next(&mut health, &plan, after(seconds - 1)).0, 1, "{script:?}");
        assert_eq!(next(&mut health, &plan, after(seconds)).0, 0, "{script:?}");
    }
}

#[test]
fn each_failed_trial_of_a_target_doubles_its_outage_while_other_runs_skip_it() {
    let (plan, mut health, mut now) = (pair(), Health::new(), START);
    for (seconds, shown) in [30, 60, 120, 240, 480, 600, 600].into_iter().zip([
        fault(FaultKind::Unreachable, None),
        broken(),
        fault(FaultKind::Timeout, None),
        broken(),
        broken(),
        broken(),
        broken(),
    ]) {
        // Concurrent calls fail too, and count as one outage.
        record(&mut health, &plan, 0, now, shown.clone());
        record(&mut health, &plan, 0, now, shown);
        let end = now.after(Duration::from_secs(seconds));
        assert_eq!(next(&mut health, &plan, Time(end.0 - 1)).0, 1, "{seconds}");
        assert_eq!([next(&mut health, &plan, end).0, next(&mut health, &plan, end).0], [0, 1], "{seconds}");
        now = end;
    }
    record(&mut health, &plan, 0, now, Shown::Answered);
    assert_eq!(next(&mut health, &plan, now), USUAL);
    record(&mut health, &plan, 0, now, broken());
    assert_eq!(next(&mut health, &plan, now), USUAL, "the window begins anew");
}

#[test]
fn runs_fail_fast_only_after_one_has_waited_for_every_target_in_vain() {
    let plan = pair();
    let fails = |health: &mut Health, now| {
        let advice = health.advise(&plan, &Thresholds::default(), now, true);
        let mut run = run_with(Run::new(&plan, input()), advice);
        !matches!(run.step(&plan, now), Ok(Step::Call { .. }))
    };
    let mut health = Health::new();
    for target in ["one", "two"] {
        for shown in [fault(FaultKind::Unreachable, None), Shown::GaveUp] {
            assert!(!fails(&mut health, START), "before {target}: {shown:?}");
            health.record(&Evidence::new(target, "", START, shown), &Thresholds::default());
        }
    }
    assert!(fails(&mut health, after(29)));
    assert!(!fails(&mut health, after(30)), "one run tries the first target");
    health.record(&Evidence::new("one", "", after(30), Shown::Answered), &Thresholds::default());
    assert!(!fails(&mut health, after(30)));
}

/// Records evidence about the first target at these seconds, each before a run asks, and returns the first call of the last run.
fn played(plan: &Plan, thresholds: &Thresholds, script: &[(u64, u64, Shown)], at: u64) -> First {
    let mut health = Health::new();
    for (seconds, request, shown) in script {
        // A number from 1,000 stands for one of another schema.
        let schema =
            if *request < 1_000 { plan.schema_digest().to_owned() } else { (request / 1_000).to_string() };
        let evidence = Evidence::new("one", schema, after(*seconds), shown.clone()).with_request(*request);
        health.record(&evidence, thresholds);
    }
    let advice = health.advise(plan, thresholds, after(at), false);
    let mut run = run_with(Run::new(plan, input()), advice);
    let Step::Call { target, call, .. } = run.step(plan, after(at)).unwrap() else { panic!() };
    (target, call.enforcement() == Enforcement::Schema, !call.lowered.bounds.is_empty())
}

#[test]
fn each_threshold_changes_the_outcome() {
    let plan = pair();
    let times =
        |count: u64, shown: fn() -> Shown| (0..count).map(|nth| (0, nth, shown())).collect::<Vec<_>>();
    let others = || {
        (1..=3).flat_map(|schema| (0..2).map(move |nth| (0, schema * 1_000 + nth, impossible()))).collect()
    };
    let down = || vec![(0, 0, fault(FaultKind::Unreachable, Some(Connection::Failed)))];
    let busy = || vec![(0, 0, fault(FaultKind::RateLimited, None))];
    let again =
        || vec![(0, 0, down()[0].2.clone()), (31, 0, down()[0].2.clone()), (92, 0, down()[0].2.clone())];
    let (weaker, bounded, skipped) = ((0, false, false), (0, true, true), (1, true, false));
    /// A threshold and its new value, the script, the time of the run, and its first call by default and with the value.
    type Case = (&'static str, u32, Vec<(u64, u64, Shown)>, u64, First, First);

    let cases: [Case; 14] = [
        ("impossible_requests", 3, times(2, impossible), 0, weaker, USUAL),
        ("prose_requests", 6, times(5, prose), 0, weaker, USUAL),
        ("window_requests", 4, times(5, prose), 0, weaker, USUAL),
        ("ignored_schemas", 4, others(), 0, weaker, USUAL),
        ("trial_seconds", 60, times(2, impossible), 60, weaker, USUAL),
        ("bounds_seconds", 60, times(1, ran_away), 60, bounded, USUAL),
        ("unbounded_every", 1, times(1, ran_away), 0, bounded, USUAL),
        ("complete_answers", 1, vec![(0, 0, ran_away()), (0, 1, right(false))], 0, bounded, USUAL),
        ("failed_calls", 2, times(2, broken), 0, USUAL, skipped),
        ("window_calls", 2, times(3, broken), 0, skipped, USUAL),
        ("outage_seconds", 10, down(), 20, skipped, USUAL),
        ("max_outage_seconds", 10, again(), 110, skipped, USUAL),
        ("busy_seconds", 10, busy(), 7, USUAL, skipped),
        ("observation_seconds", 60, times(2, impossible), 60, weaker, USUAL),
    ];
    for (name, value, script, at, usual, changed) in cases {
        let thresholds = serde_json::from_value(serde_json::json!({name: value})).unwrap();
        assert_eq!(played(&plan, &Thresholds::default(), &script, at), usual, "{name} by default");
        assert_eq!(played(&plan, &thresholds, &script, at), changed, "{name} = {value}");
    }
    // The number of calls until a trial depends on the calls of other runs.
    let trial = |trial_calls| {
        let thresholds = Thresholds { trial_calls, ..Thresholds::default() };
        let mut health = ignored(&plan);
        for _ in 0..5 {
            let evidence =
                Evidence::new("one", plan.schema_digest(), START, right(false)).without_enforcement();
            health.record(&evidence, &thresholds);
        }
        let advice = health.advise(&plan, &thresholds, START, false);
        let Step::Call { call, .. } = run_with(Run::new(&plan, input()), advice).step(&plan, START).unwrap()
        else {
            panic!()
        };
        call.enforcement() == Enforcement::Schema
    };
    assert_eq!([20, 5].map(trial), [false, true]);
}

#[test]
fn a_policy_replaces_thresholds() {
    #[derive(Debug)]
    struct Strict;

    impl RetryPolicy for Strict {
        fn first(&self, _: &Capabilities) -> Sampling {
            Sampling::default()
        }

        fn decide(&self, _: &RetryContext<'_>) -> Decision {
            Decision::GiveUp
        }

        fn thresholds(&self, configured: Thresholds) -> Thresholds {
            Thresholds { failed_calls: 1, outage_seconds: 7, ..configured }
        }
    }

    let plan = Plan::new(contract(), vec![target("one"), target("two")]).with_policy(Strict).build().unwrap();
    let thresholds = plan.thresholds(&Thresholds { busy_seconds: 9, ..Thresholds::default() });
    assert_eq!((thresholds.failed_calls, thresholds.busy_seconds), (1, 9));
    let mut health = Health::new();
    health.record(&Evidence::new("one", "", START, broken()), &thresholds);
    assert_eq!([next(&mut health, &plan, after(6)).0, next(&mut health, &plan, after(7)).0], [1, 0]);
    // The section of the configuration has the same names.
    let stored: Thresholds = serde_json::from_str(r#"{"trial_calls": 3}"#).unwrap();
    assert_eq!(stored, Thresholds { trial_calls: 3, ..Thresholds::default() });
    assert!(serde_json::from_str::<Thresholds>(r#"{"trial_call": 3}"#).is_err());
}

#[test]
fn the_state_stays_small_and_keeps_what_is_in_force_longest() {
    let plan = pair();
    let mut health = ignored(&plan);
    for nth in 0..1_000 {
        record_for(&mut health, &format!("{nth}"), 0, after(1), right(false));
    }
    assert!(serde_json::to_string(&health).unwrap().len() < 256 * 300);
    assert!(!next(&mut health, &plan, after(1)).1, "schemas without observations are removed first");
    for nth in 0..1_000 {
        let evidence = Evidence::new(format!("{nth}"), "1", after(1), ran_away());
        health.record(&evidence, &Thresholds::default());
    }
    assert!(health.in_force(&Thresholds::default(), after(1)).len() <= 256);
    health.forget(Some("999"));
    assert!(health.in_force(&Thresholds::default(), after(1)).iter().all(|one| one.target != "999"));
    health.forget(None);
    assert_eq!(health, Health::new());
}

fn any_shown() -> impl Strategy<Value = Shown> {
    let kinds = [FaultKind::Unreachable, FaultKind::Timeout, FaultKind::Overloaded, FaultKind::RateLimited];
    let connection = prop::option::of(prop::sample::select(vec![Connection::Failed, Connection::Broken]));
    prop_oneof![
        4 => any::<bool>().prop_map(right),
        1 => Just(impossible()),
        1 => Just(prose()),
        1 => Just(Shown::InProse { reason: reason() }),
        1 => Just(Shown::Declined),
        1 => Just(ran_away()),
        1 => Just(Shown::BeyondBound),
        1 => Just(Shown::GaveUp),
        1 => Just(Shown::SchemaRefused { dialect: "bounding".to_owned(), reason: reason() }),
        1 => Just(Shown::SamplingRefused { parameter: SamplingParameter::Seed, reason: reason() }),
        2 => (prop::sample::select(kinds.to_vec()), connection).prop_map(|(kind, connection)| fault(kind, connection)),
    ]
}

/// Returns a strategy for evidence: the schema, the request, the seconds since the last one, and the result.
fn any_evidence() -> impl Strategy<Value = (u8, u64, u64, bool, Shown)> {
    (0_u8..4, 0_u64..12, 0_u64..400, any::<bool>(), any_shown())
}

/// Takes in evidence and asks for the advice of a run after each; the schema 0 is that of the plan.
fn replay(plan: &Plan, script: &[(u8, u64, u64, bool, Shown)]) -> (Health, u64) {
    let (mut health, mut seconds) = (Health::new(), 0);
    for (schema, request, pause, enforced, shown) in script {
        seconds += pause;
        let digest = if *schema == 0 { plan.schema_digest().to_owned() } else { schema.to_string() };
        let evidence = Evidence::new("one", digest, after(seconds), shown.clone()).with_request(*request);
        let evidence = if *enforced { evidence } else { evidence.without_enforcement() };
        health.record(&evidence, &Thresholds::default());
        next(&mut health, plan, after(seconds));
    }
    (health, seconds)
}

proptest! {
    #[test]
    fn every_observation_ends(script in prop::collection::vec(any_evidence(), 0..60)) {
        let plan = pair();
        let (mut health, seconds) = replay(&plan, &script);
        let later = after(seconds + 2 * 3600);
        for restriction in health.in_force(&Thresholds::default(), after(seconds)) {
            prop_assert!(restriction.until <= later, "{:?}", restriction);
            prop_assert!(restriction.count > 0 && restriction.since <= restriction.last);
        }
        prop_assert_eq!(health.in_force(&Thresholds::default(), later), vec![]);
        prop_assert_eq!(next(&mut health, &plan, later), USUAL);
    }

    #[test]
    fn one_bad_answer_per_schema_changes_nothing_for_other_requests(
        script in prop::collection::vec((0_u8..4, 0_u64..40, 0_u64..40, prop::bool::weighted(0.2), 0_usize..3), 0..80),
    ) {
        let plan = pair();
        let mut is_bad = [false; 4];
        let script: Vec<_> = script
            .into_iter()
            .map(|(schema, request, pause, bad, kind)| {
                let bad = bad && !std::mem::replace(&mut is_bad[usize::from(schema)], true);
                let shown = [impossible(), prose(), Shown::Declined][kind].clone();
                (schema, request, pause, true, if bad { shown } else { right(false) })
            })
            .collect();
        let (mut health, seconds) = replay(&plan, &script);
        prop_assert_eq!(health.in_force(&Thresholds::default(), after(seconds)), vec![]);
        prop_assert_eq!(next(&mut health, &plan, after(seconds)), USUAL);
    }

    #[test]
    fn a_stored_state_gives_the_same_advice(script in prop::collection::vec(any_evidence(), 0..40)) {
        let plan = pair();
        let (mut health, seconds) = replay(&plan, &script);
        let mut stored: Health = serde_json::from_str(&serde_json::to_string(&health).unwrap()).unwrap();
        prop_assert_eq!(&stored, &health);
        for pause in [0, 1, 30, 600] {
            let now = after(seconds + pause);
            prop_assert_eq!(next(&mut stored, &plan, now), next(&mut health, &plan, now));
        }
    }

    /// Another process that reads only the evidence that counts against a target draws the same conclusions.
    #[test]
    fn evidence_that_is_not_worth_storing_changes_nothing(script in prop::collection::vec(any_evidence(), 0..60)) {
        let plan = pair();
        let (mut whole, mut stored, mut seconds) = (Health::new(), Health::new(), 0);
        for (schema, request, pause, enforced, shown) in script {
            seconds += pause;
            let evidence = Evidence::new("one", schema.to_string(), after(seconds), shown).with_request(request);
            let evidence = if enforced { evidence } else { evidence.without_enforcement() };
            if whole.record(&evidence, &Thresholds::default()) {
                stored.record(&evidence, &Thresholds::default());
            }
            let in_force = |health: &Health| health.in_force(&Thresholds::default(), after(seconds));
            prop_assert_eq!(in_force(&whole), in_force(&stored));
        }
        prop_assert_eq!(next(&mut whole, &plan, after(seconds)), next(&mut stored, &plan, after(seconds)));
    }
}
