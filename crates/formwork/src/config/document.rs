use std::ops::Range;
use std::sync::Arc;

use formwork_core::looks_like_key;
use formwork_json::{Rounded, rounded};
use formwork_schema::nearest;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::ConfigError;
use super::overlay::Edit;

/// A TOML text with edits. It is parsed again for each read, so that errors have a location.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) file: Arc<str>,
    pub(crate) text: Arc<str>,
    /// The edits in order; later ones take precedence.
    pub(crate) edits: Vec<Edit>,
    /// Whether the file may run programs.
    pub(crate) is_trusted: bool,
}

impl Document {
    pub(crate) fn new(file: &str, text: &str, edits: Vec<Edit>) -> Self {
        Self { file: file.into(), text: text.into(), edits, is_trusted: true }
    }

    /// Returns the whole document with its edits.
    pub(crate) fn table(&self) -> Result<DeTable<'_>, ConfigError> {
        let table = DeTable::parse(&self.text).map_err(|error| self.error(error.span(), error.message()))?;
        let mut table = table.into_inner();
        for (index, edit) in self.edits.iter().enumerate() {
            edit.apply(&mut table, self.place_of(index))
                .map_err(|why| ConfigError::new(&edit.source, why))?;
        }
        Ok(table)
    }

    /// Returns a sentence for each fraction that is rounded to a double, with its location. Another number that a double changes
    /// is an error.
    pub(crate) fn rounded(&self) -> Result<Vec<String>, ConfigError> {
        fn collect(value: &Spanned<DeValue<'_>>, found: &mut Vec<(Range<usize>, Rounded)>) {
            match value.get_ref() {
                DeValue::Float(number) => {
                    let text = number.as_str().trim_start_matches('+').replace('_', "");
                    found.extend(rounded(&text).into_iter().map(|number| (value.span(), number)));
                }
                DeValue::Array(items) => items.iter().for_each(|item| collect(item, found)),
                DeValue::Table(members) => members.values().for_each(|member| collect(member, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        self.table()?.values().for_each(|value| collect(value, &mut found));
        let sentence = |(span, number): (_, Rounded)| {
            let error = self.error(Some(span), &number.detail());
            if number.is_tolerable() { Ok(error.to_string()) } else { Err(error) }
        };
        found.into_iter().map(sentence).collect()
    }

    /// Returns the span of the values of an edit. It lies after the end of the text, so that the span of an error identifies the edit.
    fn place_of(&self, index: usize) -> Range<usize> {
        let at = self.text.len() + 1 + index;
        at..at + 1
    }

    /// Returns the edit that a span belongs to, or `None` for a span within the text.
    pub(super) fn edit_at(&self, span: &Range<usize>) -> Option<&Edit> {
        self.edits.get(span.start.checked_sub(self.text.len() + 1)?)
    }

    /// Returns an error for an additional property of the request body that Formwork writes itself: it would delete the schema or
    /// the text.
    pub(crate) fn check_extra(&self) -> Result<(), ConfigError> {
        const MODES: &str = "`modes` selects the form in which the schema is sent";
        const TEXT: &str = "the text, `--system` and the examples of a request are its messages";
        const OWNED: [(&[&str], &str); 21] = [
            (&["extra", "model"], "`model` of the section names the model"),
            (&["extra", "stream"], "`stream` of the section sets it"),
            (&["extra", "messages"], TEXT),
            (&["extra", "input"], TEXT),
            (&["extra", "instructions"], TEXT),
            (&["extra", "system"], TEXT),
            (&["extra", "response_format"], MODES),
            (&["extra", "text", "format"], MODES),
            (&["extra", "output_config", "format"], MODES),
            (&["extra", "output_format"], MODES),
            (&["extra", "tool_choice"], MODES),
            (&["extra", "toolConfig"], MODES),
            (&["extra", "outputConfig", "textFormat"], MODES),
            (&["extra", "contents"], TEXT),
            (&["extra", "systemInstruction"], TEXT),
            (&["extra", "generationConfig"], "`generation` of the section adds to it"),
            (&["extra", "format"], MODES),
            (&["generation", "responseSchema"], MODES),
            (&["generation", "responseJsonSchema"], MODES),
            (&["generation", "responseMimeType"], MODES),
            (&["options", "format"], MODES),
        ];

        for (name, _, section) in self.providers()? {
            for (path, instead) in OWNED {
                let mut found: Option<(&Spanned<_>, &Spanned<DeValue<'_>>)> = None;
                for part in path {
                    let table = match found {
                        None => Some(&section),
                        Some((_, value)) => value.get_ref().as_table(),
                    };
                    found = table.and_then(|table| table.get_key_value(*part));
                    if found.is_none() {
                        break;
                    }
                }
                if let Some((key, _)) = found {
                    let message = format!(
                        "provider `{name}`: Formwork writes `{}` itself: {instead}",
                        path[1..].join(".")
                    );
                    return Err(self.error(Some(key.span()), &message));
                }
            }
        }
        Ok(())
    }

    /// Returns an error for a list in the place of a table. Deserializing would take it as the values of the members in order.
    pub(crate) fn check_tables(&self) -> Result<(), ConfigError> {
        const TABLES: [&str; 9] = [
            "defaults",
            "serve",
            "telemetry",
            "health",
            "redaction",
            "price",
            "capabilities",
            "thinking",
            "settings",
        ];

        fn find<'d>(table: &'d DeTable<'_>) -> Option<(&'d str, Range<usize>)> {
            table.iter().find_map(|(name, value)| match value.get_ref() {
                DeValue::Array(_) if TABLES.contains(&name.get_ref().as_ref()) => {
                    Some((name.get_ref().as_ref(), value.span()))
                }
                DeValue::Table(members) => find(members),
                _ => None,
            })
        }
        let table = self.table()?;
        let Some((name, span)) = find(&table) else { return Ok(()) };
        Err(self
            .error(Some(span), &format!("`{name}` is a table, such as {{ name = value }}, and not a list")))
    }

    /// Returns an error for a value with an environment variable that is not expanded, such as `${HOME}`. Commands and what is sent to
    /// servers as it is may contain such texts.
    pub(crate) fn check_expanded(&self) -> Result<(), ConfigError> {
        const VERBATIM: [&str; 5] = ["api_key_command", "extra", "generation", "options", "redaction"];

        fn find<'d>(name: &str, value: &'d Spanned<DeValue<'_>>) -> Option<(&'d str, Range<usize>)> {
            match value.get_ref() {
                _ if VERBATIM.contains(&name) => None,
                DeValue::String(text) => variable_in(text).map(|variable| (variable, value.span())),
                DeValue::Array(items) => items.iter().find_map(|item| find("", item)),
                DeValue::Table(members) => {
                    members.iter().find_map(|(name, member)| find(name.get_ref().as_ref(), member))
                }
                _ => None,
            }
        }
        let table = self.table()?;
        let found = table.iter().find_map(|(name, value)| find(name.get_ref().as_ref(), value));
        let Some((variable, span)) = found else { return Ok(()) };
        let message = format!(
            "`{variable}` is not expanded in this file: `api_key_env` and `secret_headers` take the name of a variable without \
             `${{}}`, and a variable such as FORMWORK__PROVIDERS__NAME__BASE_URL sets any other value"
        );
        Err(self.error(Some(span), &message))
    }

    /// Returns the tables of `providers` with their locations; none if the key is missing.
    pub(crate) fn providers(&self) -> Result<Vec<(String, Range<usize>, DeTable<'_>)>, ConfigError> {
        let Some(providers) = self.table()?.remove("providers") else { return Ok(Vec::new()) };
        let span = providers.span();
        let DeValue::Table(providers) = providers.into_inner() else {
            return Err(self.error(Some(span), "`providers` is a table of tables: [providers.primary]"));
        };
        providers
            .into_iter()
            .map(|(name, section)| {
                let (name, span) = (name.into_inner().into_owned(), section.span());
                match section.into_inner() {
                    DeValue::Table(table) => Ok((name, span, table)),
                    _ => {
                        let message = format!("`providers.{name}` is a table: [providers.{name}]");
                        Err(self.error(Some(span), &message))
                    }
                }
            })
            .collect()
    }

    /// Deserializes a part of the document. `also` are keys that are valid in it and deserialized elsewhere.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        table: DeTable<'_>,
        span: Range<usize>,
        also: &[&str],
    ) -> Result<T, ConfigError> {
        T::deserialize(Deserializer::from(Spanned::new(span.clone(), table))).map_err(|error| {
            let span = error.span().filter(|span| !span.is_empty()).unwrap_or(span);
            self.error(Some(span), &advised(error.message(), also))
        })
    }

    /// Returns the span of a setting of a section, or of the section if it does not have this setting.
    pub(crate) fn setting(&self, section: &str, setting: &str) -> Option<Range<usize>> {
        let table = self.table().ok()?;
        let (_, section) = table.iter().find(|(name, _)| name.get_ref() == section)?;
        let settings = section.get_ref().as_table();
        let found = settings.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == setting));
        Some(found.map_or_else(|| section.span(), |(_, value)| value.span()))
    }

    /// Returns the span of a text in quotation marks.
    pub(crate) fn quoted(&self, text: &str) -> Option<Range<usize>> {
        let at = self.text.find(&format!("\"{text}\""))?;
        Some(at..at + text.len() + 2)
    }

    /// Returns an error with the line and column of a span, or with the name of the variable that set the value.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: &str) -> ConfigError {
        if let Some(edit) = span.as_ref().and_then(|span| self.edit_at(span)) {
            return ConfigError::new(&edit.source, message);
        }
        let at = span.and_then(|span| self.text.get(..span.start)).map(|before| {
            let line = before.rsplit('\n').next().unwrap_or_default();
            (before.matches('\n').count() + 1, line.chars().count() + 1)
        });
        let message = message.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
        ConfigError { at, ..ConfigError::new(&self.file, message) }
    }
}

