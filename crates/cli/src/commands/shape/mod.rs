//! `formwork shape`: works with shapes, an informal notation for schemas.

mod attempts;
mod check;
mod convert;
mod run;

use clap::Parser as _;
use formwork::providers::Providers;
use formwork_shape::Shape;

use crate::color::Color;
use crate::commands::extract::schema::shape_of;
use crate::exit::{Failed, Status};

const AFTER_HELP: &str = "\
A shape is JSON with types in the places of values:

  {
    \"name\": string,                    // the model receives comments
    \"rationale\": markdown,
    \"due\": date,                       # as 2026-11-30
    \"stage\"?: \"draft\" | \"final\",       // ? : optional
    \"components\": [{\"id\": string, \"weight\": number | null}],
    \"risks\": [string]
  }

Types: string, markdown, number, integer, boolean, date, any; short: str, float, int, bool. A field without a type is a
string. A list of fields needs no outer brackets: `name, age: int`.";

/// Work with shapes, an informal notation for schemas
#[derive(clap::Subcommand)]
#[command(after_help = AFTER_HELP)]
pub(crate) enum Command {
    Run(Box<run::Args>),
    Check(check::Args),
    ToSchema(convert::ToSchema),
    FromSchema(convert::FromSchema),
}

pub(crate) fn run(command: &Command, providers: &Providers) -> Result<Status, Failed> {
    match command {
        Command::Run(args) => match &args.shape {
            Some(argument) => run::run(args, shape_of(argument)?, providers),
            None => Err(Failed::usage(
                "--shape is missing: pass the shape of the output, as a file or as text such as `name, age: int`",
            )),
        },
        Command::Check(args) => check::run(args),
        Command::ToSchema(args) => convert::to_schema(args),
        Command::FromSchema(args) => convert::from_schema(args),
    }
}

/// The arguments of `shape-runner-cli`.
#[derive(clap::Parser)]
#[command(
    name = "shape-runner-cli",
    version,
    about = "Generate JSON of one shape with a model, in up to three attempts"
)]
struct Runner {
    /// Color diagnostics; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: Color,
    #[command(flatten)]
    args: run::Args,
}

/// Runs `shape-runner-cli`. The default of `--shape` is the shape of the ShapeRunner document.
pub(crate) fn runner(providers: &Providers) -> Result<Status, Failed> {
    let Runner { color, args } = Runner::parse();
    color.choose();
    let shape = match &args.shape {
        Some(argument) => shape_of(argument)?,
        None => Shape::parse(FEATURE_DESIGN).map_err(|error| Failed::usage(error.pointed("built in")))?,
    };
    run::run(&args, shape, providers)
}

/// The shape in the ShapeRunner document, a feature design. `examples/feature-design.shape` is the same as a file.
pub(crate) const FEATURE_DESIGN: &str = r#"{
  "name": string,           // Required field
  "rationale": markdown,     // Required field
  "components": [           // Required array
    {
      "id": string,
      "responsibility": string,
      "api": markdown
    }
  ],
  "risks": [string]         // Required array of strings
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_shape_is_the_example() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/feature-design.shape");
        assert_eq!(std::fs::read_to_string(example).unwrap(), FEATURE_DESIGN);
        assert!(Shape::parse(FEATURE_DESIGN).is_ok());
    }
}
