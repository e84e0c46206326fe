//! Lists every setting of a configuration with its source.

use std::ops::Range;

use formwork_core::{is_secret_name, looks_like_key};
use schemars::JsonSchema;
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::Document;
use super::{Config, ConfigError};

/// A setting and its source.
///
/// ```
/// use formwork::config::Config;
///
/// let config = Config::from_toml("[providers.a]\nkind = \"ollama\"\nmodel = \"m\"")?;
/// let setting = &config.settings()?[0];
/// assert_eq!((setting.path.as_str(), setting.value.as_str()), ("providers.a.kind", "\"ollama\""));
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ConfigSetting")]
pub struct Setting {
    /// The path of the setting, such as `providers.primary.model`.
    pub path: String,
    /// The value as TOML, without secrets.
    pub value: String,
    /// The source: `line 7` of the file, or an environment variable.
    pub source: String,
}

/// The text in place of a secret.
const HIDDEN: &str = "[hidden]";

impl Config {
    /// Returns every setting of the file and the environment, in the order of the file. Settings with default values are not
    /// included.
    ///
    /// Secrets are hidden: passwords and query parameters of addresses, and values whose name suggests a secret.
    ///
    /// ```
    /// use formwork::config::Config;
    ///
    /// let config = Config::from_toml(
    ///     "[providers.a]\nkind = \"openai\"\nmodel = \"m\"\nheaders = { authorization = \"Bearer sk-1\" }",
    /// )?;
    /// let settings = config.settings()?;
    /// assert_eq!((settings[1].value.as_str(), settings[1].source.as_str()), ("\"m\"", "line 3"));
    /// assert_eq!(settings[2].path, "providers.a.headers.authorization");
    /// assert_eq!(settings[2].value, "\"[hidden]\"");
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`] if the text cannot be parsed, which does not happen for a [`Config`] that was read.
    pub fn settings(&self) -> Result<Vec<Setting>, ConfigError> {
        let mut settings = Vec::new();
        collect(self.document(), &self.document().table()?, "", &mut settings);
        settings.sort_by_key(|(start, _)| *start);
        Ok(settings.into_iter().map(|(_, setting)| setting).collect())
    }
}

fn collect(document: &Document, table: &DeTable<'_>, path: &str, out: &mut Vec<(usize, Setting)>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match value.get_ref() {
            DeValue::Table(inside) => collect(document, inside, &path, out),
            _ => {
                // A key may stand where the name of its variable belongs.
                let is_of_name = name.ends_with("_env") || path.contains(".secret_headers.");
                let is_key = is_of_name && value.get_ref().as_str().is_some_and(looks_like_key);
                let value_text = display(value, is_key || !is_of_name && is_secret(name));
                out.push((
                    key.span().start,
                    Setting { path, value: value_text, source: source(document, &key.span()) },
                ));
            }
        }
    }
}

fn source(document: &Document, span: &Range<usize>) -> String {
    match document.edit_at(span) {
        Some(edit) => edit.source().to_owned(),
        None => {
            let before = document.text.get(..span.start).unwrap_or_default();
            format!("line {}", before.matches('\n').count() + 1)
        }
    }
}

/// Returns whether the name of a setting or header suggests a secret value. Settings that end in `_env` contain the name of a
/// variable, and some settings count tokens of a model.
fn is_secret(name: &str) -> bool {
    const PUBLIC: [&str; 8] = [
        "max_tokens",
        "tokenizer",
        "api_key_command",
        "api_key_file",
        "api_key_header",
        "api_key_lifetime_seconds",
        "client_key_file",
        "credentials",
    ];
    let name = name.to_lowercase();
    let is_public = name.ends_with("_env") || PUBLIC.contains(&name.as_str());
    !is_public && is_secret_name(&name)
}

fn display(value: &Spanned<DeValue<'_>>, secret: bool) -> String {
    match value.get_ref() {
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) if secret => format!("{HIDDEN:?}"),
        DeValue::String(text) => format!("{:?}", without_secrets(text)),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| display(item, secret)).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(members) => {
            let members = members.iter().map(|(name, value)| {
                let name = name.get_ref();
                format!("{name} = {}", display(value, secret || is_secret(name)))
            });
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns an address without user name, password and the values of its query, except `api-version`. Returns any other text
/// unchanged.
///
/// ```
/// use formwork::config::without_secrets;
///
/// assert_eq!(without_secrets("https://user:pass@h/v1?key=1"), "https://[hidden]@h/v1?key=[hidden]");
/// ```
pub fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (address, query) =
        rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
    let (host, path) = address.find('/').map_or((address, ""), |at| address.split_at(at));
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let query = query.map(|query| {
        let parts = query.split('&').map(|part| match part.split_once('=') {
            // An API version is not secret, and often the value that a user looks for.
            Some((name, _)) if name != "api-version" => format!("{name}={HIDDEN}"),
            _ => part.to_owned(),
        });
        format!("?{}", parts.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{host}{path}{}", query.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{is_secret, without_secrets};

    #[test]
    fn names_say_what_is_secret() {
        for name in ["api_key", "x-api-key", "Authorization", "Cookie", "proxy_password", "x-auth-token"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["api_key_env", "model", "max_tokens", "api_key_command", "x-team", "base_url"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn addresses_lose_passwords_and_queries_and_nothing_else() {
        for (text, expected) in [
            ("http://localhost:11434", "http://localhost:11434"),
            ("http://user:pass@proxy:8080/x", "http://[hidden]@proxy:8080/x"),
            (
                "https://h/v1?key=abc&api-version=2024-10-21",
                "https://h/v1?key=[hidden]&api-version=2024-10-21",
            ),
            ("gpt-4o-mini@x", "gpt-4o-mini@x"),
            ("https://h/a@b", "https://h/a@b"),
            ("https://user@h?k", "https://[hidden]@h?k"),
        ] {
            assert_eq!(without_secrets(text), expected);
        }
    }
}
