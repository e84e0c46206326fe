//! The limit plays against targets in simulated time, beside fixed numbers of open calls.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::*;

/// Random numbers that are the same in each run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.next()).ln()).sqrt();
        median * (sigma * radius * (std::f64::consts::TAU * self.next()).cos()).exp()
    }
}

/// A property at a time.
type At = fn(f64) -> f64;

/// The latency of a call that begins at a time.
type Latency = fn(&mut Chance, f64) -> f64;

/// A target, whose properties may change with the time.
#[derive(Clone, Copy)]
struct Target {
    latency: Latency,
    /// The calls per second beyond which calls are refused, and the number that may come at once.
    rate: Option<(At, f64)>,
    /// The open calls beyond which calls are refused.
    most: f64,
    /// The open calls beyond which calls wait.
    slots: At,
}

/// A target without limits.
const fn free(latency: Latency) -> Target {
    Target { latency, rate: None, most: f64::MAX, slots: |_| f64::MAX }
}

const fn usual() -> Target {
    free(|chance, _| chance.lognormal(0.5, 0.5))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Answered(u64, u32),
    Refused(u64, u32),
    Again,
    Wake,
}

fn micro(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}

fn begun(at: u64, open: u32) -> Begun {
    Begun { at: at as f64 / 1e6, open }
}

struct Play {
    target: Target,
    chance: Chance,
    limit: Limit,
    events: BinaryHeap<Reverse<(u64, What)>>,
    waiting: VecDeque<Begun>,
    serving: f64,
    tokens: f64,
    called: f64,
    answers: Vec<f64>,
    calls: usize,
    refused: usize,
    /// The number after each answer.
    numbers: Vec<usize>,
}

impl Play {
    /// Plays rows of one call each until the time or the rows are over. A refused call is repeated after one to two seconds.
    fn of(target: Target, fixed: Option<usize>, until: f64, rows: usize) -> Self {
        let mut play = Self {
            target,
            chance: Chance(7),
            limit: Limit::new(8, 512),
            events: BinaryHeap::from([Reverse((0, What::Wake))]),
            waiting: VecDeque::new(),
            serving: 0.0,
            tokens: target.rate.map_or(0.0, |(_, burst)| burst),
            called: 0.0,
            answers: Vec::new(),
            calls: 0,
            refused: 0,
            numbers: Vec::new(),
        };
        let (mut open, mut started, mut woken) = (0, 0, 0);
        while let Some(Reverse((time, what))) = play.events.pop() {
            let now = time as f64 / 1e6;
            if now > until {
                break;
            }
            match what {
                What::Answered(at, calls) => {
                    open -= 1;
                    play.serving -= 1.0;
                    play.limit.answered(now, begun(at, calls));
                    play.answers.push(now);
                    play.numbers.push(play.limit.number());
                }
                What::Refused(at, calls) => {
                    play.refused += 1;
                    play.limit.refused(now, begun(at, calls), Duration::ZERO);
                    let again = now + 1.0 + play.chance.next();
                    play.events.push(Reverse((micro(again), What::Again)));
                }
                What::Again => play.call(now),
                What::Wake => {}
            }
            while started < rows && open < fixed.unwrap_or_else(|| play.limit.number()) {
                let wait = play.limit.wait(now);
                if fixed.is_none() && !wait.is_zero() {
                    if woken <= time {
                        woken = time + wait.as_micros() as u64 + 1;
                        play.events.push(Reverse((woken, What::Wake)));
                    }
                    break;
                }
                play.limit.row_started(now);
                started += 1;
                open += 1;
                play.call(now);
            }
            play.serve(now);
        }
        play
    }

    fn call(&mut self, now: f64) {
        self.calls += 1;
        let call = self.limit.called(now);
        let mut is_refused = self.serving >= self.target.most;
        if let Some((rate, burst)) = self.target.rate {
            self.tokens = (self.tokens + (now - self.called) * rate(now)).min(burst);
            self.called = now;
            is_refused |= self.tokens < 1.0;
        }
        if is_refused {
            self.events.push(Reverse((micro(now + 0.05), What::Refused(micro(call.at), call.open))));
            return;
        }
        self.tokens -= 1.0;
        self.waiting.push_back(call);
        self.serve(now);
    }

    fn serve(&mut self, now: f64) {
        while self.serving < (self.target.slots)(now) {
            let Some(call) = self.waiting.pop_front() else { break };
            self.serving += 1.0;
            let end = now + (self.target.latency)(&mut self.chance, now);
            self.events.push(Reverse((micro(end), What::Answered(micro(call.at), call.open))));
        }
    }

    /// Returns the answers per second between two times.
    fn rate(&self, from: f64, to: f64) -> f64 {
        self.answers.iter().filter(|at| (from..to).contains(*at)).count() as f64 / (to - from)
    }

    fn refused_share(&self) -> f64 {
        self.refused as f64 / self.calls as f64
    }
}

/// The day and the night of a target last 150 seconds each.
fn is_day(time: f64) -> bool {
    ((time / 150.0) as u64).is_multiple_of(2)
}

const WHOLE: &[(f64, f64)] = &[(30.0, 630.0)];
const PHASES: &[(f64, f64)] = &[(30.0, 150.0), (150.0, 300.0), (300.0, 450.0), (450.0, 600.0)];

