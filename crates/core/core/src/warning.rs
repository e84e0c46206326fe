use std::fmt;

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Violation;

/// The maximum number of warnings of one kind in one answer.
pub(crate) const MAX_OF_A_KIND: usize = 20;

/// A fact about an accepted value that its reader should know: part of it was cut, repaired, dropped, chosen, rounded, coerced or
/// restrained, or a check that does not reject found something.
///
/// Its JSON form is `{"kind": "repaired", "path": "$.age", "message": "…"}`; `path` is missing where the whole value is concerned.
///
/// ```
/// use formwork_core::{Warning, WarningKind};
///
/// let warning = Warning::new(WarningKind::DuplicateKey, "the name occurs twice; the last value was used").at("$.name".parse()?);
/// assert_eq!(warning.to_string(), "duplicate_key at $.name: the name occurs twice; the last value was used");
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Warning {
    /// The kind. Stored runs of earlier versions, whose warnings were all of soft checks, have none.
    #[serde(default)]
    pub kind: WarningKind,
    /// The path of the value in question; `None` for the whole document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<JsonPath>,
    /// One sentence for people, without values of the answer.
    pub message: String,
}

/// The kind of a [`Warning`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// A soft rule or check found something.
    #[default]
    Check,
    /// An output mode was skipped, because its dialect cannot express the schema.
    Lowering,
    /// The answer was produced in a weaker output mode than configured.
    WeakerMode,
    /// The schema had bounds on lengths, because the target ran away with it.
    Bounded,
    /// The answer holds several documents, one of which was chosen.
    Documents,
    /// An object has a name twice; the last value was used.
    DuplicateKey,
    /// `null` in an optional member counts as absent and was removed.
    NullAsAbsent,
    /// The text was repaired to read it.
    Repaired,
    /// The value was incomplete and accepted all the same.
    Incomplete,
    /// A number was rounded, because its exact value cannot be kept.
    Rounded,
    /// A value was converted to the type that the schema requires.
    Coerced,
    /// The provider ended values that the schema allows to go on.
    Restrained,
    /// A target was left after an answer that was not accepted, because the next step was estimated to be cheaper on the next target.
    CheaperTarget,
    /// The provider reported no usage; the tokens are an estimate.
    EstimatedUsage,
    /// The target does not take a setting, which was not sent.
    IgnoredSetting,
    /// A schema was unwrapped: it stood inside of another object.
    Unwrapped,
    /// A remark of a layer or provider on the call that brought the value.
    Note,
}

impl WarningKind {
    /// Returns the name in JSON: `duplicate_key`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Lowering => "lowering",
            Self::WeakerMode => "weaker_mode",
            Self::Bounded => "bounded",
            Self::Documents => "documents",
            Self::DuplicateKey => "duplicate_key",
            Self::NullAsAbsent => "null_as_absent",
            Self::Repaired => "repaired",
            Self::Incomplete => "incomplete",
            Self::Rounded => "rounded",
            Self::Coerced => "coerced",
            Self::Restrained => "restrained",
            Self::CheaperTarget => "cheaper_target",
            Self::EstimatedUsage => "estimated_usage",
            Self::IgnoredSetting => "ignored_setting",
            Self::Unwrapped => "unwrapped",
            Self::Note => "note",
        }
    }
}

impl Warning {
    /// Creates a warning about the whole value.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self { kind, path: None, message: message.into() }
    }

    /// Sets the path of the value in question (default: none, the whole value).
    #[must_use]
    pub fn at(mut self, path: JsonPath) -> Self {
        self.path = Some(path);
        self
    }
}

/// A violation of a soft rule or check.
impl From<Violation> for Warning {
    fn from(violation: Violation) -> Self {
        Self::new(WarningKind::Check, violation.masked()).at(violation.path)
    }
}

/// Writes one line: `duplicate_key at $.name: the name occurs twice; the last value was used`.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if let Some(path) =
            self.path.as_ref().filter(|path| !path.is_root() && self.kind != WarningKind::Check)
        {
            let mut place = String::new();
            crate::violation::write_place(path, &mut place);
            write!(f, " at {place}")?;
        }
        write!(f, ": {}", self.message)
    }
}
