//! The charge of every kind of request, beside what the target says or what it sent.

use std::time::Duration;

use formwork_core::ErrorKind;
use formwork_ledger::{Ledger, NewKey, RunOutcome, RunQuery, Settings, StoredRun};
use formwork_testkit::server::{End, Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, limits, now, request, schema, section, targets, wait_until, ways};

/// The tokens of a text as the targets of these tests count them.
const BYTES_PER_TOKEN: usize = 4;

/// A kind of request that is passed on in its own protocol.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    provider: &'static str,
    path: &'static str,
    body: fn(&str) -> Value,
    can_stream: bool,
    /// The response of a target: the text of its turn in pieces, and the usage.
    reply: fn(&[&str], Option<Tokens>, bool) -> Vec<String>,
}

#[derive(Clone, Copy)]
struct Tokens {
    input: u64,
    output: u64,
    cached: u64,
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

fn tool() -> Value {
    json!({"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}})
}

fn events(documents: Vec<Value>) -> Vec<String> {
    documents.iter().map(|document| format!("data: {document}\n\n")).collect()
}

fn chat(pieces: &[&str], usage: Option<Tokens>, stream: bool) -> Vec<String> {
    let usage = usage.map_or(Value::Null, |Tokens { input, output, cached }| {
        json!({"prompt_tokens": input, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}})
    });
    if !stream {
        let message = json!({"role": "assistant", "content": pieces.concat()});
        let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        return vec![json!({"id": "chatcmpl-1", "choices": choices, "usage": usage}).to_string()];
    }
    let chunk =
        |delta: Value| json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta}], "usage": null});
    let mut all: Vec<_> = pieces.iter().map(|piece| chunk(json!({"content": piece}))).collect();
    if !usage.is_null() {
        all.push(json!({"id": "chatcmpl-1", "choices": [], "usage": usage}));
    }
    events(all)
}

/// A call of a tool, whose arguments are `{"text": …}`.
fn chat_call(pieces: &[&str], usage: Option<Tokens>, stream: bool) -> Vec<String> {
    let whole = pieces.concat();
    chat(&[&whole], usage, stream)
        .into_iter()
        .map(|body| {
            let arguments = json!({"text": whole}).to_string();
            let function = json!({"name": "note", "arguments": arguments});
            let call = json!([{"index": 0, "id": "c", "type": "function", "function": function}]).to_string();
            body.replace(&format!("\"content\":{}", json!(whole)), &format!("\"tool_calls\":{call}"))
        })
        .collect()
}

fn responses(pieces: &[&str], usage: Option<Tokens>, stream: bool) -> Vec<String> {
    let usage = usage.map_or(Value::Null, |Tokens { input, output, cached }| {
        json!({
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "input_tokens_details": {"cached_tokens": cached},
        })
    });
    let content = json!([{"type": "output_text", "text": pieces.concat()}]);
    let output = json!([{"type": "message", "role": "assistant", "content": content}]);
    let done = json!({"object": "response", "status": "completed", "output": output, "usage": usage});
    if !stream {
        return vec![done.to_string()];
    }
    let delta =
        |piece: &&str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece});
    let mut all: Vec<_> = pieces.iter().map(delta).collect();
    all.push(json!({"type": "response.completed", "response": done}));
    events(all)
}

fn messages(pieces: &[&str], usage: Option<Tokens>, stream: bool) -> Vec<String> {
    let counts = |Tokens { input, output, cached }| json!({"input_tokens": input - cached, "output_tokens": output, "cache_read_input_tokens": cached});
    let whole = usage.map_or(Value::Null, counts);
    if !stream {
        let content = json!([{"type": "text", "text": pieces.concat()}]);
        return vec![
            json!({"type": "message", "content": content, "stop_reason": "end_turn", "usage": whole})
                .to_string(),
        ];
    }
    let first = usage.map_or(Value::Null, |tokens| counts(Tokens { output: 1, ..tokens }));
    let mut all = vec![json!({"type": "message_start", "message": {"content": [], "usage": first}})];
    all.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    }));
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": whole}));
    events(all)
}

fn ollama(pieces: &[&str], usage: Option<Tokens>, stream: bool, line: fn(&str) -> Value) -> Vec<String> {
    let whole = pieces.concat();
    let pieces = if stream { pieces } else { &[whole.as_str()][..] };
    let last = pieces.len() - 1;
    let line = |(nth, piece): (usize, &&str)| {
        let mut document = line(piece);
        document["done"] = (nth == last).into();
        if let Some(Tokens { input, output, .. }) = usage.filter(|_| nth == last) {
            (document["prompt_eval_count"], document["eval_count"]) = (input.into(), output.into());
        }
        format!("{document}\n")
    };
    pieces.iter().enumerate().map(line).collect()
}

fn kinds() -> Vec<Kind> {
    let plain = Kind {
        name: "chat",
        provider: "openai",
        path: "/v1/chat/completions",
        body: |text| json!({"messages": user(text), "max_tokens": 100}),
        can_stream: true,
        reply: chat,
    };
    let with_usage = Kind {
        name: "chat, usage asked for",
        body: |text| json!({"messages": user(text), "max_tokens": 100, "stream_options": {"include_usage": true}}),
        ..plain
    };
    let optional = Kind {
        name: "chat, tools and text",
        body: |text| json!({"messages": user(text), "max_tokens": 100, "tools": [{"type": "function", "function": tool()}]}),
        ..plain
    };
    let call = Kind { name: "chat, tools and a call", reply: chat_call, body: optional.body, ..plain };
    let responses = Kind {
        name: "responses",
        provider: "openai-responses",
        path: "/v1/responses",
        body: |text| json!({"input": text, "max_output_tokens": 100}),
        reply: responses,
        ..plain
    };
    let responses_tools = Kind {
        name: "responses, tools",
        body: |text| {
            let mut tool = tool();
            tool["type"] = "function".into();
            json!({"input": user(text), "max_output_tokens": 100, "tools": [tool]})
        },
        ..responses
    };
    let messages = Kind {
        name: "messages",
        provider: "anthropic",
        path: "/v1/messages",
        body: |text| json!({"messages": user(text), "max_tokens": 100}),
        reply: messages,
        ..plain
    };
    let messages_tools = Kind {
        name: "messages, tools",
        body: |text| {
            let tools = json!([{"name": "note", "input_schema": tool()["parameters"]}]);
            json!({"messages": user(text), "max_tokens": 100, "tools": tools})
        },
        ..messages
    };
    let ollama_chat = Kind {
        name: "ollama chat",
        provider: "ollama",
        path: "/api/chat",
        body: |text| json!({"messages": user(text), "options": {"num_predict": 100}}),
        reply: |pieces, usage, stream| {
            ollama(pieces, usage, stream, |piece| json!({"message": {"content": piece}}))
        },
        ..plain
    };
    let ollama_tools = Kind {
        name: "ollama chat, tools",
        body: |text| {
            let tools = json!([{"type": "function", "function": tool()}]);
            json!({"messages": user(text), "options": {"num_predict": 100}, "tools": tools})
        },
        ..ollama_chat
    };
    let generate = Kind {
        name: "ollama generate",
        path: "/api/generate",
        body: |text| json!({"prompt": text, "options": {"num_predict": 100}}),
        reply: |pieces, usage, stream| ollama(pieces, usage, stream, |piece| json!({"response": piece})),
        ..ollama_chat
    };
    let embeddings = Kind {
        name: "embeddings",
        path: "/v1/embeddings",
        body: |text| json!({"input": text}),
        can_stream: false,
        reply: |_, usage, _| {
            let usage = usage.map_or(Value::Null, |usage| json!({"prompt_tokens": usage.input}));
            vec![json!({"data": [{"embedding": [0.5, 0.25]}], "usage": usage}).to_string()]
        },
        ..plain
    };
    vec![
        plain,
        with_usage,
        optional,
        call,
        responses,
        responses_tools,
        messages,
        messages_tools,
        ollama_chat,
        ollama_tools,
        generate,
        embeddings,
    ]
}

/// A target with a price of a thousandth of a dollar per token.
fn priced(kind: &Kind, url: &str) -> String {
    let section = match kind.provider {
        "openai-responses" => {
            section("primary", "openai", url).trim_end().to_owned() + "\napi = \"responses\"\n"
        }
        provider => section("primary", provider, url).trim_end().to_owned() + "\n",
    };
    section + "price = { input = 1000, output = 1000 }\n"
}

fn ledger(budget: u64) -> (Ledger, String) {
    let ledger = Ledger::in_memory(Settings::default()).unwrap();
    let new = NewKey { budget: Some(budget), ..NewKey::new("alice") };
    let (_, secret) = ledger.add_key(new, now()).unwrap();
    let secret = secret.reveal().to_owned();
    (ledger, secret)
}

