mod file;
mod known;
mod service;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use formwork_core::{Enforcement, Fault, Observation, ObservationKind, Plan, SamplingParameter, Time};

use file::File;
use known::{Known, What};
use service::Service;

/// The lifetime of an observation. Observations expire because servers are upgraded and routers select other servers. An
/// outdated observation costs one rejected call, or one answer without enforcement.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// Keeps the observations of runs about their targets, so that later runs do not repeat failed calls.
///
/// The effect of each observation, for one hour on the clock of the driver:
/// - A target that rejected a schema in a dialect does not receive this schema in this dialect.
/// - A target that ignored a schema is used in an output mode without schema enforcement.
/// - A target that rejected a sampling parameter does not receive this parameter.
/// - A target that cannot be reached, or is too busy, is skipped for a short time; see [`out_of_service`](Self::out_of_service).
///
/// A target that ran away with a schema receives this schema with [bounds](formwork_core::Tighten::Bounded), until it
/// completes a document without them. The store keeps at most 256 observations.
///
/// Clones share the same store. By default every [`Driver`](crate::Driver) and [`Extractor`](crate::Extractor) has its own store.
/// A shared store distinguishes targets by their [identity](crate::Backend::with_identity), else by their name, else by
/// their order. Therefore give two models different names with [`Backend::with_name`](crate::Backend::with_name) before they
/// share a store.
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
/// assert_eq!(extractor.extract_blocking("a text")?.calls.len(), 2);
/// assert_eq!(extractor.extract_blocking("another")?.calls.len(), 1);
/// assert_eq!(store.len(), 1);
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ObservationStore(Arc<Inner>);

#[derive(Default)]
struct Inner {
    known: Mutex<Known>,
    service: Mutex<Service>,
    file: Option<File>,
}

