//! Finds the incomplete values of an answer that the token limit ended and whose document was closed without the model.

use formwork_json::{JsonPath, values_around};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reader::Places;
use crate::{Lowered, Provenance, Source, Stage, Violation};

/// The values of a document that the token limit left incomplete. A document with any is incomplete itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Closed {
    /// Values that the model had begun and not ended, outermost first: a text or a number that may continue, and every
    /// object and list around it, which may miss members. Complete members are not included.
    cut: Vec<JsonPath>,
    /// Values of which the model wrote nothing.
    supplied: Vec<JsonPath>,
}

impl Closed {
    /// Returns the incomplete values of a JSON text that was closed from byte `at` on; none if the text ended before.
    pub(super) fn of(text: &str, at: usize) -> Self {
        if at > text.len() {
            return Self::default();
        }
        let at = text.floor_char_boundary(at);
        let (mut cut, supplied) = values_around(text, at);
        if supplied.first().is_some_and(JsonPath::is_root) {
            return Self { cut: Vec::new(), supplied };
        }
        cut.retain(|path| !path.is_root());
        cut.push(JsonPath::root());
        cut.reverse();
        Self { cut, supplied }
    }

    /// Returns the marks of a document that has no end, and whose other incomplete values are unknown.
    pub(super) fn unfinished() -> Self {
        Self { cut: vec![JsonPath::root()], supplied: Vec::new() }
    }

    /// Returns the marks of a document of which any value may be the provider's.
    pub(super) fn whole() -> Self {
        Self { cut: Vec::new(), supplied: vec![JsonPath::root()] }
    }

    /// Maps the paths of a lowered document to those of `value`, the lifted document. A value whose form lifting changes is marked as a
    /// whole.
    pub(super) fn lifted(mut self, lowered: &Lowered, value: &Value) -> Self {
        let places = Places::of(lowered);
        for paths in [&mut self.cut, &mut self.supplied] {
            let lifted = paths.drain(..).map(|path| {
                let mut lifted = places.lifted(&path);
                // A list of at most one item may have become an absent member.
                while places.moves(&path) && lifted.get(value).is_none() {
                    lifted = lifted.parent().unwrap_or_default();
                }
                lifted
            });
            *paths = lifted.collect();
            paths.dedup();
            paths.retain(|path| path.get(value).is_some());
        }
        if self.supplied.iter().any(JsonPath::is_root) {
            self.cut.clear();
        }
        self
    }

    /// Marks the values that fill an added bound instead of reporting them, if values that were cut off are accepted.
    pub(super) fn take_full(
        &mut self,
        mut found: Vec<Violation>,
        accepts_incomplete: bool,
    ) -> Vec<Violation> {
        if accepts_incomplete {
            let full = found.extract_if(.., |violation| violation.rule == CUT);
            self.cut.extend(full.map(|violation| violation.path));
        }
        found
    }

    /// Returns the paths of all incomplete values.
    pub(super) fn paths(&self) -> impl Iterator<Item = &JsonPath> {
        self.cut.iter().chain(&self.supplied)
    }

    /// Removes the marks of a value that is replaced; the objects and lists around it stay incomplete.
    pub(super) fn replace(&mut self, path: &JsonPath) {
        for paths in [&mut self.cut, &mut self.supplied] {
            paths.retain(|incomplete| !incomplete.is_within(path));
        }
    }

    /// Adds the marks of a value that was inserted at `path`. It is the value at `place` of `answer`.
    pub(super) fn adopt(&mut self, answer: &Self, place: &JsonPath, path: &JsonPath) {
        let moved = |from: &[JsonPath]| -> Vec<JsonPath> {
            from.iter().filter_map(|from| in_document(from, place, path)).collect()
        };
        self.cut.extend(moved(&answer.cut));
        self.supplied.extend(moved(&answer.supplied));
        if answer.supplied.iter().any(JsonPath::is_root) {
            self.supplied.push(path.clone());
        } else if answer.supplied.is_empty() && matches!(answer.cut.as_slice(), [root] if root.is_root()) {
            // The answer as a whole is marked as cut, without any detail.
            self.cut.push(path.clone());
        }
    }