/// Waits until the run of the only request is written.
fn recorded(ledger: &Ledger) -> StoredRun {
    loop {
        ledger.flush_blocking().unwrap();
        if let Some(run) = ledger.runs(&RunQuery::default()).unwrap().runs.pop() {
            return run;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn gate(kind: &Kind, url: &str, ledger: &Ledger) -> Gate {
    Gate::start(targets(&priced(kind, url)).with_limits(limits()).with_ledger(ledger.clone()))
}

impl Kind {
    fn body(&self, text: &str, stream: bool) -> Value {
        let mut body = (self.body)(text);
        body["model"] = "primary".into();
        if self.can_stream {
            body["stream"] = stream.into();
        }
        body
    }

    fn reply(&self, stream: bool, pieces: Vec<String>) -> Reply {
        match (stream, self.provider) {
            (true, "ollama") => Reply::pieces(pieces).with_header("content-type", "application/x-ndjson"),
            (true, _) => Reply::pieces(pieces).with_header("content-type", "text/event-stream"),
            (false, _) => Reply::json(pieces.concat()),
        }
    }
}

/// A tool that takes any arguments, as the protocol of a kind has it.
fn any_tool(kind: &str) -> Value {
    match kind {
        "messages" => json!({"name": "f", "input_schema": {"type": "object"}}),
        "responses" => json!({"type": "function", "name": "f", "parameters": {"type": "object"}}),
        _ => json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}),
    }
}

#[test]
fn the_charge_is_the_true_cost_and_an_estimate_is_never_below_it() {
    let prompt = "Tell me a short story. ".repeat(60);
    let words = vec!["once upon a ti"; 20];
    let output = (words.concat().len() / BYTES_PER_TOKEN) as u64;
    let mut checked = 0;
    for kind in kinds() {
        for stream in [false, true] {
            if stream && !kind.can_stream {
                continue;
            }
            // A message costs four tokens beside its text, and a tool its schema.
            let schema = if kind.name.contains("tools") { tool().to_string().len() } else { 0 };
            let input = ((prompt.len() + schema) / BYTES_PER_TOKEN) as u64 + 4;
            let output = if kind.name == "embeddings" { 0 } else { output };
            let truth = input + output;
            let tokens = Tokens { input, output, cached: 64 };
            for reported in [true, false] {
                let mut pieces = (kind.reply)(&words, reported.then_some(tokens), stream);
                pieces.extend((stream && kind.provider == "openai").then(|| "data: [DONE]\n\n".to_owned()));
                let server = Server::start([kind.reply(stream, pieces)]).unwrap();
                let (ledger, secret) = ledger(10_000_000);
                let gate = gate(&kind, &server.url(), &ledger);
                let body = kind.body(&prompt, stream);
                let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
                let name = format!("{}, stream {stream}, reported {reported}", kind.name);
                assert_eq!(got.status, 200, "{name}: {}", got.text());
                let run = recorded(&ledger);
                gate.join();
                let key = &ledger.keys().unwrap()[0];
                let ratio = key.spent as f64 / (truth * 1000) as f64;
                let allowed = if reported { 0.98..=1.02 } else { 1.0..=1.5 };
                assert!(allowed.contains(&ratio) && key.held == 0, "{name}: {ratio} of {truth}");
                assert_eq!((run.usage.estimated, run.micro_usd), (!reported, Some(key.spent)), "{name}");
                // Usage that the client did not ask for is not in its stream, nor the `null` that OpenAI sends in its place.
                let is_asked = kind.name.contains("asked for");
                if kind.provider == "openai" && stream {
                    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
                    assert_eq!(sent["stream_options"]["include_usage"], true, "{name}");
                    let has_usage = got.documents().iter().any(|document| document["usage"].is_object());
                    assert_eq!(has_usage, is_asked && reported, "{name}: {}", got.text());
                    assert!(is_asked || !got.text().contains("usage"), "{name}: {}", got.text());
                }
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 46);
}

#[test]
fn tokens_that_are_written_to_a_cache_and_the_cost_that_a_server_reports_are_charged_as_those_of_a_run() {
    const PRICE: &str =
        "{ input = 1000, output = 1000, cache_read = 100, cache_write = 1250, cache_write_hour = 2000 }";

    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let output = json!({"format": {"type": "json_schema", "schema": schema()}});
    let text = r#"{"age":34}"#;
    let chat = |usage: &Value| {
        let choices =
            json!([{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]);
        json!({"id": "c", "model": "m-1", "choices": choices, "usage": usage})
    };
    let messages = |usage: &Value| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": content, "stop_reason": "end_turn", "usage": usage})
    };
    let anthropic = |created: Value| {
        json!({
            "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 8,
            "cache_creation": created,
        })
    };
    let openrouter = |cost: Value| {
        json!({
            "prompt_tokens": 38, "completion_tokens": 5, "cost": cost,
            "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 8},
        })
    };
    let own_key = |is_own: bool, upstream: Value| {
        let mut usage = openrouter(json!(0.0025));
        usage["is_byok"] = is_own.into();
        usage["cost_details"] = json!({"upstream_inference_cost": upstream});
        usage
    };
    let compacted = |iterations: Value| {
        let mut usage = anthropic(Value::Null);
        usage["iterations"] = iterations;
        usage
    };
    let compaction = json!([
        {"type": "compaction", "input_tokens": 180, "output_tokens": 35, "cache_read_input_tokens": 20},
        {"type": "message", "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 20},
    ]);
    // 10 tokens of the prompt, 20 of the cache, 8 to the cache and 5 of the answer, in thousandths of a dollar.
    for (provider, usage, spent) in [
        ("anthropic", anthropic(Value::Null), 10_000 + 2_000 + 10_000 + 5_000),
        ("anthropic", anthropic(json!({"ephemeral_1h_input_tokens": 8})), 10_000 + 2_000 + 16_000 + 5_000),
        (
            "anthropic",
            anthropic(json!({"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 2})),
            10_000 + 2_000 + 7_500 + 4_000 + 5_000,
        ),
        ("openai", openrouter(Value::Null), 10_000 + 2_000 + 10_000 + 5_000),
        ("openai", openrouter(json!(0.0025)), 2_500),
        // The client's own key pays for the rest.
        ("openai", own_key(true, json!(0.42)), 422_500),
        ("openai", own_key(false, json!(0.42)), 2_500),
        ("openai", own_key(true, Value::Null), 10_000 + 2_000 + 10_000 + 5_000),
        // A compaction of the dialogue, which the counts beside it lack.
        ("anthropic", compacted(compaction), 10_000 + 2_000 + 10_000 + 5_000 + 180_000 + 2_000 + 35_000),
        ("anthropic", compacted(json!(null)), 10_000 + 2_000 + 10_000 + 5_000),
    ] {
        let is_openai = provider == "openai";
        let (path, body) = match is_openai {
            true => ("/v1/chat/completions", chat(&usage)),
            false => ("/v1/messages", messages(&usage)),
        };
        let format = if is_openai { ("response_format", &format) } else { ("output_config", &output) };
        for format in [None, Some(format)] {
            let server = Server::start([Reply::json(body.to_string())]).unwrap();
            let section = section("primary", provider, &server.url()).trim_end().to_owned();
            let (ledger, secret) = ledger(10_000_000);
            let config = format!("{section}\nprice = {PRICE}\n");
            let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
            let mut asked = json!({"model": "primary", "max_tokens": 100, "messages": user("Maria, 34")});
            if let Some((name, format)) = format {
                asked[name] = format.clone();
            }
            let got = gate.post(path, &[("x-api-key", &secret)], &asked);
            let name = format!("{provider}, format {}: {usage}", format.is_some());
            assert_eq!(got.status, 200, "{name}: {}", got.text());
            let run = recorded(&ledger);
            gate.join();
            assert_eq!((run.micro_usd, ledger.keys().unwrap()[0].spent), (Some(spent), spent), "{name}");
        }
    }
}

/// The counts of an answer that is written anew are those of the target, and their sum is the same.
#[test]
fn an_answer_that_is_written_anew_tells_what_was_written_to_a_cache() {
    let usage = |written: u64| {
        json!({
            "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 50, "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written - written / 4, "ephemeral_1h_input_tokens": written / 4},
        })
    };
    let chat_format = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let format = json!({"type": "json_schema", "name": "person", "schema": schema()});
    let messages = user("Maria, 34");
    let requests = [
        (
            "/v1/messages",
            json!({"max_tokens": 99, "messages": messages, "output_config": {"format": {"type": "json_schema", "schema": schema()}}}),
        ),
        (
            "/v1/chat/completions",
            json!({"messages": messages, "response_format": chat_format, "stream_options": {"include_usage": true}}),
        ),
        ("/v1/responses", json!({"input": "Maria, 34", "text": {"format": format}})),
    ];
    for written in [0, 40] {
        let content = json!([{"type": "text", "text": "{\"age\":34}"}]);
        let answer = json!({
            "id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": content, "stop_reason": "end_turn",
            "usage": usage(written),
        });
        let server = Server::start([Reply::json(answer.to_string())]).unwrap();
        let gate = Gate::new(&section("primary", "anthropic", &server.url()));
        for (path, body) in &requests {
            for stream in [false, true] {
                let mut body = body.clone();
                body["model"] = "primary".into();
                body["stream"] = stream.into();
                let got = gate.post(path, &[], &body);
                assert_eq!(got.status, 200, "{path}: {}", got.text());
                let documents = if stream { got.documents() } else { vec![got.json()] };
                let counts =
                    |names: &[&str]| names.iter().map(|name| told(&documents, name)).collect::<Vec<_>>();
                let at = format!("{path} {written} {stream}: {}", got.text());
                match *path {
                    "/v1/messages" => {
                        let names =
                            ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
                        assert_eq!(counts(&names), [10, 50, written], "{at}");
                        let names = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"];
                        assert_eq!(counts(&names), [written - written / 4, written / 4], "{at}");
                    }
                    _ => {
                        let whole =
                            if path.ends_with("responses") { "input_tokens" } else { "prompt_tokens" };
                        let names = [whole, "cached_tokens", "cache_write_tokens", "total_tokens"];
                        assert_eq!(counts(&names), [60 + written, 50, written, 65 + written], "{at}");
                    }
                }
                assert_eq!(
                    got.text().contains("cache_creation\"") || got.text().contains("cache_write"),
                    written > 0,
                    "{at}"
                );
            }
        }
    }
}

#[test]
fn input_that_a_server_adds_is_reserved_as_the_context_of_the_model_or_refused_under_a_budget() {
    let responses =
        json!({"model": "primary", "max_output_tokens": 10, "input": "Hi", "previous_response_id": "r"});
    let file = json!([{"type": "file", "file": {"file_id": "f"}}]);
    let chat = json!({"model": "primary", "max_tokens": 10, "messages": [{"role": "user", "content": file}]});
    let source = json!([{"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}]);
    let messages =
        json!({"model": "primary", "max_tokens": 10, "messages": [{"role": "user", "content": source}]});
    let mut formatted = chat.clone();
    formatted["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let capable = "capabilities = { context_tokens = 1000 }\n";
    for (kind, path, body, member) in [
        ("openai-responses", "/v1/responses", &responses, "previous_response_id"),
        ("openai", "/v1/chat/completions", &chat, "file_id"),
        ("openai", "/v1/chat/completions", &formatted, "file_id"),
        ("anthropic", "/v1/messages", &messages, "source.url"),
    ] {
        let kind = Kind { provider: kind, ..kinds()[0] };
        let mut configs = vec![(priced(&kind, "URL"), false)];
        // The registry knows the context of Anthropic's models.
        configs.push(match kind.provider {
            "anthropic" => (priced(&kind, "URL").replace("m-1", "claude-sonnet-4-5"), true),
            _ => (priced(&kind, "URL") + capable, true),
        });
        for (config, is_known) in configs {
            let at = format!("{path}, {member}, {is_known}");
            // A context of 1,000 tokens costs more than a dollar with the answer, and one of Anthropic's more than $100.
            for (budget, header) in [(Some(900_000), None), (None, Some("0.9"))] {
                let server = Server::start([completion(r#"{"age":34}"#)]).unwrap();
                let config = config.replace("URL", &server.url());
                let ledger = Ledger::in_memory(Settings::default()).unwrap();
                let new = NewKey { budget, ..NewKey::new("alice") };
                let (_, secret) = ledger.add_key(new, now()).unwrap();
                let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
                let headers = [("x-api-key", secret.reveal())].into_iter();
                let headers: Vec<_> =
                    headers.chain(header.map(|header| ("x-formwork-budget", header))).collect();
                let got = gate.post(path, &headers, body);
                let expected = match (is_known, budget) {
                    (true, _) => 429,
                    (false, Some(_)) => 403,
                    (false, None) => 400,
                };
                assert_eq!(got.status, expected, "{at}: {}", got.text());
                assert_eq!(
                    got.text().contains(&format!("`{member}` adds input")),
                    !is_known,
                    "{at}: {}",
                    got.text()
                );
                assert!(server.received().is_empty(), "{at}");
                // Without a budget, such a request is sent.
                let (_, free) = ledger.add_key(NewKey::new("bob"), now()).unwrap();
                gate.post(path, &[("x-api-key", free.reveal())], body);
                assert!(!server.received().is_empty(), "{at}");
            }
        }
    }
}

#[test]
fn a_request_to_cache_its_prompt_reserves_the_price_of_that() {
    let server = Server::start([Reply::json("{}")]).unwrap();
    let section = section("primary", "anthropic", &server.url()).trim_end().to_owned();
    let config = format!(
        "{section}\nprice = {{ input = 1000, output = 1000, cache_write = 1250, cache_write_hour = 2000 }}\n"
    );
    let gate = Gate::new(&config);
    // 400 bytes cost up to $0.40, or $0.80 where they are written to the cache for an hour.
    let control = json!({"type": "ephemeral", "ttl": "1h"});
    for (of_part, of_all, expected) in [
        (None, None, 200),
        (Some(&control), None, 429),
        (None, Some(&Value::Null), 200),
        (None, Some(&control), 429),
    ] {
        let mut part = json!({"type": "text", "text": "a".repeat(400)});
        of_part.into_iter().for_each(|control| part["cache_control"] = control.clone());
        let mut body =
            json!({"model": "primary", "max_tokens": 10, "messages": [{"role": "user", "content": [part]}]});
        of_all.into_iter().for_each(|control| body["cache_control"] = control.clone());
        let got = gate.post("/v1/messages", &[("x-formwork-budget", "0.5")], &body);
        assert_eq!(got.status, expected, "{}", got.text());
    }
}

#[test]
fn the_cost_that_a_target_without_a_price_reports_is_that_of_every_kind_of_request() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.0025});
    let answer = |message: Value| {
        let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        Reply::json(json!({"id": "c", "model": "m-1", "choices": choices, "usage": usage}).to_string())
    };
    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let tools = json!([{"type": "function", "function": tool()}]);
    let text = json!({"role": "assistant", "content": r#"{"age":34}"#});
    for (path, more) in [
        ("/v1/chat/completions", json!({})),
        ("/v1/chat/completions", json!({"response_format": format})),
        ("/v1/chat/completions", json!({"tools": tools})),
        ("/v1/messages", json!({})),
        ("/v1/messages", json!({"output_config": {"format": {"type": "json_schema", "schema": schema()}}})),
    ] {
        let server = Server::start([answer(text.clone())]).unwrap();
        let ledger = Ledger::in_memory(Settings::default()).unwrap();
        let (_, secret) = ledger.add_key(NewKey::new("alice"), now()).unwrap();
        let config = section("primary", "openai", &server.url());
        let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
        let mut body = json!({"model": "primary", "max_tokens": 100, "messages": user("Maria, 34")});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = gate.post(path, &[("x-api-key", secret.reveal())], &body);
        assert_eq!(got.status, 200, "{path}, {more}: {}", got.text());
        let run = recorded(&ledger);
        gate.join();
        assert_eq!((run.micro_usd, ledger.keys().unwrap()[0].spent), (Some(2_500), 2_500), "{path}, {more}");
    }
}

#[test]
fn several_texts_of_a_target_of_another_protocol_reserve_a_prompt_for_each() {
    let chat = kinds().swap_remove(0);
    let translated = Kind { provider: "ollama", ..chat };
    let server = Server::start([completion("Hi")]).unwrap();
    let config =
        priced(&chat, &server.url()) + &priced(&translated, &server.url()).replace("primary", "second");
    let gate = Gate::new(&config);
    // The prompt of 400 bytes costs up to $0.40, and the answers $0.04.
    for (model, count, expected) in [
        ("primary", 4, 200),
        ("second", 1, 502),
        ("second", 4, 429),
        // The second one answers if the first does not.
        ("primary,second", 4, 429),
    ] {
        let body = json!({"model": model, "n": count, "max_tokens": 10, "messages": user(&"a".repeat(400))});
        let got = gate.post(chat.path, &[("x-formwork-budget", "1")], &body);
        assert_eq!(got.status, expected, "{model}, {count}: {}", got.text());
    }
}

#[test]
fn a_request_without_a_limit_reserves_the_longest_answer_of_the_model_or_is_refused_under_a_budget() {
    for kind in
        kinds().into_iter().filter(|kind| kind.name != "embeddings" && kind.provider.starts_with("openai"))
    {
        let mut body = kind.body("Hello", false);
        for limit in ["max_tokens", "max_output_tokens", "options"] {
            body.as_object_mut().unwrap().remove(limit);
        }
        // Limits for requests without one are sent with those that are read, and not with those that are passed on.
        for (capabilities, is_known, fits) in [
            ("default_max_tokens = 10", false, false),
            ("default_max_tokens = 10, output_tokens = 1000", true, false),
            ("default_max_tokens = 10, context_tokens = 1000", true, false),
            ("default_max_tokens = 10, context_tokens = 1000, output_tokens = 100", true, true),
        ] {
            let at = format!("{}: {capabilities}", kind.name);
            let pieces = (kind.reply)(&["Hi"], Some(Tokens { input: 5, output: 5, cached: 0 }), false);
            let server = Server::start([kind.reply(false, pieces)]).unwrap();
            let (ledger, secret) = ledger(900_000);
            let config = format!("{}capabilities = {{ {capabilities} }}\n", priced(&kind, &server.url()));
            let with_key = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
            let without = Gate::new(&config);
            for (gate, header, refusal) in [
                (&with_key, ("x-api-key", secret.as_str()), 403),
                (&without, ("x-formwork-budget", "0.9"), 400),
            ] {
                let got = gate.post(kind.path, &[header], &body);
                let expected = match (is_known, fits) {
                    (false, _) => refusal,
                    (true, false) => 429,
                    (true, true) => 200,
                };
                assert_eq!(got.status, expected, "{at}: {}", got.text());
                assert_eq!(got.text().contains("send one with the request"), !is_known, "{at}");
            }
            assert_eq!(server.received().len(), if fits { 2 } else { 0 }, "{at}");
        }
    }
}

#[test]
fn a_response_that_is_cut_is_charged_for_what_came() {
    let prompt = "Tell me a short story. ".repeat(60);
    let words = vec!["once upon a ti"; 20];
    for kind in kinds().into_iter().filter(|kind| kind.can_stream && !kind.name.contains("call")) {
        // The first ten pieces come, and the connection ends.
        let tokens = Tokens { input: 349, output: 70, cached: 0 };
        let pieces = (kind.reply)(&words, Some(tokens), true);
        let start = pieces.len() - words.len().min(pieces.len() - 1);
        let came = pieces[..start.min(1) + 10].concat();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{came}\r\n",
            if kind.provider == "ollama" { "application/x-ndjson" } else { "text/event-stream" },
            came.len()
        );
        let server = Server::start([Reply::raw(head)]).unwrap();
        let (ledger, secret) = ledger(10_000_000);
        let gate = gate(&kind, &server.url(), &ledger);
        gate.post(kind.path, &[("x-api-key", &secret)], &kind.body(&prompt, true));
        let run = recorded(&ledger);
        gate.join();
        let key = &ledger.keys().unwrap()[0];
        let least = ((prompt.len() + 10 * words[0].len()) / BYTES_PER_TOKEN) as u64 * 1000;
        let most = least * 3 / 2 + 60_000;
        assert!(
            (least..=most).contains(&key.spent) && key.held == 0,
            "{}: {} of {least}",
            kind.name,
            key.spent
        );
        assert!(run.usage.estimated, "{}", kind.name);
    }
}

#[test]
fn a_deadline_is_kept_and_charges_what_the_target_may_have_used() {
    for kind in kinds() {
        let server = Server::start([Reply::silent()]).unwrap();
        let (ledger, secret) = ledger(10_000_000);
        let gate = gate(&kind, &server.url(), &ledger);
        let headers = [("x-api-key", secret.as_str()), ("x-formwork-deadline", "0.2")];
        let got = gate.post(kind.path, &headers, &kind.body(&"word ".repeat(80), false));
        assert_eq!(got.status, 504, "{}: {}", kind.name, got.text());
        gate.join();
        let key = &ledger.keys().unwrap()[0];
        let output = if kind.name == "embeddings" { 0 } else { 100 };
        assert!(key.spent >= (100 + output) * 1000 && key.held == 0, "{}: {}", kind.name, key.spent);
        let run = recorded(&ledger);
        let outcome = RunOutcome::from_name(&run.outcome);
        assert_eq!(outcome, Some(RunOutcome::Failed(ErrorKind::Deadline)), "{}", kind.name);
        assert!(run.usage.estimated, "{}", kind.name);
    }
}

/// The record, the key and the texts agree about a request whose client does not wait for the head: every kind that passes, with a format,
/// with one that is passed on, and for a target of another protocol. The reservation is a hundred times as high.
#[test]
fn a_client_that_leaves_before_the_head_is_charged_for_its_prompt() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
    let mut all: Vec<(Kind, Value)> = kinds()
        .into_iter()
        .map(|kind| {
            let mut body = kind.body(&"word ".repeat(80), false);
            // Without a limit of its own the reservation has the 4,096 tokens of the model.
            // Anthropic's protocol needs it, and no answer of Ollama's is limited: then the target may have written so much.
            if kind.provider.starts_with("openai") {
                for limit in ["max_tokens", "max_output_tokens", "max_completion_tokens", "options"] {
                    body.as_object_mut().unwrap().remove(limit);
                }
            }
            (kind, body)
        })
        .collect();
    for more in [json!({}), json!({"store": true}), json!({"user": "u"}), json!({"n": 2, "store": true})] {
        let kind = kinds().swap_remove(0);
        let mut body =
            json!({"model": "primary", "messages": user(&"word ".repeat(80)), "response_format": format});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all.push((kind, body));
    }
    for (stream, count) in [(false, 1), (true, 1), (false, 2)] {
        let kind = Kind { provider: "ollama", ..kinds().swap_remove(0) };
        let body = json!({
            "model": "primary", "messages": user(&"word ".repeat(80)), "stream": stream, "n": count,
            "tools": [{"type": "function", "function": tool()}],
        });
        all.push((kind, body));
    }
    for (kind, body) in all {
        let at = format!("{} at {}: {body}", kind.name, kind.provider);
        let server = Server::start([Reply::silent()]).unwrap();
        let (ledger, secret) = ledger(100_000_000);
        let is_openai = kind.provider.starts_with("openai");
        let known = if is_openai { "capabilities = { output_tokens = 4096 }\n" } else { "" };
        let config = priced(&kind, &server.url()) + known;
        let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
        let mut socket = gate.connect();
        let bytes = request(kind.path, &[("x-api-key", &secret)], body.to_string().as_bytes());
        std::io::Write::write_all(&mut socket, &bytes).unwrap();
        let count = if kind.provider == "ollama" && body["n"] == 2 { 2 } else { 1 };
        wait_until(|| server.received().len() == count);
        drop(socket);
        let run = recorded(&ledger);
        wait_until(|| ledger.keys().unwrap()[0].held == 0);
        let spent = ledger.keys().unwrap()[0].spent;
        assert!((80_000..=400_000).contains(&spent), "{at}: {spent}");
        let outcome = RunOutcome::from_name(&run.outcome);
        assert_eq!(outcome, Some(RunOutcome::Failed(ErrorKind::Cancelled)), "{at}");
        assert_eq!((run.micro_usd, run.usage.estimated), (Some(spent), true), "{at}");
        let run = ledger.run(run.id).unwrap().unwrap();
        assert!(run.calls.iter().all(|call| call.class == "cancelled"), "{at}: {:?}", run.calls);
        assert_eq!(run.calls.len(), server.received().len(), "{at}");
    }
}

/// A stream whose client leaves, and one that its target cuts, are not recorded as answers. One whose client leaves after the end is.
#[test]
fn a_stream_that_is_cut_is_recorded_as_what_cut_it() {
    let unavailable = RunOutcome::Failed(ErrorKind::Unavailable);
    let cases = [
        (Some(End::Stall), 2, Some(RunOutcome::Failed(ErrorKind::Cancelled))),
        (Some(End::Close), 2, Some(unavailable)),
        // The response ends in order, but without its last event.
        (None, 2, Some(unavailable)),
        (Some(End::Stall), usize::MAX, Some(RunOutcome::Ok)),
        (None, usize::MAX, Some(RunOutcome::Ok)),
    ];
    // A call is held back until it is whole.
    for kind in kinds().into_iter().filter(|kind| kind.can_stream && !kind.name.contains("call")) {
        for (end, count, expected) in cases {
            let tokens = Tokens { input: 9, output: 9, cached: 0 };
            let mut pieces = (kind.reply)(&["once ", "upon ", "a time"], Some(tokens), true);
            pieces.truncate(count);
            if kind.provider == "openai" && count > 2 {
                pieces.push(
                    r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#.to_owned()
                        + "\n\n",
                );
            }
            // The usage that the client did not ask for is left out.
            let is_asked = kind.name.contains("asked for");
            let left_out = if is_asked { "none" } else { ",\"usage\":null" };
            let last = pieces.last().unwrap().replace(left_out, "");
            let length = pieces.concat().len();
            let reply = kind.reply(true, pieces);
            let reply = end.map_or_else(|| reply.clone(), |end| reply.clone().cut_at(length, end));
            let server = Server::start([reply]).unwrap();
            let (ledger, secret) = ledger(100_000_000);
            let gate = gate(&kind, &server.url(), &ledger);
            let mut socket = gate.connect();
            let body = kind.body("Tell me a story", true).to_string();
            let bytes = request(kind.path, &[("x-api-key", &secret)], body.as_bytes());
            std::io::Write::write_all(&mut socket, &bytes).unwrap();
            let mut seen = Vec::new();
            while !String::from_utf8_lossy(&seen).contains(last.trim_end()) {
                let mut part = [0; 4096];
                match std::io::Read::read(&mut socket, &mut part) {
                    Ok(read @ 1..) => seen.extend_from_slice(&part[..read]),
                    _ => break,
                }
            }
            if end == Some(End::Stall) {
                drop(socket);
            } else if count == 2 {
                // The stream ends with the error of its protocol, and in order.
                std::io::Read::read_to_end(&mut socket, &mut seen).unwrap();
                let seen = String::from_utf8_lossy(&seen);
                assert!(seen.contains("error") && seen.ends_with("0\r\n\r\n"), "{}: {seen}", kind.name);
            }
            let run = recorded(&ledger);
            let at = format!("{}, {end:?}, {count}: {run:?}", kind.name);
            assert_eq!(RunOutcome::from_name(&run.outcome), expected, "{at}");
            // Anthropic's first event has a count that is none of the answer.
            let is_whole = expected == Some(RunOutcome::Ok);
            assert!(is_whole || run.usage.estimated && run.usage.output_tokens > 1, "{at}");
        }
    }
}

#[test]
fn a_stream_that_is_whole_by_any_sign_gets_no_error_and_one_with_an_error_no_second() {
    let chat = &kinds()[0];
    let find = |name: &str| kinds().into_iter().find(|kind| kind.name == name).unwrap();
    let content = r#"data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}"#;
    let ok = Some(RunOutcome::Ok);
    let unavailable = Some(RunOutcome::Failed(ErrorKind::Unavailable));
    for (kind, body, expected, added) in [
        (chat, format!("{content}\n\ndata: [DONE]\n\n"), ok, ""),
        (&find("ollama chat"), "{\"message\": {\"content\": \"Hi\"}}\n{\"done\":true}\n".to_owned(), ok, ""),
        (&find("ollama generate"), "{\"response\": \"Hi\"}\n{\"done\": true}\n".to_owned(), ok, ""),
        (
            &find("messages"),
            "data: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": null}}\n\nevent: message_stop\ndata: {\"type\": \"message_stop\"}\n\n".to_owned(),
            ok,
            "",
        ),
        (chat, "data: {\"error\": {\"message\": \"boom\"}}\n\n".to_owned(), unavailable, ""),
        // An event that is cut has an end before the error, and a line has no empty line after it.
        (chat, format!("{content}\n\ndata: {{\"choices\": [{{\"del"), unavailable, "\ndata: {\"error\""),
        (&find("ollama chat"), "{\"message\": {\"content\": \"Hi\"}}\n".to_owned(), unavailable, "{\"error\""),
    ] {
        let length = body.len();
        let whole = kind.reply(true, vec![body.clone()]);
        // After the last event, the end of the connection says nothing.
        let broken = whole.clone().cut_at(length, End::Close);
        for reply in [whole].into_iter().chain((expected == ok).then_some(broken)) {
            let server = Server::start([reply]).unwrap();
            let (ledger, secret) = ledger(100_000_000);
            let got = gate(kind, &server.url(), &ledger).post(
                kind.path,
                &[("x-api-key", &secret)],
                &kind.body("Hello", true),
            );
            let text = got.text();
            let own = if added.is_empty() { 0 } else { 1 };
            assert!(text.contains(added) && text.matches("ended without its last event").count() == own, "{text}");
            assert!(kind.provider != "ollama" || !text.contains("\n\n"), "{text:?}");
            assert_eq!(text.contains("error"), expected != ok, "{text}");
            assert_eq!(RunOutcome::from_name(&recorded(&ledger).outcome), expected, "{body}");
        }
    }
}

/// Targets tell what is wrong with a request, and how they fare, in streams of status 200 too.
#[test]
fn an_error_in_a_stream_has_the_class_and_the_words_that_it_has_as_a_response() {
    let chat_error = |code: &str, message: &str| {
        format!("data: {}\n\n", json!({"error": {"message": message, "code": code, "type": "x"}}))
    };
    let busy = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Too busy"}});
    let slow = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null});
    let image = json!({"type": "error", "code": "image_parse_error", "message": "no picture"});
    let ended = |code: &str, message: &str| {
        let choice = json!({"index": 0, "delta": {}, "finish_reason": "error"});
        json!({"id": "x", "error": {"code": code, "message": message}, "choices": [choice]})
    };
    // Failed responses repeat their request.
    let failed = json!({"error": {"code": "server_error", "message": "gone"}, "status": "failed", "instructions": "x".repeat(40_000)});
    let failed = json!({"type": "response.failed", "response": failed});
    for (name, error, class, words) in [
        (
            "chat",
            chat_error("context_length_exceeded", "maximum context length is 9"),
            "bad_request",
            "context length",
        ),
        ("chat", chat_error("rate_limit_exceeded", "slow down"), "rate_limited", "slow down"),
        ("chat", chat_error("x", "boom"), "overloaded", "boom"),
        ("messages", format!("event: error\ndata: {busy}\n\n"), "overloaded", "Too busy"),
        ("ollama chat", "{\"error\":\"the model runner has stopped\"}\n".to_owned(), "overloaded", "runner"),
        ("responses", format!("event: error\ndata: {slow}\n\n"), "rate_limited", "slow down"),
        ("responses", format!("event: response.failed\ndata: {failed}\n\n"), "overloaded", "gone"),
        ("responses", format!("event: error\ndata: {image}\n\n"), "bad_request", "no picture"),
        (
            "ollama chat",
            "{\"error\":\"input length exceeds the context length\"}\n".to_owned(),
            "bad_request",
            "input",
        ),
        ("chat", chat_error("content_filter", "not so"), "bad_request", "not so"),
        ("chat", format!("data: {}\n\n", ended("502", "gone")), "overloaded", "gone"),
        ("chat", format!("data: {}\n\n", ended("rate_limit_exceeded", "wait")), "rate_limited", "wait"),
    ] {
        let kind = kinds().into_iter().find(|kind| kind.name == name).unwrap();
        let pieces = (kind.reply)(&["once"], None, true);
        let shown = pieces.iter().position(|piece| piece.contains("once")).unwrap();
        let said = pieces[..=shown].concat();
        // As it is, and held back for tools; before and after a text.
        let ways = [
            (false, said.clone(), true),
            (false, String::new(), true),
            (true, said, true),
            (true, String::new(), true),
            (true, String::new(), false),
        ];
        // The stream ends in order, breaks off after the error, or ends without the end of its last event.
        let ends = [(Some(0), false), (Some(0), true), (None, false)];
        for ((has_tools, before, has_second), (rest, is_cut)) in
            ways.iter().flat_map(|way| ends.iter().map(move |end| (way.clone(), *end)))
        {
            let at = format!(
                "{name}, {class}, {words}, tools: {has_tools}, {before:?}, {has_second}, {rest:?}, {is_cut}"
            );
            let told = before.clone() + if rest.is_some() { &error } else { error.trim_end() };
            let reply = match is_cut {
                true => kind.reply(true, vec![told.clone(), "x".repeat(9)]).cut_at(told.len(), End::Close),
                false => kind.reply(true, vec![told]),
            };
            let first = Server::start([reply]).unwrap();
            let mut whole = (kind.reply)(&["twice"], None, true);
            whole.extend((name == "chat").then(|| "data: [DONE]\n\n".to_owned()));
            let second = Server::start([kind.reply(true, whole)]).unwrap();
            let mut config = priced(&kind, &first.url());
            let mut body = kind.body("Hello", true);
            if has_second {
                config += &priced(&kind, &second.url()).replace("primary", "second");
                body["model"] = "primary,second".into();
            }
            if has_tools {
                body["tools"] = json!([any_tool(name)]);
            }
            let (ledger, secret) = ledger(100_000_000);
            let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
            let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
            let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
            let call = &run.calls[0];
            assert_eq!(call.class, *class, "{at}: {}", got.text());
            assert!(call.message.as_ref().is_some_and(|it| it.contains(words)), "{at}: {call:?}");
            // What is refused before any answer costs nothing.
            let is_free = before.is_empty();
            assert_eq!(call.usage == formwork_core::Usage::default(), is_free, "{at}: {:?}", call.usage);
            // Another target is asked if nothing was shown, and the request is not to blame.
            let goes_on = has_tools && before.is_empty() && has_second && class != "bad_request";
            let is_told_by_status = has_tools && before.is_empty() && !goes_on;
            assert_eq!(got.status != 200, is_told_by_status, "{at}: {}", got.text());
            assert_eq!(
                (run.calls.len() == 2, got.text().contains("twice")),
                (goes_on, goes_on),
                "{at}: {}",
                got.text()
            );
            if is_told_by_status {
                assert!(
                    got.json()["error"].is_object() || got.json()["error"].is_string(),
                    "{at}: {}",
                    got.text()
                );
                continue;
            }
            let is_error = |document: &Value| {
                !document["error"].is_null()
                    || ["error", "response.failed"].iter().any(|it| document["type"] == *it)
            };
            let errors = got.documents().iter().filter(|document| is_error(document)).count();
            let end = if kind.name == "ollama chat" { "\n" } else { "\n\n" };
            assert!(got.text().ends_with(end), "{at}: {}", got.text());
            assert_eq!(errors, usize::from(!goes_on), "{at}: {}", got.text());
        }
    }
}

/// Some servers answer with status 200 before they know.
#[test]
fn an_error_in_a_whole_response_of_status_200_is_no_answer() {
    let find = |name: &str| kinds().into_iter().find(|kind| kind.name == name).unwrap();
    let failed = json!({
        "id": "x", "object": "response", "status": "failed", "model": "m", "output": [],
        "error": {"code": "rate_limit_exceeded", "message": "slow down"}, "instructions": "y".repeat(9_000),
        "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
    });
    let partial = json!({
        "error": {"message": "gone", "code": 502},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "once"}, "finish_reason": "error"}],
    });
    let aborted = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "once"}, "finish_reason": "abort"}]});
    for (name, error, class, words, is_free) in [
        ("chat", json!({"error": {"message": "boom", "code": "x"}}).to_string(), "overloaded", "boom", true),
        ("chat", "{\n  \"error\" : {\"message\": \"not so\", \"code\": \"content_filter\"}\n}\n".to_owned(), "bad_request", "not so", true),
        ("chat", partial.to_string(), "overloaded", "gone", false),
        ("chat", aborted.to_string(), "overloaded", "abort", false),
        ("messages", json!({"type": "error", "error": {"type": "overloaded_error", "message": "Too busy"}}).to_string(), "overloaded", "Too busy", true),
        ("ollama chat", json!({"error": "the model runner has stopped"}).to_string(), "overloaded", "runner", true),
        ("messages", json!({"error": "Unexpected endpoint or method. (POST /v1/x)"}).to_string(), "unsupported", "no such API", true),
        ("chat", json!({"choices": [{"index": 0, "message": {"content": "once"}, "finish_reason": "stop", "stop_reason": "error"}]}).to_string(), "accepted", "", false),
        ("responses", failed.to_string(), "rate_limited", "slow down", false),
        // A text of the model, the arguments of a call, and a member that says that there is none.
        ("chat", json!({"error": null, "choices": [{"index": 0, "message": {"content": "{\"error\": {}}", "tool_calls": [{"function": {"name": "f", "arguments": "{\"error\": {}}"}}], "error": {"no": 1}}, "finish_reason": "stop"}]}).to_string(), "accepted", "", false),
        ("ollama chat", json!({"error": "", "message": {"content": "once", "tool_calls": [{"function": {"name": "f", "arguments": {"error": {"message": "x"}}}}]}, "done": true, "eval_count": 1}).to_string(), "accepted", "", false),
    ] {
        let kind = find(name);
        for (has_tools, has_second, size) in
            [(false, false, usize::MAX), (false, true, 7), (true, false, usize::MAX), (true, true, 7), (true, true, usize::MAX)]
        {
            let at = format!("{error}, tools: {has_tools}, {has_second}, {size}");
            let pieces = error.as_bytes().chunks(size).map(|piece| String::from_utf8(piece.to_vec()).unwrap());
            let reply = Reply::pieces(pieces.collect::<Vec<_>>());
            let first = Server::start([reply.with_header("content-type", "application/json")]).unwrap();
            let second = Server::start([kind.reply(false, (kind.reply)(&["twice"], None, false))]).unwrap();
            let mut config = priced(&kind, &first.url());
            let mut body = kind.body("Hello", false);
            if has_second {
                config += &priced(&kind, &second.url()).replace("primary", "second");
                body["model"] = "primary,second".into();
            }
            if has_tools {
                body["tools"] = json!([any_tool(name)]);
            }
            let (ledger, secret) = ledger(100_000_000);
            let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
            let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
            let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
            let call = &run.calls[0];
            assert_eq!(call.class.as_ref(), class, "{at}: {} {}", got.status, got.text());
            assert!(words.is_empty() || call.message.as_ref().is_some_and(|it| it.contains(words)), "{at}: {call:?}");
            assert_eq!(call.usage == formwork_core::Usage::default(), is_free, "{at}: {:?}", call.usage);
            let goes_on = has_tools && has_second && !matches!(class, "bad_request" | "accepted");
            assert_eq!((run.calls.len() == 2, got.text().contains("twice")), (goes_on, goes_on), "{at}: {}", got.text());
            // A request that is passed on gets the response of the target as it is.
            let is_verbatim = !has_tools || class == "accepted";
            assert_eq!(got.text() == error, is_verbatim, "{at}: {}", got.text());
            assert_eq!(got.status == 200, is_verbatim || goes_on, "{at}: {}", got.status);
        }
    }
}

