//! Text for people: lines that end between words.

use unicode_width::UnicodeWidthStr as _;

/// Wraps a text: no line is wider than `width` columns, except for single words that are. Line breaks of the text stay, and
/// control characters are removed. The result ends with a line break.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 40 + 1);
    for line in text.lines() {
        let mut used = 0;
        for word in line.split_whitespace() {
            let word: String = word.chars().filter(|letter| !letter.is_control()).collect();
            let columns = word.width();
            if used > 0 && used + 1 + columns <= width {
                out.push(' ');
                used += 1;
            } else if used > 0 {
                out.push('\n');
                used = 0;
            }
            out.push_str(&word);
            used += columns;
        }
        out.push('\n');
    }
    if out.is_empty() {
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_no_word_is_lost() {
        let text = "the quick brown\u{1b} fox\n\njumps \u{6f22}\u{5b57}\u{6f22}\u{5b57} over averyveryverylongword ok";
        for width in 1..40 {
            let out = wrapped(text, width);
            let words = |text: &str| {
                text.replace('\u{1b}', "").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(words(&out), words(text));
            assert!(out.lines().all(|line| line.width() <= width || !line.contains(' ')), "{out}");
            assert!(out.contains("fox\n\njumps") && out.ends_with('\n'), "{out}");
        }
        // Two columns for each letter of a wide script.
        assert_eq!(wrapped("\u{6f22}\u{5b57} \u{6f22}", 6), "\u{6f22}\u{5b57}\n\u{6f22}\n");
        assert_eq!(wrapped("", 9), "\n");
    }
}
