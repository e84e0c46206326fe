//! Patterns for converters that know a part of regular expressions, and write what matches between the quotes of a JSON
//! string as it is.

use std::fmt::Write as _;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use crate::pattern;

/// The most times that anything is repeated: llama.cpp takes up to 2000, over all repetitions inside each other.
const MAX_REPEATED: u64 = 1000;

/// How often a group may stand that the pattern repeats without end; single characters share what room there is.
const MAX_GROUPS: u64 = 8;

/// A pattern from `^` to `$`, of nothing but characters, `[…]`, `(…)`, `|` and counts.
#[derive(Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) pattern: String,
    /// Whether it matches less than what it was made from: counts have an end, and what JSON escapes is left out.
    pub(crate) narrowed: bool,
}

/// Writes a (translated) pattern plainly; no count goes over `room`, and what has no end shares a third of it: what
/// patterns match is no prose, and takes a token for each character or two.
///
/// What matches is a subset of what the pattern matches: classes keep only what stands unescaped in a JSON string, because
/// llama.cpp would let a quote through and so end the string. `None` if nothing is left, for what has no plain form
/// (`\b`, a `^` in the middle), and for more repetitions inside each other than a server takes.
pub(crate) fn plain(translated: &str, room: u64) -> Option<Plain> {
    let hir = pattern::parse(translated)?;
    let room = room.clamp(1, MAX_REPEATED);
    let anchors = hir.properties().look_set();
    let sides = [Look::Start, Look::End].into_iter().filter(|look| !anchors.contains(*look)).count() as u64;
    let open = room.min((room / 3).max(16)) / (endless(&hir) + sides).max(1);
    let mut pen = Pen { out: String::from("^"), narrowed: false, room, open: open.max(1) };
    pen.something(|pen| pen.whole(&hir))?;
    pen.out.push('$');
    // What is written is read back, so that a slip here is a lost pattern and not a wrong one.
    pattern::parse(&pen.out).map(|_| Plain { pattern: pen.out, narrowed: pen.narrowed })
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
    narrowed: bool,
    /// The largest count.
    room: u64,
    /// The count of what has none.
    open: u64,
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
        if !starts {
            self.anything()?;
        }
        for part in parts {
            self.part(part, self.room)?;
        }
        if !ends {
            self.anything()?;
        }
        Some(())
    }

    /// Any characters that stand in a JSON string unescaped.
    fn anything(&mut self) -> Option<()> {
        self.narrowed = true;
        self.class(&unescaped())?;
        let _ = write!(self.out, "{{0,{}}}", self.open);
        Some(())
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

    fn repetition(&mut self, repetition: &Repetition, room: u64) -> Option<()> {
        let least = u64::from(repetition.min);
        let is_character = matches!(repetition.sub.kind(), HirKind::Class(_))
            || matches!(repetition.sub.kind(), HirKind::Literal(one) if one.0.len() == 1);
        let most = match repetition.max {
            Some(most) if u64::from(most) <= room => u64::from(most),
            Some(_) => room,
            None if is_character => self.open.min(room),
            None => MAX_GROUPS.min(room),
        };
        let most = most.max(least);
        self.narrowed |= repetition.max.is_none_or(|original| most < u64::from(original));
        // Neither what must be there nor what is inside may go over the limit.
        if least > MAX_REPEATED || (!is_character && most > room) {
            return None;
        }
        if is_character {
            self.part(&repetition.sub, 1)?;
        } else {
            self.group(&repetition.sub, room / most.max(1))?;
        }
        match (least, most) {
            (0, 1) => self.out.push('?'),
            (least, most) if least == most => {
                let _ = write!(self.out, "{{{least}}}");
            }
            (least, most) => {
                let _ = write!(self.out, "{{{least},{most}}}");
            }
        }
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
        let mut kept = class.clone();
        kept.intersect(&unescaped());
        self.narrowed |= kept != *class;
        if kept.ranges().is_empty() {
            return None;
        }
        self.out.push('[');
        for range in kept.ranges() {
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

    fn written(source: &str, room: u64) -> Option<(String, bool)> {
        let plain = plain(&pattern::translate(source)?, room)?;
        assert!(is_plain(&plain.pattern), "{}", plain.pattern);
        Some((plain.pattern, plain.narrowed))
    }

    #[test]
    fn patterns_are_anchored_counted_and_without_escapes() {
        let written =
            |source: &str| written(source, 20).map(|(pattern, narrowed)| format!("{pattern} {narrowed}"));
        for (source, plain) in [
            (r"^\d{3}-x?$", r"^[0-9]{3}[\x2D]x?$ false"),
            (r"^[a-z]+$", r"^[a-z]{1,16}$ true"),
            (r"^(ab|cd)*$", r"^(ab|cd){0,8}$ true"),
            (r"^a$|^b$", r"^(a|b)$ false"),
            (r"^[a-z]{2,3}$", r"^[a-z]{2,3}$ false"),
            ("^é[à-ü]$", "^é[à-ü]$ false"),
            (r"^[^a-z]$", "^[\\x20-\\x21\\x23-\\x5B\\x5D-\\x60\\x7B-\u{10FFFF}]$ true"),
        ] {
            assert_eq!(written(source).as_deref(), Some(plain), "{source}");
        }
        assert!(written("x").unwrap().starts_with(r"^[\x20-\x21"));
        for lost in [
            r"^\bx$",
            r#"^"$"#,
            r"^\\$",
            r"^\n$",
            "a^b",
            r"^(a{500}){500}$",
            r"^.{5000}$",
            "^$",
            "^a$|^$",
            "^(a|)$",
        ] {
            assert_eq!(written(lost), None, "{lost}");
        }
    }

    #[test]
    fn what_is_written_matches_only_what_the_pattern_matches() {
        for source in [r"^\d+-\w+$", "x", "^a|b$", r"[0-9]{2}", r"^https?://[^\s]+$", r"^(\w+\.)*\w+$"] {
            let translated = pattern::translate(source).unwrap();
            let (plain, _) = written(source, 30).unwrap();
            for text in ["1-a", "x", "axb", "a", "b", "ab", "77", "http://x", "a.b.c", "", "-", "é", "a\"b"]
            {
                assert!(
                    !pattern::matches(&plain, text) || pattern::matches(&translated, text),
                    "{source} as {plain} on {text:?}"
                );
                // Nothing short and plain is lost either.
                assert!(
                    text.contains('"')
                        || pattern::matches(&plain, text) == pattern::matches(&translated, text),
                    "{source} as {plain} on {text:?}"
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
