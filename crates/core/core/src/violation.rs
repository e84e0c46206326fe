use std::borrow::Cow;
use std::fmt;

use formwork_json::{JsonPath, Segment, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stage of examination that found a [`Violation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// Reading the text as JSON.
    Read,
    /// Validation against the JSON Schema.
    Schema,
    /// Decoding into the Rust type.
    Type,
    /// A check of the contract: a rule, a closure, a custom validator.
    Check,
    /// A check outside of the run: an asynchronous validator, a reviewer.
    AsyncCheck,
}

/// Whether a violation rejects the answer (default: [`Severity::Error`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The answer is rejected.
    #[default]
    Error,
    /// The answer is accepted and the violation is reported with it.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One defect of an answer: data for the model and the developer, never an `Err`.
///
/// Its JSON form is `{"path": "$.risks[0]", "pointer": "/risks/0", "rule": "type", "expected": "string", "found": "number",
/// "stage": "schema", "severity": "error", "span": {"start": 9, "end": 12}, "message": "Type mismatch at …"}`.
///
/// `Display` and [`Violation::detail`] include the expected and the found value. The found value may be the user's data:
/// use [`Violation::masked`] in logs. The length of these texts is bounded: the path is cut at [`MAX_PATH`] bytes, each
/// name in it at [`MAX_NAME`] characters, the expected value at [`MAX_EXPECTED`] and the found value at [`MAX_FOUND`]
/// characters. An ellipsis marks each cut.
///
/// ```
/// use formwork_core::{Stage, Violation};
///
/// let violation = Violation::new("$.risks[0]".parse()?, "type", Stage::Schema).with_expected("string").with_found("number");
/// assert_eq!(violation.to_string(), "Type mismatch at $.risks[0]: expected string, found number");
/// # Ok::<(), formwork_json::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Wire", into = "Wire")]
#[schemars(description = "The JSON form of a violation, with the members that are derived from its fields.")]
#[must_use]
pub struct Violation {
    /// The path of the wrong value; of a missing value, the path at which it should be.
    pub path: JsonPath,
    /// The JSON Schema keyword, or the name of the check.
    pub rule: String,
    /// A description of the expected value: `string`, `at most 1000`.
    pub expected: String,
    /// The found value, cut at [`MAX_FOUND`] characters: `number`, `1001`.
    pub found: String,
    /// The stage of examination that found it.
    pub stage: Stage,
    /// Whether it rejects the answer.
    pub severity: Severity,
    /// The wrong bytes of the answer's text, where they are known.
    pub span: Option<Span>,
}

impl Violation {
    /// Creates an error without a description; see [`Violation::with_expected`] and [`Violation::with_found`].
    pub fn new(path: JsonPath, rule: impl Into<String>, stage: Stage) -> Self {
        let (expected, found) = (String::new(), String::new());
        Self { path, rule: rule.into(), expected, found, stage, severity: Severity::Error, span: None }
    }

    crate::setters! {
        /// Sets the description of the expected value (default: empty).
        pub fn with_expected(expected: impl Into<String>);
        /// Sets the wrong bytes of the answer's text (default: none).
        pub fn with_span(span: Option<Span>);
        /// Turns the violation into a warning, which does not reject the answer.
        pub fn as_warning(severity = Severity::Warning);
    }

    /// Sets the found value (default: empty). It is cut at [`MAX_FOUND`] characters.
    pub fn with_found(mut self, found: impl Into<String>) -> Self {
        self.found = found.into();
        if let Cow::Owned(shorter) = cut(&self.found, MAX_FOUND) {
            self.found = shorter;
        }
        self
    }

    /// Returns the description without the path: `expected string, found number`.
    pub fn detail(&self) -> String {
        let (expected, found) = (cut(&self.expected, MAX_EXPECTED), cut(&self.found, MAX_FOUND));
        match (self.rule.as_str(), &*expected, &*found) {
            ("required", ..) => "required field is missing".to_owned(),
            ("additionalProperties" | "unevaluatedProperties", ..) => "field is not allowed".to_owned(),
            (_, "", "") => title(&cut(&self.rule, MAX_NAME)).to_lowercase(),
            (_, expected, "") => format!("expected {expected}"),
            (_, "", found) => found.to_owned(),
            (_, expected, found) => format!("expected {expected}, found {found}"),
        }
    }

    /// Returns the path as it is written in messages: at most [`MAX_PATH`] bytes, with names of at most [`MAX_NAME`]
    /// characters.
    pub fn place(&self) -> String {
        let mut text = String::new();
        write_place(&self.path, &mut text);
        text
    }

    /// Returns the path of the value that has to be replaced to correct the violation: for a name that is not allowed, the object
    /// that has it.
    pub(crate) fn wrong_value(&self) -> Option<JsonPath> {
        match self.rule.as_str() {
            "additionalProperties" | "unevaluatedProperties" | "propertyNames" => self.path.parent(),
            _ => Some(self.path.clone()),
        }
    }

    /// Returns the `Display` text without the found value, for logs and traces.
    pub fn masked(&self) -> String {
        self.sentence("", |text| write_place(&self.path, text))
    }

    /// Returns the `Display` text.
    pub(crate) fn message(&self) -> String {
        self.sentence(&self.found, |text| write_place(&self.path, text))
    }

    /// Returns the `Display` text with other places than the path.
    pub(crate) fn message_at(&self, place: &str) -> String {
        self.sentence(&self.found, |text| text.push_str(place))
    }

    /// Returns the title of the violation, its path, and the expected and found values.
    fn sentence(&self, found: &str, place: impl FnOnce(&mut String)) -> String {
        let (rule, expected) = (cut(&self.rule, MAX_NAME), cut(&self.expected, MAX_EXPECTED));
        let found = cut(found, MAX_FOUND);
        let (before, is_whole) = match &*rule {
            "required" => ("Missing required field at path ", true),
            "additionalProperties" | "unevaluatedProperties" => ("Unexpected field at path ", true),
            rule => (title(rule), false),
        };
        // Every re-ask renders violations, so the text is put together in one string that is long enough.
        let mut text = String::with_capacity(USUAL_PREFIX + expected.len() + found.len());
        text.push_str(before);
        if !is_whole {
            text.push_str(" at ");
        }
        place(&mut text);
        if is_whole {
            return text;
        }
        let (to_expected, to_found) = match (expected.is_empty(), found.is_empty()) {
            (true, true) => return text,
            (true, false) => ("", ": "),
            (false, true) => (": expected ", ""),
            (false, false) => (": expected ", ", found "),
        };
        for piece in [to_expected, &expected, to_found, &found] {
            text.push_str(piece);
        }
        text
    }
}

/// The usual length of the title and the path, in bytes.
const USUAL_PREFIX: usize = 96;

/// The maximum length of [`Violation::found`], in characters.
pub const MAX_FOUND: usize = 120;

/// The maximum length of [`Violation::expected`] in a message, in characters. It may quote other parts of the answer.
pub const MAX_EXPECTED: usize = 600;

/// The maximum length of one name of a path in a message, in characters. Models invent names too.
pub const MAX_NAME: usize = 100;

/// The maximum length of a path in a message, in bytes.
pub const MAX_PATH: usize = 600;

/// Writes a path, cut at its limits.
pub(crate) fn write_place(path: &JsonPath, out: &mut String) {
    let short = |segment: &Segment| match segment {
        Segment::Key(name) => Segment::Key(cut(name, MAX_NAME).into_owned()),
        Segment::Index(index) => Segment::Index(*index),
    };
    let is_long = |segment: &Segment| matches!(segment, Segment::Key(name) if name.len() > MAX_NAME);
    let mut limited = Limited { out, left: MAX_PATH - '…'.len_utf8() };
    // Writing to memory fails only at the limit, where an ellipsis has been written.
    _ = if path.segments().iter().any(is_long) {
        path.segments().iter().map(short).collect::<JsonPath>().write_to(&mut limited)
    } else {
        path.write_to(&mut limited)
    };
}

/// A writer that stops at a limit and then writes an ellipsis, for which space is reserved.
struct Limited<'o> {
    out: &'o mut String,
    left: usize,
}

impl fmt::Write for Limited<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(left) = self.left.checked_sub(text.len()) {
            self.left = left;
            self.out.push_str(text);
            return Ok(());
        }
        let end = text.floor_char_boundary(self.left);
        self.out.push_str(text.get(..end).unwrap_or_default());
        self.out.push('…');
        self.left = 0;
        Err(fmt::Error)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

/// Returns the title of a violation of a rule.
fn title(rule: &str) -> &str {
    match rule {
        "type" => "Type mismatch",
        "enum" | "const" => "Value not allowed",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => "Number out of range",
        "multipleOf" => "Number not a multiple",
        "precision" => "Number not exact",
        "minLength" => "String too short",
        "maxLength" => "String too long",
        "pattern" => "Pattern mismatch",
        "format" => "Format mismatch",
        "minItems" => "Too few items",
        "maxItems" => "Too many items",
        "uniqueItems" => "Items not unique",
        "contains" | "minContains" | "maxContains" => "Items do not fit",
        "minProperties" => "Too few fields",
        "maxProperties" => "Too many fields",
        "oneOf" | "anyOf" => "No variant fits",
        "not" | "falseSchema" => "Value not allowed",
        "dependentRequired" | "dependentSchemas" => "Fields do not fit together",
        "json" => "Not JSON",
        "closed" => "Not answered",
        other => other,
    }
}

/// Cuts a text at a number of characters and marks the cut with an ellipsis.
pub fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    if text.len() <= characters {
        return text.into();
    }
    match text.char_indices().nth(characters) {
        None => text.into(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}

/// The JSON form of a violation, with the members that are derived from its fields.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Wire {
    /// RFC 9535 path of the wrong value, or of the place at which it is missing.
    path: JsonPath,
    /// The same place as an RFC 6901 JSON Pointer.
    #[serde(default)]
    pointer: String,
    /// The JSON Schema keyword, or the name of the check.
    rule: String,
    /// A description of the expected value.
    #[serde(default)]
    expected: String,
    /// The found value, cut at 120 characters.
    #[serde(default)]
    found: String,
    /// The stage of examination that found it.
    stage: Stage,
    /// Whether it rejects the answer.
    #[serde(default)]
    severity: Severity,
    /// The wrong bytes of the answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
    /// All of it as one sentence.
    #[serde(default)]
    message: String,
}

impl From<Wire> for Violation {
    fn from(wire: Wire) -> Self {
        let Wire { path, rule, expected, found, stage, severity, span, .. } = wire;
        Self { path, rule, expected, found, stage, severity, span }
    }
}

impl From<Violation> for Wire {
    fn from(violation: Violation) -> Self {
        let (pointer, message) = (violation.path.pointer(), violation.message());
        let Violation { path, rule, expected, found, stage, severity, span } = violation;
        Self { path, pointer, rule, expected, found, stage, severity, span, message }
    }
}
