//! The answer: its types, and the schema that it is held to.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name under which models are told the schema.
pub const SCHEMA_NAME: &str = "ai_score";

/// A wallet's score as a model gives it, and as the fallback gives it.
///
/// The names on the wire are those of the oracle's HTTP contract: `score`, `scoreBreakdown`, `reasoning`,
/// `risk_factors`, `strengths`. All are required. Further fields of an answer are accepted and not kept.
///
/// ```
/// use formwork_oracle::AiScore;
///
/// let answer: AiScore = serde_json::from_str(r#"{
///     "score": 612,
///     "scoreBreakdown": {"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40},
///     "reasoning": "Two years of steady activity.", "risk_factors": [], "strengths": ["age"]
/// }"#).unwrap();
/// assert_eq!((answer.score, answer.breakdown.risk_behavior), (612, 51));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AiScore {
    /// From 0 to 1000: the weighted sum of the breakdown, within the tolerance of the
    /// [`CrossCheck`](crate::CrossCheck).
    #[schemars(range(min = 0, max = 1000))]
    pub score: u16,
    /// The parts of the score.
    #[serde(rename = "scoreBreakdown")]
    pub breakdown: ScoreBreakdown,
    /// Why, in 10 to 500 characters.
    #[schemars(length(min = 10, max = 500))]
    pub reasoning: String,
    /// The facts that speak against the wallet.
    pub risk_factors: Vec<String>,
    /// The facts that speak for the wallet.
    pub strengths: Vec<String>,
}

/// The five dimensions of a score, each from 0 to 100.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreBreakdown {
    /// How much the wallet is used.
    #[schemars(range(min = 0, max = 100))]
    pub activity: u8,
    /// For how long it has been used.
    #[schemars(range(min = 0, max = 100))]
    pub maturity: u8,
    /// In how many ways it is used.
    #[schemars(range(min = 0, max = 100))]
    pub diversity: u8,
    /// How prudently it is used: 100 is without any risk.
    #[schemars(range(min = 0, max = 100))]
    pub risk_behavior: u8,
    /// How well the owner's answers fit what the wallet did.
    #[schemars(range(min = 0, max = 100))]
    pub survey_match: u8,
}

impl ScoreBreakdown {
    /// The dimensions with their names on the wire, in the order of the contract.
    pub const fn dimensions(&self) -> [(&'static str, u8); 5] {
        [
            ("activity", self.activity),
            ("maturity", self.maturity),
            ("diversity", self.diversity),
            ("riskBehavior", self.risk_behavior),
            ("surveyMatch", self.survey_match),
        ]
    }
}

/// The JSON Schema (2020-12) that every answer is held to, the fallback's too: made from [`AiScore`], and keyword for
/// keyword that of the oracle's specification. Its objects are open.
pub static AI_RESPONSE_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(plain));
    settings.into_generator().into_root_schema_for::<AiScore>().to_value()
});

/// Leaves the keywords of the specification alone: no words for people, no Rust widths.
fn plain(schema: &mut Schema) {
    for keyword in ["title", "description"] {
        if schema.get(keyword).is_some_and(Value::is_string) {
            schema.remove(keyword);
        }
    }
    if schema.get("format").is_some_and(|format| matches!(format.as_str(), Some("uint8" | "uint16"))) {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_schema_is_the_specifications_keyword_for_keyword() {
        let dimension = json!({"type": "integer", "minimum": 0, "maximum": 100});
        let expected = json!({
            "type": "object",
            "properties": {
                "score": {"type": "integer", "minimum": 0, "maximum": 1000},
                "scoreBreakdown": {
                    "type": "object",
                    "properties": {
                        "activity": dimension, "maturity": dimension, "diversity": dimension,
                        "riskBehavior": dimension, "surveyMatch": dimension
                    },
                    "required": ["activity", "maturity", "diversity", "riskBehavior", "surveyMatch"]
                },
                "reasoning": {"type": "string", "minLength": 10, "maxLength": 500},
                "risk_factors": {"type": "array", "items": {"type": "string"}},
                "strengths": {"type": "array", "items": {"type": "string"}}
            },
            "required": ["score", "scoreBreakdown", "reasoning", "risk_factors", "strengths"]
        });
        assert_eq!(*AI_RESPONSE_SCHEMA, expected);
        // The order of properties is the order in which a model is asked for them.
        assert_eq!(
            AI_RESPONSE_SCHEMA["properties"].as_object().unwrap().keys().collect::<Vec<_>>(),
            expected["properties"].as_object().unwrap().keys().collect::<Vec<_>>()
        );
    }
}
