//! Reads and checks the schema of the command line, before a model is downloaded or loaded.

use std::path::Path;
use std::sync::Arc;

use formwork_core::{Absent, Error, ErrorKind, Rule, Rules, Schema as _, Severity, Warning};
use formwork_review::document::{Document, Format};
use formwork_schema::{Compiled, compile, lint};
use formwork_shape::Shape;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::exit::Failed;
use crate::files;
use crate::rules::{self, Placed};
use crate::stderr::say;

/// A valid schema with its rules.
#[derive(Clone)]
pub(super) struct Usable {
    pub(super) schema: Value,
    /// The warning about the wrapper that the schema had.
    pub(super) unwrapped: Option<Warning>,
    pub(super) rules: Vec<Rule>,
    /// Instructions for the model, as a system message.
    pub(super) instructions: Option<String>,
    /// Inputs with their right answers.
    pub(super) examples: Vec<(String, Value)>,
    compiled: Arc<Compiled>,
}

impl Usable {
    /// Adds rules from another source. `known` are the rules from outside.
    ///
    /// # Errors
    /// One line with the location of a rule whose path the schema does not allow, or whose name is unknown.
    pub(super) fn with_rules(mut self, more: &[Placed], known: &Rules) -> Result<Self, Error> {
        let refused = |message| Error::new(ErrorKind::Schema, message);
        for placed in more {
            placed.check(&self.compiled).map_err(refused)?;
            self.rules.push(placed.clone().resolved(known).map_err(refused)?);
        }
        Ok(self)
    }
}

/// A schema of the command line.
pub(super) struct Given {
    /// The name in messages.
    pub(super) name: String,
    pub(super) usable: Usable,
}

/// Reads the argument of `--schema`: JSON Schema as JSON or YAML or a shape, as a file or as text, or a list of
/// fields such as `name, age: int`. Marks members that a text may lack, and adds the rules `more`. With `any`, the schema may allow any
/// value.
///
/// # Errors
/// [`Failed`] with the location of a mistake, or for a schema that no value satisfies.
pub(super) fn given(
    argument: &str,
    absent: &[Absent],
    more: &[Placed],
    known: &Rules,
    any: bool,
) -> Result<Given, Failed> {
    let path = Path::new(argument);
    let (name, schema) = if path == Path::new("-") || path.exists() || !is_inline(argument) {
        if argument != "-" && !path.exists() && path.extension().is_none() {
            return Err(Failed::usage(format!(
                "there is no file `{argument}`; for a list of fields write `name, age: int`, for one `{{name: string}}`"
            )));
        }
        (files::name(path), of_file(path)?)
    } else {
        ("--schema".to_owned(), of_text(argument)?)
    };
    let refused = |message: String| Failed::usage(format!("{name}: {message}"));
    if is_example(&schema) {
        return Err(refused(
            "this has no keyword of JSON Schema, so every value would satisfy it: write {\"type\": \"object\", \"properties\": \
             {...}}, or a shape, whose types have no quotes: {\"name\": string}"
                .to_owned(),
        ));
    }
    let usable = usable(schema, absent, known, any).map_err(|error| refused(error.to_string()))?;
    let usable = usable.with_rules(more, known).map_err(|error| Failed::usage(error.message()))?;
    warn(&name, &usable, any);
    Ok(Given { name, usable })
}

/// Prints the findings of a schema. Errors were rejected before, so all of them are warnings.
fn warn(name: &str, usable: &Usable, any: bool) {
    let findings = lint(&usable.schema).into_iter().filter(|finding| !(any && finding.pointer.is_empty()));
    findings.for_each(|finding| say!("{name}: {finding}"));
}

/// Reads the file of `--contract`. Marks members that a text may lack, and adds the rules `more`. With `any`, the schema may allow any
/// value.
///
/// # Errors
/// [`Failed`] with the file and the mistake.
pub(super) fn of_contract(
    path: &Path,
    absent: &[Absent],
    more: &[Placed],
    known: &Rules,
    any: bool,
) -> Result<Given, Failed> {
    let contract = files::contract(path)?;
    let name = files::name(path);
    let mut usable = usable(contract.schema, absent, known, any)
        .map_err(|error| Failed::usage(format!("{name}: {error}")))?;
    usable.rules.extend(contract.rules);
    (usable.instructions, usable.examples) = (contract.instructions, contract.examples);
    let usable = usable.with_rules(more, known).map_err(|error| Failed::usage(error.message()))?;
    warn(&name, &usable, any);
    Ok(Given { name, usable })
}

/// Returns whether an argument is the text of a schema, and not a mistyped file name.
fn is_inline(argument: &str) -> bool {
    let text = argument.trim_start();
    text.starts_with(['{', '[']) || argument.contains([',', '\n']) || argument.contains(": ")
}

fn of_file(path: &Path) -> Result<Value, Failed> {
    let bytes = files::bytes(path)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = files::name(path);
    let text = || {
        // Names the file and the byte.
        String::from_utf8(bytes.clone())
            .map_err(|_| Failed::usage(format!("{name} is not UTF-8: save the text as UTF-8")))
    };
    match extension {
        "shape" => shape(&name, &text()?),
        "yaml" | "yml" => {
            let document = Document::parse(&name, &text()?, Format::Yaml).map_err(Failed::usage)?;
            Ok(document.value().clone())
        }
        _ => files::json_of(path, &bytes).or_else(|error| {
            // A file with any other extension may contain a shape.
            match text() {
                Ok(text) if extension != "json" && Shape::parse(&text).is_ok() => shape(&name, &text),
                _ => Err(error),
            }
        }),
    }
}

