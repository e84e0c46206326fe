//! The notations in which a value is found.

use formwork_evidence::{Index, Status};
use serde_json::{Value, json};

/// Returns the status of a value in a text, and the text of its place.
fn found(text: &str, value: &Value) -> (Status, String) {
    let evidence = Index::new(text).evidence(&json!({ "value": value }), None).remove(0);
    let place = evidence
        .spans
        .first()
        .map(|span| text.chars().skip(span.start).take(span.end - span.start).collect());
    (evidence.status, place.unwrap_or_default())
}

#[test]
fn values_are_found_in_their_notations() {
    for (text, value, status, place) in [
        ("Total 42 pieces", json!(42), Status::Exact, "42"),
        ("Total 1.234,50 EUR", json!(1234.5), Status::Normalised, "1.234,50"),
        ("Total $1,234.50", json!(1234.5), Status::Normalised, "1,234.50"),
        ("Total 1 234 567", json!(1_234_567), Status::Normalised, "1 234 567"),
        ("Result (1,234)", json!(-1234), Status::Normalised, "(1,234)"),
        ("Refund -$5 today", json!(-5), Status::Normalised, "-$5"),
        ("Refund -₫500 today", json!(-500), Status::Normalised, "-₫500"),
        ("Rate 5 %", json!(0.05), Status::Normalised, "5"),
        ("About 2.5 million people", json!(2_500_000), Status::Normalised, "2.5 million"),
        ("Dose .5 mg", json!(0.5), Status::Normalised, ".5"),
        ("Dose .5 mg", json!(".5 mg"), Status::Exact, ".5 mg"),
        ("Introduction . . . . .5", json!(5), Status::Exact, "5"),
        ("between -.25 and .75", json!(-0.25), Status::Normalised, "-.25"),
        (".125 inches", json!(0.125), Status::Normalised, ".125"),
        ("for $.99 each", json!(0.99), Status::Normalised, ".99"),
        ("(p<.05)", json!(0.05), Status::Normalised, ".05"),
        ("a,.5,.25\nb,.75,1\n", json!(0.25), Status::Normalised, ".25"),
        ("at the end.5 apples", json!(5), Status::Exact, "5"),
        ("version v1.5", json!(1.5), Status::NotFound, ""),
        ("lines 1..5", json!(5), Status::Exact, "5"),
        ("see §.5 there", json!(5), Status::Exact, "5"),
        ("k = 1.2e-5 mol/l", json!(1.2e-5), Status::Normalised, "1.2e-5"),
        ("k = 1.2e-5 mol/l", json!("1.2e-5"), Status::Exact, "1.2e-5"),
        ("N = 6.02E23", json!(6.02e23), Status::Normalised, "6.02E23"),
        ("N = -1,5e+3", json!(-1500), Status::Normalised, "-1,5e+3"),
        ("about 2e6.", json!(2_000_000), Status::Normalised, "2e6"),
        ("the hash 12e5f", json!(12), Status::Exact, "12"),
        ("版 １２３ 号", json!(123), Status::Normalised, "１２３"),
        ("on 5 March 2024.", json!("2024-03-05"), Status::Normalised, "5 March 2024"),
        ("am 5. März 2024", json!("2024-03-05"), Status::Normalised, "5. März 2024"),
        ("2024年3月5日に", json!("2024-03-05"), Status::Normalised, "2024年3月5日"),
        ("on 03/05/24", json!("2024-03-05"), Status::Normalised, "03/05/24"),
        ("in March 2024", json!("2024-03"), Status::Normalised, "March 2024"),
        ("ADA  LOVELACE wrote", json!("Ada Lovelace"), Status::Normalised, "ADA  LOVELACE"),
        ("by Acme (Europe) Ltd.", json!("Acme (Europe) Ltd."), Status::Exact, "Acme (Europe) Ltd."),
        ("in the infor-\nmation age", json!("information"), Status::Normalised, "infor-\nmation"),
        ("Price 5 €", json!("EUR"), Status::Normalised, "€"),
        ("le cafe\u{301} est", json!("café"), Status::Normalised, "cafe\u{301}"),
        ("in der STRASSE 5", json!("Straße"), Status::Normalised, "STRASSE"),
        ("in der Straße 5", json!("STRASSE 5"), Status::Normalised, "Straße 5"),
        ("the ﬁnal oﬃce", json!("FINAL OFFICE"), Status::Normalised, "ﬁnal oﬃce"),
        ("ΟΔΟΣ 5", json!("οδος"), Status::Normalised, "ΟΔΟΣ"),
        ("서울에서 왔다", json!("서울"), Status::Exact, "서울"),
        ("فاتورة والقاهرة هنا", json!("القاهرة"), Status::Exact, "القاهرة"),
        ("العميل: محمّد عبد الله", json!("محمد عبد الله"), Status::Normalised, "محمّد عبد الله"),
        ("العميل: محمد", json!("مُحَمَّد"), Status::Normalised, "محمد"),
        ("👍 yes", json!("👍"), Status::Exact, "👍"),
    ] {
        assert_eq!(found(text, &value), (status, place.to_owned()), "{value} in {text}");
    }
}

