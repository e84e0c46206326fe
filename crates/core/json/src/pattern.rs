use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::path::{segment, steps, write_segment};
use crate::{JsonPath, PathError, Segment};

/// One step of a [`PathPattern`].
///
/// ```
/// use formwork_json::{PathPattern, PatternStep};
///
/// let pattern: PathPattern = "$.lines[*]".parse()?;
/// assert_eq!(pattern.steps()[1], PatternStep::Each);
/// # Ok::<(), formwork_json::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PatternStep {
    /// One member or item.
    One(Segment),
    /// Every item of an array, or every member of an object.
    Each,
}

/// The places of several values in a JSON document: a [`JsonPath`] that may have wildcards, such as `$.lines[*].total`.
///
/// `[*]` and `.*` are the wildcard of RFC 9535: every item of an array, every member of an object.
///
/// ```
/// use formwork_json::PathPattern;
///
/// let totals: PathPattern = "$.lines[*].total".parse()?;
/// let invoice = serde_json::json!({"lines": [{"total": 7}, {"note": "free"}, {"total": 5}]});
/// let found: Vec<_> = totals.find(&invoice).into_iter().map(|(path, value)| format!("{path} {value}")).collect();
/// assert_eq!(found, ["$.lines[0].total 7", "$.lines[2].total 5"]);
/// # Ok::<(), formwork_json::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PathPattern(Vec<PatternStep>);

impl PathPattern {
    /// Returns the steps from the root, outermost first.
    pub fn steps(&self) -> &[PatternStep] {
        &self.0
    }

    /// Returns whether the pattern has a wildcard.
    pub fn has_wildcard(&self) -> bool {
        self.0.contains(&PatternStep::Each)
    }

    /// Returns the pattern as a path; `None` if it has a wildcard.
    pub fn as_path(&self) -> Option<JsonPath> {
        (!self.has_wildcard()).then(|| self.stem())
    }

    /// Returns the path before the first wildcard: the innermost value that contains all matches.
    pub fn stem(&self) -> JsonPath {
        self.0
            .iter()
            .map_while(|step| if let PatternStep::One(segment) = step { Some(segment.clone()) } else { None })
            .collect()
    }

    /// Returns the values of a document that the pattern matches, with their paths, in the document's order.
    pub fn find<'v>(&self, document: &'v Value) -> Vec<(JsonPath, &'v Value)> {
        let mut found = vec![(JsonPath::root(), document)];
        for step in &self.0 {
            found = found.into_iter().flat_map(|(path, value)| inside(step, &path, value)).collect();
        }
        found
    }

    /// Returns whether the pattern matches `path`.
    pub fn matches(&self, path: &JsonPath) -> bool {
        self.0.len() == path.segments().len() && self.touches(path)
    }

    /// Returns whether the pattern matches `path`, a place inside of it, or a place around it.
    pub fn touches(&self, path: &JsonPath) -> bool {
        self.0.iter().zip(path.segments()).all(|(step, segment)| match step {
            PatternStep::One(own) => own == segment,
            PatternStep::Each => true,
        })
    }

    /// Returns the pattern for the same item as `at`, which `other` matches: the wildcards that both patterns share from
    /// the root on become the steps of `at`.
    #[must_use]
    pub fn bound(&self, other: &Self, at: &JsonPath) -> Self {
        let common = self.0.iter().zip(&other.0).take_while(|(own, other)| own == other).count();
        let steps = self.0.iter().enumerate().map(|(nth, step)| match (step, at.segments().get(nth)) {
            (PatternStep::Each, Some(segment)) if nth < common => PatternStep::One(segment.clone()),
            (step, _) => step.clone(),
        });
        Self(steps.collect())
    }
}

/// Returns the values that one step matches.
fn inside<'v>(step: &PatternStep, path: &JsonPath, value: &'v Value) -> Vec<(JsonPath, &'v Value)> {
    match (step, value) {
        (PatternStep::One(Segment::Key(name)), Value::Object(members)) => {
            members.get(name).map(|member| (path.key(name), member)).into_iter().collect()
        }
        (PatternStep::One(Segment::Index(index)), Value::Array(items)) => {
            items.get(*index).map(|item| (path.index(*index), item)).into_iter().collect()
        }
        (PatternStep::Each, Value::Array(items)) => {
            items.iter().enumerate().map(|(index, item)| (path.index(index), item)).collect()
        }
        (PatternStep::Each, Value::Object(members)) => {
            members.iter().map(|(name, member)| (path.key(name), member)).collect()
        }
        _ => Vec::new(),
    }
}

