//! The rows of a chaos test: invoices with lists of lines, a sum, optional members, repeated values and long keys.
//!
//! Each invoice is a function of the number of its row, so that the provider and the checker know all of it without the batch.

use serde_json::{Value, json};

/// The text before the number of a row in its input.
const MARK: &str = "file R-";

/// Returns a number below `below` that depends on the row and the place only.
fn pick(row: u64, place: u64, below: u64) -> u64 {
    let z = (row << 16 ^ place).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % below
}

/// Returns the input of a row.
pub(crate) fn input(row: u64) -> String {
    format!("Invoice of {MARK}{row}; with {} lines, total {}.", lines(row), right(row)["total"])
}

/// Returns the row that a request is for, from its text.
pub(crate) fn row_of(text: &str) -> Option<u64> {
    let digits = text.split(MARK).nth(1)?;
    digits.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the contract of all rows: the total is the sum of the lines.
pub(crate) fn contract() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "customer": {
                "type": "object",
                "properties": {"name": text, "city": text},
                "required": ["name"],
                "additionalProperties": false,
            },
            "lines": {"type": "array", "minItems": 1, "items": {
                "type": "object",
                "properties": {
                    "article": text,
                    "quantity": {"type": "number", "exclusiveMinimum": 0},
                    "amount": {"type": "integer", "minimum": 1},
                    "note": text,
                    "an_unusually_long_name_of_a_member_as_generated_schemas_have_them": {"type": "boolean"},
                },
                "required": ["article", "quantity", "amount"],
                "additionalProperties": false,
            }},
            "tags": {"type": "array", "items": {"enum": ["paid", "export", "late"]}},
            "remark": text,
            "total": {"type": "integer"},
        },
        "required": ["number", "customer", "lines", "tags", "total"],
        "additionalProperties": false,
        "x-formwork-rules": [{
            "rule": "weightedSum", "target": "$.total", "terms": [{"path": "$.lines[*].amount", "weight": 1.0}], "tolerance": 0.0,
        }],
    })
}

/// Returns the number of lines of an invoice: every eighth one has 20 to 40, the others have 1 to 6.
fn lines(row: u64) -> u64 {
    if row % 8 == 5 { 20 + pick(row, 1, 21) } else { 1 + pick(row, 1, 6) }
}

/// Returns the invoice of a row.
pub(crate) fn right(row: u64) -> Value {
    let articles =
        ["Bolt M8", "Cable \"CAT 6\", 5 m", "Täglicher Dienst {A}", "Bolt M8", "Größe [XL]\n2. Wahl"];
    let lines: Vec<Value> = (0..lines(row))
        .map(|nth| {
            let of = |place: u64, below: u64| pick(row, 100 * (nth + 1) + place, below);
            let mut line = json!({
                "article": articles[of(1, 5) as usize],
                "quantity": of(2, 16) as f64 / 4.0 + 0.25,
                // Few different amounts, so that lines of one invoice and of others are alike.
                "amount": 100 * (1 + of(3, 9)),
            });
            if of(4, 3) == 0 {
                line["note"] = json!(format!("see line {} of invoice {}", of(5, 9), row + of(6, 3)));
            }
            if of(7, 5) == 0 {
                line["an_unusually_long_name_of_a_member_as_generated_schemas_have_them"] =
                    json!(of(8, 2) == 0);
            }
            line
        })
        .collect();
    let total: u64 = lines.iter().filter_map(|line| line["amount"].as_u64()).sum();
    let mut tags = vec!["paid"; pick(row, 2, 3) as usize];
    tags.extend(["export", "late"].iter().take(pick(row, 3, 3) as usize));
    let mut invoice = json!({
        "number": row,
        "customer": {"name": format!("Customer {}", row % 50)},
        "lines": lines,
        "tags": tags,
        "total": total,
    });
    if pick(row, 4, 2) == 0 {
        invoice["customer"]["city"] = json!("Lisbon");
    }
    if pick(row, 5, 4) == 0 {
        invoice["remark"] =
            json!("A long remark, with `code`, {braces} and \\ signs. ".repeat(1 + row as usize % 12));
    }
    invoice
}

/// Returns the value at a path as patches write it, for example `lines[3].amount`.
pub(crate) fn at<'a>(invoice: &'a Value, path: &str) -> Option<&'a Value> {
    let pointer = path.replace(['.', '['], "/").replace(']', "");
    invoice.pointer(&format!("/{pointer}"))
}
