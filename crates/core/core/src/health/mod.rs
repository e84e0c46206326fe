//! The health of targets: the evidence of calls, and the decisions that follow from it.

mod advice;
mod evidence;
mod restriction;
mod schema;
mod seen;
mod service;
mod thresholds;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Enforcement, Plan, SamplingParameter, Time};

pub use advice::{Advice, TargetAdvice};
pub use evidence::{Evidence, Shown, Size};
pub use restriction::{Restriction, RestrictionKind};
pub use thresholds::Thresholds;

use schema::{SchemaHealth, Weaker};
use seen::Seen;
use service::Service;

/// The reason of an observation that follows from refusals.
pub(crate) const DECLINED: &str = "the model refused to answer";

/// The maximum number of targets, and of schemas over all targets. The ones without evidence for the longest time are removed
/// first.
const MAX_KNOWN: usize = 256;

/// Counts the evidence of calls about their targets, and answers what a run asks: which target, which output mode, which bounds.
///
/// It performs no IO and has no clock. A driver [records](Self::record) the [`Evidence`] of each call and asks for the
/// [`Advice`] of the next run; it can store the state with serde. One weak signal changes nothing for other requests, and
/// every observation ends. [`Thresholds`] has the numbers.
///
/// - *Ignores the schema*: after documents that enforcement makes impossible, as answers to two different requests, or after 5 of
///   the last 10 different requests ended in prose or with a refusal, the schema is sent in a mode without enforcement; after
///   three such schemas, every schema of the target is. After 20 calls or 10 minutes, one run tries the stronger mode again.
/// - *Runs away*: after an answer at the token limit, the schema is sent with bounds that exceed the longest complete document, for
///   at most an hour. Every tenth call has none, and two complete answers without bounds lift them.
/// - *Down*: a target without a connection is skipped at once, and after broken connections, time-outs or server errors in three of
///   the last ten calls; for 30 s at first. Then one run tries it again.
/// - *Limits the rate*: a target that limits its rate is skipped for the time that it asks for, and after an answer whose headers
///   leave no further call, until the limit is full again.
/// - *Rejects*: a schema that the server rejected is not sent again in the same dialect, and a rejected sampling parameter is not
///   sent again, for an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    targets: BTreeMap<String, TargetHealth>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TargetHealth {
    name: String,
    model: String,
    used: Time,
    service: Service,
    schemas: BTreeMap<String, SchemaHealth>,
    /// The weaker mode of every schema.
    weaker: Option<Weaker>,
    refused_sampling: Vec<(SamplingParameter, Seen)>,
}

impl Health {
    /// Creates the state without evidence.
    pub const fn new() -> Self {
        Self { targets: BTreeMap::new() }
    }

    /// Takes in the evidence of a call. Returns whether another process should know it: it counts against the target, or for a
    /// target that other evidence counts against.
    pub fn record(&mut self, evidence: &Evidence, thresholds: &Thresholds) -> bool {
        self.make_room(evidence);
        let target = self.targets.entry(evidence.target.clone()).or_default();
        // An answer that says nothing about the schema can only end an outage.
        let is_good = |target: &TargetHealth| match evidence.shown {
            Shown::Answered => target.service.is_good(),
            _ => target.is_good(&evidence.schema),
        };
        let was_good = is_good(target);
        target.record(evidence, thresholds);
        !(was_good && is_good(target))
    }

    /// Returns the advice for the next run of a plan, and counts the run. `fails_fast`: whether the run may end at once because an
    /// earlier run could reach no target of the plan.
    pub fn advise(&mut self, plan: &Plan, thresholds: &Thresholds, now: Time, fails_fast: bool) -> Advice {
        let thresholds = &plan.policy.thresholds(*thresholds);
        let keys: Vec<String> = (0..plan.targets.len()).map(|target| plan.key(target)).collect();
        let known = |health: &Self, key: &String| health.targets.contains_key(key);
        if !keys.iter().any(|key| known(self, key)) {
            return Advice { thresholds: *thresholds, ..Advice::default() };
        }
        let is_given_up = |key| self.targets.get(key).is_some_and(|target| target.service.is_given_up());
        let fails_fast = fails_fast && keys.iter().all(is_given_up);
        let is_out = |key| {
            self.targets.get(key).is_some_and(|target: &TargetHealth| target.service.until(now).is_some())
        };
        // A run with one target calls it in any case, so it takes the trial from no other run.
        let first = keys.iter().position(|key| !is_out(key)).unwrap_or_default();
        let targets = keys.iter().enumerate().map(|(index, key)| {
            let Some(target) = self.targets.get_mut(key) else { return TargetAdvice::default() };
            target.advise(plan, index, thresholds, now, index == first)
        });
        let advice = Advice { targets: targets.collect(), thresholds: *thresholds, fails_fast };
        if keys.len() > 1 || fails_fast {
            for key in keys.get(first).into_iter() {
                if let Some(target) = self.targets.get_mut(key) {
                    target.service.try_again(now, thresholds);
                }
            }
        }
        advice
    }

