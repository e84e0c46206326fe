//! Rewrites patterns for converters that support a part of regular expressions, and that insert matches into a JSON
//! string without escapes.

use std::fmt::Write as _;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use crate::pattern;

/// The maximum count of repetitions: llama.cpp accepts up to 2000, multiplied over nested repetitions.
const MAX_REPEATED: u64 = 1000;

/// The maximum count of a group with unlimited repetitions, if they have to be limited.
const MAX_GROUPS: u64 = 8;

/// A pattern from `^` to `$` that only has characters, `[…]`, `(…)`, `|` and repetitions.
#[derive(Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) pattern: String,
    /// Whether it matches more than the original pattern, because a count was too large.
    pub(crate) is_wider: bool,
    /// The largest count that limits a repetition of the original without a limit.
    pub(crate) open: Option<u64>,
}

impl Plain {
    /// Wraps a pattern that is already in plain form.
    pub(crate) fn of(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), is_wider: false, open: None }
    }
}

/// Rewrites a translated pattern in plain form. With a `bound`, unlimited repetitions share this number of characters.
///
/// `None` for a pattern that matches characters which JSON escapes (quotation marks, backslashes, line breaks): llama.cpp
/// matches the raw text between the quotation marks, so it would either forbid such strings or let a quotation mark end
/// the string. That includes every pattern that is not anchored on both sides. `None` also for patterns without a plain
/// form (`\b`, a `^` in the middle).
pub(crate) fn plain(translated: &str, bound: Option<u64>) -> Option<Plain> {
    let hir = pattern::parse(translated)?;
    let open = bound.map(|bound| (bound.clamp(1, MAX_REPEATED) / endless(&hir).max(1)).max(1));
    let mut pen = Pen { out: String::from("^"), is_wider: false, open, is_bounded: false };
    pen.something(|pen| pen.whole(&hir))?;
    pen.out.push('$');
    let Pen { out: pattern, is_wider, is_bounded, .. } = pen;
    // The result is parsed again, so that a bug here loses a pattern instead of sending a wrong one.
    pattern::parse(&pattern).map(|_| Plain { pattern, is_wider, open: open.filter(|_| is_bounded) })
}

/// Returns whether a pattern of a schema is already in plain form.
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
                // A negated class would match the quotation mark that ends the string.
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
    /// The largest count of an unlimited repetition.
    open: Option<u64>,
    /// Whether the count was used.
    is_bounded: bool,
}

impl Pen {
    /// Writes a whole pattern with its anchors.
    fn whole(&mut self, hir: &Hir) -> Option<()> {
        match hir.kind() {
            HirKind::Capture(capture) => self.whole(&capture.sub),
            HirKind::Alternation(branches) => self.group(branches, |pen, branch| pen.whole(branch)),
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

    /// Writes `^(a$|b$)`, the parsed form of `^a$|^b$`, branch by branch.
    fn distributed(&mut self, parts: &[Hir], at: usize) -> Option<()> {
        let HirKind::Alternation(branches) = parts.get(at)?.kind() else { return None };
        let (before, after) = (parts.get(..at)?, parts.get(at + 1..)?);
        self.group(branches, |pen, branch| {
            let whole = before.iter().chain([branch]).chain(after).cloned().collect();
            pen.whole(&Hir::concat(whole))
        })
    }

    fn surrounded(&mut self, parts: &[Hir], starts: bool, ends: bool) -> Option<()> {
        // Anything may precede or follow an unanchored pattern, including quotation marks.
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
            HirKind::Capture(capture) => self.grouped(&capture.sub, room),
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.part(part, room)),
            HirKind::Alternation(branches) => self.group(branches, |pen, branch| pen.part(branch, room)),
            HirKind::Repetition(repetition) => self.repetition(repetition, room),
        }
    }

    /// Writes branches as a group.
    fn group(&mut self, branches: &[Hir], write: impl Fn(&mut Self, &Hir) -> Option<()>) -> Option<()> {
        self.out.push('(');
        for (index, branch) in branches.iter().enumerate() {
            if index > 0 {
                self.out.push('|');
            }
            self.something(|pen| write(pen, branch))?;
        }
        self.out.push(')');
        Some(())
    }

    /// Writes a part as a group; captures and alternations write their own one.
    fn grouped(&mut self, hir: &Hir, room: u64) -> Option<()> {
        match hir.kind() {
            HirKind::Capture(_) | HirKind::Alternation(_) => self.part(hir, room),
            _ => self.group(std::slice::from_ref(hir), |pen, hir| pen.part(hir, room)),
        }
    }

    /// Writes a part that must not be empty, because grammars have no empty group.
    fn something(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let before = self.out.len();
        write(self)?;
        (self.out.len() > before).then_some(())
    }

    /// Writes a repetition; `room` is the largest count that the enclosing ones leave.
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
            self.grouped(&repetition.sub, (room / max.unwrap_or(min).max(1)).max(1))?;
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
            // An escaped character has no special meaning in a class.
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

/// Returns the number of unlimited repetitions in a pattern.
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

/// Returns the characters that a JSON string contains without escapes.
fn unescaped() -> ClassUnicode {
    let range = ClassUnicodeRange::new;
    ClassUnicode::new([range(' ', '!'), range('#', '['), range(']', '\u{10FFFF}')])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(source: &str, bound: Option<u64>) -> Option<Plain> {
        let plain = plain(&pattern::translate(source)?.translated, bound)?;
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
        // Each of these matches strings with escapes, or has no plain form.
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
            let translated = pattern::translate(source).unwrap().translated;
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
