//! Patterns for converters that know a part of regular expressions, and write what matches between the quotes of a JSON
//! string as it is.

use std::fmt::Write as _;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use crate::pattern;

/// The largest count of repetitions: llama.cpp takes up to 2000, over all repetitions inside each other.
const MAX_REPEATED: u64 = 1000;

/// How often a group may stand that a pattern repeats without end, where such repetitions are to have an end.
const MAX_GROUPS: u64 = 8;

/// A pattern from `^` to `$`, of nothing but characters, `[…]`, `(…)`, `|` and repetitions.
#[derive(Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) pattern: String,
    /// Whether it matches more than the pattern that it was made from: a count was too large.
    pub(crate) is_wider: bool,
    /// The largest count of what the original repeats without end, where that was given one.
    pub(crate) open: Option<u64>,
}

impl Plain {
    /// A pattern that is in plain form already.
    pub(crate) fn of(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), is_wider: false, open: None }
    }
}

/// Writes a (translated) pattern plainly. With a `bound`, repetitions without end share so many characters.
///
/// `None` for a pattern that matches strings with characters that JSON escapes (quotes, backslashes, line breaks): llama.cpp
/// matches the text between the quotes as it stands, so that it would either forbid such strings or let a quote through that
/// ends the string. That includes every pattern that is open at one side. `None` as well for what has no plain form (`\b`,
/// a `^` in the middle).
pub(crate) fn plain(translated: &str, bound: Option<u64>) -> Option<Plain> {
    let hir = pattern::parse(translated)?;
    let open = bound.map(|bound| (bound.clamp(1, MAX_REPEATED) / endless(&hir).max(1)).max(1));
    let mut pen = Pen { out: String::from("^"), is_wider: false, open, is_bounded: false };
    pen.something(|pen| pen.whole(&hir))?;
    pen.out.push('$');
    let Pen { out: pattern, is_wider, is_bounded, .. } = pen;
    // What is written is read back, so that a slip here is a lost pattern and not a wrong one.
    pattern::parse(&pattern).map(|_| Plain { pattern, is_wider, open: open.filter(|_| is_bounded) })
}

/// Whether a pattern (of a schema) is of the plain form already.
pub(crate) fn is_plain(source: &str) -> bool {
    let Some(inner) = source.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else { return false };
    let mut rest = inner.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('x') => {}
                Some(sign) if !in_class && sign.is_ascii_punctuation() && !"\"\\/".contains(sign) => {}
                _ => return false,
            },
            '[' if !in_class => {
                in_class = true;
                // What a negated class lets through ends the string.
                if rest.peek() == Some(&'^') {
                    return false;
                }
            }
            ']' if in_class => in_class = false,
            '(' if !in_class && rest.peek() == Some(&'?') => return false,
            '.' | '^' | '$' if !in_class => return false,
            '"' => return false,
            c if c < ' ' => return false,
            _ => {}
        }
    }
    !in_class && !source.ends_with("\\$")
}

struct Pen {
    out: String,
    is_wider: bool,
    /// The largest count of a repetition that has none.
    open: Option<u64>,
    /// Whether that was used.
    is_bounded: bool,
}

impl Pen {
    /// A pattern as it stands: anchored where it says so.
    fn whole(&mut self, hir: &Hir) -> Option<()> {
        match hir.kind() {
            HirKind::Capture(capture) => self.whole(&capture.sub),
            HirKind::Alternation(branches) => {
                self.out.push('(');
                for (index, branch) in branches.iter().enumerate() {
                    if index > 0 {
                        self.out.push('|');
                    }
                    self.something(|pen| pen.whole(branch))?;
                }
                self.out.push(')');
                Some(())
            }
            HirKind::Concat(parts) => {
                if let Some(at) = parts.iter().position(has_branches_with_ends) {
                    return self.distributed(parts, at);
                }
                let starts = is_look(parts.first(), Look::Start);
                let ends = is_look(parts.last(), Look::End);
                let parts = parts.get(usize::from(starts)..parts.len() - usize::from(ends))?;
                self.surrounded(parts, starts, ends)
            }
            HirKind::Look(Look::Start) => self.surrounded(&[], true, false),
            HirKind::Look(Look::End) => self.surrounded(&[], false, true),
            _ => self.surrounded(std::slice::from_ref(hir), false, false),
        }
    }

    /// `^(a$|b$)`, which `^a$|^b$` becomes when it is read, branch by branch.
    fn distributed(&mut self, parts: &[Hir], at: usize) -> Option<()> {
        let HirKind::Alternation(branches) = parts.get(at)?.kind() else { return None };
        self.out.push('(');
        for (index, branch) in branches.iter().enumerate() {
            if index > 0 {
                self.out.push('|');
            }
            let (before, after) = (parts.get(..at)?, parts.get(at + 1..)?);
            let whole = before.iter().chain([branch]).chain(after).cloned().collect();
            self.something(|pen| pen.whole(&Hir::concat(whole)))?;
        }
        self.out.push(')');
        Some(())
    }

