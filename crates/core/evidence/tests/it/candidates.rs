//! The values along which a decoder writes: all of them stand in the input, and all that stand there are among them.

use formwork_evidence::{Candidates, Index, Prefix};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Texts of words, numbers and signs of several scripts, with any white space between them.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[A-Za-z]{1,7}",
        "[a-z]{1,4}[.,;:!)]",
        "[-$(]?[0-9]{1,3}(,[0-9]{3}){0,2}(\\.[0-9]{1,2})?[%)]?",
        "[0-9]{1,2}/[0-9]{1,2}/20[0-9]{2}",
        "-?[$€]?[0-9]{1,3}(\\.[0-9]{3}){0,2}(,[0-9]{2})?( ?EUR)?",
        prop::sample::select(vec![
            "\"Maria\"",
            "back\\slash",
            "C++",
            "O'Neill",
            "Café",
            "e\u{301}te\u{301}",
            "東京都",
            "5月",
            "👩‍👧🏽",
            "שלום",
            "a@b.io",
            "—",
            ",",
            "(",
            "three",
            "2024-03-05",
            "5 March 2024",
            "A4",
            "\u{7}x",
            "1.5 million",
            "#7",
            "€",
            "ﬁne",
            "１２",
        ])
        .prop_map(str::to_owned),
    ];
    let gap = prop::sample::select(vec![" ", " ", "  ", "\n", "\t\r\n", "\u{a0}", "\u{3000}"]);
    prop::collection::vec((part, gap), 0..12)
        .prop_map(|parts| parts.into_iter().map(|(part, gap)| part + gap).collect::<String>())
}

fn read(candidates: &Candidates, text: &str) -> Option<Prefix> {
    text.bytes().try_fold(candidates.begin()?, |prefix, byte| candidates.step(prefix, byte))
}

fn is_candidate(candidates: &Candidates, text: &str) -> bool {
    read(candidates, text).is_some_and(|prefix| candidates.ends(prefix))
}

/// Returns a value that these choices lead to, in the notation of JSON.
fn walked(candidates: &Candidates, choices: &[u8]) -> Option<String> {
    let (mut prefix, mut bytes) = (candidates.begin()?, Vec::new());
    for choice in choices {
        let next = |byte: u8| Some((byte, candidates.step(prefix, byte)?));
        let next: Vec<_> = (0..=255).filter_map(next).collect();
        let is_end = candidates.ends(prefix);
        if next.is_empty() || (is_end && choice % 4 == 0) {
            break;
        }
        let (byte, after) = next[usize::from(*choice) % next.len()];
        bytes.push(byte);
        prefix = after;
    }
    bytes.extend(candidates.rest(prefix).unwrap());
    Some(String::from_utf8(bytes).unwrap())
}

proptest! {
    #[test]
    fn every_candidate_stands_in_the_input(text in texts(), choices in prop::collection::vec(any::<u8>(), 1..40), min_length in 1..4usize) {
        let index = Index::new(&text);
        if let Some(word) = walked(&index.words(min_length), &choices) {
            let value: Value = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            prop_assert!(index.states(&value, min_length), "{value} in {text:?}");
        }
        if let Some(number) = walked(&index.numbers(), &choices) {
            let value: Value = serde_json::from_str(&number).unwrap();
            prop_assert!(index.states(&value, 1), "{number} in {text:?}");
        }
        if let Some(date) = walked(&index.dates_of_json(), &choices) {
            prop_assert!(index.states(&json!(date), 1), "{date} in {text:?}");
        }
    }

    #[test]
    fn every_run_of_words_is_a_candidate(text in texts(), from in 0..12usize, length in 1..5usize) {
        let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
        let run: Vec<&str> = words.into_iter().skip(from).take(length).collect();
        let has_sign = |word: Option<&&str>| word.is_some_and(|word| word.chars().any(|c| c.is_alphanumeric()));
        if has_sign(run.first()) && has_sign(run.last()) {
            let json = Value::from(run.join(" ")).to_string();
            prop_assert!(is_candidate(&Index::new(&text).words(1), &json[1..json.len() - 1]), "{json} in {text:?}");
        }
    }

    #[test]
    fn every_number_is_a_candidate_in_the_notation_of_json(number in 0..10_000_000_u32, cents in 0..100_u32) {
        let digits = number.to_string();
        let mut grouped = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        let text = format!("Total {grouped}.{cents:02} EUR, {grouped} items");
        let numbers = Index::new(&text).numbers();
        prop_assert!(is_candidate(&numbers, &digits), "{text}");
        prop_assert!(is_candidate(&numbers, &format!("{digits}.{cents:02}")), "{text}");
        prop_assert!(!is_candidate(&numbers, &(u64::from(number) + 10_000_001).to_string()));
    }
}

#[test]
fn words_are_whole_and_keep_their_punctuation() {
    let words =
        Index::new("Invoice for  \"Maria\" Lindqvist,\nOslo: $1,250.00 ( 3 items ). 東京都 on 5 March 2024")
            .words(1);
    for (text, expected) in [
        ("Lindqvist", true),
        ("Lindqvist,", true),
        ("Lindqvist, Oslo", true),
        (r#"\"Maria\" Lindqvist"#, true),
        ("Maria", true),
        ("$1,250.00", true),
        ("1,250.00", true),
        ("1250", true),
        ("東京", true),
        ("5 March 2024", true),
        ("2024-03-05", true),
        ("250.00", false),
        (",250.00", false),
        ("Oslo: $1", false),
        ("3 items )", false),
        ("( 3 items", false),
        ("Lind", false),
        ("qvist", false),
        ("Marie", false),
        ("Invoice ", false),
        ("", false),
        (",", false),
    ] {
        assert_eq!(is_candidate(&words, text), expected, "{text}");
    }
    let words = Index::new("Preis 1.234,50 EUR, Anzahlung -50").words(1);
    for (text, expected) in
        [("1.234,50 EUR", true), ("-50", true), (",50", false), ("50 EUR", false), ("50", false)]
    {
        assert_eq!(is_candidate(&words, text), expected, "{text}");
    }
    let long = Index::new("a bc def").words(3);
    assert!(is_candidate(&long, "a bc") && is_candidate(&long, "def") && !is_candidate(&long, "bc"));
}

#[test]
fn a_long_input_that_repeats_itself_is_read_in_time() {
    let text = "a b ".repeat(20_000);
    let words = Index::new(&text).words(1);
    assert!(is_candidate(&words, text[..10_001].trim_end()));
}
