//! Numbers in words and fractions of one character.

use formwork_evidence::{Index, Status};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns the status of a value in a text, and the text of its place.
fn found(text: &str, value: &Value) -> (Status, String) {
    let evidence = Index::new(text).evidence(&json!({ "value": value }), None).remove(0);
    let place = evidence.spans.first();
    let place = place.map(|span| text.chars().skip(span.start).take(span.end - span.start).collect());
    (evidence.status, place.unwrap_or_default())
}

#[test]
fn numbers_in_words_are_found() {
    for (text, value, place) in [
        ("Add ½ cup", json!(0.5), "½"),
        ("Add 1½ cups", json!(1.5), "1½"),
        ("Add 2 ¾ cups", json!(2.75), "2 ¾"),
        ("about 3½ million", json!(3_500_000), "3½ million"),
        ("She is Twenty-One.", json!(21), "Twenty-One"),
        ("a hundred and five crates", json!(105), "a hundred and five"),
        ("THREE HUNDRED FIVE", json!(305), "THREE HUNDRED FIVE"),
        ("two thousand people", json!(2_000), "two thousand"),
        ("twenty-five hundred", json!(2_500), "twenty-five hundred"),
        ("one thousand, two hundred and six", json!(1_206), "one thousand, two hundred and six"),
        ("one hundred and fifty thousand", json!(150_000), "one hundred and fifty thousand"),
        ("one million two hundred thousand", json!(1_200_000), "one million two hundred thousand"),
        ("two and a half million euros", json!(2_500_000), "two and a half million"),
        ("one and a half years", json!(1.5), "one and a half"),
        ("Half a million euros", json!(500_000), "Half a million"),
        ("a dozen eggs", json!(12), "a dozen"),
        ("half a dozen eggs", json!(6), "half a dozen"),
        ("three dozen eggs", json!(36), "three dozen"),
        ("5 hundred men", json!(500), "5 hundred"),
        ("in nineteen eighty-four", json!(1984), "nineteen eighty-four"),
        ("minus twenty degrees", json!(-20), "minus twenty"),
        ("between one hundred and two hundred", json!(100), "one hundred"),
        ("between one hundred and two thousand", json!(2_000), "two thousand"),
        ("one thousand and two thousand", json!(2_000), "two thousand"),
        ("ten to twelve crates", json!(12), "twelve"),
        ("a three-year contract", json!(3), "three"),
        ("one crate", json!(1), "one"),
        ("Rooms: one", json!(1), "one"),
        ("sixty-\nfive crates", json!(65), "sixty-\nfive"),
    ] {
        assert_eq!(found(text, &value), (Status::Normalised, place.to_owned()), "{value} in {text}");
        assert!(Index::new(text).states(&value, 1), "{value} in {text}");
    }
    let (status, place) = found("twenty-one crates, that is 21", &json!(21));
    assert_eq!((status, place.as_str()), (Status::Exact, "21"), "digits come before words");
}

#[test]
fn words_that_are_no_number_or_a_part_of_one_are_not_found() {
    for (text, value) in [
        ("on the twenty-first of May", json!(20)),
        ("on the twenty second of May", json!(20)),
        ("the two hundredth visitor", json!(2)),
        ("two thirds of it", json!(2)),
        ("three quarters of it", json!(3)),
        ("two point five metres", json!(2)),
        ("one of the crates", json!(1)),
        ("no one came", json!(1)),
        ("I like this one.", json!(1)),
        ("one's own", json!(1)),
        ("call four two seven", json!(4)),
        ("call four two seven", json!(42)),
        ("call four two seven", json!(7)),
        ("several dozen", json!(12)),
        ("thousands of crates", json!(1_000)),
        ("a few hundred", json!(100)),
        ("someone, often, weighty", json!(10)),
        ("two_factor", json!(2)),
        ("two/three", json!(3)),
        ("a million and a half", json!(1_000_000)),
        ("between one hundred and two thousand", json!(102_000)),
        ("minus twenty degrees", json!(20)),
        ("half past two thousand", json!(1_000)),
        ("in nineteen eighty-four", json!(84)),
        ("Add 1½ cups", json!(1)),
        ("Add 1½ cups", json!("1")),
        ("Add 1½ cups", json!(0.5)),
        ("Add 1⅓ cups", json!(1)),
    ] {
        assert_eq!(found(text, &value).0, Status::NotFound, "{value} in {text}");
    }
}

