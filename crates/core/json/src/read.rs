use std::sync::Arc;

use serde_json::Value;

use crate::find::{Findings, Found, find};
use crate::rounded::refused;
use crate::source::Work;
use crate::strict::{Document, read_strict};
use crate::tolerant::{Stop, Tolerated, parse_at};
use crate::{Edit, EditKind, JsonPath, Level, MAX_DEPTH, ReadError, Rounded, Span};

/// One reading of a text: the value, its place in the text, and the repairs.
///
/// ```
/// use formwork_json::{Level, read};
///
/// let text = "Here you are: {\"age\": 34,}";
/// let best = &read(text, Level::Clean)?.into_candidates()[0];
/// assert_eq!((best.span.of(text), best.edits.len(), best.around().count()), ("{\"age\": 34,}", 1, 1));
/// assert!(!best.is_exact());
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The value.
    pub value: Value,
    /// The bytes of the text that it was read from.
    pub span: Span,
    /// The differences between these bytes and the value, in the order of the text; empty if they are JSON.
    pub edits: Vec<Edit>,
    /// The numbers that the value does not hold exactly, in the order of the text. One beyond the range of a double is `null` in the value.
    pub rounded: Vec<Rounded>,
    /// The edits outside of documents, and the documents, in the order of the text. All candidates share the list.
    outside: Arc<[Edit]>,
}

impl Candidate {
    /// Returns the parts of the text around the value that were skipped: prose, fences, reasoning, and other documents.
    pub fn around(&self) -> impl Iterator<Item = &Edit> {
        self.outside.iter().filter(|edit| !self.span.contains(edit.span))
    }

    /// Returns whether several documents were read [as one array](EditKind::Sequence).
    pub fn is_sequence(&self) -> bool {
        self.edits.iter().any(|edit| edit.kind == EditKind::Sequence)
    }

    /// Returns whether the text is the value as JSON, and nothing else. Its numbers may be [rounded](Self::rounded).
    pub fn is_exact(&self) -> bool {
        self.edits.is_empty() && self.around().next().is_none()
    }

    /// Returns all differences between the whole text and the value, in the order of the text; empty if the text is JSON.
    pub fn all_edits(&self) -> Vec<Edit> {
        let (before, after): (Vec<&Edit>, Vec<&Edit>) =
            self.around().partition(|edit| edit.span.start < self.span.start);
        before.into_iter().chain(&self.edits).chain(after).cloned().collect()
    }

    /// Returns the byte from which on the reader closed an incomplete document itself; `None` if the document is complete.
    ///
    /// The caller decides whether to accept that, because it depends on the reason why the model stopped.
    pub fn closed_at(&self) -> Option<usize> {
        self.edits.iter().find(|edit| edit.kind == EditKind::Closed).map(|edit| edit.span.start)
    }
}

/// The plausible readings of a text, at least one, the best guess first.
///
/// A caller with a schema takes the first candidate that satisfies it: the schema decides better than any guess.
///
/// ```
/// use formwork_json::{Level, read};
///
/// let reading = read("{\"draft\": 1}\n{\"age\": 34}", Level::Lenient)?;
/// assert_eq!(reading.documents().len(), 2);
/// assert!(reading.candidates().iter().any(|candidate| candidate.is_sequence()));
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    candidates: Vec<Candidate>,
}

impl Reading {
    /// Returns the candidates, best guess first; never empty.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the documents in the text, each once, in the order of the text. Documents that are also read [as one
    /// array](EditKind::Sequence) are listed one by one.
    pub fn documents(&self) -> Vec<&Candidate> {
        let mut documents: Vec<&Candidate> =
            self.candidates.iter().filter(|candidate| !candidate.is_sequence()).collect();
        documents.sort_by_key(|candidate| candidate.span);
        // A document inside of a JSON string is a candidate in both forms, the document first.
        documents.dedup_by_key(|candidate| candidate.span);
        documents
    }

    /// Returns the candidates by value, best guess first; never empty.
    pub fn into_candidates(self) -> Vec<Candidate> {
        self.candidates
    }
}

