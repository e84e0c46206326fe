use secrecy::{ExposeSecret, SecretString};

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// The minimum length of a part of a secret that is recognised, in bytes: shorter parts occur in ordinary words.
const MIN_PART: usize = 8;

/// The secrets of a transport, which no message may contain.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(crate) fn add(&mut self, secret: &str) {
        if secret.is_empty() {
            return;
        }
        self.0.push(secret.into());
        // Servers' messages are quoted, which escapes quotation marks and backslashes.
        let quoted = format!("{secret:?}");
        let escaped = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(&quoted);
        if escaped != secret {
            self.0.push(escaped.into());
        }
        // A secret may be the beginning of another one, so the longest are replaced first.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
    }

    /// Returns the text without secrets. Half of a secret is replaced too, because servers' messages are cut.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            text = without(&text, secret.expose_secret());
        }
        text
    }
}

fn without(text: &str, secret: &str) -> String {
    let half = secret.floor_char_boundary((secret.len() / 2).max(MIN_PART).min(secret.len()));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&secret[..half]) {
        out.push_str(&rest[..at]);
        out.push_str(REDACTED);
        let found = &rest[at..];
        let same =
            found.chars().zip(secret.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        rest = &found[same..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::Secrets;

    #[test]
    fn whole_secrets_and_halves_of_them_are_hidden() {
        let mut secrets = Secrets::default();
        secrets.add("sk-0123456789abcdef");
        secrets.add("sk-0123456789abcdef-longer");
        secrets.add("x");
        for (text, hidden) in [
            ("key sk-0123456789abcdef.", "key [redacted]."),
            ("key sk-0123456789abcdef-longer.", "key [redacted]."),
            ("cut sk-0123456789", "cut [redacted]"),
            ("twice sk-0123456789abcdef sk-0123456789abcdef", "twice [redacted] [redacted]"),
            ("sk-0 is not it", "sk-0 is not it"),
            ("äöü x", "äöü [redacted]"),
            ("", ""),
        ] {
            assert_eq!(secrets.redact(text), hidden);
        }
    }

    #[test]
    fn a_secret_is_found_where_it_is_quoted() {
        let mut secrets = Secrets::default();
        secrets.add(r#"pass"word\secret"#);
        let message = format!("{:?}", r#"you sent pass"word\secret!"#);
        assert_eq!(secrets.redact(&message), r#""you sent [redacted]!""#);
    }
}
