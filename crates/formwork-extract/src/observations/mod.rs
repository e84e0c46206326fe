mod file;
mod service;

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use formwork_core::{Enforcement, Fault, Observation, ObservationKind, Plan, SamplingParameter, Time};

use file::File;
use service::Service;

/// How long what was learnt is believed: servers are upgraded, and routers send the next call elsewhere. Being wrong
/// costs one call that is refused, or one answer that is not held to the schema.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// How many things are remembered at most; the oldest is forgotten first.
const MAX_KNOWN: usize = 256;

/// The observations of earlier runs about their targets, so that later ones do not pay for them again.
///
/// A target that refused a schema in a dialect is not asked for it in that dialect; one that ignored a schema is asked
/// without promises of any schema, and one that refused a parameter of sampling without that parameter. All for an hour, by
/// the driver's clock. A target that ran away with a schema is sent
/// that schema with [bounds](formwork_core::Tighten::Bounded) from the first call on, until it completes a document without
/// them. At most 256 things are remembered.
///
/// Clones are the same store. Every [`Driver`](crate::Driver) and [`Extractor`](crate::Extractor) has one of its own,
/// which its clones share. One that several of them share tells targets apart by their
/// [identity](crate::Backend::with_identity), and those without one by their names, those of one name by their order: name
/// two models differently, with [`Backend::with_name`](crate::Backend::with_name), before they share a store.
///
/// ```
/// use formwork_core::FaultKind;
/// use formwork_extract::{Backend, Extractor, ObservationStore};
/// use formwork_testkit::{Reply, Scripted};
/// use std::sync::Arc;
///
/// let model = Arc::new(Scripted::new([Reply::from(FaultKind::SchemaRefused), "{}".into()]));
/// let backend = Backend::from(model)
///     .with_mode(formwork_dialect::dialect("openai").unwrap())
///     .with_mode(formwork_dialect::dialect("prompt").unwrap());
/// let store = ObservationStore::new();
/// let extractor = Extractor::for_document("any", serde_json::json!({"type": "object"}))
///     .with_target(backend)
///     .with_observation_store(store.clone())
///     .build()?;
/// assert_eq!(extractor.extract_blocking("a text")?.attempts.len(), 2);
/// assert_eq!(extractor.extract_blocking("another")?.attempts.len(), 1);
/// assert_eq!(store.len(), 1);
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ObservationStore(Arc<Inner>);

#[derive(Default)]
struct Inner {
    known: Mutex<VecDeque<Known>>,
    service: Mutex<Service>,
    file: Option<File>,
}

/// One thing that is remembered.
#[derive(Debug)]
struct Known {
    target: String,
    what: What,
    since: Time,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    /// This schema, by its digest, is refused in this dialect.
    Refuses { schema: String, dialect: String },
    /// Schemas are ignored.
    Ignores,
    /// The target runs away with this schema, by its digest.
    RunsAway { schema: String },
    /// The target refuses this parameter of sampling.
    RefusesSampling(SamplingParameter),
}

impl ObservationStore {
    /// A store of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store that keeps in this file, between processes, which targets run away with which schemas.
    ///
    /// Only targets with an [identity](crate::Backend::with_identity) are written there. An entry counts for seven days. The
    /// file does not have to exist, and one that cannot be read or written is only a warning in the log. Several processes
    /// may use it at once.
    pub fn with_file(path: impl Into<PathBuf>) -> Self {
        let (file, lines) = File::open(path.into());
        let known = lines.into_iter().map(|line| Known {
            target: line.target,
            what: What::RunsAway { schema: line.schema },
            since: Time(0),
        });
        Self(Arc::new(Inner { known: Mutex::new(known.collect()), file: Some(file), ..Inner::default() }))
    }

    /// The modes that a run of this plan should start from, for
    /// [`Run::with_start_modes`](formwork_core::Run::with_start_modes). A driver does this by itself.
    pub fn start_modes(&self, plan: &Plan, now: Time) -> Vec<usize> {
        let known = self.known();
        if known.is_empty() {
            return Vec::new();
        }
        let starts = (0..plan.targets().count()).map(|target| {
            let key = key(plan, target);
            let of_it = || known.iter().filter(|known| known.target == key && now.since(known.since) < LASTS);
            let ignores = of_it().any(|known| known.what == What::Ignores);
            let refuses = |asked: &str| {
                of_it().any(|known| match &known.what {
                    What::Refuses { schema, dialect } => schema == plan.schema_digest() && dialect == asked,
                    What::Ignores | What::RunsAway { .. } | What::RefusesSampling(_) => false,
                })
            };
            let usable = |(dialect, enforcement): (&str, Enforcement)| {
                !refuses(dialect) && (!ignores || enforcement < Enforcement::Schema)
            };
            // Where everything was refused the last mode is what the run would come to anyway.
            plan.modes(target).position(usable).unwrap_or(plan.modes(target).count())
        });
        starts.collect()
    }

    /// Returns the targets of a plan that run away with its schema, for
    /// [`Run::with_bounded`](formwork_core::Run::with_bounded). A driver does this by itself.
    pub fn bounded(&self, plan: &Plan) -> Vec<usize> {
        let known = self.known();
        let runs_away = |target: &usize| {
            let key = key(plan, *target);
            known.iter().any(|known| {
                let is_of_schema =
                    matches!(&known.what, What::RunsAway { schema } if schema == plan.schema_digest());
                is_of_schema && known.target == key
            })
        };
        (0..plan.targets().count()).filter(runs_away).collect()
    }

