use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use formwork_skill::{Skill, TemplateType, draft};

use super::Folder;
use crate::exit::{Failed, Status};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  formwork skill new headline
  formwork skill new judge-headline --type LLM_REVIEW --dir examples/skills
  formwork skill new word-count --type handler

Types:
  LLM_JSON_GENERATION  a model fills in a schema
  LLM_REVIEW           a model judges one of the inputs by a rubric
  handler              a function of your own program does the work

Exit codes: 0 the file is written, 2 wrong usage, or the file exists.";

/// Write the file of a new skill, as a template
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The name of the skill: lowercase letters, digits and hyphens
    name: String,
    /// The type of skill, see below: LLM_JSON_GENERATION, LLM_REVIEW, or handler
    #[arg(long = "type", default_value = "LLM_JSON_GENERATION", value_parser = kind)]
    kind: Kind,
    #[command(flatten)]
    folder: Folder,
}

#[derive(Clone, Copy)]
struct Kind(Option<TemplateType>);

fn kind(text: &str) -> Result<Kind, String> {
    let all = [TemplateType::LlmJsonGeneration, TemplateType::LlmReview];
    if text == "handler" {
        return Ok(Kind(None));
    }
    let found = all.into_iter().find(|kind| kind.as_str() == text);
    found
        .map(|kind| Kind(Some(kind)))
        .ok_or_else(|| "expected LLM_JSON_GENERATION, LLM_REVIEW or handler".to_owned())
}

pub(super) fn run(args: &Args) -> Result<Status, Failed> {
    let text = draft(&args.name, args.kind.0);
    // An invalid name would produce an invalid file.
    if let Err(error) = Skill::parse("name", &text) {
        return Err(Failed::usage(format!("`{}` is no name of a skill: {error}", args.name)));
    }
    let path: PathBuf = args.folder.dir.join(format!("{}.yaml", args.name));
    let failed = |error: io::Error| Failed::usage(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&args.folder.dir).map_err(failed)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    output::line(path.display())?;
    Ok(Status::Ok)
}