/// Asserts that each phase has at least four fifths of the throughput of the best fixed number up to 512.
fn finds(name: &str, target: Target, phases: &[(f64, f64)]) -> Play {
    let found = Play::of(target, None, 630.0, usize::MAX);
    let fixed = [8, 32, 128, 512].map(|open| Play::of(target, Some(open), 630.0, usize::MAX));
    for (from, to) in phases {
        let best = fixed.iter().map(|play| play.rate(*from, *to)).fold(0.0, f64::max);
        let rate = found.rate(*from, *to);
        assert!(best <= 1.25 * rate, "{name}, {from} s to {to} s: {rate:.1} instead of {best:.1} answers/s");
    }
    found
}

#[test]
fn any_spread_of_latencies_is_used_in_full() {
    let targets: [(&str, Latency); 5] = [
        ("sigma 0.3", |chance, _| chance.lognormal(2.0, 0.3)),
        ("sigma 1.0", |chance, _| chance.lognormal(2.0, 1.0)),
        ("sigma 1.5", |chance, _| chance.lognormal(2.0, 1.5)),
        ("two modes", |chance, _| {
            let median = if chance.next() < 0.9 { 0.6 } else { 12.0 };
            chance.lognormal(median, 0.2)
        }),
        ("day and night", |chance, time| chance.lognormal(if is_day(time) { 1.0 } else { 4.0 }, 0.5)),
    ];
    for (name, latency) in targets {
        let phases = if name == "day and night" { PHASES } else { WHOLE };
        assert_eq!(finds(name, free(latency), phases).limit.number(), 512, "{name}");
    }
}

#[test]
fn three_thousand_rows_take_as_long_as_with_a_good_fixed_number() {
    let target = free(|chance, _| chance.lognormal(0.3, 0.5));
    let [found, fixed] =
        [None, Some(256)].map(|fixed| Play::of(target, fixed, 1e4, 3000).answers.last().copied().unwrap());
    assert!(found <= 1.5 * fixed, "{found} s instead of {fixed} s");
}

#[test]
fn a_hard_limit_of_fifty_per_second_is_used_with_few_refusals() {
    for (burst, median) in [(5.0, 0.3), (50.0, 0.3), (10.0, 3.0)] {
        let latency: Latency = match median {
            3.0 => |chance, _| chance.lognormal(3.0, 0.5),
            _ => |chance, _| chance.lognormal(0.3, 0.5),
        };
        let target = Target { rate: Some((|_| 50.0, burst)), ..free(latency) };
        let play = Play::of(target, None, 630.0, usize::MAX);
        let (rate, refused) = (play.rate(30.0, 630.0), play.refused_share());
        assert!(
            rate >= 45.0 && refused <= 0.02,
            "burst {burst}, {median} s: {rate:.1}/s, {refused:.3} refused"
        );
    }
}

#[test]
fn limits_that_change_are_followed() {
    let rates = Target { rate: Some((|time| if is_day(time) { 20.0 } else { 100.0 }, 10.0)), ..usual() };
    finds("rates by day and night", rates, PHASES);
    let slots = Target { slots: |time| if is_day(time) { 16.0 } else { 128.0 }, ..usual() };
    finds("slots by day and night", slots, PHASES);
    let slow = Target { rate: Some((|time| (5.0 + time / 60.0 * 95.0).min(100.0), 10.0)), ..usual() };
    finds("a rate that grows for 60 s", slow, WHOLE);
    let slow = Target { slots: |time| (8.0 + time / 60.0 * 120.0).min(128.0), ..usual() };
    finds("slots that grow for 60 s", slow, WHOLE);
}

#[test]
fn a_number_of_open_calls_is_found() {
    for most in [5.0, 64.0] {
        let play = finds(&format!("at most {most}"), Target { most, ..usual() }, WHOLE);
        assert!(play.refused_share() <= 0.04, "{most}: {}", play.refused_share());
    }
}

#[test]
fn more_calls_without_more_throughput_are_taken_back() {
    // Beyond 10 calls at a time, each further call delays all.
    let target = Target { slots: |_| 10.0, ..usual() };
    let play = finds("ten slots", target, WHOLE);
    let mean = play.numbers.iter().sum::<usize>() / play.numbers.len();
    assert!((10..=200).contains(&mean), "{mean} open calls");
}

#[test]
fn a_pause_of_the_target_is_kept_up_to_a_minute() {
    for (asked, kept) in [(0.5, 0.0), (20.0, 20.0), (900.0, 60.0)] {
        let mut limit = Limit::new(8, 64);
        let call = limit.called(0.0);
        limit.refused(1.0, call, Duration::from_secs_f64(asked));
        assert!((limit.wait(1.0).as_secs_f64() - kept).abs() < 1e-6, "{asked}: {:?}", limit.wait(1.0));
    }
}

#[test]
fn the_number_stays_between_one_and_the_maximum() {
    let mut limit = Limit::new(0, 3);
    for second in 0..100 {
        let call = limit.called(f64::from(second));
        limit.refused(f64::from(second) + 0.1, call, Duration::ZERO);
    }
    assert_eq!(limit.number(), 1);
    for tenth in 1000..20_000 {
        let calls: Vec<_> = (0..limit.number()).map(|_| limit.called(f64::from(tenth) / 10.0)).collect();
        calls.into_iter().for_each(|call| limit.answered(f64::from(tenth) / 10.0 + 0.05, call));
    }
    assert_eq!(limit.number(), 3);
}
