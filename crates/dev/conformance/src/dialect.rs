//! The laws of lowering.

use formwork_core::keywords::parts_mut;
use formwork_core::{ABSENT, Absent, LossKind, LowerRequest, Lowered, Refused, Tighten, lift};
use formwork_dialect::{Dialect, lower_value};
use formwork_json::is_same;
use formwork_testkit::{any_schema, instance, schema};
use proptest::prelude::{Strategy as _, any, prop_oneof};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::Value;

/// The number of generated schemas, where the environment sets no other number of cases (`PROPTEST_CASES`).
const CASES: u32 = 96;

/// Checks the laws of lowering for a dialect, on generated schemas with every keyword, half of them with members that a text may lack
/// ([`Absent`]):
///
/// - No valid document is lost: it can be written in the lowered schema, and lifts to itself, without the members that closed objects do
///   not name.
/// - No invalid answer goes unreported: an answer that satisfies the lowered schema lifts to a valid document, or cannot be lifted, or
///   a loss reports looser enforcement.
/// - The dialect's own lint finds nothing in a lowered schema, losses point into the original schema, equal requests have equal
///   results, and the size is linear.
/// - A schema is refused only with the message `no value satisfies it`, or for a limit of the dialect, which the message names with
///   its number.
///
/// # Errors
/// The violated law, with the smallest schema that was found for it.
///
/// ```no_run
/// formwork_conformance::dialect(&formwork_dialect::Native::LLAMA_CPP)?;
/// # Ok::<(), String>(())
/// ```
pub fn dialect(dialect: &dyn Dialect) -> Result<(), String> {
    dialects([dialect])
}

/// Checks the laws of lowering for several dialects on the same schemas, which takes less time; see [`dialect()`].
///
/// # Errors
/// The errors of [`dialect()`].
pub fn dialects<'d>(dialects: impl IntoIterator<Item = &'d dyn Dialect>) -> Result<(), String> {
    let dialects: Vec<&dyn Dialect> = dialects.into_iter().collect();
    let config = Config::default();
    let cases = std::env::var_os("PROPTEST_CASES").map_or(CASES, |_| config.cases);
    let config = Config { cases, failure_persistence: None, ..config };
    let cases = (prop_oneof![1 => schema(), 3 => any_schema()], 0..4_usize, any::<[u8; 32]>());
    let checked = TestRunner::new(config).run(&cases, |(mut schema, marks, seed)| {
        match marks {
            0 => Absent::All.declare(&mut schema),
            1 => mark_members(&mut schema),
            _ => {}
        }
        let documents = documents(&schema, &seed);
        let all = dialects.iter().try_for_each(|dialect| laws(*dialect, &schema, &documents, &seed));
        all.map_err(TestCaseError::fail)
    });
    checked.map_err(|error| error.to_string())
}

/// Marks every member as one that a text may lack.
fn mark_members(schema: &mut Value) {
    parts_mut(schema).for_each(mark_members);
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    for member in members.into_iter().flatten().filter_map(|(_, member)| member.as_object_mut()) {
        member.insert(ABSENT.to_owned(), Value::Bool(true));
    }
}

/// Returns a few documents that satisfy a schema; fewer if that is hard.
fn documents(schema: &Value, seed: &[u8; 32]) -> Vec<Value> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, seed);
    let mut runner = TestRunner::new_with_rng(Config { max_local_rejects: 300, ..Config::default() }, rng);
    let strategy = instance(schema);
    (0..2).map_while(|_| Some(strategy.new_tree(&mut runner).ok()?.current())).collect()
}

