use std::path::PathBuf;

use formwork_skill::{Skill, TemplateType};

use super::Folder;
use crate::exit::{Failed, Status};
use crate::rows::SkillRow;
use crate::{agents, output};

const AFTER_HELP: &str = "\
Examples:
  formwork skill check examples/skills
  formwork skill check examples/skills/ticket.yaml examples/skills/reply.yaml

Exit codes: 0 all skills are valid, 2 a skill is invalid.";

const LIST_HELP: &str = "\
Examples:
  formwork skill list --dir examples/skills
  formwork skill list --dir examples/skills --json

Exit codes: 0 the list is printed, 2 a file is invalid.";

/// Check skills
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Files, or folders of skills
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// List the skills of a folder
#[derive(clap::Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    folder: Folder,
    /// Print one JSON object per skill
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Status, Failed> {
    let mut wrong = Vec::new();
    for path in &args.paths {
        let loaded = if path.is_dir() {
            Skill::load_valid(path)
        } else {
            Skill::load(path).map(|skill| (vec![skill], Vec::new()))
        };
        let (skills, errors) = loaded.unwrap_or_else(|error| (Vec::new(), vec![error]));
        if skills.is_empty() && errors.is_empty() {
            wrong.push(format!("{}: there are no skills in this folder", path.display()));
        }
        for skill in agents::loaded(Ok(skills))? {
            output::line(format_args!("{}: {} ({})", skill.file(), skill.name(), kind(&skill)))?;
        }
        wrong.extend(errors.iter().map(|error| agents::skill(error).to_string()));
    }
    if wrong.is_empty() { Ok(Status::Ok) } else { Err(Failed::usage(wrong.join("\n"))) }
}

pub(super) fn list(args: &ListArgs) -> Result<Status, Failed> {
    for skill in args.folder.all()? {
        if args.json {
            output::row(&SkillRow::new(&skill))?;
            continue;
        }
        output::line(format_args!(
            "{} ({})\n    {}",
            skill.name(),
            kind(&skill),
            skill.descriptor().description
        ))?;
        for (name, spec) in &skill.descriptor().inputs {
            let optional = if spec.optional || spec.default.is_some() { ", optional" } else { "" };
            let about =
                if spec.description.is_empty() { String::new() } else { format!(": {}", spec.description) };
            output::line(format_args!("    --input {name}=<{}{optional}>{about}", spec.kind.as_str()))?;
        }
    }
    Ok(Status::Ok)
}

fn kind(skill: &Skill) -> String {
    match skill.descriptor().template_type {
        Some(kind) => TemplateType::as_str(kind).to_owned(),
        None => format!("handler {}", skill.descriptor().handler.as_deref().unwrap_or(skill.name())),
    }
}
