use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::find::{Findings, Found, find};
use crate::strict::read_strict;
use crate::tolerant::{Stop, parse_at};
use crate::{Edit, EditKind, Level, MAX_DEPTH, Span};

/// One reading of a text: the value, where it stands, and what was changed to read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The value.
    pub value: Value,
    /// The bytes of the text that it was read from.
    pub span: Span,
    /// Every difference between the text and the value, in the order of the text; empty if the text is JSON.
    pub edits: Vec<Edit>,
}

impl Candidate {
    /// Where the reader closed a document that the text did not: the byte from which on nothing was read.
    ///
    /// Whether that is acceptable depends on why the model stopped, so it is for the caller to decide.
    pub fn closed_at(&self) -> Option<usize> {
        self.edits.iter().find(|edit| edit.kind == EditKind::Closed).map(|edit| edit.span.start)
    }
}

/// Every reading of a text that makes sense, the best guess first. There is at least one.
///
/// A caller with a schema takes the first that satisfies it: the schema knows better than any guess.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    candidates: Vec<Candidate>,
}

impl Reading {
    /// The readings, best guess first; never empty.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The readings themselves, best guess first; never empty.
    pub fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }
}

/// Why a text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing but white space.
    Empty,
    /// There is no JSON object or array in it.
    NotFound,
    /// It ends inside a reasoning block, before any answer.
    OnlyReasoning,
    /// It cannot be read on at this byte.
    Syntax {
        /// Byte offset.
        at: usize,
        /// What was expected there.
        message: String,
    },
    /// Arrays and objects are nested deeper than the limit.
    TooDeep {
        /// Byte offset of the first bracket beyond the limit.
        at: usize,
        /// The limit, in brackets.
        limit: usize,
    },
    /// It is too ambiguous: reading it would take more than a fixed multiple of its length.
    TooAmbiguous {
        /// Byte offset at which reading was given up.
        at: usize,
    },
    /// The bytes are not UTF-8.
    NotUtf8 {
        /// Byte offset of the first bad byte.
        at: usize,
    },
}

