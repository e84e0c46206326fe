//! The number and the rate of calls that a target takes, learned from its answers. Times are in seconds from any beginning.

use std::time::Duration;

/// The ratio between the numbers of open calls of two neighbouring levels.
const LEVEL: f64 = 1.5;

/// Two levels apart, the throughput is compared.
const APART: usize = 2;

/// The number of calls by which a level forgets its earlier ones.
const MEMORY: f64 = 400.0;

/// The number of calls that a level needs before it is compared.
const ENOUGH: f64 = 10.0;

/// The time after which a level without calls says nothing about the target any more; or four times its latency.
const STALE: f64 = 60.0;

/// The part of a proportional gain below which more calls gain nothing.
const NO_GAIN: f64 = 0.1;

/// The shortest latency that counts, because shorter ones come from this machine.
const SHORTEST: f64 = 0.02;

/// The first and the longest pause in growing after more calls gained nothing.
const HOLDS: (f64, f64) = (8.0, 30.0);

/// The longest pause of a target that is kept.
const LONGEST: f64 = 60.0;

/// The factor of the number and the rate after a refusal.
const BACK: f64 = 0.92;

/// The time by which a start may be late without slowing the next one down.
const BEHIND: f64 = 0.02;

/// The slowest rate of calls per second.
const SLOWEST: f64 = 0.5;

/// The time for which an answered call shows how many calls may be open.
const RECENT: f64 = 10.0;

/// The time over which calls are counted for their rate, and for the number of calls of a row.
const METERS: (f64, f64) = (2.0, 5.0);

/// The number of calls that a target may have open, and the rate at which rows may start.
///
/// - The number doubles with each round of calls until the target refuses one, or until more calls raise the throughput no further: then
///   it falls to the number that has the same throughput, and tries again after a pause. A longer latency alone never lowers it.
/// - A refusal lowers number and rate a little below what the target was accepting. Both grow by one percent per second at first,
///   and faster the longer no call is refused.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    number: f64,
    max: f64,
    open: u32,
    levels: Vec<Level>,
    held: Held,
    reduced: Option<f64>,
    /// The calls per second, once one was refused.
    rate: Option<f64>,
    next: f64,
    grown: f64,
    /// The most calls that were open when a call began that was answered lately, and when that was.
    most: (u32, f64),
    accepted: Meter,
    calls: Meter,
    rows: Meter,
}

/// A call that is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    at: f64,
    /// The number of open calls, this one included.
    open: u32,
}

/// The pause in growing after more calls gained nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    fell: f64,
    until: f64,
    last: f64,
}

/// The calls at about the same number of open ones. The throughput of a call is that number divided by its latency (Little's law); means of
/// logarithms hardly depend on outliers.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    calls: f64,
    throughput: f64,
    variance: f64,
    open: f64,
    at: f64,
}

impl Level {
    fn add(&mut self, now: f64, open: f64, latency: f64) {
        if self.calls > 0.0 && !self.is_fresh(now) {
            *self = Self::default();
        }
        self.calls = (self.calls + 1.0).min(MEMORY);
        let share = 1.0 / self.calls;
        let away = open - latency - self.throughput;
        self.throughput += share * away;
        self.variance = (1.0 - share) * share.mul_add(away * away, self.variance);
        self.open += share * (open - self.open);
        self.at = now;
    }

    /// Returns whether this level has no more throughput than a lower one.
    fn gains_nothing_over(&self, lower: &Self) -> bool {
        let gain = self.throughput - lower.throughput;
        // Twice the variance, because latencies of the same moment resemble each other.
        let error = (2.0 * (self.variance / self.calls + lower.variance / lower.calls)).sqrt();
        2.0f64.mul_add(error, gain) < NO_GAIN * (self.open - lower.open)
    }

    fn is_known(&self, now: f64) -> bool {
        self.calls >= ENOUGH && self.is_fresh(now)
    }

    fn is_fresh(&self, now: f64) -> bool {
        now - self.at <= STALE.max(4.0 * (self.open - self.throughput).exp())
    }
}

/// Counts events of the last seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    count: f64,
    at: f64,
    since: Option<f64>,
}

impl Meter {
    fn add(&mut self, now: f64, memory: f64) {
        self.count = self.count.mul_add((-(now - self.at) / memory).exp(), 1.0);
        self.at = now;
        self.since.get_or_insert(now);
    }

    fn per_second(&self, now: f64, memory: f64) -> f64 {
        let Some(since) = self.since else { return 0.0 };
        let time = memory * -(-(now - since).max(0.1) / memory).exp_m1();
        self.count * (-(now - self.at) / memory).exp() / time
    }
}

impl Limit {
    /// Creates a limit that starts at `start` calls and stays between 1 and `max`.
    pub(crate) fn new(start: u32, max: u32) -> Self {
        let max = f64::from(max.max(1));
        Self {
            number: f64::from(start).clamp(1.0, max),
            max,
            open: 0,
            levels: Vec::new(),
            held: Held { fell: -1.0, ..Held::default() },
            reduced: None,
            rate: None,
            next: 0.0,
            grown: 0.0,
            most: (0, 0.0),
            accepted: Meter::default(),
            calls: Meter::default(),
            rows: Meter::default(),
        }
    }

