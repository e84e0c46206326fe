use formwork_core::{Error, ErrorKind, JsonPath, Rule};
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
    /// The rubric's name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// The purpose, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The criteria, each judged alone.
    #[schemars(length(min = 1, max = 100))]
    pub criteria: Vec<Criterion>,
    /// When a model is asked more than once; never by default.
    #[serde(default, skip_serializing_if = "Votes::is_off")]
    pub votes: Votes,
}

/// One thing that must hold of an output.
///
/// At most one of `rule`, `schema`, `pattern` and `human`; without any of them a model judges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// The criterion's name in results; stands once in a rubric.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"))]
    pub id: String,
    /// The criterion, as a statement that is true or false.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The suggestion of what to change if it does not hold, where the model has no better idea.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The names of data that it cannot be judged without. Where one is not given, it is indeterminate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// A person has to judge it: it is indeterminate for us.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub human: bool,
    /// Decides it without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// It holds if the output satisfies this JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// It holds if a text in the output looks like this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
}

/// How a text in the output has to look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The text: RFC 9535, a single place. The whole output by default; what is no text counts as its JSON.
    #[serde(default)]
    pub path: JsonPath,
    /// A regular expression of the regex crate, found anywhere in the text.
    pub matches: String,
    /// It holds if the expression is *not* found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not: bool,
}

/// Further votes where the model's first one is close.
///
/// Each costs a call; [`ReviewPrice::extra_calls`](crate::ReviewPrice) says how many there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Votes {
    /// How many more votes at most; an even number, so that there is a majority. Where what is left can change nothing, it is
    /// not asked for. Votes below the threshold abstain.
    #[schemars(range(max = 20))]
    pub extra: u32,
    /// A confidence that is at most so far from the threshold of 50 is close; with 50 every one is, and so is a first vote
    /// that contradicts itself.
    #[schemars(range(max = 50))]
    pub near: u8,
}

impl Votes {
    const fn is_off(&self) -> bool {
        self.extra == 0
    }

    /// Whether a vote of this confidence is to be checked by others.
    pub(crate) fn are_due(&self, confidence: u8) -> bool {
        self.extra > 0 && confidence.abs_diff(crate::THRESHOLD) <= self.near
    }
}

impl ReviewRubric {
    /// A rubric without criteria yet.
    pub fn new(name: impl Into<String>) -> Self {
        let (name, description) = (name.into(), String::new());
        Self { name, description, criteria: Vec::new(), votes: Votes::default() }
    }

    /// Adds a criterion (default: none; one is needed).
    #[must_use]
    pub fn with_criterion(mut self, criterion: Criterion) -> Self {
        self.criteria.push(criterion);
        self
    }

    /// Sets further votes where the first one is close (default: none).
    #[must_use]
    pub const fn with_votes(mut self, votes: Votes) -> Self {
        self.votes = votes;
        self
    }

    /// Whether a model has to judge a criterion, as far as can be told without the output.
    pub fn asks_a_model(&self) -> bool {
        self.criteria.iter().any(|criterion| {
            let Criterion { human, rule, schema, pattern, .. } = criterion;
            !human && rule.is_none() && schema.is_none() && pattern.is_none()
        })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`DocumentError`] with everything that is wrong and where: names that are not known or missing, an id that stands
    /// twice, two ways of deciding one criterion, a schema or an expression that cannot be used.
    pub fn parse(file: &str, text: &str, format: Format) -> Result<Self, DocumentError> {
        let document = Document::parse(file, text, format)?;
        let rubric: Self = document.read()?;
        rubric.checked(&document, &JsonPath::root())?;
        Ok(rubric)
    }

    /// Checks what its type cannot say: every problem, at its place in the document that has the rubric at `at`.
    ///
    /// # Errors
    /// [`DocumentError`], if there is one.
    pub fn checked(&self, document: &Document, at: &JsonPath) -> Result<(), DocumentError> {
        let findings: Vec<Finding> = self
            .problems()
            .into_iter()
            .map(|(path, message)| {
                let path = path.segments().iter().cloned().fold(at.clone(), |at, segment| at.child(segment));
                document.finding(&path, message)
            })
            .collect();
        if findings.is_empty() { Ok(()) } else { Err(DocumentError::new(findings)) }
    }

    /// The same for a rubric that was made in code.
    pub(crate) fn usable(&self) -> Result<(), Error> {
        match self.problems().into_iter().next() {
            None => Ok(()),
            Some((path, message)) => {
                let message = format!("rubric `{}`, {path}: {message}", self.name);
                Err(Error::new(ErrorKind::Config, message))
            }
        }
    }

    fn problems(&self) -> Vec<(JsonPath, String)> {
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
                let message =
                    format!("the id `{}` stands twice: criterion {} has it already", criterion.id, first + 1);
                problems.push((at.key("id"), message));
            }
            problems.extend(criterion.problems().into_iter().map(|(key, message)| (at.key(key), message)));
        }
        problems
    }
}

impl Criterion {
    /// A criterion that a model judges.
    pub fn new(id: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            description: description.into(),
            fix: None,
            needs: Vec::new(),
            human: false,
            rule: None,
            schema: None,
            pattern: None,
        }
    }

    /// Sets the suggestion of what to change if it does not hold (default: the model's).
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// It cannot be judged without the data of this name.
    #[must_use]
    pub fn needing(mut self, data: impl Into<String>) -> Self {
        self.needs.push(data.into());
        self
    }

    /// A person has to judge it.
    #[must_use]
    pub const fn for_people(mut self) -> Self {
        self.human = true;
        self
    }

    /// Decides it by a rule (default: a model does).
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Decides it by a JSON Schema (default: a model does).
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Decides it by a pattern (default: a model does).
    #[must_use]
    pub fn with_pattern(mut self, pattern: Pattern) -> Self {
        self.pattern = Some(pattern);
        self
    }

    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let ways = [
            ("rule", self.rule.is_some()),
            ("schema", self.schema.is_some()),
            ("pattern", self.pattern.is_some()),
            ("human", self.human),
        ];
        let mut ways = ways.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        if let (Some(one), Some(other)) = (ways.next(), ways.next()) {
            problems.push((other, format!("`{one}` decides the criterion already: expected one of them")));
        }
        if let Some(error) = self.schema.as_ref().and_then(|schema| formwork_schema::compile(schema).err()) {
            problems.push(("schema", error.to_string()));
        }
        if let Some(error) = self.pattern.as_ref().and_then(|pattern| Regex::new(&pattern.matches).err()) {
            // The crate draws the place on lines of its own; the last one says what it is.
            let message = error.to_string();
            let why = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            problems.push(("pattern", format!("the expression cannot be used: {why}")));
        }
        problems
    }
}