#[test]
fn a_time_stands_beside_its_date() {
    for (text, value, place) in [
        ("Departure 2024-03-05T14:30:00Z, gate 5", "2024-03-05T14:30:00Z", "2024-03-05T14:30:00Z"),
        ("Departure 2024-03-05T14:30:00Z, gate 5", "2024-03-05T14:30:00", "2024-03-05T14:30:00"),
        ("Departure 2024-03-05T14:30:00Z, gate 5", "2024-03-05T18:00:00Z", ""),
        ("on 5 March 2024 at 14:30, gate 5", "2024-03-05T14:30:00", "5 March 2024 at 14:30"),
        ("on 5 March 2024 at 14:30, gate 5", "2024-03-05T14:30:00+00:00", "5 March 2024 at 14:30"),
        ("on 5 March 2024 at 2.30 pm, gate 5", "2024-03-05T14:30:00Z", "5 March 2024 at 2.30 pm"),
        ("on 5 March 2024 at 2:30 p.m.", "2024-03-05 14:30", "5 March 2024 at 2:30 p.m"),
        ("on 5 March 2024 at 2:30 am", "2024-03-05T14:30:00", ""),
        ("on 5 March 2024 at 09:15", "2024-03-05T14:30:00", ""),
        ("on 5 March 2024 at 09:15", "2024-03-05T00:00:00Z", "5 March 2024"),
        ("am 5. März 2024 um 14 Uhr", "2024-03-05T14:00:00", "5. März 2024 um 14 Uhr"),
        ("on 5 March 2024 at 3 pm", "2024-03-05T15:00:00", "5 March 2024 at 3 pm"),
        ("on 5 March 2024 at 3 pm", "2024-03-05T03:00:00", ""),
        ("on 5 March 2024 at 12 am", "2024-03-05T00:00:00", "5 March 2024 at 12 am"),
        ("on 5 March 2024 at 12:05 am", "2024-03-05T00:05:00", "5 March 2024 at 12:05 am"),
        ("on 5 March 2024 for 3 people", "2024-03-05T03:00:00", ""),
        ("Date: 5 March 2024\nTime: 14:30:15", "2024-03-05T14:30:15Z", "5 March 2024"),
        ("Date: 5 March 2024\nTime: 14:30:15", "2024-03-05T14:30:16Z", ""),
        ("Date: 5 March 2024\n\nA\nB\nTime: 14:30", "2024-03-05T14:30:00Z", ""),
        // Words that are zones in capitals.
        ("am 5. März 2024 um 14:30 ist der Termin", "2024-03-05T14:30:00Z", "5. März 2024 um 14:30"),
        ("le 5 mars 2024 à 14:30 est prévue", "2024-03-05T14:30:00Z", "5 mars 2024 à 14:30"),
        ("on 5 March 2024 at 14:30 z. B.", "2024-03-05T14:30:00+05:00", "5 March 2024 at 14:30"),
        ("on 5 March 2024 at 14:30 EST", "2024-03-05T14:30:00Z", ""),
        ("on 5 March 2024 at 14:30 utc", "2024-03-05T15:30:00+01:00", "5 March 2024 at 14:30"),
        ("le 5 mars 2024 à 14h30", "2024-03-05T14:30:00", "5 mars 2024 à 14h30"),
        ("le 5 mars 2024 à 14 h 30 min", "2024-03-05T14:30:00", "5 mars 2024 à 14 h 30 min"),
        ("le 5 mars 2024 à 14h30", "2024-03-05T14:00:00", ""),
        ("am 5. März 2024 um 14 Uhr 30", "2024-03-05T14:30:00", "5. März 2024 um 14 Uhr 30"),
        ("am 5. März 2024 um 14 Uhr, 3 Personen", "2024-03-05T14:00:00", "5. März 2024 um 14 Uhr"),
        (
            "el 5 de marzo de 2024 a las 2:30 p. m.",
            "2024-03-05T14:30:00",
            "5 de marzo de 2024 a las 2:30 p. m",
        ),
        ("2024年3月5日 14時30分", "2024-03-05T14:30:00", "2024年3月5日 14時30分"),
        ("2024年3月5日 午後2時30分", "2024-03-05T14:30:00", "2024年3月5日 午後2時30分"),
        ("2024年3月5日下午2点", "2024-03-05T14:00:00", "2024年3月5日下午2点"),
        ("2024年3月5日 午前2時30分", "2024-03-05T14:30:00", ""),
        ("2024년 3월 5일", "2024-03-05", "2024년 3월 5일"),
        ("2024년 3월 5일 14시", "2024-03-05T14:00:00", "2024년 3월 5일 14시"),
        ("2024년 3월 5일 오후 2시 30분", "2024-03-05T14:30:00", "2024년 3월 5일 오후 2시 30분"),
        ("on 5 March 2024 at noon", "2024-03-05T12:00:00", "5 March 2024 at noon"),
        ("on 5 March 2024 at noon", "2024-03-05T12:30:00", ""),
        // In another time zone, the hour is another one, and the date may be.
        ("on 5 March 2024 at 15:30 CET", "2024-03-05T14:30:00Z", "5 March 2024 at 15:30"),
        ("on 5 March 2024 at 15:30 CET", "2024-03-05T13:30:00Z", ""),
        ("on 5 March 2024 at 15:30 CET", "2024-03-05T15:30:00+01:00", "5 March 2024 at 15:30"),
        ("on 5 March 2024 at 15:30 CET", "2024-03-05T14:30:00", ""),
        ("2024-03-05 15:30 +01:00", "2024-03-05T14:30:00Z", "2024-03-05 15:30"),
        ("2024-03-05 15:30+0100", "2024-03-05T14:30:00Z", "2024-03-05 15:30"),
        ("5 March 2024, 15:30 UTC+1", "2024-03-05T14:30:00Z", "5 March 2024, 15:30"),
        ("5 March 2024, 15:30 - 16:00", "2024-03-05T14:30:00Z", ""),
        ("5 March 2024, 09:00-10:00", "2024-03-05T09:00:00Z", "5 March 2024, 09:00"),
        ("3 May 2024 at 2:30 PM EST", "2024-05-03T19:30:00Z", "3 May 2024 at 2:30 PM"),
        ("3 May 2024, 2:30 p.m. PDT", "2024-05-03T21:30:00Z", "3 May 2024, 2:30 p.m"),
        ("5 Mar 2024 8:30 PM -0500", "2024-03-06T01:30:00Z", "5 Mar 2024 8:30 PM"),
        ("3 May 2024 at 12:15 PM UTC+2", "2024-05-03T10:15:00Z", "3 May 2024 at 12:15 PM"),
        ("3 May 2024 at 8pm CET", "2024-05-03T19:00:00Z", "3 May 2024 at 8pm"),
        // A time with a zone is no other instant.
        ("2024-05-03T14:30:00+05:30", "2024-05-03T14:30:00Z", ""),
        ("2024-05-03T14:30:00Z", "2024-05-03T14:30:00-11:00", ""),
        ("2024-05-03T14:30-05:00", "2024-05-03T14:30:00Z", ""),
        ("2024-05-03T14:30:00.250Z", "2024-05-03T14:30:00-11:00", ""),
        ("2024-05-03T14:30:00.250+01:00", "2024-05-03T13:30:00Z", "2024-05-03T14:30:00.250"),
        ("May 3, 2024, 2:30 p.m. PDT", "2024-05-03T14:30:00+01:00", ""),
        ("on 5 March 2024 at 14:30 IST", "2024-03-05T09:00:00Z", "5 March 2024 at 14:30"),
        ("2024-03-05 14:30 +05:45", "2024-03-05T08:45:00Z", "2024-03-05 14:30"),
        ("2024-03-05 14:30 +05:30", "2024-03-05T09:10:00Z", ""),
        ("Date: Tue, 5 Mar 2024 20:30:00 -0500", "2024-03-06T01:30:00Z", "5 Mar 2024 20:30:00"),
        ("Date: Tue, 5 Mar 2024 20:30:00 -0500", "2024-03-05T01:30:00Z", ""),
        ("Date: Tue, 5 Mar 2024 19:00:00 -0500", "2024-03-06T00:00:00Z", "5 Mar 2024 19:00:00"),
        ("Date: 1 Mar 2024 01:30 CET", "2024-02-29T00:30:00Z", ""),
        ("Date: 1 Mar 2024 00:30 CET", "2024-02-29T23:30:00Z", "1 Mar 2024 00:30"),
        ("on 5 March 2024 at 15:30", "2024-03-05T14:30:00Z", ""),
        ("5 March 2024, ratio 10:14:30", "2024-03-05T14:30:00", ""),
        ("at 14:30", "14:30:00", "14:30"),
        ("at 2:30 PM", "14:30", "2:30 PM"),
        ("at 14:30", "15:30", ""),
        ("on 5 March 2024 at 14:30, gate 5", "20240305T143000Z", "5 March 2024 at 14:30"),
        // A code is no time.
        ("at 14:30", "T1430", ""),
        ("the score is 14.30", "14:30", "14.30"),
        ("14 people", "14", "14"),
    ] {
        assert_eq!(found(text, &json!(value)).1, place, "{value} in {text}");
        let index = Index::new(text);
        assert_eq!(index.states(&json!(value), 1), !place.is_empty(), "{value} in {text}");
    }
}

