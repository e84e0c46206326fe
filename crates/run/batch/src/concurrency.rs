//! The number of calls that a target may have open, and the number that may start per second.
//!
//! Pure: the time is an argument. Both bounds grow while nothing is refused. A refusal lowers the bound that was reached: of the
//! open calls for an overload or a time-out, of the starts per second too for a rate limit. Where the target reports its rate limits,
//! calls start only as far as these reach. Latency alone lowers nothing: the
//! number of open calls only stops growing where twice as many calls take twice as long, because nothing is gained there.

mod reported;

use std::collections::VecDeque;
use std::time::Duration;

use reported::Reported;

/// The number of calls that may be open at the beginning.
const START: f64 = 8.0;

/// The shortest time in seconds after which a bound that fell is back at its old value: of the open calls, and of the starts per second.
const BACK_OPEN: f64 = 3.0;
const BACK_RATE: f64 = 10.0;

/// The share by which a bound falls: of the open calls, and of the starts per second.
const FALL_OPEN: f64 = 0.1;
const FALL_RATE: f64 = 0.05;

/// The time in seconds after which more open calls are tried again where they did not help.
const PROBE: f64 = 30.0;

/// The minimum number of starts per second.
const MIN_RATE: f64 = 0.1;

/// The increase of a logarithm of latencies from which on twice as many open calls gain nothing: ln 2 if all of it is waiting.
const GAINS_NOTHING: f64 = 0.45;

/// The number of refusals at the greatest number of open calls that show that a target counts open calls, and the time in seconds for
/// which that is believed.
const SAME: u32 = 4;
const COUNTS_OPEN: f64 = 300.0;

/// The reason why a target did not take a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Refusal {
    /// Too many calls (status 429), with the delay in seconds that the target requests.
    Rate(Option<f64>),
    /// An overload (503, 529) or a time-out.
    Load,
}

/// A bound that falls at refusals and grows again: slowly around the value of the last refusal, then faster and faster.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// The value at the last refusal.
    before: f64,
    /// The share of it by which it fell.
    share: f64,
    fell: f64,
    /// The time in seconds after which it is back.
    back: f64,
}

impl Bound {
    fn at(&self, now: f64) -> f64 {
        self.before * self.share.mul_add(((now - self.fell - self.back) / self.back).powi(3), 1.0)
    }
}

/// The latencies of the calls that started since a moment, as logarithms: their spread is that of ratios.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    began: f64,
    /// The bound of open calls at the beginning of the round.
    open: f64,
    count: f64,
    sum: f64,
    squares: f64,
}

