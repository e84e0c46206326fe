//! Applies the coercions of a contract to a document with violations.

use std::collections::HashMap;

use formwork_json::{JsonPath, Places};

use super::convert::Converter;
use super::declared::Coercion;
use super::replace::replaced;
use crate::absence::settle::Settled;
use crate::rule::SourceIndex;
use crate::{Context, Contract, Stage};

/// The number of values that are visited for each value of a document and each part of its schema, at most.
const MAX_VISITS: usize = 200_000;

/// The maximum number of times that members are dropped or replaced: violations may become visible only after others are gone.
const MAX_ROUNDS: usize = 4;

impl Contract {
    /// Changes a document with violations as far as the contract permits it. `text` is the document as the model wrote it.
    pub(crate) fn coerce(
        &self,
        settled: &mut Settled,
        text: Option<&str>,
        cx: &Context<'_>,
        source: &SourceIndex,
    ) {
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
                let places = Places::find(text, &wanted);
                let raw = |path: &JsonPath| Some((path.clone(), places.value(path)?.of(text).to_owned()));
                made = convert(&wanted.iter().filter_map(raw).collect()).0;
            }
            if let Some((value, changes)) = made {
                let found = self.schema_violations(&settled.value, cx).len();
                if self.schema_violations(&value, cx).len() < found {
                    settled.value = value;
                    settled.coerced.extend(changes);
                    settled.judgement = self.judge_with(&settled.value, cx, source);
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
            let judgement = self.judge_with(&value, cx, source);
            if judgement.violations.len() + judgement.left_out >= found.len() + settled.judgement.left_out {
                break;
            }
            settled.value = value;
            settled.coerced.extend(changes);
            settled.judgement = judgement;
        }
        if let Some(text) = text.filter(|_| !settled.coerced.is_empty()) {
            // The item of a list that was made of one value is at the place of the list in the text.
            let paths: Vec<JsonPath> = settled.coerced.iter().map(|change| change.path.clone()).collect();
            let places = Places::find(text, &paths);
            for (change, path) in settled.coerced.iter_mut().zip(&paths) {
                let around = || places.value(&path.parent().unwrap_or_default());
                places.value(path).or_else(around).iter().for_each(|span| change.read_from(span.of(text)));
            }
        }
        if !settled.coerced.is_empty() {
            settled.before = before;
        }
    }
}