#[test]
fn both_dates_of_a_range_are_found_and_no_year_that_the_text_does_not_have() {
    for (text, dates) in [
        ("on 3-5 May 2024 in", ["2024-05-03", "2024-05-05"]),
        ("on 3 – 5 May 2024 in", ["2024-05-03", "2024-05-05"]),
        ("on 3 and 5 May 2024 in", ["2024-05-03", "2024-05-05"]),
        ("from 3rd to 5th May 2024", ["2024-05-03", "2024-05-05"]),
        ("vom 3.-5. Mai 2024", ["2024-05-03", "2024-05-05"]),
        ("vom 3. bis 5. Mai 2024", ["2024-05-03", "2024-05-05"]),
        ("on May 3-5, 2024", ["2024-05-03", "2024-05-05"]),
        ("on May 3 and 5, 2024", ["2024-05-03", "2024-05-05"]),
        ("May 3 - June 4, 2024", ["2024-05-03", "2024-06-04"]),
        ("30 May - 4 June 2024", ["2024-05-30", "2024-06-04"]),
        ("2024: May 3 and June 4", ["2024-05-03", "2024-06-04"]),
    ] {
        let index = Index::new(text);
        for date in dates {
            assert!(index.states(&json!(date), 1), "{date} in {text}");
            assert_ne!(found(text, &json!(date)).0, Status::NotFound, "{date} in {text}");
            let other = date.replace("2024", "1999");
            assert!(!index.states(&json!(other), 1), "{other} in {text}");
            assert_eq!(found(text, &json!(other)).0, Status::NotFound, "{other} in {text}");
        }
        assert_eq!(found(text, &json!("2024-05-04")).0, Status::NotFound, "{text}");
    }
    for text in ["Qty 3\t5 May 2024", "No. 30 - 2024-05-31", "30 to 5 May 2024"] {
        assert_eq!(found(text, &json!("2024-05-03")).0, Status::NotFound, "{text}");
        assert_eq!(found(text, &json!("2024-05-30")).0, Status::NotFound, "{text}");
    }
    assert_eq!(found("No. 30 - 3 May 2024", &json!("2024-05-30")).0, Status::NotFound);
    assert_eq!(found("Mon 3 May", &json!("1999-05-03")).0, Status::NotFound);
}