impl ObservationStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store that also keeps runaway targets and their schemas in a file, for later processes.
    ///
    /// The file contains only targets with an [identity](crate::Backend::with_identity). An entry expires after seven days. The
    /// file does not have to exist, and a failed read or write is only logged as a warning. Several processes
    /// can use the file at once.
    ///
    /// ```
    /// let folder = std::env::temp_dir().join("formwork-doc-observations");
    /// let store = formwork_extract::ObservationStore::with_file(folder.join("observations.jsonl"));
    /// assert!(store.is_empty());
    /// ```
    pub fn with_file(path: impl Into<PathBuf>) -> Self {
        let (file, lines) = File::open(path.into());
        let mut known = Known::default();
        for line in lines {
            known.add(line.target, What::RunsAway { schema: line.schema }, Time(0));
        }
        Self(Arc::new(Inner { known: Mutex::new(known), file: Some(file), ..Inner::default() }))
    }

    /// Returns the index of the output mode in which each target of a plan starts, for
    /// [`Run::with_start_modes`](formwork_core::Run::with_start_modes); empty if the store is empty. A driver calls this
    /// itself.
    pub fn start_modes(&self, plan: &Plan, now: Time) -> Vec<usize> {
        let known = self.known();
        if known.is_empty() {
            return Vec::new();
        }
        let starts = (0..plan.targets().count()).map(|target| {
            let key = key(plan, target);
            let is_fresh = |(_, since): &(&What, Time)| now.since(*since) < LASTS;
            let fresh = known.of(&key, plan.schema_digest()).filter(is_fresh);
            let of_it: Vec<&What> = fresh.map(|(what, _)| what).collect();
            let ignores = of_it.contains(&&What::Ignores);
            let refuses = |mode: &str| {
                of_it.iter().any(|what| matches!(what, What::Refuses { dialect, .. } if dialect == mode))
            };
            let usable = |(dialect, enforcement): (&str, Enforcement)| {
                !refuses(dialect) && (!ignores || enforcement < Enforcement::Schema)
            };
            // If every mode was rejected, the run starts in the last one.
            plan.modes(target).position(usable).unwrap_or(plan.modes(target).count())
        });
        starts.collect()
    }

    /// Returns the targets of a plan that run away with its schema, for
    /// [`Run::with_bounded`](formwork_core::Run::with_bounded). A driver calls this itself.
    pub fn bounded(&self, plan: &Plan) -> Vec<usize> {
        let known = self.known();
        let runs_away = |target: &usize| {
            let mut of_it = known.of(&key(plan, *target), plan.schema_digest());
            of_it.any(|(what, _)| matches!(what, What::RunsAway { .. }))
        };
        (0..plan.targets().count()).filter(runs_away).collect()
    }

    /// Returns the sampling parameters that targets of a plan rejected within the last hour, for
    /// [`Run::with_refused_sampling`](formwork_core::Run::with_refused_sampling). A driver calls this itself.
    pub fn refused_sampling(&self, plan: &Plan, now: Time) -> Vec<(usize, SamplingParameter)> {
        let known = self.known();
        let of_target = |target: usize| {
            let of_it = known.of(&key(plan, target), plan.schema_digest());
            of_it.filter_map(move |(what, since)| match what {
                What::RefusesSampling(parameter) if now.since(since) < LASTS => Some((target, *parameter)),
                _ => None,
            })
        };
        (0..plan.targets().count()).flat_map(of_target).collect()
    }

    /// Adds an observation of a run. A driver calls this itself.
    pub fn learn(&self, plan: &Plan, observation: &Observation, now: Time) {
        let schema = observation.schema.clone();
        let what = match observation.kind {
            ObservationKind::Refused => What::Refuses { schema, dialect: observation.dialect.clone() },
            ObservationKind::Ignored => What::Ignores,
            ObservationKind::RanAway | ObservationKind::Completed => What::RunsAway { schema },
            ObservationKind::RefusedSampling(parameter) => What::RefusesSampling(parameter),
            // Other kinds of observations have no effect on later runs.
            _ => return,
        };
        let target = key(plan, observation.target);
        let is_over = observation.kind == ObservationKind::Completed;
        let mut known = self.known();
        if is_over {
            known.remove(&target, &what);
        } else {
            known.add(target, what, now);
        }
        drop(known);
        let is_kept = matches!(observation.kind, ObservationKind::RanAway | ObservationKind::Completed);
        if let (Some(file), Some(target), true) = (&self.0.file, plan.identity(observation.target), is_kept) {
            file.note(target, &observation.schema, !is_over);
        }
    }

    /// Returns the targets of a plan that are out of service, each with the end of that time, for
    /// [`Run::with_out_of_service`](formwork_core::Run::with_out_of_service). A driver calls this itself.
    ///
    /// An unreachable target is skipped for 30 s. Each further failure doubles the time, up to 10 min. A target that is too
    /// busy is skipped for the `Retry-After` time of its response, or for 5 s.
    pub fn out_of_service(&self, plan: &Plan, now: Time) -> Vec<(usize, Time)> {
        let service = self.service();
        if service.is_empty() {
            return Vec::new();
        }
        let out = |target: usize| service.until(&key(plan, target), now).map(|until| (target, until));
        (0..plan.targets().count()).filter_map(out).collect()
    }

    /// Returns the targets that a run must skip because an earlier run found all targets of the plan unreachable. The run may
    /// try the other targets, whose time is over. Returns `None` if a target of the plan is not known to be down.
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

    /// Records that a run ended because it could not reach a target.
    pub(crate) fn gave_up(&self, plan: &Plan, target: usize) {
        self.service().gave_up(&key(plan, target));
    }

    /// Records a failed call of a target. A driver calls this itself.
    pub fn failed(&self, plan: &Plan, target: usize, fault: &Fault, now: Time) {
        self.service().failed(&key(plan, target), fault, now);
    }

    /// Records that a target answered, and is in service. A driver calls this itself.
    pub fn answered(&self, plan: &Plan, target: usize) {
        let mut service = self.service();
        if !service.is_empty() {
            service.answered(&key(plan, target));
        }
    }

    /// Removes all observations of this process, for example after a change of a server. The file is not changed.
    pub fn forget(&self) {
        self.known().clear();
        self.service().clear();
    }

    /// Returns the number of observations, including outdated ones.
    pub fn len(&self) -> usize {
        self.known().len()
    }

    /// Returns whether the store contains no observations.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.0.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // After a panic in another thread the observations are still valid; at most their count is wrong.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ObservationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known().fmt(f)
    }
}

/// Returns the identity of a target, else its name. A number is added for the second and later targets of the same name.
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
