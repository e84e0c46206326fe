//! A gateway in front of a scripted server, and a client that speaks HTTP/1.1.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_core::{Backoff, Time};
use formwork_extract::ObservationStore;
use formwork_gateway::{Gateway, GatewayBuilder, Limits, Target};
use formwork_testkit::server::Reply;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A gateway in its own thread, which ends with the test.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Limits without delays between calls.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.backoff = Backoff::none();
    limits
}

/// The present time.
pub(crate) fn now() -> Time {
    let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Time(passed.as_millis() as u64)
}

/// Waits until a condition holds, for five minutes at most.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The targets of a configuration.
pub(crate) fn targets(config: &str) -> GatewayBuilder {
    let config = Config::from_toml(config).unwrap();
    let providers = Providers::builtin();
    // The store of the process has evidence about servers of other tests, and of earlier runs, whose ports a new server may get.
    let store = ObservationStore::new();
    let builder = config.targets().iter().fold(Gateway::builder(), |builder, name| {
        let section = config.section(name).unwrap();
        let made = providers.make(section).unwrap();
        let model = made.model.clone();
        let backend = providers.backend_of(made, section).unwrap().with_observation_store(store.clone());
        builder.with_target(Target::new(backend, providers.raw(section).unwrap(), model))
    });
    let builder = config.lists().iter().fold(builder, |builder, (name, list)| match list.weights() {
        Some(weights) => {
            let targets: Vec<_> = list.targets.iter().cloned().zip(weights).collect();
            builder.with_weighted_alias(name, &targets)
        }
        None => builder.with_alias(name, &list.targets),
    });
    config
        .aliases()
        .iter()
        .fold(builder, |builder, (alias, meant)| builder.with_alias(alias, std::slice::from_ref(meant)))
}

/// A target called `primary` with the Chat Completions API, without streams.
pub(crate) fn openai(url: &str) -> String {
    section("primary", "openai", url)
}

/// A target of a kind.
pub(crate) fn section(name: &str, kind: &str, url: &str) -> String {
    let stream = if kind == "anthropic" { "" } else { "stream = false\n" };
    let more = match kind {
        "ollama" => "probe = false\n",
        _ => "api_key_env = \"\"\n",
    };
    format!("[providers.{name}]\nkind = \"{kind}\"\nmodel = \"m-1\"\nbase_url = \"{url}\"\n{stream}{more}\n")
}

impl Gate {
    pub(crate) fn new(config: &str) -> Self {
        Self::start(targets(config).with_limits(limits()))
    }

    pub(crate) fn start(builder: GatewayBuilder) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(builder.build().serve(listener, async move { _ = stopped.await })).unwrap();
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Tells it to end.
    pub(crate) fn stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
    }

    /// Waits until it has ended.
    pub(crate) fn join(mut self) {
        self.stop();
        self.thread.take().unwrap().join().unwrap();
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        // Longer than any test takes on a machine with much else to do.
        socket.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        socket
    }

    /// Sends bytes, and reads until the connection ends.
    pub(crate) fn send(&self, request: &[u8]) -> Received {
        Received::parse(&self.exchange(request))
    }

    fn exchange(&self, request: &[u8]) -> Vec<u8> {
        let mut socket = self.connect();
        let mut bytes = Vec::new();
        // A service that refuses a body before it has read it may reset the connection after its response.
        let _ = socket.write_all(request).and_then(|()| socket.read_to_end(&mut bytes));
        bytes
    }

    pub(crate) fn get(&self, path: &str) -> Received {
        self.send(&get(path))
    }

    /// Returns `None` if the connection is closed before a response, as a service that ends does with one that has no request yet.
    pub(crate) fn get_if_open(&self, path: &str) -> Option<Received> {
        let bytes = self.exchange(&get(path));
        (!bytes.is_empty()).then(|| Received::parse(&bytes))
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Received {
        self.send(&request(path, headers, body.to_string().as_bytes()))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.stop();
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").into_bytes()
}

/// A POST request with JSON. `headers` replace the usual ones.
pub(crate) fn request(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut all = vec![("host", "localhost"), ("content-type", "application/json"), ("connection", "close")];
    all.retain(|(name, _)| headers.iter().all(|(other, _)| name != other));
    all.extend(headers);
    let mut request = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in all {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut bytes = format!("{request}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A response.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no response: {}", String::from_utf8_lossy(bytes));
        });
        let head = String::from_utf8_lossy(&bytes[..end]);
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if is_chunked { dechunked(rest) } else { rest.to_vec() };
        Self { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The documents of a stream: the data of events, or lines.
    pub(crate) fn documents(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().filter_map(|line| match line.strip_prefix("data: ") {
            Some(data) => Some(data),
            None => line.starts_with('{').then_some(line),
        });
        lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    body
}

/// A response of a Chat Completions server.
pub(crate) fn completion(content: &str) -> Reply {
    finished(&json!({"role": "assistant", "content": content}), "stop")
}

pub(crate) fn finished(message: &Value, reason: &str) -> Reply {
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    });
    Reply::json(body.to_string())
}