/// A document that breaks off has the end that it has, and no error of its own.
#[test]
fn a_whole_response_that_breaks_off_is_not_shown_as_whole() {
    let kind = kinds().swap_remove(0);
    let whole = r#"{"error":{"message":"gone","code":502},"choices":[]}"#.to_owned();
    for (told, is_told) in [
        (whole.clone(), true),
        (whole[..whole.len() - 6].to_owned(), false),
        (
            r#"{"choices":[{"index":0,"message":{"content":"once"},"finish_reason":"error"}],"usa"#
                .to_owned(),
            false,
        ),
    ] {
        let reply = Reply::pieces([told.clone(), "x".repeat(9)]).cut_at(told.len(), End::Close);
        let server = Server::start([reply.with_header("content-type", "application/json")]).unwrap();
        let (ledger, secret) = ledger(100_000_000);
        let gate = gate(&kind, &server.url(), &ledger);
        let mut socket = gate.connect();
        let body = kind.body("Hello", false).to_string();
        let bytes = request(kind.path, &[("x-api-key", &secret)], body.as_bytes());
        std::io::Write::write_all(&mut socket, &bytes).unwrap();
        let mut seen = Vec::new();
        // The connection ends without the last chunk.
        _ = std::io::Read::read_to_end(&mut socket, &mut seen);
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert!(seen.contains(&told) && !seen.ends_with("0\r\n\r\n"), "{seen}");
        let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
        let message = run.calls[0].message.clone().unwrap_or_default();
        assert_eq!(
            (message.contains("gone"), run.calls[0].class.as_ref()),
            (is_told, if is_told { "overloaded" } else { "unreachable" }),
            "{run:?}"
        );
    }
}

