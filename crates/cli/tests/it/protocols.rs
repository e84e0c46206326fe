//! One extraction over each protocol, with `-m KIND/model` and a simulated server.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::{command, example, run, temporary};

const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

/// A protocol with its expected request and its response.
struct Case {
    /// The kind, further lines of its section, and what stands between the server's address and the protocol's paths.
    kind: &'static str,
    section: &'static str,
    base: &'static str,
    /// The model behind the kind on the command line.
    model: &'static str,
    /// The environment variable with the key, and the header that carries it.
    key: Option<(&'static str, &'static str)>,
    /// The path of the request.
    path: &'static str,
    /// The place of the schema in the request; the schema may be text.
    schema: &'static str,
    answer: Value,
}

fn cases() -> Vec<Case> {
    let chat = json!({
        "choices": [{"message": {"role": "assistant", "content": MARIA}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    });
    let responses = json!({
        "object": "response", "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": MARIA}]}],
        "usage": {"input_tokens": 9, "output_tokens": 5},
    });
    let messages = json!({
        "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": MARIA}], "usage": {"input_tokens": 9, "output_tokens": 5},
    });
    let generate = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": MARIA}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5},
    });
    let ollama = json!({
        "model": "m", "message": {"role": "assistant", "content": MARIA}, "done": true, "done_reason": "stop",
        "prompt_eval_count": 9, "eval_count": 5,
    });
    let converse = json!({
        "output": {"message": {"role": "assistant", "content": [{"text": MARIA}]}}, "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 5},
    });
    let cohere = json!({
        "id": "1", "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": MARIA}]},
        "usage": {"tokens": {"input_tokens": 9, "output_tokens": 5}},
    });
    let bearer = |variable| Some((variable, "authorization"));
    vec![
        Case {
            kind: "openai",
            section: "stream = false",
            base: "/v1",
            model: "gpt-4o-mini",
            key: bearer("OPENAI_API_KEY"),
            path: "/v1/chat/completions",
            schema: "/response_format/json_schema/schema",
            answer: chat,
        },
        Case {
            kind: "openai",
            section: "stream = false\napi = \"responses\"",
            base: "/v1",
            model: "gpt-4o-mini",
            key: bearer("OPENAI_API_KEY"),
            path: "/v1/responses",
            schema: "/text/format/schema",
            answer: responses,
        },
        Case {
            kind: "anthropic",
            section: "stream = false",
            base: "",
            model: "claude-sonnet-4-5",
            key: Some(("ANTHROPIC_API_KEY", "x-api-key")),
            path: "/v1/messages",
            schema: "/output_config/format/schema",
            answer: messages,
        },
        Case {
            kind: "gemini",
            section: "stream = false",
            base: "",
            model: "gemini-2.5-flash",
            key: Some(("GEMINI_API_KEY", "x-goog-api-key")),
            path: "/v1beta/models/gemini-2.5-flash:generateContent",
            schema: "/generationConfig/responseJsonSchema",
            answer: generate,
        },
        Case {
            kind: "ollama",
            section: "stream = false",
            base: "",
            model: "qwen3:8b",
            key: None,
            path: "/api/chat",
            schema: "/format",
            answer: ollama,
        },
        Case {
            kind: "bedrock",
            section: "stream = false",
            base: "",
            model: "anthropic.claude-sonnet-4-5-20250929-v1:0",
            key: bearer("AWS_BEARER_TOKEN_BEDROCK"),
            path: "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse",
            schema: "/outputConfig/textFormat/structure/jsonSchema/schema",
            answer: converse,
        },
        Case {
            kind: "cohere",
            section: "",
            base: "",
            model: "command-a-03-2025",
            key: bearer("CO_API_KEY"),
            path: "/v2/chat",
            schema: "/response_format/schema",
            answer: cohere,
        },
    ]
}