/// Reads the JSON in a text, as tolerantly as `level` allows.
///
/// A text that is valid JSON is read by serde_json and returned unchanged at every level, with one exception: at
/// [`Level::Lenient`], a string that contains a whole document is the second candidate, after the document.
///
/// Time and memory are linear in the text: no byte is examined more often than a fixed number of times. No text causes a
/// panic.
///
/// # Errors
/// [`ReadError`], if there is no JSON in the text or the level does not allow the necessary edits.
///
/// ```
/// use formwork_json::{EditKind, Level, read};
///
/// let reading = read("Sure:\n```json\n{\"age\": 34,}\n```", Level::Clean)?;
/// let best = &reading.candidates()[0];
/// assert_eq!(best.value, serde_json::json!({"age": 34}));
/// let kinds: Vec<_> = best.all_edits().iter().map(|edit| edit.kind).collect();
/// assert_eq!(kinds, [EditKind::Prose, EditKind::Fence, EditKind::TrailingComma, EditKind::Fence]);
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
pub fn read(text: &str, level: Level) -> Result<Reading, ReadError> {
    match read_strict(text) {
        Ok(document) => Ok(Reading { candidates: already_json(text, document, level) }),
        Err(error) if level == Level::Strict || text.trim().is_empty() => Err(empty_or(text, error)),
        Err(_) => tolerant(text, level),
    }
}

/// Reads the JSON in UTF-8 bytes; see [`read`].
///
/// # Errors
/// The errors of [`read`], and [`ReadError::NotUtf8`].
///
/// ```
/// use formwork_json::{Level, ReadError, read_bytes};
///
/// assert_eq!(read_bytes(b"{\"age\": \xFF}", Level::Clean), Err(ReadError::NotUtf8 { at: 8 }));
/// ```
pub fn read_bytes(bytes: &[u8], level: Level) -> Result<Reading, ReadError> {
    read(utf8(bytes)?, level)
}

/// Reads UTF-8 bytes as one JSON document without repairs, for files and arguments of people.
///
/// # Errors
/// The errors of [`read_bytes`], and [`ReadError::Inexact`] for a number that is no fraction and cannot be kept exactly.
///
/// ```
/// use formwork_json::read_exact;
///
/// assert_eq!(read_exact("[12.50]").map(|document| document.value), Ok(serde_json::json!([12.5])));
/// assert!(read_exact("[123456789012345678901]").is_err());
/// ```
pub fn read_exact(bytes: impl AsRef<[u8]>) -> Result<Candidate, ReadError> {
    let text = utf8(bytes.as_ref())?;
    let document = read_strict(text).map_err(|error| empty_or(text, error))?;
    refused(text, &document.rounded).map_or_else(|| Ok(document.into_candidate(text)), Err)
}

fn utf8(bytes: &[u8]) -> Result<&str, ReadError> {
    str::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 { at: error.valid_up_to() })
}

fn empty_or(text: &str, error: ReadError) -> ReadError {
    if text.trim().is_empty() { ReadError::Empty } else { error }
}

impl Document {
    /// Returns the reading of a text that is this document.
    fn into_candidate(self, text: &str) -> Candidate {
        let Self { value, edits, rounded } = self;
        let start = text.len() - text.trim_start().len();
        let span = Span::new(start, text.trim_end().len());
        Candidate { value, span, edits, rounded, outside: Arc::default() }
    }
}

fn already_json(text: &str, document: Document, level: Level) -> Vec<Candidate> {
    let whole = document.into_candidate(text);
    let inner = match &whole.value {
        Value::String(inner) if level >= Level::Lenient && inner.trim_start().starts_with(['{', '[']) => {
            read(inner, Level::Strict).ok().and_then(|reading| reading.candidates.into_iter().next())
        }
        _ => None,
    };
    let Some(inner) = inner else { return vec![whole] };
    // Offsets inside the decoded string are meaningless in the text, so each edit covers the whole string.
    let kinds = inner.all_edits().into_iter().map(|edit| edit.kind);
    let kinds = std::iter::once(EditKind::DoubleEncoded).chain(kinds);
    let edits = kinds.map(|kind| Edit::new(kind, whole.span, "")).collect();
    vec![Candidate { edits, outside: Arc::default(), span: whole.span, ..inner }, whole]
}

