//! Arguments that should be a text and name its source instead.

use std::path::Path;

/// An argument that names the source of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file, or `-` for standard input: its name.
    File(String),
    /// An address on the web, which nothing downloads.
    Url(String),
}

impl Source {
    /// Returns the source that an argument names: `-`, `@file`, an existing file or a URL. `None` for a text.
    pub(crate) fn named_by(argument: &str) -> Option<Self> {
        let word = argument.trim();
        if word.is_empty() || word.len() > MAX || word.contains('\n') {
            return None;
        }
        let is_one_word = !word.contains(char::is_whitespace);
        if let Some(file) = word.strip_prefix('@').filter(|file| !file.is_empty())
            && (is_one_word || Path::new(file).is_file())
        {
            return Some(Self::File(file.to_owned()));
        }
        let is_url = ["http://", "https://", "ftp://", "file://"]
            .iter()
            .any(|scheme| word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
        match () {
            () if is_url && is_one_word => Some(Self::Url(word.to_owned())),
            () if word == "-" || Path::new(word).is_file() => Some(Self::File(word.to_owned())),
            () => None,
        }
    }
}

/// The maximum length of the name of a source in bytes. A longer argument is a text.
const MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_names_a_source_is_no_text() {
        let file = |name: &str| Some(Source::File(name.to_owned()));
        let url = |address: &str| Some(Source::Url(address.to_owned()));
        for (argument, expected) in [
            ("-", file("-")),
            (" - ", file("-")),
            ("@letter.txt", file("letter.txt")),
            ("@-", file("-")),
            ("Cargo.toml", file("Cargo.toml")),
            ("src/argument.rs", file("src/argument.rs")),
            ("https://example.com/a?b=c", url("https://example.com/a?b=c")),
            ("HTTP://EXAMPLE.COM", url("HTTP://EXAMPLE.COM")),
            ("file:///tmp/a.txt", url("file:///tmp/a.txt")),
            ("@ada wrote to me", None),
            ("see https://example.com", None),
            ("https://example.com is down", None),
            ("missing.txt", None),
            ("src", None),
            ("-5 degrees", None),
            ("@", None),
            ("", None),
            ("ada@example.com", None),
        ] {
            assert_eq!(Source::named_by(argument), expected, "{argument}");
        }
    }
}
