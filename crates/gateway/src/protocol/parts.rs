//! Parts of several protocols: pictures, tools, the choice of a tool.

use formwork_core::{Message, Part, Role};
use serde_json::{Value, json};

use super::fields::Fields;
use crate::ask::{Tool, Want};
use crate::document::Node;
use crate::problem::Problem;

/// Reads the picture of a `data:` URL. Clients never name URLs that the service would fetch.
pub(super) fn picture(url: &str, at: &str) -> Result<Part, Problem> {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((media_type, data)) = data else {
        let message =
            format!("`{at}`: send the picture as a `data:` URL with base64; addresses are not fetched");
        return Err(Problem { is_unsupported: true, ..Problem::invalid(at, message) });
    };
    Ok(Part::Image { media_type: media_type.to_owned(), data: data.to_owned() })
}

/// Returns the result of a tool: its text. Pictures are refused, because not every protocol takes them there.
pub(super) fn result(id: String, parts: Vec<Part>, of: (&Fields<'_>, &str)) -> Result<Part, Problem> {
    if parts.iter().any(|part| matches!(part, Part::Image { .. })) {
        let why = "a picture in the result of a tool is not supported: send it in a message of the user";
        return Err(of.0.unsupported(of.1, why));
    }
    Ok(Part::ToolResult { id, text: message(Role::Tool, parts).text() })
}

/// Returns the media type of a picture by its first bytes, for protocols that do not say it.
pub(super) fn media_type(base64: &str) -> &'static str {
    match base64.as_bytes() {
        [b'/', b'9', b'j', ..] => "image/jpeg",
        [b'R', b'0', b'l', b'G', ..] => "image/gif",
        [b'U', b'k', b'l', b'G', ..] => "image/webp",
        _ => "image/png",
    }
}

/// Reads the arguments of a call in a dialogue: an object in a string. Models call tools without parameters with an empty text, and other
/// texts are kept as the only argument, because no protocol but OpenAI's has a place for them.
pub(super) fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(arguments @ Value::Object(_)) => arguments,
        Ok(Value::Null) => json!({}),
        Err(_) if text.trim().is_empty() => json!({}),
        _ => json!({"text": text}),
    }
}

/// Returns a message. The texts of the model are pieces of one; those of others stand [apart].
pub(super) fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts: if role == Role::Assistant { parts } else { apart(parts) } }
}

/// Puts an empty line between texts in sequence: most protocols have one text for them, in which `A` and `B` would be `AB`.
fn apart(mut parts: Vec<Part>) -> Vec<Part> {
    for nth in 1..parts.len() {
        let is_text = matches!(parts.get(nth), Some(Part::Text { text }) if !text.is_empty());
        if let Some(Part::Text { text }) = parts.get_mut(nth - 1).filter(|_| is_text)
            && !text.is_empty()
            && !text.ends_with('\n')
        {
            text.push_str("\n\n");
        }
    }
    parts
}

/// Reads a function: its name, description and parameters.
pub(super) fn function(mut function: Fields<'_>, schema: &str) -> Result<Tool, Problem> {
    let name = function.required_text("name")?;
    let description = function.text("description")?.unwrap_or_default();
    // A tool without parameters has an empty schema, or none.
    let parameters = function.schema(schema)?.filter(|schema| *schema.value() != json!({}));
    let parameters = parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}).into());
    Ok(Tool { name, description, parameters })
}

/// The choice that a client leaves to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    None,
    Auto,
    Required,
    Named(String),
}

/// Reads the list of tools; `read` reads a tool.
pub(super) fn tools<'t>(
    body: &mut Fields<'t>,
    read: impl Fn(Fields<'t>) -> Result<Tool, Problem>,
) -> Result<Vec<Tool>, Problem> {
    let tools = body.list("tools")?.unwrap_or_default().into_iter();
    let reader = body.reader();
    tools.map(|(at, tool)| read(Fields::new(tool, at, &reader)?)).collect()
}

/// Refuses a tool, a call or a choice of OpenAI's protocols that is about no function. Without a type it is about one.
pub(super) fn of_function(mut object: Fields<'_>) -> Result<Fields<'_>, Problem> {
    match object.text("type")?.as_deref() {
        None | Some("function") => Ok(object),
        Some(other) => Err(object.unsupported("type", &format!("`{other}` is not supported"))),
    }
}

/// Reads the role of a message, which has one of these names.
pub(super) fn role(message: &mut Fields<'_>, names: &[&str]) -> Result<Role, Problem> {
    match message.required_text("role")?.as_str() {
        other if !names.contains(&other) => {
            Err(message.refuse("role", &format!("there is no role `{other}`")))
        }
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        _ => Ok(Role::System),
    }
}

/// Reads a format of OpenAI's protocols, whose type was read.
pub(super) fn format(mut format: Fields<'_>, kind: &str) -> Result<Want, Problem> {
    match kind {
        "text" => Ok(Want::Text),
        "json_object" => {
            Ok(Want::Json { name: "answer".to_owned(), schema: json!({"type": "object"}).into() })
        }
        "json_schema" => {
            let name = format.text("name")?.unwrap_or_else(|| "answer".to_owned());
            let schema = format.schema("schema")?.ok_or_else(|| format.missing("schema"))?;
            let description = format.text("description")?.unwrap_or_default();
            Ok(Want::Json { name, schema: schema.with_description(&description) })
        }
        other => Err(format.refuse("type", &format!("there is no format `{other}`"))),
    }
}

/// Reads `tool_choice` of OpenAI's protocols; `named` reads the name of a forced tool.
pub(super) fn choice<'t>(
    body: &mut Fields<'t>,
    named: impl FnOnce(Fields<'t>) -> Result<String, Problem>,
) -> Result<Choice, Problem> {
    match body.take("tool_choice") {
        None => Ok(Choice::Auto),
        Some(Node::Text(word)) => match word.as_ref() {
            "auto" => Ok(Choice::Auto),
            "none" => Ok(Choice::None),
            "required" => Ok(Choice::Required),
            other => Err(body.refuse("tool_choice", &format!("there is no choice `{other}`"))),
        },
        Some(value) => {
            let choice = of_function(Fields::new(value, "tool_choice", &body.reader())?)?;
            named(choice).map(Choice::Named)
        }
    }
}

/// Returns the requested result: an answer in a format, or calls of tools.
///
/// # Errors
/// [`Problem`] if a tool is forced that does not exist. A format beside a forced tool has no effect, because there is no text.
pub(super) fn want(format: Want, tools: Vec<Tool>, choice: Choice, at: &str) -> Result<Want, Problem> {
    let refuse = |message: String| Err(Problem::invalid(at, message));
    if tools.is_empty() && matches!(choice, Choice::Named(_) | Choice::Required) {
        return refuse(format!("`{at}`: there are no tools"));
    }
    if tools.is_empty() || choice == Choice::None {
        return Ok(format);
    }
    match choice {
        Choice::Named(name) => match tools.iter().find(|tool| tool.name == name) {
            Some(tool) => Ok(Want::Call(tool.clone())),
            None => {
                let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
                refuse(format!("`{at}`: there is no tool `{name}`; there are: {}", names.join(", ")))
            }
        },
        Choice::Required if tools.len() == 1 => Ok(tools.into_iter().next().map_or(format, Want::Call)),
        choice => {
            let format = match format {
                Want::Json { name, schema } => Some((name, schema)),
                _ => None,
            };
            Ok(Want::Tools { tools, required: choice == Choice::Required, format })
        }
    }
}
