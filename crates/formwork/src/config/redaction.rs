use std::borrow::Cow;

use regex::Regex;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The text in the place of a match.
const REDACTED: &str = "[redacted]";

/// Texts that logs, `-v`, messages, ledgers and cassettes must not contain. Answers keep them.
///
/// ```
/// use formwork::config::Config;
///
/// let config = Config::from_toml(
///     r#"
///         [redaction]
///         patterns = ['\d{3}-\d{4}']
///
///         [providers.small]
///         kind = "ollama"
///         model = "qwen3:8b"
///     "#,
/// )?;
/// assert_eq!(config.redaction().text("call 555-1234"), "call [redacted]");
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// Regular expressions; each match becomes `[redacted]` (default: none).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    patterns: Vec<Pattern>,
}

impl Redaction {
    /// Returns whether there is no pattern.
    pub const fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the text without the matches of the patterns.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for Pattern(pattern) in &self.patterns {
            if let Cow::Owned(shorter) = pattern.replace_all(&text, REDACTED) {
                text = Cow::Owned(shorter);
            }
        }
        text
    }
}

#[derive(Debug, Clone)]
struct Pattern(Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pattern = Regex::new(&text).map_err(|error| {
            // The message of an expression shows it again on several lines; the last one has the reason.
            let message = error.to_string();
            let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            D::Error::custom(format!("`{text}` is not a regular expression: {reason}"))
        })?;
        if pattern.is_match("") {
            return Err(D::Error::custom(format!(
                "`{text}` matches the empty text, so it would match everywhere: use `+` instead of `*`"
            )));
        }
        Ok(Self(pattern))
    }
}
