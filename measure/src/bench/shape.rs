//! Measures parsing a shape of 200 lines.

use std::fmt::Write as _;

use formwork_shape::Shape;

use super::measure::pair;
use super::report::{Goal, Row};
use crate::Failure;

/// The number of lines of the shape.
const LINES: usize = 200;

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let text = text();
    let shape = Shape::parse(&text).map_err(|error| error.pointed("the benchmark's shape"))?;
    let schema = serde_json::to_string_pretty(formwork_core::Schema::document(&shape))
        .map_err(|error| error.to_string())?;
    // The peer parses the equivalent JSON Schema, which a shape replaces.
    let pair = pair(|| Shape::parse(&text), || serde_json::from_str::<serde_json::Value>(&schema)).await;
    let lines = text.lines().count();
    let from = format!(
        "{lines} lines, {} bytes; its JSON Schema by serde_json: {:.1} µs",
        text.len(),
        pair.peer / 1000.0
    );
    Ok(vec![Row::figure(
        "a shape of 200 lines, parsed",
        from,
        pair.ours / 1000.0,
        "µs",
        Some(Goal::AtMost(200.0)),
    )])
}

/// Returns a shape with nested objects, all kinds of types, and a comment on every line.
fn text() -> String {
    let mut text = "{\n".to_owned();
    for group in 0..(LINES - 2) / 6 {
        _ = write!(
            text,
            "  \"group_{group}\": {{ // the group number {group}\n    \"name\": string, // as people call it\n    \
             \"about\"?: markdown, // what it is for\n    \"state\": \"open\" | \"closed\" | \"unknown\", // as of today\n    \
             \"weights\": [number | null] // one for each member\n  }},\n"
        );
    }
    text.push_str("  \"count\": integer\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_a_shape_of_so_many_lines() {
        let text = text();
        assert!(Shape::parse(&text).is_ok());
        assert!((LINES - 5..=LINES + 5).contains(&text.lines().count()), "{}", text.lines().count());
    }
}
