//! The targets that are out of service, by the rules of the runs: a target that refuses calls is left to others for a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use formwork_core::{Evidence, Fault, Health, Restriction, RestrictionKind, Shown, Thresholds, Time};

use crate::access::now;

/// The health of the targets, for requests that are no runs. Runs have their own observations.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    known: Mutex<Known>,
    /// Whether a call has failed. Answers before the first failure show nothing, and most services never see one.
    has_failed: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    health: Health,
    /// The time of the last failure of each target that has failed.
    failed: HashMap<String, Time>,
}

impl Outages {
    /// Puts the targets that are out of service behind the others.
    pub(crate) fn sort<'n>(&self, targets: &mut [usize], name: impl Fn(usize) -> &'n str) {
        if targets.len() < 2 || !self.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let mut out = self.lock().health.in_force(&Thresholds::default(), now());
        out.retain(|restriction| restriction.kind == RestrictionKind::OutOfService);
        targets.sort_by_key(|nth| out.iter().any(|restriction| restriction.target == name(*nth)));
    }

    /// Returns whether a target is out of service.
    pub(crate) fn is_out(&self, name: &str) -> bool {
        let is_own = |it: &Restriction| it.kind == RestrictionKind::OutOfService && it.target == name;
        self.has_failed.load(Ordering::Relaxed)
            && self.lock().health.in_force(&Thresholds::default(), now()).iter().any(is_own)
    }

    /// Notes that a target answered a call. One that began before the target's last failure says nothing about it since.
    pub(crate) fn answered(&self, name: &str, began: Time) {
        if !self.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let mut known = self.lock();
        if known.failed.get(name).is_none_or(|failed| *failed <= began) {
            known.record(name, Shown::Answered);
        }
    }

    /// Notes a failed call.
    pub(crate) fn failed(&self, name: &str, fault: &Fault) {
        self.has_failed.store(true, Ordering::Relaxed);
        let mut known = self.lock();
        known.failed.insert(name.to_owned(), now());
        known.record(name, Shown::Failed { fault: fault.clone() });
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn record(&mut self, name: &str, shown: Shown) {
        self.health.record(&Evidence::new(name, "", now(), shown), &Thresholds::default());
    }
}

#[cfg(test)]
mod tests {
    use formwork_core::FaultKind;

    use super::*;

    #[test]
    fn an_answer_to_a_call_from_before_a_failure_brings_no_target_back() {
        let outages = Outages::default();
        let fault = Fault::new(FaultKind::Overloaded, "full");
        (0..5).for_each(|_| outages.failed("a", &fault));
        assert!(outages.is_out("a") && !outages.is_out("b"));
        outages.answered("a", Time(now().0 - 5_000));
        assert!(outages.is_out("a"));
        outages.answered("a", Time(now().0 + 1));
        assert!(!outages.is_out("a"));
    }
}
