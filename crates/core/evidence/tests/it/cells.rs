//! Commas within numbers and between cells.

use formwork_evidence::Index;
use serde_json::{Value, json};

/// Returns the texts of the chosen places of the leaves of a value; an empty one for a leaf without a place.
fn texts(text: &str, value: &Value) -> Vec<String> {
    let evidence = Index::new(text).evidence(value, None);
    let slice = |start: usize, end: usize| text.chars().skip(start).take(end - start).collect();
    evidence
        .iter()
        .map(|it| it.spans.first().map_or_else(String::new, |span| slice(span.start, span.end)))
        .collect()
}

#[test]
fn equally_many_commas_in_two_lines_are_no_cells_if_they_are_marks_of_numbers() {
    for (text, value, places) in [
        (
            "Revenue: $1,234,567\nCosts: $1,000,000\n",
            json!([1_234_567, 1_000_000]),
            &["1,234,567", "1,000,000"][..],
        ),
        (
            "Bolt 10 1,234.50 12,345.00\nNut 2 1,100.00 2,200.00\n",
            json!([1234.5, 12345, 1100, 2200]),
            &["1,234.50", "12,345.00", "1,100.00", "2,200.00"],
        ),
        ("₹12,34,567.00\n₹10,00,000.00", json!([1_234_567, 1_000_000]), &["12,34,567.00", "10,00,000.00"]),
        (
            "EBIT of $1,234,567 in 2023.\nThe number of shares was 2,000,000 in 2023.\n",
            json!([1_234_567, 2_000_000]),
            &["1,234,567", "2,000,000"],
        ),
        (
            "<tr><td>10</td><td>1,234.50</td><td>12,345.00</td></tr>\n<tr><td>2</td><td>1,100.00</td><td>2,200.00</td></tr>\n",
            json!([1234.5, 12345, 2200]),
            &["1,234.50", "12,345.00", "2,200.00"],
        ),
        (
            "配線工事　1台　12,000円　12,000円\n電源　2台　12,500円　25,000円\n",
            json!([12500, 25000]),
            &["12,500", "25,000"],
        ),
        (
            "1.234,50 € 12.345,00 €\n1.100,00 € 2.200,00 €\n",
            json!([1234.5, 12345]),
            &["1.234,50", "12.345,00"],
        ),
        ("USD1,234,567\nUSD1,000,000\n", json!([1_234_567]), &["1,234,567"]),
        (
            "١٬٥٠٠ ١,٥٠٠.٠٠ ٣,٠٠٠.٠٠\n١٬٥٠٠ ٢,٥٠٠.٠٠ ٥,٠٠٠.٠٠\n",
            json!([3000, 5000]),
            &["٣,٠٠٠.٠٠", "٥,٠٠٠.٠٠"],
        ),
        // Cells.
        (
            "Bolt,10,4.50,45.00\nNut,2,1.10,2.20\n",
            json!([10, 4.5, 45, 2, 1.1]),
            &["10", "4.50", "45.00", "2", "1.10"],
        ),
        ("a,1,234\nb,2,345\n", json!([1, 234, 2, 345]), &["1", "234", "2", "345"]),
        ("a,1,234\nb,2,345\n", json!([1234, 2345]), &["", ""]),
        (
            "name,qty,price\nBolt M8 x 10,200,300\nM6 x 8,150,400\n",
            json!([200, 300, 150]),
            &["200", "300", "150"],
        ),
        ("2024-01-15,100,200\n2024-01-16,300,400\n", json!([100, 200, 400]), &["100", "200", "400"]),
        ("1,5,10\n2,6,20\n", json!([5, 6, 20]), &["5", "6", "20"]),
        (
            " Bolt,10,4.50,45.00\n Nut,2,1.10,2.20\n",
            json!([10, 4.5, 45, 1.1]),
            &["10", "4.50", "45.00", "1.10"],
        ),
        ("M8,100,200\nM6,150,400\n", json!([100, 200, 400]), &["100", "200", "400"]),
        ("255,128,100\n120,200,180\n200,150,0\n", json!([255, 180, 0]), &["255", "180", "0"]),
    ] {
        assert_eq!(texts(text, &value), places, "{text}");
    }
}

#[test]
fn a_comma_within_quotation_marks_separates_no_cells() {
    for (text, value, places) in [
        (
            "item,qty,price\nBolt,10,\"1,234.50\"\nNut,2,\"1,100.00\"\n",
            json!([1234.5, 1100]),
            ["1,234.50", "1,100.00"],
        ),
        ("\"Bolt, 5\"\"\",10,\"1,234.50\"\n\"Nut, M8\",2,7\n", json!([10, 1234.5]), ["10", "1,234.50"]),
        ("\"Bolt, M8\",10,20\r\n\"Nut, M8\",30,\"40\"\r\n", json!([20, 40]), ["20", "40"]),
        // A quotation mark within a cell is a part of its text.
        ("Pipe 5\",10,20\nPipe 6\",30,40\n", json!([10, 30]), ["10", "30"]),
    ] {
        assert_eq!(texts(text, &value), places, "{text}");
    }
    let text =
        "item,net,gross\n\"Bolt, M8\",\"1,100.00\",\"1,100.00\"\n\"Nut, M8\",\"1,200.00\",\"1,300.00\"\n";
    let rows = json!([{"gross": 1100, "net": 1100}, {"gross": 1300, "net": 1200}]);
    let starts: Vec<_> = Index::new(text).evidence(&rows, None).iter().map(|it| it.spans[0].start).collect();
    let at = |cell: &str| text.rfind(cell).unwrap();
    let first = text.find("1,100.00").unwrap();
    assert_eq!(starts, [at("1,100.00"), first, at("1,300.00"), at("1,200.00")]);
}