pub(crate) fn schema() -> Value {
    json!({
        "type": "object", "properties": {"age": {"type": "integer", "maximum": 150}}, "required": ["age"],
        "additionalProperties": false,
    })
}

/// A way to request a contract in one protocol.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    body: fn() -> Value,
    /// The text of the answer, or the arguments of the call, in a whole response.
    text: fn(&Value) -> String,
    /// The same of a stream.
    streamed: fn(&[Value]) -> String,
    /// The reason of a refusal.
    refusal: fn(&Value) -> String,
    finish: fn(&Value) -> String,
    pub(crate) length: &'static str,
    message: fn(&Value) -> String,
    pub(crate) unknown_model: fn(&Value) -> String,
}

fn string(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn joined(documents: &[Value], pointer: &str) -> String {
    documents.iter().filter_map(|document| document.pointer(pointer)?.as_str().map(str::to_owned)).collect()
}

impl Way {
    pub(crate) fn body(&self, model: &str, stream: bool) -> Value {
        let mut body = (self.body)();
        body["model"] = model.into();
        body["stream"] = stream.into();
        body
    }

    pub(crate) fn text(&self, body: &Value) -> String {
        (self.text)(body)
    }

    pub(crate) fn streamed(&self, documents: &[Value]) -> String {
        (self.streamed)(documents)
    }

    pub(crate) fn refusal(&self, body: &Value) -> String {
        (self.refusal)(body)
    }

    pub(crate) fn finish(&self, body: &Value) -> String {
        (self.finish)(body)
    }

    pub(crate) fn message(&self, body: &Value) -> String {
        (self.message)(body)
    }
}

/// Every way.
pub(crate) fn ways() -> Vec<Way> {
    let openai_error = |body: &Value| string(&body["error"]["message"]);
    let openai_code = |body: &Value| string(&body["error"]["code"]);
    let openai = Way {
        name: "chat",
        path: "/v1/chat/completions",
        body: || {
            json!({
                "messages": [{"role": "user", "content": "Maria, 34"}],
                "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": schema(), "strict": true}},
            })
        },
        text: |body| string(&body["choices"][0]["message"]["content"]),
        streamed: |documents| joined(documents, "/choices/0/delta/content"),
        refusal: |body| string(&body["choices"][0]["message"]["refusal"]),
        finish: |body| string(&body["choices"][0]["finish_reason"]),
        length: "length",
        message: openai_error,
        unknown_model: openai_code,
    };
    let tool = Way {
        name: "chat, forced tool",
        body: || {
            json!({
                "messages": [{"role": "user", "content": "Maria, 34"}],
                "tools": [{"type": "function", "function": {"name": "person", "description": "Saves a person", "parameters": schema()}}],
                "tool_choice": {"type": "function", "function": {"name": "person"}},
            })
        },
        text: |body| string(&body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]),
        streamed: |documents| joined(documents, "/choices/0/delta/tool_calls/0/function/arguments"),
        ..openai
    };
    let responses = Way {
        name: "responses",
        path: "/v1/responses",
        body: || {
            json!({
                "input": "Maria, 34",
                "text": {"format": {"type": "json_schema", "name": "person", "schema": schema(), "strict": true}},
            })
        },
        text: |body| string(&body["output"][0]["content"][0]["text"]),
        streamed: |documents| {
            let deltas = documents.iter().filter(|document| document["type"] == "response.output_text.delta");
            deltas.map(|document| string(&document["delta"])).collect()
        },
        refusal: |body| string(&body["output"][0]["content"][0]["refusal"]),
        finish: |body| string(&body["incomplete_details"]["reason"]),
        length: "max_output_tokens",
        message: openai_error,
        unknown_model: openai_code,
    };
    let responses_tool = Way {
        name: "responses, forced tool",
        body: || {
            json!({
                "input": [{"role": "user", "content": [{"type": "input_text", "text": "Maria, 34"}]}],
                "tools": [{"type": "function", "name": "person", "parameters": schema(), "strict": true}],
                "tool_choice": {"type": "function", "name": "person"},
            })
        },
        text: |body| string(&body["output"][0]["arguments"]),
        streamed: |documents| {
            let kind = "response.function_call_arguments.delta";
            let deltas = documents.iter().filter(|document| document["type"] == kind);
            deltas.map(|document| string(&document["delta"])).collect()
        },
        ..responses
    };
    let anthropic = Way {
        name: "messages",
        path: "/v1/messages",
        body: || {
            json!({
                "max_tokens": 100, "messages": [{"role": "user", "content": "Maria, 34"}],
                "output_config": {"format": {"type": "json_schema", "schema": schema()}},
            })
        },
        text: |body| string(&body["content"][0]["text"]),
        streamed: |documents| joined(documents, "/delta/text"),
        refusal: |body| {
            assert_eq!(body["stop_reason"], "refusal");
            string(&body["content"][0]["text"])
        },
        finish: |body| string(&body["stop_reason"]),
        length: "max_tokens",
        message: |body| {
            assert_eq!(body["type"], "error");
            string(&body["error"]["message"])
        },
        unknown_model: |body| {
            if body["error"]["type"] == "not_found_error" {
                "model_not_found".to_owned()
            } else {
                String::new()
            }
        },
    };
    let anthropic_tool = Way {
        name: "messages, forced tool",
        body: || {
            json!({
                "max_tokens": 100, "messages": [{"role": "user", "content": [{"type": "text", "text": "Maria, 34"}]}],
                "tools": [{"name": "person", "input_schema": schema()}], "tool_choice": {"type": "tool", "name": "person"},
            })
        },
        text: |body| string(&body["content"][0]["input"]),
        streamed: |documents| joined(documents, "/delta/partial_json"),
        ..anthropic
    };
    let ollama = Way {
        name: "ollama chat",
        path: "/api/chat",
        body: || json!({"messages": [{"role": "user", "content": "Maria, 34"}], "format": schema()}),
        text: |body| string(&body["message"]["content"]),
        streamed: |documents| joined(documents, "/message/content"),
        refusal: |body| {
            assert_eq!(body["done_reason"], "refusal");
            string(&body["message"]["content"])
        },
        finish: |body| string(&body["done_reason"]),
        length: "length",
        message: |body| string(&body["error"]),
        unknown_model: |_| "model_not_found".to_owned(),
    };
    let generate = Way {
        name: "ollama generate",
        path: "/api/generate",
        body: || json!({"prompt": "Maria, 34", "format": schema()}),
        text: |body| string(&body["response"]),
        streamed: |documents| joined(documents, "/response"),
        refusal: |body| string(&body["response"]),
        ..ollama
    };
    vec![openai, tool, responses, responses_tool, anthropic, anthropic_tool, ollama, generate]
}
