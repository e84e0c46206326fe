use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Pattern;

/// One pattern or several, written as a string or as a list of strings; never empty.
///
/// ```
/// use formwork_dialect::registry::Patterns;
///
/// let patterns: Patterns = serde_json::from_str(r#"["gpt-4o", "gpt-4.1*"]"#)?;
/// assert!(patterns.matches("gpt-4.1-mini") && patterns.iter().count() == 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(with = "OneOrMany")]
pub struct Patterns(Vec<Pattern>);

/// Describes the schema only: serde's own error for an untagged enum would not name the mistake.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only described")]
enum OneOrMany {
    One(Pattern),
    Many(#[schemars(length(min = 1))] Vec<Pattern>),
}

impl Patterns {
    /// Returns all patterns, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter()
    }

    /// Returns whether one of the patterns matches the name of a model.
    pub fn matches(&self, model: &str) -> bool {
        self.iter().any(|pattern| pattern.matches(model))
    }
}

impl From<Pattern> for Patterns {
    fn from(pattern: Pattern) -> Self {
        Self(vec![pattern])
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<&str> = self.iter().map(Pattern::as_str).collect();
        f.pad(&patterns.join(", "))
    }
}

impl Serialize for Patterns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrList;

        impl<'de> Visitor<'de> for OneOrList {
            type Value = Patterns;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pattern or a list of patterns")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Patterns, E> {
                text.parse::<Pattern>().map(Patterns::from).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Patterns, A::Error> {
                let patterns = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                if patterns.is_empty() {
                    return Err(A::Error::custom("an empty list matches no model"));
                }
                Ok(Patterns(patterns))
            }
        }

        deserializer.deserialize_any(OneOrList)
    }
}
