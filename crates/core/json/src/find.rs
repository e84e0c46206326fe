//! Finds the places of a text at which JSON can begin: outside of reasoning, first inside of fences, then in prose.

use serde_json::Value;

use crate::source::{REASONING, Source, Work};
use crate::tolerant::{Failure, Stop, Tolerated, parse_at};
use crate::{Edit, EditKind, Level, Rounded, Span};

/// One value found in a text, before it is ranked.
pub(crate) struct Found {
    pub(crate) value: Value,
    pub(crate) span: Span,
    pub(crate) edits: Vec<Edit>,
    pub(crate) rounded: Vec<Rounded>,
    pub(crate) fenced: bool,
}

/// The findings in a whole text.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<Found>,
    /// Parts that are neither JSON nor prose: fences, reasoning, byte order mark.
    pub(crate) skipped: Vec<Edit>,
    /// The failure that got furthest, for the error if nothing is found.
    pub(crate) stop: Option<Stop>,
    /// Whether the text ends inside a reasoning block.
    pub(crate) unfinished_reasoning: bool,
}

/// Finds every object and array outside of reasoning, in the order of the text.
pub(crate) fn find(text: &str, level: Level, work: &Work) -> Findings {
    let mut scan = Scan {
        text,
        source: Source::new(text, text.len(), work),
        work,
        level,
        at: 0,
        fence: None,
        failed: Failed::default(),
        findings: Findings::default(),
    };
    if text.starts_with('\u{FEFF}') {
        scan.skip(EditKind::ByteOrderMark, '\u{FEFF}'.len_utf8());
    }
    loop {
        scan.at = scan.source.find(scan.at, |c| matches!(c, '{' | '[' | '}' | ']' | '<' | '`' | '~'));
        if scan.at >= text.len() {
            break;
        }
        if !scan.reasoning() && !scan.fence() && !scan.json() {
            scan.at += 1;
        }
        if matches!(scan.findings.stop, Some(Stop::TooDeep { .. } | Stop::TooMuchWork { .. })) {
            break;
        }
    }
    scan.findings
}

struct Scan<'t> {
    text: &'t str,
    source: Source<'t>,
    work: &'t Work,
    level: Level,
    at: usize,
    fence: Option<Fence>,
    failed: Failed,
    findings: Findings,
}

/// The documents that began and could not be read. A document inside of one of them is a part of an answer, and not read.
#[derive(Default)]
struct Failed {
    /// The byte up to which the last one was read.
    until: usize,
    /// The number of documents before the first one, which a closing bracket of no other one ends.
    first: Option<usize>,
    /// For each object without an end so far, the number of documents before its outermost one; `None` for prose in braces.
    objects: Vec<Option<usize>>,
    /// The same for arrays.
    arrays: Vec<Option<usize>>,
}

impl Failed {
    const fn starts(&mut self, is_object: bool) -> &mut Vec<Option<usize>> {
        if is_object { &mut self.objects } else { &mut self.arrays }
    }
}

/// An open fence.
struct Fence {
    /// The marker that closes it.
    marker: &'static str,
    /// The offset of the next marker, or the end of the text; computed when it is first needed.
    end: Option<usize>,
}

