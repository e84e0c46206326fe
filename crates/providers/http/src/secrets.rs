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
        let mut forms = vec![escaped.to_owned(), percent(secret), percent(secret).to_lowercase()];
        // Within a longer text in base64, such as `user:KEY`, a secret has one of three forms.
        forms.extend((0..3).flat_map(|before| base64(secret, before)));
        for form in forms {
            if form != secret && !self.0.iter().any(|known| known.expose_secret() == form) {
                self.0.push(form.into());
            }
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

/// Returns a text with all but letters, digits and `-._~` percent-encoded (RFC 3986, section 2.1).
fn percent(secret: &str) -> String {
    let encoded = secret.bytes().map(|byte| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Returns the digits of a secret in base64, in both alphabets (RFC 4648), that do not depend on the bytes around it. `before` is
/// the number of bytes before it in its group of three. Nothing for a secret that is too short to be recognised.
fn base64(secret: &str, before: usize) -> Vec<String> {
    let alphabet = |end: &str| {
        let digits = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(end.chars());
        digits.collect::<Vec<char>>()
    };
    let bits: Vec<u8> = std::iter::repeat_n(0, before)
        .chain(secret.bytes())
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let first = (before * 8).div_ceil(6);
    let digits: Vec<usize> = bits
        .chunks_exact(6)
        .skip(first)
        .map(|six| six.iter().fold(0, |digit, bit| digit << 1 | usize::from(*bit)))
        .collect();
    if digits.len() < MIN_PART {
        return Vec::new();
    }
    let form = |end| {
        let alphabet = alphabet(end);
        digits.iter().filter_map(|digit| alphabet.get(*digit)).collect()
    };
    vec![form("+/"), form("-_")]
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
    fn a_secret_is_found_in_every_encoding() {
        let mut secrets = Secrets::default();
        secrets.add("pa/ss?word=secret+1");
        for (text, hidden) in [
            ("key=pa%2Fss%3Fword%3Dsecret%2B1&", "key=[redacted]&"),
            ("key=pa%2fss%3fword%3dsecret%2b1&", "key=[redacted]&"),
            // `pa/ss?word=secret+1`, `a:pa/ss?word=secret+1!` and `me:pa/ss?word=secret+1:x`, in base64.
            ("cGEvc3M/d29yZD1zZWNyZXQrMQ==", "[redacted]Q=="),
            ("YTpwYS9zcz93b3JkPXNlY3JldCsxIQ==", "YTp[redacted]IQ=="),
            ("bWU6cGEvc3M/d29yZD1zZWNyZXQrMTp4", "bWU6[redacted]Tp4"),
            ("bWU6cGEvc3M_d29yZD1zZWNyZXQrMTp4", "bWU6[redacted]Tp4"),
            ("cGEvdGg=", "cGEvdGg="),
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
