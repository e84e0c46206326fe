//! Targets in simulated time: rows call a target whose latency, capacity and rate are given, and repeat refused calls after 2, 4
//! and 8 seconds, as a run does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::f64::consts::TAU;
use std::time::Duration;

use formwork_core::{Counted, RateLimit, Usage};
use formwork_testkit::each;

use super::{Concurrency, Refusal};

/// A generator of numbers (xorshift), so that a simulation depends on its seed only.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let normal = (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }
}

/// A number at a time.
type OverTime = fn(f64) -> f64;

/// A target: the functions take the time.
struct Target {
    latency: fn(&mut Random, f64) -> f64,
    /// The calls that it works on at a time; others are refused (`Some(refusal)`) or wait (`None`).
    capacity: Option<(OverTime, Option<Refusal>)>,
    /// The calls within any second that it takes.
    rate: Option<OverTime>,
    /// The limits that it reports: what they count, the size, and what is added per second.
    limits: &'static [(Counted, f64, f64)],
}

/// The number of open rows, fixed or found.
enum Rows {
    Fixed(usize),
    Found,
}

#[derive(Debug, Default)]
struct Result {
    calls: usize,
    refused: usize,
    /// The rows that were answered, by second.
    answered: Vec<usize>,
    /// The time of the last answer.
    end: f64,
}

