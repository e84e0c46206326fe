mod custom;
mod grounded;

use formwork_json::{JsonPath, PathPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Context, Dependency, Report, Stage, Violation};

pub use custom::{Custom, CustomRule, Rules};
pub(crate) use grounded::SourceIndex;

/// The member of a schema that holds its rules.
pub const RULES: &str = "x-formwork-rules";

/// A cross-check as data: it validates answers, narrows schemas, and can be sent with a [`Call`](crate::Call).
///
/// A rule can do what a closure cannot: given the known values, it computes the schema of the values that satisfy it.
/// Patches are requested with that schema, and a provider in this process enforces it while decoding.
///
/// Paths may have wildcards. A target with a wildcard means every value that it matches, each judged on its own; a wildcard
/// that an input shares with the target means the same item. Any other wildcard of an input means all items: their sum in a
/// [`Term`], the minimum in [`AtMost`](Self::AtMost), any of them in [`MemberOf`](Self::MemberOf).
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
///
/// let sum = Rule::WeightedSum {
///     target: "$.total".parse()?,
///     terms: vec![Term { path: "$.lines[*].total".parse()?, weight: 1.0 }],
///     tolerance: 0.0,
/// };
/// let mut report = Report::default();
/// sum.validate(&json!({"lines": [{"total": 7}, {"total": 5}], "total": 13}), &Context::EMPTY, &mut report);
/// assert_eq!(report.violations()[0].to_string(), "weightedSum at $.total: expected from 12 to 12, found 13");
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Rule {
    /// A number is the weighted sum of others, within a tolerance (inclusive, in the number's own unit).
    WeightedSum {
        /// The path of the sum.
        target: PathPattern,
        /// The terms of the sum.
        terms: Vec<Term>,
        /// The maximum difference from the unrounded sum.
        tolerance: f64,
    },
    /// A number is less than or equal to another.
    AtMost {
        /// The path of the number.
        target: PathPattern,
        /// The path of the maximum.
        limit: PathPattern,
    },
    /// A value is one of the items of an array, or one of the values that a path with a wildcard matches.
    MemberOf {
        /// The path of the value.
        target: PathPattern,
        /// The path of the array, or a path with a wildcard.
        of: PathPattern,
    },
    /// A value stands in the text that the answer is about: whole words, numbers or dates, in any notation. Of an array or object, each
    /// text and number does. An empty text never does; `null` and booleans are not examined. `quoted` is another name in files.
    #[serde(alias = "quoted")]
    #[schemars(transform = also_quoted)]
    Grounded {
        /// The path of the value.
        target: PathPattern,
        /// The minimum number of letters, digits and symbols of a text (default: 1).
        #[serde(default, rename = "minLength", skip_serializing_if = "Option::is_none")]
        min_length: Option<usize>,
    },
    /// A rule of your own, by its name.
    Custom(Custom),
}

/// One term of a [`Rule::WeightedSum`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The path of a number; with a wildcard, of all numbers that it matches. Members that are null or missing in items
    /// count as 0.
    pub path: PathPattern,
    /// The factor of the term.
    pub weight: f64,
}

impl Rule {
    /// Returns the rule that the values at `target` stand in the source text, with any length.
    ///
    /// ```
    /// use formwork_core::{Context, Report, Rule};
    /// use serde_json::{Value, json};
    ///
    /// let rule = Rule::grounded("$.people".parse()?);
    /// let cx = Context { source: "Maria Lindqvist, 34, and Ada", data: &Value::Null };
    /// let mut report = Report::default();
    /// rule.validate(&json!({"people": [{"name": "Maria Lindquist", "age": 34}, {"name": "ada", "age": null}]}), &cx, &mut report);
    /// let found: Vec<_> = report.violations().iter().map(ToString::to_string).collect();
    /// assert_eq!(found, ["grounded at $.people[0].name: expected words of the source text; the most similar text is \
    ///     \"Maria Lindqvist\", found \"Maria Lindquist\""]);
    /// # Ok::<(), formwork_core::PathError>(())
    /// ```
    pub const fn grounded(target: PathPattern) -> Self {
        Self::Grounded { target, min_length: None }
    }

