//! Converts JSON Schema to shapes, and reports the losses.

use std::collections::BTreeMap;
use std::fmt;

use formwork_core::keywords::{Role, fits_type, keyword};
use formwork_core::{RULES, escape, normalise_with_origins};
use formwork_schema::SchemaError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::to_schema::MARKDOWN;
use crate::{Field, Kind, MAX_DEPTH, Node, grounded};

/// A keyword of a JSON Schema that has no equivalent in shapes, from [`Shape::from_schema`](crate::Shape::from_schema).
///
/// ```
/// use formwork_shape::Shape;
///
/// let (_, unsaid) = Shape::from_schema(&serde_json::json!({"type": "integer", "minimum": 1}))?;
/// assert_eq!((unsaid[0].pointer.as_str(), unsaid[0].keyword.as_str()), ("", "minimum"));
/// assert_eq!(unsaid[0].to_string(), "#: a shape cannot say `minimum`: it is left out");
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unsaid {
    /// The location in the schema, an RFC 6901 JSON Pointer.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The effect of leaving the keyword out.
    pub instead: String,
}

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, instead } = self;
        write!(f, "#{pointer}: a shape cannot say `{keyword}`: {instead}")
    }
}

/// The maximum number of places in a schema with its references resolved.
const MAX_NODES: usize = 20_000;

/// The maximum depth of schemas that refer to each other.
const MAX_LEVEL: usize = 200;

/// Returns whether a keyword does not constrain values.
fn is_note(name: &str) -> bool {
    keyword(name)
        .is_some_and(|known| matches!(known.role, Role::Identity | Role::Definitions | Role::Annotation))
}

/// Returns the shape of a schema, and the keywords that it cannot express.
pub(crate) fn shape(document: &Value) -> Result<(Node, Vec<Unsaid>), SchemaError> {
    formwork_schema::compile(document)?;
    let (normal, origins) = normalise_with_origins(document);
    let mut walk = Walk {
        normal: &normal,
        origins: &origins,
        within: Vec::new(),
        nodes: 0,
        level: 0,
        unsaid: Vec::new(),
    };
    let mut node = walk.node(&normal, "", 0);
    if walk.nodes > MAX_NODES {
        let message =
            format!("the schema comes to more than {MAX_NODES} places once its references are written out");
        return Err(SchemaError { pointer: String::new(), message });
    }
    let mut unsaid = walk.unsaid;
    if document.get(RULES).is_some_and(|rules| grounded::mark(&mut node, rules)) {
        unsaid.retain(|unsaid| !(unsaid.pointer.is_empty() && unsaid.keyword == RULES));
    }
    Ok((node, unsaid))
}

struct Walk<'s> {
    normal: &'s Value,
    /// The pointer of each definition in the original schema.
    origins: &'s BTreeMap<String, String>,
    /// The definitions that are being resolved.
    within: Vec<&'s str>,
    nodes: usize,
    /// The depth of the walk in the schema, which differs from the depth in the shape.
    level: usize,
    unsaid: Vec<Unsaid>,
}

impl<'s> Walk<'s> {
    fn unsaid(&mut self, pointer: &str, keyword: &str, instead: &str) {
        let pointer = self.original(pointer);
        let unsaid = Unsaid { pointer, keyword: keyword.to_owned(), instead: instead.to_owned() };
        // A definition with several references is reported once.
        if !self.unsaid.contains(&unsaid) {
            self.unsaid.push(unsaid);
        }
    }

    /// Returns the pointer in the original schema.
    fn original(&self, pointer: &str) -> String {
        let definition =
            pointer.strip_prefix("/$defs/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        match definition.and_then(|(name, rest)| Some((self.origins.get(name)?, rest))) {
            Some((origin, "")) => origin.clone(),
            Some((origin, rest)) => format!("{origin}/{rest}"),
            None => pointer.to_owned(),
        }
    }