fn tolerant(text: &str, level: Level) -> Result<Reading, ReadError> {
    tolerant_with(text, level, &Work::for_len(text.len()))
}

/// Reads a text that is not valid JSON; `work` counts the bytes that are examined.
fn tolerant_with(text: &str, level: Level, work: &Work) -> Result<Reading, ReadError> {
    if let Some(found) = unescaped(text, level, work) {
        return Ok(Reading { candidates: with_surroundings(text, None, vec![found], Vec::new()) });
    }
    let mut findings = find(text, level, work);
    if findings.found.is_empty() {
        findings.found.extend(scalar(text, level, &findings, work));
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
    if found.iter().all(|found| is_lost(text, found)) {
        return Err(ReadError::Unfinished);
    }
    let sequence = sequence(text, &found, level);
    let candidates = with_surroundings(text, sequence, found, skipped);
    match candidates.first().and_then(|best| undecided(text, best)) {
        Some((at, message)) => Err(ReadError::Syntax { at, message: message.to_owned() }),
        None => Ok(Reading { candidates }),
    }
}

/// Returns whether nothing but brackets was kept of a document that the end of the text cut off.
fn is_lost(text: &str, Found { value, edits, .. }: &Found) -> bool {
    let skips = |edit: &Edit| edit.kind == EditKind::Closed && !edit.span.of(text).trim().is_empty();
    edits.iter().any(skips) && is_bare(value)
}

/// Returns whether a value has brackets alone.
fn is_bare(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_bare),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns the place and the reason, if the text allows several readings of a document that are equally good: a guess would return a
/// wrong value as often as a right one.
fn undecided(text: &str, best: &Candidate) -> Option<(usize, &'static str)> {
    const STRUCTURE: [EditKind; 5] =
        [EditKind::MissingComma, EditKind::MissingQuote, EditKind::Colon, EditKind::Junk, EditKind::Bracket];
    let rest = |at: usize| text.get(at..).unwrap_or_default().trim_start();
    let mut inner = best.edits.iter().filter(|edit| edit.kind == EditKind::InnerQuote).peekable();
    // A name without quotes is a notation: it leaves no doubt about the quotes of a text.
    let is_bare_name = |edit: &Edit| edit.with.len() > 1 && rest(edit.span.end).starts_with(':');
    let has_more = best.edits.iter().any(|edit| STRUCTURE.contains(&edit.kind) && !is_bare_name(edit));
    // A name ends, or the value of a name after a comma begins.
    let is_name = |edit: &&Edit| {
        let before =
            text.get(..edit.span.start).unwrap_or_default().trim_end().strip_suffix(':').unwrap_or_default();
        let before = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').trim_end();
        rest(edit.span.end).starts_with(':') || before.ends_with(',')
    };
    while let Some(edit) = inner.next() {
        let gap = text.get(edit.span.end..).unwrap_or_default();
        let next = gap.trim_start();
        // The text ends at this quote, or at the next one.
        let is_last = next.len() < gap.len()
            && next.starts_with(edit.span.of(text))
            && inner.peek().is_none_or(|inner| inner.span.start > text.len() - next.len());
        if has_more || is_name(&edit) || is_last {
            let reason = "a quote inside of a text that may also be the end of the text: escape it as \\\"";
            return Some((edit.span.start, reason));
        }
    }
    // A comment up to the end of the text, although a document is open: its brackets may be those of the document.
    let comment = best.edits.iter().rfind(|edit| edit.kind == EditKind::Comment);
    if let Some(edit) = comment.filter(|edit| best.closed_at().is_some() && edit.span.end == text.len()) {
        let depth = edit.span.of(text).chars().try_fold(0_u32, |depth, c| match c {
            '{' | '[' => Some(depth + 1),
            '}' | ']' => depth.checked_sub(1),
            _ => Some(depth),
        });
        if depth.is_none() {
            return Some((
                edit.span.start,
                "a comment that may hold the end of the document: end the comment before it",
            ));
        }
    }
    let after = rest(best.span.end).strip_prefix(',').map(str::trim_start);
    let after = after.and_then(|after| after.strip_prefix('"')).filter(|_| best.value.is_object());
    let (_, member) =
        after.and_then(|after| after.get(..after.len().min(MAX_NAME)).unwrap_or_default().split_once('"'))?;
    let is_member = member.trim_start().starts_with([':', '"']);
    is_member.then_some((best.span.end, "members after the end of the object"))
}

/// The number of bytes in which the end of a name is looked for.
const MAX_NAME: usize = 100;

/// Returns the rank of a finding, the greatest being the best guess: fenced before bare, without doubtful edits before
/// with, longer objects and arrays before asides like `[1]`, and of equals the last, because drafts come before answers.
fn rank(found: &Found) -> (bool, bool, usize, usize) {
    let doubtful = found.edits.iter().any(|edit| edit.kind.level() == Level::Lenient);
    (found.fenced, !doubtful, found.span.len(), found.span.start)
}

/// Returns the candidates, best guess first, with one list of the surrounding edits that they share: a list for each would
/// take time and memory quadratic in the text.
fn with_surroundings(
    text: &str,
    sequence: Option<Found>,
    mut found: Vec<Found>,
    skipped: Vec<Edit>,
) -> Vec<Candidate> {
    let documents = found.iter().map(|found| Edit::new(EditKind::OtherDocument, found.span, ""));
    let mut outside: Vec<Edit> = skipped.into_iter().chain(documents).collect();
    outside.sort_by_key(|edit| edit.span);
    let mut from = 0;
    let mut prose = Vec::new();
    for next in outside.iter().map(|edit| edit.span).chain([Span::at(text.len())]) {
        let gap = text.get(from..next.start).unwrap_or_default();
        if !gap.trim().is_empty() {
            let start = from + (gap.len() - gap.trim_start().len());
            prose.push(Edit::new(EditKind::Prose, Span::new(start, start + gap.trim().len()), ""));
        }
        from = from.max(next.end);
    }
    outside.extend(prose);
    outside.sort_by_key(|edit| edit.span);
    let outside: Arc<[Edit]> = outside.into();
    let is_second = has_one_value(text, &found);
    found.sort_by_cached_key(|found| std::cmp::Reverse(rank(found)));
    let candidate = |Found { value, span, mut edits, rounded, .. }| {
        edits.sort_by_key(|edit| edit.span);
        Candidate { value, span, edits, rounded, outside: Arc::clone(&outside) }
    };
    if let Some(sequence) = sequence {
        found.insert(usize::from(is_second), sequence);
    }
    found.into_iter().map(candidate).collect()
}

/// Returns the spans between documents.
fn gaps(found: &[Found]) -> impl Iterator<Item = Span> {
    found.windows(2).map(|pair| Span::new(pair[0].span.end, pair[1].span.start))
}

/// Returns whether one of several documents on a line has a value, so that the others are left over rather than its neighbours.
fn has_one_value(text: &str, found: &[Found]) -> bool {
    found.iter().filter(|found| !is_bare(&found.value)).count() == 1
        && gaps(found).all(|gap| !gap.of(text).contains('\n'))
}

/// Reads several documents with nothing but white space, commas or rules between them (JSON Lines) as one array.
fn sequence(text: &str, found: &[Found], level: Level) -> Option<Found> {
    let (first, last) = (found.first()?, found.last()?);
    let mut gaps = gaps(found);
    let apart = |gap: Span| {
        let between = without_comments(gap.of(text));
        between.chars().all(|c| c.is_whitespace() || matches!(c, ',' | ';' | '-'))
    };
    if level < Level::Lenient || found.len() < 2 || !gaps.all(apart) {
        return None;
    }
    let span = Span::new(first.span.start, last.span.end);
    let mut edits = vec![Edit::new(EditKind::Sequence, span, "")];
    edits.extend(found.iter().flat_map(|found| found.edits.iter().cloned()));
    let value = Value::Array(found.iter().map(|found| found.value.clone()).collect());
    let rounded = found.iter().enumerate().flat_map(|(index, found)| {
        let item = JsonPath::root().index(index);
        found
            .rounded
            .iter()
            .map(move |number| Rounded { path: item.join(number.path.segments()), text: number.text.clone() })
    });
    Some(Found { value, span, edits, rounded: rounded.collect(), fenced: first.fenced })
}

/// Returns a text between documents without the comments `/* … */` in it.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").map_or(part, |(_, after)| after))
}

