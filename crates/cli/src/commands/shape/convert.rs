//! `formwork shape to-schema` and `from-schema`.

use std::path::PathBuf;

use formwork_core::Schema as _;
use formwork_shape::Shape;
use serde_json::{Map, Value};

use crate::commands::extract::schema::shape_of;
use crate::exit::{Failed, Status};
use crate::stderr::say;
use crate::{files, output};

const TO_HELP: &str = "\
Examples:
  formwork shape to-schema examples/feature-design.shape
  formwork shape to-schema \"vendor, items: [{name, qty: int}]\"
  echo '{\"name\": string, \"age\"?: integer}' | formwork shape to-schema

Exit codes: 0 the schema is printed, 2 the shape or the file is invalid.";

const FROM_HELP: &str = "\
Examples:
  formwork shape from-schema examples/person.schema.json
  formwork shape from-schema examples/person.schema.json > person.shape

Exit codes: 0 the shape is printed, 2 the schema or the file is invalid.";

/// Convert a shape to JSON Schema
#[derive(clap::Args)]
#[command(after_help = TO_HELP)]
pub(crate) struct ToSchema {
    /// The shape, as a file or as text, or a list of fields such as "name, age: int"; `-` is standard input
    #[arg(default_value = "-")]
    shape: String,
}

/// Convert a JSON Schema to a shape; print the keywords that a shape cannot express on standard error
#[derive(clap::Args)]
#[command(after_help = FROM_HELP)]
pub(crate) struct FromSchema {
    /// The JSON Schema; `-` is standard input
    #[arg(default_value = "-")]
    schema: PathBuf,
}

pub(super) fn to_schema(args: &ToSchema) -> Result<Status, Failed> {
    let shape = shape_of(&args.shape)?;
    let draft = ("$schema".to_owned(), Value::from("https://json-schema.org/draft/2020-12/schema"));
    let keywords = shape.document().as_object().into_iter().flatten();
    let keywords = keywords.map(|(keyword, value)| (keyword.clone(), value.clone()));
    let schema: Map<String, Value> = std::iter::once(draft).chain(keywords).collect();
    output::line(format_args!("{:#}", Value::Object(schema)))?;
    Ok(Status::Ok)
}

pub(super) fn from_schema(args: &FromSchema) -> Result<Status, Failed> {
    let path = &args.schema;
    let (shape, unsaid) = Shape::from_schema(&files::json(path)?)
        .map_err(|error| Failed::usage(format!("{}: {error}", files::name(path))))?;
    output::line(shape)?;
    for one in unsaid {
        say!("{}: {one}", files::name(path));
    }
    Ok(Status::Ok)
}
