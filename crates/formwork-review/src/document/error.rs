use std::fmt;

use formwork_json::line_column;

/// A document that cannot be used: everything that is wrong with it.
///
/// `{}` is the first thing in one line, `{:#}` all of them, each with its line and a caret below the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    findings: Vec<Finding>,
}

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The reason and what was expected, in one line.
    pub message: String,
    /// The line of the text, cut if it is long, and the mark below it.
    pub excerpt: String,
}

/// The most characters of a line that are shown before and after the place.
const MARGIN: usize = 60;

/// The most characters of a message: values of the document may be in it.
const MAX_MESSAGE: usize = 400;

impl DocumentError {
    /// These findings; at least one.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// Everything that is wrong.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl Finding {
    pub(super) fn new(file: &str, text: &str, at: usize, message: impl Into<String>) -> Self {
        let (line, column) = line_column(text, at);
        let shown = text.split('\n').nth(line - 1).unwrap_or_default().trim_end_matches('\r');
        let message: String = message.into().split_whitespace().collect::<Vec<_>>().join(" ");
        let message = if message.chars().count() > MAX_MESSAGE {
            message.chars().take(MAX_MESSAGE).chain(['…']).collect()
        } else {
            message
        };
        Self { file: file.to_owned(), line, column, message, excerpt: excerpt(line, column, shown) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if f.alternate() { write!(f, "\n{}", self.excerpt) } else { Ok(()) }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.findings.split_first() else { return Ok(()) };
        if f.alternate() {
            write!(f, "{first:#}")?;
            return rest.iter().try_for_each(|finding| write!(f, "\n{finding:#}"));
        }
        write!(f, "{first}")?;
        if rest.is_empty() { Ok(()) } else { write!(f, " (and {} more)", rest.len()) }
    }
}

impl std::error::Error for DocumentError {}

impl From<DocumentError> for formwork_core::Error {
    fn from(error: DocumentError) -> Self {
        Self::new(formwork_core::ErrorKind::Config, error.to_string())
    }
}

/// The line and a mark below the word at the column.
fn excerpt(line: usize, column: usize, shown: &str) -> String {
    let characters: Vec<char> = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let at = (column - 1).min(characters.len());
    let (from, to) = (at.saturating_sub(MARGIN), (at + MARGIN).min(characters.len()));
    let ends = |c: &char| c.is_whitespace() || matches!(c, ':' | ',' | ']' | '}');
    let marked = characters.iter().skip(at).take(MARGIN).take_while(|c| !ends(c)).count().max(1);
    let part: String = characters.get(from..to).unwrap_or_default().iter().collect();
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let (before, mark) = (" ".repeat(at - from), "^".repeat(marked));
    format!("{margin} |\n{number} | {}\n{margin} | {before}{mark}", part.trim_end())
}
