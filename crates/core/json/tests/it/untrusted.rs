//! Model text is untrusted: no panic, no hang, no span outside of the text.

use formwork_json::{
    JsonPath, Level, Lexer, MAX_DEPTH, ReadError, line_column, locate, read, read_bytes, splice,
};
use proptest::prelude::*;

use crate::support::text;

const LEVELS: [Level; 3] = [Level::Strict, Level::Clean, Level::Lenient];

#[test]
fn huge_hostile_texts_are_read_or_refused() {
    let n = 100_000;
    let texts = [
        "[".repeat(n),
        "{\"a\":".repeat(n / 5),
        "{".repeat(n),
        "{'".repeat(n / 2),
        "\"a\" ".repeat(n / 4),
        "[\"".repeat(n / 2),
        "{\"a\": \"b, ".repeat(n / 10),
        "```".repeat(n / 3),
        "<think>".repeat(n / 7),
        "</think>".repeat(n / 8),
        format!("{{\"a\": \"{}", "\"".repeat(n)),
        format!("[{}", "'a ".repeat(n / 3)),
        format!("[{}", "a\" ".repeat(n / 3)),
        format!("{{\"a\": {}1", " ".repeat(n)),
        "{a:\n".repeat(n / 4),
        "[/*".repeat(n / 3),
        "x(".repeat(n / 2),
        "[x(".repeat(n / 3),
        format!("[{}", "x(\n".repeat(n / 3)),
        "```\n{\"a\": \"x\n```\n".repeat(n / 16),
        format!("```{}", "{x ".repeat(n / 3)),
    ];
    for text in &texts {
        for level in LEVELS {
            // The tests next to `read` check the time, by counting the bytes that are examined.
            drop(read(text, level));
        }
    }
    assert!(matches!(read(&texts[0], Level::Lenient), Err(ReadError::TooDeep { limit: MAX_DEPTH, .. })));
}

#[test]
fn bytes_that_are_not_utf8_are_named() {
    assert_eq!(read_bytes(b"{\"a\": \"\xFF\"}", Level::Lenient), Err(ReadError::NotUtf8 { at: 7 }));
}

#[test]
fn depth_ends_at_one_limit_at_every_level() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for level in LEVELS {
        assert!(read(&nested(MAX_DEPTH), level).is_ok());
        assert!(matches!(read(&nested(MAX_DEPTH + 1), level), Err(ReadError::TooDeep { .. })));
    }
    let damaged = nested(MAX_DEPTH).replacen("[]", "[1,]", 1);
    assert_eq!(read(&damaged, Level::Clean).map(|reading| reading.candidates().len()), Ok(1));
}

fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        text(),
        "[\\[\\]{}:,\"'`\\\\/*#()<>=.+0-9eEtfnTFN \n-]{0,12}",
        Just("\"a\": ".to_owned()),
        Just("\\u12".to_owned()),
        Just("\\ud83d".to_owned()),
        Just("true".to_owned()),
        Just("```json\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_or_refused(text in noise()) {
        for level in LEVELS {
            match read(&text, level) {
                Ok(reading) => {
                    prop_assert!(!reading.candidates().is_empty());
                    for candidate in reading.candidates() {
                        prop_assert!(text.get(candidate.span.range()).is_some(), "{:?}", candidate);
                        for edit in &candidate.all_edits() {
                            prop_assert!(text.get(edit.span.range()).is_some(), "{:?}", edit);
                            prop_assert!(edit.kind.level() <= level);
                        }
                        prop_assert!(candidate.all_edits().is_sorted_by_key(|edit| edit.span) || level != Level::Clean);
                    }
                }
                Err(error) => prop_assert!(error.at().is_none_or(|at| at <= text.len())),
            }
        }
    }

    #[test]
    fn helpers_take_any_text(text in noise(), at in 0usize..400, key in text()) {
        let (line, column) = line_column(&text, at);
        prop_assert!(line >= 1 && column >= 1);
        let path = JsonPath::root().key(key).index(0);
        let _ = (locate(&text, &path), splice(&text, &path, &1.into()));
        Lexer::new(Level::Clean).push(text.as_bytes(), |_| {});
        prop_assert!(text.parse::<JsonPath>().is_ok_and(|path| path.to_string().parse() == Ok(path)) || text.parse::<JsonPath>().is_err());
    }
}
