//! Tools of a file: commands that the model may ask for.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use formwork_chat::ChatTool;
use formwork_review::document::{Document, Format};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::exit::Failed;
use crate::files;

/// A tool of a file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolEntry {
    /// The name that the model calls it by: letters, digits, `_` and `-`.
    name: String,
    /// Its purpose, in words for the model.
    description: String,
    /// The JSON Schema of its arguments.
    #[schemars(with = "serde_json::Map<String, Value>")]
    parameters: Value,
    /// The program and its arguments. The program is run without a shell. It reads the tool's arguments from standard input as
    /// one JSON object, and prints the result: JSON, or any text.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// Seconds that the program has (default: 60).
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 86400))]
    timeout_seconds: Option<f64>,
}

/// The maximum length of a result, in bytes. The model is shown less of it.
const MAX_RESULT: usize = 1024 * 1024;

/// The maximum length of what a program that failed says, in bytes.
const MAX_ERROR: usize = 500;

/// Reads the tools of a file.
///
/// # Errors
/// [`Failed`] with the place in the file, and where the commands of the file may not be run.
pub(super) fn of_file(path: &Path, allowed: bool) -> Result<Vec<ChatTool>, Failed> {
    let document = Document::parse(&files::name(path), &files::text(path)?, Format::of(path));
    let document = document.map_err(Failed::usage)?;
    let tools: Vec<ToolEntry> = document.read().map_err(Failed::usage)?;
    if !allowed {
        let commands: Vec<String> = tools.iter().map(|tool| tool.command.join(" ")).collect();
        let message = format!(
            "the tools of {} run programs ({}): add --allow-tools if the model may do that",
            document.file(),
            commands.join("; ")
        );
        return Err(Failed::usage(message));
    }
    tools.into_iter().map(|tool| chat_tool(tool, &document)).collect()
}

fn chat_tool(tool: ToolEntry, document: &Document) -> Result<ChatTool, Failed> {
    let ToolEntry { name, description, parameters, command, timeout_seconds } = tool;
    let limit = Duration::try_from_secs_f64(timeout_seconds.unwrap_or(60.0)).unwrap_or(Duration::MAX);
    let command: Arc<[String]> = command.into();
    let run = move |arguments: Value| {
        let command = Arc::clone(&command);
        async move { run(&command, &arguments, limit).await }
    };
    ChatTool::for_schema(name.clone(), description, parameters, run).map_err(|error| {
        Failed::usage(format!("{}: the parameters of the tool `{name}`: {error}", document.file()))
    })
}

/// Runs the program of a tool with these arguments on its standard input.
async fn run(command: &[String], arguments: &Value, limit: Duration) -> Result<Value, String> {
    let (program, rest) = command.split_first().ok_or("the tool has no program")?;
    let failed = |error: std::io::Error| format!("`{program}` could not be run: {error}");
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = arguments.to_string();
    let feed = async {
        if let Some(mut input) = input {
            // A program that needs no arguments does not read them.
            _ = input.write_all(text.as_bytes()).await;
        }
    };
    // A program that prints without end is stopped at the limit, when the child is dropped.
    let exchange = async {
        let (_, printed, said) = tokio::join!(feed, capped(output, MAX_RESULT), capped(errors, MAX_ERROR));
        if printed.len() > MAX_RESULT {
            return Err(format!(
                "`{program}` printed more than {MAX_RESULT} bytes, which is too much for a result"
            ));
        }
        let status = child.wait().await.map_err(failed)?;
        if !status.success() {
            let said = String::from_utf8_lossy(&said);
            return Err(format!("`{program}` ended with {status}: {}", said.trim()));
        }
        Ok(printed)
    };
    let printed =
        timeout(limit, exchange).await.map_err(|_| format!("`{program}` did not end within {limit:?}"))??;
    let printed = String::from_utf8(printed).map_err(|_| format!("`{program}` did not print text"))?;
    Ok(serde_json::from_str(&printed).unwrap_or_else(|_| Value::String(printed.trim_end().to_owned())))
}

/// Reads a stream of a program up to one byte more than the limit.
async fn capped(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What was read before an error still counts.
        _ = stream.take(limit as u64 + 1).read_to_end(&mut bytes).await;
    }
    bytes
}
