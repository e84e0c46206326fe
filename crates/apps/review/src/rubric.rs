use std::ptr;

use formwork_core::keywords::{At, Part, Step, parts, target};
use formwork_core::{Error, ErrorKind, JsonPath, PathPattern, PatternStep, Rule, Segment, Structure};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::{Document, DocumentError, Finding, Format};

/// The criteria that an output is reviewed against.
///
/// ```
/// use formwork_review::ReviewRubric;
/// use formwork_review::document::Format;
///
/// let rubric = ReviewRubric::parse("tone.yaml", "
/// name: tone
/// criteria:
///   - id: polite
///     description: The answer is polite.
///   - id: short
///     description: The summary has at most 200 characters.
///     schema: {properties: {summary: {maxLength: 200}}}
/// ", Format::Yaml)?;
/// assert_eq!(rubric.criteria[1].id, "short");
/// # Ok::<(), formwork_review::document::DocumentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRubric {
    /// The rubric's name, 1 to 100 characters.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// The rubric's purpose, for people; models do not see it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The criteria, 1 to 100, each judged on its own.
    #[schemars(length(min = 1, max = 100))]
    pub criteria: Vec<Criterion>,
    /// The settings for further votes of the model (default: none).
    #[serde(default, skip_serializing_if = "Votes::is_off")]
    pub votes: Votes,
}

/// One condition that an output has to meet.
///
/// A criterion has at most one of `rule`, `schema`, `pattern` and `human`; without any of them a model judges it.
///
/// ```
/// use formwork_core::JsonPath;
/// use formwork_review::{Criterion, Pattern};
/// use serde_json::json;
///
/// let polite = Criterion { fix: Some("Say please.".into()), ..Criterion::new("polite", "The reply is polite.") };
/// let schema = json!({"maxLength": 60});
/// let short = Criterion { schema: Some(schema), ..Criterion::new("short", "At most 60 characters.") };
/// let pattern = Pattern { path: JsonPath::root(), matches: "(?i)sorry".into(), not: true };
/// let proud = Criterion { pattern: Some(pattern), ..Criterion::new("proud", "It does not apologise.") };
/// let on_brand = Criterion { human: true, ..Criterion::new("brand", "It suits our brand.") };
/// assert!(polite.rule.is_none() && short.schema.is_some() && proud.pattern.is_some() && on_brand.human);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// The criterion's name in results, unique in its rubric: 1 to 64 letters, digits, `_`, `.` and `-`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"))]
    pub id: String,
    /// The criterion, as a statement that is true or false of the output, 1 to 2000 characters.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The suggested change for a failed criterion, for when the model suggests none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The names of [data](crate::Material::data) that the judgement needs. The criterion is indeterminate if any of it
    /// is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Whether a person has to judge the criterion, which makes it indeterminate (default: `false`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub human: bool,
    /// The rule that decides the criterion, without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The JSON Schema that decides the criterion: it holds if the output is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The pattern that decides the criterion: it holds if the text matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
}

/// A regular expression for a text of the output.
///
/// ```
/// use formwork_review::Pattern;
///
/// let pattern: Pattern = serde_json::from_str(r#"{"path": "$.title", "matches": "^Fix"}"#)?;
/// assert_eq!((pattern.path.to_string().as_str(), pattern.not), ("$.title", false));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The location of the text, a JSONPath (RFC 9535) of a single location (default: the whole output). The expression
    /// is matched against the JSON of a value that is no string.
    #[serde(default)]
    pub path: JsonPath,
    /// The regular expression, in the syntax of the `regex` crate; it may match anywhere in the text.
    pub matches: String,
    /// Whether the criterion holds if the expression does *not* match (default: `false`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not: bool,
}

/// The settings for further votes, for verdicts of a model with a confidence near the threshold.
///
/// Each vote costs a call; [`ReviewPrice::extra_calls`](crate::ReviewPrice) counts them.
///
/// ```
/// use formwork_review::{Criterion, ReviewRubric, Votes};
///
/// let mut rubric = ReviewRubric::new("tone").with_criterion(Criterion::new("polite", "The reply is polite."));
/// rubric.votes = Votes { extra: 2, near: 15 };
/// assert!(rubric.asks_a_model());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Votes {
    /// The maximum number of further votes, an even number up to 20, so that there is a majority (default: 0). Voting
    /// stops as soon as the remaining votes cannot change the verdict. Votes below the threshold are abstentions.
    #[schemars(range(max = 20))]
    pub extra: u32,
    /// The maximum distance of the first vote's confidence from the threshold of 50, 0 to 50. With 50, every first vote
    /// causes further votes, including one that contradicts itself.
    #[schemars(range(max = 50))]
    pub near: u8,
}