    fn node(&mut self, schema: &'s Value, at: &str, depth: usize) -> Node {
        self.nodes += 1;
        let any = Node::new(Kind::Any);
        let Value::Object(keywords) = schema else {
            if schema == &Value::Bool(false) {
                self.unsaid(at, "false", "anything may stand here");
            }
            return any;
        };
        if self.nodes > MAX_NODES {
            return any;
        }
        if depth > MAX_DEPTH || self.level > MAX_LEVEL {
            self.unsaid(at, "depth", "below this depth anything may stand");
            return any;
        }
        let mut phrases = vec![];
        self.level += 1;
        let node = self.kind(keywords, at, depth, &mut phrases);
        self.level -= 1;
        for keyword in keywords.keys() {
            if !phrases.contains(&keyword.as_str()) && !is_note(keyword) {
                let instead = match keyword.as_str() {
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "patternProperties"
                    | "propertyNames" => "further fields may have any name and value",
                    _ => "it is left out",
                };
                if keywords.get(keyword) != Some(&Value::Bool(true)) {
                    self.unsaid(at, keyword, instead);
                }
            }
        }
        match keywords.get("description").and_then(Value::as_str) {
            Some(text) => node.with_description(text),
            None => node,
        }
    }

    /// Returns the kind for a schema, whose keywords are collected in `said`.
    fn kind(
        &mut self,
        keywords: &'s Map<String, Value>,
        at: &str,
        depth: usize,
        phrases: &mut Vec<&'static str>,
    ) -> Node {
        let any = Node::new(Kind::Any);
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            phrases.push("$ref");
            return self.referred(reference, at, depth);
        }
        if let Some(literals) = literals(keywords) {
            phrases.extend(["const", "enum", "type"]);
            return match literals {
                Some(values) => Node::new(Kind::OneOf(values)),
                None => {
                    self.unsaid(at, "enum", "anything may stand here");
                    any
                }
            };
        }
        if let Some((keyword, variants)) = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|keyword| {
            let variants = keywords.get(keyword)?.as_array()?;
            (!keywords.contains_key("properties") && !keywords.contains_key("items"))
                .then_some((keyword, variants))
        }) {
            phrases.extend([keyword, "type"]);
            return self.variants(keyword, variants, at, depth);
        }
        let (names, nullable) = types(keywords);
        phrases.push("type");
        let kind = match names.as_slice() {
            ["string"] if keywords.get("contentMediaType").and_then(Value::as_str) == Some(MARKDOWN) => {
                phrases.push("contentMediaType");
                Kind::Markdown
            }
            ["string"] if keywords.get("format").and_then(Value::as_str) == Some("date") => {
                phrases.push("format");
                Kind::Date
            }
            ["string"] => Kind::String,
            ["integer"] => Kind::Integer,
            ["number"] | ["number", "integer"] | ["integer", "number"] => Kind::Number,
            ["boolean"] => Kind::Boolean,
            ["array"] => {
                phrases.push("items");
                let item = match keywords.get("items") {
                    Some(items) if !keywords.contains_key("prefixItems") => {
                        self.node(items, &format!("{at}/items"), depth + 1)
                    }
                    _ => any,
                };
                Kind::Array(Box::new(item))
            }
            ["object"] => {
                phrases.extend(["properties", "required"]);
                Kind::Object(self.fields(keywords, at, depth))
            }
            [] if nullable => Kind::OneOf(vec![Value::Null]),
            [] => Kind::Any,
            _ => {
                self.unsaid(at, "type", "anything may stand here");
                Kind::Any
            }
        };
        let node = Node::new(kind);
        if nullable { node.or_null() } else { node }
    }

    fn referred(&mut self, reference: &'s str, at: &str, depth: usize) -> Node {
        let pointer = reference.strip_prefix('#').unwrap_or(reference);
        let name = pointer.strip_prefix("/$defs/").unwrap_or(pointer);
        let target = self.normal.pointer(pointer);
        match target {
            Some(target) if !self.within.contains(&name) => {
                self.within.push(name);
                let node = self.node(target, pointer, depth);
                self.within.pop();
                node
            }
            _ => {
                self.unsaid(at, "$ref", "what refers to itself may be anything");
                Node::new(Kind::Any)
            }
        }
    }

    /// Returns the node for alternatives: `null` and another type, literals, or a single alternative. Other unions have
    /// no shape.
    fn variants(&mut self, keyword: &str, variants: &'s [Value], at: &str, depth: usize) -> Node {
        let is_null =
            |variant: &Value| literals_of(variant) == Some(vec![Value::Null]) || variant["type"] == "null";
        let step = |index: usize| format!("{at}/{keyword}/{index}");
        let others: Vec<(usize, &Value)> =
            variants.iter().enumerate().filter(|(_, one)| !is_null(one)).collect();
        let nullable = keyword != "allOf" && others.len() < variants.len();
        if let [(index, one)] = others.as_slice()
            && (keyword != "allOf" || variants.len() == 1)
        {
            let node = self.node(one, &step(*index), depth);
            return if nullable { node.or_null() } else { node };
        }
        let listed: Option<Vec<Value>> = others
            .iter()
            .map(|(_, one)| literals_of(one))
            .collect::<Option<Vec<_>>>()
            .map(|all| all.concat());
        match listed {
            Some(values) if keyword != "allOf" && !values.is_empty() => {
                let node = Node::new(Kind::OneOf(once(values)));
                if nullable { node.or_null() } else { node }
            }
            _ => {
                self.unsaid(at, keyword, "anything may stand here");
                Node::new(Kind::Any)
            }
        }
    }

    fn fields(&mut self, keywords: &'s Map<String, Value>, at: &str, depth: usize) -> Vec<Field> {
        let required: Vec<&str> = keywords
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut fields = Vec::new();
        for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let node = self.node(schema, &format!("{at}/properties/{}", escape(name)), depth + 1);
            let field = Field::new(name, node);
            fields.push(if required.contains(&name.as_str()) { field } else { field.optional() });
        }
        for name in required {
            if !fields.iter().any(|field| field.name == name) {
                fields.push(Field::new(name, Node::new(Kind::Any)));
            }
        }
        fields
    }
}

