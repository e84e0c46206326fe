//! The targets that are out of service, according to the calls of this process.

use std::collections::HashMap;
use std::time::Duration;

use formwork_core::{Fault, FaultKind, Time};

/// The time for which an unreachable target is skipped. Each further failure doubles it.
const UNREACHABLE: Duration = Duration::from_secs(30);

/// The time for which a busy target is skipped if its response has no `Retry-After`.
const BUSY: Duration = Duration::from_secs(5);

/// The maximum time for which a target is skipped.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// The targets whose last call failed, by their keys.
#[derive(Debug, Default)]
pub(super) struct Service(HashMap<String, Outage>);

#[derive(Debug, Clone, Copy)]
struct Outage {
    until: Time,
    /// The number of consecutive failures to reach the target.
    times: u32,
    /// Whether a run ended because it could not reach the target.
    is_down: bool,
    /// Whether one run is trying the target again while others skip it.
    is_tried: bool,
}

impl Service {
    /// Records a failed call. Faults of the call or the API key do not affect the service.
    pub(super) fn failed(&mut self, target: &str, fault: &Fault, now: Time) {
        let before = self.0.get(target).copied();
        let (wait, times) = match (fault.kind, fault.retry_after) {
            (FaultKind::RateLimited | FaultKind::Overloaded | FaultKind::Unreachable, Some(wait)) => {
                (wait, 0)
            }
            (FaultKind::RateLimited | FaultKind::Overloaded, None) => (BUSY, 0),
            (FaultKind::Unreachable | FaultKind::Timeout, _) => {
                // Failures of concurrent calls count as one outage.
                let times = match before {
                    Some(Outage { until, times, is_tried: false, .. }) if now < until => times.max(1),
                    Some(Outage { times, .. }) => times + 1,
                    None => 1,
                };
                (UNREACHABLE.saturating_mul(1 << (times - 1).min(8)), times)
            }
            _ => return,
        };
        let until = now.after(wait.min(LONGEST));
        let until = before.filter(|before| !before.is_tried).map_or(until, |before| before.until.max(until));
        // A server that responds as busy is reachable.
        let is_down = times > 0 && before.is_some_and(|before| before.is_down);
        self.0.insert(target.to_owned(), Outage { until, times, is_down, is_tried: false });
    }

    /// Records that a run ended because it could not reach a target.
    pub(super) fn gave_up(&mut self, target: &str) {
        if let Some(outage) = self.0.get_mut(target) {
            outage.is_down = true;
        }
    }

    /// Returns whether a run ended because it could not reach a target, and no run has reached it since.
    pub(super) fn is_down(&self, target: &str) -> bool {
        self.0.get(target).is_some_and(|outage| outage.is_down)
    }

    /// Returns whether this run may try a target whose time is over. All other runs skip the target until that call has ended, for at
    /// most 30 s.
    pub(super) fn claim(&mut self, target: &str, now: Time) -> bool {
        match self.0.get_mut(target) {
            Some(outage) if outage.is_down && now >= outage.until => {
                (outage.until, outage.is_tried) = (now.after(UNREACHABLE), true);
                true
            }
            _ => false,
        }
    }

    /// Records that a target answered.
    pub(super) fn answered(&mut self, target: &str) {
        self.0.remove(target);
    }

    /// Returns the time until which a target is skipped, if it is.
    pub(super) fn until(&self, target: &str, now: Time) -> Option<Time> {
        self.0.get(target).map(|outage| outage.until).filter(|until| now < *until)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, retry_after: Option<u64>) -> Fault {
        Fault::new(kind, "scripted").with_retry_after(retry_after.map(Duration::from_secs))
    }

    #[test]
    fn the_kind_of_fault_determines_how_long_a_target_is_skipped() {
        for (kind, retry_after, seconds) in [
            (FaultKind::Unreachable, None, Some(30)),
            (FaultKind::Timeout, None, Some(30)),
            (FaultKind::Overloaded, None, Some(5)),
            (FaultKind::RateLimited, None, Some(5)),
            (FaultKind::RateLimited, Some(20), Some(20)),
            (FaultKind::Overloaded, Some(86_400), Some(600)),
            (FaultKind::Auth, None, None),
            (FaultKind::BadRequest, Some(20), None),
            (FaultKind::SchemaRefused, None, None),
        ] {
            let mut service = Service::default();
            service.failed("a", &fault(kind, retry_after), Time(1_000));
            let expected = seconds.map(|seconds| Time(1_000).after(Duration::from_secs(seconds)));
            assert_eq!(service.until("a", Time(1_000)), expected, "{kind:?}");
            assert_eq!(service.until("b", Time(1_000)), None);
            if let Some(until) = expected {
                assert_eq!(service.until("a", until), None, "{kind:?}: it is over");
            }
            service.answered("a");
            assert_eq!(service.until("a", Time(1_000)), None);
        }
    }

    #[test]
    fn each_further_failure_doubles_the_time_up_to_ten_minutes() {
        let (mut service, mut now) = (Service::default(), Time(0));
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            service.failed("a", &fault(FaultKind::Unreachable, None), now);
            // A concurrent call fails too.
            service.failed("a", &fault(FaultKind::Unreachable, None), now);
            let until = service.until("a", now).unwrap();
            assert_eq!(until.since(now), Duration::from_secs(seconds));
            now = until;
        }
        service.answered("a");
        service.failed("a", &fault(FaultKind::Unreachable, None), now);
        assert_eq!(service.until("a", now).unwrap().since(now), Duration::from_secs(30));
    }

    #[test]
    fn one_run_tries_an_unreachable_target_again_while_others_skip_it() {
        let (mut service, mut now) = (Service::default(), Time(0));
        let unreachable = fault(FaultKind::Unreachable, None);
        service.failed("a", &unreachable, now);
        assert!(
            !service.is_down("a") && !service.claim("a", Time(30_000)),
            "a failed call alone does not mark the target as down"
        );
        service.gave_up("a");
        for seconds in [30, 60, 120, 240] {
            assert!(service.is_down("a"));
            let until = service.until("a", now).unwrap();
            assert_eq!(until.since(now), Duration::from_secs(seconds));
            assert!(!service.claim("a", now));
            assert_eq!([service.claim("a", until), service.claim("a", until)], [true, false]);
            assert!(service.until("a", until).is_some(), "other runs skip the target");
            now = until;
            service.failed("a", &unreachable, now);
        }
        // If the run is dropped during its call, another run may try the target.
        let until = service.until("a", now).unwrap();
        assert!(service.claim("a", until));
        assert!(service.claim("a", until.after(UNREACHABLE)));
        service.answered("a");
        assert!(!service.is_down("a") && service.until("a", until).is_none());
    }
}