/// A model that did not write what the schema asks for is asked again; an error beside other members ends a turn at once.
#[test]
fn errors_beside_a_format_are_those_of_the_model_or_of_the_target() {
    let kind = kinds().swap_remove(0);
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "required": ["a"]}}});
    let failed = json!({"error": {"code": "json_validate_failed", "message": "Failed to generate JSON"}});
    for stream in [false, true] {
        let wrong = match stream {
            false => vec![failed.to_string()],
            true => vec![format!("data: {failed}\n\n")],
        };
        let right = (kind.reply)(&["{\"a\": 1}"], None, stream);
        let server = Server::start([kind.reply(stream, wrong), kind.reply(stream, right)]).unwrap();
        let (ledger, secret) = ledger(100_000_000);
        let gate = gate(&kind, &server.url(), &ledger);
        let mut body = kind.body("Hello", stream);
        body["response_format"] = format.clone();
        body["tools"] = json!([{"type": "function", "function": tool()}]);
        let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
        assert_eq!((got.status, got.text().contains("\\\"a\\\"")), (200, true), "{}", got.text());
        assert_eq!(ledger.run(recorded(&ledger).id).unwrap().unwrap().calls.len(), 2);
    }
    let error =
        r#"data: {"id": "x", "error": {"code": 502, "message": "gone"}, "choices": []}"#.to_owned() + "\n\n";
    let stalls = kind.reply(true, vec![error.clone(), "x".repeat(9)]).cut_at(error.len(), End::Stall);
    let first = Server::start([stalls]).unwrap();
    let second = Server::start([kind.reply(true, (kind.reply)(&["twice"], None, true))]).unwrap();
    let config = priced(&kind, &first.url()) + &priced(&kind, &second.url()).replace("primary", "second");
    let gate = Gate::start(targets(&config).with_limits(limits()));
    let mut body = kind.body("Hello", true);
    body["model"] = "primary,second".into();
    body["tools"] = json!([{"type": "function", "function": tool()}]);
    let got = gate.post(kind.path, &[], &body);
    assert!(got.text().contains("twice"), "{}", got.text());
    // A target that answers a request for a stream with a document is not the last one, and the stream of the next one is judged.
    let boom = Reply::json(json!({"error": {"message": "boom"}}).to_string());
    let first = Server::start([boom]).unwrap();
    let call =
        json!({"index": 0, "id": "c", "type": "function", "function": {"name": "nobody", "arguments": "{}"}});
    let wrong =
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let wrong = kind.reply(true, vec![format!("data: {wrong}\n\n")]);
    let right = kind.reply(true, (kind.reply)(&["twice"], None, true));
    let second = Server::start([wrong, right]).unwrap();
    let config = priced(&kind, &first.url()) + &priced(&kind, &second.url()).replace("primary", "second");
    let gate = Gate::start(targets(&config).with_limits(limits()));
    let got = gate.post(kind.path, &[], &body);
    assert!(got.text().contains("twice") && !got.text().contains("nobody"), "{}", got.text());
}