    fn surrounded(&mut self, parts: &[Hir], starts: bool, ends: bool) -> Option<()> {
        // Anything may stand before or after what is not anchored, quotes included.
        if !starts || !ends {
            return None;
        }
        parts.iter().try_for_each(|part| self.part(part, MAX_REPEATED))
    }

    fn part(&mut self, hir: &Hir, room: u64) -> Option<()> {
        match hir.kind() {
            HirKind::Empty => Some(()),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                text.chars().try_for_each(|c| self.character(c))
            }
            HirKind::Class(Class::Unicode(class)) => self.class(class),
            HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => None,
            HirKind::Capture(capture) => self.group(&capture.sub, room),
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.part(part, room)),
            HirKind::Alternation(branches) => {
                self.out.push('(');
                for (index, branch) in branches.iter().enumerate() {
                    if index > 0 {
                        self.out.push('|');
                    }
                    self.something(|pen| pen.part(branch, room))?;
                }
                self.out.push(')');
                Some(())
            }
            HirKind::Repetition(repetition) => self.repetition(repetition, room),
        }
    }

    fn group(&mut self, hir: &Hir, room: u64) -> Option<()> {
        // These bring their own.
        if matches!(hir.kind(), HirKind::Capture(_) | HirKind::Alternation(_)) {
            return self.part(hir, room);
        }
        self.out.push('(');
        self.something(|pen| pen.part(hir, room))?;
        self.out.push(')');
        Some(())
    }

    /// Writes what must not be empty: grammars have no empty group.
    fn something(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let before = self.out.len();
        write(self)?;
        (self.out.len() > before).then_some(())
    }

    /// Writes a repetition; `room` is the largest count that those around it leave.
    fn repetition(&mut self, repetition: &Repetition, room: u64) -> Option<()> {
        let is_character = matches!(repetition.sub.kind(), HirKind::Class(_))
            || matches!(repetition.sub.kind(), HirKind::Literal(one) if one.0.len() == 1);
        let (mut min, mut max) = (u64::from(repetition.min), repetition.max.map(u64::from));
        if let (None, Some(open)) = (max, self.open) {
            max = Some(if is_character { open } else { MAX_GROUPS.min(open) }.min(room).max(min));
            self.is_bounded = true;
        }
        if min > room || max.is_some_and(|max| max > room) {
            self.is_wider = true;
            (min, max) = (min.min(room), None);
        }
        if is_character {
            self.part(&repetition.sub, 1)?;
        } else {
            self.group(&repetition.sub, (room / max.unwrap_or(min).max(1)).max(1))?;
        }
        let _ = match (min, max) {
            (0, Some(1)) => write!(self.out, "?"),
            (0, None) => write!(self.out, "*"),
            (1, None) => write!(self.out, "+"),
            (min, None) => write!(self.out, "{{{min},}}"),
            (min, Some(max)) if min == max => write!(self.out, "{{{min}}}"),
            (min, Some(max)) => write!(self.out, "{{{min},{max}}}"),
        };
        Some(())
    }

    fn character(&mut self, c: char) -> Option<()> {
        if matches!(c, '"' | '\\') || c < ' ' {
            return None;
        }
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            // In a class no sign means anything else.
            let _ = write!(self.out, r"[\x{:02X}]", u32::from(c));
        }
        Some(())
    }

    fn class(&mut self, class: &ClassUnicode) -> Option<()> {
        let mut escaped = class.clone();
        escaped.difference(&unescaped());
        if !escaped.ranges().is_empty() || class.ranges().is_empty() {
            return None;
        }
        self.out.push('[');
        for range in class.ranges() {
            self.endpoint(range.start());
            if range.end() > range.start() {
                self.out.push('-');
                self.endpoint(range.end());
            }
        }
        self.out.push(']');
        Some(())
    }

    fn endpoint(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            let _ = write!(self.out, r"\x{:02X}", u32::from(c));
        }
    }
}

/// How many repetitions in a pattern have no end.
fn endless(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Repetition(repetition) => u64::from(repetition.max.is_none()) + endless(&repetition.sub),
        HirKind::Capture(capture) => endless(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(endless).sum(),
        HirKind::Alternation(branches) => branches.iter().map(endless).max().unwrap_or(0),
        _ => 0,
    }
}

fn has_branches_with_ends(hir: &Hir) -> bool {
    matches!(hir.kind(), HirKind::Alternation(_)) && !hir.properties().look_set().is_empty()
}

