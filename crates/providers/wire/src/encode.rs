//! Common parts of encoders.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use formwork_core::{Call, Fault, FaultKind, Part, Role, Tool};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Uri};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Members;

/// The initial capacity of the buffer for a body in bytes. Typical bodies fit, which saves eight reallocations.
const BODY_BYTES: usize = 4096;

/// Returns a POST request with a JSON body. `members` are added to it; they cost a second
/// writing of the body.
///
/// ```
/// let request = formwork_wire::post("/ask", &["Lisbon"], &Default::default())?;
/// assert_eq!((request.uri().path(), &request.body()[..]), ("/ask", &br#"["Lisbon"]"#[..]));
/// # Ok::<(), formwork_core::Fault>(())
/// ```
///
/// # Errors
/// [`FaultKind::BadRequest`] if the body cannot be written, or if the path is not part of a URL.
pub fn post(path: &str, body: &impl Serialize, members: &Members) -> Result<Request<Bytes>, Fault> {
    let mut bytes = Vec::with_capacity(BODY_BYTES);
    let written = if members.is_empty() {
        serde_json::to_writer(&mut bytes, body)
    } else {
        serde_json::to_value(body).and_then(|mut body| {
            if let Value::Object(body) = &mut body {
                members.write(body);
            }
            serde_json::to_writer(&mut bytes, &body)
        })
    };
    written.map_err(|error| bad_request(format!("the request cannot be written: {error}")))?;
    let mut request = Request::new(Bytes::from(bytes));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::try_from(path).map_err(|error| {
        bad_request(format!("{path:?} cannot be the path of a URL, check the model's name: {error}"))
    })?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(request)
}

/// Returns the schema of a call that asks for enforcement.
///
/// # Errors
/// [`FaultKind::BadRequest`] if the call has none.
pub fn schema_of(call: &Call) -> Result<&RawValue, Fault> {
    let schema = call.lowered.schema_json();
    schema.ok_or_else(|| bad_request("the call asks for an enforced schema and has none"))
}

/// Returns the name of a schema or a tool with the characters and the length that servers accept: `[A-Za-z0-9_-]{1,64}`.
///
/// ```
/// assert_eq!(formwork_wire::safe_name("Person.v2"), "Person_v2");
/// assert_eq!(formwork_wire::safe_name(""), "answer");
/// ```
pub fn safe_name(name: &str) -> String {
    let is_safe = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let safe: String =
        name.chars().take(64).map(|letter| if is_safe(&letter) { letter } else { '_' }).collect();
    if safe.is_empty() { "answer".to_owned() } else { safe }
}

/// Returns the identifier of a tool call with the characters and the length that servers accept: `[A-Za-z0-9_-]{1,64}`.
///
/// A valid identifier stays as it is. Another one, such as `functions.look:0` of Kimi's models, gets a hash of itself, so that the calls
/// of a dialogue stay distinct. Every request has the same identifier for a call, which is in a call and in its result.
///
/// ```
/// use formwork_wire::safe_id;
///
/// assert_eq!(safe_id("toolu_01-a"), "toolu_01-a");
/// assert!(safe_id("look:0").starts_with("look_0-"));
/// assert_ne!(safe_id("look:0"), safe_id("look.0"));
/// ```
pub fn safe_id(id: &str) -> Cow<'_, str> {
    /// A hash has 16 digits, and a character stands before it.
    const BEFORE_HASH: usize = 64 - 17;

    let safe = safe_name(id);
    if safe == id {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    Cow::Owned(format!("{safe:.BEFORE_HASH$}-{:016x}", hasher.finish()))
}

/// Returns the tools of a call beside the one that carries its document, if one does. If there are none at all, they are those that its
/// dialogue calls, with any arguments, because some servers refuse calls of tools and their results in a request without tools (Anthropic:
/// "Requests which include `tool_use` or `tool_result` blocks must define tools").
///
/// ```
/// use formwork_core::{Call, Enforcement, Lowered, Message, Part, Role};
///
/// let called = Part::ToolCall { id: "1".to_owned(), name: "look".to_owned(), arguments: serde_json::json!({}) };
/// let dialogue = [Message::user("hi"), Message { role: Role::Assistant, parts: vec![called] }];
/// let call = Call::new(dialogue, Lowered::new(Enforcement::None, None));
/// assert_eq!(formwork_wire::tools_of(&call, None)[0].name, "look");
/// assert!(formwork_wire::tools_of(&call, Some("answer")).is_empty());
/// ```
pub fn tools_of<'c>(call: &'c Call, carrier: Option<&str>) -> Cow<'c, [Tool]> {
    if carrier.is_some() || !call.tools.is_empty() {
        return Cow::Borrowed(&call.tools);
    }
    let mut tools: Vec<Tool> = Vec::new();
    for part in call.messages.iter().flat_map(|message| &message.parts) {
        if let Part::ToolCall { name, .. } = part
            && tools.iter().all(|tool| tool.name != *name)
        {
            let (description, parameters) = (String::new(), json!({"type": "object"}));
            tools.push(Tool { name: name.clone(), description, parameters });
        }
    }
    Cow::Owned(tools)
}

/// Returns the fault for a call that the protocol cannot express.
pub fn bad_request(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::BadRequest, message)
}

/// Returns the fault for a message with a part that the protocol does not accept in this role.
pub fn misplaced(part: &Part, role: Role) -> Fault {
    let what = match part {
        Part::Image { .. } => "an image",
        Part::ToolCall { .. } => "a tool call",
        Part::ToolResult { .. } => "a tool result",
        _ => "a part of an unknown type",
    };
    let place = match role {
        Role::System => "a system message",
        Role::User => "a user message",
        Role::Assistant => "an assistant message",
        Role::Tool => "a tool message",
    };
    bad_request(format!("{place} cannot contain {what}"))
}

/// Returns the fault for a call that needs a feature which the protocol does not have.
pub fn unsupported(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Unsupported, message)
}

/// Returns a seed in the range of a signed 32-bit integer: a small seed unchanged, a larger one folded so that all its bits matter.
///
/// ```
/// assert_eq!(formwork_wire::folded(7), 7);
/// assert_ne!(formwork_wire::folded(1 << 40), formwork_wire::folded(1 << 41));
/// assert!(formwork_wire::folded(u64::MAX) <= i32::MAX as u64);
/// ```
pub const fn folded(seed: u64) -> u64 {
    const MAX: u64 = i32::MAX as u64;

    if seed <= MAX { seed } else { (seed ^ (seed >> 31) ^ (seed >> 62)) & MAX }
}
