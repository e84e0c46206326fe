//! Valid JSON is read unchanged, and nearly valid JSON with a report of the repairs.

use formwork_json::{
    Candidate, Edit, EditKind, Level, Places, ReadError, Segment, Span, locate, read, splice,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{container, document, of_texts};

fn best(text: &str, level: Level) -> Candidate {
    let reading = read(text, level).unwrap_or_else(|error| panic!("{text}: {error}"));
    reading.into_candidates().swap_remove(0)
}

fn kinds(candidate: &Candidate) -> Vec<EditKind> {
    candidate.all_edits().iter().map(|edit| edit.kind).collect()
}

#[test]
fn clean_finds_the_document_and_says_what_it_skipped() {
    for (text, expected, edits) in [
        ("```json\n{\"a\": 1}\n```", json!({"a": 1}), vec![EditKind::Fence, EditKind::Fence]),
        ("```\n[1]", json!([1]), vec![EditKind::Fence]),
        ("Sure! {\"a\": 1} Bye.", json!({"a": 1}), vec![EditKind::Prose, EditKind::Prose]),
        (
            "see [1]: {\"a\": \"bb\"}",
            json!({"a": "bb"}),
            vec![EditKind::Prose, EditKind::OtherDocument, EditKind::Prose],
        ),
        ("<think>{\"a\": 0}</think>{\"a\": 1}", json!({"a": 1}), vec![EditKind::Reasoning]),
        ("hm, {\"a\": 0}</think>\n{\"a\": 1}", json!({"a": 1}), vec![EditKind::Reasoning]),
        ("<THINK>x</Think> 42", json!(42), vec![EditKind::Reasoning]),
        ("\u{FEFF}{}", json!({}), vec![EditKind::ByteOrderMark]),
        ("{\"a\": [1, 2,], }", json!({"a": [1, 2]}), vec![EditKind::TrailingComma, EditKind::TrailingComma]),
        (
            "{\"a\": \"x\ny\tz\"}",
            json!({"a": "x\ny\tz"}),
            vec![EditKind::ControlCharacter, EditKind::ControlCharacter],
        ),
        ("{\"a\": {\"b\": [1, 2", json!({"a": {"b": [1, 2]}}), vec![EditKind::Closed]),
        ("{\"a\": \"``` {1} <think>\"}, ok", json!({"a": "``` {1} <think>"}), vec![EditKind::Prose]),
        ("{\"a\": 1, \"a\": 2,}", json!({"a": 2}), vec![EditKind::DuplicateKey, EditKind::TrailingComma]),
    ] {
        let read = best(text, Level::Clean);
        assert_eq!((&read.value, kinds(&read)), (&expected, edits), "{text}");
        assert!(read.all_edits().iter().all(|edit| edit.kind.level() <= Level::Clean), "{text}");
    }
}

#[test]
fn lenient_reads_what_other_languages_write() {
    for (text, expected) in [
        ("{'a': 'it''s', \"b\": \"say \"hi\", ok\"}", json!({"a": "it''s", "b": "say \"hi\", ok"})),
        ("{a: 1, b_c: two words, 3: .5}", json!({"a": 1, "b_c": "two words", "3": 0.5})),
        ("{\u{201C}a\u{201D}: \u{2018}x\u{2019}}", json!({"a": "x"})),
        ("{\"a\": True, \"b\": None, \"c\": NaN}", json!({"a": true, "b": null, "c": null})),
        ("{\"a\": 1 // one\n /* two */ \"b\": 2 # three\n}", json!({"a": 1, "b": 2})),
        ("{\"a\": 1\n\"b\": [1 2]}", json!({"a": 1, "b": [1, 2]})),
        ("{\"a\": \"x\n\"b\": 2}", json!({"a": "x", "b": 2})),
        ("{\"a\": \"x,\n\"b\": 2}", json!({"a": "x", "b": 2})),
        ("{\"a\": \"b,\"c\": \"d\"}", json!({"a": "b", "c": "d"})),
        ("{\"a\" \"b\"}", json!({"a": "b"})),
        ("{\"a\": \"x\" + \"y\"}", json!({"a": "xy"})),
        ("{\"id\": ObjectId(\"12\"), \"n\": NumberLong(2)}", json!({"id": "12", "n": 2})),
        ("callback({\"a\": 1});", json!({"a": 1})),
        ("{\\\"a\\\": \\\"b\\\"}", json!({"a": "b"})),
        ("\"{\\\"a\\\": 1}\"", json!({"a": 1})),
        ("{\"a\": 1}\n{\"a\": 2}", json!([{"a": 1}, {"a": 2}])),
        ("{\"a\": [1, 2, ...], \"b\": 1}", json!({"a": [1, 2], "b": 1})),
        ("{\"a\": [{\"b\": 1, \"c\": 2]}", json!({"a": [{"b": 1, "c": 2}]})),
        (
            "{\"p\": \"C:\\Users\\x\", \"r\": \"\\d+\", \"q\": \"it\\'s\"}",
            json!({"p": "C:\\Users\\x", "r": "\\d+", "q": "it's"}),
        ),
        ("{\"a\": (1, 2)}", json!({"a": [1, 2]})),
        ("{\"a\": (1), \"b\": (\"x\"), \"c\": (1,)}", json!({"a": 1, "b": "x", "c": [1]})),
        (
            "{\"a\": \"\"\"one \"x\",\n\"b\": two\"\"\", \"c\": 1}",
            json!({"a": "one \"x\",\n\"b\": two", "c": 1}),
        ),
        // The last bracket is of the wrong kind, so that the root has no end.
        ("{\"a\": 1]", json!({"a": 1})),
        ("[1, 2)", json!([1, 2])),
        ("[{\"a\": [1)}]", json!([{"a": [1]}])),
        // Quotes that stand twice: a comma is missing, the last are too many, or they belong to the text.
        ("[\"a\"\"b\"\"c d\"]", json!(["a", "b", "c d"])),
        ("{\"a\": \"x\"\"\", \"b\": \"\"\"\"}", json!({"a": "x", "b": ""})),
        ("[\"say \"\"hi\"\" now\"]", json!(["say \"\"hi\"\" now"])),
        ("[\"say \"hi\"\", \"b\"]", json!(["say \"hi\"", "b"])),
        // A closing quote is missing before the comma.
        ("[\"a, \"b\", \"c\"]", json!(["a", "b", "c"])),
        ("[\"a,\n\"b\"]", json!(["a", "b"])),
        // An opening quote is missing, or a closing one is too much.
        ("[a\", \"b\"]", json!(["a", "b"])),
        ("{\"a\": 12\", \"b\": x\"}", json!({"a": 12, "b": "x"})),
        // Nothing but numbers, and documents with comments between them.
        ("4 , ", json!(4)),
        ("1,2,3", json!([1, 2, 3])),
        ("-1\n2.5\n", json!([-1, 2.5])),
        ("/* 1 */\n{},\n/* 2 */\n{}", json!([{}, {}])),
        ("callback(null);", json!(null)),
        // Each quote is escaped.
        ("\\\"a b\\\"", json!("a b")),
        ("[{\"{\\\"\\\\\": null,}]", json!([{"{\"\\": null}])),
        ("{\\\"a\\\": \\\"b \\\\\"c\\\\\"\\\"}", json!({"a": "b \"c\""})),
        // The end of an object in a list is missing before the next one.
        ("[{\"a\": 1, {\"a\": 2}]", json!([{"a": 1}, {"a": 2}])),
        ("[{\"a\": 1{\"a\": 2}]", json!([{"a": 1}, {"a": 2}])),
        (
            "{\"a\": [{\"b\": \"x\", {\"b\": \"y\"}], \"c\": 1}",
            json!({"a": [{"b": "x"}, {"b": "y"}], "c": 1}),
        ),
        ("[{{\"a\": 1}}]", json!([{"a": 1}])),
        // Brackets around a fence are no list, and a fence can be a text.
        ("[```json\n{\"a\": 1}\n```]", json!({"a": 1})),
        ("{\"a\": ```b```}", json!({"a": "``b``"})),
        // White space after a number or literal that is cut off changes nothing.
        ("[2e ", json!([2])),
        ("{\"a\": tru\n", json!({"a": true})),
        // In an object no name follows, so that the commas separate thousands; in a list they separate numbers.
        ("{\"a\": -2,000.50, \"b\": [1,234]}", json!({"a": "-2,000.50", "b": [1, 234]})),
        ("{\"a\": 2,000: 1}", json!({"a": 2, "000": 1})),
        // The closing quote of a name is missing.
        ("{\"a: \"x\", \"b\": 1}", json!({"a": "x", "b": 1})),
        ("{\"a:\"x\"}", json!({"a": "x"})),
        ("{\"a: x}", json!({"a": "x"})),
        ("{'it's': 1, 'b': 2}", json!({"it's": 1, "b": 2})),
        // A name of separators.
        ("so {\"open\": \"{\", \"}\": \"close\", \",\": 1}", json!({"open": "{", "}": "close", ",": 1})),
        // An escape before a quote is no white space.
        ("[\"a,\\n \"b\"]", json!(["a,\n \"b"])),
        ("[\"日,\\n\"b\"]", json!(["日,\n\"b"])),
        // A quote before the document, or around it.
        ("\"[1, 2]", json!([1, 2])),
        ("\"response: {\"a\": 1, \"b\": [1, 2]}\"", json!({"a": 1, "b": [1, 2]})),
        ("\"okay</think>{\"a\": 1}", json!({"a": 1})),
        ("\"so:```json {\"a\": 1}```\"", json!({"a": 1})),
        ("{\"a\": \"the word \"x\" \"y\" z\"}", json!({"a": "the word \"x\" \"y\" z"})),
        // The one document on its line that is not empty.
        ("{\"a\": 1}, {}", json!({"a": 1})),
        ("[] {\"a\": 1}", json!({"a": 1})),
        ("{\n\"a\": 1\n} {}", json!({"a": 1})),
        ("{\"a\": 1}\n{}", json!([{"a": 1}, {}])),
        ("{\"a\": 1}, {}, {\"a\": 2}", json!([{"a": 1}, {}, {"a": 2}])),
        ("{}, {}", json!([{}, {}])),
        ("{\"a\": 1 // one }\n}", json!({"a": 1})),
        ("{\"a\": 1, // e.g. {x} or", json!({"a": 1})),
        ("{\"a\": 1} // {", json!({"a": 1})),
        // Names without quotes leave no doubt about the quotes of a text.
        ("{a: \"x \"y\" z\", b: [1]}", json!({"a": "x \"y\" z", "b": [1]})),
        ("[\"he said, \"hi\", and left\", \"b\"]", json!(["he said, \"hi\", and left", "b"])),
    ] {
        let read = best(text, Level::Lenient);
        assert_eq!(read.value, expected, "{text}: {:?}", read.edits);
        assert!(!read.all_edits().is_empty(), "{text}");
    }
}

#[test]
fn clean_refuses_doubtful_text_and_names_the_level_that_reads_it() {
    for (text, at) in [
        ("{'a': 1}", 1),
        ("{\"a\": True}", 6),
        ("{\"a\": 1 \"b\": 2}", 7),
        ("{a: 1}", 1),
        ("{\"a\": // x\n1}", 6),
    ] {
        match read(text, Level::Clean) {
            Err(ReadError::Syntax { at: found, message }) => {
                assert_eq!(found, at, "{text}");
                assert!(message.contains("lenient") || message.starts_with("expected"), "{message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_refusal_is_not_turned_into_json() {
    for text in ["I'm sorry, I can't help with that.", "No data.", "true story", "1,5", "1,234,567", "`x`"] {
        assert_eq!(read(text, Level::Lenient), Err(ReadError::NotFound), "{text}");
    }
    assert_eq!(read(" \n", Level::Lenient), Err(ReadError::Empty));
    assert_eq!(read("--", Level::Lenient), Err(ReadError::NotFound));
    assert_eq!(read("<think>{\"draft\": 1}", Level::Lenient), Err(ReadError::OnlyReasoning));
}

/// A guess is wrong as often as right if a text may end at a quote inside of it, or if an object goes on after its end.
#[test]
fn a_document_that_may_mean_several_things_is_no_document() {
    for (text, at) in [
        ("[\"key\":\"value\"]", 5),
        ("{\"a\": [\"one\", \"two\" three], \"b\": [\"four\"]}", 30),
        ("{\"a\": \"x \"y\" z\" \"b\": 1}", 9),
        ("{a: \"x \"y\" z\" \"b\": 1}", 7),
        // The quote may begin the value of a name.
        ("{\"a\": \"x, b: \"y\"}", 13),
        // A name without a colon, beside a text without quotes.
        ("{\"a\": 1, b \"c\"}", 11),
        ("{\"a\": 1, \"b\" c}", 13),
        // A text without quotes that has a bracket, a number without its last digits.
        ("{a: one {b} c}", 10),
        ("[1, 2e, 3]", 4),
        // A quote after the last one of a text, behind white space.
        ("{\"a\": \"x\n\"\n\", \"b\": 1}", 9),
        ("{\"a\": \"x\"\n\",}", 8),
        // A comment on the line of the rest of the document.
        ("{\"a\": {\"b\": 1 // one }, \"c\": [2 # two], \"d\": 3}", 14),
        // A quote inside of a name.
        ("{\"\" key\": 1}", 2),
        ("{\"a\": 1, \"b\" c\": 2}", 11),
        ("[-, 3]", 1),
        // An object, or a list of objects.
        ("[\"a\": 1, \"b\": 2]", 4),
        ("{\"a\": 1}, \"b\": 2}", 8),
        // A bracket in the place of a name opens a value that has none.
        ("[{{]", 3),
        ("{\"a\": {{}}", 8),
        ("[{[], 1]", 3),
    ] {
        match read(text, Level::Lenient) {
            Err(ReadError::Syntax { at: found, .. }) => assert_eq!(found, at, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    // A text that is a JSON string with damaged JSON in it is JSON already.
    let reading = read("\"[1,2,]\"", Level::Lenient).unwrap();
    assert_eq!(reading.candidates()[0].value, "[1,2,]");
}

/// An index, a footnote and a pattern touch the word before them, and have one word.
#[test]
fn a_bracket_that_belongs_to_a_word_is_no_list() {
    for text in ["the value of f[0]", "x[i_1] = 2", "/[a-z]/", "as they say[12].", "f[0] and g[1]"] {
        for level in [Level::Clean, Level::Lenient] {
            assert_eq!(read(text, level), Err(ReadError::NotFound), "{text}");
        }
    }
    for (text, expected) in [
        ("f[0] is {\"a\": 1}", json!({"a": 1})),
        ("answer:[0]", json!([0])),
        ("answer[0, 1]", json!([0, 1])),
        ("answer[\"a\"]", json!(["a"])),
        ("答案是[1]。", json!([1])),
        ("정답은[2]", json!([2])),
        ("```json[0]```", json!([0])),
        ("<think></think>[0]", json!([0])),
    ] {
        assert_eq!(best(text, Level::Clean).value, expected, "{text}");
    }
}

/// A smaller document inside of one that cannot be read is no answer: it lacks what stands around it.
#[test]
fn a_part_of_a_document_that_cannot_be_read_is_no_document() {
    for (text, level, expected) in [
        ("{\"a\": {\"b\": 1}, 2}", Level::Lenient, None),
        ("{\"a\": {\"b\": 1}, 'c': 2}", Level::Clean, None),
        // After the failure, too.
        ("{\"a\", \"b\": {\"c\": 1}}", Level::Lenient, None),
        ("[{\"a\", \"b\"}, {\"c\": 1}]", Level::Lenient, None),
        ("{a: f[0], b: 1}", Level::Lenient, None),
        // A level that does not read the notation of an object knows that one begins.
        ("{a: f[0], b: 1}", Level::Clean, None),
        ("{'a': [1], 'b': {\"c\": 2}}", Level::Clean, None),
        ("[{'a': [1]}, {'a': [2]}]", Level::Clean, None),
        ("{'a': [1]} so {\"c\": 3}", Level::Clean, Some(json!({"c": 3}))),
        // Nothing is kept of a text that ends inside of its first value.
        ("{\"a", Level::Clean, None),
        ("{\"a\":", Level::Lenient, None),
        ("[{\"a [1]", Level::Clean, None),
        ("{0", Level::Lenient, None),
        ("{\"c\": 3} {\"a\": -", Level::Clean, Some(json!({"c": 3}))),
        // A document of its own stands before, after or in a fence.
        ("{\"c\": 3} {\"a\": {\"b\": 1}, 2}", Level::Clean, Some(json!({"c": 3}))),
        ("{\"a\": {\"b\": 1}, 2} so {\"c\": 3}", Level::Clean, Some(json!({"c": 3}))),
        ("{\"a\": {\"b\": 1}, no, I mean {\"c\": 3}", Level::Clean, Some(json!({"c": 3}))),
        ("{\"a\": {\"b\": 1}, 2\n```\n{\"c\": 3}\n```\n}", Level::Clean, Some(json!({"c": 3}))),
        // Brackets of a sentence or a template are no document.
        ("[see {\"a\": 1} there]", Level::Clean, Some(json!({"a": 1}))),
        ("[see {\"a\": 1} there]", Level::Lenient, Some(json!({"a": 1}))),
        ("{ {\"a\": 1} }", Level::Clean, Some(json!({"a": 1}))),
    ] {
        match (read(text, level), expected) {
            (Ok(reading), Some(expected)) => assert_eq!(reading.candidates()[0].value, expected, "{text}"),
            (Err(ReadError::Syntax { .. } | ReadError::Unfinished), None) => {}
            (read, expected) => panic!("{text}: {read:?}, not {expected:?}"),
        }
    }
}

#[test]
fn every_place_that_can_be_the_answer_is_a_candidate() {
    let reading =
        read("Like {\"a\": 1}? No:\n```json\n{\"b\": 2}\n```\nor {\"c\": 3}", Level::Clean).unwrap();
    let values: Vec<_> = reading.candidates().iter().map(|candidate| candidate.value.to_string()).collect();
    assert_eq!(values, [r#"{"b":2}"#, r#"{"c":3}"#, r#"{"a":1}"#]);
}

proptest! {
    #[test]
    fn every_document_is_named_beside_the_others(
        values in prop::collection::vec(container(), 1..5), gap in "[a-z .]{0,6}[a-z][ \n]", fences: bool,
    ) {
        let wrapped = values.iter().map(|value| {
            let text = serde_json::to_string(value).unwrap();
            if fences { format!("```json\n{text}\n```\n") } else { text }
        });
        let text = format!("{gap}{}", wrapped.collect::<Vec<_>>().join(&gap));
        for level in [Level::Clean, Level::Lenient] {
            let reading = read(&text, level).unwrap();
            let documents = reading.documents();
            let found: Vec<&Value> = documents.iter().map(|document| &document.value).collect();
            prop_assert_eq!(&found, &values.iter().collect::<Vec<_>>(), "{}", text);
            for document in &documents {
                let edits: Vec<Edit> = document.all_edits();
                prop_assert!(edits.is_sorted_by_key(|edit| edit.span));
                let others = edits.iter().filter(|edit| edit.kind == EditKind::OtherDocument);
                let others: Vec<Span> = others.map(|edit| edit.span).collect();
                let expected = documents.iter().map(|other| other.span).filter(|span| *span != document.span);
                prop_assert_eq!(&others, &expected.collect::<Vec<_>>());
                // All of the text is the document, a reported edit, or white space.
                let mut rest = text.clone().into_bytes();
                for span in edits.iter().map(|edit| edit.span).chain([document.span]) {
                    rest[span.range()].fill(b' ');
                }
                prop_assert!(rest.iter().all(u8::is_ascii_whitespace), "{}: {:?}", text, edits);
            }
        }
    }
}

#[test]
fn documents_in_a_row_are_one_array_and_each_of_them() {
    let reading = read("{'a': 1}\n[2]\n{}", Level::Lenient).unwrap();
    assert_eq!(reading.candidates()[0].value, json!([{"a": 1}, [2], {}]));
    let documents: Vec<_> = reading.documents().iter().map(|document| document.value.clone()).collect();
    assert_eq!(documents, [json!({"a": 1}), json!([2]), json!({})]);
    let written = read("\"{\\\"a\\\": 1}\"", Level::Lenient).unwrap();
    assert_eq!((written.candidates().len(), written.documents().len()), (2, 1));
    assert_eq!(written.documents()[0].value, json!({"a": 1}));
}

#[test]
fn the_unclosed_end_names_its_byte_and_what_was_added() {
    let read = best("{\"a\": [1, {\"b\": \"x", Level::Clean);
    assert_eq!(read.closed_at(), Some(18));
    assert_eq!(read.edits[0].with, "\"}]}");
    let read = best("{\"a\": 1, \"b", Level::Clean);
    assert_eq!((read.value.clone(), read.closed_at()), (json!({"a": 1}), Some(9)));
    assert_eq!(best("{\"a\": tr", Level::Clean).value, json!({"a": true}));
    assert_eq!(best("{\"a\": 2.5e", Level::Clean).value, json!({"a": 2.5}));
    assert_eq!(best("{\"a\": 1, \"b\": -", Level::Clean).value, json!({"a": 1}));
    assert_eq!(best("[{", Level::Clean).value, json!([{}]));
}

/// Returns whether the smaller value has only parts of the larger one, as the reading of a text that was cut off.
fn is_prefix(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|whole| is_prefix(value, whole)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(part, whole)| is_prefix(part, whole))
        }
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Number(_), Value::Number(_)) => true,
        (part, whole) => part == whole,
    }
}

proptest! {
    #[test]
    fn json_is_returned_unchanged(value in document(), pretty: bool, lead in "[ \n\t]{0,3}") {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        for level in [Level::Strict, Level::Clean, Level::Lenient] {
            let reading = read(&format!("{lead}{text} "), level).unwrap();
            let last = reading.candidates().last().unwrap();
            let span = Span::new(lead.len(), lead.len() + text.len());
            prop_assert_eq!((&last.value, last.span, last.all_edits()), (&value, span, vec![]));
            prop_assert!(reading.candidates().len() == 1 || level == Level::Lenient && value.is_string());
        }
    }

    #[test]
    fn what_stands_around_a_document_does_not_change_it(
        value in container(), before in "[A-Za-z .:\n]{0,20}", after in "[A-Za-z .!\n]{0,20}", fence: bool, think: bool,
    ) {
        let document = serde_json::to_string_pretty(&value).unwrap();
        let thought = if think { "<think>maybe {\"x\": [1, 2]} or [3]</think>" } else { "" };
        let text = if fence {
            format!("{thought}{before}\n```json\n{document}\n```\n{after}")
        } else {
            format!("{thought}{before}{document}{after}")
        };
        for level in [Level::Clean, Level::Lenient] {
            prop_assert_eq!(&best(&text, level).value, &value, "{}", text);
        }
    }

    /// Separators in texts and names, where the lenient level looks for a missing quote.
    #[test]
    fn valid_json_in_other_text_needs_no_repair(value in of_texts("[a-z ,:{}\\[\\]/'#]{0,6}"), fence: bool, pretty: bool) {
        prop_assume!(value.is_object() || value.is_array());
        let document = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let text = if fence { format!("Here it is:\n```json\n{document}\n```") } else { format!("Here: {document} ok?") };
        for level in [Level::Clean, Level::Lenient] {
            prop_assert_eq!(&best(&text, level).value, &value, "{}", text);
        }
    }

    #[test]
    fn a_cut_document_is_a_part_of_the_whole(value in container(), share in 0.0..1.0f64) {
        let text = serde_json::to_string(&value).unwrap();
        let mut cut = 1 + ((text.len() - 1) as f64 * share) as usize;
        while !text.is_char_boundary(cut) { cut -= 1 }
        match read(&text[..cut], Level::Clean) {
            Ok(read) => {
                let read = &read.candidates()[0];
                prop_assert!(is_prefix(&read.value, &value), "{} -> {}", &text[..cut], read.value);
                prop_assert!(read.closed_at().is_some());
            }
            // Nothing is kept of the text so far; that this holds is a property of the lexer's snapshots.
            Err(error) => prop_assert_eq!(error, ReadError::Unfinished),
        }
    }

    #[test]
    fn a_stricter_level_never_reads_more(text in crate::support::text(), value in container(), at in 0usize..200) {
        let mut document = serde_json::to_string(&value).unwrap();
        let at = (0..=at.min(document.len())).rev().find(|at| document.is_char_boundary(*at)).unwrap();
        document.insert_str(at, &text);
        let [strict, clean, lenient] = [Level::Strict, Level::Clean, Level::Lenient].map(|level| read(&document, level));
        prop_assert!(strict.is_err() || clean == strict, "{}", document);
        // Clean finds a document inside of one that the level that reads more read further, up to its failure, or that means several
        // things at that level.
        let start = clean.as_ref().map_or(0, |reading| reading.candidates()[0].span.start);
        let is_undecided = matches!(&lenient, Err(ReadError::Syntax { at, message }) if *at >= start || message.contains("escape it"));
        prop_assert!(clean.is_err() || lenient.is_ok() || is_undecided, "{}: {:?}", document, lenient);
    }

    #[test]
    fn every_value_is_located_and_replaced_alone(value in container(), pick: prop::sample::Index, new in document()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let mut paths = vec![formwork_json::JsonPath::root()];
        let mut next = 0;
        while let Some(path) = paths.get(next).cloned() {
            match path.get(&value).unwrap() {
                Value::Object(members) => paths.extend(members.keys().map(|name| path.key(name.as_str()))),
                Value::Array(items) => paths.extend((0..items.len()).map(|index| path.index(index))),
                _ => {}
            }
            next += 1;
        }
        let places = Places::find(&text, &paths);
        for path in &paths {
            let read = |span: Option<Span>| serde_json::from_str::<Value>(span?.of(&text)).ok();
            prop_assert_eq!(&read(places.value(path)).unwrap(), path.get(&value).unwrap());
            let name = match path.last() {
                Some(Segment::Key(name)) => Some(Value::from(name.as_str())),
                _ => None,
            };
            prop_assert_eq!(read(places.key(path)), name);
        }
        let path = pick.get(&paths);
        let span = locate(&text, path).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Value>(span.of(&text)).unwrap(), path.get(&value).unwrap());
        let spliced = splice(&text, path, &new).unwrap();
        prop_assert!(spliced.starts_with(&text[..span.start]) && spliced.ends_with(&text[span.end..]));
        let mut expected = value.clone();
        *path.get_mut(&mut expected).unwrap() = new;
        prop_assert_eq!(serde_json::from_str::<Value>(&spliced).unwrap(), expected);
    }
}

#[test]
fn a_message_has_no_word_of_the_parser() {
    for text in ["no json", "nope", "tru", "{\"a\": nil}", "[fals]"] {
        let Err(ReadError::Syntax { message, .. }) = read(text, Level::Strict) else {
            panic!("{text} is no JSON")
        };
        assert!(!message.contains("ident"), "{text}: {message}");
    }
}
