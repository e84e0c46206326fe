//! Reads and checks the schema of the command line, before a model is downloaded or loaded.

use std::path::Path;
use std::sync::Arc;

use formwork::config::Places;
use formwork_core::{Absent, Coerce, Error, ErrorKind, Rule, Rules, Schema as _, Severity, Warning};
use formwork_schema::{Compiled, compile, lint};
use formwork_shape::Shape;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::exit::Failed;
use crate::files;
use crate::rules::{self, Placed};
use crate::stderr::say;

/// The options that mark members of a schema.
#[derive(Default, clap::Args)]
pub(crate) struct Marks {
    /// Accept null, or nothing, for members that the text does not state: for all required members, or for the member at PATH (such
    /// as `$.items[*].note`; repeatable). The value has null there, and `not_stated` of --json lists the paths
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) may_be_absent: Vec<Absent>,
    /// Set what is done with values that do not fit the schema: strict and ask (ask again), fix (convert what loses nothing, such as
    /// "34" for an integer), drop (leave optional members out, and at a PATH such as `$.names[*]` items of a list), default (use
    /// `default` of the schema), guess (also doubtful conversions, such as "12,111"); for the whole, or for the member at PATH
    /// (repeatable) [default: fix]
    #[arg(long, value_name = "[PATH=]HOW")]
    pub(crate) coerce: Vec<Coerce>,
}

/// A valid schema with its rules.
#[derive(Clone)]
pub(crate) struct Usable {
    pub(crate) schema: Value,
    /// The warning about the wrapper that the schema had.
    pub(crate) unwrapped: Option<Warning>,
    pub(crate) rules: Vec<Rule>,
    /// Instructions for the model, as a system message.
    pub(crate) instructions: Option<String>,
    /// Inputs with their right answers.
    pub(crate) examples: Vec<(String, Value)>,
    pub(crate) evidence: Option<Places>,
    pub(crate) compiled: Arc<Compiled>,
}

impl Usable {
    /// Adds rules from another source. `known` are the rules from outside.
    ///
    /// # Errors
    /// One line with the location of a rule whose path the schema does not allow, or whose name is unknown.
    pub(crate) fn with_rules(mut self, more: &[Placed], known: &Rules) -> Result<Self, Error> {
        let refused = |message| Error::new(ErrorKind::Schema, message);
        for placed in more {
            placed.check(&self.compiled).map_err(refused)?;
            self.rules.push(placed.clone().resolved(known).map_err(refused)?);
        }
        Ok(self)
    }
}

/// A schema of the command line.
pub(crate) struct Given {
    /// The name in messages.
    pub(crate) name: String,
    pub(crate) usable: Usable,
}

/// Reads the argument of `--schema`: JSON Schema as JSON or YAML or a shape, as a file or as text, or a list of
/// fields such as `name, age: int`. Marks members that a text may lack, and adds the rules `more`. With `any`, the schema may allow any
/// value.
///
/// # Errors
/// [`Failed`] with the location of a mistake, or for a schema that no value satisfies.
pub(crate) fn given(
    argument: &str,
    marks: &Marks,
    more: &[Placed],
    known: &Rules,
    any: bool,
) -> Result<Given, Failed> {
    let (name, schema) = match file_of(argument) {
        Some(path) => (files::name(path), of_file(path)?),
        None => ("--schema".to_owned(), of_text(argument)?),
    };
    let refused = |message: String| Failed::usage(format!("{name}: {message}"));
    if is_example(&schema) {
        return Err(refused(
            "this has no keyword of JSON Schema, so every value would satisfy it: write {\"type\": \"object\", \"properties\": \
             {...}}, or a shape, whose types have no quotes: {\"name\": string}"
                .to_owned(),
        ));
    }
    let usable = usable(schema, marks, known, any).map_err(|error| refused(error.to_string()))?;
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
pub(crate) fn of_contract(
    path: &Path,
    marks: &Marks,
    more: &[Placed],
    known: &Rules,
    any: bool,
) -> Result<Given, Failed> {
    let contract = files::contract(path)?;
    let name = files::name(path);
    let mut usable = usable(contract.schema, marks, known, any)
        .map_err(|error| Failed::usage(format!("{name}: {error}")))?;
    usable.rules.extend(contract.rules);
    (usable.instructions, usable.examples) = (contract.instructions, contract.examples);
    usable.evidence = contract.evidence;
    let usable = usable.with_rules(more, known).map_err(|error| Failed::usage(error.message()))?;
    warn(&name, &usable, any);
    Ok(Given { name, usable })
}

/// Returns the file that an argument names, even if it does not exist; `None` if the argument is the text of a schema: a
/// bracket, several fields, a field with a type or a description, or the name of one field.
pub(crate) fn file_of(argument: &str) -> Option<&Path> {
    let path = Path::new(argument);
    if argument == "-" || path.exists() {
        return Some(path);
    }
    let is_name =
        |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '?' | '~'));
    let is_field =
        |text: &str| text.split_once(':').is_some_and(|(name, _)| is_name(name) && !text.contains('\\'));
    let is_text = argument.trim_start().starts_with(['{', '['])
        || argument.contains([',', '\n', '#'])
        || argument.contains(": ")
        || is_field(argument)
        || is_name(argument);
    (!is_text).then_some(path)
}

