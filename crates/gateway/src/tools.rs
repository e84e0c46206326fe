//! Several tools as one contract: a call of one of them, or text.

use formwork_core::{Message, Part, Role};
use formwork_keywords::parts_mut;
use serde_json::{Value, json};

use crate::ask::Tool;
use crate::contracts::Schema;
use crate::reply::{Choice, Content, Finish};

/// Returns the schema of a turn, whose text satisfies `format` if there is one.
pub(crate) fn schema(tools: &[Tool], required: bool, format: Option<&Schema>) -> Value {
    let mut turns: Vec<Value> = Vec::new();
    for (nth, tool) in tools.iter().enumerate() {
        let place = if tools.len() == 1 && required {
            "#/properties/arguments".to_owned()
        } else {
            format!("#/anyOf/{nth}/properties/arguments")
        };
        turns.push(json!({
            "type": "object",
            "description": tool.description,
            "properties": {"tool": {"const": tool.name}, "arguments": moved(tool.parameters.value(), &place)},
            "required": ["tool", "arguments"],
            "additionalProperties": false,
        }));
    }
    if let Some(format) = format.filter(|_| !required) {
        let place = format!("#/anyOf/{}/properties/answer", turns.len());
        turns.push(json!({
            "type": "object",
            "description": "The answer, without a tool",
            "properties": {"answer": moved(format.value(), &place)},
            "required": ["answer"],
            "additionalProperties": false,
        }));
    } else if !required {
        turns.push(json!({
            "type": "object",
            "description": "An answer in text, without a tool",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": false,
        }));
    }
    if turns.len() == 1 { turns.remove(0) } else { json!({"anyOf": turns}) }
}

/// Returns the description of the tools for the model.
pub(crate) fn instruction(tools: &[Tool], required: bool, has_format: bool) -> String {
    let mut text = if required {
        "Call one of these tools: answer with its name as `tool` and its `arguments`.".to_owned()
    } else {
        let name = if has_format { "answer" } else { "text" };
        format!(
            "You may call one of these tools: answer with its name as `tool` and its `arguments`. If no tool is needed, answer with \
             `{name}`."
        )
    };
    for tool in tools {
        text.push_str(&format!("\n- {}: {}", tool.name, tool.description));
    }
    text
}

/// Returns a dialogue whose calls and results of tools are told as text: calls in the form in which the model is to answer, so
/// that its own turns are examples. No target is given the tools themselves, and some refuse calls without them.
pub(crate) fn retold(messages: Vec<Message>) -> Vec<Message> {
    let retell = |message: Message| {
        let Message { role, parts } = message;
        let parts = parts.into_iter().map(|part| match part {
            Part::ToolCall { name, arguments, .. } => {
                Part::Text { text: json!({"tool": name, "arguments": arguments}).to_string() }
            }
            Part::ToolResult { text, .. } => Part::Text { text: format!("The result of the tool: {text}") },
            other => other,
        });
        let role = if role == Role::Tool { Role::User } else { role };
        Message { role, parts: parts.collect() }
    };
    messages.into_iter().map(retell).collect()
}

/// Returns the answer of a turn.
pub(crate) fn choice(turn: &Value) -> Choice {
    if let Some(answer) = turn.get("answer") {
        return Choice::new(Content::Text(answer.to_string()), Finish::Stop);
    }
    match (turn["tool"].as_str(), &turn["arguments"]) {
        (Some(name), arguments) if !arguments.is_null() => {
            Choice::new(Content::call(name.to_owned(), arguments.to_string()), Finish::Call)
        }
        _ => Choice::new(Content::Text(turn["text"].as_str().unwrap_or_default().to_owned()), Finish::Stop),
    }
}

/// Returns a schema whose internal references stay valid at `place` of a larger schema.
fn moved(schema: &Value, place: &str) -> Value {
    let mut schema = schema.clone();
    relocate(&mut schema, place);
    schema
}

fn relocate(schema: &mut Value, place: &str) {
    if let Some(members) = schema.as_object_mut() {
        // `$schema` applies to a whole document only, and this schema becomes a part of another.
        members.shift_remove("$schema");
        if let Some(Value::String(to)) = members.get_mut("$ref")
            && let Some(pointer) = to.strip_prefix('#')
            && (pointer.is_empty() || pointer.starts_with('/'))
        {
            *to = format!("{place}{pointer}");
        }
    }
    parts_mut(schema).for_each(|part| relocate(part, place));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_may_have_the_name_of_a_keyword() {
        let names = ["default", "enum", "const", "examples", "$schema", "$ref"];
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({"$ref": "#/$defs/n"}))).collect();
        let parameters =
            json!({"type": "object", "properties": properties, "$defs": {"n": {"type": "integer"}}});
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: parameters.clone().into(),
        };
        let compiled = formwork_schema::compile(&schema(&[tool("a"), tool("b")], true, None)).unwrap();
        for name in names {
            for (value, is_valid) in [(json!(1), true), (json!("x"), false)] {
                let answer = json!({"tool": "a", "arguments": {name: value}});
                assert_eq!(compiled.is_valid(&answer), is_valid, "{answer}");
            }
        }
    }

    #[test]
    fn references_of_a_tool_hold_within_the_turn() {
        let parameters = json!({
            "type": "object", "properties": {"p": {"$ref": "#/$defs/point"}}, "required": ["p"],
            "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
        });
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: parameters.clone().into(),
        };
        let one = [tool("a")];
        let two = [tool("a"), tool("b")];
        for (tools, required) in [(&one[..], true), (&one, false), (&two, true), (&two, false)] {
            let format: Schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}).into();
            let compiled = formwork_schema::compile(&schema(tools, required, Some(&format))).unwrap();
            for (answer, is_valid) in [
                (json!({"answer": 5}), !required),
                (json!({"answer": "5"}), false),
                (json!({"text": "t"}), false),
            ] {
                assert_eq!(compiled.is_valid(&answer), is_valid, "{answer} {required}");
            }
            let compiled = formwork_schema::compile(&schema(tools, required, None)).unwrap();
            let right = json!({"tool": "a", "arguments": {"p": {"x": 1}}});
            let wrong = json!({"tool": "a", "arguments": {"p": {"x": "1"}}});
            assert!(compiled.is_valid(&right), "{required}");
            assert!(!compiled.is_valid(&wrong), "{required}");
            assert_eq!(compiled.is_valid(&json!({"text": "t"})), !required);
        }
    }
}