/// Returns the types that a schema allows besides `null`, and whether it allows `null`. Without `type`, the other
/// keywords imply the type.
/// Returns the values without repetitions.
fn once(values: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut once: Vec<Value> = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

fn types(keywords: &Map<String, Value>) -> (Vec<&str>, bool) {
    let named: Vec<&str> = match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ if keywords.contains_key("properties") || keywords.contains_key("required") => vec!["object"],
        _ if keywords.contains_key("items") => vec!["array"],
        _ => Vec::new(),
    };
    let nullable = named.contains(&"null");
    (named.into_iter().filter(|name| *name != "null").collect(), nullable)
}

/// Returns the values of an enumeration: `Some(None)` if one is an array or an object, or none is left.
fn literals(keywords: &Map<String, Value>) -> Option<Option<Vec<Value>>> {
    let listed: Vec<Value> = match (keywords.get("const"), keywords.get("enum")) {
        (Some(only), _) => vec![only.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    let schema = keywords.get("type").map_or(Value::Null, |names| json!({"type": names}));
    let fits = |value: &Value| fits_type(&schema, value) != Some(false);
    let values = once(listed.into_iter().filter(fits));
    let scalar = |value: &Value| !value.is_array() && !value.is_object();
    Some((!values.is_empty() && values.iter().all(scalar)).then_some(values))
}

/// Returns the values of a schema that only enumerates scalars.
fn literals_of(schema: &Value) -> Option<Vec<Value>> {
    let keywords = schema.as_object()?;
    let known = |keyword: &str| matches!(keyword, "const" | "enum" | "type") || is_note(keyword);
    if !keywords.keys().all(|keyword| known(keyword)) {
        return None;
    }
    literals(keywords).flatten()
}