#[test]
fn a_date_may_go_on_in_the_next_line() {
    for (text, date, place) in [
        ("born on 3.\nMai 2024 in", "2024-05-03", "3.\nMai 2024"),
        ("am 3. Mai\n2024 in", "2024-05-03", "3. Mai\n2024"),
        ("on March\n3, 2024", "2024-03-03", "March\n3, 2024"),
        ("on Sunday, March 3,\n  2024.", "2024-03-03", "March 3,\n  2024"),
        ("on 3 March\n2024 in", "2024-03-03", "3 March\n2024"),
        ("on 3rd of\r\nMarch 2024 in", "2024-03-03", "3rd of\r\nMarch 2024"),
        ("am 03.05.\n2024 in", "2024-05-03", "03.05.\n2024"),
        ("2024-05-\n03", "2024-05-03", "2024-05-\n03"),
        // Rows, and more than one line break.
        ("May\n2024\n2025", "2024-05", ""),
        ("3\nMay 2024", "2024-05-03", ""),
        ("March\n3\n2024", "2024-03-03", ""),
        ("on March\n3,\n2024", "2024-03-03", ""),
        ("on 3 March\n\n2024 in", "2024-03-03", "3 March"),
        ("Sold  3\nMarch 2024", "2024-03-03", ""),
        ("2023 3\nMarch 2024", "2024-03-03", ""),
        ("| a | 3 |\n| March 2024 |", "2024-03-03", ""),
        ("a,b,3\nMarch 2024,c,d\n", "2024-03-03", ""),
        ("Invoices: 12\nMarch 2024\n", "2024-03-12", ""),
        ("Room 3\nMay 2024 revenue", "2024-05-03", ""),
        ("see page 5\n- March 2024 report", "2024-03-05", ""),
        // What stands in the line is a date, too.
        ("2024: Meeting on 3 March\n- 15 people came", "2024-03-03", "3 March"),
        ("2023: on 5 May\n2024 units were sold", "2023-05-05", "5 May"),
    ] {
        assert_eq!(found(text, &json!(date)).1, place, "{date} in {text}");
    }
}

