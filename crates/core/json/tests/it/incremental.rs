//! Reading in chunks gives the same values as reading at once.

use formwork_json::{Incremental, JsonPath, Progress};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::container;

/// Splits a text at the given places, between characters.
fn chunks(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut at: Vec<usize> =
        cuts.iter().map(|cut| cut.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

#[test]
fn the_lead_is_skipped_and_the_rest_is_left() {
    let mut reader = Incremental::new();
    assert_eq!(reader.push("<thi", |_| {}), Progress::Before);
    assert_eq!(reader.push("nk>{\"a\": 1}</thi", |_| {}), Progress::Before);
    assert_eq!(reader.push("nk>```json\n{\"b\"", |_| {}), Progress::Inside);
    assert_eq!(reader.push(": 2}\n``` done", |_| {}), Progress::Complete { end: 39 });
    assert_eq!(reader.snapshot(), Some(json!({"b": 2})));
}

#[test]
fn what_is_not_json_stops_it_at_its_byte() {
    for (text, at) in
        [("{'a'", 1), ("[1,]", 3), ("{\"a\" 1", 5), ("[\"\n", 2), ("[tru]", 4), ("[\"\\x", 3), ("{]", 1)]
    {
        let mut reader = Incremental::new();
        assert_eq!(reader.push(text, |_| {}), Progress::Stuck { at }, "{text}");
        assert_eq!(reader.push("{}", |_| {}), Progress::Stuck { at }, "{text}");
    }
}

#[test]
fn the_snapshot_keeps_open_strings_and_leaves_out_open_names() {
    for (text, snapshot) in [
        ("{", json!({})),
        ("{\"a", json!({})),
        ("{\"a\": ", json!({})),
        ("{\"a\": \"x\\", json!({"a": "x"})),
        ("{\"a\": \"x\\ud83d", json!({"a": "x"})),
        ("{\"a\": \"x\\ud83d\\ude00", json!({"a": "x😀"})),
        ("{\"a\": [1, 2", json!({"a": [1]})),
    ] {
        let mut reader = Incremental::new();
        reader.push(text, |_| {});
        assert_eq!(reader.snapshot(), Some(snapshot), "{text}");
    }
}

proptest! {
    #[test]
    fn any_chunking_reads_the_same(value in container(), cuts: Vec<prop::sample::Index>, pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let mut reader = Incremental::new();
        let mut closed: Vec<(JsonPath, Value)> = Vec::new();
        for chunk in chunks(&text, &cuts) {
            reader.push(&chunk, |done| closed.push((done.path(), done.value.clone())));
        }
        prop_assert_eq!(reader.progress(), Progress::Complete { end: text.len() });
        prop_assert_eq!(reader.snapshot(), Some(value.clone()));
        for (path, part) in &closed {
            prop_assert_eq!(path.get(&value), Some(part));
        }
        prop_assert!(closed.last().is_some_and(|(path, _)| path.is_root()));
    }
}
