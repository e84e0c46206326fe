use std::collections::BTreeSet;
use std::time::Instant;

use formwork::providers::Providers;
use formwork_extract::CancellationToken;
use formwork_skill::{Skill, SkillReport, Tally};
use serde_json::Value;

use super::Folder;
use super::run::{opened, runner};
use crate::agents::{self, Asking};
use crate::exit::{Failed, Status};
use crate::ledger::now;
use crate::stderr::say;
use crate::targets::Targets;
use crate::{interrupt, output};

const AFTER_HELP: &str = "\
Examples:
  formwork skill report --dir examples/skills
  formwork skill report ticket --dir examples/skills --runs 20
  formwork skill report examples/skills/ticket.yaml --provider ollama --model qwen3:8b --json

It runs every skill on the `examples` of its file, and compares six figures with their targets: generations whose first
completion was valid, complete and not repaired; generations with retries; agreement of repeated reviews; validation time; run
time; and outputs that pass the skill's own rubric. A run without an answer is a miss of each.

Exit codes:
  0    no target was missed, or --allow-missed
  1    a target was missed
  2    wrong usage, or an invalid file
  3    no provider answered any run in time, or the model cannot be opened
  130  interrupted";

/// Measure a skill: valid at first, retries, consistency, validation time, run time
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Names or files of skills [default: all skills of the folder]
    skills: Vec<String>,
    /// Number of runs of each example, each with another seed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    asking: Asking,
    /// Exit with 0 even if a target is missed
    #[arg(long)]
    allow_missed: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let skills = match args.skills.as_slice() {
        [] => args.folder.all()?,
        names => names.iter().map(|name| args.folder.one(name)).collect::<Result<_, _>>()?,
    };
    // This program registers no handlers.
    let skills: Vec<Skill> =
        skills.into_iter().filter(|skill| skill.descriptor().template_type.is_some()).collect();
    if skills.iter().all(|skill| skill.descriptor().examples.is_empty()) {
        return Err(Failed::usage("there is nothing to measure: no skill has `examples`"));
    }
    let cancel = CancellationToken::new();
    let tally = interrupt::run(&cancel, measure(args, providers, &skills, &cancel))?;
    let report = tally.report();
    output::either(args.json, &report, || table(&report))?;
    if report.unavailable > 0 && report.unavailable == report.runs {
        return Err(Failed::unavailable("no provider answered any of the runs"));
    }
    Ok(Status::of(args.allow_missed || !report.is_missed()))
}

async fn measure(
    args: &Args,
    providers: &Providers,
    skills: &[Skill],
    cancel: &CancellationToken,
) -> Result<Tally, Failed> {
    let mut tally = Tally::default();
    let ledger = args.asking.ledger()?;
    let first = args.asking.seed().unwrap_or(1);
    // All skills share the opened models, because opening them once per skill would distort the times. Each run has its own
    // seed, and therefore its own runner on these backends.
    for skill in skills {
        let models = opened(skill, &args.targets, providers, args.asking.is_verbose()).await?;
        models.models().into_values().for_each(|model| tally.name_model(model));
        tally.name_skill(skill);
        for seed in first..first + args.runs {
            let asking = args.asking.with_seed(seed);
            let recorder = models.recorder(ledger.clone(), "skill report");
            let runner = runner(skill, &models, &asking, cancel, recorder);
            for (n, example) in skill.descriptor().examples.iter().enumerate() {
                let (began, started) = (Instant::now(), now());
                let result = runner.execute(skill.name(), Value::Object(example.clone())).await;
                let took = began.elapsed();
                if let Err(error) = &result {
                    say!("{}, example {}, seed {seed}: {error}", skill.name(), n + 1);
                }
                let review = result.as_ref().ok().and_then(|outcome| outcome.review.as_ref());
                if let Some(review) = review {
                    agents::record(ledger.as_ref(), "skill report", skill.name(), started, review);
                }
                if let Some(failed) = review.and_then(agents::not_carried_out) {
                    say!("{}, example {}, seed {seed}: {failed}", skill.name(), n + 1);
                }
                tally.add(&n.to_string(), took, &result);
                if cancel.is_cancelled() {
                    return Err(Failed::interrupted());
                }
            }
        }
    }
    Ok(tally)
}

/// Returns the table of the quality targets with the measured values, and what they are about.
fn table(report: &SkillReport) -> String {
    let mut text = format!("{:<27}{:<9}{:<12}{:<7}\n", "metric", "target", "measured", "n");
    for row in &report.targets {
        let measured = row.measured.map_or("-".to_owned(), |value| match row.unit.as_str() {
            "%" => format!("{value:.1} %"),
            unit => format!("{value:.3} {unit}"),
        });
        let met = match row.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        let line = format!(
            "{:<27}{:<9}{measured:<12}{:<7}{met:<8}{}",
            row.metric, row.target, row.n, row.measurement
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let listed = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    text.push_str(&format!("model: {}; skills: {}\n", listed(&report.models), listed(&report.skills)));
    report.remarks.iter().for_each(|remark| text.push_str(&format!("{remark}\n")));
    for (of, trust) in [("outputs", &report.trust), ("verdicts", &report.judged)] {
        if trust.leaves > 0 {
            text.push_str(&format!("history of the {of}: {trust}\n"));
        }
    }
    let SkillReport { runs, failed, unavailable, unreviewed, .. } = report;
    if failed + unreviewed > 0 {
        text.push_str(&format!(
            "of {runs} runs, {failed} failed and {unreviewed} could not be reviewed; no provider answered {unavailable} of them\n"
        ));
    }
    text
}
