//! Measures reading a long answer along with its contract, in pieces as small as those of a stream.

use std::sync::Arc;

use formwork_core::{Level, Outline, Outlook, Reader, Structure};
use serde_json::{Value, json};

use super::measure::pair;
use super::report::{Goal, Row};
use crate::Failure;

/// The number of items of the document.
const ITEMS: usize = 2_000;

/// The number of bytes of a piece: about one token.
const PIECE: usize = 4;

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let (outline, text) = (outline()?, text());
    let outlook = read(&outline, &text);
    if !matches!(outlook, Outlook::Complete { .. }) {
        return Err(format!("the document of the benchmark is {outlook:?}").into());
    }
    let pair = pair(|| read(&outline, &text), || serde_json::from_str::<Value>(&text)).await;
    let what = format!(
        "an answer of {} kB in pieces of {PIECE} bytes, by its contract; serde_json once",
        text.len() / 1000
    );
    Ok(vec![Row::ratio(&what, &pair, Some(Goal::AtMost(4.0)))])
}

fn read(outline: &Outline, text: &str) -> Outlook {
    let mut reader = Reader::new(Level::Clean);
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
        reader.push(outline, piece, |_| {});
        rest = after;
    }
    reader.end(outline, |_| {});
    reader.outlook().clone()
}

/// Returns the contract: bounds, lengths, an `enum`, a union, closed objects.
fn outline() -> Result<Outline, Failure> {
    let item = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "name": {"type": "string", "minLength": 3, "maxLength": 80},
            "price": {"type": "number", "minimum": 0, "maximum": 100_000},
            "tags": {"type": "array", "items": {"enum": ["new", "sale", "rare"]}, "maxItems": 5},
            "stock": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["id", "name", "price", "tags", "stock"],
        "additionalProperties": false,
    });
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}, "required": ["items"]});
    let structure: Arc<dyn Structure> =
        formwork_schema::compile(&schema).map_err(|error| error.to_string())?;
    Ok(Outline::new(&schema, Some(structure)))
}

fn text() -> String {
    let item = |id: usize| {
        let stock = if id.is_multiple_of(3) { Value::Null } else { json!(id) };
        json!({
            "id": id, "name": format!("Line item number {id}, \"blue\" and rather long"), "price": id as f64 * 1.25,
            "tags": ["new", "rare"], "stock": stock,
        })
    };
    json!({"items": (0..ITEMS).map(item).collect::<Vec<_>>()}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_read_by_its_contract() {
        let outline = outline().unwrap();
        assert_eq!(read(&outline, &text()), Outlook::Complete { at: text().len() - 1 });
        let wrong = text().replacen("\"rare\"", "\"dear\"", 1);
        assert!(matches!(read(&outline, &wrong), Outlook::Impossible { .. }), "a wrong item is seen");
    }
}
