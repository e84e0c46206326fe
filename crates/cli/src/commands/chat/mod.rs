//! `formwork chat`: answers to questions, in a fixed JSON format.

mod conversation;
mod tools;
mod wrap;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use formwork::providers::Providers;
use formwork_chat::{
    AnswerContract, ChatBuilder, ChatCode, ChatFailure, ChatResult, Conversation, JsonModeChatClient,
    StructuredAnswer, StructuredAnswerLite,
};
use formwork_core::{ErrorKind, is_answered, spaced};
use formwork_extract::CancellationToken;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::extract::report::indented;

use crate::argument::Source;
use crate::exit::{Failed, Status};
use crate::flags::{Sampling, seconds, set, usual};
use crate::ledger::Recording;
use crate::spinner::Spinner;
use crate::stderr::say;
use crate::targets::Targets;
use crate::{interrupt, output};

const AFTER_HELP: &str = "\
Examples:
  formwork chat \"What is JSON?\"
  formwork chat --debug --model qwen2.5-0.5b-instruct-q8_0.gguf \"What is JSON?\"
  formwork chat --tools examples/tools.yaml --allow-tools \"How many words has 'to be or not to be'?\"
      the arguments are validated, and corrected by the model, before a command receives them on standard input
  formwork chat --provider openai --model gpt-5.4-mini --text
      without a question, each line of standard input is a question of one conversation; /help lists commands.
      On a terminal, Ctrl-C ends an answer and keeps the conversation, Ctrl-D ends it, and answers are wrapped texts
  formwork chat --contract 1.1 \"Name three primes, and give them as data\"

Every answer has the format StructuredAnswerLite 1.0 (schemas/structured-answer-lite.v1.json); with --contract 1.1, `answer`
also has `data`, any JSON:
  {\"task\": {\"type\", \"user_intent\"}, \"answer\": {\"text\"}, \"quality\": {\"confidence\", \"assumptions\", \"risks\"},
   \"debug\": {\"schema_version\": \"1.0\", \"model\"}}

Exit codes:
  0    answered
  1    no valid answer
  2    wrong usage or configuration
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Ask a model questions, with validated answers in a fixed JSON format
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The question [default: a conversation on standard input]
    question: Option<String>,
    /// Print every attempt, failure and success on standard error
    #[arg(long)]
    debug: bool,
    #[command(flatten)]
    targets: Targets,
    /// Additional instructions for the model
    #[arg(long)]
    system: Option<String>,
    /// Maximum number of corrections of an answer [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=20))]
    max_retries: Option<u32>,
    #[command(flatten)]
    sampling: Sampling,
    /// Time limit in seconds for each question, including corrections [default: 120]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Request each answer as the arguments of a tool that the model is forced to call, if the provider supports it
    #[arg(long)]
    forced_tool: bool,
    /// File with tools that the model may call: a YAML or JSON list of name, description, parameters (a JSON Schema) and
    /// command. The command reads the arguments from standard input
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Allow the model to run the commands of --tools
    #[arg(long, requires = "tools")]
    allow_tools: bool,
    /// Offer the tools by the provider's own interface for tool calls instead of in the prompt, if it has one
    #[arg(long, requires = "tools")]
    native_tools: bool,
    /// Maximum number of calls per minute [default: no limit]
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// The version of the contract: 1.0, or 1.1 with `answer.data`
    #[arg(long, default_value = "1.0", value_parser = ["1.0", "1.1"])]
    contract: String,
    /// Validate answers by the schema library instead of the hand-written validator; both give the same verdicts
    #[arg(long)]
    schema_validation: bool,
    /// Print only the text of the answer
    #[arg(long)]
    text: bool,
    /// Print the result or the failure with all calls as one JSON object
    #[arg(long, conflicts_with = "text")]
    json: bool,
    #[command(flatten)]
    recording: Recording,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    if args.question.as_ref().is_some_and(|question| question.trim().is_empty()) {
        return Err(Failed::usage("the question is empty"));
    }
    if let Some(named) = args.question.as_deref().and_then(Source::named_by) {
        return Err(Failed::usage(match named {
            Source::File(file) if file == "-" => {
                "the question `-` is not a question: write none for a conversation on standard input"
                    .to_owned()
            }
            Source::File(file) => format!(
                "the question is only the name of the file {file}, which the model cannot read: write a question and the \
                 contents of the file, for example \"Summarise this: $(cat {file})\""
            ),
            Source::Url(url) => {
                format!(
                    "the question is only an address, which is not downloaded: write a question about {url}"
                )
            }
        }));
    }
    match args.contract.as_str() {
        "1.1" => answer::<StructuredAnswer<Value>>(args, providers),
        _ => answer::<StructuredAnswerLite>(args, providers),
    }
}

/// An answer that the command prints.
trait Printed: AnswerContract + Serialize + JsonSchema {
    fn text(&self) -> &str;

    /// Returns the data of the answer, if it has some.
    fn data(&self) -> Option<&Value> {
        None
    }
}

impl Printed for StructuredAnswerLite {
    fn text(&self) -> &str {
        &self.answer.text
    }
}

impl Printed for StructuredAnswer<Value> {
    fn text(&self) -> &str {
        &self.answer.text
    }

