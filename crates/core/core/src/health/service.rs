//! Whether a target is in service.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Thresholds;
use super::seen::Seen;
use super::thresholds::seconds;
use crate::{Connection, Fault, FaultKind, Time};

/// The last calls of a target, and its outage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Service {
    /// Whether each of the last calls failed, the newest last.
    calls: VecDeque<bool>,
    outage: Option<Outage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Outage {
    seen: Seen,
    until: Time,
    /// The number of consecutive outages; 0 if the target is only busy.
    times: u32,
    /// Whether a run ended because it could not reach the target.
    gave_up: bool,
    /// Whether one run is trying the target again while others skip it.
    is_tried: bool,
}

/// The weight of a fault.
enum Weight {
    /// The server itself says for how long it does not take calls.
    Busy(Duration),
    /// It is an outage at once.
    Down,
    /// It is an outage if more of the last calls failed.
    Failed,
}

fn weight(fault: &Fault, thresholds: &Thresholds) -> Option<Weight> {
    let is_transient = fault.kind.is_transient();
    match (fault.kind, fault.connection, fault.retry_after) {
        (_, Some(Connection::Failed | Connection::NoAddress), _) => Some(Weight::Down),
        (FaultKind::RateLimited, _, None) => Some(Weight::Busy(seconds(thresholds.busy_seconds))),
        (_, _, Some(wait)) if is_transient => Some(Weight::Busy(wait)),
        (FaultKind::Unreachable, None, _) => Some(Weight::Down),
        (FaultKind::Unreachable | FaultKind::Timeout | FaultKind::Overloaded, ..) => Some(Weight::Failed),
        // Other faults are caused by the call, the key or the schema.
        _ => None,
    }
}

impl Service {
    /// Records a failed call.
    pub(super) fn failed(&mut self, fault: &Fault, now: Time, thresholds: &Thresholds) {
        let Some(weight) = weight(fault, thresholds) else { return };
        self.expire(now, thresholds);
        let is_busy = matches!(weight, Weight::Busy(_));
        if !is_busy {
            self.add(true, thresholds);
        }
        let failed = self.calls.iter().filter(|failed| **failed).count();
        let is_down = match weight {
            Weight::Busy(_) | Weight::Down => true,
            // A trial that fails continues the outage.
            Weight::Failed => {
                failed >= thresholds.failed_calls.max(1) as usize
                    || self.outage.as_ref().is_some_and(|outage| outage.times > 0)
            }
        };
        if !is_down {
            return;
        }
        let before = self.outage.take();
        let (wait, times) = match (weight, &before) {
            (Weight::Busy(wait), _) => (wait, 0),
            (_, before) => {
                let times = match before {
                    // Failures of concurrent calls count as one outage.
                    Some(Outage { until, times, is_tried: false, .. }) if now < *until => (*times).max(1),
                    Some(Outage { times, .. }) => times.saturating_add(1),
                    None => 1,
                };
                (seconds(thresholds.outage_seconds).saturating_mul(1 << (times - 1).min(8)), times)
            }
        };
        let until = now.after(wait.min(seconds(thresholds.max_outage_seconds)));
        let until =
            before.as_ref().filter(|before| !before.is_tried).map_or(until, |before| before.until.max(until));
        let mut seen = Seen::once(now, fault.to_string());
        // A server that responds as busy is reachable.
        let gave_up = times > 0 && before.as_ref().is_some_and(|before| before.gave_up);
        if let Some(before) = before {
            (seen.count, seen.first) = (before.seen.count.saturating_add(1), before.seen.first);
        } else if !is_busy {
            seen.count = u32::try_from(failed).unwrap_or(u32::MAX).max(1);
        }
        self.outage = Some(Outage { seen, until, times, gave_up, is_tried: false });
    }

    /// Records that the headers of an answer leave no further call for this time.
    pub(super) fn limited(&mut self, pause: Duration, now: Time, thresholds: &Thresholds) {
        let fault = Fault::new(FaultKind::RateLimited, "by the headers of the last answer, nothing is left");
        self.failed(&fault.with_retry_after(Some(pause)), now, thresholds);
    }

    /// Records that the target answered.
    pub(super) fn answered(&mut self, thresholds: &Thresholds) {
        if self.outage.take().is_some() {
            self.calls.clear();
        }
        if self.calls.contains(&true) {
            self.add(false, thresholds);
        }
    }

    fn add(&mut self, is_failed: bool, thresholds: &Thresholds) {
        self.calls.push_back(is_failed);
        while self.calls.len() > thresholds.window_calls.max(1) as usize {
            self.calls.pop_front();
        }
    }

    /// Records that a run ended because it could not reach the target.
    pub(super) fn gave_up(&mut self) {
        if let Some(outage) = &mut self.outage {
            outage.gave_up = true;
        }
    }

    /// Returns whether a run ended because it could not reach the target, and no run has reached it since.
    pub(super) fn is_given_up(&self) -> bool {
        self.outage.as_ref().is_some_and(|outage| outage.gave_up)
    }

    /// Returns the time until which the target is skipped, if it is.
    pub(super) fn until(&self, now: Time) -> Option<Time> {
        self.outage.as_ref().map(|outage| outage.until).filter(|until| now < *until)
    }

    /// Lets this run try a target whose time is over. All other runs skip the target until that call has ended, for at most the
    /// time of one outage.
    pub(super) fn try_again(&mut self, now: Time, thresholds: &Thresholds) {
        if let Some(outage) = self.outage.as_mut().filter(|outage| outage.times > 0 && now >= outage.until) {
            (outage.until, outage.is_tried) = (now.after(seconds(thresholds.outage_seconds)), true);
        }
    }

    /// Removes an outage that no run has tried for long.
    pub(super) fn expire(&mut self, now: Time, thresholds: &Thresholds) {
        let is_old = |outage: &Outage| now.since(outage.until) >= thresholds.lasts();
        if self.outage.as_ref().is_some_and(is_old) {
            *self = Self::default();
        }
    }

    /// Changes the time from which on the target may be called again.
    pub(super) fn move_time(&mut self, moved: impl Fn(Time) -> Time) {
        if let Some(outage) = &mut self.outage {
            outage.until = moved(outage.until);
        }
    }

    /// Returns the evidence of the outage, and its end.
    pub(super) fn outage(&self) -> Option<(&Seen, Time)> {
        self.outage.as_ref().map(|outage| (&outage.seen, outage.until))
    }

    pub(super) fn is_good(&self) -> bool {
        self.outage.is_none() && !self.calls.contains(&true)
    }

    /// Creates a service that is skipped until a time.
    pub(super) fn skipped_until(until: Time) -> Self {
        let seen = Seen::once(Time(0), String::new());
        let outage = Outage { seen, until, times: 1, gave_up: false, is_tried: false };
        Self { calls: VecDeque::new(), outage: Some(outage) }
    }
}
