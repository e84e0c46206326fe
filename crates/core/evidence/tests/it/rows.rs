//! Rows in any order.

use std::collections::BTreeSet;

use formwork_evidence::Index;
use serde_json::{Value, json};

use super::documents::Random;

/// A table with the text and the value of each row. Many values and some rows are equal.
fn table(random: &mut Random) -> Vec<(String, Value)> {
    let count = 4 + random.below(12);
    let row = |_| {
        let (name, quantity) = (random.of(&["Bolt", "Nut", "Washer"]), 1 + random.below(4));
        let price = 1 + random.below(3);
        (
            format!("{name:<10} {quantity:>3} {:>8} {:>8}", format!("{price}.50"), quantity * price),
            json!({"name": name, "quantity": quantity, "price": price as f64 + 0.5, "total": quantity * price}),
        )
    };
    (0..count).map(row).collect()
}

/// Returns the line of each leaf of each item of a list.
fn lines(text: &str, items: &[Value]) -> Vec<BTreeSet<usize>> {
    let mut lines = vec![BTreeSet::new(); items.len()];
    let members = items[0].as_object().unwrap().len();
    for (number, it) in Index::new(text).evidence(&json!(items), None).iter().enumerate() {
        let before: String = text.chars().take(it.spans[0].start).collect();
        lines[number / members].insert(before.matches('\n').count());
    }
    lines
}

#[test]
fn a_record_stands_in_the_row_with_its_values_in_any_order_of_the_records() {
    let mut random = Random(5);
    for order in 0..300 {
        let rows = table(&mut random);
        let text: String = rows.iter().map(|(line, _)| format!("{line}\n")).collect();
        let mut items: Vec<_> = rows.iter().map(|(line, value)| (line, value.clone())).collect();
        match order % 4 {
            0 => {}
            1 => items.reverse(),
            2 => (1..items.len()).rev().for_each(|at| items.swap(at, random.below(at + 1))),
            _ => items.retain(|_| random.below(2) == 0),
        }
        let values: Vec<Value> = items.iter().map(|(_, value)| value.clone()).collect();
        if values.is_empty() {
            continue;
        }
        let found = lines(&text, &values);
        for (lines, (line, _)) in found.iter().zip(&items) {
            let of_rows: BTreeSet<&str> = lines.iter().map(|at| rows[*at].0.as_str()).collect();
            assert!(lines.len() == 1 && of_rows.contains(line.as_str()), "{line} in {lines:?} of\n{text}");
        }
        let distinct: BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "{values:?} in {found:?} of\n{text}");
        if order % 4 == 0 {
            assert!(found.is_sorted(), "{found:?} of\n{text}");
        }
    }
}

#[test]
fn a_record_stands_where_most_of_its_values_stand_together() {
    for (text, items, rows) in [
        ("A  1  1.00\nB  2  1.00\nA  2  1.00\n", [("A", 2, 1.0), ("B", 2, 1.0), ("A", 1, 1.0)], [2, 1, 0]),
        ("A  1  5.00\nB  2  6.00\nA  2  7.00\n", [("A", 2, 7.0), ("B", 2, 6.0), ("A", 1, 5.0)], [2, 1, 0]),
        ("A  1  5.00\nA  1  5.00\nB  1  5.00\n", [("B", 1, 5.0), ("A", 1, 5.0), ("A", 1, 5.0)], [2, 1, 0]),
        ("A  1  5.00\nA  1  5.00\nA  1  5.00\n", [("A", 1, 5.0), ("A", 1, 5.0), ("A", 1, 5.0)], [0, 1, 2]),
    ] {
        let items = items.map(|(name, quantity, price)| json!({"n": name, "p": price, "q": quantity}));
        assert_eq!(lines(text, &items), rows.map(|row| BTreeSet::from([row])), "{text}");
    }
}

#[test]
fn records_that_stand_as_well_in_both_orders_follow_the_text() {
    let text = "Order A-1\nAnn approved\nBob approved\nAnn approved\nOrder A-2\nEve approved\n";
    let event = |who: &str| json!({"who": who, "what": "approved"});
    let value = json!({"orders": [
        {"id": "A-1", "events": [event("Bob"), event("Ann")]}, {"id": "A-2", "events": [event("Eve")]}
    ]});
    let rows = |from: usize| [0, 1].map(|it| starts(text, &value)[from + it]);
    assert_eq!(rows(1), [23, 27], "who and what of Bob, in the order of names");
    assert_eq!(rows(3), [36, 40]);
}

