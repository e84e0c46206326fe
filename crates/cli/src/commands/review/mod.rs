//! `formwork review`: reviews an output against a rubric, or compares two outputs.

use std::path::{Path, PathBuf};

use formwork::config::Defaults;
use formwork::providers::Providers;
use formwork_core::{JsonPath, Structure};
use formwork_extract::CancellationToken;
use formwork_ledger::Ledger;
use formwork_review::{
    Agent, Comparison, CriterionResult, LlmReviewService, Material, Pair, Preferred, ReviewPrice,
    ReviewResult, ReviewRubric, Verdict,
};

use crate::agents::{self, Asking};
use crate::commands::extract::schema;
use crate::exit::{Failed, Status};
use crate::flags::{set, temperature};
use crate::ledger::now;
use crate::stderr::say;
use crate::targets::Targets;
use crate::{files, interrupt, output};

const AFTER_HELP: &str = "\
Examples:
  formwork review --rubric examples/skills/rubrics/reply.yaml reply.txt
  formwork review --rubric rubric.yaml --task \"Answer the customer.\" --data price_list=@prices.json --json reply.txt
  echo '{\"title\": \"Crash\"}' | formwork review --rubric rubric.yaml
  formwork review --rubric rubric.yaml --check
  formwork review --against other.txt --task \"Explain JSON.\" answer.txt
  formwork review --rubric rubric.yaml --config production.toml answer.json

A rubric is YAML or TOML:

  name: reply
  votes: {extra: 2, near: 10}      # optional: more votes if the judge is not sure
  criteria:
    - id: polite
      description: The reply is polite.
    - id: short                    # decided without a model; also `rule` and `pattern`
      description: The reply has at most 400 characters.
      schema: {maxLength: 400}

Exit codes:
  0    no criterion failed; the last line says `undecided` if one could not be evaluated (with --against: one of the two is better)
  1    a criterion failed, or the judge gave no usable answer about it (with --against: neither is better)
  2    wrong usage, or an invalid rubric or file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Review an output against a rubric
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The output, JSON or text; `-` is standard input
    #[arg(default_value = "-")]
    output: PathBuf,
    /// The rubric, YAML or TOML
    #[arg(long, short, required_unless_present = "against")]
    rubric: Option<PathBuf>,
    /// Schema of the output, as for `formwork extract`: paths of the rubric that it does not have are errors
    #[arg(long, short, conflicts_with = "against")]
    schema: Option<String>,
    /// Compare with this output instead, in both orders
    #[arg(long, value_name = "FILE", conflicts_with = "rubric")]
    against: Option<PathBuf>,
    /// The task of the output; `@FILE` is the text of a file
    #[arg(long)]
    task: Option<String>,
    /// Data for criteria, JSON or text; `NAME=@FILE` is the content of a file
    #[arg(long, value_name = "NAME=VALUE", value_parser = agents::pair, conflicts_with = "against")]
    data: Vec<(String, String)>,
    /// Only check the rubric
    #[arg(long, conflicts_with = "against")]
    check: bool,
    /// Sampling temperature of the judge, from 0 to 2 [default: 0.2]
    #[arg(long, short, value_parser = temperature)]
    temperature: Option<f64>,
    /// Maximum number of criteria in progress at a time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    asking: Asking,
    /// Exit with 1 also if a criterion is indeterminate
    #[arg(long, conflicts_with = "against")]
    fail_on_indeterminate: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        match (&args.rubric, &args.against) {
            (Some(path), _) => review(args, providers, path, &cancel).await,
            (None, Some(other)) => compare(args, providers, other, &cancel).await,
            (None, None) => Err(Failed::usage("--rubric is missing")),
        }
    })
}

async fn review(
    args: &Args,
    providers: &Providers,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    let rubric = rubric(path, args.schema.as_deref(), providers)?;
    if args.check {
        output::line(format_args!("{}: {} criteria", files::name(path), rubric.criteria.len()))?;
        return Ok(Status::Ok);
    }
    let mut material = Material::new(agents::output(&args.output)?);
    if let Some(task) = &args.task {
        material.task = agents::value(task)?;
    }
    for (name, text) in &args.data {
        let text = agents::value(text)?;
        material.data.insert(name.into(), files::json_or_text(&format!("--data {name}"), text)?);
    }
    let (ledger, started) = (args.asking.ledger()?, now());
    // If rules decide all criteria, no model is opened.
    let service = if rubric.asks_a_model() {
        service(args, providers, cancel, ledger.clone()).await?
    } else {
        LlmReviewService::new(Agent::new([]))
    };
    let review = service.review(material, &rubric).await.map_err(|error| agents::run(&error))?;
    agents::record(ledger.as_ref(), "review", &rubric.name, started, &review);
    output::either(args.json, &review, || words(&review))?;
    match agents::not_carried_out(&review) {
        Some(failed) => Err(failed),
        None => Ok(Status::of(review.passes(args.fail_on_indeterminate))),
    }
}