impl Votes {
    const fn is_off(&self) -> bool {
        self.extra == 0
    }

    /// Returns whether a vote of this confidence requires further votes.
    pub(crate) fn are_due(&self, confidence: u8) -> bool {
        self.extra > 0 && confidence.abs_diff(crate::THRESHOLD) <= self.near
    }
}

impl ReviewRubric {
    /// Creates a rubric without criteria.
    pub fn new(name: impl Into<String>) -> Self {
        let (name, description) = (name.into(), String::new());
        Self { name, description, criteria: Vec::new(), votes: Votes::default() }
    }

    /// Adds a criterion (default: none; at least one is required).
    #[must_use]
    pub fn with_criterion(mut self, criterion: Criterion) -> Self {
        self.criteria.push(criterion);
        self
    }

    /// Returns whether a model has to judge a criterion, if all data is given.
    pub fn asks_a_model(&self) -> bool {
        self.criteria.iter().any(|criterion| {
            let Criterion { human, rule, schema, pattern, .. } = criterion;
            !human && rule.is_none() && schema.is_none() && pattern.is_none()
        })
    }

    /// Reads a rubric from the text of a file; `file` is its name in messages.
    ///
    /// # Errors
    /// [`DocumentError`] with every mistake and its location: an unknown or missing key, a duplicate id, two ways of
    /// deciding one criterion, an invalid schema or regular expression.
    pub fn parse(file: &str, text: &str, format: Format) -> Result<Self, DocumentError> {
        Self::parse_for(file, text, format, None)
    }

    /// Reads a rubric for outputs of a schema, as [`parse`](Self::parse) does.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse), and a path at which the schema allows no value: a criterion with such a path
    /// would never be evaluated. The message names the nearest existing path.
    pub fn parse_for(
        file: &str,
        text: &str,
        format: Format,
        output: Option<&dyn Structure>,
    ) -> Result<Self, DocumentError> {
        let document = Document::parse(file, text, format)?;
        let rubric: Self = document.read()?;
        rubric.checked(&document, &JsonPath::root(), output)?;
        Ok(rubric)
    }

    /// Checks the rules that the type cannot express, for a rubric that is located at `at` in the document. With the
    /// schema of the output, its paths are checked, too.
    ///
    /// # Errors
    /// [`DocumentError`] with every mistake and its location.
    pub fn checked(
        &self,
        document: &Document,
        at: &JsonPath,
        output: Option<&dyn Structure>,
    ) -> Result<(), DocumentError> {
        let findings: Vec<Finding> = self
            .problems(output)
            .into_iter()
            .map(|(path, message)| {
                let path = path.segments().iter().cloned().fold(at.clone(), |at, segment| at.child(segment));
                document.finding(&path, message)
            })
            .collect();
        if findings.is_empty() { Ok(()) } else { Err(DocumentError::new(findings)) }
    }

    /// Returns the mistakes that a linter finds in the schemas of a rubric that is located at `at` in the document.
    pub fn lint(&self, document: &Document, at: &JsonPath) -> Vec<Finding> {
        let criteria = at.key("criteria");
        let lint = |(n, _)| document.lint(&criteria.index(n).key("schema"));
        self.criteria.iter().enumerate().flat_map(lint).collect()
    }

    /// Checks a rubric that was built in code, with the schema of the output if it is known.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the first mistake.
    pub fn usable(&self, output: Option<&dyn Structure>) -> Result<(), Error> {
        match self.problems(output).into_iter().next() {
            None => Ok(()),
            Some((path, message)) => {
                let message = format!("rubric `{}`, {path}: {message}", self.name);
                Err(Error::new(ErrorKind::Config, message))
            }
        }
    }

    fn problems(&self, output: Option<&dyn Structure>) -> Vec<(JsonPath, String)> {
        let mut problems = Vec::new();
        let criteria = JsonPath::root().key("criteria");
        if self.criteria.is_empty() {
            problems.push((criteria.clone(), "there is no criterion: expected at least one".to_owned()));
        }
        if self.votes.extra % 2 == 1 {
            let message = format!("expected an even number of extra votes, found {}", self.votes.extra);
            problems.push((JsonPath::root().key("votes").key("extra"), message));
        }
        for (n, criterion) in self.criteria.iter().enumerate() {
            let at = criteria.index(n);
            if let Some(first) = self.criteria.iter().take(n).position(|other| other.id == criterion.id) {
                let message = format!(
                    "the id `{}` is used twice: criterion {} already has it",
                    criterion.id,
                    first + 1
                );
                problems.push((at.key("id"), message));
            }
            let missing = output.and_then(|output| criterion.missing(output));
            let own = criterion.problems().into_iter().chain(missing);
            problems.extend(own.map(|(key, message)| (at.key(key), message)));
        }
        problems
    }
}