impl Scan<'_> {
    fn skip(&mut self, kind: EditKind, len: usize) {
        self.findings.skipped.push(Edit::new(kind, Span::new(self.at, self.at + len), ""));
        self.at += len;
    }

    /// Skips a reasoning block, or a closing tag whose opening tag was part of the chat template.
    fn reasoning(&mut self) -> bool {
        let source = self.source;
        for (open, close) in REASONING {
            if source.starts_with_tag(self.at, open) {
                // Tags are ASCII, so a match begins at a character boundary.
                let first = close.chars().next().unwrap_or('<');
                let mut at = source.find(self.at, |c| c == first);
                while at < source.end() && !source.starts_with_tag(at, close) {
                    at = source.find(at + 1, |c| c == first);
                }
                self.findings.unfinished_reasoning = at >= source.end();
                self.skip(EditKind::Reasoning, (at + close.len()).min(source.end()) - self.at);
                return true;
            }
            if source.starts_with_tag(self.at, close) {
                let end = self.at + close.len();
                self.findings.found.clear();
                self.findings.skipped.clear();
                (self.at, self.failed) = (0, Failed::default());
                self.skip(EditKind::Reasoning, end);
                return true;
            }
        }
        false
    }

    /// Skips a fence marker; after an opening marker, its info string too.
    fn fence(&mut self) -> bool {
        let markers = ["```", "~~~"];
        let Some(marker) = markers.into_iter().find(|marker| self.source.starts_with(self.at, marker)) else {
            return false;
        };
        // A document inside of a fence is no part of one outside of it.
        self.failed = Failed::default();
        let mut end = self.at + marker.len();
        if self.fence.take().is_none() {
            end = self.source.find(end, |c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+'));
            self.fence = Some(Fence { marker, end: None });
        }
        self.skip(EditKind::Fence, end - self.at);
        true
    }

    /// Returns the latest possible end of the open fence: the next marker, or the end of the text.
    fn fence_end(&mut self) -> Option<usize> {
        let (source, at) = (self.source, self.at);
        let Fence { marker, end } = self.fence.as_mut()?;
        // Each marker is searched for only once, because a fence may contain many brackets that begin no document.
        let known = end.filter(|end| *end >= at);
        Some(*end.insert(known.unwrap_or_else(|| source.find_word(at, marker).unwrap_or(source.end()))))
    }

    /// Returns whether the text from here on is the beginning of a document, and not of prose in brackets.
    fn is_document(&self, is_object: bool) -> bool {
        let next = |at: usize| self.source.find(at, |c| !c.is_whitespace());
        let first = next(self.at + 1);
        match self.source.byte(first) {
            Some(b'"' | b'\'') => true,
            Some(b'{' | b'[') => !is_object,
            _ => {
                let name = self.source.find(first, |c| !c.is_alphanumeric() && c != '_');
                is_object && name > first && self.source.byte(next(name)) == Some(b':')
            }
        }
    }

    /// Returns whether the bracket here is an index (`f[0]`), a footnote or a pattern (`/[a-z]/`): it touches the word before it, and
    /// has one word. Scripts without case write no spaces between a word and a list.
    fn is_index(&self) -> bool {
        let before = self.text.get(..self.at).and_then(|before| before.chars().next_back());
        let touches = before.is_some_and(|c| {
            c.is_lowercase() || c.is_uppercase() || c.is_numeric() || matches!(c, '_' | '/')
        });
        let is_after_fence = self.findings.skipped.last().is_some_and(|edit| edit.span.end == self.at);
        let end = self.source.find(self.at + 1, |c| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
        touches && !is_after_fence && end > self.at + 1 && self.source.byte(end) == Some(b']')
    }

    /// Reads the object or array that begins here, if one does.
    fn json(&mut self) -> bool {
        let is_object = match self.source.byte(self.at) {
            _ if self.at < self.failed.until => return false,
            Some(byte @ (b'{' | b'[')) => byte == b'{',
            Some(byte @ (b'}' | b']')) => {
                let first = self.failed.first;
                if let Some(kept) = self.failed.starts(byte == b'}').pop().unwrap_or(first) {
                    self.findings.found.truncate(kept);
                }
                return false;
            }
            _ => return false,
        };
        if !is_object && self.is_index() {
            self.failed.arrays.push(None);
            return false;
        }
        let region = Span::new(self.at, self.text.len());
        let mut parsed = parse_at(self.text, region, self.level, self.work);
        if parsed.as_ref().map_or(true, is_closed)
            && let Some(end) = self.fence_end().filter(|end| *end < self.text.len())
        {
            // The document runs past the end of the fence: read it up to there.
            parsed = parse_at(self.text, Span::new(self.at, end), self.level, self.work);
        }
        match parsed {
            Ok(Tolerated { value, span, edits, rounded }) => {
                self.at = span.end.max(self.at + 1);
                self.findings.found.push(Found { value, span, edits, rounded, fenced: self.fence.is_some() });
                true
            }
            Err(Failure { stop, open }) => {
                if self.is_document(is_object) {
                    let kept = self.findings.found.len();
                    for bracket in open.into_iter().filter(|bracket| *bracket != b'(') {
                        self.failed.starts(bracket == b'{').push(Some(kept));
                    }
                    self.failed.until = stop.at();
                    self.failed.first.get_or_insert(kept);
                } else {
                    self.failed.starts(is_object).push(None);
                }
                if self.findings.stop.as_ref().is_none_or(|furthest| furthest.at() < stop.at())
                    || !matches!(stop, Stop::Syntax { .. })
                {
                    self.findings.stop = Some(stop);
                }
                false
            }
        }
    }
}

fn is_closed(tolerated: &Tolerated) -> bool {
    tolerated.edits.iter().any(|edit| edit.kind == EditKind::Closed)
}