async fn compare(
    args: &Args,
    providers: &Providers,
    other: &Path,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    files::one_standard_input(&[&args.output, other])?;
    let task = args.task.as_ref().map(|task| agents::value(task)).transpose()?.unwrap_or_default();
    let pair = Pair { task, a: files::text(&args.output)?, b: files::text(other)? };
    let service = service(args, providers, cancel, args.asking.ledger()?).await?;
    let comparison = service.compare(&pair).await.map_err(|error| agents::run(&error))?;
    output::either(args.json, &comparison, || {
        compared(&comparison, &files::name(&args.output), &files::name(other))
    })?;
    Ok(if comparison.preferred == Preferred::Indeterminate { Status::Negative } else { Status::Ok })
}

async fn service(
    args: &Args,
    providers: &Providers,
    cancel: &CancellationToken,
    ledger: Option<Ledger>,
) -> Result<LlmReviewService, Failed> {
    let opened = args.targets.open(providers, args.asking.is_verbose()).await?;
    let recorder = opened.recorder(ledger, "review");
    opened.say_what_the_default_model_is(agents::NO_JUDGE);
    let agent = with_defaults(Agent::new(opened.backends), &opened.defaults);
    let agent = args.asking.apply(agent, cancel, recorder.as_ref());
    let mut service = LlmReviewService::new(agent);
    service.concurrency = usize::from(args.concurrency);
    service.temperature = args.temperature.or(opened.defaults.temperature).unwrap_or(service.temperature);
    Ok(service)
}

/// Returns an agent with the defaults of the configuration, except for the temperature.
fn with_defaults(agent: Agent, defaults: &Defaults) -> Agent {
    let policy = defaults.limit(agent.policy().clone());
    let agent = set(agent.with_policy(policy), defaults.max_tokens, Agent::with_max_tokens);
    set(agent, defaults.timeout(), Agent::with_time_limit)
}

/// Reads the rubric of a file, for outputs of a schema if there is one.
fn rubric(path: &Path, schema: Option<&str>, providers: &Providers) -> Result<ReviewRubric, Failed> {
    let given = schema
        .map(|schema| schema::given(schema, &schema::Marks::default(), &[], providers.rules(), false))
        .transpose()?;
    let output = given.as_ref().map(|given| given.usable.compiled.as_ref() as &dyn Structure);
    let document = files::document(path)?;
    let rubric: ReviewRubric = document.read().map_err(|error| agents::document(&error))?;
    rubric.checked(&document, &JsonPath::root(), output).map_err(|error| agents::document(&error))?;
    rubric.lint(&document, &JsonPath::root()).iter().for_each(|finding| say!("warning: {finding}"));
    Ok(rubric)
}

/// Formats a review for people.
pub(super) fn words(review: &ReviewResult) -> String {
    let mut text = String::new();
    for result in &review.criteria_results {
        text.push_str(&format!("{}\n", line(result)));
    }
    let lists = [
        ("issues", &review.issues),
        ("suggested fixes", &review.suggested_fixes),
        ("indeterminate", &review.indeterminate),
    ];
    for (title, points) in lists.into_iter().filter(|(_, points)| !points.is_empty()) {
        text.push_str(&format!("{title}:\n"));
        for point in points {
            text.push_str(&format!("  - {}\n", plain(point)));
        }
    }
    if let Some(error) = &review.error {
        text.push_str(&format!("not carried out: {}\n", plain(&error.message)));
    }
    let trust = review.trust();
    if trust.free < trust.leaves {
        text.push_str(&format!("history of the judge's answers: {trust}\n"));
    }
    let count =
        review.criteria_results.iter().filter(|result| result.verdict == Verdict::Indeterminate).count();
    let verdict = agents::gate(review);
    let (all, price) = (review.criteria_results.len(), price(&review.price));
    let count = if count > 0 { format!(", {count} of {all} undecided") } else { String::new() };
    text.push_str(&format!("{verdict}{count} ({price})\n"));
    text
}

fn line(result: &CriterionResult) -> String {
    let CriterionResult { criterion_id, verdict, reasoning, confidence, votes, .. } = result;
    let verdict = match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Indeterminate => "?   ",
    };
    let sure = match votes {
        0 => String::new(),
        1 => format!(" (confidence {confidence})"),
        votes => format!(" (confidence {confidence}, {votes} votes)"),
    };
    format!("{verdict}  {criterion_id}: {}{sure}", plain(reasoning))
}

/// Formats a price for people.
fn price(price: &ReviewPrice) -> String {
    let ReviewPrice { calls, extra_calls, usage, .. } = price;
    let extra = if *extra_calls > 0 { format!(", {extra_calls} of them for votes") } else { String::new() };
    let calls = if *calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    format!("{calls}{extra}, {} tokens in, {} out", usage.input_tokens, usage.output_tokens)
}

fn compared(comparison: &Comparison, one: &str, other: &str) -> String {
    let name = |preferred| match preferred {
        Preferred::A => one,
        Preferred::B => other,
        Preferred::Indeterminate => "neither",
    };
    let mut text = String::new();
    for (order, verdict) in [("first", &comparison.forward), ("second", &comparison.swapped)] {
        let (preferred, why) = (name(verdict.preferred), plain(&verdict.reasoning));
        text.push_str(&format!(
            "{one} shown {order}: {preferred} (confidence {}): {why}\n",
            verdict.confidence
        ));
    }
    let why = if comparison.consistent { "" } else { ", because the order decides" };
    text.push_str(&format!("better: {}{why} ({})\n", name(comparison.preferred), price(&comparison.price)));
    text
}

/// Returns the text of a model on one line, without control characters for terminals.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
