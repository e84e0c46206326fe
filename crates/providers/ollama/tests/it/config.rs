//! The configuration section of a model.

use formwork_core::Enforcement;
use formwork_ollama::{Api, KeepAlive, Ollama, OllamaConfig, Think};
use serde_json::{Value, json};

use crate::support::{body, enforcing};

#[test]
fn a_model_is_all_that_has_to_be_said() {
    let config: OllamaConfig = serde_json::from_value(json!({"model": "qwen3:8b"})).unwrap();
    assert_eq!(config, OllamaConfig::new("qwen3:8b"));
    assert_eq!(config.wire(), Ollama::new("qwen3:8b"));
    assert_eq!(
        (config.base_url.as_str(), config.api, config.stream, config.probe),
        ("http://127.0.0.1:11434", Api::Chat, true, false)
    );
}

#[test]
fn everything_that_is_said_reaches_the_wire() {
    let document = json!({
        "model": "qwen3:8b", "base_url": "https://ollama.example", "api_key_env": "OLLAMA_API_KEY",
        "headers": {"x-team": "a"}, "api": "generate", "num_ctx": 8192, "keep_alive": 60, "think": "low",
        "options": {"top_k": 20}, "stream": false, "probe": false,
    });
    let config: OllamaConfig = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(
        (&config.keep_alive, &config.think),
        (&Some(KeepAlive::Seconds(60)), &Some(Think::Level("low".into())))
    );
    let sent = body(&config.wire(), &enforcing(Enforcement::None));
    assert_eq!(sent["options"], json!({"top_k": 20, "num_ctx": 8192}));
    assert_eq!(
        (&sent["keep_alive"], &sent["think"], &sent["stream"]),
        (&json!(60), &json!("low"), &json!(false))
    );
    assert_eq!(sent["prompt"], "hi");
    assert_eq!(serde_json::to_value(&config).unwrap(), document);
}

#[test]
fn an_unknown_word_is_an_error() {
    for document in
        [json!({"model": "m", "modell": 1}), json!({"model": "m", "api": "completions"}), json!({})]
    {
        assert!(serde_json::from_value::<OllamaConfig>(document.clone()).is_err(), "{document}");
    }
}

#[test]
fn editors_know_every_word() {
    let schema = serde_json::to_value(schemars::schema_for!(OllamaConfig)).unwrap();
    assert_eq!((&schema["title"], &schema["additionalProperties"]), (&json!("OllamaConfig"), &json!(false)));
    assert_eq!(schema["required"], json!(["model"]));
    for (name, property) in schema["properties"].as_object().unwrap() {
        assert!(property.get("description").is_some(), "{name}");
    }
    let default = |name: &str| -> &Value { &schema["properties"][name]["default"] };
    assert_eq!([default("base_url"), default("stream")], [&json!("http://127.0.0.1:11434"), &json!(true)]);
}

#[test]
fn a_host_is_read_as_ollamas_own_command_reads_it() {
    for (host, url) in [
        ("", "http://127.0.0.1:11434"),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        (" \"gpu.local\" ", "http://gpu.local:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        ("[::]:80", "http://[::1]:80"),
        ("::1", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("[2001:db8::1]:1", "http://[2001:db8::1]:1"),
        ("http://h", "http://h:80"),
        ("http://h/", "http://h:80"),
        ("https://h", "https://h:443"),
        ("https://h:8443/ollama/", "https://h:8443/ollama"),
        ("h/ollama", "http://h:11434/ollama"),
        ("h:99999", "http://h:11434"),
        ("h:port", "http://h:11434"),
    ] {
        assert_eq!(formwork_ollama::base_url_of_host(host), url, "{host:?}");
    }
}
