//! The requests of a probe, and its conclusions from the responses.

use formwork_core::{Enforcement, Fault, FaultKind, Message, Provider};
use formwork_ollama::{Ollama, Probed, Think};
use formwork_wire::{Http, Wire};
use serde_json::{Value, json};

use crate::support::{Reply, Script, body, call, enforcing, ok, says};

fn version() -> Reply {
    ok(r#"{"version":"0.17.4"}"#)
}

fn model(format: &str, capabilities: Value) -> Reply {
    ok(json!({
        "license": "…",
        "details": {"parent_model": "", "format": format, "family": "llama", "families": ["llama"],
            "parameter_size": "134.52M", "quantization_level": "Q4_1"},
        "model_info": {"general.architecture": "llama", "llama.context_length": 8192, "tokenizer.ggml.tokens": null},
        "capabilities": capabilities,
    })
    .to_string())
}

async fn probed(wire: &Ollama, replies: Vec<Reply>) -> (Result<Probed, Fault>, Vec<(String, Value)>) {
    let script = Script::new(replies);
    let probed = wire.examine(script.as_ref()).await;
    let requests = script.requests.lock().unwrap().clone();
    (probed, requests)
}

#[tokio::test]
async fn a_server_that_enforces_schemas_keeps_its_promises() {
    let wire = Ollama::new("smollm2");
    let replies =
        vec![version(), model("gguf", json!(["completion", "tools"])), says("{\"fw\": \"q7\"}", "stop")];
    let (probed, requests) = probed(&wire, replies).await;
    let probed = probed.unwrap();
    let paths: Vec<&str> = requests.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["GET /api/version", "POST /api/show", "POST /api/chat"]);
    assert_eq!(requests[1].1, json!({"model": "smollm2"}));
    let canary = &requests[2].1;
    assert_eq!(canary["options"], json!({"temperature": 0.0, "num_predict": 16, "num_ctx": 4096}));
    assert!(canary["format"].is_object() && canary.get("think").is_none());
    assert_eq!(probed.version.as_deref(), Some("0.17.4"));
    assert_eq!((probed.family.as_deref(), probed.format.as_deref()), (Some("llama"), Some("gguf")));
    assert_eq!(
        (probed.parameters.as_deref(), probed.quantization.as_deref()),
        (Some("134.52M"), Some("Q4_1"))
    );
    assert_eq!((probed.context_tokens, probed.thinks, probed.tools), (Some(8192), false, true));
    assert_eq!((probed.enforced, probed.notes.as_slice()), (Enforcement::Schema, &[] as &[String]));
    assert_eq!((probed.usage.input_tokens, probed.usage.output_tokens), (30, 8));
    assert_eq!(probed.capabilities, wire.capabilities().clone().with_context_tokens(8192));
    assert_eq!(probed.capabilities.dialects, ["ollama", "json-object", "prompt"]);
    // The computed context is an upper bound, and the model has no larger one.
    let long = call(vec![Message::user("a".repeat(24_000))], Default::default());
    let sent = |wire: &Ollama| body(wire, &long)["options"]["num_ctx"].clone();
    assert_eq!((sent(&wire), sent(&wire.clone().with_probed(&probed))), (json!(16_384), json!(8192)));
}