#[test]
fn one_extraction_over_each_protocol() {
    for (index, Case { kind, section, base, model, key, path, schema, answer }) in
        cases().into_iter().enumerate()
    {
        let server = Server::start(vec![Reply::json(answer.to_string())]).unwrap();
        let text = format!(
            "[providers.{kind}]\nkind = \"{kind}\"\nmodel = \"other\"\nbase_url = \"{}{base}\"\n{section}\n",
            server.url()
        );
        let config = temporary(&format!("protocol-{index}.toml"), text);
        let target = format!("{kind}/{model}");
        let person = example("person.schema.json");
        let text = "Maria Lindqvist, 34, moved to Lisbon.";
        let mut args =
            command(&["extract", "--config", &config, "-m", &target, "--schema", &person, "--json", text]);
        if let Some((variable, _)) = key {
            args.env(variable, "sk-test");
        }
        let ran = run(args, "");
        assert_eq!(ran.code, 0, "{kind}: {}", ran.stderr);
        let row = ran.rows().remove(0);
        let maria: Value = serde_json::from_str(MARIA).unwrap();
        assert_eq!(row["value"], maria, "{kind}: {row}");
        let usage = &row["usage"];
        assert_eq!(
            (&usage["input_tokens"], &usage["output_tokens"]),
            (&json!(9), &json!(5)),
            "{kind}: {row}"
        );

        let received = server.received();
        assert_eq!(received.len(), 1, "{kind}");
        let request = &received[0];
        assert_eq!(request.path, path, "{kind}");
        // The key is in its header and never in the URL.
        if let Some((_, header)) = key {
            assert!(request.header(header).is_some_and(|sent| sent.ends_with("sk-test")), "{kind}");
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let sent = body.pointer(schema).unwrap_or_else(|| panic!("{kind}: no {schema} in {body}"));
        let sent = sent.as_str().map_or_else(|| sent.clone(), |text| serde_json::from_str(text).unwrap());
        let names: Vec<_> = sent["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["name", "age", "city"], "{kind}: {sent}");
    }
}

/// Log probabilities that a server returns count for the confidence in each value.
#[test]
fn the_log_probabilities_of_each_protocol_that_has_them_count_for_the_confidence() {
    let pieces = [
        ("{\"name\": ", 0.0),
        ("\"Maria", -0.105),
        (" Lindqvist\"", -0.223),
        (", \"age\": ", 0.0),
        ("34", -1.204),
        (", \"city\": \"Lisbon\"}", 0.0),
    ];
    assert_eq!(pieces.map(|(piece, _)| piece).concat(), MARIA);
    let tokens = |name: &str| {
        let of = |(piece, log): &(&str, f64)| json!({"token": piece, name: log, "bytes": piece.as_bytes()});
        Value::from(pieces.iter().map(of).collect::<Vec<_>>())
    };
    let places = [
        ("/choices/0", "logprobs", json!({"content": tokens("logprob")})),
        ("/output/0/content/0", "logprobs", tokens("logprob")),
        ("", "logprobs", tokens("logprob")),
        ("/candidates/0", "logprobsResult", json!({"chosenCandidates": tokens("logProbability")})),
    ];
    let mut seen = 0;
    for (index, Case { kind, section, base, model, answer, .. }) in cases().into_iter().enumerate() {
        let has = |(parent, _, _): &&(&str, &str, Value)| match *parent {
            "" => kind == "ollama",
            parent => answer.pointer(parent).is_some(),
        };
        let Some((parent, name, log_probs)) = places.iter().find(has) else { continue };
        seen += 1;
        let mut answer = answer.clone();
        answer.pointer_mut(parent).unwrap()[name] = log_probs.clone();
        let server = Server::start([Reply::json(answer.to_string())]).unwrap();
        let text = format!(
            "[providers.{kind}]\nkind = \"{kind}\"\nmodel = \"other\"\nbase_url = \"{}{base}\"\napi_key_env = \"\"\n{section}\n",
            server.url()
        );
        let text = if kind == "ollama" { text.replace("api_key_env = \"\"\n", "") } else { text };
        let config = temporary(&format!("log-probs-{index}.toml"), text);
        let (target, person) = (format!("{kind}/{model}"), example("person.schema.json"));
        let args = ["extract", "--config", &config, "-m", &target, "--schema", &person, "--json"];
        let more =
            ["--set", "top_logprobs=0", "--flag-below", "0.7", "Maria Lindqvist, 34, moved to Lisbon."];
        let ran = run(command(&[&args[..], &more].concat()), "");
        assert_eq!(ran.code, 0, "{kind}: {}", ran.stderr);
        let row = ran.rows().remove(0);
        let rounded = |leaf: usize| {
            let tokens =
                row["confidence"][leaf]["tokens"].as_array().unwrap_or_else(|| panic!("{kind}: {row}"));
            tokens.iter().map(|one| (one.as_f64().unwrap() * 100.0).round() as i64).collect::<Vec<_>>()
        };
        assert_eq!([rounded(0), rounded(1), rounded(2)], [[72, 90], [30, 30], [100, 100]], "{kind}: {row}");
        let doubtful: Vec<_> = (0..3).map(|leaf| row["confidence"][leaf]["doubtful"] == true).collect();
        assert_eq!(doubtful, [false, true, false], "{kind}: {row}");
    }
    assert!(seen >= 4, "{seen} protocols");
}

/// The same extraction with a forced tool: the places of its schema and of the choice in the request.
#[test]
fn one_extraction_by_a_forced_tool_over_each_protocol_that_has_tools() {
    let maria: Value = serde_json::from_str(MARIA).unwrap();
    let function = json!({"name": "answer", "arguments": MARIA});
    let call = json!({"id": "c", "type": "function", "function": function});
    let chat = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let responses = json!({"object": "response", "status": "completed",
        "output": [{"type": "function_call", "id": "f", "call_id": "c", "name": "answer", "arguments": MARIA}]});
    let messages = json!({"type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "t", "name": "answer", "input": maria}]});
    let generate = json!({"candidates": [{"finishReason": "STOP",
        "content": {"role": "model", "parts": [{"functionCall": {"name": "answer", "args": maria}}]}}]});
    let converse = json!({"stopReason": "tool_use", "output": {"message": {"role": "assistant",
        "content": [{"toolUse": {"toolUseId": "t", "name": "answer", "input": maria}}]}}});
    let cohere = json!({"id": "1", "finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [call]}});
    for (index, (target, section, schema, choice, answer)) in [
        (
            "openai/gpt-4o-mini",
            "stream = false",
            "/tools/0/function/parameters",
            "/tool_choice/function/name",
            chat,
        ),
        (
            "openai/gpt-4o-mini",
            "stream = false\napi = \"responses\"",
            "/tools/0/parameters",
            "/tool_choice/name",
            responses,
        ),
        (
            "anthropic/claude-sonnet-4-5",
            "stream = false",
            "/tools/0/input_schema",
            "/tool_choice/name",
            messages,
        ),
        (
            "gemini/gemini-2.5-flash",
            "stream = false",
            "/tools/0/functionDeclarations/0/parametersJsonSchema",
            "/toolConfig/functionCallingConfig/allowedFunctionNames/0",
            generate,
        ),
        (
            "bedrock/anthropic.claude-sonnet-4-5",
            "",
            "/toolConfig/tools/0/toolSpec/inputSchema/json",
            "/toolConfig/toolChoice/tool/name",
            converse,
        ),
        ("cohere/command-a-03-2025", "", "/tools/0/function/parameters", "/tool_choice", cohere),
    ]
    .into_iter()
    .enumerate()
    {
        let server = Server::start(vec![Reply::json(answer.to_string())]).unwrap();
        let kind = target.split('/').next().unwrap();
        let base = if kind == "openai" { "/v1" } else { "" };
        let text = format!(
            "[providers.{kind}]\nkind = \"{kind}\"\nmodel = \"m\"\napi_key_env = \"\"\nmodes = [\"tool\"]\n\
             base_url = \"{}{base}\"\n{section}\n",
            server.url()
        );
        let config = temporary(&format!("forced-{index}.toml"), text);
        let person = example("person.schema.json");
        let text = "Maria Lindqvist, 34, moved to Lisbon.";
        let ran =
            run(command(&["extract", "--config", &config, "-m", target, "--schema", &person, text]), "");
        assert_eq!(ran.code, 0, "{target}: {}", ran.stderr);
        assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), maria, "{target}");
        let body: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        assert!(
            body.pointer(schema).is_some_and(|schema| schema["properties"]["city"].is_object()),
            "{target}: {body}"
        );
        assert!(body.pointer(choice).is_some_and(Value::is_string), "{target}: {body}");
    }
    // Ollama does not support this mode, and the error says so.
    let server = Server::start(Vec::<Reply>::new()).unwrap();
    let section = "[providers.ollama]\nkind = \"ollama\"\nmodel = \"m\"\nmodes = [\"tool\"]\nbase_url = ";
    let config = temporary("forced-ollama.toml", format!("{section}\"{}\"\n", server.url()));
    let ran =
        run(command(&["extract", "--config", &config, "--schema", &example("person.schema.json"), "x"]), "");
    assert!(ran.code != 0 && ran.stderr.contains("tool"), "{}", ran.stderr);
}
