use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Context, Dependency, Report, Stage, Violation};

/// A cross-check as data: it validates, it narrows, and it travels in a [`Call`](crate::Call).
///
/// Narrowing is what a closure cannot do: given the values that are known, a rule says which schema makes the rest
/// right. Patches carry that schema, and a provider in this process keeps to it while decoding.
///
/// ```
/// use formwork_core::{Context, Report, Rule, Term};
/// use serde_json::json;
///
/// let rule = Rule::WeightedSum {
///     target: "$.total".parse()?,
///     terms: vec![Term { path: "$.net".parse()?, weight: 1.0 }, Term { path: "$.tax".parse()?, weight: 1.0 }],
///     tolerance: 0.5,
/// };
/// let mut report = Report::default();
/// rule.validate(&json!({"net": 10, "tax": 2, "total": 15}), &Context::EMPTY, &mut report);
/// assert_eq!(report.violations()[0].to_string(), "weightedSum at $.total: expected from 11.5 to 12.5, found 15");
/// let (path, schema) = rule.narrow(&json!({"net": 10, "tax": 2})).unwrap();
/// assert_eq!((path.to_string(), schema), ("$.total".to_string(), json!({"minimum": 11.5, "maximum": 12.5})));
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Rule {
    /// A number is the weighted sum of others, within a tolerance (inclusive, in the number's own unit).
    WeightedSum {
        /// The number.
        target: JsonPath,
        /// What it is the sum of.
        terms: Vec<Term>,
        /// The most that it may differ from the unrounded sum.
        tolerance: f64,
    },
    /// A number is not above another.
    AtMost {
        /// The number.
        target: JsonPath,
        /// The other one.
        limit: JsonPath,
    },
    /// A value is one of the items of an array.
    MemberOf {
        /// The value.
        target: JsonPath,
        /// The array.
        of: JsonPath,
    },
    /// A string stands in the text that the answer is about, letter case aside.
    Quoted {
        /// The string.
        target: JsonPath,
    },
}

/// One term of a [`Rule::WeightedSum`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// A number.
    pub path: JsonPath,
    /// What it is multiplied with.
    pub weight: f64,
}