/// Reads text that was escaped once too often: `{\"a\": 1}`. A backslash after a bracket has no other meaning outside of strings.
fn unescaped(text: &str, level: Level, work: &Work) -> Option<Found> {
    let begins = text.len() - text.trim_start().len();
    let is_string = text.get(begins..)?.starts_with("\\\"");
    let start = if is_string { Some(begins) } else { text.find("{\\\"").or_else(|| text.find("[\\\"")) };
    let is_in_string =
        |start: usize| text.get(..start).is_some_and(|before| before.matches('"').count() % 2 == 1);
    let start = start.filter(|start| level >= Level::Lenient && !is_in_string(*start))?;
    let region = text.get(start..)?.trim_end();
    let decoded = |region: &str| serde_json::from_str::<String>(&format!("\"{region}\"")).ok();
    let lines = region.replace('\n', "\\n");
    // Quotes inside of texts are sometimes escaped as `\\"` in the place of `\\\"`.
    let plain = decoded(&lines).or_else(|| decoded(&lines.replace("\\\\\"", "\\\\\\\"")))?;
    let parsed = parse_at(&plain, Span::new(0, plain.len()), level, work).ok()?;
    let span = Span::new(start, start + region.len());
    let kinds = std::iter::once(EditKind::Escaped).chain(parsed.edits.iter().map(|edit| edit.kind));
    let edits = kinds.map(|kind| Edit::new(kind, span, "")).collect();
    Some(Found { value: parsed.value, span, edits, rounded: parsed.rounded, fenced: false })
}

