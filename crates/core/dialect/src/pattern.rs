use regex::Regex;
use regex_syntax::hir::{Hir, HirKind, Look};

use crate::form::Pattern;

/// Translates a pattern of JSON Schema (ECMA-262) to the syntax of `regex-syntax`; `None` for look-around and
/// back-references, which that syntax lacks.
///
/// The class escapes match ASCII only, as in ECMA-262.
pub(crate) fn translate(source: &str) -> Option<Pattern> {
    let translated = spelled(source)?;
    let is_anchored = goes_from_end_to_end(&parse(&translated)?);
    Some(Pattern { source: source.to_owned(), translated, is_anchored })
}

fn spelled(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.push_str(&escape(&mut rest, in_class)?),
            // An empty class and a class of everything, which the other syntax lacks.
            '[' if !in_class && rest.peek() == Some(&']') => return None,
            '[' if !in_class => {
                in_class = true;
                out.push(c);
            }
            '[' => out.push_str(r"\["),
            ']' => {
                in_class = false;
                out.push(c);
            }
            // Set operators of the other syntax are plain characters in ECMA-262.
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    Some(out)
}

fn escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, in_class: bool) -> Option<String> {
    let wrap = |class: &str| if in_class { class.to_owned() } else { format!("[{class}]") };
    Some(match rest.next()? {
        'd' => wrap("0-9"),
        'w' => wrap("A-Za-z0-9_"),
        's' => wrap(r" \t\n\r\x0B\x0C"),
        'D' if !in_class => "[^0-9]".to_owned(),
        'W' if !in_class => "[^A-Za-z0-9_]".to_owned(),
        'S' if !in_class => r"[^ \t\n\r\x0B\x0C]".to_owned(),
        // `[\s\S]` is the common notation for any character.
        'D' => r"\x{0}-/:-\x{10FFFF}".to_owned(),
        'W' => r"\x{0}-/:-@\[-\^`{-\x{10FFFF}".to_owned(),
        'S' => r"\x{0}-\x{8}\x{E}-\x{1F}!-\x{10FFFF}".to_owned(),
        'u' => {
            if rest.peek() == Some(&'{') {
                return Some(r"\u".to_owned());
            }
            let hex: String = rest.by_ref().take(4).collect();
            let valid = hex.len() == 4 && hex.chars().all(|c| c.is_ascii_hexdigit());
            valid.then(|| format!(r"\x{{{hex}}}"))?
        }
        '0' => r"\x00".to_owned(),
        'p' => r"\p".to_owned(),
        'P' => r"\P".to_owned(),
        letter @ ('n' | 'r' | 't' | 'f' | 'v' | 'x' | 'b' | 'B') => format!("\\{letter}"),
        '1'..='9' => return None,
        letter if letter.is_ascii_alphanumeric() => letter.to_string(),
        '/' => "/".to_owned(),
        sign if sign.is_ascii() => format!("\\{sign}"),
        other => other.to_string(),
    })
}

pub(crate) fn parse(pattern: &str) -> Option<Hir> {
    regex_syntax::ParserBuilder::new().nest_limit(100).build().parse(pattern).ok()
}

/// Returns the minimum length of a string that a translated pattern matches.
///
/// The result is in bytes of UTF-8, which is never below the number of characters.
pub(crate) fn min_length(pattern: &str) -> u64 {
    parse(pattern).and_then(|hir| hir.properties().minimum_len()).unwrap_or(0) as u64
}

/// Returns the maximum length of a string that a translated pattern covers completely, if it is limited.
pub(crate) fn max_length(pattern: &str) -> Option<u64> {
    let hir = parse(pattern)?;
    goes_from_end_to_end(&hir).then(|| hir.properties().maximum_len().map(|most| most as u64)).flatten()
}

/// Returns whether a pattern only matches whole strings.
fn goes_from_end_to_end(hir: &Hir) -> bool {
    let looks = hir.properties();
    looks.look_set_prefix().contains(Look::Start) && looks.look_set_suffix().contains(Look::End)
}

