use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Severity;

/// A finding of a linter about one place of a schema.
///
/// `L` is the level of the finding: the [`Severity`] of a likely mistake, or a server's reaction to a keyword.
///
/// ```
/// use formwork_core::{LintFinding, Severity};
///
/// let finding = LintFinding::new("/requird", Severity::Warning, "unknown keyword");
/// assert_eq!(finding.to_string(), "warning: #/requird: unknown keyword");
/// assert_eq!(finding.with_keyword("requird").to_string(), "#/requird: `requird` warning: unknown keyword");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LintFinding")]
#[non_exhaustive]
pub struct LintFinding<L = Severity> {
    /// The schema with the defect, as an RFC 6901 JSON Pointer.
    pub pointer: String,
    /// The keyword, present or missing there, if the finding is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// The level of the finding.
    pub verdict: L,
    /// The reason, for people.
    pub words: String,
}

impl<L> LintFinding<L> {
    /// Creates a finding that is about no single keyword.
    pub fn new(pointer: impl Into<String>, verdict: L, words: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), keyword: None, verdict, words: words.into() }
    }

    /// Sets the keyword (default: none).
    #[must_use]
    pub fn with_keyword(mut self, keyword: impl Into<String>) -> Self {
        self.keyword = Some(keyword.into());
        self
    }
}

impl<L: fmt::Display> fmt::Display for LintFinding<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, verdict, words } = self;
        match keyword {
            Some(keyword) => write!(f, "#{pointer}: `{keyword}` {verdict}: {words}"),
            None => write!(f, "{verdict}: #{pointer}: {words}"),
        }
    }
}