fn laws(dialect: &dyn Dialect, schema: &Value, documents: &[Value], seed: &[u8; 32]) -> Result<(), String> {
    for tighten in [Tighten::None, Tighten::Closed, Tighten::Bounded] {
        let lower = || dialect.lower(&LowerRequest::new(schema).with_tighten(tighten));
        let result = lower();
        let place = format!("{} ({tighten:?}) of {schema}", dialect.name());
        ensure(result == lower(), || format!("{place}: equal requests have different results"))?;
        let lowered = match result {
            Ok(lowered) => lowered,
            Err(refused) => {
                refusal(&refused, documents).map_err(|why| format!("{place}: {why}"))?;
                continue;
            }
        };
        let judged = written(dialect, schema, &lowered).and_then(|()| match tighten {
            Tighten::Bounded => Ok(()),
            _ => documents.iter().try_for_each(|document| survives(document, &lowered, tighten)),
        });
        let judged = judged.and_then(|()| match tighten {
            Tighten::Closed => answers(schema, &lowered, seed),
            _ => Ok(()),
        });
        judged.map_err(|why| format!("{place}: {why}"))?;
    }
    Ok(())
}

fn refusal(refused: &Refused, documents: &[Value]) -> Result<(), String> {
    let is_unsatisfiable = refused.message == "no value satisfies it" && documents.is_empty();
    let names_limit = refused.message.contains(|letter: char| letter.is_ascii_digit());
    ensure(is_unsatisfiable || names_limit, || {
        format!("{refused}; documents that satisfy the schema: {documents:?}")
    })
}

/// Checks the lowered schema and the report.
fn written(dialect: &dyn Dialect, schema: &Value, lowered: &Lowered) -> Result<(), String> {
    for loss in &lowered.losses {
        ensure(schema.pointer(&loss.pointer).is_some(), || format!("{loss} points nowhere"))?;
    }
    let Some(sent) = &lowered.schema else { return Ok(()) };
    let findings = dialect.lint(sent);
    ensure(findings.is_empty(), || format!("{sent} has findings: {findings:?}"))?;
    let (length, original) = (sent.to_string().len(), schema.to_string().len());
    ensure(length <= 12 * original + 2000, || format!("{original} bytes become {length}: {sent}"))
}

/// Checks that a valid document can be given as an answer and lifts to itself.
fn survives(document: &Value, lowered: &Lowered, tighten: Tighten) -> Result<(), String> {
    // Without a schema every answer can be given.
    let Some(sent) = &lowered.schema else { return Ok(()) };
    let answer =
        lower_value(document, lowered).ok_or_else(|| format!("{document} cannot be given by {sent}"))?;
    ensure(is_valid(sent, &answer)?, || format!("{answer} of {document} is not allowed by {sent}"))?;
    let (back, problems) = lift(answer.clone(), lowered);
    ensure(problems.is_empty(), || format!("{answer} of {document} cannot be lifted: {problems:?}"))?;
    if is_same(&back, document) {
        return Ok(());
    }
    let mut acts = lowered.losses.iter().filter(|loss| loss.kind == LossKind::Tightened).peekable();
    let is_closed = acts.peek().is_some() && acts.all(|loss| loss.keyword == "additionalProperties");
    let is_reported = tighten == Tighten::Closed && is_closed && is_part(&back, document);
    ensure(is_reported, || format!("{document} as {answer} comes back as {back}: {:?}", lowered.losses))
}

/// Checks that answers of the lowered schema mean valid documents, or that a loss or a violation says why not.
fn answers(schema: &Value, lowered: &Lowered, seed: &[u8; 32]) -> Result<(), String> {
    let is_looser = lowered.losses.iter().any(|loss| loss.kind != LossKind::Tightened);
    let Some(sent) = lowered.schema.as_ref().filter(|_| !is_looser) else { return Ok(()) };
    for answer in documents(sent, seed) {
        let (value, problems) = lift(answer.clone(), lowered);
        ensure(!problems.is_empty() || is_valid(schema, &value)?, || {
            format!("{answer} is allowed by {sent} and means {value}, which is invalid, and no loss says so")
        })?;
    }
    Ok(())
}

fn is_valid(schema: &Value, document: &Value) -> Result<bool, String> {
    let compiled = formwork_schema::compile(schema).map_err(|error| error.to_string())?;
    Ok(compiled.is_valid(document))
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

pub(crate) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