impl Criterion {
    /// Creates a criterion that a model judges.
    pub fn new(id: impl Into<String>, description: impl Into<String>) -> Self {
        Self { id: id.into(), description: description.into(), ..Self::default() }
    }

    /// Returns the first path of the criterion at which no output can have a value, with the key that has the path.
    fn missing(&self, output: &dyn Structure) -> Option<(&'static str, String)> {
        let rule = self.rule.iter().flat_map(Rule::paths).cloned().map(|path| ("rule", path));
        let pattern = self.pattern.iter().map(|pattern| ("pattern", pattern.path.clone().into()));
        let mut named = Vec::new();
        if let Some(schema) = &self.schema {
            members(schema, schema, &PathPattern::default(), &mut Vec::new(), &mut named);
        }
        let named = named.into_iter().map(|path| ("schema", path));
        rule.chain(pattern).chain(named).find_map(|(key, path)| Some((key, output.missing(&path)?)))
    }

    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let ways = [
            ("rule", self.rule.is_some()),
            ("schema", self.schema.is_some()),
            ("pattern", self.pattern.is_some()),
            ("human", self.human),
        ];
        let mut ways = ways.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name);
        if let (Some(one), Some(other)) = (ways.next(), ways.next()) {
            problems.push((other, format!("`{one}` decides the criterion already: expected one of them")));
        }
        if let Some(error) = self.schema.as_ref().and_then(|schema| formwork_schema::compile(schema).err()) {
            problems.push(("schema", error.to_string()));
        }
        if let Some(error) = self.pattern.as_ref().and_then(|pattern| Regex::new(&pattern.matches).err()) {
            // The `regex` crate draws the location on lines of its own; only the last line states the mistake.
            let message = error.to_string();
            let why = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            problems.push(("pattern", format!("the expression cannot be used: {why}")));
        }
        problems
    }
}

/// Returns the names of the members that a schema requires, also those that it requires beside another member.
fn requires(schema: &Value) -> impl Iterator<Item = &str> {
    let beside = dependents(schema).filter_map(|(_, needed)| needed.as_array());
    schema["required"].as_array().into_iter().chain(beside).flatten().filter_map(Value::as_str)
}

/// Returns the members on whose presence a schema has a condition, each with its condition: names, or a schema.
fn dependents(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let keywords = ["dependentRequired", "dependentSchemas", "dependencies"];
    keywords.into_iter().filter_map(|keyword| schema[keyword].as_object()).flatten()
}

/// Adds the paths of the members that a part of a criterion's schema constrains. A member that it forbids may be absent.
/// `targets` are the targets of references that were walked: a schema may contain itself.
fn members<'s>(
    root: &'s Value,
    schema: &'s Value,
    at: &PathPattern,
    targets: &mut Vec<&'s Value>,
    found: &mut Vec<PathPattern>,
) {
    let below = |step: PatternStep| at.steps().iter().cloned().chain([step]).collect::<PathPattern>();
    let member = |name: &str| below(PatternStep::One(Segment::Key(name.to_owned())));
    found.extend(requires(schema).map(&member));
    // A condition that nothing satisfies forbids its member.
    let conditions = dependents(schema).filter(|(_, needed)| **needed != Value::Bool(false));
    found.extend(conditions.map(|(name, _)| member(name)));
    for Part { keyword, step, schema } in parts(schema) {
        let path = match (keyword.at, step) {
            (At::Here, _) => at.clone(),
            (At::Inside, Some(Step::Index(index))) => below(PatternStep::One(Segment::Index(index))),
            (At::Inside, Some(Step::Name(name))) if keyword.name == "properties" => {
                if *schema != Value::Bool(false) {
                    found.push(member(name));
                }
                member(name)
            }
            (At::Inside, _) => below(PatternStep::Each),
            _ => continue,
        };
        let before = found.len();
        members(root, schema, &path, targets, found);
        if keyword.name == "not" {
            // It may forbid members, which are absent then.
            let is_forbidden = |name: &PathPattern| requires(schema).any(|one| member(one) == *name);
            let inside = found.split_off(before);
            found.extend(inside.into_iter().filter(|name| !is_forbidden(name)));
        }
    }
    if let Some(target) =
        target(root, schema).filter(|one| !targets.iter().any(|other| ptr::eq(*one, *other)))
    {
        targets.push(target);
        members(root, target, at, targets, found);
    }
}
