use std::collections::BTreeMap;

use formwork_extract::Backend;

use crate::error::advice;

/// Provides the models of skills. [`NamedBackends`] implements it; implement it for a source of your own.
///
/// ```
/// use formwork_extract::Backend;
/// use formwork_skill::Backends;
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// struct Fixed;
///
/// impl Backends for Fixed {
///     fn backends(&self, provider: Option<&str>) -> Result<Vec<Backend>, String> {
///         match provider {
///             None => Ok(vec![Arc::new(Scripted::new(["{}"])).into()]),
///             Some(name) => Err(format!("there is no provider `{name}`: leave it out")),
///         }
///     }
/// }
/// assert_eq!(Fixed.backends(None).unwrap().len(), 1);
/// ```
pub trait Backends: Send + Sync {
    /// Returns the backends of a provider, in the order of calls; without a name, the default backends.
    ///
    /// # Errors
    /// A message in one line that lists the providers, if there is none of this name.
    fn backends(&self, provider: Option<&str>) -> Result<Vec<Backend>, String>;
}

/// Backends by the name of the provider.
///
/// ```
/// use formwork_skill::{Backends, NamedBackends};
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// let backends = NamedBackends::new([Arc::new(Scripted::new(["{}"])).into()])
///     .with("fast", [Arc::new(Scripted::new(["{}"])).into()]);
/// assert_eq!(backends.backends(Some("fats")).unwrap_err(), "there is no provider `fats`: did you mean `fast`?");
/// ```
#[derive(Debug, Clone, Default)]
pub struct NamedBackends {
    default: Vec<Backend>,
    named: BTreeMap<String, Vec<Backend>>,
}

impl NamedBackends {
    /// Creates the default backends, for skills that name no provider.
    pub fn new(default: impl IntoIterator<Item = Backend>) -> Self {
        Self { default: default.into_iter().collect(), named: BTreeMap::new() }
    }

    /// Adds the backends of a provider, for skills that name it (default: none).
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, backends: impl IntoIterator<Item = Backend>) -> Self {
        self.named.insert(name.into(), backends.into_iter().collect());
        self
    }
}

impl Backends for NamedBackends {
    fn backends(&self, provider: Option<&str>) -> Result<Vec<Backend>, String> {
        let Some(name) = provider else { return Ok(self.default.clone()) };
        self.named.get(name).cloned().ok_or_else(|| {
            let advice = advice(name, self.named.keys(), ": none has a name here");
            format!("there is no provider `{name}`{advice}")
        })
    }
}