#[test]
fn values_that_do_not_stand_in_the_text_are_not_found() {
    for (text, value) in [
        ("party of 12", json!("art")),
        ("form A4", json!(4)),
        ("Total 1,234", json!(234)),
        ("Dose .5 mg", json!(5)),
        ("Dose .5 mg", json!("5")),
        ("Dose .5 mg", json!("5 mg")),
        ("k = 1.2e-5 mol/l", json!(1.2)),
        ("k = 1.2e-5 mol/l", json!("1.2")),
        ("k = 1.2e-5 mol/l", json!(5)),
        ("k = 1.2e-5 mol/l", json!(-5)),
        ("k = 1.2e-5 mol/l", json!("5")),
        ("N = 6.02E23", json!(23)),
        ("on 5 March 2024", json!("2024-03-06")),
        ("", json!("a")),
        ("a null b", json!(null)),
        ("text", json!("")),
        ("yes and no", json!(true)),
    ] {
        assert_eq!(found(text, &value).0, Status::NotFound, "{value} in {text}");
    }
}

/// The rule `grounded`: whether a value stands in the text.
fn states(text: &str, value: &Value) -> bool {
    Index::new(text).states(value, 1)
}

#[test]
fn a_text_does_not_begin_or_end_within_a_number() {
    for (text, value, expected) in [
        ("Total due: 1,250.00 EUR", "1,250.00 EUR", true),
        ("Total due: 1,250.00 EUR", "due: 1,250.00", true),
        ("Total due: 1,250.00 EUR", "1250", true),
        ("Total due: 1,250.00 EUR", "250.00 EUR", false),
        ("Total due: 1,250.00 EUR", "00 EUR", false),
        ("Total due: 1,250.00 EUR", "due: 1", false),
        ("Total due: 1,250.00 EUR", "125000", false),
        ("Total due: 1,250.00 EUR", "25000", false),
        ("Preis 1.234,50 EUR", "1.234,50 EUR", true),
        ("Preis 1.234,50 EUR", "50 EUR", false),
        ("Preis 1.234,50 EUR", "234", false),
        ("Preis 1.234,50 EUR", ",50", false),
        // The parts of a notation that is no number.
        ("Invoice 2024-0117", "0117", true),
        ("Call +49 30 1234567", "1234567", true),
        ("Call +49 30 1234567", "+49301234567", true),
        ("on 05.03.2024", "2024", true),
        ("version 1.2.3", "1.2", true),
        ("at 10:30", "30", true),
        ("a,10,20\nb,30,40", "20", true),
    ] {
        assert_eq!(states(text, &json!(value)), expected, "{value} in {text}");
        assert_eq!(found(text, &json!(value)).0 != Status::NotFound, expected, "{value} in {text}");
    }
}

