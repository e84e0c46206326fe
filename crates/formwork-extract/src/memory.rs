use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use formwork_core::{Enforcement, Lesson, LessonKind, Plan, Time};

/// How long what was learnt is believed: servers are upgraded, and routers send the next call elsewhere. Being wrong
/// costs one call that is refused, or one answer that is not held to the schema.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// How many things are remembered at most; the oldest is forgotten first.
const MAX_KNOWN: usize = 256;

/// What earlier runs learnt of their targets, so that later ones do not pay for it again.
///
/// A target that refused a schema in a dialect is not asked for it in that dialect; one that ignored a schema is asked
/// without promises of any schema. Both for an hour, by the driver's clock. At most 256 things are remembered.
///
/// Clones are the same memory. Every [`Driver`](crate::Driver) and [`Extractor`](crate::Extractor) has one of its own,
/// which its clones share. One that several of them share tells targets apart by their names, those of one name by
/// their order: name two models differently, with [`Backend::with_name`](crate::Backend::with_name), before they share
/// a memory.
///
/// ```
/// use formwork_core::FaultKind;
/// use formwork_extract::{Backend, Extractor, Memory};
/// use formwork_testkit::{Reply, Scripted};
/// use std::sync::Arc;
///
/// let model = Arc::new(Scripted::new([Reply::from(FaultKind::SchemaRefused), "{}".into()]));
/// let backend = Backend::from(model)
///     .with_rung(formwork_dialect::dialect("openai").unwrap())
///     .with_rung(formwork_dialect::dialect("prompt").unwrap());
/// let memory = Memory::new();
/// let extractor = Extractor::for_document("any", serde_json::json!({"type": "object"}))
///     .with_target(backend)
///     .with_memory(memory.clone())
///     .build()?;
/// assert_eq!(extractor.extract_blocking("a text")?.attempts.len(), 2);
/// assert_eq!(extractor.extract_blocking("another")?.attempts.len(), 1);
/// assert_eq!(memory.len(), 1);
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<VecDeque<Known>>>);

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
}

impl Memory {
    /// A memory of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rungs that a run of this plan should start from, for
    /// [`Run::with_start_rungs`](formwork_core::Run::with_start_rungs). A driver does this by itself.
    pub fn start_rungs(&self, plan: &Plan, now: Time) -> Vec<usize> {
        let known = self.known();
        if known.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = plan.targets().collect();
        let starts = names.iter().enumerate().map(|(target, _)| {
            let name = unique(&names, target);
            let of_it =
                || known.iter().filter(|known| known.target == name && now.since(known.since) < LASTS);
            let ignores = of_it().any(|known| known.what == What::Ignores);
            let refuses = |asked: &str| {
                of_it().any(|known| match &known.what {
                    What::Refuses { schema, dialect } => schema == plan.schema_digest() && dialect == asked,
                    What::Ignores => false,
                })
            };
            let usable = |(dialect, enforcement): (&str, Enforcement)| {
                !refuses(dialect) && (!ignores || enforcement < Enforcement::Schema)
            };
            // Where everything was refused the last rung is what the run would come to anyway.
            plan.rungs(target).position(usable).unwrap_or(plan.rungs(target).count())
        });
        starts.collect()
    }

    /// Remembers what a run of this plan learnt. A driver does this by itself.
    pub fn learn(&self, plan: &Plan, lesson: &Lesson, now: Time) {
        let what = match lesson.kind {
            LessonKind::Refused => {
                What::Refuses { schema: lesson.schema.clone(), dialect: lesson.dialect.clone() }
            }
            LessonKind::Ignored => What::Ignores,
            // Nothing that is known here follows from it.
            _ => return,
        };
        let names: Vec<&str> = plan.targets().collect();
        let target = unique(&names, lesson.target);
        let mut known = self.known();
        known.retain(|old| !(old.target == target && old.what == what));
        if known.len() >= MAX_KNOWN {
            known.pop_front();
        }
        known.push_back(Known { target, what, since: now });
    }

    /// Forgets everything: after a server was changed.
    pub fn forget(&self) {
        self.known().clear();
    }

    /// How many things are remembered, outdated ones included.
    pub fn len(&self) -> usize {
        self.known().len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Known>> {
        // Every change leaves the list whole: a panic elsewhere has not broken it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known().iter()).finish()
    }
}

/// A target's name; with its place among those of the same name, where it is not the first.
fn unique(names: &[&str], target: usize) -> String {
    let name = names.get(target).copied().unwrap_or_default();
    match names.iter().take(target).filter(|other| **other == name).count() {
        0 => name.to_owned(),
        nth => format!("{name}#{nth}"),
    }
}