    /// Returns the name of the rule in violations, such as `weightedSum`.
    pub fn name(&self) -> &str {
        match self {
            Self::WeightedSum { .. } => "weightedSum",
            Self::AtMost { .. } => "atMost",
            Self::MemberOf { .. } => "memberOf",
            Self::Grounded { .. } => "grounded",
            Self::Custom(custom) => &custom.name,
        }
    }

    /// Returns the path of the values that the rule constrains.
    pub const fn target(&self) -> &PathPattern {
        match self {
            Self::WeightedSum { target, .. }
            | Self::AtMost { target, .. }
            | Self::MemberOf { target, .. }
            | Self::Grounded { target, .. } => target,
            Self::Custom(custom) => &custom.target,
        }
    }

    /// Returns all paths of the rule, the target last.
    pub fn paths(&self) -> Vec<&PathPattern> {
        let mut paths = self.sources();
        paths.push(self.target());
        paths
    }

    fn sources(&self) -> Vec<&PathPattern> {
        match self {
            Self::WeightedSum { terms, .. } => terms.iter().map(|term| &term.path).collect(),
            Self::AtMost { limit, .. } => vec![limit],
            Self::MemberOf { of, .. } => vec![of],
            Self::Grounded { .. } => Vec::new(),
            Self::Custom(custom) => custom.inputs.iter().collect(),
        }
    }

    /// Returns the paths of the values that the rule needs to constrain the target. A path with a wildcard is replaced by
    /// that of the array or object around it.
    pub fn inputs(&self) -> Vec<JsonPath> {
        self.sources().into_iter().map(PathPattern::stem).collect()
    }

    /// Returns the paths of all values that the rule reads. A path with a wildcard is replaced by that of the array or
    /// object around it.
    pub fn reads(&self) -> Vec<JsonPath> {
        self.paths().into_iter().map(PathPattern::stem).collect()
    }

    /// Returns the order of generation that narrowing needs, if any.
    pub fn dependency(&self) -> Option<Dependency> {
        let first = self.inputs();
        let then = self.target().as_path()?;
        (!first.is_empty()).then_some(Dependency { first, then })
    }

    /// Returns the rule for the value at `path`; `None` if the target does not match `path`.
    pub fn at(&self, path: &JsonPath) -> Option<Self> {
        if !self.target().matches(path) {
            return None;
        }
        let bound = |input: &PathPattern| input.bound(self.target(), path);
        let target = PathPattern::from(path.clone());
        Some(match self {
            Self::WeightedSum { terms, tolerance, .. } => {
                let terms = terms.iter().map(|term| Term { path: bound(&term.path), weight: term.weight });
                Self::WeightedSum { target, terms: terms.collect(), tolerance: *tolerance }
            }
            Self::AtMost { limit, .. } => Self::AtMost { target, limit: bound(limit) },
            Self::MemberOf { of, .. } => Self::MemberOf { target, of: bound(of) },
            Self::Grounded { min_length, .. } => Self::Grounded { target, min_length: *min_length },
            Self::Custom(custom) => Self::Custom(custom.bound(target, bound)),
        })
    }

