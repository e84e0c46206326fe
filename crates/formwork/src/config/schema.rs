use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use formwork_core::Thresholds;

use super::{Common, Defaults, Redaction, Serve, TargetList, Telemetry};
use crate::providers::{Kind, Providers};

/// Returns the JSON Schema of a configuration file with these kinds of providers, for editors.
///
/// ```
/// use formwork::{config, providers::Providers};
///
/// let schema = config::schema(&Providers::builtin());
/// assert!(schema["properties"]["providers"].is_object());
/// ```
pub fn schema(providers: &Providers) -> Value {
    let mut definitions = Map::new();
    let common = embedded::<Common>(&mut definitions);
    let [lists, defaults, serve, telemetry, health, redaction] = [
        embedded::<TargetList>(&mut definitions),
        embedded::<Defaults>(&mut definitions),
        embedded::<Serve>(&mut definitions),
        embedded::<Telemetry>(&mut definitions),
        embedded::<Thresholds>(&mut definitions),
        embedded::<Redaction>(&mut definitions),
    ];
    definitions.insert("Common".to_owned(), common);
    let sections = groups(providers)
        .into_iter()
        .map(|(mut own, kinds)| {
            adopt(&mut definitions, &mut own, kinds[0].name());
            let mut properties = Map::from_iter([("kind".to_owned(), kind_of(&kinds))]);
            properties.extend(taken(&mut own, "properties"));
            let mut required = vec![json!("kind")];
            required.extend(own["required"].as_array().into_iter().flatten().cloned());
            let name = kinds[0].name();
            let title = match kinds.len() {
                1 => name.to_owned(),
                count => format!("{name} and {} others", count - 1),
            };
            let section = json!({
                "title": title,
                "type": "object",
                "allOf": [{"$ref": "#/$defs/Common"}],
                "properties": properties,
                "required": required,
                // Unlike `additionalProperties` it looks into `allOf`.
                "unevaluatedProperties": false,
            });
            definitions.insert(format!("provider:{name}"), section);
            json!({"$ref": format!("#/$defs/provider:{}", escaped(name))})
        })
        .collect::<Vec<Value>>();
    let mut targets = lists["properties"]["targets"].clone();
    targets["description"] = json!(
        "The providers, in order: if one fails, the next one is used (default: all, in the order of the file)."
    );
    definitions.insert("TargetList".to_owned(), lists);
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "formwork.toml",
        "description": "The models, the order of calls, and their settings.",
        "type": "object",
        "properties": {
            "targets": targets,
            "order": {"$ref": "#/$defs/TargetList/properties/order"},
            "weights": {"$ref": "#/$defs/TargetList/properties/weights"},
            "lists": {
                "description": "Further lists of targets by name, for `--provider NAME`.",
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/TargetList"},
            },
            "aliases": {
                "description": "Further names of a provider, a list, or a model with its kind (`openai/gpt-5.4-mini`).",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
            "defaults": defaults,
            "registry": {
                "description": "A file with rows about models that take precedence over the built-in ones (schemas/registry.json). A path below the folder of the configuration.",
                "type": "string",
            },
            "contracts": {
                "description": "The folder of named contracts. A path below the folder of the configuration.",
                "type": "string",
            },
            "serve": serve,
            "telemetry": telemetry,
            "health": health,
            "redaction": redaction,
            "providers": {
                "description": "Providers by name.",
                "type": "object",
                "additionalProperties": {"oneOf": sections},
                "minProperties": 1,
            },
        },
        "required": ["providers"],
        "additionalProperties": false,
        "$defs": definitions,
    });
    let Ok(mut schema) = Schema::try_from(document.clone()) else { return document };
    RecursiveTransform(drop_examples).transform(&mut schema);
    RecursiveTransform(drop_null).transform(&mut schema);
    RecursiveTransform(join_choices).transform(&mut schema);
    RecursiveTransform(drop_links).transform(&mut schema);
    schema.to_value()
}

/// Turns a choice of described constants into one list of values, whose descriptions follow the one of the schema.
fn join_choices(schema: &mut Schema) {
    let options = schema.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_constant = |option: &Value| option["const"].is_string();
    if options.is_empty() || !options.iter().all(is_constant) {
        return;
    }
    let names: Vec<Value> = options.iter().map(|option| option["const"].clone()).collect();
    let about = |option: &Value| {
        let (name, about) = (option["const"].as_str()?, option["description"].as_str()?);
        Some(format!("- `{name}`: {about}"))
    };
    let about: Vec<String> = schema
        .get("description")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .into_iter()
        .chain(options.iter().filter_map(about))
        .collect();
    schema.remove("oneOf");
    schema.insert("enum".to_owned(), names.into());
    if !about.is_empty() {
        schema.insert("description".to_owned(), about.join("\n").into());
    }
}

