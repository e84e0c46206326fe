//! Schemas of requests: the wrappers of vendors around them, and schemas that say nothing.

use std::fmt;

use formwork_core::keywords::{Keyword, Role, keyword};
use formwork_core::{Warning, WarningKind, normalise_with_origins};
use serde_json::Value;

use crate::SchemaError;
use crate::bounds::{Graph, groups, is_cycle, pointer_of, shallow};

/// The members under which vendors hold a schema, and the objects that have them. A wrapper may stand in another one.
const WRAPPERS: [(&str, &str); 7] = [
    ("input_schema", "a tool of Anthropic's API"),
    ("inputSchema", "a tool of the Model Context Protocol"),
    ("parameters", "a function of OpenAI's API"),
    ("schema_definition", "a named schema"),
    ("schema", "a named schema"),
    ("json_schema", "a response format of OpenAI's API"),
    ("function", "a tool of OpenAI's API"),
];

/// The values of `type` that name a wrapper; JSON Schema has none of them.
const TAGS: [&str; 3] = ["json_schema", "function", "custom"];

/// Returns the JSON Pointer of the schema that a wrapper of a vendor holds; `None` if the document is a schema itself.
///
/// A wrapper has exactly one of the members `input_schema`, `inputSchema`, `parameters`, `schema_definition`, `schema`,
/// `json_schema` and `function` with an object, and beside it no keyword of JSON Schema that constrains a value, refers to
/// a schema or defines one.
///
/// ```
/// use formwork_schema::wrapped;
/// use serde_json::json;
///
/// let person = json!({"type": "object", "properties": {"name": {"type": "string"}}});
/// assert_eq!(wrapped(&json!({"name": "save", "input_schema": person})).as_deref(), Some("/input_schema"));
/// assert_eq!(wrapped(&person), None);
/// ```
pub fn wrapped(schema: &Value) -> Option<String> {
    let (mut pointer, mut here) = (String::new(), schema);
    while let Some((member, inner)) = wrapper(here) {
        pointer.push('/');
        pointer.push_str(member);
        here = inner;
    }
    (!pointer.is_empty()).then_some(pointer)
}

/// Returns the schema that a wrapper of a vendor holds, with the warning; `None` if the document is a schema itself. See
/// [`wrapped`].
///
/// ```
/// use formwork_schema::unwrapped;
/// use serde_json::json;
///
/// let response_format = json!({"name": "age", "strict": true, "schema": {"type": "integer"}});
/// let (schema, warning) = unwrapped(&response_format).unwrap();
/// assert_eq!(schema, &json!({"type": "integer"}));
/// assert_eq!(
///     warning.to_string(),
///     "unwrapped: the schema is the member #/schema of a named schema; everything around it was left out",
/// );
/// ```
pub fn unwrapped(schema: &Value) -> Option<(&Value, Warning)> {
    let pointer = wrapped(schema)?;
    let (outermost, inner) = (wrapper(schema)?.0, schema.pointer(&pointer)?);
    let kind = WRAPPERS.iter().find(|(member, _)| *member == outermost).map_or("a wrapper", |(_, kind)| kind);
    let message = format!("the schema is the member #{pointer} of {kind}; everything around it was left out");
    Some((inner, Warning::new(WarningKind::Unwrapped, message)))
}

/// Returns the member of a wrapper that holds the schema or a further wrapper.
fn wrapper(schema: &Value) -> Option<(&'static str, &Value)> {
    let members = schema.as_object()?;
    let is_tag = |value: &Value| value.as_str().is_some_and(|tag| TAGS.contains(&tag));
    let says = |keyword: &Keyword| {
        !matches!(keyword.role, Role::Identity | Role::Annotation | Role::Content | Role::OpenApi)
    };
    if members
        .iter()
        .any(|(name, value)| keyword(name).is_some_and(says) && !(name == "type" && is_tag(value)))
    {
        return None;
    }
    let mut held = WRAPPERS.iter().filter_map(|(member, _)| {
        members.get(*member).filter(|inner| inner.is_object()).map(|inner| (*member, inner))
    });
    held.next().filter(|_| held.next().is_none())
}

/// A schema that every value satisfies, because it says nothing about values. See [`says_nothing`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaysNothing {
    /// The root has no keyword that constrains a value: `true`, `{}`, `{"title": "x"}`.
    Root,
    /// The schema at this JSON Pointer (RFC 6901) leads back to itself for the same value.
    Cycle(String),
}

