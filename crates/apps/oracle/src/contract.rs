use std::sync::Arc;

use formwork_core::{Contract, Error, ErrorKind, Inline, Schema};

use crate::order::breakdown_first;
use crate::{AI_RESPONSE_SCHEMA, AiScore, CrossCheck, SCHEMA_NAME};

/// Returns the contract of every answer, whether a model, the fallback or an example gave it: the schema, the type and
/// the cross-check.
///
/// ```
/// use formwork_core::Context;
/// use formwork_oracle::{CrossCheck, contract};
/// use serde_json::json;
///
/// let answer = json!({
///     "score": 1001,
///     "scoreBreakdown": {"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40},
///     "reasoning": "short", "risk_factors": [], "strengths": ["age"]
/// });
/// let judgement = contract(&CrossCheck::default())?.judge(&answer, &Context::EMPTY);
/// let paths: Vec<_> = judgement.violations.iter().map(|violation| violation.path.to_string()).collect();
/// assert_eq!(paths, ["$.score", "$.reasoning"]);
/// # Ok::<(), formwork_core::Error>(())
/// ```
///
/// # Errors
/// None in practice: the schema is part of this crate.
pub fn contract(check: &CrossCheck) -> Result<Contract, Error> {
    // Models generate the members in the order of the schema. The order changes no verdict, so the exported schema keeps the
    // order of the specification.
    let mut document = AI_RESPONSE_SCHEMA.clone();
    if let Some(properties) = document["properties"].as_object_mut() {
        breakdown_first(properties);
    }
    let schema: Arc<dyn Schema> = Arc::new(Inline::new(SCHEMA_NAME, document));
    let contract = formwork_schema::contract_for(schema)
        .map_err(|error| Error::new(ErrorKind::Schema, error.to_string()))?;
    Ok(contract.with_type::<AiScore>().with_rule(check.rule()))
}