/// Parses the argument of `--shape`: a shape as a file or as text, or a list of fields.
pub(crate) fn shape_of(argument: &str) -> Result<Shape, Failed> {
    match file_of(argument) {
        Some(path) => files::shape(&files::name(path), &files::text(path)?, false),
        None => files::shape("--shape", argument, true),
    }
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
        "shape" => shape(&name, &text()?, false),
        "yaml" | "yml" => Ok(files::document(path)?.value().clone()),
        _ => files::json_of(path, &bytes).or_else(|error| {
            // A file with any other extension may contain a shape.
            match text() {
                Ok(text) if extension != "json" && Shape::parse(&text).is_ok() => shape(&name, &text, false),
                _ => Err(error),
            }
        }),
    }
}

fn of_text(text: &str) -> Result<Value, Failed> {
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return files::json_of_text("--schema", text.as_bytes());
    }
    shape("--schema", text, true)
}

fn shape(name: &str, text: &str, is_argument: bool) -> Result<Value, Failed> {
    files::shape(name, text, is_argument).map(|shape| shape.document().clone())
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
pub(crate) fn usable(schema: Value, marks: &Marks, known: &Rules, any: bool) -> Result<Usable, Error> {
    let refused = |message: String| Error::new(ErrorKind::Schema, message);
    let (mut schema, unwrapped) = files::unwrapped(schema);
    marks.may_be_absent.iter().for_each(|absent| absent.declare(&mut schema));
    marks.coerce.iter().for_each(|coerce| coerce.declare(&mut schema));
    let own = rules::take(&mut schema).map_err(refused)?;
    let compiled =
        compile(&schema).map_err(|error| refused(format!("#{}: {}", error.pointer, error.message)))?;
    files::says_something(&schema, any)
        .map_err(|error| refused(format!("#{}: {}", error.pointer, error.message)))?;
    if let Some(finding) = lint(&schema).into_iter().find(|finding| finding.verdict == Severity::Error) {
        return Err(refused(format!("#{}: {}", finding.pointer, finding.words)));
    }
    Usable {
        schema,
        unwrapped,
        rules: Vec::new(),
        instructions: None,
        examples: Vec::new(),
        evidence: None,
        compiled,
    }
    .with_rules(&own, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_told_from_the_name_of_a_file() {
        for text in [
            "name",
            "name?",
            "name~",
            "name~?: str",
            "name, age: int",
            "a:int",
            "{a: str}",
            " [str]",
            "a\nb",
            "who # the name",
        ] {
            assert!(file_of(text).is_none(), "{text}");
        }
        for name in
            ["-", "person.json", "schemas/person", "../person", "C:\\a.json", "a.b", "person.schema.json"]
        {
            assert!(file_of(name).is_some(), "{name}");
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