    /// Returns the reasons why the document is incomplete. If values that were cut off are accepted, only values of which
    /// the model wrote nothing are reported. `cut_by` names the limit that ended the answer.
    pub(super) fn violations(&self, accepts_incomplete: bool, cut_by: &str) -> Vec<Violation> {
        let cut = self.cut.iter().filter(|_| !accepts_incomplete).map(|path| {
            let expected = if path.is_root() { "a complete document" } else { "a complete value" };
            Violation::new(path.clone(), CUT, Stage::Read).with_expected(expected).with_found(cut_by)
        });
        let supplied = self.supplied.iter().map(|path| {
            Violation::new(path.clone(), SUPPLIED, Stage::Read)
                .with_found(format!("{cut_by} closed the document first"))
        });
        cut.chain(supplied).collect()
    }

    /// Returns the marks as entries of the provenance of an accepted value.
    pub(super) fn provenance(&self, attempt: u32) -> impl Iterator<Item = Provenance> {
        self.paths().map(move |path| Provenance { path: path.clone(), source: Source::Closed, attempt })
    }
}

/// The rule of the violation for a value that the token limit cut off.
pub(super) const CUT: &str = "truncated";

/// The rule of the violation that [`Watch`](crate::Watch) reports.
pub(super) const RUNAWAY: &str = "runaway";

/// The rule of the violation for a value of which the model wrote nothing.
const SUPPLIED: &str = "closed";

/// Returns whether this violation reports an incomplete value.
pub(super) fn is_incomplete(violation: &Violation) -> bool {
    violation.stage == Stage::Read && (violation.rule == CUT || violation.rule == SUPPLIED)
}