impl From<JsonPath> for PathPattern {
    fn from(path: JsonPath) -> Self {
        Self(path.segments().iter().cloned().map(PatternStep::One).collect())
    }
}

impl FromIterator<PatternStep> for PathPattern {
    fn from_iter<I: IntoIterator<Item = PatternStep>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

/// Compares with a path: equal if the pattern has no wildcard and names the same place.
impl PartialEq<JsonPath> for PathPattern {
    fn eq(&self, path: &JsonPath) -> bool {
        !self.has_wildcard() && self.matches(path)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.0.iter().try_for_each(|step| match step {
            PatternStep::One(segment) => write_segment(segment, f),
            PatternStep::Each => f.write_str("[*]"),
        })
    }
}

impl FromStr for PathPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        steps(text, step).map(Self)
    }
}

/// Returns the first step of a text, and the text behind it.
fn step(rest: &str) -> Option<(PatternStep, &str)> {
    match rest.strip_prefix("[*]").or_else(|| rest.strip_prefix(".*")) {
        Some(tail) => Some((PatternStep::Each, tail)),
        None => segment(rest).map(|(segment, tail)| (PatternStep::One(segment), tail)),
    }
}

impl Serialize for PathPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PathPattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for PathPattern {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PathPattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "RFC 9535 path, `[*]` for every item, e.g. $.risks[0] or $.lines[*].total"
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_is_read_as_it_is_written() {
        for text in ["$", "$.a", "$[*]", "$.lines[*].total", "$.a[*][*]['odd [*] name'][3]"] {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern("$.a.*.b"), pattern("$.a[*].b"));
        assert_eq!(pattern("$['[*]']").as_path(), Some(JsonPath::root().key("[*]")));
        for (text, at) in [("", 0), ("a", 0), ("$.", 1), ("$[**]", 1), ("$.a[*", 3), ("$.a[*]b", 6)] {
            assert_eq!(text.parse::<PathPattern>().unwrap_err().at, at, "{text}");
        }
    }

    #[test]
    fn what_is_found_is_what_matches() {
        let document = json!({"a": [{"b": 1, "c": {"d": 2}}, {"b": 3}, 4], "e": {"f": {"b": 5}}});
        for (text, places) in [
            ("$", vec!["$"]),
            ("$.a[*].b", vec!["$.a[0].b", "$.a[1].b"]),
            ("$.a[*]", vec!["$.a[0]", "$.a[1]", "$.a[2]"]),
            ("$.e[*].b", vec!["$.e.f.b"]),
            ("$[*][*].b", vec!["$.a[0].b", "$.a[1].b", "$.e.f.b"]),
            ("$.a[7].b", vec![]),
            ("$.nothing[*]", vec![]),
        ] {
            let pattern = pattern(text);
            let found = pattern.find(&document);
            let paths: Vec<_> = found.iter().map(|(path, _)| path.to_string()).collect();
            assert_eq!(paths, places, "{text}");
            for (path, value) in found {
                assert!(
                    pattern.matches(&path)
                        && pattern.touches(&path.key("x"))
                        && path.is_within(&pattern.stem())
                );
                assert_eq!(path.get(&document), Some(value));
            }
        }
        assert!(pattern("$.a[*].b").touches(&pattern("$.a").stem()));
        assert!(!pattern("$.a[*].b").touches(&pattern("$.a[0].c").stem()));
    }

    #[test]
    fn common_wildcards_are_bound_to_the_same_item() {
        let target = pattern("$.lines[*].total");
        let at = pattern("$.lines[2].total").stem();
        for (text, bound) in [
            ("$.lines[*].net", "$.lines[2].net"),
            ("$.lines[*].parts[*].price", "$.lines[2].parts[*].price"),
            ("$.taxes[*].rate", "$.taxes[*].rate"),
            ("$.limit", "$.limit"),
        ] {
            assert_eq!(pattern(text).bound(&target, &at).to_string(), bound);
        }
    }
}
