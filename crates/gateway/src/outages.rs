//! The targets that are out of service, by the rules of the runs: a target that refuses calls is left to others for a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use formwork_core::{Evidence, Fault, Health, Restriction, RestrictionKind, Shown, Thresholds};

use crate::access::now;

/// The health of the targets, for requests that are no runs. Runs have their own observations.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    health: Mutex<Health>,
    /// Whether a call has failed. Answers before the first failure show nothing, and most services never see one.
    has_failed: AtomicBool,
}

impl Outages {
    /// Puts the targets that are out of service behind the others.
    pub(crate) fn sort<'n>(&self, targets: &mut [usize], name: impl Fn(usize) -> &'n str) {
        if targets.len() < 2 || !self.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let mut out = self.lock().in_force(&Thresholds::default(), now());
        out.retain(|restriction| restriction.kind == RestrictionKind::OutOfService);
        targets.sort_by_key(|nth| out.iter().any(|restriction| restriction.target == name(*nth)));
    }

    /// Returns whether a target is out of service.
    pub(crate) fn is_out(&self, name: &str) -> bool {
        let is_own = |it: &Restriction| it.kind == RestrictionKind::OutOfService && it.target == name;
        self.has_failed.load(Ordering::Relaxed)
            && self.lock().in_force(&Thresholds::default(), now()).iter().any(is_own)
    }

    /// Notes that a target answered.
    pub(crate) fn answered(&self, name: &str) {
        if self.has_failed.load(Ordering::Relaxed) {
            self.record(name, Shown::Answered);
        }
    }

    /// Notes a failed call.
    pub(crate) fn failed(&self, name: &str, fault: &Fault) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.record(name, Shown::Failed { fault: fault.clone() });
    }

    fn record(&self, name: &str, shown: Shown) {
        self.lock().record(&Evidence::new(name, "", now(), shown), &Thresholds::default());
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