    /// Returns the number of calls that may be open at the same time, at least 1.
    pub(crate) fn number(&self) -> usize {
        self.number.round() as usize
    }

    /// Returns the time until another row may start.
    pub(crate) fn wait(&self, now: f64) -> Duration {
        Duration::from_secs_f64((self.next - now).max(0.0))
    }

    /// Notes that a row starts.
    pub(crate) fn row_started(&mut self, now: f64) {
        self.rows.add(now, METERS.1);
        if let Some(rate) = self.rate {
            let (calls, rows) = (self.calls.per_second(now, METERS.1), self.rows.per_second(now, METERS.1));
            let calls_per_row = if calls > 0.0 { (calls / rows).clamp(0.1, 10.0) } else { 1.0 };
            self.next = self.next.max(now - BEHIND) + calls_per_row / rate;
        }
    }

    /// Notes that a call begins.
    pub(crate) fn called(&mut self, now: f64) -> Begun {
        self.open += 1;
        self.calls.add(now, METERS.1);
        self.accepted.add(now, METERS.0);
        Begun { at: now, open: self.open }
    }

    /// Notes that a call ended without saying anything about the target.
    pub(crate) fn ended(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Notes that a call was answered.
    pub(crate) fn answered(&mut self, now: f64, call: Begun) {
        let present = f64::from(self.open);
        self.ended();
        if call.open >= self.most.0 || now - self.most.1 > RECENT {
            self.most = (call.open, now);
        }
        let open = f64::from(call.open);
        let nth = (open.ln() / LEVEL.ln()) as usize;
        if self.levels.len() <= nth {
            self.levels.resize(nth + 1, Level::default());
        }
        // Calls that began above the number to which it fell wait behind each other.
        if let Some(level) = self.levels.get_mut(nth).filter(|_| call.at > self.held.fell) {
            level.add(now, open.ln(), (now - call.at).max(SHORTEST).ln());
        }
        let elapsed = (now - self.grown).clamp(0.0, 1.0);
        self.grown = now;
        let gain = self.growth(now) * elapsed;
        if let Some(rate) = &mut self.rate {
            // More than twice what is used is not tried.
            if *rate < 2.0 * self.accepted.per_second(now, METERS.0) {
                *rate *= gain.exp();
            }
        }
        if self.falls(now, nth) || now < self.held.until || 2.0 * present < self.number {
            return;
        }
        let step = if self.reduced.is_none() { 1.0 } else { (gain * self.number).max(0.1 * elapsed) };
        self.number = (self.number + step).min(self.max);
    }

    /// Lowers the number if the level of a call has no more throughput than a lower level.
    fn falls(&mut self, now: f64, nth: usize) -> bool {
        let lower = nth.checked_sub(APART).and_then(|lower| self.levels.get(lower));
        let (Some(level), Some(lower)) = (self.levels.get(nth), lower) else { return false };
        let number = lower.open.exp();
        if number >= self.number
            || !(level.is_known(now) && lower.is_known(now) && level.gains_nothing_over(lower))
        {
            return false;
        }
        self.number = number.max(1.0);
        let pause = if now - self.held.until > HOLDS.1 {
            HOLDS.0
        } else {
            (2.0 * self.held.last).clamp(HOLDS.0, HOLDS.1)
        };
        self.held = Held { fell: now, until: now + pause, last: pause };
        // Everything else is measured again, so that a target that became slower is not compared with what it was.
        let kept = *lower;
        self.levels.fill(Level::default());
        if let Some(level) = self.levels.get_mut(nth - APART) {
            *level = kept;
        }
        true
    }

    /// Returns the growth per second.
    fn growth(&self, now: f64) -> f64 {
        let since = self.reduced.map_or(0.0, |reduced| now - reduced);
        0.01 * (since / 7.0).mul_add(since / 7.0, 1.0)
    }

    /// Notes that a call was refused because there were too many, or had no answer in time. `pause` is the time that the target asks for.
    pub(crate) fn refused(&mut self, now: f64, call: Begun, pause: Duration) {
        self.ended();
        self.accepted.count -= (-(self.accepted.at - call.at) / METERS.0).exp();
        self.accepted.count = self.accepted.count.max(0.0);
        if pause > Duration::from_secs(1) {
            self.next = self.next.max(now + pause.as_secs_f64().min(LONGEST));
        }
        // Calls that began before the last reduction say nothing about the present number.
        if self.reduced.is_some_and(|reduced| call.at <= reduced) {
            return;
        }
        let accepted = self.accepted.per_second(now, METERS.0);
        // Less than half of the rate is no chance.
        let rate = self.rate.filter(|rate| accepted > 0.5 * rate).unwrap_or(accepted);
        self.rate = Some((rate * BACK).max(SLOWEST));
        // Where calls were answered with more open ones, the rate was too high, and not the number.
        if call.open > self.most.0 || now - self.most.1 > RECENT {
            self.number = (self.number.min(f64::from(self.open)) * BACK).max(1.0);
        }
        self.reduced = Some(now);
        self.grown = now;
    }
}

#[cfg(test)]
mod tests;
