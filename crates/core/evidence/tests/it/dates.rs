//! The parts of dates in digits, dates without a year, and values that only begin like a date.

use formwork_evidence::{Compare, Index, Status};
use serde_json::json;

/// Returns the text of the place of a value in a text; empty if it is not found.
fn place(text: &str, value: &str) -> String {
    let index = Index::new(text);
    let evidence = index.evidence(&json!({ "value": value }), None).remove(0);
    let is_found = evidence.status != Status::NotFound;
    assert_eq!(index.states(&json!(value), 1), is_found, "grounded: {value} in {text:?}");
    let slice = |start: usize, end: usize| text.chars().skip(start).take(end - start).collect();
    evidence.spans.first().map_or_else(String::new, |span| slice(span.start, span.end))
}

#[test]
fn numbers_of_two_dates_or_of_no_date_are_no_date() {
    for separator in
        ["\n", ", ", ",", "; ", " | ", "\t", "  ", " ", "\n\n", "\r\n", " - ", " – ", "–", " / ", "/", "-"]
    {
        let text = format!("12/30/2023{separator}01/05/2024");
        assert_eq!(place(&text, "2023-01-05"), "", "{text:?}");
        assert_eq!(place(&text, "2023/01"), if separator == "/" { "2023/01" } else { "" }, "{text:?}");
        assert_eq!(place(&text, "2023-12-30"), "12/30/2023", "{text:?}");
        assert_eq!(place(&text, "2024-01-05"), "01/05/2024", "{text:?}");
    }
    for (text, value) in [
        ("30.12.2023 | 05.01.2024", "2023-05-01"),
        ("2023-12-30 - 2024-01-05", "2024-12-30"),
        ("09/2019 – 03/2021 Analyst", "2019-03"),
        ("09/2019–03/2021 Analyst", "2019-03"),
        ("Founded 2019 / 12 employees", "2019-12"),
        ("Umsatz 2019\n12 Mitarbeiter", "2019-12"),
        ("In 2019, 12 people", "2019-12"),
        ("It was 2019. 12 people", "2019-12"),
        ("2019 12 people", "2019-12"),
        ("from page 7 to 3/31/2024", "2024-03-07"),
        ("01/05 - 03/31/2024", "2024-03-05"),
    ] {
        assert_eq!(place(text, value), "", "{value} in {text:?}");
    }
}

#[test]
fn the_parts_of_a_date_in_digits_have_one_separator() {
    for (text, value, expected) in [
        ("am 5. 1. 2024 in", "2024-01-05", "5. 1. 2024"),
        ("am 5.1. 2024 in", "2024-01-05", "5.1. 2024"),
        ("on 2024 01 05 in", "2024-01-05", "2024 01 05"),
        ("on 05 / 01 / 2024 in", "2024-01-05", "05 / 01 / 2024"),
        ("on 05 - 01 - 2024 in", "2024-01-05", "05 - 01 - 2024"),
        ("2024. 01. 05.", "2024-01-05", "2024. 01. 05"),
        ("Laufzeit 01/2024 – 12/2024", "2024-12", "12/2024"),
        ("Laufzeit 01/2024 – 12/2024", "2024-01", "01/2024"),
        ("09/2019–03/2021 Analyst", "2021-03", "03/2021"),
        ("No. 12-2024-01-05", "2024-01-05", "2024-01-05"),
        ("7. 05.03.2024", "2024-03-05", "05.03.2024"),
        ("7. 05.03.24 Miete", "2024-03-05", "05.03.24"),
        ("seit 05.2024. 3 Leute", "2024-05", "05.2024"),
        ("vom 3. bis 5.5.2024", "2024-05-03", "3. bis 5.5.2024"),
    ] {
        assert_eq!(place(text, value), expected, "{value} in {text:?}");
    }
}

#[test]
fn a_value_that_only_begins_like_a_date_or_a_time_is_none() {
    for (text, value) in [
        ("Case 2024-11-4567", "2024-11-4568"),
        ("Personnummer 19900412-8303", "19900412-8304"),
        ("Invoice 20240115-003", "20240115-004"),
        ("Tel 03-1234-5678", "03-1234-999"),
        ("2024/03/0017", "2024/03/0018"),
        ("AZ 12.2023.4711", "12.2023.4712"),
        ("15:48-209", "15:48-09"),
        ("2024-04-15T13:36:20", "2024-04-15T31:36:20"),
        ("open until 11.38pm", "11:38"),
        ("on 2024-03-05", "2024-03-05/2024-03-07"),
    ] {
        assert_eq!(place(text, value), "", "{value} in {text:?}");
        if let Some((_, whole)) =
            text.split_once(' ').filter(|(_, whole)| whole.len() > 9 && !whole.contains(' '))
        {
            assert_eq!(place(text, whole), whole, "{text}");
        }
    }
}

#[test]
fn a_date_without_a_year_has_that_of_its_range_or_of_the_statement() {
    let statement = "Statement period 01/01/2024 to 01/31/2024\n\nDate Description\n01/05 Rent 9.50";
    for (text, value, expected) in [
        ("vom 05.02. bis 12.02.2024", "2024-02-05", "05.02. bis 12.02.2024"),
        ("vom 05.02. bis 12.02.2024", "2024-02-12", "12.02.2024"),
        ("vom 05.02. bis 12.02.2024", "2024-05-02", ""),
        ("01.03. - 31.03.2024", "2024-03-01", "01.03. - 31.03.2024"),
        ("28.12.-03.01.2024", "2023-12-28", "28.12.-03.01.2024"),
        ("01/05 - 03/31/2024", "2024-01-05", "01/05 - 03/31/2024"),
        ("28 Dec - 3 Jan 2024", "2023-12-28", "28 Dec - 3 Jan 2024"),
        ("28 Dec - 3 Jan 2024", "2024-12-28", ""),
        ("28 Dec - 3 Jan 2024", "2024-01-03", "3 Jan 2024"),
        ("on 14 July and 3 March 2024", "2024-07-14", "14 July and 3 March 2024"),
        ("Jan–März 2024", "2024-01", "Jan–März 2024"),
        ("Jan–März 2024", "2024-03", "März 2024"),
        ("May - 3 March 2024", "2024-05", ""),
        ("01.01.2024 - 31.01.2024\n05.01. Miete 950,00", "2024-01-05", "05.01"),
        ("01.01.2024 - 31.01.2024\n05.01. Miete 950,00", "2023-01-05", ""),
        (statement, "2024-01-05", "01/05"),
        (statement, "2023-01-05", ""),
        (statement, "2024-09-05", ""),
        ("In 2024 about 01/05 of them, 05.01 %", "2024-01-05", ""),
    ] {
        assert_eq!(place(text, value), expected, "{value} in {text:?}");
    }
}

#[test]
fn dates_are_found_in_the_notations_of_contracts_and_with_a_short_year() {
    for (notation, value) in [
        ("1st day of June, 2023", "2023-06-01"),
        ("15th day of March 2024", "2024-03-15"),
        ("June the 1st, 2023", "2023-06-01"),
        ("5 Apr '02", "2002-04-05"),
        ("24 Oct \u{2019}99", "1999-10-24"),
    ] {
        assert_eq!(place(&format!("as of the {notation} in"), value), notation, "{value} in {notation}");
        assert!(Compare::Date.is_equal(&json!(value), &json!(notation)), "{value} and {notation}");
    }
}
