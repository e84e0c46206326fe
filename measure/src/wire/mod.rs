//! `cargo evals wire`: decodes recorded response bodies of providers with the codecs of the workspace.

mod schemas;

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use formwork::anthropic::Anthropic;
use formwork::bedrock::Bedrock;
use formwork::cohere::Cohere;
use formwork::gemini::Gemini;
use formwork::ollama::Ollama;
use formwork::openai::{Api, OpenAi};
use formwork::wire::http::{Request, Response};
use formwork::wire::{Body, Bytes, Http, SharedTransport, Transport};
use formwork_core::{
    Call, Completion, Enforcement, Fault, FaultKind, Finish, Lowered, Message, SharedProvider, Time,
};
use serde_json::{Value, json};

use crate::bench::runtime;
use crate::corpora::{rows, text};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder with `wire_bodies.jsonl`
    #[arg(long, default_value = "../shared/corpora")]
    folder: PathBuf,
    /// Print each decoded body, one JSON object per line, instead of a summary
    #[arg(long)]
    jsonl: bool,
}

/// A codec for recorded bodies.
struct Protocol {
    /// The end of the path of its requests.
    path: &'static str,
    /// Creates the provider of a model over a transport.
    provider: fn(model: &str, transport: SharedTransport) -> SharedProvider,
}

/// All codecs. The first one with a matching path is used.
const PROTOCOLS: &[Protocol] = &[
    Protocol {
        path: "/v1/messages",
        provider: |model, over| Arc::new(Http::new(Anthropic::new(model), over)),
    },
    Protocol {
        path: "/chat/completions",
        provider: |model, over| Arc::new(Http::new(OpenAi::new(model), over)),
    },
    Protocol {
        path: "/responses",
        provider: |model, over| Arc::new(Http::new(OpenAi::new(model).with_api(Api::Responses), over)),
    },
    Protocol {
        path: ":generateContent",
        provider: |model, over| Arc::new(Http::new(Gemini::new(model).with_stream(false), over)),
    },
    Protocol {
        path: ":streamGenerateContent",
        provider: |model, over| Arc::new(Http::new(Gemini::new(model), over)),
    },
    Protocol {
        path: "/converse",
        provider: |model, over| Arc::new(Http::new(Bedrock::new(model).with_stream(false), over)),
    },
    Protocol {
        path: "/converse-stream",
        provider: |model, over| Arc::new(Http::new(Bedrock::new(model), over)),
    },
    Protocol { path: "/v2/chat", provider: |model, over| Arc::new(Http::new(Cohere::new(model), over)) },
    Protocol { path: "/api/chat", provider: |model, over| Arc::new(Http::new(Ollama::new(model), over)) },
];

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let rows = rows(&args.folder.join("wire_bodies.jsonl"))?;
    let runtime = runtime().map_err(|error| format!("no runtime: {error}"))?;
    let read: Vec<(&Value, Result<Value, String>)> =
        rows.iter().map(|row| (row, runtime.block_on(read(row)))).collect();
    let printed = if args.jsonl {
        print_lines(&read)
    } else {
        print_summary(&read).and_then(|()| schemas::print(&rows, &mut io::stdout().lock()))
    };
    match printed {
        // A reader that closes the pipe (`| head`) is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot print: {error}")),
        _ => Ok(()),
    }
}

fn print_lines(read: &[(&Value, Result<Value, String>)]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (_, row) in read {
        if let Ok(row) = row {
            writeln!(out, "{row}")?;
        }
    }
    out.flush()
}

fn print_summary(read: &[(&Value, Result<Value, String>)]) -> io::Result<()> {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (row, read) in read {
        let what = match read {
            Err(reason) => reason.clone(),
            Ok(read) if read["fault"].is_null() => format!("{} {}", row["status"], text(read, "finish")),
            Ok(read) => format!("{} fault: {}", row["status"], text(&read["fault"], "kind")),
        };
        *counts.entry((text(row, "provider"), what)).or_default() += 1;
    }
    let mut out = io::stdout().lock();
    for ((provider, what), count) in counts {
        writeln!(out, "{count:>5}  {provider:<45} {what}")?;
    }
    let mut providers: BTreeMap<&str, Decoded> = BTreeMap::new();
    for (row, read) in read {
        providers.entry(text(row, "provider")).or_default().add(row, read);
    }
    writeln!(out, "{:<45} 2xx that decode, 4xx that are classified, without a protocol", "")?;
    for (provider, Decoded { good, errors, foreign }) in providers {
        writeln!(out, "{provider:<45} {} of {}, {} of {}, {foreign}", good.0, good.1, errors.0, errors.1)?;
    }
    Ok(())
}