/// The ways in which people write numbers.
#[derive(Debug, Clone, Copy)]
struct Style {
    hyphen: bool,
    and: bool,
    comma: bool,
    a: bool,
    upper: bool,
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

fn below_hundred(number: u64, style: Style) -> String {
    let (tens, unit) = (TENS[number as usize / 10], SMALL[number as usize % 10]);
    match number {
        0..20 => SMALL[number as usize].to_owned(),
        _ if number.is_multiple_of(10) => tens.to_owned(),
        _ => format!("{tens}{}{unit}", if style.hyphen { "-" } else { " " }),
    }
}

fn spelled(number: u64, style: Style) -> String {
    let and = if style.and { " and " } else { " " };
    for (scale, name) in
        [(1_000_000_000, "billion"), (1_000_000, "million"), (1_000, "thousand"), (100, "hundred")]
    {
        let (count, rest) = (number / scale, number % scale);
        if count == 0 {
            continue;
        }
        let count = spelled(count, Style { a: false, ..style });
        let join = match rest {
            0 => return format!("{count} {name}"),
            1..100 => and,
            _ if style.comma => ", ",
            _ => " ",
        };
        return format!("{count} {name}{join}{}", spelled(rest, style));
    }
    below_hundred(number, style)
}

fn written(number: u64, style: Style) -> String {
    let text = spelled(number, style);
    let text = match text.strip_prefix("one ") {
        Some(rest) if style.a => format!("a {rest}"),
        _ => text,
    };
    if style.upper { text.to_uppercase() } else { text }
}

fn style() -> impl Strategy<Value = Style> {
    any::<[bool; 5]>().prop_map(|[hyphen, and, comma, a, upper]| Style { hyphen, and, comma, a, upper })
}

/// Numbers of any length, round ones more often than by chance.
fn number() -> impl Strategy<Value = u64> {
    (0_u64..1_000, prop::sample::select(vec![1, 10, 100, 1_000, 1_000_000]), 0_u64..1_000).prop_flat_map(
        |(high, scale, low)| {
            prop_oneof![Just(high), Just(high * scale + low), Just(high * scale), 0_u64..1_000_000_000_000]
        },
    )
}

proptest! {
    #[test]
    fn a_number_in_words_has_its_place_and_its_parts_have_none(
        number in number(), style in style(), more in 1_u64..100,
        before in prop::sample::select(vec!["They sold ", "(", "Crates: ", "about\n", ""]),
        after in prop::sample::select(vec![" crates", ".", ")", "\n", ", and more"]),
    ) {
        let words = written(number, style);
        let text = format!("{before}{words}{after}");
        let is_lone_one = number == 1 && !after.starts_with(" crates") && before != "Crates: ";
        if !is_lone_one {
            prop_assert_eq!(found(&text, &json!(number)), (Status::Normalised, words), "{}", text);
        }
        let parts = [number % 10, number % 100, number / 100, number % 1_000, number / 1_000, number + more];
        for part in parts.into_iter().filter(|part| *part != number) {
            prop_assert_eq!(found(&text, &json!(part)).0, Status::NotFound, "{} in {}", part, text);
        }
    }

    /// The decoder may write each number that stands in the text, also in words.
    #[test]
    fn a_number_in_words_is_a_candidate(number in number(), style in style()) {
        let numbers = Index::new(format!("They sold {} crates", written(number, style))).numbers();
        let read = number.to_string().bytes().try_fold(numbers.begin().unwrap(), |prefix, byte| numbers.step(prefix, byte));
        prop_assert!(read.is_some_and(|prefix| numbers.ends(prefix)));
    }
}