fn of_text(text: &str) -> Result<Value, Failed> {
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return files::json_of_text("--schema", text.as_bytes());
    }
    let is_bracketed = text.trim_start().starts_with(['{', '[']);
    shape("--schema", &if is_bracketed { text.to_owned() } else { fields(text) })
}

fn shape(name: &str, text: &str) -> Result<Value, Failed> {
    files::shape(name, text).map(|shape| shape.document().clone())
}

/// Returns the shape of a list of fields: `name, age: int, tags: [str]`. A field without a type is a string.
fn fields(text: &str) -> String {
    let mut depth = 0_usize;
    let parts = text.split(|letter| {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        matches!(letter, ',' | '\n') && depth == 0
    });
    let field = |part: &str| match part.split_once(':') {
        None => format!("{part}: string"),
        Some((name, written)) => {
            let inner = written.trim().trim_start_matches('[').trim_end_matches(']').trim();
            let short = [
                ("int", "integer"),
                ("float", "number"),
                ("str", "string"),
                ("text", "string"),
                ("bool", "boolean"),
            ];
            match short.iter().find(|(short, _)| *short == inner) {
                Some((short, long)) => format!("{name}:{}", written.replacen(short, long, 1)),
                None => format!("{name}:{written}"),
            }
        }
    };
    let fields: Vec<String> = parts.map(str::trim).filter(|part| !part.is_empty()).map(field).collect();
    format!("{{{}}}", fields.join(", "))
}

/// Returns whether a document is an example of an object rather than a schema: no member is a keyword, and all
/// values are names of types, or examples themselves.
fn is_example(schema: &Value) -> bool {
    const TYPES: [&str; 12] = [
        "string", "number", "integer", "boolean", "any", "null", "object", "array", "int", "float", "bool",
        "str",
    ];

    let Value::Object(members) = schema else { return false };
    !members.is_empty()
        && members.iter().all(|(name, value)| match value {
            Value::String(text) => name != "type" && !name.starts_with('$') && TYPES.contains(&text.as_str()),
            Value::Array(items) => {
                items.iter().all(|item| item.as_str().is_some_and(|text| TYPES.contains(&text)))
            }
            value => is_example(value),
        })
        && !members.contains_key("type")
        && !members.contains_key("required")
}

/// Separates the rules from a schema without its wrapper, marks members that a text may lack, and compiles the schema.
///
/// # Errors
/// [`Error`] for a schema that is invalid, that no value satisfies or, without `any`, that every value satisfies, and for a rule
/// whose path the schema does not allow.
pub(super) fn usable(schema: Value, absent: &[Absent], known: &Rules, any: bool) -> Result<Usable, Error> {
    let refused = |message: String| Error::new(ErrorKind::Schema, message);
    let (mut schema, unwrapped) = files::unwrapped(schema);
    absent.iter().for_each(|absent| absent.declare(&mut schema));
    let own = rules::take(&mut schema).map_err(refused)?;
    let compiled =
        compile(&schema).map_err(|error| refused(format!("#{}: {}", error.pointer, error.message)))?;
    files::says_something(&schema, any)
        .map_err(|error| refused(format!("#{}: {}", error.pointer, error.message)))?;
    if let Some(finding) = lint(&schema).into_iter().find(|finding| finding.verdict == Severity::Error) {
        return Err(refused(format!("#{}: {}", finding.pointer, finding.words)));
    }
    Usable { schema, unwrapped, rules: Vec::new(), instructions: None, examples: Vec::new(), compiled }
        .with_rules(&own, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_fields_is_a_shape() {
        for (text, shape) in [
            ("name, age: int", "{name: string, age: integer}"),
            ("name,age:int,", "{name: string, age:integer}"),
            ("tags: [str], score?: float", "{tags: [string], score?: number}"),
            (
                "who: {name: string, born: integer}, ok: bool",
                "{who: {name: string, born: integer}, ok: boolean}",
            ),
            ("stage: draft | final, n: number | null", "{stage: draft | final, n: number | null}"),
        ] {
            assert_eq!(fields(text), shape);
            Shape::parse(shape).unwrap();
        }
    }

    #[test]
    fn an_example_is_no_schema_and_a_schema_no_example() {
        for (schema, expected) in [
            (r#"{"name": "string"}"#, true),
            (r#"{"name": "string", "tags": ["string"], "of": {"n": "integer"}}"#, true),
            (r#"{"type": "string"}"#, false),
            (r#"{"type": ["string", "null"]}"#, false),
            (r#"{"properties": {"name": {"type": "string"}}}"#, false),
            (r#"{"required": ["string"]}"#, false),
            (r#"{"$ref": "string"}"#, false),
            (r#"{"enum": [1]}"#, false),
            ("{}", false),
            ("true", false),
        ] {
            assert_eq!(is_example(&serde_json::from_str(schema).unwrap()), expected, "{schema}");
        }
    }
}