/// The bodies of one provider: for each kind, the number of decoded bodies and of all bodies.
#[derive(Default)]
struct Decoded {
    good: (usize, usize),
    errors: (usize, usize),
    /// Bodies of other APIs.
    foreign: usize,
}

impl Decoded {
    fn add(&mut self, row: &Value, read: &Result<Value, String>) {
        let Ok(read) = read else {
            self.foreign += 1;
            return;
        };
        let is_good = row["status"].as_u64().is_some_and(|status| status < 300);
        let kind = text(&read["fault"], "kind");
        let (counts, right) = if is_good {
            (&mut self.good, read["fault"].is_null())
        } else {
            // Groq reports completions that violate the schema as errors; they count as completions.
            (&mut self.errors, kind != "bad_wire")
        };
        counts.0 += usize::from(right);
        counts.1 += 1;
    }
}

/// Decodes a recorded body.
async fn read(row: &Value) -> Result<Value, String> {
    let path = text(row, "path").split('?').next().unwrap_or_default();
    let protocol = PROTOCOLS.iter().find(|protocol| path.ends_with(protocol.path));
    let protocol = protocol.ok_or("no protocol for it")?;
    let plain = answer(protocol, row, None).await;
    let mut arguments = Vec::new();
    for name in called(row, &plain) {
        // The arguments of the forced tool are the text, and its call is an ordinary end.
        if let Ok(Completion { text, finish: Finish::Stop, .. }) = answer(protocol, row, Some(name)).await {
            arguments.push(json!({"name": name, "arguments": text}));
        }
    }
    let id = &row["id"];
    Ok(match plain {
        Ok(Completion { text, finish, usage, .. }) => json!({
            "id": id,
            "text": text,
            "tool_arguments": arguments,
            "finish": finish,
            "usage": {"input": usage.input_tokens, "output": usage.output_tokens},
            "fault": null,
        }),
        Err(Fault { kind, message, .. }) => json!({
            "id": id,
            "text": null,
            "tool_arguments": [],
            "finish": null,
            "usage": null,
            "fault": {"kind": kind, "message": message},
        }),
    })
}

/// Returns the names of the tools in a request.
fn called<'r>(row: &'r Value, read: &Result<Completion, Fault>) -> Vec<&'r str> {
    if !read.as_ref().is_ok_and(|completion| completion.finish == Finish::ToolCall) {
        return Vec::new();
    }
    let request = &row["request"];
    let tools = [&request["tools"], &request["toolConfig"]["tools"]];
    let tools = tools.into_iter().filter_map(Value::as_array).flatten();
    let names = tools.flat_map(|tool| {
        let declared = tool["functionDeclarations"].as_array().into_iter().flatten();
        [tool, &tool["function"], &tool["toolSpec"]].into_iter().chain(declared)
    });
    names.filter_map(|tool| tool["name"].as_str()).collect()
}

/// Decodes the body as the response to a call. If a tool is named, its arguments are the completion.
async fn answer(protocol: &Protocol, row: &Value, tool: Option<&str>) -> Result<Completion, Fault> {
    let body = match &row["response"] {
        Value::String(text) => text.clone(),
        document => document.to_string(),
    };
    let status = row["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    let content_type = text(row, "content_type").to_owned();
    let model = text(&row["request"], "model");
    let provider = (protocol.provider)(model, Arc::new(Recorded { status, content_type, body }));
    let enforcement = if tool.is_some() { Enforcement::Tool } else { Enforcement::None };
    let schema = tool.map(|_| json!({"type": "object"}));
    let call = Call::new(vec![Message::user("?")], Lowered::new(enforcement, schema))
        .with_schema_name(tool.unwrap_or("answer"));
    provider.call(&call).await?.collect().await
}

/// A transport that returns one recorded response.
#[derive(Debug)]
struct Recorded {
    status: u16,
    content_type: String,
    body: String,
}

#[async_trait]
impl Transport for Recorded {
    async fn send(&self, _: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let response = Response::builder().status(self.status).header("content-type", &self.content_type);
        let response = response.body(self.body.clone().into_bytes().into());
        response.map_err(|error| Fault::new(FaultKind::BadWire, error.to_string()))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}