fn is_look(hir: Option<&Hir>, look: Look) -> bool {
    hir.is_some_and(|hir| matches!(hir.kind(), HirKind::Look(found) if *found == look))
}

/// The characters that a JSON string holds as they are.
fn unescaped() -> ClassUnicode {
    let range = ClassUnicodeRange::new;
    ClassUnicode::new([range(' ', '!'), range('#', '['), range(']', '\u{10FFFF}')])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(source: &str, bound: Option<u64>) -> Option<Plain> {
        let plain = plain(&pattern::translate(source)?, bound)?;
        assert!(is_plain(&plain.pattern), "{}", plain.pattern);
        Some(plain)
    }

    #[test]
    fn patterns_come_out_without_escapes_and_with_all_that_they_match() {
        let text = |source: &str| written(source, None).map(|plain| plain.pattern);
        for (source, plain) in [
            (r"^\d{3}-x?$", r"^[0-9]{3}[\x2D]x?$"),
            (r"^[a-z]+$", r"^[a-z]+$"),
            (r"^(ab|cd)*$", r"^(ab|cd)*$"),
            (r"^a$|^b$", r"^(a|b)$"),
            (r"^[a-z]{2,3}$", r"^[a-z]{2,3}$"),
            (r"^[a-z]{2,}$", r"^[a-z]{2,}$"),
            ("^é[à-ü]$", "^é[à-ü]$"),
        ] {
            assert_eq!(text(source).as_deref(), Some(plain), "{source}");
        }
        // Each of these matches strings that JSON escapes, or has no plain form.
        for lost in [
            "x",
            "^x",
            "x$",
            r"^\bx$",
            r#"^"$"#,
            r"^\\$",
            r"^\n$",
            "a^b",
            r"^[^a-z]$",
            "^.$",
            r"^\s+$",
            "^$",
            "^a$|^$",
            "^(a|)$",
            r"^[\w\s]+$",
        ] {
            assert_eq!(written(lost, None), None, "{lost}");
        }
    }

    #[test]
    fn counts_that_are_too_large_are_widened() {
        for (source, plain) in
            [("^a{5000}$", "^a{1000,}$"), ("^a{2,5000}$", "^a{2,}$"), ("^(ab{500}){500}$", "^(ab{2,}){500}$")]
        {
            let written = written(source, None).unwrap();
            assert_eq!((written.pattern.as_str(), written.is_wider), (plain, true), "{source}");
        }
        let exact = written("^a{2,1000}$", None).unwrap();
        assert_eq!((exact.pattern.as_str(), exact.is_wider), ("^a{2,1000}$", false));
    }

    #[test]
    fn a_bound_ends_what_has_no_end_and_nothing_else() {
        let text = |source: &str| written(source, Some(20)).map(|plain| (plain.pattern, plain.open)).unwrap();
        assert_eq!(text("^[a-z]+-[0-9]*$"), ("^[a-z]{1,10}[\\x2D][0-9]{0,10}$".to_owned(), Some(10)));
        assert_eq!(text("^(ab)+$"), ("^(ab){1,8}$".to_owned(), Some(20)));
        assert_eq!(text("^[a-z]{2,30}$"), ("^[a-z]{2,30}$".to_owned(), None));
    }

    #[test]
    fn a_plain_pattern_matches_what_the_pattern_matches() {
        for source in
            [r"^\d+-\w+$", "^(a|b)$", r"^[0-9]{2}$", r"^https?://[a-z.]+$", r"^(\w+\.)*\w+$", "^a{3,2000}$"]
        {
            let translated = pattern::translate(source).unwrap();
            let plain = written(source, None).unwrap();
            for text in
                ["1-a", "x", "axb", "a", "b", "ab", "77", "http://x", "a.b.c", "", "-", "é", "a\"b", "aaa"]
            {
                let (is_original, is_plain) =
                    (pattern::matches(&translated, text), pattern::matches(&plain.pattern, text));
                assert!(is_plain || !is_original, "{source} as {} on {text:?}", plain.pattern);
                assert!(
                    plain.is_wider || is_plain == is_original,
                    "{source} as {} on {text:?}",
                    plain.pattern
                );
            }
        }
    }

    #[test]
    fn what_llama_cpp_misreads_is_not_plain() {
        for source in [
            "x", "^x", r"^\d$", r"^\w+$", "^.$", "^(?=a)a$", "^(?:a)$", "^[^a]$", r"^\\$", r#"^"$"#, r"^a\$",
            r"^[\d]$",
        ] {
            assert!(!is_plain(source), "{source}");
        }
        for source in ["^[a-z]{2,3}$", "^$", r"^a\.b$", r"^[\x2D]$", "^(a|b)+$"] {
            assert!(is_plain(source), "{source}");
        }
    }
}
