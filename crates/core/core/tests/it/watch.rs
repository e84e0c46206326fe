//! The streams that a watch reports, and those that it accepts.

use formwork_core::{Span, Watch};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Feeds a text in pieces of so many characters, the last size repeatedly, and returns the reported span.
fn fed(mut watch: Watch, text: &str, sizes: &[usize]) -> Option<Span> {
    let (mut rest, mut sizes) = (text, sizes.iter().chain(sizes.last().into_iter().cycle()));
    while !rest.is_empty() {
        let size = *sizes.next().unwrap();
        let end = rest.char_indices().nth(size.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        if let Some(violation) = watch.push(piece) {
            assert_eq!(violation.rule, "runaway");
            return violation.span;
        }
        rest = after;
    }
    None
}

fn reported(text: &str) -> Option<Span> {
    fed(Watch::default(), text, &[usize::MAX])
}

/// Returns the byte after which `unit` has been repeated often enough.
fn limit(unit: &str) -> usize {
    Watch::MIN_BYTES.max(Watch::MIN_REPEATS * unit.len())
}

#[test]
fn repetition_in_one_value_is_reported_at_the_byte_that_makes_it_one() {
    for unit in [
        "a",
        "ha ",
        "\\n",
        "\\\"",
        ", ",
        "true, ",
        "{\"a\": 1}, ".replace('"', "'").as_str(),
        "äöü",
        &(0..64).map(|n| format!("{n:03} ")).collect::<String>(),
    ] {
        for (before, after) in [
            ("{\"a\": \"", "\"}"),
            ("[1, [\"x\", \"", "\"]]"),
            ("{\"", "\": 1}"),
            ("Sure: {\"a\": {\"b\": \"well;", "\"}}"),
        ] {
            let text = |bytes: usize| {
                let run: String = unit.repeat(bytes / unit.len() + 1).chars().collect();
                let cut = (0..=bytes).rev().find(|at| run.is_char_boundary(*at)).unwrap();
                format!("{before}{}{after}", &run[..cut])
            };
            // An escape that is cut would end strict JSON.
            let step = if unit.starts_with('\\') { unit.len() } else { 1 };
            let most = limit(unit);
            assert_eq!(reported(&text(most - step)), None, "{unit}: {before}");
            let span = Span::new(before.len(), before.len() + most);
            assert_eq!(reported(&text(most + 2 * unit.len())), Some(span), "{unit}: {before}");
        }
    }
}

#[test]
fn a_loop_of_a_tiny_model_is_reported_after_its_first_round() {
    let again = |unit: &str| unit.repeat(40);
    for (kept, loops) in [
        (r#"{"a": "b-"#, again("-")),
        (r#"{"a": "I like it. "#, again("I like it. ")),
        (r#"{"a": "2024-03-06T00:00:00.0"#, again("0")),
        (r#"{"a": ["ä–"#, again("ä–")),
        (r#"{"a": ["x", "y""#, again(r#", "x", "y""#)),
        (r#"{"a": [[1, "Criminal""#, again(",\n  \"Criminal\"")),
        (r#"{"a": [{"id": 1}"#, again(r#", {"id": 1}"#)),
        (r#"[1.5"#, again(", 1.5")),
    ] {
        // A string ends by itself at any text that differs; a number is known to have ended at the byte after it.
        let text = format!("{kept}{loops}");
        for sizes in [1, 7, usize::MAX] {
            let span = fed(Watch::for_tiny_model(), &text, &[sizes]);
            assert_eq!(span.map(|span| &text[..span.start]), Some(kept), "{text}");
            assert!(span.is_some_and(|span| span.end <= text.len() && span.len() < 120), "{text}: {span:?}");
        }
        assert_eq!(reported(&text), None, "{text}");
    }
    for text in [
        r#"{"a": "no, no, no, no, no", "b": "--------", "c": "ha ha ha ha ha ha"}"#,
        r#"{"a": [0, 0, 0, 0, 0, 0, 0, 0], "b": [true, true, true, true], "c": ["done", "done", "done", "open"]}"#,
        r#"{"a": {"x": 1, "y": 1, "z": 1}, "b": {"x": 1, "y": 1, "z": 1}, "c": {"x": 1, "y": 1, "z": 1}, "d": {"x": 1, "y": 1, "z": 1}}"#,
    ] {
        assert_eq!(fed(Watch::for_tiny_model(), text, &[usize::MAX]), None, "{text}");
    }
}

#[test]
fn numbers_and_white_space_are_reported_at_their_limit() {
    let digits: String = (0..5_000).map(|n| char::from(b'0' + (n * n % 7) as u8)).collect();
    for (before, run) in [
        ("[", "1"),
        ("{\"a\": 3.", &digits),
        ("[", " "),
        ("{\"a\":", "\n  \t"),
        ("{\"a\": 1}", " \n"),
        ("", "\n"),
    ] {
        let long = run.repeat(5_000 / run.len());
        let start = if before.ends_with("3.") { before.len() - 2 } else { before.len() };
        let text = format!("{before}{long}");
        let end = start + Watch::MIN_BYTES;
        assert_eq!(reported(&text).map(|span| span.end), Some(end), "{before}");
        assert_eq!(reported(&text[..end - 1]), None, "{before}");
        // Interrupted runs do not count as one run.
        let pieces = [&text[start..end - 1]; 3].join(", ");
        assert_eq!(reported(&format!("[{pieces}")).filter(|_| run.trim() != ""), None, "{before}");
    }
}

#[test]
fn text_without_structure_is_watched_like_one_string() {
    let drafts = format!("[{}", "true, ".repeat(600));
    assert_eq!(reported(&drafts), None);
    assert!(fed(Watch::over_prose(), &drafts, &[7]).is_some());
    assert!(reported(&"I am sorry. ".repeat(200)).is_some());
    assert_eq!(reported(&"I am sorry. ".repeat(100)), None);
    let mut watch = Watch::default();
    assert!(watch.push("See [1]. {\"a\": [1, 2]}").is_none() && watch.is_after_document());
    assert!(watch.push(" ha ha").is_none() && watch.is_after_document());
    assert!(watch.push(&" ha".repeat(2_000)).is_some() && watch.is_after_document());
    let mut watch = Watch::default();
    assert!(watch.push("[1] {\"a\": \"").is_none() && !watch.is_after_document());
    assert!(watch.push(&" ha".repeat(2_000)).is_some() && !watch.is_after_document());
    // The same document is repeated after its end.
    let span = reported(&"{\"open\": [true, true], \"note\": \"}\"}\n".repeat(100)).unwrap();
    assert!(span.end >= Watch::MIN_BYTES && span.start == 0);
}

#[test]
fn what_may_repeat_as_often_as_it_likes() {
    let row = format!("| {:<30} | {} |\\n", "", "-".repeat(30));
    for text in [
        format!(r#"{{"open": [{}true]}}"#, "true, ".repeat(16)),
        format!("[{}null]", "null, ".repeat(39)),
        format!("[{}]", vec![r#""negative""#; 20].join(", ")),
        format!("[{}]", vec![r#"{"ok": true}"#; 20].join(", ")),
        format!("[{}]", vec![r#"{"ok": true}"#; 5_000].join(",\n")),
        format!("{{{}}}", vec![r#""ok": [0.0, 0.0]"#; 5_000].join(", ")),
        format!("[{}]", vec!["0"; 10_000].join(",")),
        format!("[{}]", vec!["[]"; 10_000].join("")),
        format!("[{}]", vec!["\"\""; 10_000].join(",")),
        format!("[{}]", vec!["{\"a\": [[], {}]}"; 3_000].join(",\r\n\t")),
        format!(r#"{{"table": "{}"}}"#, row.repeat(28)),
        format!(r#"{{"line": "{}", "more": "{}"}}"#, "-".repeat(2_000), " ".repeat(2_000)),
        format!("{}1{}", "[".repeat(127), "]".repeat(127)),
        // The document is not strict JSON, so items and the text between them cannot be distinguished.
        format!("{{'open': [{}True]}}", "True, ".repeat(2_000)),
        format!("[{}]", vec!["'negative'"; 2_000].join(", ")),
        format!("[{}]", "negative\n".repeat(2_000)),
        format!("{{\"a\": \"5\" tall\", \"open\": [{}true]}}", "true, ".repeat(2_000)),
        format!("{{\"a\": \"5, \"open\": [{}true]}}", "true, ".repeat(2_000)),
        format!("{{// why\n\"open\": [{}true]}}", "true, ".repeat(2_000)),
        format!("Use {{x}}: {{\"open\": [{}true]}}", "true, ".repeat(2_000)),
        format!("[1], [2]: {{\"open\": [{}true]}}", "true, ".repeat(2_000)),
        format!("{{\\\"open\\\": [{}true]}}", "true, ".repeat(2_000)),
    ] {
        assert_eq!(reported(&text), None, "{}", &text[..60.min(text.len())]);
    }
    for text in ["{'a': '", "{a: ", "Use {x}: {\"a\": \""] {
        assert!(reported(&format!("{text}{}", "ha ha ".repeat(500))).is_some(), "{text}");
    }
}

/// Generates pieces of text that matter to the watch, each repeated.
fn streams() -> impl Strategy<Value = String> {
    let unit = prop_oneof![
        "[a-c\\[\\]{}\", :]{1,6}",
        "[ \n]{1,3}",
        "[0-9]{1,4}",
        prop::sample::select(vec![
            "{\"a\": \"",
            "\"}",
            "\", \"",
            "[1, ",
            "], ",
            "ä",
            "true, ",
            "\\\"",
            "\\n"
        ])
        .prop_map(str::to_owned),
    ];
    let part = (unit, prop_oneof![3 => 1usize..4, 1 => 300usize..3_000]);
    prop::collection::vec(part, 1..6)
        .prop_map(|parts| parts.iter().map(|(unit, times)| unit.repeat(*times)).collect())
}

/// Generates an ordinary document of equal parts.
fn repetitive() -> impl Strategy<Value = Value> {
    let item = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!("")),
        (0i64..1_000_000).prop_map(Value::from),
        "[ -~]{0,30}".prop_map(Value::from),
        Just(json!({"ok": true, "why": ", "})),
        Just(json!([[], {}])),
    ];
    (item, 1usize..3_000, any::<bool>()).prop_map(|(item, times, named)| {
        let list = vec![item; times];
        if named { json!({"before": "x", "list": list, "after": "y"}) } else { Value::from(list) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_chunking_reports_what_one_chunk_reports(
        text in streams(), sizes in prop::collection::vec(1usize..600, 1..20), prose: bool,
    ) {
        let watch = || if prose { Watch::over_prose() } else { Watch::default() };
        let at_once = fed(watch(), &text, &[usize::MAX]);
        prop_assert_eq!(fed(watch(), &text, &sizes), at_once);
        // The text after the byte that proved the runaway has no effect.
        if let Some(span) = at_once {
            let end = (span.end..).find(|end| text.is_char_boundary(*end)).unwrap();
            prop_assert_eq!(fed(watch(), &text[..end], &[usize::MAX]), Some(span));
            prop_assert!(span.len() >= Watch::MIN_BYTES);
        }
    }

    #[test]
    fn items_and_members_may_repeat(
        value in repetitive(), pretty: bool, before in "[A-Za-z .:\n]{0,30}", fence: bool,
    ) {
        let document = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let text = if fence { format!("{before}\n```json\n{document}\n```\n") } else { format!("{before}{document}") };
        prop_assert_eq!(reported(&text), None);
    }

    #[test]
    fn a_quote_that_is_lost_or_doubled_does_not_make_items_a_string(
        value in repetitive(), at in any::<prop::sample::Index>(), double: bool,
    ) {
        let mut document = serde_json::to_string(&json!({"value": value})).unwrap();
        let mut quotes: Vec<usize> = document.match_indices('"').map(|(at, _)| at).collect();
        quotes.retain(|at| *at > 0 && !document[..*at].ends_with('\\'));
        if double {
            document.insert(*at.get(&quotes), '"');
        } else {
            // Only opening quotes: without the closing one, the rest would be part of the string.
            let opening: Vec<usize> = quotes.into_iter().step_by(2).collect();
            document.remove(*at.get(&opening));
        }
        prop_assert_eq!(reported(&document), None, "{}", &document[..100.min(document.len())]);
    }
}