/// Writes the reason, and what to do.
impl fmt::Display for SaysNothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str(
                "every value satisfies the schema, because it has no keyword that constrains a value; titles, descriptions \
                 and unknown members constrain none: write `type`, and `properties` for an object",
            ),
            Self::Cycle(_) => f.write_str(
                "every value satisfies this schema, because its references lead back to it without a step into a member or \
                 an item: remove the reference, or put it below `properties` or `items`",
            ),
        }
    }
}

impl From<SaysNothing> for SchemaError {
    fn from(reason: SaysNothing) -> Self {
        let message = reason.to_string();
        match reason {
            SaysNothing::Root => Self { pointer: String::new(), message },
            SaysNothing::Cycle(pointer) => Self { pointer, message },
        }
    }
}

/// Returns why a schema says nothing about values; `None` if it says something, or is nested too deeply to be compiled.
///
/// The root says nothing if it is `true` or has no keyword that constrains a value, by itself or through `$ref`, `allOf`,
/// `anyOf` and `oneOf`. Below it, `true` and `{}` are allowed. A cycle says nothing if `$ref`, `allOf`, `anyOf` and `oneOf`
/// alone lead from a schema to itself, and no other keyword on the way constrains the value.
///
/// ```
/// use formwork_schema::{SaysNothing, says_nothing};
/// use serde_json::json;
///
/// assert_eq!(says_nothing(&json!({"title": "Person"})), Some(SaysNothing::Root));
/// assert_eq!(says_nothing(&json!({"type": "object", "properties": {"any": {}}})), None);
///
/// let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
/// assert_eq!(says_nothing(&endless), Some(SaysNothing::Cycle("/$defs/a".to_owned())));
/// ```
pub fn says_nothing(schema: &Value) -> Option<SaysNothing> {
    shallow(schema).ok()?;
    let (normal, origins) = normalise_with_origins(schema);
    let graph = Graph::new(&normal);
    let edges = graph.edges(true);
    let mut contents = vec![Content::Something; graph.units.len()];
    let mut cycle = None;
    for group in groups(&edges) {
        let is_cycle = is_cycle(&group, &edges);
        group.iter().for_each(|unit| contents[*unit] = Content::Cycle);
        let is_stable = (0..MAX_PASSES).any(|_| {
            group.iter().fold(true, |is_stable, unit| {
                let found = content(graph.units[*unit], &graph, &contents);
                is_stable & (std::mem::replace(&mut contents[*unit], found) == found)
            })
        });
        if !is_stable {
            group.iter().for_each(|unit| contents[*unit] = Content::Something);
        }
        let endless = group.into_iter().filter(|unit| is_cycle && contents[*unit] == Content::Cycle);
        cycle = cycle.into_iter().chain(endless).min();
    }
    match cycle {
        Some(unit) => Some(SaysNothing::Cycle(pointer_of(&normal, &origins, unit))),
        None => (contents.first() == Some(&Content::Nothing)).then_some(SaysNothing::Root),
    }
}

/// The maximum number of passes over a group of schemas that refer to each other. Each pass follows references in the order
/// of the group at once, so that real groups need two; a group that needs more counts as one that says something.
const MAX_PASSES: usize = 32;

/// The effect of a schema on a value, without its members and items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Some keyword constrains the value.
    Something,
    /// No keyword constrains it.
    Nothing,
    /// The schema leads back to itself, and nothing else decides.
    Cycle,
}

/// Returns the effect of a schema, given that of the schemas that it refers to.
fn content(schema: &Value, graph: &Graph<'_>, known: &[Content]) -> Content {
    let Value::Object(members) = schema else {
        return if *schema == Value::Bool(true) { Content::Nothing } else { Content::Something };
    };
    let of_list = |list: &Value| -> Vec<Content> {
        list.as_array().into_iter().flatten().map(|part| content(part, graph, known)).collect()
    };
    let all = |contents: &[Content]| {
        let has = |content| contents.contains(&content);
        match () {
            () if has(Content::Something) => Content::Something,
            () if has(Content::Cycle) => Content::Cycle,
            () => Content::Nothing,
        }
    };
    let of_member = |(name, value): (&String, &Value)| match (name.as_str(), of_list(value).as_slice()) {
        ("allOf", parts) => all(parts),
        ("anyOf", variants) if variants.contains(&Content::Cycle) => Content::Cycle,
        ("anyOf", variants @ [_, ..]) => all(variants),
        ("oneOf", [one]) => *one,
        ("$ref" | "$recursiveRef", _) => graph.target(schema).map_or(Content::Something, |unit| known[unit]),
        _ if keyword(name).is_some_and(|known| known.constrains() || known.role == Role::Reference) => {
            Content::Something
        }
        _ => Content::Nothing,
    };
    all(&members.iter().map(of_member).collect::<Vec<_>>())
}