    /// Returns whether a target ignores the schema of a plan, so that a run with an answer in prose continues without enforcement:
    /// evidence of other runs may have been recorded since the run began.
    pub fn ignores(&self, plan: &Plan, target: usize, thresholds: &Thresholds, now: Time) -> bool {
        let Some(target) = self.targets.get(&plan.key(target)) else { return false };
        let schema = target.schemas.get(plan.schema_digest()).and_then(|schema| schema.weaker.as_ref());
        target.weaker.iter().chain(schema).any(|weaker| now < weaker.end(thresholds))
    }

    /// Returns the observations that are in force, by target.
    pub fn in_force(&self, thresholds: &Thresholds, now: Time) -> Vec<Restriction> {
        let mut found = Vec::new();
        for (key, target) in &self.targets {
            target.clone().in_force(key, thresholds, now, &mut found);
        }
        found
    }

    /// Removes all observations about a target, or about all targets.
    pub fn forget(&mut self, target: Option<&str>) {
        match target {
            Some(target) => drop(self.targets.remove(target)),
            None => self.targets.clear(),
        }
    }

    /// Removes the targets and schemas without evidence for the longest time, if there are too many.
    fn make_room(&mut self, evidence: &Evidence) {
        let is_new = !self.targets.contains_key(&evidence.target);
        if is_new && self.targets.len() >= MAX_KNOWN {
            let oldest = self.targets.iter().min_by_key(|(_, target)| target.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.targets.remove(&oldest);
            }
        }
        let known = self.targets.get(&evidence.target);
        let is_new = known.is_none_or(|target| !target.schemas.contains_key(&evidence.schema));
        let count = || self.targets.values().map(|target| target.schemas.len()).sum::<usize>();
        if is_new && count() >= MAX_KNOWN {
            let all = self.targets.iter().flat_map(|(key, target)| {
                target
                    .schemas
                    .iter()
                    .map(move |(digest, schema)| (!schema.is_good(), schema.used, key, digest))
            });
            let oldest = all.min().map(|(_, _, key, digest)| (key.clone(), digest.clone()));
            if let Some((key, digest)) = oldest
                && let Some(target) = self.targets.get_mut(&key)
            {
                target.schemas.remove(&digest);
            }
        }
    }
}

impl TargetHealth {
    fn record(&mut self, evidence: &Evidence, thresholds: &Thresholds) {
        evidence.name.clone_into(&mut self.name);
        if !evidence.model.is_empty() {
            evidence.model.clone_into(&mut self.model);
        }
        self.used = self.used.max(evidence.at);
        match &evidence.shown {
            Shown::Failed { fault } => return self.service.failed(fault, evidence.at, thresholds),
            Shown::GaveUp => return self.service.gave_up(),
            Shown::LimitReached { pause_ms } => {
                let pause = Duration::from_millis(*pause_ms);
                return self.service.limited(pause, evidence.at, thresholds);
            }
            // These are about the end of a run, whose calls were recorded before.
            Shown::Prose { .. } | Shown::Declined => {}
            _ => self.service.answered(thresholds),
        }
        match &evidence.shown {
            Shown::Answered => return,
            Shown::SamplingRefused { parameter, reason } => {
                match self.refused_sampling.iter_mut().find(|(known, _)| known == parameter) {
                    Some((_, seen)) => seen.again(evidence.at, reason),
                    None => self.refused_sampling.push((*parameter, Seen::once(evidence.at, reason.clone()))),
                }
                return;
            }
            _ => {}
        }
        self.schemas.entry(evidence.schema.clone()).or_default().record(evidence, thresholds);
        self.record_for_all(evidence, thresholds);
    }

    /// Counts the evidence about one schema for every schema of the target.
    fn record_for_all(&mut self, evidence: &Evidence, thresholds: &Thresholds) {
        let at = evidence.at;
        self.weaker.take_if(|weaker| at >= weaker.end(thresholds));
        match (&mut self.weaker, &evidence.shown) {
            (Some(weaker), _) if !evidence.enforced => weaker.called(),
            (Some(weaker), Shown::Impossible { reason } | Shown::Prose { reason }) => {
                weaker.again(at, reason)
            }
            (Some(weaker), Shown::Declined) => weaker.again(at, DECLINED),
            (Some(weaker), Shown::Complete { .. }) if weaker.is_tried() => self.weaker = None,
            (
                None,
                Shown::Impossible { .. } | Shown::InProse { .. } | Shown::Prose { .. } | Shown::Declined,
            ) => {
                let weaker = self.schemas.values().filter_map(|schema| schema.weaker.as_ref());
                let ignored: Vec<&Weaker> = weaker.filter(|weaker| at < weaker.end(thresholds)).collect();
                let count = u32::try_from(ignored.len()).unwrap_or(u32::MAX);
                if count >= thresholds.ignored_schemas.max(1) {
                    let requests = ignored.iter().map(|weaker| weaker.seen.count).sum();
                    let reason = ignored.last().map(|weaker| weaker.seen.reason.clone()).unwrap_or_default();
                    self.weaker = Some(Weaker::new(evidence, requests, &reason));
                }
            }
            _ => {}
        }
    }