/// Returns the path in the document of a value in a patch, whose value at `place` is inserted at `path`; `None` for other values.
pub(super) fn in_document(from: &JsonPath, place: &JsonPath, path: &JsonPath) -> Option<JsonPath> {
    let rest = from.segments().get(place.segments().len()..).filter(|_| from.is_within(place))?;
    Some(path.join(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Lift, LiftOp};

    fn marks(closed: &Closed) -> (Vec<String>, Vec<String>) {
        let text = |paths: &[JsonPath]| paths.iter().map(ToString::to_string).collect();
        (text(&closed.cut), text(&closed.supplied))
    }

    /// Returns the marks of a text that was closed at `|`.
    fn closed(text: &str) -> (Vec<String>, Vec<String>) {
        let at = text.find('|').unwrap();
        marks(&Closed::of(&text.replacen('|', "", 1), at))
    }

    #[test]
    fn what_was_open_and_what_came_after_is_told_apart() {
        let of = |cut: &[&str], supplied: &[&str]| {
            let text = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
            (text(cut), text(supplied))
        };
        for (text, cut, supplied) in [
            (r#"{"a": "do|ne", "b": 0}"#, &["$", "$.a"][..], &["$.b"][..]),
            // A number may miss digits; a text with its closing quote is complete.
            (r#"{"a": 12|, "b": 0}"#, &["$", "$.a"], &["$.b"]),
            (r#"{"a": "done"|, "b": 0}"#, &["$"], &["$.b"]),
            (r#"{"a": [1, {"x": "y|"}], "b": {"c": [0]}}"#, &["$", "$.a", "$.a[1]", "$.a[1].x"], &["$.b"]),
            (r#"{"a": [1, 2]|}"#, &["$"], &[]),
            (r#"{"a": ["x"|]}"#, &["$", "$.a"], &[]),
            (r#"{"a": |0}"#, &["$"], &["$.a"]),
            (r#"{"a"|: 0}"#, &["$"], &["$.a"]),
            (r#"{"a": "x"}|"#, &["$"], &[]),
            ("12|", &["$"], &[]),
            ("1|0", &["$"], &[]),
            (r#"|{"a": 0}"#, &[], &["$"]),
            ("|0", &[], &["$"]),
        ] {
            assert_eq!(closed(text), of(cut, supplied), "{text}");
        }
        assert_eq!(Closed::of("{}", 3), Closed::default());
        assert_eq!(marks(&Closed::of("[\"\u{e9}\"]", 3)), of(&["$", "$[0]"], &[]));
    }

    #[test]
    fn marks_follow_lifted_values_and_mark_moved_ones_as_a_whole() {
        let text = r#"{"data": {"a": "x", "b": null, "c": 0}}"#;
        let at = text.find("x\"").unwrap();
        let lowered = |ops: &[(&str, Lift)]| Lowered {
            lift: ops.iter().map(|(at, lift)| LiftOp { at: (*at).to_owned(), lift: lift.clone() }).collect(),
            schema: Some(json!({"properties": {"data": {"properties": {"a": {}}}}})),
            ..Lowered::default()
        };
        let drop = ("/properties/data", Lift::DropNull(vec!["b".into()]));
        let unwrap = ("", Lift::Unwrap("data".into()));
        let value = json!({"a": "x", "c": 0});
        let of =
            |ops: &[(&str, Lift)], value: &Value| marks(&Closed::of(text, at).lifted(&lowered(ops), value));
        let (cut, supplied) = of(&[drop.clone(), unwrap.clone()], &value);
        assert_eq!((cut, supplied), (vec!["$".into(), "$.a".into()], vec!["$.c".to_owned()]));
        let (cut, supplied) = of(std::slice::from_ref(&drop), &json!({"data": value}));
        assert_eq!(
            (cut, supplied),
            (vec!["$".into(), "$.data".into(), "$.data.a".into()], vec!["$.data.c".to_owned()])
        );
        for other in [
            Lift::PairsToMap,
            Lift::ParseJson,
            Lift::Leaves,
            Lift::Rename(vec![]),
            Lift::Tuple { items: vec![], rest: None },
        ] {
            let (cut, supplied) = of(&[unwrap.clone(), ("/properties/data", other)], &value);
            assert_eq!((cut, supplied), (vec![], vec!["$".to_owned()]));
        }
        // The rest of the document keeps its marks.
        let parsed = ("/properties/data/properties/a", Lift::ParseJson);
        let (cut, supplied) = of(&[parsed], &json!({"data": value}));
        assert_eq!(cut, ["$", "$.data", "$.data.a"]);
        assert_eq!(supplied, ["$.data.c"]);
        let absent = ("/properties/data", Lift::Unlist(vec!["a".into()]));
        let (cut, supplied) = of(&[absent], &json!({"data": {"c": 0}}));
        assert_eq!(cut, ["$", "$.data"]);
        assert_eq!(supplied, ["$.data.c"]);
        // Values that are unwrapped twice have moved further than their paths are followed.
        let (cut, supplied) = of(&[unwrap.clone(), ("", Lift::Unwrap("a".into()))], &json!({"data": value}));
        assert_eq!((cut, supplied), (vec![], vec!["$".to_owned()]));
        for (path, unwrapped) in
            [("$.data.a", "$.a"), ("$.data", "$"), ("$.other.a", "$.other.a"), ("$", "$")]
        {
            let below = Places::of(&lowered(std::slice::from_ref(&unwrap)));
            assert_eq!(below.lifted(&path.parse().unwrap()).to_string(), unwrapped);
        }
    }

    #[test]
    fn a_value_that_is_replaced_is_complete_and_those_around_it_are_not() {
        let text = r#"{"a": {"b": ["x"], "c": 0}}"#;
        let mut closed = Closed::of(text, text.find("x\"").unwrap());
        closed.replace(&"$.a.b".parse().unwrap());
        assert_eq!(marks(&closed), (vec!["$".into(), "$.a".into()], vec!["$.a.c".into()]));
        let answer = r#"{"a.b": ["y", "z"], "a.c": 0}"#;
        let answer = Closed::of(answer, answer.find("z\"").unwrap());
        closed.adopt(&answer, &JsonPath::root().key("a.b"), &"$.a.b".parse().unwrap());
        let (cut, _) = marks(&closed);
        assert_eq!(cut, ["$", "$.a", "$.a.b", "$.a.b[1]"]);
    }
}
