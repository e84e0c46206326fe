use std::fmt;

use formwork_core::Severity;
use jsonschema::canonical::{self, Satisfiability, UnsatisfiableReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compile::compile;

/// Something about a schema that its author will not have meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// RFC 6901 JSON Pointer into the schema.
    pub pointer: String,
    /// An error makes the schema useless, a warning is most likely a mistake.
    pub severity: Severity,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity == Severity::Error { "error" } else { "warning" };
        write!(f, "{severity}: #{}: {}", self.pointer, self.message)
    }
}

/// Finds what is wrong with a schema: that it cannot be compiled, refers to other documents, is satisfied by nothing,
/// or has keywords and required names that look misspelled.
///
/// ```
/// let findings = formwork_schema::lint(&serde_json::json!({"type": "object", "requird": ["a"]}));
/// assert_eq!(findings[0].to_string(), "warning: #/requird: unknown keyword: did you mean `required`?");
/// ```
pub fn lint(schema: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = compile(schema) {
        findings.push(Finding { pointer: error.pointer, severity: Severity::Error, message: error.message });
    } else {
        unsatisfiable(schema, &mut findings);
    }
    keywords(schema, "", &mut findings);
    findings
}

/// Schemas beyond this many bytes are not examined for parts that nothing satisfies: that can take long.
const MAX_EXAMINED: usize = 256 * 1024;

fn unsatisfiable(schema: &Value, findings: &mut Vec<Finding>) {
    if schema.to_string().len() > MAX_EXAMINED {
        return;
    }
    let Ok(prepared) = canonical::options().offline().prepare(schema) else { return };
    let parts = prepared.unsatisfiable().unwrap_or_default();
    let nothing = prepared.canonicalize().is_ok_and(|whole| whole.satisfiability() == Satisfiability::No);
    if nothing && !parts.contains_key("") {
        let message = "no value satisfies the schema".to_owned();
        findings.push(Finding { pointer: String::new(), severity: Severity::Error, message });
    }
    for (pointer, reason) in parts {
        let message = match reason {
            UnsatisfiableReason::Literal => continue, // `false` is written on purpose
            UnsatisfiableReason::Empty(cause) => format!("no value satisfies {}", part(&cause)),
            UnsatisfiableReason::Conflict(causes) => {
                let parts: Vec<String> = causes.iter().map(part).collect();
                format!("no value satisfies {} together", parts.join(" and "))
            }
        };
        let severity = if pointer.is_empty() { Severity::Error } else { Severity::Warning };
        findings.push(Finding { pointer, severity, message });
    }
}

fn part(cause: &canonical::Cause) -> String {
    match cause.keywords.as_slice() {
        [] => format!("#{}", cause.pointer),
        keywords => keywords.iter().map(|keyword| format!("`{keyword}`")).collect::<Vec<_>>().join(" and "),
    }
}

/// Every keyword of the drafts in use, and the ones of OpenAPI that schemas often carry.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "propertyOrdering",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "xml",
];

fn keywords(schema: &Value, at: &str, findings: &mut Vec<Finding>) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        let pointer = format!("{at}/{}", keyword.replace('~', "~0").replace('/', "~1"));
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                for (name, schema) in schemas {
                    keywords(
                        schema,
                        &format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")),
                        findings,
                    );
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    keywords(schema, &format!("{pointer}/{index}"), findings);
                }
            }
            (
                "items"
                | "contains"
                | "additionalProperties"
                | "additionalItems"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                schema,
            ) => keywords(schema, &pointer, findings),
            ("required", Value::Array(names)) => {
                required(names, members.get("properties"), &pointer, findings)
            }
            (keyword, _) if KEYWORDS.contains(&keyword) || keyword.starts_with("x-") => {}
            (keyword, _) => {
                if let Some(meant) = nearest(keyword, KEYWORDS.iter().copied()) {
                    let message = format!("unknown keyword: did you mean `{meant}`?");
                    findings.push(Finding { pointer, severity: Severity::Warning, message });
                }
            }
        }
    }
}

/// Required names that no property has, but that are near to one.
fn required(names: &[Value], properties: Option<&Value>, at: &str, findings: &mut Vec<Finding>) {
    let Some(properties) = properties.and_then(Value::as_object) else { return };
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) else { continue };
        if let Some(meant) = nearest(name, properties.keys().map(String::as_str)) {
            let message =
                format!("`{name}` is required and no property has that name: did you mean `{meant}`?");
            findings.push(Finding { pointer: format!("{at}/{index}"), severity: Severity::Warning, message });
        }
    }
}

/// The one of these words that is at most two letters away, a third of the word at most.
fn nearest<'w>(word: &str, among: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let most = (word.chars().count() / 3).min(2);
    among
        .map(|other| (strsim::osa_distance(word, other), other))
        .filter(|(away, _)| *away <= most)
        .min()
        .map(|(_, other)| other)
}
