//! Texts in markup.

use std::fmt::Write as _;

/// Adds a row of a table.
pub(super) fn row(out: &mut String, cells: &[&str]) {
    out.push_str("<tr>");
    for cell in cells {
        _ = write!(out, "<td>{}", escaped(cell));
    }
    out.push_str("</tr>");
}

/// Returns a text that cannot be read as markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