/// The names of settings in the libraries of others, without case and separators, with the name here.
const SYNONYMS: [(&[&str], &str); 22] = [
    (&["maxretries", "numretries", "retrycount"], "retries"),
    (&["timeout", "requesttimeout", "timeoutsecs", "readtimeout"], "timeout_seconds"),
    (&["connecttimeout"], "connect_timeout_seconds"),
    (&["streamtimeout", "idletimeout"], "idle_timeout_seconds"),
    (&["apikey", "key", "token", "authtoken", "secret"], "api_key_env"),
    (&["apibase", "url", "host", "endpoint", "baseurl", "azureendpoint", "serverurl", "address"], "base_url"),
    (&["url", "host", "otlpendpoint"], "endpoint"),
    (
        &["modelname", "modelid", "deployment", "deploymentname", "azuredeployment", "path", "modelpath"],
        "model",
    ),
    (&["provider", "type", "vendor"], "kind"),
    (&["maxtokens", "maxoutputtokens", "maxcompletiontokens", "numpredict"], "max_tokens"),
    (&["maxconcurrency", "maxconcurrent", "parallel", "maxparallelrequests", "parallelism"], "concurrency"),
    (&["requestsperminute", "ratelimit"], "rpm"),
    (&["tokensperminute"], "tpm"),
    (&["contextlength", "contextsize", "nctx", "maxmodellen"], "num_ctx"),
    (&["contextlength", "contextsize", "nctx", "numctx", "maxmodellen"], "context"),
    (&["defaultheaders", "extraheaders", "httpheaders"], "headers"),
    (&["extrabody", "modelkwargs", "additionalproperties"], "extra"),
    (&["apiversionquery", "openaiapiversion"], "api_version"),
    (&["thinking", "reasoning"], "think"),
    (&["maxbudget", "budget", "maxcost", "costlimit"], "max_cost_usd"),
    (&["attempts", "maxattempts", "tries"], "max_attempts"),
    (&["inputcostpertoken", "outputcostpertoken", "cost"], "price"),
];

