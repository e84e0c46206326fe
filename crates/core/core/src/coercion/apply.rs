//! Applies the coercions of a contract to a document with violations.

use std::collections::HashMap;

use formwork_json::{JsonPath, locate_all};
use serde_json::Value;

use super::convert::Converter;
use super::declared::Coercion;
use super::replace::replaced;
use crate::absence::settle::Settled;
use crate::violation::{MAX_FOUND, cut};
use crate::{Context, Contract, Stage, Warning, WarningKind};

/// One change of a value that did not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coerced {
    /// The path of the value in the changed document; of a removed value, its path before.
    pub path: JsonPath,
    /// The value before the change as JSON, cut to a maximum length; empty if there was none.
    pub original: String,
    /// A sentence about the change, with the original text.
    pub message: String,
}

impl Coerced {
    pub(super) fn changed(path: JsonPath, from: &Value, to: &Value) -> Self {
        let (original, now) = (short(from), short(to));
        Self { path, message: format!("{original} was read as {now}"), original }
    }

    pub(super) fn removed(path: JsonPath, from: &Value, reason: &str) -> Self {
        let original = short(from);
        Self { path, message: format!("{original} {reason} and was left out"), original }
    }

    pub(super) fn added(path: JsonPath, value: &Value) -> Self {
        let message = format!("the member was missing and is {} by its schema", short(value));
        Self { path, message, original: String::new() }
    }

    pub(super) fn renamed(path: JsonPath, name: &str) -> Self {
        let original = short(&Value::from(name));
        Self { path, message: format!("the member was named {original}"), original }
    }
}

/// A change of an accepted value.
impl From<&Coerced> for Warning {
    fn from(one: &Coerced) -> Self {
        Self::new(WarningKind::Coerced, &one.message).at(one.path.clone())
    }
}

fn short(value: &Value) -> String {
    cut(&value.to_string(), MAX_FOUND).into_owned()
}

/// The number of values that are visited for each value of a document and each part of its schema, at most.
const MAX_VISITS: usize = 200_000;

/// The maximum number of times that members are dropped or replaced: violations may become visible only after others are gone.
const MAX_ROUNDS: usize = 4;

impl Contract {
    /// Changes a document with violations as far as the contract permits it. `text` is the document as the model wrote it.
    pub(crate) fn coerce(&self, settled: &mut Settled, text: Option<&str>, cx: &Context<'_>) {
        let coercions = self.coercions();
        let is_wrong = |settled: &Settled| !settled.judgement.violations.is_empty();
        if !is_wrong(settled) || !coercions.any(Coercion::converts) {
            return;
        }
        let before = settled.judgement.violations.clone();
        if before.iter().any(|violation| violation.stage == Stage::Schema) {
            let convert = |raw: &HashMap<JsonPath, String>| {
                let left = MAX_VISITS;
                let mut converter = Converter { coercions: &coercions, raw, wanted: Vec::new(), left };
                let made = converter.root(&settled.value);
                (made, converter.wanted)
            };
            let (mut made, wanted) = convert(&HashMap::new());
            if let (false, Some(text)) = (wanted.is_empty(), text) {
                let spans = locate_all(text, wanted.iter());
                let raw = wanted.iter().cloned().zip(spans);
                let raw: HashMap<JsonPath, String> =
                    raw.filter_map(|(path, span)| Some((path, span?.of(text).to_owned()))).collect();
                made = convert(&raw).0;
            }
            if let Some((value, changes)) = made {
                let found = self.schema_violations(&settled.value, cx).len();
                if self.schema_violations(&value, cx).len() < found {
                    settled.value = value;
                    settled.coerced.extend(changes);
                    settled.judgement = self.judge(&settled.value, cx);
                }
            }
        }
        let replaces = |one| matches!(one, Coercion::Drop | Coercion::Default);
        for _ in 0..MAX_ROUNDS {
            if !is_wrong(settled) || !coercions.any(replaces) {
                break;
            }
            let found = &settled.judgement.violations;
            let Some((value, changes)) = replaced(&coercions, self.structure(), &settled.value, found) else {
                break;
            };
            let judgement = self.judge(&value, cx);
            if judgement.violations.len() + judgement.left_out >= found.len() + settled.judgement.left_out {
                break;
            }
            settled.value = value;
            settled.coerced.extend(changes);
            settled.judgement = judgement;
        }
        if !settled.coerced.is_empty() {
            settled.before = before;
        }
    }
}
