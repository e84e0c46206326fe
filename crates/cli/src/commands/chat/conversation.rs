//! Conversations: on a terminal, with line editing, and of the lines of standard input.

use std::io::{self, BufRead as _, IsTerminal as _};

use formwork_chat::{ChatCode, ChatResult, Conversation};
use formwork_core::spaced;
use formwork_extract::CancellationToken;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::{Args, Printed, failed, print, warn, wrap};
use crate::exit::{Failed, Status};
use crate::output;
use crate::stderr::say;

/// The commands of a conversation.
const HELP: &str = "/new starts a new conversation, /quit ends";

/// The keys of a conversation on a terminal.
const KEYS: &str =
    "Ctrl-C ends an answer, Ctrl-D the conversation; the arrow keys edit a line and show earlier ones";

/// The number of columns of a terminal that does not say it.
const USUAL_WIDTH: usize = 80;

/// The next step after a line.
enum Line<'l> {
    Ask(&'l str),
    Nothing,
    Unknown,
    End,
}

/// Carries out a command, or returns the question of a line. Messages are wrapped to `width` columns.
fn line<'l, A: Printed>(
    line: &'l str,
    conversation: &mut Conversation<A>,
    keys: &str,
    width: usize,
) -> Line<'l> {
    match line.trim() {
        "" => Line::Nothing,
        "/quit" => Line::End,
        "/new" => {
            conversation.clear();
            Line::Nothing
        }
        "/help" => {
            tell(&format!("{HELP}{keys}"), width);
            Line::Nothing
        }
        command if is_command(command) => {
            tell(&format!("error: there is no command `{command}`: {HELP}"), width);
            Line::Unknown
        }
        question => Line::Ask(question),
    }
}

/// Prints a message of the conversation, wrapped to `width` columns.
fn tell(text: &str, width: usize) {
    say!("{}", wrap::wrapped(text, width).trim_end());
}

/// Returns whether a line is one word after a slash. A path or a comment is a question.
fn is_command(line: &str) -> bool {
    let word = line.strip_prefix('/').unwrap_or_default();
    !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

/// Answers one question per line until the end of input. After a failure the conversation continues.
pub(super) async fn of_lines<A: Printed>(
    args: &Args,
    conversation: &mut Conversation<A>,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    let (mut done, mut warnings) = (Status::Ok, Vec::new());
    loop {
        // Reading in a separate thread keeps Ctrl-C working while the command waits for the next question.
        let read = tokio::task::spawn_blocking(next_line).await.map_err(Failed::usage)?;
        let read = read.map_err(|error| Failed::usage(format!("cannot read standard input: {error}")))?;
        let Some(text) = read else { return Ok(done) };
        match line(&text, conversation, "", usize::MAX) {
            Line::End => return Ok(done),
            Line::Nothing => {}
            Line::Unknown => done = Status::Negative,
            Line::Ask(question) => {
                let result = conversation.ask_with(question, cancel).await;
                warn(args, &result, &mut warnings);
                print(args, &result)?;
                if let Some(failure) = result.failure() {
                    if failure.code == ChatCode::Cancelled {
                        return Err(Failed::interrupted());
                    }
                    say!("error: {}", failed(failure));
                    done = Status::Negative;
                }
            }
        }
    }
}

fn next_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then_some(line))
}

/// Holds a conversation on a terminal, until Ctrl-D. The history of lines is in memory only.
pub(super) async fn on_terminal<A: Printed>(
    args: &Args,
    conversation: &mut Conversation<A>,
) -> Result<Status, Failed> {
    let unread = |error: ReadlineError| Failed::usage(format!("cannot read the terminal: {error}"));
    let width_of = |editor: &mut DefaultEditor| {
        editor.dimensions().map_or(USUAL_WIDTH, |(columns, _)| usize::from(columns).max(20))
    };
    let mut editor = DefaultEditor::new().map_err(unread)?;
    tell(&format!("{HELP}, /help says more"), width_of(&mut editor));
    let (mut editor, mut warnings) = (Some(editor), Vec::new());
    loop {
        // Reading in a separate thread keeps the runtime free, and the editor returns with the line.
        let Some(mut own) = editor.take() else { return Ok(Status::Ok) };
        let reading = tokio::task::spawn_blocking(move || {
            let read = own.readline("> ");
            if let Ok(line) = &read {
                // A line that is not kept is only missing from the history.
                _ = own.add_history_entry(line.as_str());
            }
            (own, read)
        });
        let (mut own, read) = reading.await.map_err(Failed::usage)?;
        let width = width_of(&mut own);
        editor = Some(own);
        let text = match read {
            Ok(text) => text,
            // Ctrl-C at the prompt drops the line.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(Status::Ok),
            Err(error) => return Err(unread(error)),
        };
        match line(&text, conversation, &format!("; {KEYS}"), width) {
            Line::End => return Ok(Status::Ok),
            Line::Nothing | Line::Unknown => {}
            Line::Ask(question) => {
                let result = answered(conversation, question).await?;
                warn(args, &result, &mut warnings);
                show(args, &result, width)?;
                match result.failure() {
                    Some(failure) if failure.code == ChatCode::Cancelled => say!("the answer was ended"),
                    Some(failure) => say!("error: {}", failed(failure)),
                    None => {}
                }
            }
        }
    }
}

/// Asks a question. The first Ctrl-C ends the answer; a second one before it has ended ends the command.
async fn answered<A: Printed>(
    conversation: &mut Conversation<A>,
    question: &str,
) -> Result<ChatResult<A>, Failed> {
    let cancel = CancellationToken::new();
    let mut asking = std::pin::pin!(conversation.ask_with(question, &cancel));
    loop {
        tokio::select! {
            biased;
            // It is polled first, so that the handler of the signal is installed before the question begins.
            pressed = tokio::signal::ctrl_c() => {
                if pressed.is_err() || cancel.is_cancelled() {
                    return Err(Failed::interrupted());
                }
                cancel.cancel();
            }
            result = &mut asking => return Ok(result),
        }
    }
}

/// Prints an answer for people: its text, wrapped to the width of the terminal, and its data as JSON. With `--json` or `--text`, or
/// if standard output is no terminal, it is printed as in other cases.
fn show<A: Printed>(args: &Args, result: &ChatResult<A>, width: usize) -> Result<(), Failed> {
    match result.answer() {
        Some(answer) if !args.json && !args.text && io::stdout().is_terminal() => {
            output::text(&wrap::wrapped(answer.text(), width))?;
            answer.data().map_or(Ok(()), |data| output::line(spaced(data)))
        }
        _ => print(args, result),
    }
}
