/// Something that goes wrong with a call, for which each provider has its own response.
///
/// ```
/// use formwork_conformance::Trouble;
///
/// assert_eq!(Trouble::ALL.len(), 10);
/// assert_eq!(Trouble::CutToolCall.text(), r#"{"zulu": "a"#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trouble {
    /// The API key is wrong. Expected: a fault of the kind `auth`.
    WrongKey,
    /// The account has no credit left. Expected: a fault of the kind `no_credit`.
    NoCredit,
    /// The server does not have the model. Expected: a fault of the kind `unsupported`.
    UnknownModel,
    /// The server is overloaded. Expected: a fault of the kind `overloaded`.
    Overloaded,
    /// A filter blocked the prompt or the answer. Expected: an answer that ended as filtered or refused.
    SafetyBlock,
    /// The token limit cut the arguments of a tool call. Expected: an answer that ended by length, with the arguments so far.
    CutToolCall,
    /// Reasoning used all tokens. Expected: an answer without text that ended by length, with the reasoning.
    OnlyReasoning,
    /// The model ended without any text. Expected: an answer without text.
    Empty,
    /// A stream reports an error after a part of the answer. Expected: a fault with the server's message.
    ErrorWithin,
    /// The arguments of a tool call are a JSON string that contains the JSON. Expected: an answer with that JSON, or with the
    /// string.
    DoubleEncoded,
}

impl Trouble {
    /// All troubles.
    pub const ALL: [Self; 10] = [
        Self::WrongKey,
        Self::NoCredit,
        Self::UnknownModel,
        Self::Overloaded,
        Self::SafetyBlock,
        Self::CutToolCall,
        Self::OnlyReasoning,
        Self::Empty,
        Self::ErrorWithin,
        Self::DoubleEncoded,
    ];

    /// Returns the text that the model writes in this trouble: its reasoning for [`OnlyReasoning`](Self::OnlyReasoning), the
    /// arguments of the tool for [`CutToolCall`](Self::CutToolCall) and [`DoubleEncoded`](Self::DoubleEncoded), the message of
    /// the server for errors.
    pub const fn text(self) -> &'static str {
        match self {
            Self::WrongKey => "the key is not valid",
            Self::NoCredit => "the credit balance is too low",
            Self::UnknownModel => "there is no such model",
            Self::Overloaded => "the server is overloaded",
            Self::SafetyBlock | Self::Empty => "",
            Self::CutToolCall => r#"{"zulu": "a"#,
            Self::OnlyReasoning => "Let me think about it.",
            Self::ErrorWithin => "the stream broke",
            Self::DoubleEncoded => r#""{\"zulu\": \"a\", \"alpha\": 1, \"mike\": true}""#,
        }
    }
}