    /// Adds a violation for every value of the target that violates the rule. Values that are missing or of another type
    /// are left to the schema.
    pub fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self.validate_with(value, cx, out, &|_| None, false, &SourceIndex::default());
    }

    /// Adds a violation for every value of the target that violates the rule. `unless_wrong` leaves out the values for which the
    /// rule reads a value that has a violation already.
    ///
    /// `schema_at` returns the schema at a path, by which the expected bounds of a number are clamped. `source` is the index of the text of `cx`.
    pub(crate) fn validate_with(
        &self,
        value: &Value,
        cx: &Context<'_>,
        out: &mut Report,
        schema_at: &dyn Fn(&JsonPath) -> Option<Value>,
        unless_wrong: bool,
        source: &SourceIndex,
    ) {
        let is_due = |rule: &Self, out: &Report| !unless_wrong || !out.touches_any(&rule.paths());
        if !self.target().has_wildcard() {
            if is_due(self, out) {
                self.validate_one(value, cx, out, schema_at, source);
            }
            return;
        }
        for (path, _) in self.target().find(value) {
            if let Some(rule) = self.at(&path).filter(|rule| is_due(rule, out)) {
                rule.validate_one(value, cx, out, schema_at, source);
            }
        }
    }

    /// Adds a violation for the one value of a target without wildcards, if it violates the rule.
    fn validate_one(
        &self,
        value: &Value,
        cx: &Context<'_>,
        out: &mut Report,
        schema_at: &dyn Fn(&JsonPath) -> Option<Value>,
        source: &SourceIndex,
    ) {
        let Some(target) = self.target().as_path() else { return };
        let Some(found) = target.get(value) else { return };
        let expected = match self {
            Self::WeightedSum { .. } | Self::AtMost { .. } => {
                let (Some(number), Some((low, high))) = (found.as_f64(), self.range(value)) else { return };
                let above = low.is_some_and(|low| number < low);
                let below = high.is_some_and(|high| number > high);
                if !above && !below {
                    return;
                }
                let schema = schema_at(&target).unwrap_or_default();
                match clamped(low, high, &schema) {
                    (Some(low), Some(high)) => format!("from {low} to {high}"),
                    (Some(low), None) => format!("at least {low}"),
                    (None, high) => format!("at most {}", high.unwrap_or_default()),
                }
            }
            Self::MemberOf { of, .. } => {
                let Some(items) = items(of, value) else { return };
                if items.contains(&found) {
                    return;
                }
                format!("one of the items of {of}")
            }
            Self::Grounded { min_length, .. } => {
                grounded::validate(&target, found, min_length.unwrap_or(1), (cx.source, source), out);
                return;
            }
            Self::Custom(custom) => match custom.check(found, value, cx) {
                Ok(()) => return,
                Err(expected) => expected,
            },
        };
        let violation = Violation::new(target, self.name(), Stage::Check);
        out.push(violation.with_expected(expected).with_found(found.to_string()));
    }

    /// Returns the path of the target and a schema for the values that satisfy the rule, given the rest of the document.
    /// `None` if too little is known, or if the target has a wildcard: [`at`](Self::at) returns the rule for one of its
    /// values.
    pub fn narrow(&self, known: &Value) -> Option<(JsonPath, Value)> {
        let target = self.target().as_path()?;
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
            Self::MemberOf { of, .. } => json!({"enum": items(of, known)?}),
            Self::Grounded { .. } => return None,
            Self::Custom(custom) => custom.narrow(known)?,
        };
        Some((target, schema))
    }

    /// Adds the result of [`narrow`](Self::narrow) to the schema of the target: tighter bounds of the schema are kept, and
    /// an `integer` gets whole bounds. Returns whether they leave a value.
    ///
    /// ```
    /// use formwork_core::Rule;
    /// use serde_json::json;
    ///
    /// let mut schema = json!({"type": "integer", "minimum": 0, "maximum": 600});
    /// assert!(Rule::tighten(&mut schema, &json!({"minimum": 587.5, "maximum": 627.5})));
    /// assert_eq!(schema, json!({"type": "integer", "minimum": 588, "maximum": 600}));
    /// ```
    pub fn tighten(schema: &mut Value, narrowing: &Value) -> bool {
        if *schema == Value::Bool(true) {
            *schema = Value::Object(serde_json::Map::new());
        }
        if !schema.is_object() {
            // A schema that allows nothing cannot be narrowed further.
            return false;
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
        if let Some(list) = narrowing.get("enum").and_then(Value::as_array) {
            let own = schema.get("enum").and_then(Value::as_array);
            let both = list.iter().filter(|one| own.is_none_or(|own| own.contains(one)));
            schema["enum"] = both.cloned().collect();
        }
        let at = |name: &str| schema.get(name).and_then(Value::as_f64);
        let (low, high) = (at("minimum"), at("maximum"));
        let (above, below) = (at("exclusiveMinimum"), at("exclusiveMaximum"));
        let has_value = if whole {
            let least = low.map(f64::ceil).into_iter().chain(above.map(|above| above.floor() + 1.0));
            let most = high.map(f64::floor).into_iter().chain(below.map(|below| below.ceil() - 1.0));
            let ends = least.reduce(f64::max).zip(most.reduce(f64::min));
            ends.is_none_or(|(least, most)| least <= most)
        } else {
            low.zip(high).is_none_or(|(low, high)| low <= high)
                && [(low, below), (above, high), (above, below)]
                    .into_iter()
                    .all(|(low, high)| low.zip(high).is_none_or(|(low, high)| low < high))
        };
        has_value && schema["enum"].as_array().is_none_or(|list| !list.is_empty())
    }

    /// Returns the inclusive bounds of a number that satisfies the rule.
    fn range(&self, known: &Value) -> Option<(Option<f64>, Option<f64>)> {
        match self {
            Self::WeightedSum { terms, tolerance, .. } => {
                let values = terms.iter().map(|term| Some(sum(&term.path, known)? * term.weight));
                let sum = values.sum::<Option<f64>>()?;
                Some((Some(tidy(sum - tolerance)), Some(tidy(sum + tolerance))))
            }
            Self::AtMost { limit, .. } => {
                let limits = limit.find(known).into_iter().map(|(_, limit)| limit.as_f64());
                let limits = limits.collect::<Option<Vec<_>>>()?;
                Some((None, Some(limits.into_iter().min_by(f64::total_cmp)?)))
            }
            Self::MemberOf { .. } | Self::Grounded { .. } | Self::Custom(_) => None,
        }
    }
}