#[tokio::test]
async fn what_is_not_enforced_is_not_promised() {
    let info = || model("gguf", json!(["completion"]));
    let json_only = vec![version(), info(), says("Hello!", "stop"), says("{\n}", "stop")];
    let (found, requests) = probed(&Ollama::new("m"), json_only).await;
    let found = found.unwrap();
    assert_eq!((found.enforced, requests[3].1["format"].clone()), (Enforcement::JsonObject, json!("json")));
    assert_eq!(found.capabilities.dialects, ["json-object", "prompt"]);
    assert!(found.notes[0].contains("Hello!"), "{:?}", found.notes);
    assert!(found.capabilities.temperature);

    let refused = Ok((500, r#"{"error":"invalid JSON schema in format"}"#.to_owned()));
    let nothing = vec![version(), info(), refused, says("Hello!", "length")];
    let found = probed(&Ollama::new("m"), nothing).await.0.unwrap();
    assert_eq!((found.enforced, found.capabilities.enforcement), (Enforcement::None, Enforcement::None));
    assert_eq!(found.capabilities.dialects, ["prompt"]);
    assert_eq!(found.notes.len(), 2);
}

#[tokio::test]
async fn mlx_models_are_not_called_at_all() {
    let replies = vec![version(), model("safetensors", json!(["completion"]))];
    let (found, requests) = probed(&Ollama::new("m"), replies).await;
    assert_eq!((found.unwrap().enforced, requests.len()), (Enforcement::None, 2));
}

#[tokio::test]
async fn a_thinking_model_does_not_think_where_that_has_schemas_enforced() {
    let info = || model("gguf", json!(["completion", "thinking"]));
    let wire = Ollama::new("qwen3:8b");
    let sent =
        |wire: &Ollama, found: &Probed| body(&wire.clone().with_probed(found), &enforcing(Enforcement::None));

    let (found, requests) = probed(&wire, vec![version(), info(), says("{\"fw\":\"q7\"}", "stop")]).await;
    let found = found.unwrap();
    assert_eq!(requests[2].1["think"], false);
    assert!(
        found.thinks && found.better_without_thinking && found.notes[0].contains("think"),
        "{:?}",
        found.notes
    );
    assert_eq!(sent(&wire, &found)["think"], false);
    assert_eq!(sent(&wire.clone().with_think(true), &found)["think"], true);

    // A model with its own parser is constrained only after its reasoning, which the probe verifies with more tokens.
    let replies = vec![version(), info(), says("Hello!", "stop"), says("{\"fw\":\"q7\"}", "stop")];
    let (found, requests) = probed(&wire, replies).await;
    let found = found.unwrap();
    assert_eq!((found.enforced, found.better_without_thinking), (Enforcement::Schema, false));
    assert_eq!((requests[3].1.get("think"), &requests[3].1["options"]["num_predict"]), (None, &json!(512)));
    assert_eq!(sent(&wire, &found).get("think"), None);
    // If `think` is `false` by configuration, only that setting is tried.
    let replies = vec![version(), info(), says("Hello!", "stop"), says("Hello!", "stop")];
    let found = probed(&wire.clone().with_think(false), replies).await.0.unwrap();
    assert_eq!(found.enforced, Enforcement::None);

    // A model that reasons despite `think: false` has no text within so few tokens.
    let found = probed(&wire, vec![version(), info(), says("", "length")]).await.0.unwrap();
    assert!(
        found.enforced == Enforcement::Schema && found.notes[0].contains("it is unknown whether"),
        "{:?}",
        found.notes
    );
    // If `think` is on by configuration, only that setting is tried.
    let replies = vec![version(), info(), says("{\"fw\":\"q7\"}", "stop")];
    let (found, requests) = probed(&wire.with_think("low"), replies).await;
    assert_eq!((found.unwrap().enforced, &requests[2].1["think"]), (Enforcement::Schema, &json!("low")));
}

#[tokio::test]
async fn what_is_promised_was_seen_with_the_setting_that_calls_have() {
    let (kept, free) = (|| says("{\"fw\":\"q7\"}", "stop"), || says("Hello!", "stop"));
    for set in [None, Some(Think::Switch(false)), Some(Think::Switch(true))] {
        for nth in 0..4 {
            let wire = set.iter().fold(Ollama::new("qwen3:8b"), |wire, think| wire.with_think(think.clone()));
            let info = model("gguf", json!(["completion", "thinking"]));
            let mut replies = vec![version(), info];
            replies.extend((0..nth).map(|_| free()));
            replies.push(kept());
            let (found, requests) = probed(&wire, replies).await;
            let Ok(found) = found else { continue };
            if found.enforced == Enforcement::None {
                continue;
            }
            let last = &requests.last().unwrap().1;
            let real = body(&wire.with_probed(&found), &enforcing(Enforcement::None));
            assert_eq!(real.get("think"), last.get("think"), "{set:?} {nth}");
            let is_schema = last["format"].is_object();
            assert_eq!(found.enforced == Enforcement::Schema, is_schema);
            assert_eq!(found.usage.output_tokens, 8 * (requests.len() as u64 - 2));
        }
    }
}

#[tokio::test]
async fn a_model_has_an_identity_where_the_server_says_all_of_it() {
    let tags = |name: &str| ok(json!({"models": [{"name": name, "digest": "abc"}]}).to_string());
    let identity = async |replies| Ollama::new("m").identity(Script::new(replies).as_ref()).await.unwrap();
    for name in ["m", "m:latest"] {
        let found = identity(vec![version(), tags(name)]).await.unwrap();
        assert_eq!((found.version.as_str(), found.digest.as_str()), ("0.17.4", "abc"));
    }
    assert_eq!(identity(vec![version(), tags("other")]).await, None);
    assert_eq!(identity(vec![version(), Ok((404, String::new()))]).await, None);
    assert_eq!(identity(vec![Ok((404, String::new()))]).await, None);
}

#[tokio::test]
async fn the_context_is_the_smaller_of_both() {
    let replies = || vec![version(), model("gguf", json!([])), says("{\"fw\":\"q7\"}", "stop")];
    for (num_ctx, expected) in [(4096, 4096), (100_000, 8192)] {
        let found = probed(&Ollama::new("m").with_num_ctx(num_ctx), replies()).await.0.unwrap();
        assert_eq!((found.capabilities.context_tokens, found.context_tokens), (Some(expected), Some(8192)));
    }
}

#[tokio::test]
async fn a_model_that_is_not_there_is_a_fault_with_what_to_do() {
    let replies = vec![version(), Ok((404, r#"{"error":"model 'nope' not found"}"#.to_owned()))];
    let fault = probed(&Ollama::new("nope"), replies).await.0.unwrap_err();
    assert_eq!((fault.kind, fault.status), (FaultKind::Unsupported, Some(404)));
    assert!(fault.message.contains("`ollama pull nope`"), "{fault}");
    let absent = Fault::new(FaultKind::Unreachable, "connection refused");
    assert_eq!(probed(&Ollama::new("m"), vec![Err(absent.clone())]).await.0, Err(absent));
    let fault = probed(&Ollama::new("m"), vec![ok("<html>")]).await.0.unwrap_err();
    assert!(fault.kind == FaultKind::BadWire && fault.message.contains("base URL"), "{fault}");
    let fault = probed(&Ollama::new("m"), vec![Ok((401, r#"{"error":"unauthorized"}"#.to_owned()))])
        .await
        .0
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Auth);
}

#[tokio::test]
async fn a_gateway_that_only_chats_is_probed_by_chatting() {
    let replies = vec![
        Ok((404, "404 page not found".to_owned())),
        Ok((405, String::new())),
        says("{\"fw\":\"q7\"}", "stop"),
    ];
    let found = probed(&Ollama::new("m"), replies).await.0.unwrap();
    assert_eq!((found.version, found.context_tokens, found.enforced), (None, None, Enforcement::Schema));
    // Members of an unexpected type count as missing.
    let odd = ok(r#"{"details": null, "model_info": [], "capabilities": {"a": 1}}"#);
    let found =
        probed(&Ollama::new("m"), vec![version(), odd, says("{\"fw\":\"q7\"}", "stop")]).await.0.unwrap();
    assert_eq!((found.family, found.thinks), (None, false));
}

#[tokio::test]
async fn a_provider_is_probed_through_its_transport() {
    let script = Script::new([version(), model("gguf", json!([])), says("{\"fw\":\"q7\"}", "stop")]);
    let provider = Http::new(Ollama::new("m").with_generate(), script.clone());
    assert_eq!(provider.probe().await.unwrap().context_tokens, Some(8192));
    assert_eq!(script.paths()[2], "POST /api/generate");
}
