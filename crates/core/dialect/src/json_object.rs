use formwork_core::{
    Enforcement, Lift, LiftOp, Lower, LowerRequest, Lowered, Refused, SchemaText, normalise, spaced,
    without_marks,
};
use serde_json::{Map, Value, json};

use crate::Dialect;
use crate::expand::expand;
use crate::form::Shape;

/// The dialect of providers that enforce *some* JSON object: `{"type": "json_object"}`, DeepSeek's `json_object`,
/// Ollama's `"json"`.
///
/// It sends no schema; the prompt contains the schema, with spaces. A root that can be something other than an object is
/// wrapped in `{"value": …}`. The prompt's text contains the word JSON, because OpenAI and DeepSeek reject the call
/// without it.
///
/// ```
/// use formwork_core::{Lower, LowerRequest, SchemaText, lift};
/// use formwork_dialect::JsonObject;
///
/// let schema = serde_json::json!({"type": "array", "items": {"type": "integer"}});
/// let lowered = JsonObject.lower(&LowerRequest::new(&schema))?;
/// assert_eq!(lift(serde_json::json!({"value": [1]}), &lowered).0, serde_json::json!([1]));
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonObject;

/// The name of the member that wraps a root of another type.
const VALUE: &str = "value";

impl Dialect for JsonObject {
    fn about(&self) -> &str {
        "servers that enforce some JSON object; the prompt contains the schema"
    }
}

impl Lower for JsonObject {
    fn name(&self) -> &str {
        "json-object"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::JsonObject
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let forms = expand(request.schema, self.name())?.forms;
        let is_object = !forms.any(forms.root, |alternative| match &alternative.shape {
            Shape::Object(_) => false,
            Shape::Literals(literals) => literals.values.iter().any(|literal| !literal.value.is_object()),
            // The answer will be an object, and the schema constrains objects.
            _ => !alternative.is_unsaid,
        });
        let schema = without_marks(request.schema);
        let mut prompt_schema =
            Map::from_iter([("$comment".to_owned(), json!("The answer is one JSON object."))]);
        let mut lift = Vec::new();
        if is_object {
            if let Value::Object(keywords) = &*schema {
                let says = |keyword: &str| !matches!(keyword, "$schema" | "$id" | "$comment");
                prompt_schema.extend(keywords.clone().into_iter().filter(|(keyword, _)| says(keyword)));
            }
        } else {
            let (inner, definitions) = apart(&schema);
            prompt_schema.insert("type".to_owned(), json!("object"));
            prompt_schema.insert("properties".to_owned(), json!({VALUE: inner}));
            prompt_schema.insert("required".to_owned(), json!([VALUE]));
            prompt_schema.insert("additionalProperties".to_owned(), json!(false));
            prompt_schema.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
            lift.push(LiftOp { at: String::new(), lift: Lift::Unwrap(VALUE.to_owned()) });
        }
        let mut lowered =
            Lowered::described(SchemaText::JsonSchema(spaced(&Value::Object(prompt_schema)))).with_lift(lift);
        lowered.enforcement = self.enforcement();
        Ok(lowered)
    }
}

/// Returns a schema that can be nested, and its definitions, which belong to the root.
fn apart(schema: &Value) -> (Value, Option<Value>) {
    let mut inner = normalise(schema);
    let definitions = inner.as_object_mut().and_then(|keywords| keywords.shift_remove("$defs"));
    (inner, definitions)
}
