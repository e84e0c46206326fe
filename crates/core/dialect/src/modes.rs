use std::sync::Arc;

use formwork_core::{Capabilities, Lower};

use crate::Dialects;

/// Returns the dialect of this crate with a name; [`Dialects`] also holds dialects of your own.
///
/// ```
/// assert_eq!(formwork_dialect::dialect("llguidance").unwrap().name(), "llguidance");
/// assert!(formwork_dialect::dialect("esperanto").is_none());
/// ```
pub fn dialect(name: &str) -> Option<Arc<dyn Lower>> {
    let found = Dialects::builtin().get(name).ok()?;
    Some(found)
}

/// Returns the output modes of a provider, the strictest first: the dialects of this crate that it promises, then the
/// prompt alone. [`Dialects::modes`] does the same with dialects of your own.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement};
///
/// let local = Capabilities::new(Enforcement::Schema).with_dialect("llguidance");
/// let names: Vec<_> = formwork_dialect::modes(&local).iter().map(|mode| mode.name().to_owned()).collect();
/// assert_eq!(names, ["llguidance", "prompt"]);
/// ```
pub fn modes(capabilities: &Capabilities) -> Vec<Arc<dyn Lower>> {
    Dialects::builtin().modes(capabilities)
}
