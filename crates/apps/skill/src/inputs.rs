use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{Context, JsonPath, Report, Segment, Validator as _, Violation};
use formwork_schema::{Compiled, SchemaError, compile};
use serde_json::{Map, Value, json};

use crate::error::advice;
use crate::{InputSpec, InputType};

/// The default maximum number of characters of a string.
const MOST: u32 = 100_000;

/// The validator of a skill's inputs.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    specs: BTreeMap<String, InputSpec>,
    compiled: Arc<Compiled>,
}

/// A problem of the inputs: the path, the message, and the violation if a schema found it.
pub(crate) type Problem = (JsonPath, String, Option<Violation>);

impl Inputs {
    pub(crate) fn new(specs: BTreeMap<String, InputSpec>) -> Result<Self, SchemaError> {
        let compiled = compile(&schema(&specs))?;
        Ok(Self { specs, compiled })
    }

    /// Returns the inputs with their defaults, or all problems.
    pub(crate) fn complete(&self, supplied: Value) -> Result<Map<String, Value>, Vec<Problem>> {
        let Value::Object(mut inputs) = supplied else {
            return Err(vec![(JsonPath::root(), "the inputs are a JSON object".to_owned(), None)]);
        };
        for (name, spec) in &self.specs {
            let is_absent = inputs.get(name).is_none_or(|value| value.is_null() && spec.default.is_some());
            if let (true, Some(default)) = (is_absent, &spec.default) {
                inputs.insert(name.clone(), default.clone());
            }
            if spec.optional && inputs.get(name).is_some_and(Value::is_null) {
                inputs.remove(name);
            }
        }
        let inputs = Value::Object(inputs);
        let mut report = Report::default();
        self.compiled.validate(&inputs, &Context::EMPTY, &mut report);
        if !report.violations().is_empty() {
            return Err(report.violations().iter().map(|violation| self.problem(violation)).collect());
        }
        let Value::Object(mut inputs) = inputs else { return Ok(Map::new()) };
        for (name, spec) in &self.specs {
            if spec.optional && !inputs.contains_key(name) {
                inputs.insert(name.clone(), Value::Null);
            }
        }
        Ok(inputs)
    }

    /// Parses an argument of the command line as the value of an input.
    pub(crate) fn parse(&self, name: &str, text: &str) -> Result<Value, String> {
        let Some(spec) = self.specs.get(name) else { return Err(self.unknown(name)) };
        if spec.kind == InputType::String {
            return Ok(text.into());
        }
        serde_json::from_str(text).map_err(|error| {
            format!("the input `{name}` is JSON of the type {}: {error}", spec.kind.as_str())
        })
    }

    fn problem(&self, violation: &Violation) -> Problem {
        let path = violation.path.clone();
        let name = match path.segments() {
            [Segment::Key(name), ..] => name.as_str(),
            _ => "",
        };
        let top = path.segments().len() == 1;
        let words = match violation.rule.as_str() {
            "required" if top => {
                let about = self.specs.get(name).map(|spec| spec.description.as_str()).unwrap_or_default();
                let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
                format!("the input `{name}`{about} is missing")
            }
            "additionalProperties" if top => self.unknown(name),
            _ => violation.to_string(),
        };
        (path, words, Some(violation.clone()))
    }

    fn unknown(&self, name: &str) -> String {
        let advice = advice(name, self.specs.keys(), ": the skill takes none");
        format!("there is no input `{name}`{advice}")
    }
}

/// Returns the JSON Schema of all inputs.
pub(crate) fn schema(specs: &BTreeMap<String, InputSpec>) -> Value {
    let properties: Map<String, Value> =
        specs.iter().map(|(name, spec)| (name.clone(), of_one(spec))).collect();
    let required = specs.iter().filter(|(_, spec)| !spec.optional).map(|(name, _)| name);
    let required: Vec<&String> = required.collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn of_one(spec: &InputSpec) -> Value {
    let mut schema = json!({"type": spec.kind.as_str()});
    if !spec.description.is_empty() {
        schema["description"] = json!(spec.description);
    }
    if spec.kind == InputType::String {
        schema["maxLength"] = json!(spec.max_length.unwrap_or(MOST));
    }
    if let Some(values) = &spec.values {
        schema["enum"] = json!(values);
    }
    if let Some(more) = &spec.schema {
        schema["allOf"] = json!([more]);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Inputs {
        let specs = json!({
            "text": {"type": "string", "description": "What to read", "max_length": 5},
            "tone": {"type": "string", "enum": ["calm", "cross"], "default": "calm"},
            "count": {"type": "integer", "optional": true, "schema": {"minimum": 2}},
        });
        Inputs::new(serde_json::from_value(specs).unwrap()).unwrap()
    }

    fn problems(supplied: Value) -> Vec<String> {
        inputs().complete(supplied).unwrap_err().into_iter().map(|(_, words, _)| words).collect()
    }

    #[test]
    fn defaults_and_nulls_are_filled_in() {
        let complete = inputs().complete(json!({"text": "a", "tone": null})).unwrap();
        assert_eq!(Value::Object(complete), json!({"text": "a", "tone": "calm", "count": null}));
        assert_eq!(inputs().complete(json!({"text": "a", "count": 2.0})).unwrap()["count"], 2.0);
    }

    #[test]
    fn everything_that_does_not_fit_is_reported() {
        assert_eq!(
            problems(json!({"txt": "a", "tone": "loud", "count": 1})),
            [
                "the input `text` (What to read) is missing",
                "Value not allowed at $.tone: expected \"calm\" or \"cross\", found \"loud\"",
                "Number out of range at $.count: expected at least 2, found 1",
                "there is no input `txt`: did you mean `text`?",
            ]
        );
        assert_eq!(
            problems(json!({"text": "123456"})),
            ["String too long at $.text: expected at most 5 characters, found 6 characters"]
        );
        assert_eq!(problems(json!([])), ["the inputs are a JSON object"]);
    }

    #[test]
    fn the_command_line_gives_texts() {
        let inputs = inputs();
        assert_eq!(inputs.parse("text", "7"), Ok(json!("7")));
        assert_eq!(inputs.parse("count", "7"), Ok(json!(7)));
        assert!(inputs.parse("count", "x").unwrap_err().contains("integer"));
        assert!(inputs.parse("cuont", "7").unwrap_err().contains("did you mean `count`?"));
    }
}
