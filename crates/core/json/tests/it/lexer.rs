//! Lexing in chunks gives the same events as lexing at once.

use formwork_json::{EditKind, Event, Kind, Level, Lexer, Position, Span, Token, locate, read};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{container, document, is_bare, text};

/// Returns the events of a text that arrives in chunks of these sizes, and the lexer after it.
fn events(mut lexer: Lexer, text: &str, sizes: &[usize]) -> (Vec<Event>, Lexer) {
    let (mut found, mut rest) = (Vec::new(), text.as_bytes());
    for size in sizes.iter().copied().chain([usize::MAX]) {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        lexer.push(chunk, |event| found.push(event));
        rest = after;
    }
    (found, lexer)
}

fn clean(text: &str) -> (Vec<Event>, Lexer) {
    events(Lexer::new(Level::Clean), text, &[])
}

#[test]
fn text_outside_of_documents_is_skipped() {
    for (before, is_prose) in [
        ("", false),
        (" \n", false),
        ("\u{FEFF}", false),
        ("```json\n", false),
        ("<think>{\"a\": [1]} {{</think>\n", false),
        ("<|channel|>analysis<|message|>[1]<|end|>", false),
        ("[THINK]{\"b\"[/think]", false),
        ("Here you are: ", true),
        ("See <b>, `x`: ", true),
    ] {
        let text = format!("{before}{{\"b\": 2}}\n``` done");
        let (_, lexer) = clean(&text);
        let end = before.len() + "{\"b\": 2}".len();
        assert_eq!(lexer.document(), Some(Span::new(before.len(), end)), "{before}");
        assert_eq!(clean(before).1.has_prose(), is_prose, "{before}");
        assert_eq!(lexer.snapshot(&text), Some(json!({"b": 2})));
    }
    let begun = |text| clean(text).0.len();
    assert_eq!((begun("<thi"), begun("[THI"), begun("[1"), begun("\"a\"")), (0, 0, 2, 0));
}

#[test]
fn several_documents_follow_each_other() {
    let text = "[1], [2]: {\"a\": []} 3";
    let (found, lexer) = clean(text);
    let is_root = |event: &&Event| matches!(event.token, Token::End(Kind::Object | Kind::Array));
    let ends: Vec<_> = found.iter().filter(is_root).map(|event| event.span.of(text)).collect();
    assert_eq!((ends, lexer.position()), (vec!["[1]", "[2]", "[]", "{\"a\": []}"], Position::Outside));
}

#[test]
fn the_byte_that_is_not_json_ends_the_events() {
    for (text, at) in [
        ("{'a'", 1),
        ("[,]", 1),
        ("{,}", 1),
        ("{\"a\" 1", 5),
        ("[tru]", 4),
        ("[\"\\x", 3),
        ("[\"\\ud83dx", 8),
        ("[\"\\udc00", 7),
        ("[\"\\ud83d\\u0041", 13),
        ("{]", 1),
        ("[01]", 2),
        ("[1.]", 3),
        ("[-a", 2),
        ("[1 2", 3),
    ] {
        for level in [Level::Strict, Level::Clean, Level::Lenient] {
            let (_, lexer) = events(Lexer::new(level), &format!("{text}{{}}"), &[]);
            assert_eq!(lexer.position(), Position::Stuck(at), "{text}");
        }
    }
    assert_eq!(events(Lexer::new(Level::Strict), "[] x", &[]).1.position(), Position::Stuck(3));
    let deep = "[".repeat(200);
    assert_eq!(clean(&deep).1.position(), Position::Stuck(formwork_json::MAX_DEPTH));
}

#[test]
fn repairs_of_level_clean_are_edits() {
    let text = "{\"a\": \"x\ny\", \"b\": [1, ],}";
    let edits = |level| {
        let (found, lexer) = events(Lexer::new(level), text, &[]);
        let edit = |event: Event| match event.token {
            Token::Edit(kind) => Some((kind, event.span.of(text))),
            _ => None,
        };
        (found.into_iter().filter_map(edit).collect::<Vec<_>>(), lexer.position())
    };
    let (control, comma) = (EditKind::ControlCharacter, EditKind::TrailingComma);
    assert_eq!(edits(Level::Clean), (vec![(control, "\n"), (comma, ","), (comma, ",")], Position::Outside));
    assert_eq!(edits(Level::Strict), (vec![], Position::Stuck(8)));
}

