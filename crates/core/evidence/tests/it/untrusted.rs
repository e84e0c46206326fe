//! Any text with any value: the evidence is complete, its offsets are valid, and it is the same each time, as its counts are.

use formwork_evidence::{Index, Summary, plain};
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

proptest! {
    #[test]
    fn offsets_are_valid_for_any_text_and_value(text in any::<String>(), word in any::<String>(), number in any::<f64>(), list in prop::collection::vec("\\PC{0,6}", 0..5)) {
        let value = json!({"word": word, "number": number, "list": list, "none": null, "flag": true});
        let text = format!("{text} {word} {number} {} {text}", list.join("\n"));
        let index = Index::new(&text);
        let evidence = index.evidence(&value, None);
        prop_assert_eq!(evidence.len(), 4 + list.len());
        let length = text.chars().count();
        for it in &evidence {
            for span in &it.spans {
                prop_assert!(span.start < span.end && span.end <= length, "{:?}", it);
            }
        }
        prop_assert_eq!(index.summary(&value, None), Summary::of(&evidence, &value));
        prop_assert_eq!(index.evidence(&value, None), evidence);
    }

    #[test]
    fn a_word_of_letters_is_found_where_it_stands(before in "[a-z]{1,8}", word in "[A-Z][a-z]{3,9}", after in "[a-z]{1,8}") {
        prop_assume!(plain(&before) != plain(&word) && plain(&after) != plain(&word));
        let text = format!("{before} {word} {after}");
        let evidence = Index::new(&text).evidence(&json!(word), None);
        let start = before.len() + 1;
        prop_assert_eq!(evidence[0].spans.first().map(|span| (span.start, span.end)), Some((start, start + word.len())));
    }
}

#[test]
fn many_equal_values_and_long_lines_have_their_places_in_time() {
    for (text, value) in [
        (" x".repeat(100_000), json!({"a": vec!["x"; 500]})),
        // Lines of many cells.
        (format!("{0}\n{0}\n", "1,2,3,4,5,6,7,".repeat(5_000)), json!({"a": vec![[1, 2, 3, 4]; 20]})),
        ("x: 5\n".repeat(5000), (0..300).map(|member| (format!("m{member}"), json!(5))).collect()),
    ] {
        let start = Instant::now();
        let evidence = Index::new(&text).evidence(&value, None);
        assert!(evidence.iter().all(|it| !it.spans.is_empty()));
        // A guard against work for each pair of places, wide enough for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(120));
    }
}