/// Replaces the links to Rust items in a `description` by their text, because they lead nowhere outside of the documentation.
fn drop_links(schema: &mut Schema) {
    let Some(text) = schema.get("description").and_then(Value::as_str).filter(|text| text.contains("`]"))
    else {
        return;
    };
    let mut parts = text.split("`]");
    let mut kept = parts.next().unwrap_or_default().replace("[`", "`");
    for part in parts {
        let rest =
            part.strip_prefix('(').and_then(|link| link.split_once(')')).map_or(part, |(_, rest)| rest);
        kept.push('`');
        kept.push_str(&rest.replace("[`", "`"));
    }
    schema.insert("description".to_owned(), kept.into());
}

/// Removes null from the types of a schema: TOML has no null, so an absent setting is left out.
fn drop_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(options)) = schema.get_mut("anyOf") else { return };
    options.retain(|option| *option != json!({"type": "null"}));
    if let [Value::Object(only)] = &options[..] {
        let only = only.clone();
        schema.remove("anyOf");
        schema.ensure_object().extend(only);
    }
}

/// Removes code blocks from a `description`: doctests of the Rust type are of no use to readers of a schema.
pub(crate) fn drop_examples(schema: &mut Schema) {
    let Some(text) = schema.get("description").and_then(Value::as_str).filter(|text| text.contains("```"))
    else {
        return;
    };
    // Every second part is the inside of a code block.
    let kept: Vec<&str> =
        text.split("```").step_by(2).map(str::trim).filter(|part| !part.is_empty()).collect();
    let kept = kept.join("\n\n");
    schema.insert("description".to_owned(), kept.into());
}

/// Returns the kinds by the schema of their own fields: presets of one API have the same fields, so they share a section.
fn groups(providers: &Providers) -> Vec<(Value, Vec<&Kind>)> {
    let mut groups: Vec<(Value, Vec<&Kind>)> = Vec::new();
    for kind in providers.kinds() {
        let own = kind.schema();
        match groups.iter_mut().find(|(schema, _)| *schema == own) {
            Some((_, kinds)) => kinds.push(kind),
            None => groups.push((own, vec![kind])),
        }
    }
    groups
}

/// Returns the schema of the member `kind` in a section of these kinds.
fn kind_of(kinds: &[&Kind]) -> Value {
    let [kind] = kinds else {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let about = |kind: &&Kind| {
            kind.about().strip_suffix(&format!(" of {}", kind.name())).unwrap_or(kind.about()).to_owned()
        };
        let mut abouts: Vec<String> = kinds.iter().map(about).collect();
        // Most of them differ by their addresses alone.
        abouts.sort();
        abouts.dedup();
        return json!({"enum": names, "description": abouts.join("; ")});
    };
    json!({"const": kind.name(), "description": kind.about()})
}

/// Returns the schema of a type, without the members of a document. Its definitions are moved into `definitions`.
fn embedded<T: JsonSchema>(definitions: &mut Map<String, Value>) -> Value {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    let mut schema = schema.to_value();
    definitions.extend(taken(&mut schema, "$defs"));
    schema
}

/// Moves the definitions of a document into `definitions`. If one of them has the name of a different definition, all of
/// them get the kind as a prefix of their names, because they can refer to each other.
fn adopt(definitions: &mut Map<String, Value>, document: &mut Value, kind: &str) {
    let is_other = |(name, own): (&String, &Value)| definitions.get(name).is_some_and(|known| known != own);
    let own = document["$defs"].as_object();
    if own.is_some_and(|own| own.iter().any(is_other)) {
        refer(document, kind);
        let own = taken(document, "$defs").into_iter();
        definitions.extend(own.map(|(name, own)| (format!("{kind}.{name}"), own)));
    } else {
        definitions.extend(taken(document, "$defs"));
    }
}

/// Returns a name as a part of a JSON Pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Adds the kind as a prefix to the names of all definitions in references.
fn refer(value: &mut Value, kind: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, kind)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(reference) if name == "$ref" => {
                        let prefix = format!("#/$defs/{}.", escaped(kind));
                        *reference = reference.replacen("#/$defs/", &prefix, 1);
                    }
                    _ => refer(member, kind),
                }
            }
        }
        _ => {}
    }
}

fn taken(document: &mut Value, name: &str) -> Map<String, Value> {
    match document.as_object_mut().and_then(|document| document.remove(name)) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
