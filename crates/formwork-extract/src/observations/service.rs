//! Which targets are out of service, as the calls of this process found.

use std::collections::HashMap;
use std::time::Duration;

use formwork_core::{Fault, FaultKind, Time};

/// How long a target that could not be reached is left out; twice as long each further time.
const UNREACHABLE: Duration = Duration::from_secs(30);

/// How long a target is left out that is too busy and does not say for how long.
const BUSY: Duration = Duration::from_secs(5);

/// The longest time that a target is left out.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// The targets that failed last, by their keys.
#[derive(Debug, Default)]
pub(super) struct Service(HashMap<String, Outage>);

#[derive(Debug, Clone, Copy)]
struct Outage {
    until: Time,
    /// How often in a row it could not be reached.
    times: u32,
    /// Whether a run has waited for it in vain.
    is_down: bool,
    /// Whether one run is trying it out, so that the others need not.
    is_tried: bool,
}

impl Service {
    /// Notes that a call failed. Faults that are about the call or the key say nothing about the service.
    pub(super) fn failed(&mut self, target: &str, fault: &Fault, now: Time) {
        let before = self.0.get(target).copied();
        let (wait, times) = match (fault.kind, fault.retry_after) {
            (FaultKind::RateLimited | FaultKind::Overloaded | FaultKind::Unreachable, Some(wait)) => {
                (wait, 0)
            }
            (FaultKind::RateLimited | FaultKind::Overloaded, None) => (BUSY, 0),
            (FaultKind::Unreachable | FaultKind::Timeout, _) => {
                // Calls that were under way together are one outage.
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
        // A server that says that it is busy can be reached.
        let is_down = times > 0 && before.is_some_and(|before| before.is_down);
        self.0.insert(target.to_owned(), Outage { until, times, is_down, is_tried: false });
    }

    /// Notes that a run has ended because it could not reach a target, however often it tried.
    pub(super) fn gave_up(&mut self, target: &str) {
        if let Some(outage) = self.0.get_mut(target) {
            outage.is_down = true;
        }
    }

    /// Whether a run has waited for a target in vain, and none has reached it since.
    pub(super) fn is_down(&self, target: &str) -> bool {
        self.0.get(target).is_some_and(|outage| outage.is_down)
    }

    /// Lets one run try a target whose time is over: it is left out by all others until that run has called it, at most for 30 s.
    pub(super) fn claim(&mut self, target: &str, now: Time) -> bool {
        match self.0.get_mut(target) {
            Some(outage) if outage.is_down && now >= outage.until => {
                (outage.until, outage.is_tried) = (now.after(UNREACHABLE), true);
                true
            }
            _ => false,
        }
    }

    /// Notes that a target answered.
    pub(super) fn answered(&mut self, target: &str) {
        self.0.remove(target);
    }

    /// Until when a target is left out, if it is.
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
    fn how_long_a_target_is_left_out_follows_from_what_failed() {
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
    fn who_is_not_reached_again_is_left_out_twice_as_long_up_to_ten_minutes() {
        let (mut service, mut now) = (Service::default(), Time(0));
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            service.failed("a", &fault(FaultKind::Unreachable, None), now);
            // Another call that was under way.
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
    fn one_run_tries_a_target_again_that_another_waited_for_in_vain() {
        let (mut service, mut now) = (Service::default(), Time(0));
        let unreachable = fault(FaultKind::Unreachable, None);
        service.failed("a", &unreachable, now);
        assert!(
            !service.is_down("a") && !service.claim("a", Time(30_000)),
            "only a run that gives up says so"
        );
        service.gave_up("a");
        for seconds in [30, 60, 120, 240] {
            assert!(service.is_down("a"));
            let until = service.until("a", now).unwrap();
            assert_eq!(until.since(now), Duration::from_secs(seconds));
            assert!(!service.claim("a", now));
            assert_eq!([service.claim("a", until), service.claim("a", until)], [true, false]);
            assert!(service.until("a", until).is_some(), "the others leave it out meanwhile");
            now = until;
            service.failed("a", &unreachable, now);
        }
        // A run that was dropped in the middle of its call leaves the try to another one.
        let until = service.until("a", now).unwrap();
        assert!(service.claim("a", until));
        assert!(service.claim("a", until.after(UNREACHABLE)));
        service.answered("a");
        assert!(!service.is_down("a") && service.until("a", until).is_none());
    }
}
