use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pattern of model names, case-insensitive, where `*` matches any text, including none.
///
/// A name can start with vendors and hosts, each followed by a `/`: `openrouter/openai/gpt-4o`. A pattern matches the
/// whole name, or the name without some of these prefixes: `gpt-4o` matches that name, and `groq/*` matches every model
/// on Groq.
///
/// ```
/// use formwork_dialect::registry::Pattern;
///
/// let pattern: Pattern = "gpt-4o*".parse()?;
/// assert!(pattern.matches("gpt-4o-2024-08-06") && pattern.matches("openrouter/openai/GPT-4o"));
/// assert!(!pattern.matches("chatgpt-4o"));
/// assert!(pattern.covers(&"gpt-4o-mini*".parse()?));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("minLength" = 1))]
pub struct Pattern(String);

/// The placeholder for unknown text in a name. No name of a model contains it.
const ANYTHING: char = '\0';

impl Pattern {
    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pattern matches the name of a model.
    pub fn matches(&self, model: &str) -> bool {
        let mut rest = Some(model);
        while let Some(name) = rest {
            if glob(self.0.as_bytes(), name.as_bytes()) {
                return true;
            }
            rest = name.split_once('/').map(|(_, name)| name);
        }
        false
    }

    /// Returns whether it matches every name that the other one matches, so that the other one is unreachable after it.
    pub fn covers(&self, other: &Self) -> bool {
        // Only a `*` can match the open text of the other pattern, and it matches every text.
        self.matches(&other.0.replace('*', ANYTHING.encode_utf8(&mut [0; 4])))
    }
}

/// Returns whether the pattern matches the whole name. Only the last `*` is backtracked: each `*` matches as little as
/// possible, so an earlier one cannot do better.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut open: Option<(usize, usize)> = None;
    while n < name.len() {
        let letter = name.get(n);
        match pattern.get(p) {
            Some(b'*') => {
                open = Some((p + 1, n));
                p += 1;
            }
            Some(expected) if letter.is_some_and(|letter| letter.eq_ignore_ascii_case(expected)) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((behind, taken)) = open else { return false };
                open = Some((behind, taken + 1));
                (p, n) = (behind, taken + 1);
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|letter| *letter == b'*'))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.trim().is_empty() || text.contains(ANYTHING) {
            return Err("a pattern is the name of a model, with `*` for any text".to_owned());
        }
        Ok(Self(text))
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Pattern;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn names() {
        for (text, names, others) in [
            (
                "gpt-4o",
                &["gpt-4o", "GPT-4o", "openai/gpt-4o", "a/b/gpt-4o"][..],
                &["gpt-4o-mini", "xgpt-4o"][..],
            ),
            ("gpt-4o*", &["gpt-4o", "gpt-4o-mini", "openai/gpt-4o-mini"], &["gpt-4", "my-gpt-4o"]),
            (
                "groq/*",
                &["groq/llama", "groq/openai/gpt-oss-20b", "litellm/groq/x", "groq/"],
                &["groq", "grog/x"],
            ),
            ("*:*-cloud", &["gpt-oss:20b-cloud", "ollama/x:y-cloud"], &["gpt-oss:20b", "x-cloud"]),
            ("gemini-*-image*", &["gemini-2.5-flash-image", "gemini-3-image-image-2"], &["gemini-3-flash"]),
            ("*", &["", "anything", "a/b"], &[]),
        ] {
            for name in names {
                assert!(pattern(text).matches(name), "{text} {name}");
            }
            for name in others {
                assert!(!pattern(text).matches(name), "{text} {name}");
            }
        }
    }

    #[test]
    fn covering() {
        for (one, other, covers) in [
            ("gpt-4o*", "gpt-4o", true),
            ("gpt-4o*", "gpt-4o-mini*", true),
            ("gpt-4o*", "openai/gpt-4o", true),
            ("gpt-*o*", "gpt-4o*", true),
            ("*", "anything/*", true),
            ("gpt-4o", "GPT-4O", true),
            ("gpt-4o-mini*", "gpt-4o*", false),
            ("gpt-4o", "gpt-4o*", false),
            ("openai/gpt-4o", "gpt-4o", false),
            ("groq/*", "*/llama", false),
        ] {
            assert_eq!(pattern(one).covers(&pattern(other)), covers, "{one} {other}");
        }
    }

    #[test]
    fn a_pattern_is_something() {
        for text in ["", " ", "a\0b"] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
    }

    /// A reference implementation that is obviously correct.
    fn slowly(pattern: &str, name: &str) -> bool {
        match (pattern.chars().next(), name.chars().next()) {
            (None, None) => true,
            (Some('*'), _) => {
                slowly(&pattern[1..], name) || (!name.is_empty() && slowly(pattern, &name[1..]))
            }
            (Some(expected), Some(letter)) => expected == letter && slowly(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_is_as_defined(text in "[ab/*]{1,8}", name in "[ab/]{0,10}") {
            let whole_or_less = std::iter::successors(Some(&*name), |name| Some(name.split_once('/')?.1));
            prop_assert_eq!(pattern(&text).matches(&name), whole_or_less.into_iter().any(|name| slowly(&text, name)));
        }

        #[test]
        fn what_is_covered_is_never_needed(one in "[ab/*]{1,6}", other in "[ab/*]{1,6}", name in "[abc/]{0,8}") {
            if pattern(&one).covers(&pattern(&other)) && pattern(&other).matches(&name) {
                prop_assert!(pattern(&one).matches(&name));
            }
        }
    }
}