/// Returns bounds without the numbers that the schema forbids, unless it forbids all of them.
fn clamped(low: Option<f64>, high: Option<f64>, schema: &Value) -> (Option<f64>, Option<f64>) {
    let (minimum, maximum) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
    let tighter_low = low.map(|low| low.max(minimum.unwrap_or(low)));
    let tighter_high = high.map(|high| high.min(maximum.unwrap_or(high)));
    match (tighter_low.or(minimum), tighter_high.or(maximum)) {
        (Some(least), Some(most)) if least > most => (low, high),
        _ => (tighter_low, tighter_high),
    }
}

/// Returns the sum of the numbers at a path; `None` if it is unknown.
fn sum(path: &PathPattern, known: &Value) -> Option<f64> {
    if !path.has_wildcard() {
        return path.stem().get(known)?.as_f64();
    }
    path.stem().get(known)?;
    let found = path.find(known).into_iter().filter(|(_, value)| !value.is_null());
    found.map(|(_, value)| value.as_f64()).sum()
}

/// Returns the allowed values: the items of an array, or the values that a path with a wildcard matches.
fn items<'v>(of: &PathPattern, known: &'v Value) -> Option<Vec<&'v Value>> {
    if of.has_wildcard() {
        of.stem().get(known)?;
        return Some(of.find(known).into_iter().map(|(_, value)| value).collect());
    }
    Some(of.stem().get(known)?.as_array()?.iter().collect())
}

/// Removes the binary noise from a sum of decimal fractions: `0.1 + 0.2` is `0.3`.
fn tidy(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// Returns a JSON number, as an integer if it has no fraction.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

/// Adds the name that the rule `grounded` had before to its schema.
fn also_quoted(schema: &mut schemars::Schema) {
    let name = schema.get_mut("properties").and_then(|members| members.get_mut("rule"));
    if let Some(name) = name {
        *name = json!({"type": "string", "enum": ["grounded", "quoted"]});
    }
}

#[cfg(test)]
mod tests;