#[test]
fn a_scalar_is_a_document_only_on_request() {
    for (text, end) in
        [("42", Some(2)), (" \"a b\" ", Some(6)), ("```json\nnull\n```", Some(12)), ("trust me", None)]
    {
        let mut lexer = Lexer::new(Level::Clean).with_scalars(true);
        lexer.push(text.as_bytes(), |_| {});
        lexer.end(|_| {});
        assert_eq!(lexer.document().map(|span| span.end), end, "{text}");
        assert_eq!(clean(text).1.document(), None);
    }
    let (_, lexer) = events(Lexer::new(Level::Clean).with_scalars(true), "no: {\"a\": 1}", &[]);
    assert_eq!(lexer.document(), Some(Span::new(4, 12)));
}

#[test]
fn the_snapshot_keeps_open_strings_and_leaves_out_open_names() {
    for (text, snapshot) in [
        ("{", json!({})),
        ("{\"a", json!({})),
        ("{\"a\": ", json!({})),
        ("{\"a\": 1,", json!({"a": 1})),
        ("{\"a\": \"", json!({"a": ""})),
        ("{\"a\": \"x\\", json!({"a": "x"})),
        ("{\"a\": \"x\\ud83d", json!({"a": "x"})),
        ("{\"a\": \"x\\ud83d\\ude00", json!({"a": "x😀"})),
        ("{\"a\": [1, 2", json!({"a": [1]})),
        ("[{}, tru", json!([{}])),
    ] {
        assert_eq!(clean(text).1.snapshot(text), Some(snapshot), "{text}");
    }
    assert_eq!(clean("Sure").1.snapshot("Sure"), None);
}

proptest! {
    #[test]
    fn any_chunking_and_storing_gives_the_same_events(
        parts in prop::collection::vec(prop_oneof![text(), document().prop_map(|value| value.to_string())], 1..4),
        sizes in prop::collection::vec(0usize..7, 0..60),
        level in prop::sample::select(vec![Level::Strict, Level::Clean]),
        scalars: bool,
    ) {
        let text = parts.concat();
        let lexer = || Lexer::new(level).with_scalars(scalars);
        let (at_once, last) = events(lexer(), &text, &[]);
        prop_assert_eq!(&events(lexer(), &text, &sizes), &(at_once.clone(), last.clone()));
        let (mut stored, mut found) = (lexer(), Vec::new());
        for byte in text.as_bytes() {
            stored = serde_json::from_value(serde_json::to_value(&stored).unwrap()).unwrap();
            stored.push(&[*byte], |event| found.push(event));
        }
        prop_assert_eq!((found, stored), (at_once, last));
    }

    #[test]
    fn every_value_of_a_document_ends_once_at_its_bytes(value in container(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let (found, lexer) = clean(&text);
        prop_assert_eq!(lexer.document(), Some(Span::new(0, text.len())));
        prop_assert_eq!(lexer.snapshot(&text), Some(value.clone()));
        let ended = found.iter().filter(|event| matches!(event.token, Token::End(_)));
        for event in ended.clone() {
            prop_assert!(serde_json::from_str::<Value>(event.span.of(&text)).is_ok());
        }
        fn count(value: &Value) -> usize {
            1 + match value {
                Value::Array(items) => items.iter().map(count).sum(),
                Value::Object(members) => members.values().map(count).sum(),
                _ => 0,
            }
        }
        prop_assert_eq!(ended.count(), count(&value));
        prop_assert_eq!(locate(&text, &formwork_json::JsonPath::root()), lexer.document());
    }

    #[test]
    fn the_snapshot_is_the_reading_of_the_text_so_far(value in container(), cut: prop::sample::Index) {
        let text = value.to_string();
        let cut = (0..=cut.index(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let so_far = &text[..cut];
        if let Some(snapshot) = clean(so_far).1.snapshot(so_far) {
            // The tolerant reader keeps more of an unfinished escape, number or literal, and refuses a text of which nothing is kept.
            match read(so_far, Level::Clean) {
                Ok(read) => prop_assert_eq!(snapshot.is_object(), read.candidates()[0].value.is_object()),
                Err(error) => prop_assert!(is_bare(&snapshot), "{}: {}", so_far, error),
            }
        }
    }
}
