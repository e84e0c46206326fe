use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The targets of a list, and which of them is asked first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetList {
    /// The providers that are asked, in order: the next one when one fails. Each is named in `[providers]`.
    #[schemars(length(min = 1))]
    pub targets: Vec<String>,
    /// Which target an input is sent to first (default: `in-order`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<TargetOrder>,
    /// The share of inputs that each target is asked first for, one number per target (default: equal shares, if `order` is
    /// `round-robin`). A target with 0 is a backup only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<u32>>,
}

/// Which target of a list an input is sent to first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetOrder {
    /// The first target of the list; the others are its backups.
    InOrder,
    /// The targets take turns; those behind the first one are its backups.
    RoundRobin,
}

impl TargetList {
    /// Returns how often each target is asked first, beside the others; `None` if it is always the first one.
    pub fn weights(&self) -> Option<Vec<u32>> {
        match (self.order, &self.weights) {
            (_, Some(weights)) => Some(weights.clone()),
            (Some(TargetOrder::RoundRobin), None) => Some(vec![1; self.targets.len()]),
            (None | Some(TargetOrder::InOrder), None) => None,
        }
    }

    /// Returns what is wrong with the list, whatever providers there are.
    pub(super) fn problem(&self) -> Option<String> {
        if self.targets.is_empty() {
            return Some("`targets` is empty: name the providers to ask, in order".to_owned());
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
            .then(|| "`weights` has zeros alone: no target would be asked first".to_owned())
    }
}

/// Lists by name, as a file has them.
pub(super) type Lists = BTreeMap<String, TargetList>;

/// Names for a provider, a list or a model, as a file has them.
pub(super) type Aliases = BTreeMap<String, String>;