/// Reads a string, number or literal, if the text has nothing else besides fences and reasoning.
fn scalar(text: &str, level: Level, findings: &Findings, work: &Work) -> Option<Found> {
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
    let trimmed = rest.of(text).trim_end();
    let trimmed = if level < Level::Lenient { trimmed } else { trimmed.strip_suffix(';').unwrap_or(trimmed) };
    let region = Span::new(rest.start + lead, (rest.start + trimmed.len()).max(rest.start + lead));
    if let Ok(Document { value, edits, rounded }) = read_strict(region.of(text)) {
        return Some(Found { value, span: region, edits, rounded, fenced: false });
    }
    // In Markdown a backtick marks code, not a string.
    if region.of(text).starts_with('`') {
        return None;
    }
    if let Some(value) = numbers(region.of(text)).filter(|_| level >= Level::Lenient) {
        let edits = vec![Edit::new(EditKind::Sequence, region, "")];
        return Some(Found { value, span: region, edits, rounded: Vec::new(), fenced: false });
    }
    let parsed = parse_at(text, region, level, work).ok()?;
    // JSON that serde_json does not read is a number beyond the range of a double; anything else needs an edit.
    let whole = parsed.span.end == region.end && (level >= Level::Lenient || parsed.edits.is_empty());
    let Tolerated { value, span, edits, rounded } = parsed;
    whole.then_some(Found { value, span, edits, rounded, fenced: false })
}

