//! `formwork shape check`: checks shapes, and documents against a shape.

use std::path::{Path, PathBuf};

use formwork_json::Places;

use crate::commands::extract::schema::shape_of;
use crate::exit::{Failed, Status};
use crate::{files, output, snippet};

const AFTER_HELP: &str = "\
Examples:
  formwork shape check *.shape
  formwork shape check feature-design.shape --document answer.json
  formwork shape check \"name, age: int\" --document answer.json

Exit codes: 0 everything is valid, 1 a document does not have the shape, 2 a shape or a file is invalid.";

/// Check shapes, and JSON documents against a shape
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shapes, each as a file or as text; `-` is standard input
    #[arg(required = true)]
    shapes: Vec<String>,
    /// A document to check against the shape; can be repeated
    #[arg(long, short)]
    document: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Status, Failed> {
    let inputs: Vec<&Path> =
        args.shapes.iter().map(Path::new).chain(args.document.iter().map(PathBuf::as_path)).collect();
    files::one_standard_input(&inputs)?;
    let [argument] = args.shapes.as_slice() else {
        if !args.document.is_empty() {
            return Err(Failed::usage("--document is checked against one shape: name one"));
        }
        return each(&args.shapes);
    };
    let shape = shape_of(argument)?;
    let mut done = Status::Ok;
    for document in &args.document {
        let text = files::text(document)?;
        let value = files::json_of(document, text.as_bytes())?;
        let violations = shape.validate(&value);
        let places = Places::find(&text, violations.iter().map(|violation| &violation.path));
        for violation in &violations {
            output::text(&snippet::violation(&files::name(document), &text, &places, violation))?;
            done = Status::Negative;
        }
    }
    Ok(done)
}

/// Checks all shapes, and reports the errors of each.
fn each(shapes: &[String]) -> Result<Status, Failed> {
    let mistakes: Vec<String> = shapes
        .iter()
        .filter_map(|argument| shape_of(argument).err())
        .map(|error| error.to_string())
        .collect();
    if mistakes.is_empty() { Ok(Status::Ok) } else { Err(Failed::usage(mistakes.join("\n"))) }
}