impl Rule {
    /// The rule's name in violations.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::WeightedSum { .. } => "weightedSum",
            Self::AtMost { .. } => "atMost",
            Self::MemberOf { .. } => "memberOf",
            Self::Quoted { .. } => "quoted",
        }
    }

    /// The value that the rule constrains.
    pub const fn target(&self) -> &JsonPath {
        match self {
            Self::WeightedSum { target, .. }
            | Self::AtMost { target, .. }
            | Self::MemberOf { target, .. }
            | Self::Quoted { target } => target,
        }
    }

    /// The values that it must know to constrain the target.
    pub fn inputs(&self) -> Vec<JsonPath> {
        match self {
            Self::WeightedSum { terms, .. } => terms.iter().map(|term| term.path.clone()).collect(),
            Self::AtMost { limit, .. } => vec![limit.clone()],
            Self::MemberOf { of, .. } => vec![of.clone()],
            Self::Quoted { .. } => Vec::new(),
        }
    }

    /// All values that it looks at.
    pub fn reads(&self) -> Vec<JsonPath> {
        let mut paths = self.inputs();
        paths.push(self.target().clone());
        paths
    }

    /// The order of generation that narrowing needs, if any.
    pub fn dependency(&self) -> Option<Dependency> {
        let first = self.inputs();
        (!first.is_empty()).then(|| Dependency { first, then: self.target().clone() })
    }

    /// Reports the target if it breaks the rule. Values that are missing or of another type are the schema's business.
    pub fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        let Some(found) = self.target().get(value) else { return };
        let expected = match self {
            Self::WeightedSum { .. } | Self::AtMost { .. } => {
                let (Some(number), Some((low, high))) = (found.as_f64(), self.range(value)) else { return };
                let above = low.is_some_and(|low| number < low);
                let below = high.is_some_and(|high| number > high);
                if !above && !below {
                    return;
                }
                match (low, high) {
                    (Some(low), Some(high)) => format!("from {low} to {high}"),
                    (Some(low), None) => format!("at least {low}"),
                    (None, high) => format!("at most {}", high.unwrap_or_default()),
                }
            }
            Self::MemberOf { of, .. } => {
                let Some(items) = of.get(value).and_then(Value::as_array) else { return };
                if items.contains(found) {
                    return;
                }
                format!("one of the items of {of}")
            }
            Self::Quoted { .. } => {
                let Some(text) = found.as_str() else { return };
                if cx.source.to_lowercase().contains(&text.to_lowercase()) {
                    return;
                }
                "words of the source text".to_owned()
            }
        };
        let violation = Violation::new(self.target().clone(), self.name(), Stage::Check);
        out.push(violation.with_expected(expected).with_found(found.to_string()));
    }

    /// The schema that makes the target right, given the rest of the document; `None` if too little is known.
    pub fn narrow(&self, known: &Value) -> Option<(JsonPath, Value)> {
        let schema = match self {
            Self::WeightedSum { .. } | Self::AtMost { .. } => {
                let (low, high) = self.range(known)?;
                let mut schema = json!({});
                if let Some(low) = low {
                    schema["minimum"] = number(low);
                }
                if let Some(high) = high {
                    schema["maximum"] = number(high);
                }
                schema
            }
            Self::MemberOf { of, .. } => json!({"enum": of.get(known)?.as_array()?}),
            Self::Quoted { .. } => return None,
        };
        Some((self.target().clone(), schema))
    }

    /// Puts what [`narrow`](Self::narrow) gave into the schema of the target: what was tighter before stays, and an
    /// `integer` gets whole bounds.
    ///
    /// ```
    /// use formwork_core::Rule;
    /// use serde_json::json;
    ///
    /// let mut schema = json!({"type": "integer", "minimum": 0, "maximum": 600});
    /// Rule::tighten(&mut schema, &json!({"minimum": 587.5, "maximum": 627.5}));
    /// assert_eq!(schema, json!({"type": "integer", "minimum": 588, "maximum": 600}));
    /// ```
    pub fn tighten(schema: &mut Value, narrowing: &Value) {
        if *schema == Value::Bool(true) {
            *schema = Value::Object(serde_json::Map::new());
        }
        if !schema.is_object() {
            // Nothing is narrower than a schema that allows nothing.
            return;
        }
        let whole = schema["type"] == "integer";
        let bound = |value: &Value, up: bool| {
            let bound = value.as_f64()?;
            Some(number(match (whole, up) {
                (true, true) => bound.ceil(),
                (true, false) => bound.floor(),
                (false, _) => bound,
            }))
        };
        let tighter = |old: &Value, new: Value, up: bool| match (old.as_f64(), new.as_f64()) {
            (Some(before), Some(after)) if (up && before > after) || (!up && before < after) => old.clone(),
            _ => new,
        };
        if let Some(low) = narrowing.get("minimum").and_then(|low| bound(low, true)) {
            schema["minimum"] = tighter(&schema["minimum"], low, true);
        }
        if let Some(high) = narrowing.get("maximum").and_then(|high| bound(high, false)) {
            schema["maximum"] = tighter(&schema["maximum"], high, false);
        }
        if let Some(list) = narrowing.get("enum") {
            schema["enum"] = list.clone();
        }
    }

    /// The range that a number must lie in, inclusive.
    fn range(&self, known: &Value) -> Option<(Option<f64>, Option<f64>)> {
        match self {
            Self::WeightedSum { terms, tolerance, .. } => {
                let values = terms.iter().map(|term| Some(term.path.get(known)?.as_f64()? * term.weight));
                let sum = values.sum::<Option<f64>>()?;
                Some((Some(tidy(sum - tolerance)), Some(tidy(sum + tolerance))))
            }
            Self::AtMost { limit, .. } => Some((None, Some(limit.get(known)?.as_f64()?))),
            Self::MemberOf { .. } | Self::Quoted { .. } => None,
        }
    }
}

/// Takes the noise off a binary sum of decimal fractions: `0.1 + 0.2` is `0.3`.
fn tidy(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// A JSON number without a needless fraction.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}