#[test]
fn a_word_with_signs_is_another_word() {
    for (text, value, expected) in [
        ("A C++ developer", "C", false),
        ("A C++ developer", "C++", true),
        ("A C++ developer", "c++ Developer", true),
        ("A C++ developer", "C developer", false),
        ("A C developer", "C++", false),
        ("A C developer", "C++ developer", false),
        ("see C# docs", "C", false),
        ("see C# docs", "C#", true),
        ("see C# docs", "C++", false),
        ("see F# (major)", "F#", true),
        // No signs of words.
        ("A+B of C", "A", true),
        ("issue #12", "12", true),
        ("Call +49 30 12", "49 30 12", true),
        ("ages 5+", "5", true),
        ("page#section", "page", true),
        ("ARR of $10M+", "$10M", true),
        ("Salary 50k+ a year", "50k", true),
        ("5 years+ of experience", "5 years", true),
        ("++Title++", "Title", true),
        ("PO# 12345", "PO 12345", true),
        ("12 Main St Apt# 4B", "12 Main St, Apt 4B", true),
        ("Blood group: A+ve", "A+", true),
        ("Uses C#12", "C#", true),
    ] {
        assert_eq!(states(text, &json!(value)), expected, "{value} in {text}");
        assert_eq!(found(text, &json!(value)).0 != Status::NotFound, expected, "{value} in {text}");
    }
    let text = "see C# docs.\nSkills: C++, R, Go, C, C#, Rust\n";
    let skills = json!(["C++", "R", "Go", "C", "C#", "Rust"]);
    let evidence = Index::new(text).evidence(&skills, None);
    let starts: Vec<_> = evidence.iter().map(|it| it.spans[0].start).collect();
    assert_eq!(starts, [21, 26, 29, 33, 36, 40]);
}

#[test]
fn a_number_with_another_sign_is_another_value() {
    for (text, value, expected) in [
        ("Deposit -50.00", json!("-50.00"), true),
        ("Deposit \u{2212}50.00", json!("-50.00"), true),
        ("Deposit (50.00)", json!("-50.00"), true),
        ("Deposit -50.00", json!("50.00"), false),
        ("Deposit 50.00", json!("-50.00"), false),
        ("Deposit -$50.00", json!("$50.00"), false),
        ("Deposit -50.00", json!("Deposit 50.00"), false),
        ("Deposit -50.00", json!(50), false),
        ("Deposit 50.00", json!(-50), false),
        ("pages 40-50", json!("50"), true),
        ("pages 40-50", json!("-50"), false),
        ("pages 40-50", json!(-50), false),
    ] {
        assert_eq!(states(text, &value), expected, "{value} in {text}");
        assert_eq!(found(text, &value).0 != Status::NotFound, expected, "{value} in {text}");
    }
    let texts = Index::new("-5").evidence(&json!(["5", "-5"]), None);
    assert_eq!([texts[0].status, texts[1].status], [Status::NotFound, Status::Exact]);
}

#[test]
fn a_number_with_another_unit_is_another_value() {
    for (text, value, expected) in [
        ("Price: 20 EUR", "20 EUR", true),
        ("Price: 20 EUR", "EUR 20", true),
        ("Price: 20 EUR", "20 €", true),
        ("Price: 20 EUR", "€20", true),
        ("Price: €20.00", "20 euros", true),
        ("Price: US$20", "$20", true),
        ("Price: $20", "20 USD", true),
        ("Price: $20", "A$20", true),
        ("Price: 20", "20 USD", true),
        ("He won 20 games", "$20", true),
        ("Rate 5 %", "5%", true),
        ("Price: 20 EUR", "20 USD", false),
        ("Price: 20 EUR", "$20", false),
        ("Price: 20 EUR", "Price: $20", false),
        ("Price: EUR 20", "20 USD", false),
        ("Price: US$20", "A$20", false),
        ("Price: 1.250,00 EUR", "$1,250.00", false),
        ("Rate 5 %", "5 EUR", false),
        ("20 EUR (22 USD)", "22 EUR", false),
    ] {
        assert_eq!(states(text, &json!(value)), expected, "{value} in {text}");
        assert_eq!(found(text, &json!(value)).0 != Status::NotFound, expected, "{value} in {text}");
    }
}

