use std::fmt;

use formwork_json::line_column;

/// The mistakes in a document that cannot be used.
///
/// `{}` formats the first mistake in one line. `{:#}` formats all of them, each with its line and a caret below the
/// column.
///
/// ```
/// use formwork_review::document::{Document, Format};
///
/// let error = Document::parse("tone.yaml", "name: [tone\n", Format::Yaml).unwrap_err();
/// assert_eq!((error.findings().len(), error.findings()[0].file.as_str()), (1, "tone.yaml"));
/// assert!(format!("{error:#}").contains("| name: [tone"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    findings: Vec<Finding>,
}

/// One mistake in a document, and its location.
///
/// ```
/// use formwork_core::JsonPath;
/// use formwork_review::document::{Document, Format};
///
/// let document = Document::parse("port.toml", "number = 0\n", Format::Toml)?;
/// let finding = document.finding(&JsonPath::root().key("number"), "expected a port above 0");
/// assert_eq!((finding.line, finding.column), (1, 10));
/// assert_eq!(finding.to_string(), "port.toml:1:10: expected a port above 0");
/// # Ok::<(), formwork_review::document::DocumentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The reason and the expectation, in one line.
    pub message: String,
    /// The line of the text, cut if it is long, with carets on the line below.
    pub excerpt: String,
}

/// The maximum number of characters of an excerpt before and after the location.
const MARGIN: usize = 60;

/// The maximum number of characters of a message, which may quote values of the document.
const MAX_MESSAGE: usize = 400;

impl DocumentError {
    /// Creates an error of these mistakes, at least one.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// Returns all mistakes, in the order of the document.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl Finding {
    pub(super) fn new(file: &str, text: &str, at: usize, message: impl Into<String>) -> Self {
        let (line, column) = line_column(text, at);
        let source_line = text.split('\n').nth(line - 1).unwrap_or_default().trim_end_matches('\r');
        let message: String = message.into().split_whitespace().collect::<Vec<_>>().join(" ");
        let message = if message.chars().count() > MAX_MESSAGE {
            message.chars().take(MAX_MESSAGE).chain(['…']).collect()
        } else {
            message
        };
        Self { file: file.to_owned(), line, column, message, excerpt: excerpt(line, column, source_line) }
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

/// Returns the line, with carets below the word at the column.
fn excerpt(line: usize, column: usize, source_line: &str) -> String {
    let characters: Vec<char> = source_line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
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