/// Returns the list of numbers in a text that has nothing but numbers with commas or line ends after them; a single one is the value.
/// `1,5` and `1,234,567` may be one number each.
fn numbers(text: &str) -> Option<Value> {
    let separated = |c: char| matches!(c, ',' | '\n');
    let parts: Vec<&str> = text.split(separated).map(str::trim).filter(|part| !part.is_empty()).collect();
    let is_number = |part: &&str| part.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let is_grouped = |part: &&str| part.len() == 3 && part.bytes().all(|digit| digit.is_ascii_digit());
    let is_dense = !text.contains(char::is_whitespace);
    let is_one = is_dense && (parts.len() == 2 || parts.len() > 1 && parts.iter().skip(1).all(is_grouped));
    if is_one || !text.contains(separated) || !parts.iter().all(is_number) {
        return None;
    }
    let read = |part: &str| read_strict(part).ok().filter(|document| document.rounded.is_empty());
    let mut numbers: Vec<Value> =
        parts.iter().map(|part| Some(read(part)?.value)).collect::<Option<Vec<_>>>()?;
    if let [number] = numbers.as_mut_slice() {
        return Some(number.take());
    }
    (!numbers.is_empty()).then_some(Value::Array(numbers))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::WORK_FACTOR;

    const LEVELS: [Level; 2] = [Level::Clean, Level::Lenient];

    /// Returns the reading of a text, and the number of bytes that were examined for it.
    fn counted(text: &str, level: Level) -> (Result<Reading, ReadError>, usize) {
        let work = Work::for_len(text.len());
        (tolerant_with(text, level, &work), work.looked())
    }

    #[test]
    fn texts_that_begin_much_and_end_nothing_are_read_in_a_few_passes() {
        for (before, again) in [
            ("```", "{x "),
            ("```", "[x "),
            ("~~~json\n", "{'a': "),
            ("", "{x "),
            ("", "[x] "),
            ("", "{} a "),
            ("", "[1], "),
            ("", "```\n{\"a\": \"x\"}\n```\n"),
            ("", "<"),
            ("", "</thinkin "),
            ("", "<think>"),
            ("", "</think>"),
            ("", "<think>{}</think>"),
            ("", "[THINK]"),
            ("", "`"),
            ("", "~~"),
            ("[", "x(\n"),
            ("[\"", "\""),
            ("[", "// a\n"),
            ("{\"a\": ", " "),
            ("", "{\\\""),
        ] {
            for level in LEVELS {
                let text = format!("{before}{}", again.repeat(20_000));
                let (read, looked) = counted(&text, level);
                assert!(
                    looked <= 40 * text.len(),
                    "{before}{again} at {level}: {} a byte",
                    looked / text.len()
                );
                assert!(!matches!(read, Err(ReadError::TooAmbiguous { .. })), "{before}{again} at {level}");
            }
        }
    }

    /// Generates texts from a few pieces that matter to the reader.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[\\[\\]{}:,\"'`~<>\\\\/*#()=.+a1 \n-]{1,4}",
            prop::sample::select(vec![
                "```", "~~~", "<think>", "</think>", "[THINK]", "\"a\": ", "\": \"", "true", "x(", "/*",
                "*/", "//", "{\\\"", "\\u12", "\u{201C}", "\u{A0}", "\",\n\"", "    ", "{x ", "...",
            ])
            .prop_map(str::to_owned),
        ];
        let some = || prop::collection::vec(piece.clone(), 0..4).prop_map(|pieces| pieces.concat());
        (some(), some(), some(), 1usize..3_000)
            .prop_map(|(before, again, after, times)| format!("{before}{}{after}", again.repeat(times)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn no_byte_is_looked_at_more_than_a_fixed_number_of_times(text in hostile()) {
            for level in LEVELS {
                let (read, looked) = counted(&text, level);
                // The limit is checked between steps, and one step takes at most a few passes.
                let allowed = (WORK_FACTOR + 8) * text.len() + 32 * 1024;
                prop_assert!(looked <= allowed, "{} bytes: {looked} looked at, {allowed} allowed", text.len());
                let candidates = read.map(Reading::into_candidates).unwrap_or_default();
                let own: usize = candidates.iter().map(|candidate| candidate.edits.len()).sum();
                let outside = candidates.first().map_or(0, |candidate| candidate.outside.len());
                prop_assert!(own + outside <= 6 * text.len() + 2, "{own} + {outside} edits in {} bytes", text.len());
                let shared = |other: &Candidate| Arc::ptr_eq(&other.outside, &candidates[0].outside);
                prop_assert!(candidates.iter().all(shared));
            }
        }
    }
}