#[test]
fn a_text_does_not_begin_or_end_between_a_digit_and_a_letter() {
    for (text, value, expected) in [
        ("Am Markt 7a", "Am Markt 7", false),
        ("Am Markt 7a", "Am Markt 7a", true),
        ("Am Markt 7 a", "Am Markt 7", true),
        ("Bahnhofstr. 12a", "Bahnhofstr. 12", false),
        ("3M Deutschland GmbH", "M Deutschland GmbH", false),
        ("3M Deutschland GmbH", "3M Deutschland", true),
        ("Flug LH400", "LH", false),
        ("Flug LH400", "LH 400", true),
        ("Flug LH400", "400", true),
        // A number before a unit, and a currency beside a number.
        ("weight 5kg", "5", true),
        ("price 20EUR", "EUR", true),
        ("price EUR20", "price EUR", true),
        ("price 20EUR", "price 20", true),
        ("在5月", "5", true),
        ("5月に", "月", true),
    ] {
        assert_eq!(states(text, &json!(value)), expected, "{value} in {text}");
        assert_eq!(found(text, &json!(value)).0 != Status::NotFound, expected, "{value} in {text}");
    }
}

#[test]
fn a_name_may_stand_with_its_last_words_before_a_comma() {
    for (text, value, place) in [
        ("Buyer: Smith, John", "John Smith", "Smith, John"),
        ("Buyer: Smith, John A.\n", "John A. Smith", "Smith, John A"),
        ("van der Berg, Jan\nKing, Ada", "Jan van der Berg", "van der Berg, Jan"),
        ("Smith, John; King, Ada", "Ada King", "King, Ada"),
        ("Smith, John <js@a.io>", "John Smith", "Smith, John"),
        // Parts of two names.
        ("Ada King, Grace Hopper", "Grace King", ""),
        ("Smith, John Paul", "John Smith", ""),
        ("Smith, John, Paul", "John Paul Smith", ""),
        ("Smith John", "John Smith", ""),
        ("Smith\tJohn", "John Smith", ""),
    ] {
        let status = if place.is_empty() { Status::NotFound } else { Status::Normalised };
        assert_eq!(found(text, &json!(value)), (status, place.to_owned()), "{value} in {text}");
        assert_eq!(states(text, &json!(value)), !place.is_empty(), "{value} in {text}");
    }
}

#[test]
fn a_sum_by_a_rule_is_computed_and_has_the_places_of_its_terms() {
    let rule = |target: &str, terms: &[&str]| {
        let terms: Vec<Value> = terms.iter().map(|path| json!({"path": path, "weight": 1})).collect();
        json!({"rule": "weightedSum", "target": target, "terms": terms, "tolerance": 0.01})
    };
    let schema =
        json!({"x-formwork-rules": [rule("$.total", &["$.net", "$.tax"]), rule("$.net", &["$.lines[*]"])]});
    let statuses = |text: &str, net: i32, tax: Value, total: i32| {
        let value = json!({"lines": [7, 5], "net": net, "tax": tax, "total": total});
        let evidence = Index::new(text).evidence(&value, Some(&schema));
        let of = |path: &str| {
            let it = evidence.iter().find(|it| it.path.to_string() == path).unwrap();
            (it.status, it.spans.len())
        };
        [of("$.net"), of("$.total")]
    };
    let (computed, none) = (|places: usize| (Status::Computed, places), (Status::NotFound, 0));
    assert_eq!(statuses("Items: 7 and 5, tax 3", 12, json!(3), 15), [computed(2), computed(2)]);
    assert_eq!(statuses("Items: 7 and 5", 12, Value::Null, 12), [computed(2), computed(1)]);
    assert_eq!(statuses("Items: 7 and 5, tax 3", 12, json!(3), 16), [computed(2), none]);
    // A term that is not found computes nothing.
    assert_eq!(statuses("Items: 7 and 5, tax 4", 12, json!(3), 15), [computed(2), none]);
    assert_eq!(statuses("Items: 7 and 6, tax 3", 12, json!(3), 15), [none, none]);
}

#[test]
fn pages_are_separated_by_form_feeds() {
    let evidence = Index::new("one\x0ctwo\x0cthree").evidence(&json!(["one", "three"]), None);
    let pages: Vec<_> = evidence.iter().map(|it| it.spans[0].page).collect();
    assert_eq!(pages, [Some(1), Some(3)]);
}
