//! The observations about one schema of one target.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::seen::Seen;
use super::thresholds::seconds;
use super::{DECLINED, Evidence, Shown, Size, Thresholds};
use crate::Time;

/// The output mode without schema enforcement that a schema, or every schema of a target, is sent in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Weaker {
    pub(super) seen: Seen,
    /// The calls since the last trial.
    calls: u32,
    /// The time of the last trial, or of the beginning.
    tried: Time,
    /// The number of failed trials.
    failures: u32,
    is_tried: bool,
}

impl Weaker {
    pub(super) fn new(evidence: &Evidence, count: u32, reason: &str) -> Self {
        let mut seen = Seen::once(evidence.at, reason.to_owned());
        seen.count = count;
        Self { seen, calls: 0, tried: evidence.at, failures: 0, is_tried: false }
    }

    /// Returns whether the stronger mode is to be tried again.
    pub(super) fn is_due(&self, now: Time, thresholds: &Thresholds) -> bool {
        let (calls, factor) = (16_u32.pow(self.failures.min(7)), 1_u32 << self.failures.min(16));
        self.calls >= thresholds.trial_calls.max(1).saturating_mul(calls)
            || now.since(self.tried) >= seconds(thresholds.trial_seconds.saturating_mul(factor))
    }

    /// Begins a trial of the stronger mode.
    pub(super) const fn try_again(&mut self, now: Time) {
        (self.calls, self.tried, self.is_tried) = (0, now, true);
    }

    /// Counts a call in the weaker mode.
    pub(super) const fn called(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// Returns whether a run is trying the stronger mode again.
    pub(super) const fn is_tried(&self) -> bool {
        self.is_tried
    }

    /// Records further evidence in the stronger mode.
    pub(super) fn again(&mut self, at: Time, reason: &str) {
        self.seen.again(at, reason);
        if std::mem::take(&mut self.is_tried) {
            self.failures = self.failures.saturating_add(1);
        }
    }

    pub(super) fn end(&self, thresholds: &Thresholds) -> Time {
        self.seen.last.after(thresholds.lasts())
    }
}

/// The bounds on lengths with which a schema is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bounds {
    pub(super) seen: Seen,
    /// The runs that started while the bounds held.
    starts: u32,
    /// The complete answers without bounds.
    complete: u32,
}

impl Bounds {
    pub(super) fn end(&self, thresholds: &Thresholds) -> Time {
        self.seen.first.after(seconds(thresholds.bounds_seconds))
    }

    /// Counts a run, and returns whether it starts with bounds.
    pub(super) const fn start(&mut self, thresholds: &Thresholds) -> bool {
        self.starts = self.starts.saturating_add(1);
        thresholds.unbounded_every == 0 || !self.starts.is_multiple_of(thresholds.unbounded_every)
    }
}

/// The observations about a schema.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SchemaHealth {
    /// The requests whose answers enforcement makes impossible, with the time of the last one.
    impossible: Vec<(u64, Time)>,
    /// The last different requests, the newest last, and whether each ended in prose or with a refusal.
    requests: VecDeque<(u64, bool)>,
    pub(super) weaker: Option<Weaker>,
    pub(super) bounds: Option<Bounds>,
    /// The lengths of the longest complete document.
    pub(super) longest: Size,
    /// The dialects in which the target rejects the schema.
    pub(super) refused: Vec<(String, Seen)>,
    /// The time of the last evidence.
    pub(super) used: Time,
}

impl SchemaHealth {
    /// Takes in evidence.
    pub(super) fn record(&mut self, evidence: &Evidence, thresholds: &Thresholds) {
        self.expire(evidence.at, thresholds);
        self.used = self.used.max(evidence.at);
        let (at, request) = (evidence.at, evidence.request);
        if !evidence.enforced
            && let Some(weaker) = &mut self.weaker
        {
            weaker.called();
        }
        match &evidence.shown {
            Shown::Complete { size, bounded } => {
                self.longest = self.longest.or(*size);
                if evidence.enforced {
                    self.enforced(request, thresholds);
                    self.completed(*bounded, thresholds);
                }
            }
            Shown::Impossible { reason } => {
                self.impossible.retain(|(other, _)| *other != request);
                self.impossible.push((request, at));
                let count = u32::try_from(self.impossible.len()).unwrap_or(u32::MAX);
                self.ignored(evidence, count, thresholds.impossible_requests, reason);
            }
            Shown::Prose { reason } => self.ended_without(evidence, reason, thresholds),
            Shown::Declined => self.ended_without(evidence, DECLINED, thresholds),
            Shown::InProse { reason } if self.weaker.is_none() && self.is_last(request, thresholds) => {
                self.ended_without(evidence, reason, thresholds);
            }
            Shown::RanAway { reason, longest } => {
                self.longest = self.longest.or(*longest);
                match &mut self.bounds {
                    Some(bounds) => {
                        bounds.seen.again(at, reason);
                        bounds.complete = 0;
                    }
                    none => {
                        let seen = Seen::once(at, reason.clone());
                        *none = Some(Bounds { seen, starts: 0, complete: 0 });
                    }
                }
            }
            Shown::BeyondBound => self.bounds = None,
            Shown::SchemaRefused { dialect, reason } => {
                match self.refused.iter_mut().find(|(known, _)| known == dialect) {
                    Some((_, seen)) => seen.again(at, reason),
                    None => self.refused.push((dialect.clone(), Seen::once(at, reason.clone()))),
                }
            }
            Shown::InProse { .. }
            | Shown::Answered
            | Shown::LimitReached { .. }
            | Shown::SamplingRefused { .. }
            | Shown::Failed { .. }
            | Shown::GaveUp => {}
        }
    }

