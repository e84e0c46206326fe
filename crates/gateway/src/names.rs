//! The names that clients may ask for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use formwork::providers::{Protocol as RawProtocol, Raw};
use formwork_core::Time;
use formwork_extract::{Backend, Rotation};
use formwork_schema::nearest;

use crate::problem::{Kind, Problem};

/// A target that clients may ask for by its name.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) backend: Backend,
    pub(crate) raw: Option<Raw>,
    pub(crate) model: String,
    /// The time of the last answer to a request that is no run, in milliseconds since 1970; 0 before the first.
    answered: Arc<AtomicU64>,
}

impl Target {
    /// Returns the target that this provider is, under the name of the backend. `raw` is its server, for requests that are
    /// passed through in the server's own protocol; `model` is the model for records.
    pub fn new(backend: Backend, raw: Option<Raw>, model: impl Into<String>) -> Self {
        Self { backend, raw, model: model.into(), answered: Arc::default() }
    }

    /// Notes an answer to a request that is no run.
    pub(crate) fn has_answered(&self, at: Time) {
        self.answered.store(at.0, Ordering::Relaxed);
    }

    /// Returns the time of the last answer to a request that is no run.
    pub(crate) fn answered(&self) -> Time {
        Time(self.answered.load(Ordering::Relaxed))
    }

    pub(crate) fn name(&self) -> &str {
        self.backend.name()
    }

    /// Returns its address and model, or its name where these are not known.
    pub(crate) fn identity(&self) -> &str {
        self.backend.identity().unwrap_or_else(|| self.name())
    }

    /// Returns its server, if that has this protocol.
    pub(crate) fn raw(&self, protocol: RawProtocol) -> Option<&Raw> {
        self.raw.as_ref().filter(|raw| raw.protocol == protocol)
    }
}

/// The name of the list of targets that the configuration asks by default.
pub(crate) const DEFAULT: &str = "default";

/// All targets, and the aliases of lists of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    targets: Vec<Target>,
    aliases: BTreeMap<String, Alias>,
}

/// A list of targets under one name.
#[derive(Debug, Clone)]
struct Alias {
    targets: Vec<usize>,
    /// The rotation that chooses the first target (default: always the first in the list).
    rotation: Option<Rotation>,
}

impl Names {
    pub(crate) fn add(&mut self, target: Target) {
        self.targets.push(target);
    }

    /// Adds an alias; names that do not exist are left out.
    pub(crate) fn alias(&mut self, name: &str, meant: &[String]) {
        let targets = meant.iter().filter_map(|name| self.position(name)).collect();
        self.aliases.insert(name.to_owned(), Alias { targets, rotation: None });
    }

    /// Adds an alias whose targets are asked first in turns, as often as their weights say; names that do not exist are left out.
    pub(crate) fn weighted(&mut self, name: &str, meant: &[(String, u32)]) {
        let known = meant.iter().filter_map(|(name, weight)| Some((self.position(name)?, *weight)));
        let (targets, weights): (Vec<usize>, Vec<u32>) = known.unzip();
        let rotation = Some(Rotation::weighted(&weights));
        self.aliases.insert(name.to_owned(), Alias { targets, rotation });
    }

    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Returns every name, targets first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> + Clone {
        let targets = self.targets.iter().map(Target::name);
        targets.chain(self.aliases.keys().map(String::as_str))
    }

    /// Returns a name without the `:latest` that Ollama's clients add to it.
    pub(crate) fn plain<'n>(&self, name: &'n str) -> &'n str {
        let is_known = self.position(name).is_some() || self.aliases.contains_key(name);
        name.strip_suffix(":latest").filter(|_| !is_known).unwrap_or(name)
    }

    /// Returns the names of the targets that an alias stands for; `None` for other names and for an alias of nothing.
    pub(crate) fn meant(&self, name: &str) -> Option<impl Iterator<Item = &str>> {
        let alias = self.aliases.get(name).filter(|alias| !alias.targets.is_empty())?;
        Some(alias.targets.iter().filter_map(|nth| self.targets.get(*nth)).map(Target::name))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.targets.iter().position(|target| target.name() == name)
    }

    /// Returns the targets that a name means, in the order in which the next request asks them: a target, an alias, or several of
    /// them with commas between. Ollama's clients add `:latest` to names without a tag.
    ///
    /// # Errors
    /// [`Kind::UnknownModel`] with the names that there are.
    pub(crate) fn resolve(&self, model: &str) -> Result<Vec<usize>, Problem> {
        self.find(model, Alias::next)
    }

    /// Checks that there is a name, without a request.
    ///
    /// # Errors
    /// Returns the errors of [`resolve`](Self::resolve).
    pub(crate) fn check(&self, model: &str) -> Result<(), Problem> {
        self.find(model, |alias| alias.targets.clone()).map(drop)
    }

    fn find(&self, model: &str, order: impl Fn(&Alias) -> Vec<usize>) -> Result<Vec<usize>, Problem> {
        let mut found = Vec::new();
        for name in model.split(',').map(str::trim) {
            let plain = self.plain(name);
            let meant =
                self.position(plain).map(|one| vec![one]).or_else(|| self.aliases.get(plain).map(&order));
            for target in meant.ok_or_else(|| self.unknown(name, |_| true))? {
                if !found.contains(&target) {
                    found.push(target);
                }
            }
        }
        Ok(found)
    }

    /// Returns the problem of a name that does not exist, with the names that do and are shown.
    pub(crate) fn unknown(&self, name: &str, is_shown: impl Fn(&str) -> bool) -> Problem {
        let name: String = name.chars().take(100).collect();
        let meant = nearest(&name, self.all().filter(|other| is_shown(other)));
        let meant = meant.map(|meant| format!(": did you mean `{meant}`?")).unwrap_or_default();
        let names: Vec<_> = self.all().filter(|other| is_shown(other)).collect();
        let message = format!("there is no model `{name}`{meant} There are: {}", names.join(", "));
        let mut message =
            if meant.is_empty() { message.replacen(" There are", "; there are", 1) } else { message };
        message.push_str(
            " (a provider is served if `targets`, a list or an alias of the configuration names it)",
        );
        Problem { param: Some("model".to_owned()), ..Problem::new(Kind::UnknownModel, message) }
    }
}

impl Alias {
    /// Returns the targets in the order of the next request: the others stay behind the first in their order, as its backups.
    fn next(&self) -> Vec<usize> {
        let mut targets = self.targets.clone();
        if let Some(rotation) = &self.rotation {
            let first = rotation.take_turn().min(targets.len().saturating_sub(1));
            if let Some(first) = targets.get_mut(..=first) {
                first.rotate_right(1);
            }
        }
        targets
    }
}