/// The event after an error may have begun in its piece.
#[test]
fn an_error_beside_other_members_counts_although_the_next_event_is_open() {
    let kind = kinds().swap_remove(0);
    let choice = json!({"index": 0, "delta": {}, "finish_reason": "error"});
    let ended = json!({"error": {"code": 502, "message": "gone"}, "choices": [choice]});
    for has_tools in [false, true] {
        let (ledger, secret) = ledger(100_000_000);
        let pieces = vec![format!("data: {ended}\n\ndata: ["), "DONE]\n\n".to_owned()];
        let server = Server::start([kind.reply(true, pieces).with_pause(Duration::from_millis(50))]).unwrap();
        let gate = gate(&kind, &server.url(), &ledger);
        let mut body = kind.body("Hello", true);
        if has_tools {
            body["tools"] = json!([{"type": "function", "function": tool()}]);
        }
        let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
        let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
        let message = run.calls[0].message.clone().unwrap_or_default();
        assert!(message.contains("gone"), "{has_tools}: {run:?} {}", got.text());
    }
}

/// Clients leave when they have read of an error, and some targets keep the connection open after it. A call that was not judged is not sent.
#[test]
fn an_error_in_a_stream_is_recorded_although_nothing_follows_it() {
    let kind = kinds().swap_remove(0);
    let text = r#"data: {"choices": [{"index": 0, "delta": {"content": "once "}}]}"#;
    let call = json!({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{\"city\": 5"}});
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
    let error = r#"data: {"error": {"message": "boom"}}"#;
    for (has_tools, told) in [
        (false, format!("{text}\n\n{error}\n\n")),
        (true, format!("{text}\n\n{error}\n\n")),
        (true, format!("{text}\n\ndata: {call}\n\n{error}\n\n")),
    ] {
        let reply = kind.reply(true, vec![told.clone(), "x".repeat(9)]).cut_at(told.len(), End::Stall);
        let server = Server::start([reply]).unwrap();
        let (ledger, secret) = ledger(100_000_000);
        let gate = gate(&kind, &server.url(), &ledger);
        let mut body = kind.body("Hello", true);
        if has_tools {
            body["tools"] = json!([{"type": "function", "function": tool()}]);
        }
        let mut socket = gate.connect();
        let bytes = request(kind.path, &[("x-api-key", &secret)], body.to_string().as_bytes());
        std::io::Write::write_all(&mut socket, &bytes).unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("boom") {
            let mut part = [0; 4096];
            let read = std::io::Read::read(&mut socket, &mut part).unwrap();
            assert!(read > 0, "{told}: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&part[..read]);
        }
        drop(socket);
        assert!(!String::from_utf8_lossy(&seen).contains("tool_calls"), "{told}");
        let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
        let call = &run.calls[0];
        assert_eq!(
            (call.class.as_ref(), call.usage.output_tokens > 0),
            ("overloaded", true),
            "{told}: {call:?}"
        );
    }
}

/// The sign of the end, or of an error, does not make a whole event of a half one.
#[test]
fn a_stream_that_breaks_off_in_its_last_event_is_no_answer() {
    let find = |name: &str| kinds().into_iter().find(|kind| kind.name == name).unwrap();
    let completed = "event: response.completed\ndata: {\"type\": \"response.completed\", \"respon";
    for (kind, last) in [
        (find("responses"), completed),
        (find("chat"), "data: {\"error\": {\"mess"),
        (
            find("chat"),
            "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}], \"usa",
        ),
        (find("messages"), "event: error\ndata: {\"type\": \"err"),
    ] {
        for end in [Some(End::Close), None] {
            let at = format!("{}, {last}, {end:?}", kind.name);
            let pieces = (kind.reply)(&["once"], None, true);
            let shown = pieces.iter().position(|piece| piece.contains("once")).unwrap();
            let told = pieces[..=shown].concat() + last;
            let reply =
                kind.reply(true, vec![told.clone()].into_iter().chain(end.map(|_| "x".to_owned())).collect());
            let reply = end.map_or_else(|| reply.clone(), |end| reply.clone().cut_at(told.len(), end));
            let server = Server::start([reply]).unwrap();
            let (ledger, secret) = ledger(100_000_000);
            let gate = gate(&kind, &server.url(), &ledger);
            let got = gate.post(kind.path, &[("x-api-key", &secret)], &kind.body("Hello", true));
            let run = recorded(&ledger);
            // Of a stream that ends in order, a reason to stop is enough.
            let is_whole =
                end.is_none() && last.contains("finish_reason") || end.is_none() && kind.name == "responses";
            let expected = if is_whole { RunOutcome::Ok } else { RunOutcome::Failed(ErrorKind::Unavailable) };
            assert_eq!(RunOutcome::from_name(&run.outcome), Some(expected), "{at}: {}", got.text());
            let tells = |line: &str| {
                let document =
                    line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
                document.is_some_and(|it| it["error"]["message"].is_string() || it["type"] == "error")
            };
            assert_eq!(got.text().lines().any(tells), !is_whole, "{at}: {}", got.text());
        }
    }
}

/// A target that breaks off answers is left to others, as one that gives none. How long an answer may take is the client's wish.
#[test]
fn answers_that_break_off_put_a_target_out_of_service_and_a_deadline_does_not() {
    let kind = kinds().swap_remove(0);
    let event = r#"data: {"choices": [{"index": 0, "delta": {"content": "once "}}]}"#.to_owned() + "\n\n";
    let error = format!("{event}data: {{\"error\": {{\"message\": \"boom\"}}}}\n\n");
    let long = Reply::endless(event.clone()).with_pause(Duration::from_millis(20));
    let long = long.with_header("content-type", "text/event-stream");
    for has_tools in [false, true] {
        for (reply, is_left) in [
            (kind.reply(true, vec![event.clone(), "x".repeat(9)]).cut_at(event.len(), End::Close), true),
            (kind.reply(true, vec![error.clone()]), true),
            (kind.reply(true, vec![event.clone()]), true),
            (long.clone(), false),
        ] {
            let first = Server::start([reply]).unwrap();
            let whole = (kind.reply)(&["twice"], None, true);
            let second = Server::start([kind.reply(true, whole)]).unwrap();
            let config =
                priced(&kind, &first.url()) + &priced(&kind, &second.url()).replace("primary", "second");
            let gate = Gate::start(targets(&config).with_limits(limits()));
            let mut body = kind.body("Hello", true);
            body["model"] = "primary,second".into();
            if has_tools {
                body["tools"] = json!([{"type": "function", "function": tool()}]);
            }
            let deadline = ("x-formwork-deadline", if is_left { "20" } else { "0.5" });
            for _ in 0..5 {
                let got = gate.post(kind.path, &[deadline], &body);
                assert_eq!(got.status, 200, "{}", got.text());
            }
            let asked = second.received().len();
            assert_eq!((asked > 0, first.received().len() + asked), (is_left, 5), "tools: {has_tools}");
            // The head of another answer that breaks off does not bring it back.
            let mut alone = body.clone();
            alone["model"] = "primary".into();
            gate.post(kind.path, &[deadline], &alone);
            gate.post(kind.path, &[deadline], &body);
            assert_eq!(second.received().len(), asked + usize::from(is_left), "tools: {has_tools}");
        }
    }
}

#[test]
fn a_deadline_before_the_head_puts_no_target_out_of_service_and_the_limit_of_the_service_does() {
    let kind = kinds().swap_remove(0);
    let with = |name: &str, value: Value| {
        let mut body = kind.body("Hello", false);
        body[name] = value;
        body
    };
    let format = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
    let tools = json!([{"type": "function", "function": tool()}]);
    for (nth, body) in
        [kind.body("Hello", false), with("tools", tools), with("response_format", format)].iter().enumerate()
    {
        let server = Server::start([Reply::silent()]).unwrap();
        let gate = Gate::new(&priced(&kind, &server.url()));
        for deadline in ["0.000001"; 5].into_iter().chain(["0.1"; 5]) {
            let got = gate.post(kind.path, &[("x-formwork-deadline", deadline)], body);
            assert_eq!(got.status, 504, "{nth}: {}", got.text());
        }
        let ready = gate.get("/readyz");
        assert_eq!(ready.status, 200, "{nth}: {}", ready.text());
    }
    let server = Server::start([Reply::silent()]).unwrap();
    let mut limits = limits();
    limits.timeout = Duration::from_millis(100);
    let gate = Gate::start(targets(&priced(&kind, &server.url())).with_limits(limits));
    // A deadline beyond the limit of the service is none.
    for headers in [&[][..], &[("x-formwork-deadline", "60")], &[]] {
        assert_eq!(gate.post(kind.path, headers, &kind.body("Hello", false)).status, 504);
    }
    assert_eq!(gate.get("/readyz").status, 503);
}

#[test]
fn a_run_has_the_text_of_every_answer_where_texts_are_kept() {
    let tokens = Tokens { input: 9, output: 9, cached: 0 };
    let all = kinds();
    let anthropic = all.iter().find(|kind| kind.name == "messages").copied();
    // Passed on, judged in its own protocol, and translated to that of the target.
    let translated =
        Kind { name: "translated", reply: anthropic.unwrap().reply, provider: "anthropic", ..all[0] };
    for kind in all.into_iter().chain([translated]).filter(|kind| kind.name != "embeddings") {
        for stream in [false, true] {
            let mut pieces = (kind.reply)(&["once ", "upon ", "a time"], Some(tokens), stream);
            if stream && kind.provider == "openai" {
                pieces.push("data: [DONE]\n\n".to_owned());
            } else if stream && kind.name == "translated" {
                let block = json!({"type": "text", "text": ""});
                let begin = json!({"type": "content_block_start", "index": 0, "content_block": block});
                pieces.splice(1..1, events(vec![begin]));
                pieces.extend(events(vec![json!({"type": "message_stop"})]));
            }
            let server = Server::start([kind.reply(stream, pieces)]).unwrap();
            let ledger = Ledger::in_memory(Settings { bodies: true, ..Settings::default() }).unwrap();
            let targets = targets(&priced(&kind, &server.url())).with_limits(limits());
            let gate = Gate::start(targets.with_ledger(ledger.clone()).with_bodies());
            let got = gate.post(kind.path, &[], &kind.body("Tell me a story", stream));
            assert_eq!(got.status, 200, "{}: {}", kind.name, got.text());
            let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
            let answer = run.calls[0].answer.as_deref().unwrap_or_default();
            assert!(answer.contains("once upon a time"), "{} {stream}: {answer:?}", kind.name);
        }
    }
}

/// A whole response that is held back to be judged is charged for what came of it, and the next target is asked.
#[test]
fn a_response_that_is_cut_before_it_was_judged_is_charged_for_what_came() {
    let kind = &kinds()[0];
    let text = "once upon a ti".repeat(40);
    let whole = chat(&[&text], None, false).concat();
    let mut body = kind.body("Hello", false);
    body["tools"] = json!([{"type": "function", "function": tool()}]);
    body["model"] = "primary,second".into();
    let cut = Server::start([Reply::json(whole.clone()).cut_at(whole.len() - 60, End::Close)]).unwrap();
    let server = Server::start([completion("Hi")]).unwrap();
    let config = priced(kind, &cut.url()) + &priced(kind, &server.url()).replace("primary", "second");
    let (ledger, secret) = ledger(100_000_000);
    let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
    let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
    assert_eq!((got.status, got.header("x-formwork-calls")), (200, Some("2")), "{}", got.text());
    let run = recorded(&ledger);
    let run = ledger.run(run.id).unwrap().unwrap();
    let calls: Vec<_> = run.calls.iter().map(|call| (call.target.as_str(), call.class.as_ref())).collect();
    assert_eq!(calls, [("primary", "unreachable"), ("second", "accepted")]);
    let came = (text.len() / BYTES_PER_TOKEN) as u64;
    assert!(run.calls[0].usage.estimated && run.calls[0].usage.output_tokens >= came * 9 / 10, "{run:?}");
}

/// A request that its target refuses is no answer, whoever the client hears it from.
#[test]
fn a_request_that_the_target_refuses_is_recorded_as_refused() {
    for kind in kinds() {
        let refusal = Reply::json(r#"{"error": {"message": "no"}}"#).with_status(400);
        let server = Server::start([refusal]).unwrap();
        let (ledger, secret) = ledger(100_000_000);
        let gate = gate(&kind, &server.url(), &ledger);
        let got = gate.post(kind.path, &[("x-api-key", &secret)], &kind.body("Hello", false));
        assert_eq!(got.status, 400, "{}: {}", kind.name, got.text());
        let run = recorded(&ledger);
        let outcome = RunOutcome::from_name(&run.outcome);
        assert_eq!(outcome, Some(RunOutcome::Failed(ErrorKind::Schema)), "{}", kind.name);
        let run = ledger.run(run.id).unwrap().unwrap();
        assert_eq!(
            (run.calls[0].class.as_ref(), run.run.micro_usd),
            ("bad_request", Some(0)),
            "{}",
            kind.name
        );
    }
}

/// A request with a schema needs what its first call is expected to need, and not the longest answer.
#[test]
fn a_small_budget_is_enough_for_a_request_that_costs_less() {
    let kind = &kinds()[0];
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let (ledger, secret) = ledger(2_000_000);
    let gate = gate(kind, &server.url(), &ledger);
    let format = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
    let body = json!({"model": "primary", "messages": user("Maria, 34"), "response_format": format});
    let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
    assert_eq!(got.status, 200, "{}", got.text());
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    let limit = sent["max_completion_tokens"].as_u64().unwrap();
    assert!((1_024..=2_000).contains(&limit), "{limit}");
}

/// The answer of a run is read as it comes, so that nothing beside the prompt is charged.
#[test]
fn a_deadline_of_a_run_charges_the_prompt() {
    let kind = kinds().swap_remove(0);
    let server = Server::start([Reply::silent()]).unwrap();
    let (ledger, secret) = ledger(100_000_000);
    let gate = gate(&kind, &server.url(), &ledger);
    let mut body = kind.body(&"word ".repeat(80), false);
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
    let headers = [("x-api-key", secret.as_str()), ("x-formwork-deadline", "0.2")];
    assert_eq!(gate.post(kind.path, &headers, &body).status, 504);
    let run = recorded(&ledger);
    wait_until(|| ledger.keys().unwrap()[0].held == 0);
    let spent = ledger.keys().unwrap()[0].spent;
    assert!((100_000..=200_000).contains(&spent), "{spent}");
    assert_eq!((run.micro_usd, run.usage.estimated), (Some(spent), true));
}

#[test]
fn a_budget_bounds_every_kind_of_request_before_its_call() {
    for kind in kinds() {
        // Also where the target has another protocol, so that the request is translated.
        let other = if kind.provider == "anthropic" { "openai" } else { "anthropic" };
        let translated = Kind { provider: other, ..kind };
        for target in [&kind, &translated] {
            if target.provider == other && kind.name == "embeddings" {
                continue;
            }
            for stream in [false, true] {
                let at = format!("{} to {}, {stream}", kind.name, target.provider);
                let server = Server::start([Reply::json("{}")]).unwrap();
                // The prompt alone may cost more than both budgets.
                let (ledger, secret) = ledger(50_000);
                let with_key = gate(target, &server.url(), &ledger);
                let without = Gate::new(&priced(target, &server.url()));
                let body = kind.body(&"word ".repeat(80), stream);
                let own = [("x-api-key", secret.as_str()), ("x-formwork-budget", "0.000001")];
                for headers in [&own[..1], &own[..]] {
                    let got = with_key.post(kind.path, headers, &body);
                    assert_eq!(got.status, 429, "{at}: {}", got.text());
                }
                let got = without.post(kind.path, &[("x-formwork-budget", "0.05")], &body);
                assert_eq!(got.status, 429, "{at}: {}", got.text());
                assert!(server.received().is_empty(), "{at}");
                assert_eq!((ledger.keys().unwrap()[0].spent, ledger.keys().unwrap()[0].held), (0, 0));
            }
        }
    }
    // Neither many answers nor long ones get around it.
    let kind = &kinds()[0];
    for (name, value) in [("n", 50), ("max_tokens", 500_000), ("max_completion_tokens", 500_000)] {
        let server = Server::start([Reply::json("{}")]).unwrap();
        let (ledger, secret) = ledger(500_000);
        let gate = gate(kind, &server.url(), &ledger);
        let mut body = kind.body("Hello", false);
        body[name] = value.into();
        assert_eq!(gate.post(kind.path, &[("x-api-key", &secret)], &body).status, 429, "{name}");
        assert!(server.received().is_empty(), "{name}");
    }
}

#[test]
fn the_answers_of_a_request_share_its_budget() {
    // A call may cost half a dollar, and costs 0.40.
    let choices = json!([{"index": 0, "message": {"role": "assistant", "content": "{\"age\": 340}"}, "finish_reason": "stop"}]);
    let usage = json!({"prompt_tokens": 300, "completion_tokens": 100, "total_tokens": 400});
    let server =
        Server::start([Reply::json(json!({"choices": choices, "usage": usage}).to_string())]).unwrap();
    let kind = &kinds()[0];
    let (ledger, secret) = ledger(1_500_000);
    let (with_key, without) = (gate(kind, &server.url(), &ledger), Gate::new(&priced(kind, &server.url())));
    let format = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
    for (gate, header) in
        [(&without, ("x-formwork-budget", "1.5")), (&with_key, ("x-api-key", secret.as_str()))]
    {
        let mut body = kind.body("Maria, 34", false);
        (body["response_format"], body["n"], body["user"]) = (format.clone(), 2.into(), "u".into());
        let before = server.received().len();
        let got = gate.post(kind.path, &[header], &body);
        let calls = server.received().len() - before;
        assert_eq!(got.status, 429, "{}", got.text());
        assert!(calls as f64 * 0.4 <= 1.5 && calls >= 2, "{calls} calls");
        assert_eq!(got.header("x-formwork-calls"), Some(calls.to_string().as_str()));
    }
}

#[test]
fn a_reservation_waits_for_open_requests_and_is_refused_once_the_wait_is_over() {
    let kind = &kinds()[0];
    let body = kind.body("Hello", false);
    // A request reserves a tenth of a dollar for its 100 tokens, and a little for its prompt.
    for (wait, expected) in [(Duration::from_secs(60), 200), (Duration::from_millis(1), 429)] {
        let pieces = (kind.reply)(&["Hi"], Some(Tokens { input: 5, output: 5, cached: 0 }), false);
        // The response takes longer than the other requests need to be refused.
        let server = Server::start([Reply::slow(pieces.concat(), Duration::from_millis(4))]).unwrap();
        let (ledger, secret) = ledger(190_000);
        let mut limits = limits();
        limits.budget_wait = wait;
        let targets = targets(&priced(kind, &server.url()));
        let gate = Gate::start(targets.with_limits(limits).with_ledger(ledger.clone()));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let ask = || scope.spawn(|| gate.post(kind.path, &[("x-api-key", &secret)], &body).status);
            let first = ask();
            wait_until(|| !server.received().is_empty());
            let others = [ask(), ask(), ask()];
            std::iter::once(first).chain(others).map(|ask| ask.join().unwrap()).collect()
        });
        assert!(statuses.contains(&200) && statuses.contains(&expected), "{wait:?}: {statuses:?}");
        assert!(statuses.iter().all(|status| [200, expected].contains(status)), "{wait:?}: {statuses:?}");
        gate.join();
        let paid = statuses.iter().filter(|status| **status == 200).count() as u64;
        assert_eq!((ledger.keys().unwrap()[0].spent, ledger.keys().unwrap()[0].held), (paid * 10_000, 0));
    }
}