/// Returns the common prefix of all names that a translated pattern matches, if it starts with `^`.
pub(crate) fn prefix(pattern: &str) -> Option<String> {
    let hir = parse(pattern)?;
    let HirKind::Concat(parts) = hir.kind() else { return None };
    match parts.as_slice() {
        [start, first, ..] if matches!(start.kind(), HirKind::Look(Look::Start)) => match first.kind() {
            HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// A compiled pattern of names.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) pattern: Pattern,
    regex: Regex,
}

impl Matcher {
    /// Compiles a pattern of JSON Schema; `None` if it cannot be translated, or is too large.
    pub(crate) fn of(source: &str) -> Option<Self> {
        let pattern = translate(source)?;
        let regex = Regex::new(&pattern.translated).ok()?;
        Some(Self { pattern, regex })
    }

    /// Returns whether it matches somewhere in a text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// The largest count of repetitions in a simple pattern.
const MAX_SIMPLE_COUNT: u32 = 100;

/// Returns whether a pattern of a schema is anchored by `^` and `$`, without look-around, word boundaries, references
/// to groups, character properties and large counts.
pub(crate) fn is_simple(source: &str) -> bool {
    let Some(inner) = source.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else { return false };
    let mut rest = inner.chars().peekable();
    let (mut in_class, mut depth, mut count) = (false, 0_usize, None::<u32>);
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('d' | 'w' | 's') => {}
                Some(sign) if sign.is_ascii_punctuation() => {}
                _ => return false,
            },
            ']' if in_class => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' if rest.peek() == Some(&'?') => return false,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            // The anchors belong to one branch each.
            '|' if depth == 0 => return false,
            '^' | '$' => return false,
            '{' => count = Some(0),
            '}' => count = None,
            digit if count.is_some() => {
                let value = digit.to_digit(10).map(|digit| count.unwrap_or_default() * 10 + digit);
                if value.is_some_and(|value| value > MAX_SIMPLE_COUNT) {
                    return false;
                }
                count = Some(value.unwrap_or_default());
            }
            _ => {}
        }
    }
    !in_class && depth == 0 && source.is_ascii()
}

#[cfg(test)]
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(source: &str) -> Option<String> {
        translate(source).map(|pattern| pattern.translated)
    }

    #[test]
    fn classes_are_ascii_and_look_around_is_refused() {
        assert_eq!(translated(r"^\d{3}-\w+$").as_deref(), Some("^[0-9]{3}-[A-Za-z0-9_]+$"));
        assert_eq!(translated(r"[\w.-]").as_deref(), Some("[A-Za-z0-9_.-]"));
        assert_eq!(translated(r"\u00e9\/x").as_deref(), Some(r"\x{00e9}/x"));
        for lost in ["(?=a)a", "(?!a)", r"(a)\1", "(?<=a)b", "[]", "(", r"\u12"] {
            assert_eq!(translate(lost), None, "{lost}");
        }
        for class in [r"[\s\S]*", r"[\w\W]", r"[\d\D]", "[&&a]", "[[]"] {
            assert!(translate(class).is_some(), "{class}");
        }
    }

    #[test]
    fn an_anchored_pattern_covers_whole_strings() {
        for (source, is_anchored) in [
            ("^a$", true),
            ("^(a|b)$", true),
            ("^a", false),
            ("a$", false),
            ("a", false),
            ("^a$|b", false),
            ("^a$|^b$", true),
        ] {
            assert_eq!(translate(source).unwrap().is_anchored, is_anchored, "{source}");
        }
    }

    #[test]
    fn any_character_is_any_character() {
        for pattern in [r"^[\s\S]$", r"^[\w\W]$", r"^[\d\D]$"] {
            let pattern = translated(pattern).unwrap();
            for text in ["a", "7", " ", "\n", "é", "[", "{", "_", "\u{10FFFF}"] {
                assert!(matches(&pattern, text), "{pattern} {text:?}");
            }
        }
        assert!(!matches(&translated(r"^[\W]$").unwrap(), "_"));
        assert!(!matches(&translated(r"^[\S]$").unwrap(), "\u{b}"));
    }

    #[test]
    fn lengths_are_known() {
        assert_eq!((min_length("^[0-9]{3}-x?$"), max_length("^[0-9]{3}-x?$")), (4, Some(5)));
        assert_eq!((min_length("foo"), max_length("foo")), (3, None));
        assert_eq!((min_length("^a*$"), max_length("^a*$")), (0, None));
    }
}
