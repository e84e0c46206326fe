use serde_json::Value;

/// The maximum number of characters of a shown value.
const MAX_VALUE: usize = 300;

/// Returns a value as text for HTML: a string without its quotes, at most 300 characters.
///
/// ```
/// assert_eq!(formwork_evidence::html_value(&serde_json::json!("<b>")), "&lt;b&gt;");
/// ```
pub fn html_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut shown: String = text.chars().take(MAX_VALUE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    html_text(&shown)
}

/// Returns a text for HTML. Control characters that HTML forbids become the replacement character; a form feed begins a page.
///
/// ```
/// assert_eq!(formwork_evidence::html_text("a < b\u{1}"), "a &lt; b\u{fffd}");
/// ```
pub fn html_text(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            '\'' => all.push_str("&#39;"),
            '\u{c}' => all.push('\n'),
            '\n' | '\t' => all.push(c),
            '\r' => {}
            c if c.is_control() => all.push('\u{fffd}'),
            c => all.push(c),
        }
    }
    all
}
