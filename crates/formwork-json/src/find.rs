//! Where in a text JSON can be: outside of reasoning, inside of fences first, and in prose.

use serde_json::Value;

use crate::source::{Source, Work};
use crate::tolerant::{Stop, Tolerated, parse_at};
use crate::{Edit, EditKind, Level, Span};

/// One value found in a text, before it is ranked.
pub(crate) struct Found {
    pub(crate) value: Value,
    pub(crate) span: Span,
    pub(crate) edits: Vec<Edit>,
    pub(crate) fenced: bool,
}

/// The contents of a whole text.
pub(crate) struct Findings {
    pub(crate) found: Vec<Found>,
    /// Parts that are no JSON and no prose: fences, reasoning, byte order mark.
    pub(crate) skipped: Vec<Edit>,
    /// The failure that got furthest, for the error if nothing was found.
    pub(crate) stop: Option<Stop>,
    /// The text ends inside a reasoning block.
    pub(crate) unfinished_reasoning: bool,
}

/// The marks that open a reasoning block and that close it, as models write them.
pub(crate) const REASONING: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// Finds every object and array that stands outside of reasoning, in the order of the text.
pub(crate) fn find(text: &str, level: Level, work: &Work) -> Findings {
    let mut scan = Scan {
        text,
        source: Source::new(text, text.len(), work),
        work,
        level,
        at: 0,
        fence: None,
        findings: Findings {
            found: Vec::new(),
            skipped: Vec::new(),
            stop: None,
            unfinished_reasoning: false,
        },
    };
    if text.starts_with('\u{FEFF}') {
        scan.skip(EditKind::ByteOrderMark, '\u{FEFF}'.len_utf8());
    }
    loop {
        scan.at = scan.source.find(scan.at, |c| matches!(c, '{' | '[' | '<' | '`' | '~'));
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
    findings: Findings,
}

/// A fence that is open.
struct Fence {
    /// The mark that closes it.
    marker: &'static str,
    /// Where the next marker stands, the end of the text if there is none; looked for only when it is needed.
    end: Option<usize>,
}

impl Scan<'_> {
    fn skip(&mut self, kind: EditKind, len: usize) {
        self.findings.skipped.push(Edit::new(kind, Span::new(self.at, self.at + len), ""));
        self.at += len;
    }

    /// Skips a reasoning block, or a closing tag whose opening one the chat template wrote.
    fn reasoning(&mut self) -> bool {
        let source = self.source;
        for (open, close) in REASONING {
            if source.starts_with_tag(self.at, open) {
                // Tags are ASCII: a place that begins like one is the beginning of a character.
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
                self.at = 0;
                self.skip(EditKind::Reasoning, end);
                return true;
            }
        }
        false
    }

    /// Skips a fence marker; an opening one with its info string.
    fn fence(&mut self) -> bool {
        let markers = ["```", "~~~"];
        let Some(marker) = markers.into_iter().find(|marker| self.source.starts_with(self.at, marker)) else {
            return false;
        };
        let mut end = self.at + marker.len();
        if self.fence.take().is_none() {
            end = self.source.find(end, |c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+'));
            self.fence = Some(Fence { marker, end: None });
        }
        self.skip(EditKind::Fence, end - self.at);
        true
    }

    /// Where the open fence ends at the latest: the next marker from here on, the end of the text if there is none.
    fn fence_end(&mut self) -> Option<usize> {
        let (source, at) = (self.source, self.at);
        let Fence { marker, end } = self.fence.as_mut()?;
        // Each marker is looked for once: a fence may hold many brackets that begin nothing.
        let known = end.filter(|end| *end >= at);
        Some(*end.insert(known.unwrap_or_else(|| source.find_word(at, marker).unwrap_or(source.end()))))
    }

    /// Reads the object or array that starts here, if one does.
    fn json(&mut self) -> bool {
        if !matches!(self.source.byte(self.at), Some(b'{' | b'[')) {
            return false;
        }
        let region = Span::new(self.at, self.text.len());
        let mut parsed = parse_at(self.text, region, self.level, self.work);
        if parsed.as_ref().map_or(true, is_closed)
            && let Some(end) = self.fence_end().filter(|end| *end < self.text.len())
        {
            // The document does not end before the fence does: then it ends there.
            parsed = parse_at(self.text, Span::new(self.at, end), self.level, self.work);
        }
        match parsed {
            Ok(Tolerated { value, span, edits }) => {
                self.at = span.end.max(self.at + 1);
                self.findings.found.push(Found { value, span, edits, fenced: self.fence.is_some() });
                true
            }
            Err(stop) => {
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
