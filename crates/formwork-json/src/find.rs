//! Where in a text JSON can be: outside of reasoning, inside of fences first, and in prose.

use serde_json::Value;

use crate::tolerant::{Stop, Tolerated, parse_at};
use crate::{Edit, EditKind, Level, Span};

/// One value found in a text, before it is ranked.
pub(crate) struct Found {
    pub(crate) value: Value,
    pub(crate) span: Span,
    pub(crate) edits: Vec<Edit>,
    pub(crate) fenced: bool,
}

/// What a whole text holds.
pub(crate) struct Findings {
    pub(crate) found: Vec<Found>,
    /// Parts that are no JSON and no prose: fences, reasoning, byte order mark.
    pub(crate) skipped: Vec<Edit>,
    /// The failure that got furthest, for the error if nothing was found.
    pub(crate) stop: Option<Stop>,
    /// The text ends inside a reasoning block.
    pub(crate) unfinished_reasoning: bool,
}

/// Tags around reasoning, as models write them.
const REASONING: &[(&str, &str)] = &[
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
pub(crate) fn find(text: &str, level: Level, work: &mut usize) -> Findings {
    let mut scan = Scan {
        text,
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
    while let Some(step) = scan.rest().find(['{', '[', '<', '`', '~']) {
        scan.at += step;
        if !scan.reasoning() && !scan.fence() && !scan.json(work) {
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
    level: Level,
    at: usize,
    /// The marker that closes the open fence.
    fence: Option<&'t str>,
    findings: Findings,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, kind: EditKind, len: usize) {
        self.findings.skipped.push(Edit::new(kind, Span::new(self.at, self.at + len), ""));
        self.at += len;
    }

    /// Skips a reasoning block, or a closing tag whose opening one the chat template wrote.
    fn reasoning(&mut self) -> bool {
        let rest = self.rest();
        let tagged = |tag: &str| rest.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
        for (open, close) in REASONING {
            if tagged(open) {
                match find_ignoring_case(rest, close) {
                    Some(at) => self.skip(EditKind::Reasoning, at + close.len()),
                    None => {
                        self.skip(EditKind::Reasoning, rest.len());
                        self.findings.unfinished_reasoning = true;
                    }
                }
                return true;
            }
            if tagged(close) {
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
        let rest = self.rest();
        let Some(marker) = ["```", "~~~"].into_iter().find(|marker| rest.starts_with(marker)) else {
            return false;
        };
        if self.fence.take().is_some() {
            self.skip(EditKind::Fence, marker.len());
        } else {
            let info = rest.get(marker.len()..).unwrap_or_default();
            let word = info
                .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '+'))
                .unwrap_or(info.len());
            self.fence = Some(marker);
            self.skip(EditKind::Fence, marker.len() + word);
        }
        true
    }

    /// Reads the object or array that starts here, if one does.
    fn json(&mut self, work: &mut usize) -> bool {
        if !self.rest().starts_with(['{', '[']) {
            return false;
        }
        let region = Span::new(self.at, self.text.len());
        let mut parsed = parse_at(self.text, region, self.level, work);
        if let Some(marker) = self.fence
            && parsed.as_ref().map_or(true, is_closed)
            && let Some(end) = self.rest().find(marker)
        {
            // The document does not end before the fence does: then it ends there.
            parsed = parse_at(self.text, Span::new(self.at, self.at + end), self.level, work);
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

fn find_ignoring_case(text: &str, tag: &str) -> Option<usize> {
    let (text, tag) = (text.as_bytes(), tag.as_bytes());
    text.windows(tag.len()).position(|window| window.eq_ignore_ascii_case(tag))
}
