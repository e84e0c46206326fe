use std::sync::{Arc, OnceLock};
use std::time::Duration;

use formwork_core::{Call, Enforcement, Fault, FaultKind};
use formwork_wire::http::{Method, Request, StatusCode};
use formwork_wire::{Bytes, RequestInfo, Transport, bad_request};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The tokens with a line break that the model of llama.cpp's server has for JSON, once they are known.
///
/// The grammar that the server makes of a schema allows a line break and up to 20 spaces between any two tokens of JSON, and none in a
/// string (`SPACE_RULE` in `common/json-schema-to-grammar.cpp`). A tiny model that was trained on documents with a member in each line
/// writes them so: 30 % of the tokens of function arguments. Without these tokens it writes the document in one line.
///
/// ```
/// use formwork_openai::{LineBreaks, OpenAi};
///
/// let line_breaks = LineBreaks::default();
/// let wire = OpenAi::new("smollm2").with_line_breaks(line_breaks.clone());
/// assert!(!line_breaks.is_known(), "nothing is sent until the server has told them");
/// # let _ = wire;
/// ```
#[derive(Debug, Clone, Default)]
pub struct LineBreaks(Arc<OnceLock<Vec<u32>>>);

/// The texts before a line break in JSON: the tokens of many models join them with it.
const BEFORE: [&str; 12] = ["x", "{", "[", "]", "}", ",", "\"", "\",", "],", "},", ":", "1,"];

/// The number of spaces in a line that the grammar allows.
const SPACES: usize = 20;

/// The maximum time of the request.
const LIMIT: Duration = Duration::from_secs(5);

/// The maximum size of the response in bytes: about 2,000 tokens.
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
}

#[derive(Deserialize)]
struct Token {
    id: u32,
    piece: Piece,
}

/// The text of a token: a list of bytes if it is no UTF-8.
#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

impl LineBreaks {
    /// Returns whether the server has told the tokens, or that it does not tell them.
    pub fn is_known(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns whether these tokens are kept from the answer to a call: a document in JSON by a tiny model, without tools.
    pub fn concern(call: &Call) -> bool {
        call.ends_loops
            && call.tools.is_empty()
            && call.client.is_none()
            && matches!(call.enforcement(), Enforcement::JsonObject | Enforcement::Schema)
    }

    /// Requests the tokens from the server (`POST /tokenize`); `transport` has its address without `/v1`. A server that refuses the request,
    /// or does not answer within 5 s, has none.
    ///
    /// # Errors
    /// The [`Fault`] of a transport that does not reach the server, or of a server that is busy (429, 503).
    pub async fn ask(&self, transport: &dyn Transport) -> Result<(), Fault> {
        let lines = BEFORE.iter().flat_map(|before| {
            (0..=SPACES).map(move |spaces| format!("{before}\n{:spaces$}\"a\n\n{:spaces$}\"a", "", ""))
        });
        let body = json!({"content": lines.collect::<String>(), "with_pieces": true}).to_string();
        let request = Request::builder().method(Method::POST).uri("/tokenize");
        let request = request.header("content-type", "application/json").body(Bytes::from(body));
        let request =
            request.map_err(|error| bad_request(format!("the request cannot be written: {error}")))?;
        let fault = match Self::told(request, transport).await {
            Ok(found) => {
                _ = self.0.set(found);
                return Ok(());
            }
            Err(fault) => fault,
        };
        // Each further call would wait as long.
        if fault.kind == FaultKind::Timeout {
            _ = self.0.set(Vec::new());
            return Ok(());
        }
        Err(fault)
    }

    /// Returns the tokens that the server tells; none if it refuses the request.
    async fn told(request: Request<Bytes>, transport: &dyn Transport) -> Result<Vec<u32>, Fault> {
        let response = transport.send(request, Some(transport.now().after(LIMIT))).await?;
        let (head, body) = response.into_parts();
        if matches!(head.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let info = RequestInfo { protocol: "openai/chat", ..RequestInfo::default() };
            return Err(info.fault(&head, &body.beginning(MAX_BYTES).await, transport.now()));
        }
        if !head.status.is_success() {
            return Ok(Vec::new());
        }
        let found: Option<Tokens> = serde_json::from_slice(&body.collect(MAX_BYTES).await?).ok();
        let found = found.map(|found| found.tokens).unwrap_or_default().into_iter();
        let mut ids: Vec<u32> =
            found.filter(|token| token.piece.has_line_break()).map(|token| token.id).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Returns the property `logit_bias` of a request, which excludes these tokens.
    pub(crate) fn bias(&self, call: &Call) -> Option<Bias<'_>> {
        let ids = self.0.get().filter(|ids| !ids.is_empty() && Self::concern(call))?;
        Some(Bias(ids))
    }
}

impl Piece {
    fn has_line_break(&self) -> bool {
        match self {
            Self::Text(text) => text.contains(['\n', '\r']),
            Self::Bytes(bytes) => bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r')),
        }
    }
}

/// Tokens that are excluded, as `[ID, false]` each.
#[derive(Debug)]
pub(crate) struct Bias<'a>(&'a [u32]);

impl Serialize for Bias<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|id| (id, false)))
    }
}
