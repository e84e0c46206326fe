use formwork_core::keywords::{self, target};
use formwork_core::{JsonPath, normalise};
use formwork_schema::compile;
use serde_json::{Value, json};

/// An invalid document that violates one keyword at one path, and others only as far as that is unavoidable.
///
/// ```
/// let schema = serde_json::json!({"type": "string", "maxLength": 3});
/// for miss in formwork_testkit::near_misses(&schema, &serde_json::json!("abc")) {
///     println!("{} at {}: {}", miss.keyword, miss.path, miss.value);
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NearMiss {
    /// The path of the wrong value.
    pub path: JsonPath,
    /// The violated keyword.
    pub keyword: &'static str,
    /// The document.
    pub value: Value,
}

/// Returns every document that is just invalid: one for each keyword at each path of a valid document.
///
/// # Panics
/// If the schema cannot be compiled.
///
/// ```
/// use serde_json::json;
///
/// let schema = json!({"properties": {"age": {"type": "integer", "maximum": 150}}, "required": ["age"]});
/// let misses = formwork_testkit::near_misses(&schema, &json!({"age": 34}));
/// let made: Vec<_> = misses.iter().map(|miss| (miss.keyword, miss.value.to_string())).collect();
/// assert_eq!(made, [
///     ("required", r#"{}"#.to_string()),
///     ("type", r#"{"age":"no"}"#.to_string()),
///     ("maximum", r#"{"age":151}"#.to_string()),
/// ]);
/// ```
pub fn near_misses(schema: &Value, valid: &Value) -> Vec<NearMiss> {
    let compiled = match compile(schema) {
        Ok(compiled) => compiled,
        Err(error) => panic!("{error}"),
    };
    let normal = normalise(schema);
    let mut walk = Walk { root: &normal, document: valid, found: Vec::new() };
    walk.node(&normal, valid, &JsonPath::root(), 0);
    walk.found.retain(|miss| !compiled.is_valid(&miss.value));
    walk.found
}

struct Walk<'a> {
    root: &'a Value,
    document: &'a Value,
    found: Vec<NearMiss>,
}

impl Walk<'_> {
    fn node(&mut self, schema: &Value, value: &Value, path: &JsonPath, jumps: u32) {
        if jumps > 16 {
            return;
        }
        if let Some(target) = target(self.root, schema) {
            self.node(target, value, path, jumps + 1);
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.node(part, value, path, jumps + 1);
        }
        for (keyword, wrong) in wrong_values(schema, value) {
            self.put(path, keyword, wrong);
        }
        match value {
            Value::Object(members) => {
                for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    let mut without = members.clone();
                    if without.shift_remove(name).is_some() {
                        self.put(path, "required", Value::Object(without));
                    }
                }
                if schema["additionalProperties"] == false {
                    let mut with = members.clone();
                    with.insert("unexpected".to_owned(), Value::Bool(true));
                    self.put(path, "additionalProperties", Value::Object(with));
                }
                for (name, member) in members {
                    let open = schema.get("additionalProperties").filter(|open| open.is_object());
                    if let Some(schema) = schema["properties"].get(name).or(open) {
                        self.node(schema, member, &path.key(name.as_str()), 0);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(schema) = keywords::item(schema, index) {
                        self.node(schema, item, &path.index(index), 0);
                    }
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, path: &JsonPath, keyword: &'static str, wrong: Value) {
        let mut value = self.document.clone();
        if let Some(place) = path.get_mut(&mut value) {
            *place = wrong;
            self.found.push(NearMiss { path: path.clone(), keyword, value });
        }
    }
}

/// Returns values that are just invalid in place of this one, one for each keyword.
fn wrong_values(schema: &Value, value: &Value) -> Vec<(&'static str, Value)> {
    let mut wrong = Vec::new();
    let number = |keyword: &str| schema[keyword].as_f64();
    if let Some(other) = another_type(&schema["type"]) {
        wrong.push(("type", other));
    }
    if schema.get("const").is_some() {
        wrong.push(("const", json!("no such constant")));
    }
    if schema["enum"].is_array() {
        wrong.push(("enum", json!("no such choice")));
    }
    if value.is_number() {
        let whole = |number: f64| if number.fract() == 0.0 { json!(number as i64) } else { json!(number) };
        for (keyword, beyond) in
            [("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)]
        {
            // A double does not have every integer that may be a limit.
            let exact = schema[keyword].as_i64().map(|limit| json!(limit.saturating_add(beyond)));
            let miss = exact.or_else(|| number(keyword).map(|limit| whole(limit + beyond as f64)));
            wrong.extend(miss.map(|miss| (keyword, miss)));
        }
        wrong.extend(
            number("multipleOf")
                .map(|step| ("multipleOf", json!(value.as_f64().unwrap_or(0.0) + step / 2.0))),
        );
    }
    if let Some(text) = value.as_str() {
        let letters = |count: f64| json!("x".repeat(count as usize));
        wrong.extend(
            number("minLength").filter(|min| *min >= 1.0).map(|min| ("minLength", letters(min - 1.0))),
        );
        wrong.extend(number("maxLength").map(|max| ("maxLength", letters(max + 1.0))));
        if schema["pattern"].is_string() {
            wrong.push(("pattern", json!(format!("§{text}§"))));
        }
        if schema["format"].is_string() {
            wrong.push(("format", json!(format!("§{text}"))));
        }
    }
    if let Some(items) = value.as_array() {
        wrong.extend(
            number("minItems").filter(|min| *min >= 1.0).map(|min| {
                ("minItems", Value::Array(items.iter().take(min as usize - 1).cloned().collect()))
            }),
        );
        if let (Some(max), Some(first)) = (number("maxItems").filter(|max| *max < 1000.0), items.first()) {
            let mut more = items.clone();
            more.resize(max as usize + 1, first.clone());
            wrong.push(("maxItems", Value::Array(more)));
        }
        if let (true, Some(first)) = (schema["uniqueItems"] == true, items.first()) {
            wrong.push(("uniqueItems", json!([first, first])));
        }
    }
    wrong
}

fn another_type(types: &Value) -> Option<Value> {
    let allowed: Vec<&str> = match types {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let others =
        [("string", json!("no")), ("integer", json!(0)), ("boolean", json!(false)), ("null", Value::Null)];
    let is_number = allowed.contains(&"number");
    others
        .into_iter()
        .find(|(name, _)| !(allowed.contains(name) || is_number && *name == "integer"))
        .map(|(_, value)| value)
}