impl ReadError {
    /// The byte offset that the error is about, if it is about one.
    pub const fn at(&self) -> Option<usize> {
        match self {
            Self::Empty | Self::NotFound | Self::OnlyReasoning => None,
            Self::Syntax { at, .. }
            | Self::TooDeep { at, .. }
            | Self::TooAmbiguous { at }
            | Self::NotUtf8 { at } => Some(*at),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the text is empty"),
            Self::NotFound => f.write_str("no JSON object or array in the text"),
            Self::OnlyReasoning => f.write_str("the text ends inside its reasoning, before any answer"),
            Self::Syntax { at, message } => write!(f, "not JSON at byte {at}: {message}"),
            Self::TooDeep { at, limit } => write!(f, "nested deeper than {limit} levels at byte {at}"),
            Self::TooAmbiguous { at } => write!(f, "too ambiguous to read at byte {at}"),
            Self::NotUtf8 { at } => write!(f, "not UTF-8 at byte {at}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reads the JSON in a text, as tolerantly as `level` says.
///
/// Text that is JSON already is read by serde_json and returned unchanged at every level, with one exception: at
/// [`Level::Lenient`] a string that holds a whole document comes second, the document first.
///
/// Time and memory are linear in the text. Nothing panics, whatever the text.
///
/// # Errors
/// [`ReadError`], if there is no JSON in the text or the level does not allow the edits that reading would take.
///
/// ```
/// use formwork_json::{EditKind, Level, read};
///
/// let reading = read("Sure:\n```json\n{\"age\": 34,}\n```", Level::Clean)?;
/// let best = &reading.candidates()[0];
/// assert_eq!(best.value, serde_json::json!({"age": 34}));
/// let kinds: Vec<_> = best.edits.iter().map(|edit| edit.kind).collect();
/// assert_eq!(kinds, [EditKind::Prose, EditKind::Fence, EditKind::TrailingComma, EditKind::Fence]);
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
pub fn read(text: &str, level: Level) -> Result<Reading, ReadError> {
    match read_strict(text) {
        Ok((value, edits)) => Ok(Reading { candidates: already_json(text, value, edits, level) }),
        Err(_) if text.trim().is_empty() => Err(ReadError::Empty),
        Err(error) if level == Level::Strict => Err(error),
        Err(_) => tolerant(text, level),
    }
}

/// Reads the JSON in bytes that should be UTF-8; see [`read`].
///
/// # Errors
/// As [`read`], and [`ReadError::NotUtf8`].
pub fn read_bytes(bytes: &[u8], level: Level) -> Result<Reading, ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 { at: error.valid_up_to() })?;
    read(text, level)
}

fn already_json(text: &str, value: Value, edits: Vec<Edit>, level: Level) -> Vec<Candidate> {
    let start = text.len() - text.trim_start().len();
    let span = Span::new(start, text.trim_end().len());
    let inner = match &value {
        Value::String(inner) if level >= Level::Lenient && inner.trim_start().starts_with(['{', '[']) => {
            read(inner, level).ok().and_then(|reading| reading.candidates.into_iter().next())
        }
        _ => None,
    };
    let inner = inner.map(|inner| {
        // Offsets inside the decoded string mean nothing in the text: the kinds are kept, at the whole string.
        let kinds = std::iter::once(EditKind::DoubleEncoded).chain(inner.edits.iter().map(|edit| edit.kind));
        Candidate { value: inner.value, span, edits: kinds.map(|kind| Edit::new(kind, span, "")).collect() }
    });
    inner.into_iter().chain([Candidate { value, span, edits }]).collect()
}

/// How many bytes may be read for each byte of text, retries and look-ahead included.
const WORK_FACTOR: usize = 16;

fn tolerant(text: &str, level: Level) -> Result<Reading, ReadError> {
    let mut work = text.len().saturating_mul(WORK_FACTOR) + 4096;
    if let Some(found) = unescaped(text, level, &mut work) {
        return Ok(Reading { candidates: vec![with_surroundings(text, found, &[])] });
    }
    let mut findings = find(text, level, &mut work);
    if findings.found.is_empty() {
        findings.found.extend(scalar(text, level, &findings, &mut work));
    }
    if findings.found.is_empty() {
        return Err(match findings.stop {
            Some(Stop::TooDeep { at }) => ReadError::TooDeep { at, limit: MAX_DEPTH },
            Some(Stop::TooMuchWork { at }) => ReadError::TooAmbiguous { at },
            Some(Stop::Syntax { at, message }) => ReadError::Syntax { at, message },
            None if findings.unfinished_reasoning => ReadError::OnlyReasoning,
            None => ReadError::NotFound,
        });
    }
    let Findings { found, skipped, .. } = findings;
    let sequence = sequence(text, &found, level);
    let mut ranked: Vec<Found> = found;
    ranked.sort_by_key(|found| std::cmp::Reverse(rank(found)));
    let candidates = sequence.into_iter().chain(ranked);
    Ok(Reading { candidates: candidates.map(|found| with_surroundings(text, found, &skipped)).collect() })
}

/// The better the higher: fenced before bare, without doubtful edits before with, objects and arrays of some length
/// before asides like `[1]`, and of equals the one that stands last, because drafts come before answers.
fn rank(found: &Found) -> (bool, bool, usize, usize) {
    let doubtful = found.edits.iter().any(|edit| edit.kind.level() == Level::Lenient);
    (found.fenced, !doubtful, found.span.len(), found.span.start)
}

/// Adds what was skipped around a value to its edits, and puts them into the order of the text.
fn with_surroundings(text: &str, found: Found, skipped: &[Edit]) -> Candidate {
    let Found { value, span, mut edits, .. } = found;
    let skipped = skipped.iter().filter(|edit| !span.contains(edit.span));
    edits.extend(skipped.cloned());
    let mut known: Vec<Span> =
        edits.iter().map(|edit| edit.span).filter(|edit| !span.contains(*edit)).collect();
    known.push(span);
    known.sort_unstable();
    let mut from = 0;
    for next in known.into_iter().chain([Span::at(text.len())]) {
        let gap = text.get(from..next.start).unwrap_or_default();
        if !gap.trim().is_empty() {
            let start = from + (gap.len() - gap.trim_start().len());
            edits.push(Edit::new(EditKind::Prose, Span::new(start, start + gap.trim().len()), ""));
        }
        from = from.max(next.end);
    }
    edits.sort_by_key(|edit| edit.span);
    Candidate { value, span, edits }
}

/// Several documents with nothing but white space, commas or rules between them: JSON lines, read as one array.
fn sequence(text: &str, found: &[Found], level: Level) -> Option<Found> {
    let (first, last) = (found.first()?, found.last()?);
    let gaps = found.windows(2).map(|pair| Span::new(pair[0].span.end, pair[1].span.start));
    let apart = |gap: Span| gap.of(text).chars().all(|c| c.is_whitespace() || matches!(c, ',' | ';' | '-'));
    if level < Level::Lenient || found.len() < 2 || !gaps.into_iter().all(apart) {
        return None;
    }
    let span = Span::new(first.span.start, last.span.end);
    let mut edits = vec![Edit::new(EditKind::Sequence, span, "")];
    edits.extend(found.iter().flat_map(|found| found.edits.iter().cloned()));
    let value = Value::Array(found.iter().map(|found| found.value.clone()).collect());
    Some(Found { value, span, edits, fenced: first.fenced })
}

/// Text that was escaped once too often: `{\"a\": 1}`. A backslash after a bracket can mean nothing else.
fn unescaped(text: &str, level: Level, work: &mut usize) -> Option<Found> {
    let start = text.find("{\\\"").or_else(|| text.find("[\\\"")).filter(|_| level >= Level::Lenient)?;
    let region = text.get(start..)?.trim_end();
    let plain: String = serde_json::from_str(&format!("\"{}\"", region.replace('\n', "\\n"))).ok()?;
    let parsed = parse_at(&plain, Span::new(0, plain.len()), level, work).ok()?;
    let span = Span::new(start, start + region.len());
    let kinds = std::iter::once(EditKind::Escaped).chain(parsed.edits.iter().map(|edit| edit.kind));
    let edits = kinds.map(|kind| Edit::new(kind, span, "")).collect();
    Some(Found { value: parsed.value, span, edits, fenced: false })
}

/// A string, number or literal that is all there is beside fences and reasoning.
fn scalar(text: &str, level: Level, findings: &Findings, work: &mut usize) -> Option<Found> {
    if findings.unfinished_reasoning {
        return None;
    }
    let mut rest = Span::new(0, text.len());
    for Edit { span, .. } in &findings.skipped {
        let before = Span::new(rest.start, span.start);
        if before.of(text).trim().is_empty() {
            rest.start = span.end;
        } else {
            rest.end = span.start;
            break;
        }
    }
    let lead = rest.of(text).len() - rest.of(text).trim_start().len();
    let region = Span::new(rest.start + lead, rest.start + rest.of(text).trim_end().len());
    if let Ok((value, edits)) = read_strict(region.of(text)) {
        return Some(Found { value, span: region, edits, fenced: false });
    }
    // In Markdown a backtick marks code, not a string.
    if level < Level::Lenient || region.of(text).starts_with('`') {
        return None;
    }
    let parsed = parse_at(text, region, level, work).ok()?;
    let whole = parsed.span.end == region.end;
    whole.then_some(Found { value: parsed.value, span: parsed.span, edits: parsed.edits, fenced: false })
}
