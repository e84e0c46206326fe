use std::borrow::Cow;

/// Returns a path with `[*]` in the place of every index, as rollups count it: `$.items[*].price`.
pub(crate) fn general(path: &str) -> Cow<'_, str> {
    let mut general = String::new();
    let mut rest = path;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open + 1);
        general.push_str(before);
        let digits = from.bytes().take_while(u8::is_ascii_digit).count();
        rest = match from.get(digits..) {
            Some(after) if digits > 0 && after.starts_with(']') => {
                general.push('*');
                after
            }
            _ => from,
        };
    }
    if general.is_empty() {
        return Cow::Borrowed(path);
    }
    general.push_str(rest);
    Cow::Owned(general)
}
