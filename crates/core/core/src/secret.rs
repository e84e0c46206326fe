//! Recognises secrets by their names and by their form, so that messages do not contain them.

/// The beginnings of keys of vendors.
const PREFIXES: [&str; 25] = [
    "sk-",
    "sk_",
    "gsk_",
    "hf_",
    "AIza",
    "xai-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "r8_",
    "nvapi-",
    "csk-",
    "pplx-",
    "tgp_",
    "fw_",
    "AKIA",
    "ASIA",
    "ya29.",
    "eyJ",
    "Bearer ",
    "bearer ",
    "Basic ",
    "Token ",
];

/// Returns whether a text that stands in the place of a variable's name, or of another public text, looks like an API key: it
/// begins like the key of a vendor, or is long and has characters that no variable's name has, or is a long mixture of small
/// letters and digits.
///
/// ```
/// use formwork_core::looks_like_key;
///
/// assert!(looks_like_key("sk-proj-0123456789") && looks_like_key("0f1e2d3c4b5a69788796a5b4c3d2e1f0"));
/// assert!(!looks_like_key("OPENAI_API_KEY") && !looks_like_key("team_key_2"));
/// ```
pub fn looks_like_key(text: &str) -> bool {
    let text = text.trim();
    let begins = PREFIXES.iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| rest.len() >= 8));
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_no_name = text.len() >= 16 && !text.chars().all(is_of_name);
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let is_mixed =
        text.len() >= 20 && !text.contains('_') && has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase);
    begins || is_no_name || is_mixed
}

/// Returns whether the name of a setting or header suggests a secret value.
///
/// ```
/// use formwork_core::is_secret_name;
///
/// assert!(is_secret_name("Authorization") && is_secret_name("x-api-key") && !is_secret_name("x-team"));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "key",
        "secret",
        "password",
        "passwd",
        "authorization",
        "cookie",
        "credential",
        "token",
        "signature",
    ];
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::looks_like_key;

    #[test]
    fn keys_are_told_from_names_of_variables() {
        for (text, is_key) in [
            ("sk-ant-api03-0123456789", true),
            ("gsk_0123456789abcdef", true),
            ("AIzaSyA0123456789abcdef", true),
            ("0f1e2d3c4b5a69788796a5b4c3d2e1f0", true),
            (" sk-0123456789\n", true),
            ("Bearer 0123456789", true),
            ("abcdefgh-ijkl-mnop", true),
            ("OPENAI_API_KEY", false),
            ("TEAM_KEY_2025_FOR_THE_NIGHTLY_RUNS", false),
            ("my_team_key_for_2025_runs", false),
            ("sk-", false),
            ("KEY", false),
            ("", false),
        ] {
            assert_eq!(looks_like_key(text), is_key, "{text}");
        }
    }
}