    fn data(&self) -> Option<&Value> {
        Some(&self.answer.data).filter(|data| !data.is_null())
    }
}

fn answer<A: Printed>(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    if args.question.is_none() && io::stdin().is_terminal() {
        return interrupt::left_to(async {
            let mut conversation = client::<A>(args, providers).await?.conversation();
            conversation::on_terminal(args, &mut conversation).await
        });
    }
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        let mut conversation = client::<A>(args, providers).await?.conversation();
        match &args.question {
            Some(question) => ask(args, &mut conversation, question, &cancel).await,
            None => conversation::of_lines(args, &mut conversation, &cancel).await,
        }
    })
}

async fn client<A: Printed>(args: &Args, providers: &Providers) -> Result<JsonModeChatClient<A>, Failed> {
    let tools = match &args.tools {
        Some(file) => tools::of_file(file, args.allow_tools)?,
        None => Vec::new(),
    };
    let ledger = args.recording.open()?;
    let opened = args.targets.open(providers, args.debug).await?;
    opened.say_how_small_the_default_model_is();
    let recorder = opened.recorder(ledger, "chat");
    let flags = args.sampling.defaults(args.max_retries.map(|retries| retries + 1), args.timeout);
    let settings = flags.or(opened.defaults.clone()).or(usual(2, None, 120.0));
    let policy = settings.limit(formwork_chat::policy(1));
    let mut builder = JsonModeChatClient::<A>::typed().with_policy(policy).with_debug(args.debug);
    if opened.is_tiny {
        builder = builder.with_copies_rejected();
    }
    if args.schema_validation {
        builder = builder.with_schema_validation();
    }
    if args.forced_tool {
        builder = builder.with_forced_tool();
    }
    if args.native_tools {
        builder = builder.with_native_tools();
    }
    builder = set(builder, settings.max_tokens, ChatBuilder::with_max_tokens);
    builder = set(builder, settings.timeout(), ChatBuilder::with_timeout);
    if !args.debug {
        builder = builder.with_observer(Spinner::new());
    }
    builder = set(builder, recorder, ChatBuilder::with_observer);
    builder = set(builder, args.system.as_ref(), ChatBuilder::with_system);
    builder = set(builder, settings.temperature, ChatBuilder::with_temperature);
    builder = set(builder, args.sampling.seed, ChatBuilder::with_seed);
    if let Some(calls) = args.rate {
        builder = builder.with_rate_limit(calls as usize, Duration::from_secs(60));
    }
    let builder = tools.into_iter().fold(builder, ChatBuilder::with_tool);
    let builder = opened.backends.into_iter().fold(builder, ChatBuilder::with_target);
    builder.build().map_err(Failed::usage)
}

/// Answers one question. A failure ends the command.
async fn ask<A: Printed>(
    args: &Args,
    conversation: &mut Conversation<A>,
    question: &str,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    let result = conversation.ask_with(question, cancel).await;
    warn(args, &result, &mut Vec::new());
    print(args, &result)?;
    match result.failure() {
        None => Ok(Status::Ok),
        Some(failure) => Err(failed(failure)),
    }
}

/// Prints the warnings of a result that the conversation has not printed yet, one line each. The spinner prints the notes of calls.
fn warn<A>(args: &Args, result: &ChatResult<A>, warnings: &mut Vec<String>) {
    for warning in result.warnings() {
        let is_note = result.calls().iter().any(|call| call.notes.contains(warning));
        if !warnings.contains(warning) && (args.debug || !is_note) {
            say!("warning: {warning}");
            warnings.push(warning.clone());
        }
    }
}

fn print<A: Printed>(args: &Args, result: &ChatResult<A>) -> Result<(), Failed> {
    match result.answer() {
        _ if args.json => output::row(result),
        Some(answer) if args.text => output::line(answer.text()),
        Some(answer) => output::line(spaced(&serde_json::to_value(answer).map_err(io::Error::from)?)),
        None => Ok(()),
    }
}

/// Returns a failure with the exit code of its class and all violations.
fn failed(failure: &ChatFailure) -> Failed {
    // A call that failed has the same message as in other commands; `--json` has the code of chat.
    let mut message = match kind(failure.code) {
        Some(kind) => format!("{kind}: {}", failure.message),
        None => failure.to_string(),
    };
    for error in &failure.errors {
        message.push_str(&format!("\n  {}", indented(&error.to_string())));
    }
    if failure.left_out() > 0 {
        message.push_str(&format!("\n  and {} more", failure.left_out()));
    }
    let answered = is_answered(&failure.calls, failure.code == ChatCode::Timeout);
    match kind(failure.code) {
        Some(kind) => Failed::of(kind, answered, message),
        None => Failed::no_answer(message),
    }
}

/// Returns the error kind of a failure, unless the failure is about the content of an answer.
const fn kind(code: ChatCode) -> Option<ErrorKind> {
    match code {
        ChatCode::Configuration | ChatCode::BadRequest => Some(ErrorKind::Config),
        ChatCode::Timeout => Some(ErrorKind::Deadline),
        ChatCode::Cancelled => Some(ErrorKind::Cancelled),
        ChatCode::RateLimited
        | ChatCode::AuthenticationFailed
        | ChatCode::NoCredit
        | ChatCode::Unavailable => Some(ErrorKind::Unavailable),
        _ => None,
    }
}