#[test]
fn a_key_that_waits_for_its_budget_takes_no_turn_from_others() {
    let kind = &kinds()[0];
    let pieces = (kind.reply)(&["Hi"], Some(Tokens { input: 5, output: 5, cached: 0 }), false);
    let slow = Reply::slow(pieces.concat(), Duration::from_millis(40));
    let server = Server::start([slow, kind.reply(false, pieces)]).unwrap();
    let (ledger, secret) = ledger(190_000);
    let (_, other) = ledger.add_key(NewKey::new("bob"), now()).unwrap();
    let mut limits = limits();
    (limits.max_concurrent, limits.budget_wait) = (2, Duration::from_secs(60));
    let targets = targets(&priced(kind, &server.url()));
    let gate = Gate::start(targets.with_limits(limits).with_ledger(ledger.clone()));
    // The first one reserves more than half of the budget, and is answered slowly. The others wait.
    let _open = [kind.path, kind.path, "/v1/messages"].map(|path| {
        let mut socket = gate.connect();
        let body = kind.body("Hello", false).to_string();
        let bytes = request(path, &[("x-api-key", &secret)], body.as_bytes());
        std::io::Write::write_all(&mut socket, &bytes).unwrap();
        wait_until(|| !server.received().is_empty());
        socket
    });
    std::thread::sleep(Duration::from_millis(100));
    let headers = [("x-api-key", other.reveal()), ("x-formwork-deadline", "5")];
    let got = gate.post(kind.path, &headers, &kind.body("Hello", false));
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(server.received().len(), 2);
    // Once the first one is answered, the others take their turns.
    wait_until(|| server.received().len() == 4);
}