    /// Returns the parameters of sampling that targets of a plan refused within the last hour, for
    /// [`Run::with_refused_sampling`](formwork_core::Run::with_refused_sampling). A driver does this by itself.
    pub fn refused_sampling(&self, plan: &Plan, now: Time) -> Vec<(usize, SamplingParameter)> {
        let known = self.known();
        let of_target = |target: usize| {
            let key = key(plan, target);
            let fresh =
                known.iter().filter(move |known| known.target == key && now.since(known.since) < LASTS);
            fresh.filter_map(move |known| match known.what {
                What::RefusesSampling(parameter) => Some((target, parameter)),
                _ => None,
            })
        };
        (0..plan.targets().count()).flat_map(of_target).collect()
    }

    /// Remembers what a run of this plan learnt. A driver does this by itself.
    pub fn learn(&self, plan: &Plan, observation: &Observation, now: Time) {
        let schema = observation.schema.clone();
        let what = match observation.kind {
            ObservationKind::Refused => What::Refuses { schema, dialect: observation.dialect.clone() },
            ObservationKind::Ignored => What::Ignores,
            ObservationKind::RanAway | ObservationKind::Completed => What::RunsAway { schema },
            ObservationKind::RefusedSampling(parameter) => What::RefusesSampling(parameter),
            // Nothing that is known here follows from it.
            _ => return,
        };
        let target = key(plan, observation.target);
        let is_over = observation.kind == ObservationKind::Completed;
        let mut known = self.known();
        known.retain(|old| !(old.target == target && old.what == what));
        if !is_over {
            if known.len() >= MAX_KNOWN {
                known.pop_front();
            }
            known.push_back(Known { target, what, since: now });
        }
        drop(known);
        let is_kept = matches!(observation.kind, ObservationKind::RanAway | ObservationKind::Completed);
        if let (Some(file), Some(target), true) = (&self.0.file, plan.identity(observation.target), is_kept) {
            file.note(target, &observation.schema, !is_over);
        }
    }

    /// Returns the targets of a plan that are out of service, each with the time until which it is left out, for
    /// [`Run::with_out_of_service`](formwork_core::Run::with_out_of_service). A driver does this by itself.
    ///
    /// A target that cannot be reached is left out for 30 s, then for twice as long each further time, up to 10 min; one
    /// that is too busy for the time that it says, or 5 s.
    pub fn out_of_service(&self, plan: &Plan, now: Time) -> Vec<(usize, Time)> {
        let service = self.service();
        if service.is_empty() {
            return Vec::new();
        }
        let out = |target: usize| service.until(&key(plan, target), now).map(|until| (target, until));
        (0..plan.targets().count()).filter_map(out).collect()
    }

    /// Returns the targets of a plan that a run has to leave out because an earlier one waited for every target in vain; of
    /// those whose time is over, this run is to try the ones that are not among them. `None` if there is hope for a target.
    pub(crate) fn given_up(&self, plan: &Plan, now: Time) -> Option<Vec<(usize, Time)>> {
        let mut service = self.service();
        let keys: Vec<String> = (0..plan.targets().count()).map(|target| key(plan, target)).collect();
        if service.is_empty() || !keys.iter().all(|key| service.is_down(key)) {
            return None;
        }
        let left_out = keys.iter().enumerate().filter_map(|(target, key)| {
            let until = service.until(key, now).map(|until| (target, until));
            until.or_else(|| (!service.claim(key, now)).then_some((target, now)))
        });
        Some(left_out.collect())
    }

    /// Remembers that a run has ended because it could not reach a target.
    pub(crate) fn gave_up(&self, plan: &Plan, target: usize) {
        self.service().gave_up(&key(plan, target));
    }

    /// Remembers that a call of a target failed. A driver does this by itself.
    pub fn failed(&self, plan: &Plan, target: usize, fault: &Fault, now: Time) {
        self.service().failed(&key(plan, target), fault, now);
    }

    /// Remembers that a target answered. A driver does this by itself.
    pub fn answered(&self, plan: &Plan, target: usize) {
        let mut service = self.service();
        if !service.is_empty() {
            service.answered(&key(plan, target));
        }
    }

    /// Forgets everything that this process knows: after a server was changed. What is kept in a file stays there.
    pub fn forget(&self) {
        self.known().clear();
        self.service().clear();
    }

    /// Returns the number of observations, including outdated ones.
    pub fn len(&self) -> usize {
        self.known().len()
    }

    /// Returns whether there is no observation.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.0.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Known>> {
        // Every change leaves the list whole: a panic elsewhere has not broken it.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ObservationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known().iter()).finish()
    }
}

/// A target's identity, else its name; with its place among those of the same name, where it is not the first.
fn key(plan: &Plan, target: usize) -> String {
    if let Some(identity) = plan.identity(target) {
        return identity.to_owned();
    }
    let names: Vec<&str> = plan.targets().collect();
    let name = names.get(target).copied().unwrap_or_default();
    match names.iter().take(target).filter(|other| **other == name).count() {
        0 => name.to_owned(),
        nth => format!("{name}#{nth}"),
    }
}
