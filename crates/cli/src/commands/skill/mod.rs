//! `formwork skill`: runs, checks and measures skills.

mod check;
mod new;
mod report;
mod run;

use std::path::{Path, PathBuf};

use formwork::providers::Providers;
use formwork_skill::Skill;

use crate::agents;
use crate::exit::{Failed, Status};

const AFTER_HELP: &str = "\
Examples:
  formwork skill list --dir examples/skills
  formwork skill run headline --dir examples/skills --input text=\"Maria, 34, moved to Lisbon.\"
  formwork skill run examples/skills/ticket.yaml --input title=\"Charged twice\" --json
  formwork skill run review-reply --dir examples/skills --inputs inputs.json --provider ollama --model qwen3:8b
  formwork skill check examples/skills
  formwork skill new headline --type LLM_JSON_GENERATION
  formwork skill report --dir examples/skills --runs 20

A skill is a YAML file with typed inputs, a prompt, the schema of its output, and settings of the call; schemas/skill.json
describes it for editors.

Exit codes:
  0    done
  1    no valid answer, a review that failed or could not be completed, or (report) a missed target
  2    wrong usage, inputs, or a file that cannot be used
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Run, check and measure skills: prompts with typed inputs and checked outputs
#[derive(clap::Subcommand)]
#[command(after_help = AFTER_HELP)]
pub(crate) enum Command {
    Run(run::Args),
    Check(check::Args),
    List(check::ListArgs),
    New(new::Args),
    Report(report::Args),
}

pub(crate) fn run(command: &Command, providers: &Providers) -> Result<Status, Failed> {
    match command {
        Command::Run(args) => run::run(args, providers),
        Command::Check(args) => check::run(args),
        Command::List(args) => check::list(args),
        Command::New(args) => new::run(args),
        Command::Report(args) => report::run(args, providers),
    }
}

/// The folder of skills.
#[derive(clap::Args)]
struct Folder {
    /// Folder of the skills
    #[arg(long, default_value = "skills", value_name = "FOLDER")]
    dir: PathBuf,
}

impl Folder {
    /// Returns all skills of the folder.
    fn all(&self) -> Result<Vec<Skill>, Failed> {
        if !self.dir.is_dir() {
            let folder = self.dir.display();
            return Err(Failed::usage(format!(
                "there is no folder `{folder}`: name the folder of the skills with --dir FOLDER, or the file of a skill"
            )));
        }
        agents::loaded(Skill::load_all(&self.dir))
    }

    /// Returns the skill of a name or of a file.
    fn one(&self, name: &str) -> Result<Skill, Failed> {
        let path = Path::new(name);
        if path.extension().is_some() {
            return agents::loaded(Skill::load(path).map(|skill| [skill])).map(|[skill]| skill);
        }
        // The usual file is tried first, so that errors in other skills do not matter.
        let usual = self.dir.join(format!("{name}.yaml"));
        if usual.is_file() {
            let skill = Skill::load(&usual).map_err(|error| agents::skill(&error))?;
            if skill.name() == name {
                return agents::loaded(Ok([skill])).map(|[skill]| skill);
            }
        }
        let all = self.all()?;
        let names: Vec<&str> = all.iter().map(Skill::name).collect();
        let advice = match formwork_review::document::nearest(name, names.iter().copied()) {
            Some(meant) => format!(": did you mean `{meant}`?"),
            None if names.is_empty() => ": it has no skills (--dir FOLDER names another folder)".to_owned(),
            None => format!("; there are {} (--dir FOLDER names another folder)", names.join(", ")),
        };
        let folder = self.dir.display();
        all.iter()
            .find(|skill| skill.name() == name)
            .cloned()
            .ok_or_else(|| Failed::usage(format!("there is no skill `{name}` in {folder}{advice}")))
    }
}
