use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use formwork_core::{Fault, FaultKind};
use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// The minimum length of a part of a secret that is recognised, in bytes: shorter parts occur in ordinary words.
const MIN_PART: usize = 8;

/// The maximum number of forms of secrets that credentials have sent. A token has about ten, and credentials get one an hour.
const MAX_SENT: usize = 256;

/// The secrets of this process, once [`keep_secrets`] was called: those of its transports, and those that credentials have sent.
static KEPT: OnceLock<(RwLock<Secrets>, RwLock<Vec<Sent>>)> = OnceLock::new();

type Sent = Weak<Mutex<Secrets>>;

/// Keeps all secrets that transports of this process have from now on, for [`redact`]: keys, secret headers, passwords of proxies, and
/// the newest tokens of credentials. They stay in memory until the process ends. A program calls it before it creates its transports.
pub fn keep_secrets() {
    KEPT.get_or_init(Default::default);
}

/// Returns a text without the secrets that were kept since [`keep_secrets`], in any of the encodings that messages have them in.
///
/// ```
/// use formwork_http::{HttpTransport, Key};
/// use formwork_wire::Auth;
///
/// formwork_http::keep_secrets();
/// let key = Key::new("the vault", "0123-4567-89ab-cdef".to_owned())?;
/// let _transport = HttpTransport::new("https://api.example.com/v1")?.with_key(Auth::BEARER, key)?;
/// assert_eq!(formwork_http::redact("the key 0123-4567-89ab-cdef"), "the key [redacted]");
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
pub fn redact(text: &str) -> String {
    let Some((own, sent)) = KEPT.get() else { return text.to_owned() };
    let text = own.read().unwrap_or_else(PoisonError::into_inner).redact(text);
    let sent = sent.read().unwrap_or_else(PoisonError::into_inner);
    sent.iter().filter_map(Weak::upgrade).fold(text, |text, sent| lock(&sent).redact(&text))
}

/// The secrets of a transport, which no message may contain.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(crate) fn add(&mut self, secret: &str) {
        if let Some(kept) = KEPT.get() {
            kept.0.write().unwrap_or_else(PoisonError::into_inner).insert(secret);
        }
        self.insert(secret);
    }

    fn insert(&mut self, secret: &str) {
        // A shorter key, such as `none` for a server on this machine, is no secret and occurs in ordinary words. The secret itself is the
        // first of its forms that is forgotten.
        if secret.len() < MIN_PART || self.0.iter().any(|known| known.expose_secret() == secret) {
            return;
        }
        // Servers' messages are quoted, which escapes quotation marks and backslashes.
        let quoted = format!("{secret:?}");
        let escaped = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(&quoted);
        let mut forms = vec![secret.to_owned(), escaped.to_owned()];
        for reserved in [RESERVED, IN_PATHS] {
            let percent = utf8_percent_encode(secret, reserved).to_string();
            forms.extend([with_small_digits(&percent), percent]);
        }
        // Within a longer text in base64, such as `user:KEY`, a secret has one of three forms.
        forms.extend((0..3).flat_map(|before| base64(secret, before)));
        for form in forms {
            if !self.0.iter().any(|known| known.expose_secret() == form) {
                self.0.push(form.into());
            }
        }
    }

    /// Forgets the oldest forms beyond the newest [`MAX_SENT`].
    fn keep_newest(&mut self) {
        self.0.drain(..self.0.len().saturating_sub(MAX_SENT));
    }

    /// Returns the text without secrets. Half of a secret is replaced too, because servers' messages are cut.
    pub(crate) fn redact(&self, text: &str) -> String {
        let next = |secret: &str, from: usize| {
            let half = secret.floor_char_boundary((secret.len() / 2).max(MIN_PART).min(secret.len()));
            text[from..].find(&secret[..half]).map(|at| from + at)
        };
        let same = |secret: &str, at: usize| {
            let same = text[at..].chars().zip(secret.chars()).take_while(|(a, b)| a == b);
            same.map(|(a, _)| a.len_utf8()).sum::<usize>()
        };
        // The next place of each form, so that a text is searched once for each of them however many secrets it has.
        let secrets = self.0.iter().map(ExposeSecret::expose_secret);
        let mut places: Vec<(&str, usize)> =
            secrets.filter_map(|secret| Some((secret, next(secret, 0)?))).collect();
        let (mut out, mut from) = (String::new(), 0);
        // Several secrets, or forms of one, may begin alike: the one that goes on longest is there.
        let first = |places: &[(&str, usize)]| {
            let found = places.iter().map(|(secret, at)| (*at, same(secret, *at)));
            found.min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
        };
        while let Some((at, length)) = first(&places) {
            out.push_str(&text[from..at]);
            out.push_str(REDACTED);
            from = at + length;
            places.retain_mut(|(secret, at)| {
                *at >= from || next(secret, from).inspect(|next| *at = *next).is_some()
            });
        }
        out + &text[from..]
    }
}

