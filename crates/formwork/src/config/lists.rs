use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list of targets, and the order of their use.
///
/// ```
/// use formwork::config::{TargetList, TargetOrder};
///
/// let list = TargetList {
///     targets: vec!["primary".into(), "backup".into()],
///     order: Some(TargetOrder::RoundRobin),
///     weights: None,
/// };
/// assert_eq!(list.weights(), Some(vec![1, 1]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetList {
    /// The names of providers in `[providers]`, in order. If a provider fails, the next one is used.
    #[schemars(length(min = 1))]
    pub targets: Vec<String>,
    /// The choice of the first target of each input (default: `in-order`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<TargetOrder>,
    /// The share of inputs that start with each target, one number per target (default: equal shares, if they take turns). 0: only a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<u32>>,
}

/// The choice of the first target of each input.
///
/// ```
/// use formwork::config::TargetOrder;
///
/// let order: TargetOrder = serde_json::from_str("\"round-robin\"")?;
/// assert_eq!(order, TargetOrder::RoundRobin);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetOrder {
    /// Inputs start with the first target; the others are backups.
    InOrder,
    /// Inputs start with the targets in turn; the others are backups.
    RoundRobin,
}

impl TargetList {
    /// Returns the weight of each target as the first one; `None` if every input starts with the first target.
    pub fn weights(&self) -> Option<Vec<u32>> {
        match (self.order, &self.weights) {
            (_, Some(weights)) => Some(weights.clone()),
            (Some(TargetOrder::RoundRobin), None) => Some(vec![1; self.targets.len()]),
            (None | Some(TargetOrder::InOrder), None) => None,
        }
    }

    /// Returns the error of the list that does not depend on the providers, if any.
    pub(super) fn problem(&self) -> Option<String> {
        if self.targets.is_empty() {
            return Some("`targets` is empty: name the providers, in order".to_owned());
        }
        let repeated = |(at, name): &(usize, &String)| self.targets[..*at].contains(name);
        if let Some((_, name)) = self.targets.iter().enumerate().find(repeated) {
            return Some(format!(
                "`targets` names `{name}` twice: `weights` and `retries` give a target a larger share"
            ));
        }
        let weights = self.weights.as_ref()?;
        if self.order == Some(TargetOrder::InOrder) {
            return Some("`weights` and `order = \"in-order\"` exclude each other".to_owned());
        }
        if weights.len() != self.targets.len() {
            let (weights, targets) = (weights.len(), self.targets.len());
            return Some(format!(
                "`weights` has one number per target: {targets} targets, {weights} weights"
            ));
        }
        weights
            .iter()
            .all(|weight| *weight == 0)
            .then(|| "`weights` has only zeros: at least one target needs a weight above 0".to_owned())
    }
}

/// The lists of a file, by name.
pub(super) type Lists = BTreeMap<String, TargetList>;

/// The aliases of a file: names of providers, lists or models.
pub(super) type Aliases = BTreeMap<String, String>;