/// Returns the offsets of the chosen places.
fn starts(text: &str, value: &Value) -> Vec<usize> {
    Index::new(text).evidence(value, None).iter().map(|it| it.spans[0].start).collect()
}

#[test]
fn a_value_does_not_stand_within_another_value_of_its_record_if_a_label_names_it_elsewhere() {
    for distance in 0..4 {
        let more = "Shipped by sea\n".repeat(distance);
        let order = |number: usize| {
            format!("Order SO-{number}\nCustomer: Beta\n{more}Items: pens\nTotal: {number}.00\n")
        };
        let text = (10..13).map(order).collect::<String>();
        let order = |number: usize| json!({"order_id": format!("SO-{number}"), "total": number});
        let orders: Vec<Value> = (10..13).map(order).collect();
        let at =
            |number: usize, prefix: &str| text.find(&format!("{prefix}{number}")).unwrap() + prefix.len();
        let expected: Vec<usize> =
            (10..13).flat_map(|number| [at(number, "Order SO-") - 3, at(number, "Total: ")]).collect();
        assert_eq!(starts(&text, &json!({"orders": orders})), expected, "{text}");
    }
    // It does if the others belong to other records.
    let text = "2 x Cable  3.00\n2 x Nut  4.00\n1 x Bolt  2.00\n";
    let items = json!([
        {"name": "2 x Cable", "quantity": 2}, {"name": "2 x Nut", "quantity": 2}, {"name": "1 x Bolt", "quantity": 1}
    ]);
    assert_eq!(starts(text, &items), [0, 0, 16, 16, 30, 30]);
}

#[test]
fn a_name_of_several_words_may_stand_above_the_other_values_of_its_record() {
    for name in ["Wasser", "Wasser 6x1,5l", "Wasser still, 6 Flaschen"] {
        let text = format!(
            "{name}\n   2 x 0,99     1,98 A\n{name}\n   2 x 1,99     3,98 A\n{name}         0,99 A\n"
        );
        let names: Vec<usize> = text.match_indices(name).map(|(at, _)| at).collect();
        let value = json!({"items": [
            {"name": name, "quantity": 2, "unit_price": 0.99, "price": 1.98},
            {"name": name, "quantity": 2, "unit_price": 1.99, "price": 3.98},
            {"name": name, "price": 0.99},
        ]});
        let found = starts(&text, &value);
        // The members of an object are in the order of their names or in that of the value.
        let of_name = |item: &Value| item.as_object().unwrap().keys().position(|key| key == "name").unwrap();
        let places = [0, 4, 8].into_iter().zip(value["items"].as_array().unwrap());
        let places: Vec<usize> = places.map(|(first, item)| found[first + of_name(item)]).collect();
        assert_eq!(places, names, "{text}");
    }
}

#[test]
fn blocks_side_by_side_are_records() {
    for ((zip, city), (other_zip, other_city)) in [
        (("10115", "Rome"), ("75001", "Rome")),
        (("10115", "Rome"), ("10115", "Rome")),
        (("10115", "Rome"), ("10115", "Oslo")),
        (("75001", "Oslo"), ("10115", "Oslo")),
    ] {
        let rows = [
            ("BILL TO".to_owned(), "SHIP TO".to_owned()),
            ("Jane Roe".to_owned(), "Jane Roe".to_owned()),
            ("5 High St".to_owned(), "7 High St".to_owned()),
            (format!("{zip} {city}"), format!("{other_zip} {other_city}")),
        ];
        let text: String = rows.iter().map(|(left, right)| format!("{left:<29}{right}\n")).collect();
        let address =
            |street, zip, city| json!({"city": city, "name": "Jane Roe", "street": street, "zip": zip});
        let value = json!({"bill_to": address("5 High St", zip, city), "ship_to": address("7 High St", other_zip, other_city)});
        let columns: Vec<usize> = starts(&text, &value)
            .into_iter()
            .map(|start| start - text[..start].rfind('\n').map_or(0, |end| end + 1))
            .collect();
        assert!(columns[..4].iter().all(|column| *column < 29), "{columns:?} in {text}");
        assert!(columns[4..].iter().all(|column| *column >= 29), "{columns:?} in {text}");
    }
}
