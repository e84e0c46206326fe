//! Tokens with log probabilities, as servers return them.

use formwork_core::{Delta, LogProb};
use serde::Deserialize;
use serde_json::Value;

use crate::Deltas;
use crate::lenient::{List, Object};

/// A token of an answer, as servers of OpenAI's API, Ollama (`logprob`) and Gemini (`logProbability`) return it.
///
/// ```
/// use formwork_core::{Delta, LogProb};
/// use formwork_wire::lenient::List;
/// use formwork_wire::{Deltas, TokenShape};
///
/// let tokens = serde_json::from_str::<List<_>>(r#"[{"token": "ä", "logprob": -0.5, "bytes": [195, 164], "top_logprobs": []}]"#)?;
/// let mut out = Deltas::new();
/// TokenShape::push(tokens.0, &mut out);
/// assert_eq!(out[0], Delta::LogProbs(vec![LogProb::of("ä".as_bytes(), -0.5)]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TokenShape {
    token: Value,
    #[serde(alias = "logProbability")]
    logprob: Value,
    /// The bytes of a token, which may be a part of a character.
    bytes: List<Value>,
}

impl TokenShape {
    /// Emits tokens. A token without a log probability is certain, because some servers omit 0.
    pub fn push(tokens: Option<Vec<Object<Self>>>, out: &mut Deltas) {
        let of = |token: Self| {
            let bytes = token.bytes.0.unwrap_or_default().into_iter();
            let bytes: Vec<u8> = bytes.filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect();
            let text = token.token.as_str().unwrap_or_default().as_bytes();
            let log = token.logprob.as_f64().unwrap_or_default();
            LogProb::of(if bytes.is_empty() { text } else { &bytes }, log)
        };
        let tokens = tokens.into_iter().flatten().filter_map(|token| token.0);
        let tokens: Vec<LogProb> = tokens.map(of).collect();
        if !tokens.is_empty() {
            out.push_back(Delta::LogProbs(tokens));
        }
    }
}
