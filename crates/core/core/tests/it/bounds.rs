//! The length of messages about an answer does not depend on the answer.

use std::sync::Arc;

use formwork_core::*;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// The maximum length of a violation in one line: the fixed text, and each part at its limit with four bytes per character.
const MAX_LINE: usize = 200 + MAX_PATH + 4 * (MAX_NAME + MAX_EXPECTED + MAX_FOUND);

fn text() -> impl Strategy<Value = String> {
    (
        prop::sample::select(vec!["a", "é", "🦀", "'", "\\", " ", "\n", "x.y[0]"]),
        prop_oneof![Just(0usize), 1usize..40, 1_000usize..3_000],
    )
        .prop_map(|(unit, times)| unit.repeat(times))
}

fn segment() -> impl Strategy<Value = Segment> {
    prop_oneof![text().prop_map(Segment::Key), any::<usize>().prop_map(Segment::Index)]
}

fn violation() -> impl Strategy<Value = Violation> {
    let path = prop::collection::vec(segment(), 0..130).prop_map(|segments| segments.into_iter().collect());
    let rule = prop_oneof![
        prop::sample::select(vec!["required", "additionalProperties", "type", "json", "closed"])
            .prop_map(str::to_owned),
        text(),
    ];
    (path, rule, text(), text(), any::<bool>()).prop_map(
        |(path, rule, expected, found, by_hand): (JsonPath, String, String, String, bool)| {
            let violation =
                Violation::new(path, rule, Stage::Check).with_expected(expected).with_found(found.clone());
            if by_hand { Violation { found, ..violation } } else { violation }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_line_about_a_violation_is_bounded(violation in violation()) {
        for line in [violation.to_string(), violation.masked(), violation.detail()] {
            prop_assert!(line.len() <= MAX_LINE, "{} bytes", line.len());
        }
        prop_assert!(violation.place().len() <= MAX_PATH);
        // In JSON the path is complete, and the message is bounded.
        let json = serde_json::to_value(&violation).unwrap();
        prop_assert_eq!(&json["path"], &json!(violation.path.to_string()));
        prop_assert!(json["message"].as_str().unwrap().len() <= MAX_LINE);
    }

    #[test]
    fn short_paths_are_written_as_they_are(
        names in prop::collection::vec("[a-zé '.]{0,20}", 0..10), index in 0usize..1_000,
    ) {
        let path: JsonPath = names.into_iter().map(Segment::Key).chain([Segment::Index(index)]).collect();
        prop_assert_eq!(Violation::new(path.clone(), "type", Stage::Schema).place(), path.to_string());
    }
}

/// An object whose every member is an integer.
struct Map;

impl Validator for Map {
    fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
        let wrong = |path: JsonPath, expected: &str, found: &Value| {
            Violation::new(path, "type", Stage::Schema).with_expected(expected).with_found(found.to_string())
        };
        let Some(members) = value.as_object() else {
            return out.push(wrong(JsonPath::root(), "object", value));
        };
        for (name, member) in members.iter().filter(|(_, member)| !member.is_i64()) {
            // Some checks quote another part of the answer.
            let expected =
                format!("an integer, unlike {}", value.to_string().get(..2_000).unwrap_or_default());
            out.push(wrong(JsonPath::root().key(name), &expected, member));
        }
    }
}

impl Structure for Map {
    fn subschema(&self, path: &JsonPath, _: &Value) -> Option<Value> {
        (path.segments().len() == 1).then(|| json!({"type": "integer"}))
    }
}

fn size(call: &Call) -> usize {
    call.messages.iter().map(|message| message.text().len()).sum::<usize>()
        + call.schema().map_or(0, |schema| schema.to_string().len())
        + call.lowered.prompt_schema.as_ref().map_or(0, |prompt_schema| format!("{prompt_schema:?}").len())
}

#[test]
fn any_number_of_values_is_patched_while_the_whole_does_not_cost_less() {
    for (wrong, is_patch) in [(1, true), (9, true), (1_000, false)] {
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        let contract = Contract::new(Arc::new(Inline::new("map", schema)), Arc::new(Map));
        let plan = Plan::new(contract, vec![target("one")]).build().unwrap();
        let members: Vec<_> = (0..wrong).map(|nth| format!(r#""member{nth}": "x""#)).collect();
        let text: &'static str = format!("{{{}}}", members.join(", ")).leak();
        let driven = drive(&plan, input(), &[Reply::Says(text), Reply::Says("{}")]);
        let words = driven.calls[1].2.messages.last().unwrap().text();
        assert_eq!(words.contains("except for some values"), is_patch, "{wrong}: {words}");
    }
}

#[test]
fn re_asks_errors_and_lessons_do_not_grow_with_the_answer() {
    let map = || {
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        Contract::new(Arc::new(Inline::new("map", schema)), Arc::new(Map))
    };
    let long = |length: usize| "k".repeat(length);
    let answers: [fn(&str) -> String; 8] = [
        |long| format!(r#"{{"{long}": "x"}}"#),
        |long| format!(r#"{{"a": "{long}"}}"#),
        |long| format!(r#"{{"a": {{"{long}": {{"b '{long}'": 1}}}}}}"#),
        |long| {
            format!("{{{}}}", (0..8).map(|n| format!(r#""{n}{long}": [1.5]"#)).collect::<Vec<_>>().join(", "))
        },
        |long| format!(r#"{{"score": 700, "parts": {{"a": 70, "b": 70}}, "note": "", "{long}": 1}}"#),
        |long| format!("{long} {{'{long}': 1}}"),
        |long| format!(r#"["{long}"]"#),
        |long| format!(r#"{{"a": 1.5, "{long}": 1"#),
    ];
    for answer in answers {
        for policy in policies() {
            for contract in [map(), contract()] {
                let plan =
                    Plan::new(contract, vec![target("one")]).with_policy(policy.clone()).build().unwrap();
                let sizes = |length: usize| {
                    let text: &'static str = answer(&long(length)).leak();
                    let driven = drive(&plan, input(), &[Reply::Says(text)]);
                    let calls = driven.calls.iter().map(|(_, _, call)| size(call)).max().unwrap();
                    let observations =
                        driven.run.observations().map(|observation| observation.to_string().len()).max();
                    let error = driven.run.finish().unwrap_err();
                    (calls, observations.unwrap_or(0), error.to_string().len(), format!("{error:#}").len())
                };
                let (calls, observations, line, story) = sizes(20_000);
                let words = 3_000;
                assert!(calls <= words + MAX_PREVIOUS + MAX_BYTES + 8 * MAX_LINE, "{calls} bytes");
                assert!(
                    observations <= words + MAX_PATH && line <= words + MAX_LINE,
                    "{observations} {line}"
                );
                // Beyond the limits only the digits of offsets and counts still grow.
                let (calls_2, observations_2, line_2, story_2) = sizes(40_000);
                for (one, other) in
                    [(calls, calls_2), (observations, observations_2), (line, line_2), (story, story_2)]
                {
                    assert!(other <= one + 200, "{one} bytes, then {other}");
                }
            }
        }
    }
}
