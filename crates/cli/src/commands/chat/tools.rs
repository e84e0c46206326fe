//! Tools from a file: commands that the model may call.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use formwork_chat::ChatTool;
use formwork_json::read_exact;
use formwork_review::document::Document;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::exit::Failed;
use crate::{agents, files};

/// A tool in a file of tools.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolEntry {
    /// The name of the tool: letters, digits, `_` and `-`.
    name: String,
    /// The purpose of the tool, for the model.
    description: String,
    /// The JSON Schema of the arguments.
    #[schemars(with = "serde_json::Map<String, Value>")]
    parameters: Value,
    /// The program and its arguments. The program is run without a shell. It reads the tool's arguments from standard input as
    /// one JSON object, and prints the result: JSON, or any text.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// The time limit of the program in seconds (default: 60).
    #[schemars(range(min = 0.001, max = 86400))]
    timeout_seconds: Option<f64>,
}

/// The maximum length of a result in bytes. The model receives less of it.
const MAX_RESULT: usize = 1024 * 1024;

/// The maximum length of the error output of a failed program in bytes.
const MAX_ERROR: usize = 500;

/// Reads the tools of a file.
///
/// # Errors
/// [`Failed`] with the location in the file; or if `--allow-tools` is missing.
pub(super) fn of_file(path: &Path, allowed: bool) -> Result<Vec<ChatTool>, Failed> {
    let document = files::document(path)?;
    let tools: Vec<ToolEntry> = document.read().map_err(|error| agents::document(&error))?;
    if !allowed {
        let commands: Vec<String> = tools.iter().map(|tool| tool.command.join(" ")).collect();
        let message = format!(
            "the tools of {} run programs ({}): add --allow-tools to allow this",
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
    let failed = |error: std::io::Error| format!("cannot run `{program}`: {error}");
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
            // A program may end without reading its arguments, which closes the pipe.
            _ = input.write_all(text.as_bytes()).await;
        }
    };
    // Dropping the child stops a program that prints more than the limit.
    let exchange = async {
        let (_, printed, stderr) = tokio::join!(feed, capped(output, MAX_RESULT), capped(errors, MAX_ERROR));
        if printed.len() > MAX_RESULT {
            return Err(format!("`{program}` printed more than {MAX_RESULT} bytes, the maximum of a result"));
        }
        let status = child.wait().await.map_err(failed)?;
        if !status.success() {
            let stderr = String::from_utf8_lossy(&stderr);
            return Err(format!("`{program}` ended with {status}: {}", stderr.trim()));
        }
        Ok(printed)
    };
    let printed =
        timeout(limit, exchange).await.map_err(|_| format!("`{program}` did not end within {limit:?}"))??;
    let printed = String::from_utf8(printed).map_err(|_| format!("`{program}` did not print text"))?;
    // A text keeps the digits that a value would change.
    let exact = read_exact(&printed).ok().filter(|document| document.rounded.is_empty());
    Ok(exact.map_or_else(|| Value::String(printed.trim_end().to_owned()), |document| document.value))
}

/// Reads the output of a program up to one byte above the limit.
async fn capped(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // The output before a read error is kept.
        _ = stream.take(limit as u64 + 1).read_to_end(&mut bytes).await;
    }
    bytes
}
