//! The characters of JSON strings.

use std::borrow::Cow;

/// Returns the text of a JSON string without its quotes and escapes.
///
/// ```
/// assert_eq!(formwork_json::unquoted(r#""caf\u00e9""#), "café");
/// ```
pub fn unquoted(quoted: &str) -> Cow<'_, str> {
    let raw = quoted.strip_prefix('"').unwrap_or(quoted);
    match raw.strip_suffix('"') {
        Some(plain) if !plain.contains('\\') => plain.into(),
        _ => characters(raw).map(|(_, character)| character).collect::<String>().into(),
    }
}

/// Returns the characters of a JSON string without its opening quote, each with the end of its bytes. They end at the closing quote,
/// and before an escape that is incomplete or that JSON does not have.
///
/// ```
/// let characters: Vec<_> = formwork_json::characters(r"a\u00e9\ud83d\ude00\ud8").collect();
/// assert_eq!(characters, [(1, 'a'), (7, 'é'), (19, '😀')]);
/// ```
pub fn characters(raw: &str) -> impl Iterator<Item = (usize, char)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = raw.get(at..)?;
        let mut bytes = rest.chars();
        let (len, read) = match bytes.next()? {
            '"' => return None,
            '\\' => match bytes.next()? {
                'b' => (2, '\u{8}'),
                'f' => (2, '\u{C}'),
                'n' => (2, '\n'),
                'r' => (2, '\r'),
                't' => (2, '\t'),
                'u' => {
                    let unit = |from: usize| u16::from_str_radix(rest.get(from..from + 4)?, 16).ok();
                    let first = unit(2)?;
                    let low = (0xD800..0xDC00).contains(&first) && rest.get(6..8)? == "\\u";
                    let units = [first, if low { unit(8)? } else { 0 }];
                    let len = if low { 12 } else { 6 };
                    (len, char::decode_utf16(units).next()?.ok()?)
                }
                other @ ('"' | '\\' | '/') => (2, other),
                _ => return None,
            },
            plain => (plain.len_utf8(), plain),
        };
        at += len;
        Some((at, read))
    })
}
