//! The answer: its types and its schema.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the schema in requests.
pub const SCHEMA_NAME: &str = "ai_score";

/// A wallet's score, given by a model or the fallback.
///
/// The names in JSON are those of the oracle's HTTP contract: `score`, `scoreBreakdown`, `reasoning`, `risk_factors`,
/// `strengths`. All are required. Other fields are accepted and dropped.
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
    /// The score, 0 to 1000: the weighted sum of the breakdown, within the tolerance of the
    /// [`CrossCheck`](crate::CrossCheck).
    #[schemars(range(min = 0, max = 1000))]
    pub score: u16,
    /// The dimensions of the score.
    #[serde(rename = "scoreBreakdown")]
    pub breakdown: ScoreBreakdown,
    /// The reasoning, 10 to 500 characters.
    #[schemars(length(min = 10, max = 500))]
    pub reasoning: String,
    /// The facts that speak against the wallet.
    pub risk_factors: Vec<String>,
    /// The facts that speak for the wallet.
    pub strengths: Vec<String>,
}

/// The five dimensions of a score, each from 0 to 100.
///
/// ```
/// use formwork_oracle::ScoreBreakdown;
///
/// let breakdown = ScoreBreakdown { activity: 80, maturity: 70, diversity: 60, risk_behavior: 51, survey_match: 40 };
/// assert_eq!(breakdown.dimensions()[3], ("riskBehavior", 51));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreBreakdown {
    /// The amount of use.
    #[schemars(range(min = 0, max = 100))]
    pub activity: u8,
    /// The duration of use.
    #[schemars(range(min = 0, max = 100))]
    pub maturity: u8,
    /// The variety of use.
    #[schemars(range(min = 0, max = 100))]
    pub diversity: u8,
    /// The prudence of use: 100 is without any risk.
    #[schemars(range(min = 0, max = 100))]
    pub risk_behavior: u8,
    /// The agreement of the owner's answers with the history.
    #[schemars(range(min = 0, max = 100))]
    pub survey_match: u8,
}

impl ScoreBreakdown {
    /// Returns the dimensions with their names in JSON, in the order of the contract.
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

/// The JSON Schema (2020-12) of every answer, including the fallback's. It is derived from [`AiScore`] and equals the
/// specification's schema keyword for keyword. Its objects are open.
pub static AI_RESPONSE_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(plain));
    settings.into_generator().into_root_schema_for::<AiScore>().to_value()
});

/// Keeps only the keywords of the specification: no descriptions, no integer formats of Rust.
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
        // Models generate the properties in the order of the schema.
        assert_eq!(
            AI_RESPONSE_SCHEMA["properties"].as_object().unwrap().keys().collect::<Vec<_>>(),
            expected["properties"].as_object().unwrap().keys().collect::<Vec<_>>()
        );
    }
}