#[test]
fn a_server_without_usage_in_streams_and_a_target_that_fails_are_no_obstacle() {
    let kind = &kinds()[0];
    let error = r#"{"error": {"message": "Unrecognized request argument supplied: stream_options"}}"#;
    let tokens = Tokens { input: 5, output: 5, cached: 0 };
    let pieces = (kind.reply)(&["Hi"], Some(tokens), true);
    let server = Server::start([Reply::json(error).with_status(400), kind.reply(true, pieces)]).unwrap();
    let (ledger, secret) = ledger(10_000_000);
    let gate = gate(kind, &server.url(), &ledger);
    let got = gate.post(kind.path, &[("x-api-key", &secret)], &kind.body("Hello", true));
    assert_eq!(got.status, 200, "{}", got.text());
    let bodies: Vec<Value> =
        server.received().iter().map(|received| serde_json::from_slice(&received.body).unwrap()).collect();
    assert!(bodies[0]["stream_options"].is_object() && bodies[1]["stream_options"].is_null(), "{bodies:?}");

    // A refused request costs nothing; one that another target answers has both calls in the ledger.
    let broken = Server::start([Reply::status(500)]).unwrap();
    let server = Server::start([completion("Hi")]).unwrap();
    let config = priced(kind, &broken.url()) + &priced(kind, &server.url()).replace("primary", "second");
    let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
    recorded(&ledger);
    // A record is written before the reservation is settled.
    let settled = || wait_until(|| ledger.keys().unwrap()[0].held == 0);
    settled();
    let before = ledger.keys().unwrap()[0].spent;
    let mut body = kind.body("Hello", false);
    body["model"] = "primary,second".into();
    assert_eq!(gate.post(kind.path, &[("x-api-key", &secret)], &body).status, 200);
    let run = loop {
        ledger.flush_blocking().unwrap();
        let runs = ledger.runs(&RunQuery::default()).unwrap().runs;
        if let Some(run) = runs.into_iter().find(|run| run.target == "second") {
            break run;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    settled();
    assert_eq!(ledger.keys().unwrap()[0].spent - before, 15_000);
    let run = ledger.run(run.id).unwrap().unwrap();
    let calls: Vec<_> = run.calls.iter().map(|call| (call.target.as_str(), call.class.as_ref())).collect();
    assert_eq!(calls, [("primary", "overloaded"), ("second", "accepted")]);
}

/// The greatest number of a name in documents.
fn told(documents: &[Value], name: &str) -> u64 {
    let inner = |value: &Value| match value {
        Value::Object(members) => {
            let own = members.get(name).and_then(Value::as_u64).unwrap_or(0);
            own.max(told(&members.values().cloned().collect::<Vec<_>>(), name))
        }
        Value::Array(items) => told(items, name),
        _ => 0,
    };
    documents.iter().map(inner).max().unwrap_or(0)
}

/// The client of a corrected turn sees what the ledger charges: the tokens of all calls.
#[test]
fn a_corrected_turn_has_the_tokens_of_all_its_calls() {
    let calls = [
        ("{\"age\": 340}", Tokens { input: 100, output: 20, cached: 10 }),
        ("{\"age\": \"old\"}", Tokens { input: 130, output: 25, cached: 60 }),
        ("{\"age\": 34}", Tokens { input: 160, output: 30, cached: 90 }),
    ];
    // The last answer as it is, and one that is repaired.
    for last in ["{\"age\": 34}", "So: {\"age\": 34}"] {
        for kind in kinds()
            .into_iter()
            .filter(|kind| kind.name.contains("tools") && kind.name != "chat, tools and a call")
        {
            for stream in [false, true] {
                let at = format!("{}, stream {stream}, {last}", kind.name);
                let replies = calls.iter().enumerate().map(|(nth, (text, tokens))| {
                    let text = if nth == 2 { last } else { text };
                    let (first, second) = text.split_at(5);
                    let mut pieces = (kind.reply)(&[first, second], Some(*tokens), stream);
                    pieces
                        .extend((stream && kind.provider == "openai").then(|| "data: [DONE]\n\n".to_owned()));
                    kind.reply(stream, pieces)
                });
                let server = Server::start(replies.collect::<Vec<_>>()).unwrap();
                let (ledger, secret) = ledger(100_000_000);
                let gate = gate(&kind, &server.url(), &ledger);
                let mut body = kind.body("Maria, 34", stream);
                match kind.path {
                    "/v1/chat/completions" => {
                        body["response_format"] =
                            json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
                        if stream {
                            body["stream_options"] = json!({"include_usage": true});
                        }
                    }
                    "/v1/responses" => {
                        body["text"] =
                            json!({"format": {"type": "json_schema", "name": "p", "schema": schema()}});
                    }
                    "/v1/messages" => {
                        body["output_config"] =
                            json!({"format": {"type": "json_schema", "schema": schema()}});
                    }
                    _ => body["format"] = schema(),
                }
                let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
                assert_eq!((got.status, server.received().len()), (200, 3), "{at}: {}", got.text());
                let documents = if stream { got.documents() } else { vec![got.json()] };
                let sum = |names: &[&str]| names.iter().map(|name| told(&documents, name)).sum::<u64>();
                let input =
                    sum(&["prompt_tokens", "prompt_eval_count", "input_tokens", "cache_read_input_tokens"]);
                let output = sum(&["completion_tokens", "output_tokens", "eval_count"]);
                assert_eq!((input, output), (390, 75), "{at}: {}", got.text());
                if kind.provider != "ollama" {
                    assert_eq!(
                        sum(&["cached_tokens", "cache_read_input_tokens"]),
                        160,
                        "{at}: {}",
                        got.text()
                    );
                }
                if kind.provider == "openai-responses" {
                    assert_eq!(sum(&["total_tokens"]), 465, "{at}: {}", got.text());
                }
                assert!(!got.text().contains("So:") && got.text().contains("34"), "{at}: {}", got.text());
                let run = recorded(&ledger);
                assert_eq!((run.usage.input_tokens, run.usage.output_tokens), (390, 75), "{at}");
            }
        }
    }
}

#[test]
fn the_limit_of_another_protocol_lowers_no_reservation() {
    let set = |body: &mut Value, name: &str, value: Value| match name {
        "num_predict" => body["options"][name] = value,
        name => body[name] = value,
    };
    for kind in kinds().into_iter().filter(|kind| kind.name != "embeddings") {
        let own = match kind.provider {
            "openai-responses" => &["max_output_tokens"][..],
            "anthropic" => &["max_tokens"],
            "ollama" => &["num_predict"],
            _ => &["max_tokens", "max_completion_tokens"],
        };
        let server = Server::start([Reply::json("{}")]).unwrap();
        let (ledger, secret) = ledger(500_000);
        let gate = gate(&kind, &server.url(), &ledger);
        let others = ["max_completion_tokens", "max_output_tokens", "max_tokens", "num_predict"];
        for (high, low) in own.iter().flat_map(|high| others.map(|low| (*high, low))) {
            for much in [json!(500_000), json!(5e5)] {
                if high == low {
                    continue;
                }
                let mut body = kind.body("Hello", false);
                set(&mut body, low, json!(1));
                set(&mut body, high, much);
                let got = gate.post(kind.path, &[("x-api-key", &secret)], &body);
                assert!(matches!(got.status, 400 | 429), "{}, {low}, {high}: {}", kind.name, got.text());
                assert!(server.received().is_empty(), "{}, {low}, {high}", kind.name);
            }
        }
    }
}

/// Returns the response of a server that ends the connection within its stream.
fn cut(came: &str) -> Reply {
    Reply::pieces([came]).with_header("content-type", "text/event-stream").cut_at(came.len(), End::Close)
}

/// The three protocols with tools in streams, and their streams of a call that is not whole: before its arguments, and within them.
fn open_calls() -> [(String, [String; 2]); 3] {
    const PIECES: usize = 100;

    let config = |provider: &str, more: &str| {
        let price = "price = { input = 1000, output = 1000 }\n";
        section("primary", provider, "http://server").trim_end().to_owned() + "\n" + more + price
    };
    let streams = |begun: Vec<Value>, piece: Value| {
        let begun = events(begun).concat();
        [begun.clone(), begun + &events(vec![piece; PIECES]).concat()]
    };
    let chunk =
        |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let called = |call: Value| chunk(json!({"tool_calls": [call]}));
    let item = json!({"type": "function_call", "id": "i", "call_id": "c", "name": "note", "arguments": ""});
    [
        (
            config("openai", ""),
            streams(
                vec![
                    chunk(json!({"role": "assistant"})),
                    called(
                        json!({"index": 0, "id": "c", "type": "function", "function": {"name": "note", "arguments": ""}}),
                    ),
                ],
                called(json!({"index": 0, "function": {"arguments": "a word, "}})),
            ),
        ),
        (
            config("openai", "api = \"responses\"\n"),
            streams(
                vec![
                    json!({"type": "response.created", "response": {"model": "m"}}),
                    json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
                ],
                json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i", "delta": "a word, "}),
            ),
        ),
        (
            config("anthropic", ""),
            streams(
                vec![
                    json!({"type": "message_start", "message": {"content": []}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "note", "input": {}}}),
                ],
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "a word, "}}),
            ),
        ),
    ]
}