    /// Takes in an answer that keeps to the schema, in a mode with enforcement.
    fn enforced(&mut self, request: u64, thresholds: &Thresholds) {
        if self.weaker.take_if(|weaker| weaker.is_tried()).is_some() {
            (self.impossible, self.requests) = (Vec::new(), VecDeque::new());
        }
        self.ended(request, false, thresholds);
    }

    fn completed(&mut self, bounded: bool, thresholds: &Thresholds) {
        let Some(bounds) = self.bounds.as_mut().filter(|_| !bounded) else { return };
        bounds.complete = bounds.complete.saturating_add(1);
        if bounds.complete >= thresholds.complete_answers.max(1) {
            self.bounds = None;
        }
    }

    /// Returns whether one more request in prose decides: so many other requests ended so. Its first answer is enough then, because
    /// the server answers each of its attempts alike.
    fn is_last(&self, request: u64, thresholds: &Thresholds) -> bool {
        let others = self.requests.iter().filter(|(other, is_prose)| *is_prose && *other != request).count();
        others > 0 && others + 1 >= thresholds.prose_requests as usize
    }

    /// Takes in a request that ended in prose or with a refusal.
    fn ended_without(&mut self, evidence: &Evidence, reason: &str, thresholds: &Thresholds) {
        let is_counted = self.requests.contains(&(evidence.request, true));
        if is_counted && self.weaker.as_ref().is_some_and(|weaker| !weaker.is_tried()) {
            return;
        }
        self.ended(evidence.request, true, thresholds);
        let count = self.requests.iter().filter(|(_, is_prose)| *is_prose).count();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.ignored(evidence, count, thresholds.prose_requests, reason);
    }

    fn ended(&mut self, request: u64, is_prose: bool, thresholds: &Thresholds) {
        if !is_prose && self.requests.is_empty() {
            return;
        }
        self.requests.retain(|(other, _)| *other != request);
        self.requests.push_back((request, is_prose));
        while self.requests.len() > thresholds.window_requests.max(1) as usize {
            self.requests.pop_front();
        }
        if self.requests.iter().all(|(_, is_prose)| !is_prose) {
            self.requests.clear();
        }
    }

    /// Counts evidence that the server ignores the schema.
    fn ignored(&mut self, evidence: &Evidence, count: u32, threshold: u32, reason: &str) {
        match &mut self.weaker {
            Some(weaker) => weaker.again(evidence.at, reason),
            None if count >= threshold.max(1) => self.weaker = Some(Weaker::new(evidence, count, reason)),
            None => {}
        }
    }

    /// Removes the observations that have ended.
    pub(super) fn expire(&mut self, now: Time, thresholds: &Thresholds) {
        let lasts = thresholds.lasts();
        self.impossible.retain(|(_, at)| now.since(*at) < lasts);
        self.refused.retain(|(_, seen)| now.since(seen.last) < lasts);
        if self.weaker.take_if(|weaker| now >= weaker.end(thresholds)).is_some() {
            (self.impossible, self.requests) = (Vec::new(), VecDeque::new());
        }
        self.bounds.take_if(|bounds| now >= bounds.end(thresholds));
        if now.since(self.used) >= lasts {
            self.requests.clear();
        }
    }

    /// Returns whether no evidence speaks against the target with this schema.
    pub(super) fn is_good(&self) -> bool {
        let Self { impossible, requests, weaker, bounds, refused, .. } = self;
        let is_enforced = impossible.is_empty() && requests.is_empty() && weaker.is_none();
        is_enforced && bounds.is_none() && refused.is_empty()
    }
}
