mod file;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::{Advice, Evidence, Health, Plan, Restriction, Shown, Thresholds, Time};

use file::File;

/// Keeps the [`Health`] of targets for the runs of a process, and the part that must survive it in a file.
///
/// The store decides nothing: [`Health`] counts the evidence of each call and gives each run its advice, for example the output
/// mode to start in, or a target to skip.
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
/// assert_eq!(store.in_force().len(), 1);
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ObservationStore {
    inner: Arc<Inner>,
    thresholds: Thresholds,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    file: Option<File>,
}

#[derive(Debug, Default)]
struct State {
    health: Health,
    /// The evidence of the file, until it is counted.
    unread: Vec<Evidence>,
}

impl ObservationStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store that also keeps evidence in a file, for later processes: the evidence that counts against a
    /// target. A target that is out of service is skipped by later processes, too, if they have another one, until the outage ends
    /// by the clock of the system; then a run tries it again.
    ///
    /// The file contains only targets with an [identity](crate::Backend::with_identity). The file does not have to exist, and a
    /// failed read or write is only logged as a warning. Several processes can use the file at once; each reads it at its start.
    ///
    /// ```
    /// let folder = std::env::temp_dir().join("formwork-doc-observations");
    /// let store = formwork_extract::ObservationStore::with_file(folder.join("observations.jsonl"));
    /// assert!(store.in_force().is_empty());
    /// ```
    pub fn with_file(path: impl Into<PathBuf>) -> Self {
        let (file, unread) = File::open(path.into());
        let state = Mutex::new(State { unread, ..State::default() });
        Self { inner: Arc::new(Inner { state, file: Some(file) }), thresholds: Thresholds::default() }
    }

    /// Sets the thresholds of this clone (default: [`Thresholds::default`]). Other clones keep theirs.
    #[must_use]
    pub const fn with_thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// Returns the advice for the next run of a plan; see [`Health::advise`]. A driver calls this itself.
    pub fn advise(&self, plan: &Plan, now: Time, fails_fast: bool) -> Advice {
        self.state().health.advise(plan, &self.thresholds, now, fails_fast)
    }

    /// Returns whether a target ignores the schema of a plan; see [`Health::ignores`]. A driver calls this itself.
    pub fn ignores(&self, plan: &Plan, target: usize, now: Time) -> bool {
        self.state().health.ignores(plan, target, &plan.thresholds(&self.thresholds), now)
    }

    /// Records evidence of a run. A driver calls this itself.
    pub fn record(&self, plan: &Plan, evidence: &[Evidence]) {
        if evidence.is_empty() {
            return;
        }
        let thresholds = plan.thresholds(&self.thresholds);
        let mut state = self.state();
        for evidence in evidence {
            let health = &mut state.health;
            // A run of another process may reach the target that this one gave up.
            let is_own = matches!(evidence.shown, Shown::GaveUp);
            if health.record(evidence, &thresholds)
                && evidence.has_identity
                && !is_own
                && let Some(file) = &self.inner.file
            {
                file.note(evidence);
            }
        }
    }

    /// Returns the observations that are in force now, by the clock of the system.
    pub fn in_force(&self) -> Vec<Restriction> {
        self.in_force_at(file::system_time())
    }

    /// Returns the observations that are in force at a time of the driver's clock.
    pub fn in_force_at(&self, now: Time) -> Vec<Restriction> {
        self.state().health.in_force(&self.thresholds, now)
    }

    /// Removes the observations about a target, by its identity or name, or about all targets (`None`), here and in the file: for
    /// example after a change of a server.
    pub fn forget(&self, target: Option<&str>) {
        self.state().health.forget(target);
        if let Some(file) = &self.inner.file {
            file.forget(target);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic in another thread the state is still valid; at most one piece of evidence is missing.
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        for evidence in std::mem::take(&mut state.unread) {
            state.health.record(&evidence, &self.thresholds);
        }
        state
    }
}

impl fmt::Debug for ObservationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().health.fmt(f)
    }
}