#[test]
fn an_answer_that_breaks_off_is_charged_although_no_text_or_whole_call_of_it_came() {
    let prompt = "Tell me a short story. ".repeat(60);
    let chat = json!({
        "model": "primary", "max_tokens": 1000, "messages": user(&prompt),
        "tools": [{"type": "function", "function": {"name": "note", "parameters": schema()}}],
    });
    let messages = json!({
        "model": "primary", "max_tokens": 1000, "messages": user(&prompt),
        "tools": [{"name": "note", "input_schema": schema()}],
    });
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema(), "strict": true}});
    let contract =
        json!({"model": "primary", "max_tokens": 1000, "messages": user(&prompt), "response_format": format});
    let [input, output] = [prompt.len() / BYTES_PER_TOKEN, 100 * "a word, ".len() / BYTES_PER_TOKEN];
    // A target of the protocol of the request gets it as it is.
    let [of_chat, of_messages] = [("/v1/chat/completions", &chat), ("/v1/messages", &messages)];
    let clients = [&[of_messages][..], &[of_chat, of_messages], &[of_chat]];
    for ((config, streams), clients) in open_calls().into_iter().zip(clients) {
        for (came, written) in streams.into_iter().zip([0, output]) {
            let of_contract = (written == 0).then_some(("/v1/chat/completions", &contract));
            for (path, body) in clients.iter().copied().chain(of_contract) {
                for stream in [false, true] {
                    let server = Server::start([cut(&came)]).unwrap();
                    let (ledger, secret) = ledger(10_000_000_000);
                    let config = config.replace("http://server", &server.url());
                    let gate =
                        Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
                    let mut body = body.clone();
                    body["stream"] = stream.into();
                    gate.post(path, &[("x-api-key", &secret)], &body);
                    gate.join();
                    let (calls, spent) = (server.received().len(), ledger.keys().unwrap()[0].spent);
                    let least = (calls * (input + written) * 1000) as u64;
                    let at = format!("{config}{path} {stream} {written}: {spent} of {least}");
                    assert!(
                        calls > 0 && (least..=least * 2 + 300_000 * calls as u64).contains(&spent),
                        "{at}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_call_beside_one_that_failed_is_recorded_as_broken_off_for_that_reason() {
    let [_, _, (config, [began, _])] = open_calls();
    let length = began.len();
    let open =
        Reply::pieces([began]).with_header("content-type", "text/event-stream").cut_at(length, End::Stall);
    let server = Server::start([open, Reply::status(400)]).unwrap();
    let (ledger, secret) = ledger(10_000_000_000);
    let config = config.replace("http://server", &server.url());
    let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
    let body = json!({"model": "primary", "n": 2, "max_tokens": 10, "messages": user("Hi")});
    gate.post("/v1/chat/completions", &[("x-api-key", &secret)], &body);
    let run = ledger.run(recorded(&ledger).id).unwrap().unwrap();
    let messages: Vec<_> = run.calls.iter().filter_map(|call| call.message.as_deref()).collect();
    assert_eq!(
        messages.iter().filter(|it| it.contains("another answer to the request failed")).count(),
        1,
        "{messages:?}"
    );
    assert!(!messages.iter().any(|it| it.contains("the client left")), "{messages:?}");
}

#[test]
fn what_a_target_has_reported_is_charged_although_its_stream_breaks_off() {
    let prompt = json!({"input_tokens": 5000, "output_tokens": 1});
    let came = events(vec![
        json!({"type": "message_start", "message": {"content": [], "usage": prompt}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "{\"age\": 3"}}),
    ]);
    let broken = cut(&came.concat());
    let plain = kinds().into_iter().filter(|kind| kind.can_stream && kind.name != "messages");
    let plain = plain.map(|kind| (kind.name, kind.path, kind.body("Hello", true)));
    // A contract is asked for in each protocol, as is its last message beside tools.
    let contracts = ways().into_iter().map(|way| (way.name, way.path, way.body("primary", true)));
    for (name, path, body) in plain.chain(contracts) {
        let server = Server::start([broken.clone()]).unwrap();
        let (ledger, secret) = ledger(1_000_000_000);
        let config = section("primary", "anthropic", &server.url()).trim_end().to_owned()
            + "\nprice = { input = 1000, output = 1000 }\n";
        let gate = Gate::start(targets(&config).with_limits(limits()).with_ledger(ledger.clone()));
        gate.post(path, &[("x-api-key", &secret)], &body);
        gate.join();
        let (calls, spent) = (server.received().len() as u64, ledger.keys().unwrap()[0].spent);
        let least = calls * 5_001_000;
        assert!((least..=least + calls * 20_000).contains(&spent), "{name}: {spent} for {calls} calls");
    }
}
