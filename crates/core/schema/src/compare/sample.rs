//! Counterexamples: values that one schema accepts and another rejects.

use formwork_core::keywords::definition_name;
use serde_json::{Map, Value, json};

use crate::build::Formats;
use crate::compile::compile_with;

/// The number of samples. Every variant of a union and every value of an `enum` is in one of them, up to this number.
const SAMPLES: usize = 12;

/// The maximum depth of a sample; deeper values are `null`.
const MAX_DEPTH: usize = 8;

/// The maximum number of values of a sample.
const MAX_VALUES: usize = 2_000;

/// Returns whether `outer` rejects a sample of `inner`. Both have to agree with `format` asserted and ignored.
pub(super) fn refutes(outer: &Value, inner: &Value) -> bool {
    let compiled = |schema| {
        Some([compile_with(schema, Formats::Assert).ok()?, compile_with(schema, Formats::Annotate).ok()?])
    };
    let (Some(outer), Some(document)) = (compiled(outer), compiled(inner)) else { return false };
    (0..SAMPLES).any(|number| {
        let sample = Sampler { document: inner, number, left: MAX_VALUES }.value(inner, 0);
        document.iter().all(|document| document.is_valid(&sample))
            && !outer.iter().any(|outer| outer.is_valid(&sample))
    })
}

struct Sampler<'s> {
    document: &'s Value,
    /// The number of the sample, which selects variants and optional members.
    number: usize,
    /// The number of values that may still be added.
    left: usize,
}

impl Sampler<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(left) = self.left.checked_sub(1).filter(|_| depth < MAX_DEPTH) else { return Value::Null };
        self.left = left;
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(value) = self.choice(schema.get("enum")) {
            return value.clone();
        }
        if let Some(part) = self.choice(schema.get("anyOf").or_else(|| schema.get("oneOf"))) {
            let (part, own) = (self.value(part, depth + 1), schema.get("properties"));
            return if own.is_some() { merged(self.object(schema, depth), part) } else { part };
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            let own =
                if schema.get("properties").is_some() { self.object(schema, depth) } else { Value::Null };
            return all.iter().fold(own, |value, part| merged(value, self.value(part, depth + 1)));
        }
        if let Some(name) = definition_name(schema) {
            let document = self.document;
            return document["$defs"].get(name).map(|next| self.value(next, depth + 1)).unwrap_or_default();
        }
        let kind = schema.get("type").map(|kind| self.choice(Some(kind)).unwrap_or(kind));
        match kind.and_then(Value::as_str) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("integer" | "number") => self.number_of(schema),
            Some("boolean") => json!(self.number.is_multiple_of(2)),
            Some("null") => Value::Null,
            None if schema.get("properties").is_some() => self.object(schema, depth),
            None if schema.get("items").is_some() => self.array(schema, depth),
            None if schema.get("minimum").is_some() || schema.get("maximum").is_some() => {
                self.number_of(schema)
            }
            _ => {
                json!("a".repeat(length(schema, "minLength").max(usize::from(self.number.is_multiple_of(2)))))
            }
        }
    }

    fn choice<'v>(&self, list: Option<&'v Value>) -> Option<&'v Value> {
        let list = list?.as_array()?;
        list.get(self.number.checked_rem(list.len())?)
    }

    /// Returns an object with all members, with required members alone, or with a member that no schema names.
    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut object = Map::new();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if is_required(name) || !self.number.is_multiple_of(3) {
                object.insert(name.clone(), self.value(member, depth + 1));
            }
        }
        if self.number % 3 == 2 {
            let rest = schema.get("additionalProperties").cloned().unwrap_or(json!({"type": "string"}));
            if rest != Value::Bool(false) {
                object.insert("a member that no schema names".to_owned(), self.value(&rest, depth + 1));
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Value {
        let prefix =
            schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut items: Vec<Value> = prefix.iter().map(|item| self.value(item, depth + 1)).collect();
        let items_length = length(schema, "minItems").max(usize::from(!self.number.is_multiple_of(3)));
        while items.len() < items_length && self.left > 0 {
            items.push(self.value(schema.get("items").unwrap_or(&Value::Bool(true)), depth + 1));
        }
        Value::Array(items)
    }

    /// Returns the smallest or the largest allowed number.
    fn number_of(&self, schema: &Value) -> Value {
        let (low, high) = (schema.get("minimum"), schema.get("maximum"));
        let chosen = if self.number.is_multiple_of(2) { low.or(high) } else { high.or(low) };
        let above =
            schema.get("exclusiveMinimum").and_then(Value::as_i64).map(|low| json!(low.saturating_add(1)));
        chosen.cloned().or(above).unwrap_or(json!(self.number))
    }
}

fn merged(value: Value, more: Value) -> Value {
    match (value, more) {
        (Value::Object(mut value), Value::Object(more)) => {
            value.extend(more);
            Value::Object(value)
        }
        (_, more) => more,
    }
}

/// Returns the minimum of a length, up to the size of a sample.
fn length(schema: &Value, keyword: &str) -> usize {
    schema
        .get(keyword)
        .and_then(Value::as_u64)
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(0)
        .min(MAX_VALUES)
}