impl Result {
    fn between(&self, from: usize, to: usize) -> f64 {
        self.answered.iter().take(to).skip(from).sum::<usize>() as f64 / (to - from) as f64
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A call that started at this time (in nanoseconds) ends.
    Answer {
        started: u64,
        call: Call,
    },
    Refuse {
        started: u64,
        retry: u32,
        by_rate: bool,
    },
    /// A row repeats a refused call.
    Retry(u32),
    /// The bounds may allow another row.
    Look,
}

/// The number of a call, its tokens, and what was left of each limit.
type Call = (u64, u64, Vec<u64>);

/// The mean tokens of a call.
const TOKENS: f64 = 1400.0;

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Returns a limit as the headers of a response report it.
fn reported(((counted, size, per_second), left): (&(Counted, f64, f64), u64)) -> RateLimit {
    let full_in = Duration::from_secs_f64((size - left as f64) / per_second);
    RateLimit::new(*counted, left, full_in).with_limit(Some(*size as u64))
}

/// Plays `rows` rows, or as many as there is time for.
fn play(target: &Target, mode: &Rows, rows: usize, seconds: f64, seed: u64) -> Result {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut bounds = Concurrency::new(512);
    let mut result = Result { answered: vec![0; seconds as usize + 1], ..Result::default() };
    let mut events = BinaryHeap::from([Reverse((0, Event::Look))]);
    let (mut open_rows, mut started_rows, mut done) = (0, 0, 0);
    let mut look = 0;
    // The ends of the calls that the target works on, and its starts of the last second.
    let mut busy: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut lately: VecDeque<f64> = VecDeque::new();
    let mut left: Vec<f64> = target.limits.iter().map(|(_, size, _)| *size).collect();
    let mut filled = 0.0;
    while let Some(Reverse((at, event))) = events.pop() {
        let now = at as f64 / 1e9;
        if now >= seconds || done == rows {
            break;
        }
        let mut calls: Vec<u32> = Vec::new();
        match event {
            Event::Look if at != look => continue,
            Event::Look => look = u64::MAX,
            Event::Answer { started, call: (number, tokens, left) } => {
                let started = started as f64 / 1e9;
                let limits: Vec<_> = target.limits.iter().zip(left).map(reported).collect();
                bounds.reported.answered(now, number, started, &Usage::new(tokens, 0), &limits);
                bounds.answered(now, started);
                (open_rows, done, result.end) = (open_rows - 1, done + 1, now);
                result.answered[now as usize] += 1;
            }
            Event::Refuse { started, retry, by_rate } => {
                let refusal = if by_rate { Refusal::Rate(None) } else { Refusal::Load };
                bounds.refused(now, started as f64 / 1e9, refusal);
                let wait = f64::from(2_u32 << retry.min(2));
                events.push(Reverse((at + nanoseconds(wait), Event::Retry(retry + 1))));
            }
            Event::Retry(retry) => calls.push(retry),
        }
        let room = match mode {
            Rows::Fixed(rows) => rows.saturating_sub(open_rows),
            Rows::Found => bounds.room(now).min(512_usize.saturating_sub(open_rows)),
        };
        let room = room.min(rows - started_rows);
        (open_rows, started_rows) = (open_rows + room, started_rows + room);
        calls.extend(std::iter::repeat_n(0, room));
        for retry in calls {
            result.calls += 1;
            let number = bounds.started(now);
            for (left, (_, size, per_second)) in left.iter_mut().zip(target.limits) {
                *left = per_second.mul_add(now - filled, *left).min(*size);
            }
            filled = now;
            let tokens = random.lognormal(TOKENS / 0.32_f64.exp(), 0.8).ceil();
            let costs = target.limits.iter().map(|(counted, ..)| match counted {
                Counted::Requests => 1.0,
                _ => tokens,
            });
            let is_over_limit = left.iter().zip(costs.clone()).any(|(left, cost)| *left < cost);
            while busy.peek().is_some_and(|Reverse(end)| *end <= at) {
                busy.pop();
            }
            while lately.front().is_some_and(|start| *start < now - 1.0) {
                lately.pop_front();
            }
            let latency = nanoseconds((target.latency)(&mut random, now));
            let is_over_rate = target.rate.is_some_and(|rate| lately.len() as f64 >= rate(now));
            let (refused, mut end) = match target.capacity {
                _ if is_over_rate || is_over_limit => (Some(true), 0),
                Some((capacity, refusal)) if busy.len() as f64 >= capacity(now).max(1.0) => match refusal {
                    Some(refusal) => (Some(refusal != Refusal::Load), 0),
                    // It waits for the call that ends first.
                    None => (None, busy.pop().map_or(at, |Reverse(end)| end) + latency),
                },
                _ => (None, at + latency),
            };
            if let Some(by_rate) = refused {
                result.refused += 1;
                let refuse = Event::Refuse { started: at, retry, by_rate };
                events.push(Reverse((at + nanoseconds(0.02), refuse)));
                continue;
            }
            end = end.max(at + 1);
            lately.push_back(now);
            busy.push(Reverse(end));
            left.iter_mut().zip(costs).for_each(|(left, cost)| *left -= cost);
            let left = left.iter().map(|left| *left as u64).collect();
            let answer = Event::Answer { started: at, call: (number, tokens as u64, left) };
            events.push(Reverse((end, answer)));
        }
        let wait = bounds.wait(now).as_secs_f64();
        let next = at + nanoseconds(if wait > 0.0 { wait.max(1e-4) } else { 0.25 });
        if next < look {
            look = next;
            events.push(Reverse((next, Event::Look)));
        }
    }
    result
}

/// Returns the length of a simulation: 150 s, or the seconds of the long form: `FORMWORK_SIMULATED_SECONDS=630 cargo test --release -p
/// formwork-batch --lib concurrency -- --nocapture`.
fn length() -> f64 {
    std::env::var("FORMWORK_SIMULATED_SECONDS").map_or(150.0, |seconds| seconds.parse().unwrap())
}

/// Returns the rows per second after the first 30 seconds with bounds that are found, the best of fixed numbers of rows, and the
/// share of refused calls.
fn beside_fixed(target: &Target, seed: u64, from: usize, to: usize) -> (f64, f64, f64) {
    let found = play(target, &Rows::Found, usize::MAX, length(), seed);
    let fixed = [4, 16, 32, 64, 128, 256, 512];
    let fixed =
        fixed.map(|rows| play(target, &Rows::Fixed(rows), usize::MAX, length(), seed).between(from, to));
    (
        found.between(from, to),
        fixed.into_iter().fold(0.0, f64::max),
        found.refused as f64 / found.calls as f64,
    )
}

fn usual(random: &mut Random, _: f64) -> f64 {
    random.lognormal(0.3, 0.5)
}

const fn plain(latency: fn(&mut Random, f64) -> f64) -> Target {
    Target { latency, capacity: None, rate: None, limits: &[] }
}

/// A target that works on a number of calls at a time; the others are refused, or wait.
const fn capacity(capacity: fn(f64) -> f64, refusal: Option<Refusal>) -> Target {
    Target { latency: usual, capacity: Some((capacity, refusal)), rate: None, limits: &[] }
}

const WAITS: Option<Refusal> = None;
const OVERLOAD: Option<Refusal> = Some(Refusal::Load);
const RATE: Option<Refusal> = Some(Refusal::Rate(None));

#[test]
fn the_bounds_are_found_whatever_the_latencies_and_limits() {
    let bimodal = |random: &mut Random, _| {
        let median = if random.unit() < 0.9 { 0.3 } else { 4.0 };
        random.lognormal(median, 0.2)
    };
    let grows = |now: f64| (now / 60.0).min(1.0).mul_add(95.0, 5.0);
    let targets = [
        ("lognormal, sigma 0.3", plain(|random, _| random.lognormal(0.3, 0.3))),
        ("lognormal, sigma 0.5", plain(usual)),
        ("lognormal, sigma 1.0", plain(|random, _| random.lognormal(0.3, 1.0))),
        ("lognormal, sigma 1.5", plain(|random, _| random.lognormal(0.3, 1.5))),
        ("bimodal", plain(bimodal)),
        ("20 at a time, status 503", capacity(|_| 20.0, OVERLOAD)),
        ("20 at a time, status 429", capacity(|_| 20.0, RATE)),
        ("20 at a time, others wait", capacity(|_| 20.0, WAITS)),
        ("1 at a time, others wait", capacity(|_| 1.0, WAITS)),
        ("slow start, status 503", capacity(grows, OVERLOAD)),
        ("slow start, status 429", capacity(grows, RATE)),
        ("slow start, others wait", capacity(grows, WAITS)),
    ];
    each(targets, |(name, target)| {
        for seed in [1, 7] {
            let (found, best, refused) = beside_fixed(&target, seed, 30, length() as usize);
            println!("{name}, seed {seed}: {found:.1} of {best:.1} rows/s, {:.2} % refused", 100.0 * refused);
            assert!(
                found >= best / 1.25 && refused <= 0.02,
                "{name}, seed {seed}: {found} of {best}, {refused}"
            );
        }
    });
}

#[test]
fn a_target_whose_capacity_rises_and_falls_is_followed() {
    let diurnal: fn(f64) -> f64 = |now| (TAU * now / 100.0).sin().mul_add(30.0, 40.0);
    for (name, refusal) in [("503", OVERLOAD), ("429", RATE), ("waits", WAITS)] {
        for from in (30..length() as usize).step_by(30) {
            let (found, best, _) = beside_fixed(&capacity(diurnal, refusal), 1, from, from + 30);
            println!("{name} from {from} s: {found:.1} of {best:.1} rows/s");
            assert!(found >= best / 1.25, "{name} from {from} s: {found} of {best}");
        }
    }
}

#[test]
fn a_limit_of_calls_per_second_is_used_and_not_exceeded() {
    let target = Target { rate: Some(|_| 50.0), ..plain(usual) };
    for seed in 1..6 {
        let found = play(&target, &Rows::Found, usize::MAX, length(), seed);
        let (rows, refused) =
            (found.between(30, length() as usize), found.refused as f64 / found.calls as f64);
        println!("{rows:.1} rows/s, {:.2} % refused", 100.0 * refused);
        assert!(rows >= 45.0 && refused <= 0.02, "{rows} rows/s, {refused} refused");
    }
}

#[test]
fn limits_of_requests_and_tokens_that_the_target_reports_are_used_and_not_exceeded() {
    use Counted::{InputTokens, Requests, Tokens};
    for (name, limits, slow) in [
        ("600 requests a minute", &[(Requests, 600.0, 10.0)][..], false),
        ("60 requests a minute", &[(Requests, 60.0, 1.0)], false),
        ("3,000 requests a minute, slow", &[(Requests, 3_000.0, 50.0)], true),
        ("a million tokens a minute", &[(Tokens, 1e6, 1e6 / 60.0)], false),
        ("a million tokens a minute, slow", &[(Tokens, 1e6, 1e6 / 60.0)], true),
        ("tokens before requests", &[(Requests, 5_000.0, 80.0), (InputTokens, 4e5, 4e5 / 60.0)], false),
        ("requests before tokens", &[(Requests, 300.0, 5.0), (InputTokens, 4e6, 4e6 / 60.0)], false),
    ] {
        let latency = if slow { |random: &mut Random, _| random.lognormal(2.0, 0.5) } else { usual };
        let target = Target { limits, ..plain(latency) };
        for seed in [1, 7] {
            let (found, best, refused) = beside_fixed(&target, seed, 30, length() as usize);
            // Fixed numbers of rows take short calls while long ones are refused again and again.
            let steady = limits.iter().map(|(counted, _, per_second)| match counted {
                Requests => *per_second,
                _ => per_second / TOKENS,
            });
            let best = steady.fold(best, f64::min);
            println!("{name}, seed {seed}: {found:.1} of {best:.1} rows/s, {:.2} % refused", 100.0 * refused);
            assert!(
                found >= best / 1.25 && refused <= 0.005,
                "{name}, seed {seed}: {found} of {best}, {refused}"
            );
        }
    }
}

#[test]
fn rows_wait_for_a_reported_limit_of_which_nothing_is_left_and_not_for_a_day() {
    let limit = |left, seconds| RateLimit::new(Counted::Requests, left, Duration::from_secs(seconds));
    for (limits, room, wait) in [
        (vec![], 7, 0),
        (vec![limit(1, 50)], 7, 0),
        (vec![limit(0, 50)], 0, 40),
        (vec![limit(0, 3_600)], 7, 0),
        // Of 100 calls, 5 are left to others; one call started later.
        (vec![limit(10, 9).with_limit(Some(100))], 7, 0),
        (vec![limit(6, 94).with_limit(Some(100))], 7, 0),
        (vec![limit(5, 500).with_limit(Some(100))], 0, 0),
        (vec![limit(5, 7_200).with_limit(Some(100))], 7, 0),
        (vec![limit(100, 0).with_limit(Some(100))], 7, 0),
        // The longest time counts.
        (vec![limit(0, 86_400), limit(0, 50)], 7, 0),
    ] {
        let mut bounds = Concurrency::new(8);
        let first = bounds.started(0.0);
        bounds.started(0.0);
        bounds.reported.answered(10.0, first, 0.0, &Usage::new(1000, 100), &limits);
        bounds.answered(10.0, 0.0);
        assert_eq!((bounds.room(10.0), bounds.wait(10.0).as_secs()), (room, wait), "{limits:?}");
    }
    // Tokens from a cache count towards a limit of all tokens alone: three calls of 1,100 tokens, or of 100.
    for (counted, left) in [(Counted::Tokens, 9_400), (Counted::InputTokens, 5_400)] {
        let mut bounds = Concurrency::new(8);
        let first = bounds.started(0.0);
        bounds.started(0.0);
        let mut usage = Usage::new(1_000, 100);
        usage.cached_tokens = 900;
        let limit = RateLimit::new(counted, left, Duration::from_secs(600)).with_limit(Some(100_000));
        bounds.reported.answered(0.0, first, 0.0, &usage, &[limit]);
        assert_eq!(bounds.room(0.0), 3, "{counted:?}");
    }
    // The response to an older call says nothing new.
    let mut bounds = Concurrency::new(8);
    let [old, new] = [0.0, 1.0].map(|at| bounds.started(at));
    bounds.reported.answered(2.0, new, 1.0, &Usage::default(), &[limit(90, 6).with_limit(Some(100))]);
    bounds.reported.answered(2.0, old, 0.0, &Usage::default(), &[limit(0, 50).with_limit(Some(100))]);
    assert_eq!(bounds.room(2.0), 6);
}

#[test]
fn three_thousand_rows_take_little_longer_than_with_256_at_a_time() {
    for seed in 1..4 {
        let [found, fixed] =
            [Rows::Found, Rows::Fixed(256)].map(|rows| play(&plain(usual), &rows, 3_000, length(), seed).end);
        println!("{found:.2} s beside {fixed:.2} s");
        assert!(found <= 1.5 * fixed, "{found} s beside {fixed} s");
    }
}

#[test]
fn calls_of_a_target_that_says_when_wait_until_then() {
    let mut bounds = Concurrency::new(64);
    assert_eq!((bounds.limit(0.0), bounds.room(0.0)), (8, 8));
    for _ in 0..4 {
        bounds.started(0.0);
    }
    (0..3).for_each(|_| bounds.answered(0.2, 0.0));
    bounds.refused(0.3, 0.0, Refusal::Rate(Some(20.0)));
    assert_eq!((bounds.room(20.0), bounds.wait(10.3)), (0, Duration::from_secs(10)));
    assert!(bounds.room(20.4) >= 1);
    let mut dead = Concurrency::new(64);
    for n in 0..1000 {
        dead.started(f64::from(n));
        dead.refused(f64::from(n) + 0.5, f64::from(n), Refusal::Load);
        assert_eq!(dead.open, 0.0);
    }
    assert_eq!(dead.limit(1000.0), 1);
}
