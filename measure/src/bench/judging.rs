//! Measures validation: from text to a validated, typed value, and to rendered violations.

use std::sync::Arc;

use formwork_core::{Context, Contract, Inline, Level};
use serde_json::{Value, json};

use super::measure::{Pair, pair};
use super::oracle::{FIVE_WRONG, Score, VALID, schema};
use super::report::{Goal, Row};
use crate::Failure;

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let contract = contract()?;
    let validator = validator()?;
    let typed = || typed(&contract, VALID).map(|_: Score| ());
    let plain = || plain(&validator, VALID).map(|_: Score| ());
    let rendered = || rendered(&contract, FIVE_WRONG);
    // First check that both sides have equal results, because a side that does less work is not comparable.
    if typed().is_none() || plain().is_none() || rendered().len() != 5 {
        return Err("the benchmark's documents are not judged as they should be".into());
    }
    let parsed: Value = serde_json::from_str(FIVE_WRONG).map_err(|error| error.to_string())?;
    let judged = || render(&contract, &parsed);
    let (rows, amounts) = (contract_for("rows", rows_schema())?, rows());
    let exact =
        || accepted_rows(&rows, formwork_json::read_exact(&amounts).ok().map(|document| document.value));
    let inexact = || accepted_rows(&rows, serde_json::from_str(&amounts).ok());
    if !exact() || !inexact() {
        return Err("the benchmark's rows are not judged as they should be".into());
    }
    let sides: [(&str, f64, Pair); 4] = [
        (
            "500 rows of decimals, read exactly and judged / parsed by serde_json and judged",
            1.15,
            pair(exact, inexact).await,
        ),
        ("text to judged typed value / from_str + is_valid + from_value", 1.3, pair(typed, plain).await),
        ("text to 5 rendered violations / the same", 2.0, pair(rendered, plain).await),
        ("parsed value to 5 rendered violations / the same", 2.0, pair(judged, plain).await),
    ];
    Ok(sides.iter().map(|(what, goal, pair)| Row::ratio(what, pair, Some(Goal::AtMost(*goal)))).collect())
}

/// The oracle's contract: its schema and the Rust type.
pub(super) fn contract() -> Result<Contract, String> {
    Ok(contract_for("ai_score", schema()?)?.with_type::<Score>())
}

fn contract_for(name: &str, schema: Value) -> Result<Contract, String> {
    formwork_schema::contract_for(Arc::new(Inline::new(name, schema))).map_err(|error| error.to_string())
}

/// The schema of [`rows`].
fn rows_schema() -> Value {
    json!({"type": "array", "items": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "amount": {"type": "number", "minimum": 0}, "name": {"type": "string"}},
        "required": ["id", "amount", "name"],
    }})
}

/// Returns rows with numbers of every length that a value holds exactly.
fn rows() -> String {
    let row = |n: u64| json!({"id": n * 123_456_789_012_345, "amount": n as f64 / 7.0, "name": format!("row {n}, 12.50")});
    Value::from_iter((1..=500).map(row)).to_string()
}

fn accepted_rows(contract: &Contract, rows: Option<Value>) -> bool {
    rows.is_some_and(|rows| contract.judge(&rows, &Context::EMPTY).is_accepted())
}

/// The same schema, compiled with the same crate but without Formwork.
fn validator() -> Result<jsonschema::Validator, String> {
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema()?).map_err(|error| error.to_string())
}

fn typed<T: 'static>(contract: &Contract, text: &str) -> Option<T> {
    let candidate = formwork_json::read(text, Level::Clean).ok()?.into_candidates().into_iter().next()?;
    let judgement = contract.judge(&candidate.value, &Context::EMPTY);
    if judgement.is_accepted() { judgement.into_decoded() } else { None }
}

fn plain<T: serde::de::DeserializeOwned>(validator: &jsonschema::Validator, text: &str) -> Option<T> {
    let value: Value = serde_json::from_str(text).ok()?;
    if validator.is_valid(&value) { serde_json::from_value(value).ok() } else { None }
}

fn rendered(contract: &Contract, text: &str) -> Vec<String> {
    let Ok(reading) = formwork_json::read(text, Level::Clean) else { return Vec::new() };
    reading.candidates().iter().flat_map(|candidate| render(contract, &candidate.value)).collect()
}

fn render(contract: &Contract, value: &Value) -> Vec<String> {
    let judgement = contract.judge(value, &Context::EMPTY);
    judgement.violations.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_agree_on_the_documents() {
        let (contract, validator) = (contract().unwrap(), validator().unwrap());
        assert!(typed::<Score>(&contract, VALID).is_some());
        assert!(plain::<Score>(&validator, VALID).is_some());
        assert!(plain::<Score>(&validator, FIVE_WRONG).is_none());
        assert_eq!(rendered(&contract, FIVE_WRONG).len(), 5);
    }
}
