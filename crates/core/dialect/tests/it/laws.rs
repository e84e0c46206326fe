//! The laws of lowering, on generated schemas with every keyword, for every dialect with enforcement.

use std::collections::BTreeSet;
use std::sync::Arc;

use formwork_core::{Enforcement, Lift, Lower as _, LowerRequest, Size, Tighten, lift};
use formwork_dialect::profile::{LLGUIDANCE, Limits, Maps, Profile};
use formwork_dialect::{Dialect, Dialects, Native, lower_value};
use formwork_testkit::{any_schema, each, instance, schema};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::model::{allows, matcher, sample};

/// Returns the dialects of this crate that enforce schemas, and one that takes nearly nothing.
pub(crate) fn all() -> Vec<Arc<dyn Dialect>> {
    let builtin = Dialects::builtin();
    let native = builtin.iter().filter(|dialect| dialect.enforcement() == Enforcement::Schema).cloned();
    native.chain([Arc::new(Native::new(&NARROW)) as Arc<dyn Dialect>]).collect()
}

/// A dialect that takes one optional member and one union: the rest comes as lists.
static NARROW: Profile = {
    let mut narrow = LLGUIDANCE.named("narrow", "nearly nothing");
    narrow.maps = Maps::Pairs;
    narrow.limits = Some(Limits { optional: 1, unions: 1, ..Limits::NONE });
    narrow
};

/// Every dialect of the table passes what a dialect from outside has to pass.
#[test]
fn every_dialect_keeps_the_laws_of_lowering() {
    let (builtin, narrow) = (Dialects::builtin(), Native::new(&NARROW));
    let all = builtin.iter().map(|dialect| &**dialect).chain([&narrow as &dyn Dialect]);
    let all: Vec<&dyn Dialect> = all.collect();
    let halves = all.chunks(all.len().div_ceil(2));
    each(halves, |half| assert_eq!(formwork_conformance::dialects(half.iter().copied()), Ok(())));
}

fn any_kind_of_schema() -> impl Strategy<Value = Value> {
    prop_oneof![1 => schema(), 3 => any_schema()]
}

/// Returns a few documents that satisfy a schema; fewer if that is hard.
pub(crate) fn documents(schema: &Value, seed: &[u8; 32], count: usize) -> Vec<Value> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, seed);
    let config = Config { max_local_rejects: 300, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = instance(schema);
    (0..count).map_while(|_| Some(strategy.new_tree(&mut runner).ok()?.current())).collect()
}

/// Returns whether the engine found no text for combined patterns, and there is no document either, or whether it gave
/// up. Only the engine can decide that.
fn patterns_exclude_each_other(error: &str, schema: &Value) -> bool {
    let has_several = schema.to_string().matches("\"pattern\"").count() > 1;
    let gave_up = error.contains("Unable to determine if regex is empty");
    has_several && (gave_up || error.contains("nsatisfiable") && documents(schema, &[7; 32], 3).is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// llguidance accepts the schemas that are lowered for it, and allows every valid document.
    #[test]
    fn llguidance_takes_its_own_schemas_and_their_documents(schema in any_kind_of_schema(), seed in any::<[u8; 32]>()) {
        for tighten in [Tighten::None, Tighten::Closed, Tighten::Bounded] {
            let request = LowerRequest::new(&schema).with_tighten(tighten);
            let Ok(lowered) = Native::LLGUIDANCE.lower(&request) else { continue };
            let sent = lowered.schema.as_ref().unwrap();
            let refused = matcher(sent).err().filter(|error| !patterns_exclude_each_other(error, &schema));
            prop_assert!(refused.is_none(), "{refused:?} in {sent} for {schema}");
            if tighten == Tighten::Bounded {
                continue;
            }
            for document in documents(&schema, &seed, 2) {
                let answer = lower_value(&document, &lowered).unwrap();
                prop_assert_eq!(allows(sent, &answer), Ok(true), "{} by {} for {}", answer, sent, schema);
            }
        }
    }

    /// Bounds change no number and describe no length, and they are never below the lengths that were seen in a complete document.
    #[test]
    fn bounds_leave_numbers_and_descriptions_alone_and_exceed_what_was_seen(
        schema in any_kind_of_schema(), items in 0_u64..60, text in 0_u64..400, max_tokens in 32_u32..2000,
    ) {
        for dialect in all() {
            let request = LowerRequest::new(&schema).with_max_tokens(Some(max_tokens));
            let seen = Size { items, text, name: text };
            let with_bounds = request.with_tighten(Tighten::Bounded).with_at_least(seen);
            let request = LowerRequest::new(&schema).with_max_tokens(Some(max_tokens));
            let (Ok(plain), Ok(lowered)) = (dialect.lower(&request), dialect.lower(&with_bounds)) else { continue };
            let (Some(sent), Some(plain)) = (&lowered.schema, &plain.schema) else { continue };
            let said = |schema: &Value| {
                let mut said = BTreeSet::new();
                formwork_core::keywords::find(schema, |node| {
                    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "description"] {
                        said.extend(node.get(keyword).map(|value| format!("{keyword} {value}")));
                    }
                    false
                });
                said
            };
            let (of_bounded, of_plain) = (said(sent), said(plain));
            let added: Vec<_> = of_bounded.difference(&of_plain).collect();
            prop_assert!(added.is_empty(), "{added:?} by {} in {sent} for {schema}", dialect.name());
            for bound in &lowered.bounds {
                let Some(node) = sent.pointer(&bound.at) else { continue };
                let is_text = node.get("maxLength").is_some_and(|max| *max == bound.max);
                let least = if is_text { text } else { items };
                prop_assert!(bound.max >= least, "{} of {node} for {schema}", bound.max);
            }
        }
    }

    /// Bounds are never below those of the schema, and an answer that is full at one counts as incomplete.
    #[test]
    fn bounds_leave_room_for_the_shortest_document(schema in any_kind_of_schema(), seed in any::<[u8; 32]>(), max_tokens in 32_u32..2000) {
        for dialect in all() {
            let request = LowerRequest::new(&schema).with_tighten(Tighten::Bounded).with_max_tokens(Some(max_tokens));
            let Ok(lowered) = dialect.lower(&request) else { continue };
            let sent = lowered.schema.as_ref().unwrap();
            for bound in &lowered.bounds {
                let node = sent.pointer(&bound.at);
                prop_assert!(node.is_some(), "{} in {sent}", bound.at);
                let Some(node) = node else { continue };
                for keyword in ["minItems", "minLength", "minProperties"] {
                    prop_assert!(node[keyword].as_u64().is_none_or(|min| min <= bound.max), "{node}");
                }
            }
            let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
            let draw = |below: usize| rng.next_u32() as usize % below;
            // llguidance also reads the schemas of the other dialects, as JSON Schema.
            let answer = match sample(sent, draw) {
                Ok(answer) => answer,
                Err(error) if patterns_exclude_each_other(&error, &schema) => continue,
                Err(error) => return Err(TestCaseError::fail(format!("{schema} as {sent}: {error}"))),
            };
            let (_, problems) = lift(answer.clone(), &lowered);
            let can_fail = lowered.lift.iter().any(|op| {
                matches!(
                    op.lift,
                    Lift::ParseJson
                        | Lift::Leaves
                        | Lift::PairsToMap
                        | Lift::Spread(_)
                        | Lift::Tuple { .. }
                        | Lift::Unlist(_)
                        | Lift::Choice { .. }
                )
            });
            let is_full = problems.iter().all(|problem| problem.rule == "truncated");
            prop_assert!(is_full || can_fail, "{problems:?} in {answer}");
        }
    }
}