impl Round {
    fn add(&mut self, latency: f64) {
        let log = latency.ln();
        self.count += 1.0;
        self.sum += log;
        self.squares = log.mul_add(log, self.squares);
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    /// The square of the standard error of the mean.
    fn error(&self) -> f64 {
        let variance = (self.squares / self.count.max(1.0) - self.mean() * self.mean()).max(0.0);
        variance / (self.count - 1.0).max(1.0)
    }

    /// Returns whether this round's calls took so much longer than the other's that more of them gain nothing.
    fn gains_nothing_over(&self, other: &Self) -> bool {
        let sure = 1.5 * (self.error() + other.error()).sqrt();
        self.mean() - other.mean() > GAINS_NOTHING + sure
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    /// The bound grows by one with each answer, until the first refusal.
    #[default]
    Starting,
    /// It fell, and grows with time.
    Fallen(Bound),
    /// More calls gained nothing; the time of the next try.
    Held(f64),
}

/// The bounds of one target.
#[derive(Debug, Default)]
pub(crate) struct Concurrency {
    max: f64,
    open_bound: f64,
    phase: Phase,
    rate: Option<Bound>,
    /// The starts that the rate allows now; negative where calls started that it did not allow.
    tokens: f64,
    filled: f64,
    blocked: f64,
    open: f64,
    /// The mean latency in seconds.
    latency: f64,
    round: Round,
    /// The round with which later ones are compared.
    reference: Option<Round>,
    /// The starts of the last three seconds of calls that were not refused.
    starts: VecDeque<f64>,
    /// The most calls that were open since the rate was lowered.
    most_open: f64,
    /// The number of refusals in a row that lowered the rate when the most calls were open.
    refused_at_most: u32,
    /// Until this time, a rate limit is taken as one of open calls.
    counts_open: f64,
    /// The limits that the target reports.
    pub(crate) reported: Reported,
}

impl Concurrency {
    /// Creates bounds that start at 8 open calls and any number per second; `max` calls may be open at most.
    pub(crate) fn new(max: u32) -> Self {
        let max = f64::from(max.max(1));
        let open = START.min(max);
        Self {
            max,
            open_bound: open,
            tokens: 1.0,
            round: Round { open, ..Round::default() },
            ..Self::default()
        }
    }

    /// Returns the number of calls that may be open, at least 1.
    pub(crate) fn limit(&self, now: f64) -> usize {
        let open = match &self.phase {
            Phase::Fallen(bound) => bound.at(now),
            Phase::Starting | Phase::Held(_) => self.open_bound,
        };
        open.clamp(1.0, self.max) as usize
    }

    /// Returns the number of further calls that may start now.
    pub(crate) fn room(&mut self, now: f64) -> usize {
        self.fill(now);
        let room = self.limit(now).saturating_sub(self.open as usize).min(self.reported.room(now));
        match self.rate {
            _ if now < self.blocked => 0,
            // A wait may end a rounding error too early.
            Some(_) => room.min((self.tokens + 1e-6).max(0.0) as usize),
            None => room,
        }
    }

    /// Returns the time after which the next call may start, as far as the calls per second are concerned.
    pub(crate) fn wait(&mut self, now: f64) -> Duration {
        self.fill(now);
        let by_rate = self.rate.map_or(0.0, |rate| (1.0 - self.tokens).max(0.0) / rate.at(now).max(MIN_RATE));
        let wait = by_rate.max(self.blocked - now).max(self.reported.wait(now));
        Duration::from_secs_f64(wait.clamp(0.0, 60.0))
    }

    /// Notes that a call starts, and returns its number.
    pub(crate) fn started(&mut self, now: f64) -> u64 {
        self.fill(now);
        self.open += 1.0;
        self.most_open = self.most_open.max(self.open);
        self.tokens -= 1.0;
        self.starts.push_back(now);
        while self.starts.front().is_some_and(|first| *first < now - 3.0) {
            self.starts.pop_front();
        }
        self.reported.started(now)
    }

    /// Notes that a call ended without saying anything about the target's limits.
    pub(crate) fn ended(&mut self) {
        self.open = (self.open - 1.0).max(0.0);
    }

    /// Notes that a call was answered, which started at `started`.
    pub(crate) fn answered(&mut self, now: f64, started: f64) {
        self.ended();
        let latency = (now - started).max(1e-4);
        self.latency = if self.latency == 0.0 { latency } else { self.latency.mul_add(0.95, latency * 0.05) };
        if started >= self.round.began {
            self.round.add(latency);
            if matches!(self.phase, Phase::Starting) {
                self.open_bound = (self.open_bound + 1.0).min(self.max);
            }
        }
        if self.round.count >= self.round.open.max(4.0) {
            self.end_round(now);
        }
    }

    /// Compares the round with the one before, and begins the next.
    fn end_round(&mut self, now: f64) {
        let round = self.round;
        match self.reference {
            Some(before) if round.open > 1.5 * before.open => {
                if round.gains_nothing_over(&before) {
                    // Back to the end of the round before, whose calls were as many and not slower.
                    self.open_bound = round.open;
                    self.phase = Phase::Held(now + PROBE.max(4.0 * self.latency));
                    self.reference = None;
                } else {
                    self.reference = Some(round);
                }
            }
            Some(before)
                if round.open >= before.open
                    && now - before.began < PROBE
                    && !matches!(self.phase, Phase::Held(_)) => {}
            _ => self.reference = Some(round),
        }
        if matches!(self.phase, Phase::Held(probe) if now >= probe) {
            self.phase = Phase::Starting;
        }
        self.round = Round { began: now, open: self.limit(now) as f64, ..Round::default() };
    }

    /// Notes that a call was refused, which started at `started`.
    pub(crate) fn refused(&mut self, now: f64, started: f64, refusal: Refusal) {
        let limit = self.limit(now) as f64;
        let is_reached = self.open >= 0.95 * limit;
        self.ended();
        if let Some(refused) = self.starts.iter().rposition(|start| *start == started) {
            self.starts.remove(refused);
        }
        if let Refusal::Rate(delay) = refusal {
            self.blocked = self.blocked.max(now + delay.filter(|delay| *delay >= 2.0).unwrap_or_default());
        }
        let is_rate = refusal != Refusal::Load && now >= self.counts_open;
        if is_rate && self.lower_rate(now, started) {
            // The rate is no limit of this target.
            (self.rate, self.counts_open, self.refused_at_most) = (None, now + COUNTS_OPEN, 0);
            self.lower_open(now, started, limit);
        } else if is_reached || !is_rate {
            self.lower_open(now, started, limit);
        }
    }

    fn lower_open(&mut self, now: f64, started: f64, limit: f64) {
        // The calls that started before the last fall met the same congestion.
        if matches!(self.phase, Phase::Fallen(last) if started <= last.fell) {
            return;
        }
        let before = self.open.clamp(1.0, limit);
        let back = BACK_OPEN.max(4.0 * self.latency);
        self.phase = Phase::Fallen(Bound { before, share: FALL_OPEN, fell: now, back });
        self.open_bound = before * (1.0 - FALL_OPEN);
        self.reference = None;
        self.round = Round { began: now, open: self.limit(now) as f64, ..Round::default() };
    }

    /// Lowers the starts per second. Returns whether the last refusals each came at the greatest number of open calls, so that the
    /// target counts these and not calls per second.
    fn lower_rate(&mut self, now: f64, started: f64) -> bool {
        if self.rate.is_some_and(|rate| started <= rate.fell) {
            return false;
        }
        // A target that counts open calls never has more than at a refusal.
        let is_most = self.open >= self.most_open - (0.05 * self.most_open).max(2.0);
        self.refused_at_most = if is_most { self.refused_at_most + 1 } else { 0 };
        self.most_open = self.open;
        if self.refused_at_most >= SAME {
            return true;
        }
        let taken = self.started_per_second(now);
        if taken == 0.0 {
            // Nothing shows yet how many it takes.
            self.lower_open(now, started, self.limit(now) as f64);
            return false;
        }
        let before = self.rate.map_or(taken, |rate| rate.at(now).min(taken * 1.05));
        // The first refusals come in a burst, whose starts say little about the rate.
        let is_known = self.rate.is_some_and(|rate| now - rate.fell > BACK_OPEN);
        let back = if is_known { BACK_RATE } else { BACK_OPEN }.max(4.0 * self.latency);
        self.fill(now);
        self.rate = Some(Bound { before: before.max(2.0 * MIN_RATE), share: FALL_RATE, fell: now, back });
        self.tokens = self.tokens.min(0.0);
        false
    }

    /// Returns the greatest number of starts within one of the last three seconds.
    fn started_per_second(&self, now: f64) -> f64 {
        let within = |from: f64| self.starts.iter().filter(|at| (from..from + 1.0).contains(*at)).count();
        (1..=3).map(|second| within(now - f64::from(second))).max().unwrap_or_default() as f64
    }

    /// Adds the starts that the rate has allowed since the last time.
    fn fill(&mut self, now: f64) {
        let passed = (now - self.filled).max(0.0);
        self.filled = self.filled.max(now);
        self.tokens = match self.rate {
            None => 1.0,
            Some(rate) => {
                let rate = rate.at(now).max(MIN_RATE);
                rate.mul_add(passed, self.tokens).min((0.1 * rate).max(1.0))
            }
        };
    }
}

#[cfg(test)]
mod simulation;
