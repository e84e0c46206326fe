//! The laws of lowering, on generated schemas with every keyword, for every dialect with enforcement.

use formwork_core::{Lift, LossKind, Lower as _, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::profile::{LLGUIDANCE, Limits, Maps, Profile};
use formwork_dialect::{Native, lint, lower_value};
use formwork_json::is_same;
use formwork_testkit::{any_schema, instance, schema};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::model::{allows, matcher, sample};

pub(crate) const ALL: [Native; 14] = [
    Native::OPENAI,
    Native::ANTHROPIC,
    Native::GEMINI,
    Native::GEMINI_OPENAPI,
    Native::AZURE,
    Native::MISTRAL,
    Native::GROQ,
    Native::XAI,
    Native::COHERE,
    Native::XGRAMMAR,
    Native::LLAMA_CPP,
    Native::OLLAMA,
    Native::LLGUIDANCE,
    Native::new(&NARROW),
];

/// A dialect that takes one optional member and one union: the rest comes as lists.
static NARROW: Profile = Profile {
    name: "narrow",
    maps: Maps::Pairs,
    limits: Some(Limits { optional: 1, unions: 1, ..Limits::NONE }),
    ..LLGUIDANCE
};

fn lowered(dialect: &Native, schema: &Value, tighten: Tighten) -> Option<Lowered> {
    let refused = match dialect.lower(&LowerRequest::new(schema).with_tighten(tighten)) {
        Ok(lowered) => return Some(lowered),
        Err(refused) => refused,
    };
    let is_right = refused.message == "no value satisfies it" || is_too_large(dialect, schema, tighten);
    assert!(is_right, "{refused}: {schema}");
    None
}

/// Returns whether a schema exceeds the limits of a dialect, so that the model gets another mode.
fn is_too_large(dialect: &Native, schema: &Value, tighten: Tighten) -> bool {
    let refused = dialect.lower(&LowerRequest::new(schema).with_tighten(tighten)).err();
    let counts = ["optional properties", "unions", "properties", "listed values"];
    ["anthropic", "azure", "narrow"].contains(&dialect.name())
        && refused.is_some_and(|refused| counts.iter().any(|what| refused.message.contains(what)))
}

fn any_kind_of_schema() -> impl Strategy<Value = Value> {
    prop_oneof![1 => schema(), 3 => any_schema()]
}

/// Returns a few documents that satisfy a schema; fewer if that is hard.
fn documents(schema: &Value, seed: &[u8; 32], count: usize) -> Vec<Value> {
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

/// Returns whether a loss is looser enforcement.
fn is_looser(lowered: &Lowered) -> bool {
    lowered.losses.iter().any(|loss| loss.kind != LossKind::Tightened)
}

/// Returns whether `part` is `whole` without some members of objects.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_part(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_part(a, b)))
        }
        (a, b) => is_same(a, b),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// No valid document is lost: without tightening every document round-trips, and closing only removes members that
    /// closed objects do not name.
    #[test]
    fn every_valid_document_can_be_given(schema in any_kind_of_schema(), seed in any::<[u8; 32]>()) {
        for document in documents(&schema, &seed, 2) {
            for dialect in ALL {
                for tighten in [Tighten::None, Tighten::Closed] {
                    let lowered = lowered(&dialect, &schema, tighten);
                    if lowered.is_none() && is_too_large(&dialect, &schema, tighten) {
                        continue;
                    }
                    prop_assert!(lowered.is_some(), "{dialect:?} refuses {schema}, which {document} satisfies");
                    let Some(lowered) = lowered else { continue };
                    let sent = lowered.schema.as_ref().unwrap();
                    let answer = lower_value(&document, &lowered);
                    prop_assert!(answer.is_some(), "{dialect:?} {tighten:?}: {document} cannot be given by {sent} for {schema}");
                    let Some(answer) = answer else { continue };
                    prop_assert!(
                        formwork_schema::compile(sent).unwrap().is_valid(&answer),
                        "{dialect:?} {tighten:?}: {answer} is not allowed by {sent} for {schema}"
                    );
                    let (back, problems) = lift(answer.clone(), &lowered);
                    prop_assert!(problems.is_empty(), "{problems:?}");
                    if tighten == Tighten::None {
                        prop_assert!(is_same(&back, &document), "{dialect:?}: {document} as {answer} comes back as {back} for {schema}");
                    } else {
                        prop_assert!(is_part(&back, &document), "{dialect:?}: {document} as {answer} comes back as {back} for {schema}");
                        let was_closed = lowered.losses.iter().any(|loss| loss.kind == LossKind::Tightened);
                        prop_assert!(was_closed || is_same(&back, &document), "{dialect:?}: {back} of {document}, and no loss says so");
                        let mut acts = lowered.losses.iter().filter(|loss| loss.kind == LossKind::Tightened);
                        let only_closed = acts.all(|loss| loss.keyword == "additionalProperties");
                        prop_assert!(only_closed, "{dialect:?}: {:?}", lowered.losses);
                    }
                    if dialect.name() == "llguidance" {
                        let allowed = allows(sent, &answer);
                        prop_assert_eq!(allowed.clone(), Ok(true), "{} by {} for {}", answer, sent, schema);
                    }
                }
            }
        }
    }

    /// No invalid answer goes unreported: an answer of the lowered schema lifts to a valid document, or the report
    /// names a loosely enforced keyword, or the answer cannot be lifted, which is a violation.
    #[test]
    fn every_answer_is_valid_or_a_loss_says_why(schema in any_kind_of_schema(), seed in any::<[u8; 32]>()) {
        let original = formwork_schema::compile(&schema).unwrap();
        for dialect in ALL {
            let Some(lowered) = lowered(&dialect, &schema, Tighten::Closed) else { continue };
            let sent = lowered.schema.as_ref().unwrap();
            for answer in documents(sent, &seed, 2) {
                let (value, problems) = lift(answer.clone(), &lowered);
                prop_assert!(
                    !problems.is_empty() || is_looser(&lowered) || original.is_valid(&value),
                    "{dialect:?}: {answer} is allowed by {sent} and means {value}, which {schema} does not allow"
                );
            }
        }
    }

    /// The linter of each dialect has no findings about its own lowering, llguidance accepts its own, the report points
    /// into the schema, and equal requests have equal results.
    #[test]
    fn lowered_schemas_are_in_the_dialect(schema in any_kind_of_schema(), which in 0_usize..3) {
        for dialect in ALL {
            let tighten = [Tighten::None, Tighten::Closed, Tighten::Bounded][which];
            let Some(lowered) = lowered(&dialect, &schema, tighten) else { continue };
            let sent = lowered.schema.as_ref().unwrap();
            prop_assert_eq!(lint(dialect.name(), sent), vec![], "{:?} {} as {}", dialect, schema, sent);
            for loss in &lowered.losses {
                prop_assert!(schema.pointer(&loss.pointer).is_some(), "{loss} in {schema}");
            }
            prop_assert!(sent.to_string().len() <= 12 * schema.to_string().len() + 2000, "{} from {}", sent, schema);
            if dialect.name() == "llguidance" {
                let refused = matcher(sent).err().filter(|error| !patterns_exclude_each_other(error, &schema));
                prop_assert!(refused.is_none(), "{refused:?} in {sent} for {schema}");
            }
            prop_assert_eq!(dialect.lower(&LowerRequest::new(&schema).with_tighten(tighten)), Ok(lowered));
        }
    }

    /// Bounds are never below those of the schema, and an answer that is full at one counts as incomplete.
    #[test]
    fn bounds_leave_room_for_the_shortest_document(schema in any_kind_of_schema(), seed in any::<[u8; 32]>(), max_tokens in 32_u32..2000) {
        for dialect in ALL {
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