    fn advise(
        &mut self,
        plan: &Plan,
        index: usize,
        thresholds: &Thresholds,
        now: Time,
        is_first: bool,
    ) -> TargetAdvice {
        self.expire(now, thresholds);
        let mut none = SchemaHealth::default();
        let schema = self.schemas.get_mut(plan.schema_digest()).unwrap_or(&mut none);
        let mut weaker: Vec<&mut Weaker> = self.weaker.iter_mut().chain(&mut schema.weaker).collect();
        let is_trial = is_first && !weaker.is_empty() && weaker.iter().all(|one| one.is_due(now, thresholds));
        if is_trial {
            weaker.iter_mut().for_each(|one| one.try_again(now));
        }
        let ignores = weaker.first().filter(|_| !is_trial).map(|weaker| weaker.seen.reason.clone());
        let refuses = |dialect: &str| schema.refused.iter().find(|(refused, _)| refused == dialect);
        let usable = |(dialect, enforcement): (&str, Enforcement)| {
            refuses(dialect).is_none() && (ignores.is_none() || enforcement < Enforcement::Schema)
        };
        // If every mode was rejected, the run starts in the last one.
        let start_mode = plan.modes(index).position(usable).unwrap_or(plan.modes(index).count());
        let first_mode = plan.modes(index).next().map(|(dialect, _)| dialect);
        let refused = || Some(refuses(first_mode?)?.1.reason.clone());
        let is_bounded = schema.bounds.as_mut().is_some_and(|bounds| !is_first || bounds.start(thresholds));
        TargetAdvice {
            start_mode,
            weaker_because: if start_mode > 0 { ignores.clone().or_else(refused) } else { None },
            is_trial,
            is_bounded,
            longest: schema.longest,
            refused_sampling: self.refused_sampling.iter().map(|(parameter, _)| *parameter).collect(),
            service: self.service.clone(),
        }
    }

    /// Removes the observations that have ended.
    fn expire(&mut self, now: Time, thresholds: &Thresholds) {
        self.service.expire(now, thresholds);
        self.weaker.take_if(|weaker| now >= weaker.end(thresholds));
        self.refused_sampling.retain(|(_, seen)| now.since(seen.last) < thresholds.lasts());
        self.schemas.values_mut().for_each(|schema| schema.expire(now, thresholds));
    }

    fn in_force(mut self, key: &str, thresholds: &Thresholds, now: Time, found: &mut Vec<Restriction>) {
        self.expire(now, thresholds);
        let Self { name, model, service, schemas, weaker, refused_sampling, .. } = self;
        let mut add = |schema: Option<&String>, kind, seen: &Seen, until| {
            found.push(Restriction {
                target: key.to_owned(),
                name: name.clone(),
                model: Some(model.clone()).filter(|model| !model.is_empty()),
                schema: schema.cloned(),
                kind,
                count: seen.count,
                since: seen.first,
                last: seen.last,
                until,
                evidence: seen.reason.clone(),
            });
        };
        let until = |seen: &Seen| seen.last.after(thresholds.lasts());
        if let Some((seen, until)) = service.outage().filter(|(_, until)| now < *until) {
            add(None, RestrictionKind::OutOfService, seen, until);
        }
        for (parameter, seen) in &refused_sampling {
            let kind = RestrictionKind::WithoutSampling(parameter.name().to_owned());
            add(None, kind, seen, until(seen));
        }
        if let Some(weaker) = &weaker {
            add(None, RestrictionKind::Unenforced, &weaker.seen, weaker.end(thresholds));
        }
        for (digest, schema) in &schemas {
            if let Some(weaker) = &schema.weaker {
                add(Some(digest), RestrictionKind::Unenforced, &weaker.seen, weaker.end(thresholds));
            }
            if let Some(bounds) = &schema.bounds {
                add(Some(digest), RestrictionKind::Bounded, &bounds.seen, bounds.end(thresholds));
            }
            for (dialect, seen) in &schema.refused {
                add(Some(digest), RestrictionKind::Refused(dialect.clone()), seen, until(seen));
            }
        }
    }

    /// Returns whether no evidence speaks against the target, or against it with this schema.
    fn is_good(&self, schema: &str) -> bool {
        let Self { service, schemas, weaker, refused_sampling, .. } = self;
        let is_enforced = schemas.get(schema).is_none_or(SchemaHealth::is_good) && weaker.is_none();
        is_enforced && refused_sampling.is_empty() && service.is_good()
    }
}