/// Returns the first `${NAME}` in a text.
fn variable_in(text: &str) -> Option<&str> {
    text.match_indices("${").find_map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find('}')?;
        let name = &rest[2..end];
        let is_name =
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_name.then(|| &rest[..=end])
    })
}

/// Returns a name in lower case without separators.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// Returns serde's message about an unknown name, with the most similar valid name instead of all valid names.
fn advised(message: &str, also: &[&str]) -> String {
    // A value of the wrong type is quoted, and may be a key.
    if let Some((before, rest)) = message.split_once("string \"")
        && let Some((value, after)) = rest.split_once('"')
        && looks_like_key(value)
    {
        return format!("{before}a string that looks like a key{after}");
    }
    let Some(rest) = message.strip_prefix("unknown field `").or(message.strip_prefix("unknown variant `"))
    else {
        return message.to_owned();
    };
    let mut quoted = rest.split('`').step_by(2);
    let Some(unknown) = quoted.next() else { return message.to_owned() };
    let is_ours = |name: &str| quoted.clone().chain(also.iter().copied()).any(|valid| valid == name);
    let synonyms = SYNONYMS.iter().filter(|(theirs, _)| theirs.contains(&plain(unknown).as_str()));
    if let Some((_, ours)) = synonyms.into_iter().find(|(_, ours)| is_ours(ours)) {
        return format!("there is no `{unknown}` here: the setting is called `{ours}`");
    }
    match nearest(unknown, quoted.chain(also.iter().copied())) {
        Some(meant) => format!("there is no `{unknown}` here: did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}
