use serde::Deserialize;
use serde_json::Value;

use crate::lenient::{Leaf, Object};

/// A tool call, as servers of Cohere's API and Ollama return it.
///
/// ```
/// use formwork_wire::CallShape;
///
/// let call: CallShape<'_> = serde_json::from_str(r#"{"id": "c-1", "function": {"name": "weather", "arguments": "{}"}}"#)?;
/// assert_eq!(call.id.as_str(), Some("c-1"));
/// assert_eq!(call.function.0.unwrap_or_default().name.as_str(), Some("weather"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CallShape<'a> {
    /// The identifier of the call. Versions of Ollama before 0.12 have none.
    #[serde(borrow)]
    pub id: Leaf<'a>,
    /// The called function.
    pub function: Object<FunctionShape<'a>>,
}

/// The called function of a tool call, as servers of OpenAI's API, Cohere's API and Ollama return it. The example is that of
/// [`CallShape`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionShape<'a> {
    /// The name of the function.
    #[serde(borrow)]
    pub name: Leaf<'a>,
    /// The arguments, or a piece of them.
    pub arguments: Leaf<'a>,
}

/// The input of a tool call, which arrives in pieces of JSON.
///
/// ```
/// use formwork_wire::ToolInput;
///
/// let mut document = ToolInput::default();
/// assert_eq!(document.push(r#"{"age""#), r#"{"age""#);
/// let mut held = ToolInput::default();
/// held.hold(r#""{\"age\": "#);
/// held.hold(r#"34}""#);
/// assert_eq!(held.rest(), r#"{"age": 34}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolInput {
    initial: String,
    /// The text held back so far: white space, or the beginning of a JSON string.
    held: String,
    /// Whether text was passed on already.
    is_passed: bool,
}

impl ToolInput {
    /// Returns an input without pieces. `initial` is what the call began with, which counts if no piece follows: Anthropic sends an
    /// empty object, and compatible servers may send all of it.
    pub const fn new(initial: String) -> Self {
        Self { initial, held: String::new(), is_passed: false }
    }

    /// Adds a piece and returns the text that can be passed on. A JSON string is held back until it is complete, because some models
    /// write the document as text inside a string.
    pub fn push(&mut self, piece: &str) -> String {
        if self.is_passed {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        if self.held.trim_start().is_empty() || self.held.trim_start().starts_with('"') {
            return String::new();
        }
        self.is_passed = true;
        std::mem::take(&mut self.held)
    }

    /// Adds a piece and holds it back.
    pub fn hold(&mut self, piece: &str) {
        self.held.push_str(piece);
    }

    /// Returns the text held back, at the end of the call.
    pub fn rest(self) -> String {
        match serde_json::from_str(&self.held) {
            _ if self.is_passed => String::new(),
            Ok(Value::String(text)) => text,
            _ if self.held.trim().is_empty() => self.initial,
            _ => self.held,
        }
    }
}

/// The tool calls of a stream of Chat Completions, which are told apart by the members of their pieces.
///
/// The pieces of a call have its index, and the first one has its identifier and its name. Some servers give all calls the same index
/// (Ollama, vLLM, gateways in front of other APIs), so a piece with a name and another identifier begins a call. Without a name it does
/// not, because versions of vLLM give each piece an identifier of its own.
///
/// ```
/// use formwork_wire::CallPieces;
///
/// let mut calls = CallPieces::default();
/// assert_eq!(calls.position(0, "a", true), 0);
/// assert_eq!(calls.position(0, "", false), 0);
/// assert_eq!(calls.position(0, "b", true), 1);
/// assert_eq!(calls.position(0, "", false), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPieces<Index = u64> {
    /// The index and the identifier of each call.
    calls: Vec<(Index, String)>,
}

impl<Index> Default for CallPieces<Index> {
    fn default() -> Self {
        Self { calls: Vec::new() }
    }
}

impl<Index: PartialEq> CallPieces<Index> {
    /// Returns the position of the call that a piece belongs to, which is one after the last position if the piece begins a call.
    pub fn position(&mut self, index: Index, id: &str, is_named: bool) -> usize {
        let of_index = |call: &(Index, String)| call.0 == index;
        let is_same = |call: &(Index, String)| of_index(call) && (id.is_empty() || call.1 == id);
        let known = self.calls.iter().rposition(is_same);
        let known = known.or_else(|| self.calls.iter().rposition(of_index).filter(|_| !is_named));
        known.unwrap_or_else(|| {
            self.calls.push((index, id.to_owned()));
            self.calls.len() - 1
        })
    }
}
