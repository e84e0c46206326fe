use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use formwork_json::PathPattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Context, advised};

/// A rule of your own, which judges the values at a path by those at other paths. [`Rule::Custom`](crate::Rule::Custom) applies it.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_core::{Context, Custom, CustomRule, Report, Rule};
/// use serde_json::{Value, json};
///
/// #[derive(Debug)]
/// struct Even;
///
/// impl CustomRule for Even {
///     fn name(&self) -> &str {
///         "even"
///     }
///     fn check(&self, value: &Value, _: &[Vec<&Value>], _: &Context<'_>) -> Result<(), String> {
///         if value.as_u64().is_none_or(|number| number % 2 == 0) { Ok(()) } else { Err("an even number".to_owned()) }
///     }
/// }
///
/// let rule = Rule::Custom(Custom::new(Arc::new(Even), "$.seats[*]".parse()?, []));
/// let mut report = Report::default();
/// rule.validate(&json!({"seats": [2, 3]}), &Context::EMPTY, &mut report);
/// assert_eq!(report.violations()[0].to_string(), "even at $.seats[1]: expected an even number, found 3");
/// # Ok::<(), formwork_core::PathError>(())
/// ```
pub trait CustomRule: fmt::Debug + Send + Sync {
    /// Returns the name of the rule in violations and in files of rules.
    fn name(&self) -> &str;

    /// Checks a value. `inputs` has one list for each input of the [`Custom`] rule: the values that its path matches.
    ///
    /// # Errors
    /// The expectation that the value does not meet, for people and models: `an even number`.
    fn check(&self, value: &Value, inputs: &[Vec<&Value>], cx: &Context<'_>) -> Result<(), String>;

    /// Returns a schema of the values that satisfy the rule, given the inputs: `minimum`, `maximum` or `enum` (default: `None`).
    fn narrow(&self, _inputs: &[Vec<&Value>]) -> Option<Value> {
        None
    }
}

/// A [`CustomRule`] with the paths that it applies to.
///
/// In a file it is `{"rule": "custom", "name": "even", "target": "$.seats[*]"}`. A rule that was read from a file does nothing
/// until [`resolve`](Self::resolve) has found its name among the known [`Rules`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The name of the rule.
    pub name: String,
    /// The path of the values that the rule constrains.
    pub target: PathPattern,
    /// The paths of the other values that the rule reads (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<PathPattern>,
    #[serde(skip)]
    rule: Option<Arc<dyn CustomRule>>,
}

impl Custom {
    /// Applies a rule to the values at `target`.
    pub fn new(
        rule: Arc<dyn CustomRule>,
        target: PathPattern,
        inputs: impl IntoIterator<Item = PathPattern>,
    ) -> Self {
        let (name, inputs) = (rule.name().to_owned(), inputs.into_iter().collect());
        Self { name, target, inputs, rule: Some(rule) }
    }

    /// Finds the rule of this name, unless the rule is known already.
    ///
    /// # Errors
    /// A message in one line with the most similar name, if there is no such rule.
    pub fn resolve(&mut self, known: &Rules) -> Result<(), String> {
        if self.rule.is_none() {
            self.rule = Some(known.get(&self.name)?);
        }
        Ok(())
    }

    pub(super) fn bound(&self, target: PathPattern, bound: impl Fn(&PathPattern) -> PathPattern) -> Self {
        Self { target, inputs: self.inputs.iter().map(bound).collect(), ..self.clone() }
    }

    pub(super) fn check(&self, found: &Value, document: &Value, cx: &Context<'_>) -> Result<(), String> {
        self.rule.as_ref().map_or(Ok(()), |rule| rule.check(found, &self.values(document), cx))
    }

    pub(super) fn narrow(&self, document: &Value) -> Option<Value> {
        self.rule.as_ref()?.narrow(&self.values(document))
    }

    fn values<'v>(&self, document: &'v Value) -> Vec<Vec<&'v Value>> {
        let values = |input: &PathPattern| input.find(document).into_iter().map(|(_, value)| value).collect();
        self.inputs.iter().map(values).collect()
    }
}

impl PartialEq for Custom {
    /// Compares names and paths: two rules of one name are the same rule.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.target, &self.inputs) == (&other.name, &other.target, &other.inputs)
    }
}

/// The rules of your own by their names (default: none).
#[derive(Debug, Clone, Default)]
pub struct Rules(BTreeMap<String, Arc<dyn CustomRule>>);

impl Rules {
    /// Adds a rule, or replaces the rule of this name.
    #[must_use]
    pub fn with(mut self, rule: Arc<dyn CustomRule>) -> Self {
        self.0.insert(rule.name().to_owned(), rule);
        self
    }

    /// Returns the rule of a name.
    ///
    /// # Errors
    /// A message in one line with the most similar name, or with all names if none is similar.
    pub fn get(&self, name: &str) -> Result<Arc<dyn CustomRule>, String> {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let message = || match names.is_empty() {
            true => format!("there is no rule `{name}`: no rules from outside of Formwork are registered"),
            false => advised(&format!("there is no rule `{name}`"), name, &names),
        };
        self.0.get(name).cloned().ok_or_else(message)
    }
}
