//! A turn of a model that has tools: an answer or a tool call.

use std::sync::Arc;

use formwork_core::keywords::parts_mut;
use formwork_core::{
    Context, Inline, JsonPath, Judgement, Report, Schema as _, Stage, Validator, Violation, normalise, spaced,
};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::contract::identified;
use crate::{AnswerContract, ChatTool};

/// One turn of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn<A> {
    Answer(A),
    /// One or more calls, in order.
    Tools(Vec<Wanted>),
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl<'de, A: DeserializeOwned> Deserialize<'de> for Turn<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match (value.get("tool"), value.get("tools")) {
            (Some(tool), _) => Wanted::deserialize(tool).map(|call| Self::Tools(vec![call])),
            (None, Some(tools)) => Vec::deserialize(tools).map(Self::Tools),
            (None, None) => A::deserialize(&value).map(Self::Answer),
        }
        .map_err(D::Error::custom)
    }
}

/// Validates a turn: an object with the field `tool` as a tool call, one with the field `tools` as a list of calls, anything else as
/// an answer.
pub(crate) struct Judge {
    pub(crate) answer: Arc<dyn Validator>,
    pub(crate) tools: Arc<[ChatTool]>,
}

impl Validator for Judge {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        let root = JsonPath::root();
        if let Some(call) = value.get("tool") {
            closed(value, &root, &["tool"], out);
            self.call(call, &root.key("tool"), cx, out);
        } else if let Some(tools) = value.get("tools") {
            closed(value, &root, &["tools"], out);
            let at = root.key("tools");
            match tools.as_array().map(Vec::as_slice) {
                None | Some([]) => {
                    out.push(Violation::new(at, "minItems", Stage::Schema).with_expected("a list of calls"));
                }
                Some(calls) => {
                    for (index, call) in calls.iter().enumerate() {
                        self.call(call, &at.index(index), cx, out);
                    }
                }
            }
        } else {
            self.answer.validate(value, cx, out);
        }
    }
}

impl Judge {
    /// Validates one call.
    fn call(&self, call: &Value, at: &JsonPath, cx: &Context<'_>, out: &mut Report) {
        closed(call, at, &["name", "arguments"], out);
        let Some(name) = call.get("name") else { return };
        let tool = self.tools.iter().find(|tool| name.as_str() == Some(tool.name()));
        match (tool, call.get("arguments")) {
            (Some(tool), Some(arguments)) => {
                let Judgement { violations, left_out, .. } = tool.judge(arguments, cx);
                out.extend_at(&at.key("arguments"), violations, left_out);
            }
            (Some(_), None) => {}
            (None, _) => {
                let names: Vec<String> =
                    self.tools.iter().map(|tool| format!("\"{}\"", tool.name())).collect();
                let violation = Violation::new(at.key("name"), "enum", Stage::Schema);
                out.push(violation.with_expected(names.join(" or ")).with_found(name.to_string()));
            }
        }
    }
}

/// Reports missing and unknown fields of an object.
fn closed(value: &Value, at: &JsonPath, names: &[&str], out: &mut Report) {
    let Some(members) = value.as_object() else {
        return out.push(Violation::new(at.clone(), "type", Stage::Schema).with_expected("object"));
    };
    for name in names.iter().filter(|name| !members.contains_key(**name)) {
        out.push(Violation::new(at.key(*name), "required", Stage::Schema));
    }
    for name in members.keys().filter(|name| !names.contains(&name.as_str())) {
        out.push(Violation::new(at.key(name.as_str()), "additionalProperties", Stage::Schema));
    }
}

/// Returns the JSON Schema of a turn, for providers that enforce a schema.
pub(crate) fn schema<A: AnswerContract>(tools: &[ChatTool]) -> Value {
    let mut definitions = Map::new();
    let mut variants = vec![hoisted(Inline::of::<A>().document(), "answer", &mut definitions)];
    for (index, tool) in tools.iter().enumerate() {
        let arguments = hoisted(tool.arguments(), &format!("tool{index}"), &mut definitions);
        let call = object(json!({"name": {"const": tool.name()}, "arguments": arguments}));
        variants.push(object(json!({"tool": call})));
    }
    let mut schema = json!({"anyOf": variants});
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// Returns the schema of a closed object with these properties, all required.
fn object(properties: Value) -> Value {
    let required: Vec<String> =
        properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Moves the definitions of a schema to the root of another document, each name with a prefix.
fn hoisted(document: &Value, prefix: &str, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = normalise(document);
    let own = schema.as_object_mut().and_then(|keywords| keywords.shift_remove("$defs"));
    rename(&mut schema, prefix);
    if let Some(Value::Object(own)) = own {
        definitions.extend(own.into_iter().map(|(name, mut definition)| {
            rename(&mut definition, prefix);
            (format!("{prefix}_{name}"), definition)
        }));
    }
    schema
}

fn rename(schema: &mut Value, prefix: &str) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replacen("#/$defs/", &format!("#/$defs/{prefix}_"), 1);
    }
    parts_mut(schema).for_each(|part| rename(part, prefix));
}

/// Returns the prompt about the tools, below the contract.
pub(crate) fn tools_prompt(tools: &[ChatTool]) -> String {
    let mut words = "Before you answer you may call tools, one at a time. To call one, return in the place of the contract only \
                     {\"tool\": {\"name\": \"...\", \"arguments\": {...}}}; its result comes back, and then you go on. The tools:"
        .to_owned();
    for tool in tools {
        let arguments = spaced(&identified(tool.arguments().clone()));
        words.push_str(&format!(
            "\n- {}: {} The JSON Schema of its arguments: {arguments}",
            tool.name(),
            tool.description()
        ));
    }
    words
}