/// The secrets that credentials have sent, because servers quote old ones too: the newest forms of them.
pub(crate) struct SentSecrets(Arc<Mutex<Secrets>>);

impl Default for SentSecrets {
    fn default() -> Self {
        let own = Arc::default();
        if let Some((_, sent)) = KEPT.get() {
            let mut sent = sent.write().unwrap_or_else(PoisonError::into_inner);
            sent.retain(|other| other.strong_count() > 0);
            sent.push(Arc::downgrade(&own));
        }
        Self(own)
    }
}

fn lock(secrets: &Mutex<Secrets>) -> MutexGuard<'_, Secrets> {
    secrets.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SentSecrets {
    pub(crate) fn add(&self, secret: &str) {
        let mut own = lock(&self.0);
        own.insert(secret);
        own.keep_newest();
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        lock(&self.0).redact(text)
    }
}

/// Returns a header's value that is never printed. `name` is the name of the secret in the fault.
pub(crate) fn sensitive(value: String, name: &str) -> Result<HeaderValue, Fault> {
    let value = HeaderValue::try_from(value);
    let mut value =
        value.map_err(|_| Fault::new(FaultKind::Auth, format!("the {name} fits into no header")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The characters that are percent-encoded: all but letters, digits and `-._~` (RFC 3986, section 2.1).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same in paths, which keep their slashes.
const IN_PATHS: &AsciiSet = &RESERVED.remove(b'/');

/// Returns the digits of a secret in base64, in both alphabets (RFC 4648), that do not depend on the bytes around it. `before` is
/// the number of bytes before it in its group of three. Nothing for a secret that is too short to be recognised.
fn base64(secret: &str, before: usize) -> Vec<String> {
    let bytes = [&[0; 2][..before], secret.as_bytes()].concat();
    // A digit has six bits; those of digits that also have bits of other bytes are left out.
    let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    let digits =
        [STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|alphabet| alphabet.encode(&bytes)[first..end].to_owned());
    digits.into_iter().filter(|digits| digits.len() >= MIN_PART).collect()
}

/// Returns a percent-encoded text with its hexadecimal digits in lower case.
fn with_small_digits(percent: &str) -> String {
    let mut parts = percent.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_at_checked(2) {
        Some((digits, after)) => text + "%" + &digits.to_lowercase() + after,
        None => text + "%" + part,
    })
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
            // A key that is too short to be one.
            ("äöü x", "äöü x"),
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
    fn no_part_of_a_secret_is_left_whatever_its_forms_begin_with() {
        let keys = [
            "ABSKQmVkcm9ja0FQSUtleS1hYmNk/efgh+ijklMNOPqrst==",
            "sk-s3cr3t/+=k",
            "sk-abcdefgh.ijklmnop:qrstuvwx",
            r#"Ab"cdEFGH\ijKL/mn"#,
        ];
        for key in keys {
            let mut secrets = Secrets::default();
            secrets.add("ABSKQmVkcm9ja0FQSUtleS1hYmNkxyz");
            secrets.add(key);
            let percent = super::utf8_percent_encode(key, super::RESERVED).to_string();
            let in_path = super::utf8_percent_encode(key, super::IN_PATHS).to_string();
            let quoted = format!("{key:?}");
            let forms =
                [key, &percent, &super::with_small_digits(&percent), &in_path, quoted.trim_matches('"')];
            for form in forms {
                assert_eq!(
                    secrets.redact(&format!("provided: {form}. {form}")),
                    "provided: [redacted]. [redacted]"
                );
                for end in (form.len() / 2).max(8)..form.len() {
                    let cut = secrets.redact(&form[..end]);
                    assert!(cut.starts_with("[redacted]") && cut.len() < 13, "{form} until {end}: {cut}");
                }
            }
        }
    }

    #[test]
    fn old_tokens_are_forgotten_and_the_newest_are_known() {
        let sent = super::SentSecrets::default();
        let token = |nth: usize| format!("ya29.token-{nth:05}-of-an-hour");
        (0..1000).for_each(|nth| sent.add(&token(nth)));
        assert_eq!(sent.redact(&token(999)), "[redacted]");
        assert_eq!(sent.redact(&token(980)), "[redacted]");
        assert!(sent.0.lock().unwrap().0.len() <= super::MAX_SENT);
    }

    #[test]
    fn a_text_full_of_secrets_is_searched_once() {
        let mut secrets = Secrets::default();
        secrets.add("sk-0123456789abcdef");
        let text = "sk-0123456789abcdef, ".repeat(100_000);
        assert_eq!(secrets.redact(&text), "[redacted], ".repeat(100_000));
    }

    #[test]
    fn a_secret_is_found_where_it_is_quoted() {
        let mut secrets = Secrets::default();
        secrets.add(r#"pass"word\secret"#);
        let message = format!("{:?}", r#"you sent pass"word\secret!"#);
        assert_eq!(secrets.redact(&message), r#""you sent [redacted]!""#);
    }
}
