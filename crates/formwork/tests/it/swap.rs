//! The same program with every provider of a file.

use std::sync::atomic::{AtomicUsize, Ordering};

use formwork::config::Config;
use formwork::providers::Providers;
use formwork::{Error, Setup};
use serde::Deserialize;

#[derive(Debug, PartialEq, Eq, schemars::JsonSchema, Deserialize)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) age: u8,
}

/// The program, which does not know the provider.
pub(crate) async fn program(config: &Config) -> Result<Person, Error> {
    let setup = Setup::open(config, &Providers::builtin()).await?;
    Ok(setup.extractor::<Person>().build()?.extract("Maria, 34.").await?.value)
}

/// Returns a cassette of one exchange with a server of a kind, with this response body.
fn cassette(path: &str, request: &serde_json::Value, media_type: &str, body: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("formwork-swap-{}-{count}.json", std::process::id()));
    let cassette = serde_json::json!({"formwork_cassette": 1, "exchanges": [{
        "request": {"method": "POST", "path": path, "body": request},
        "response": {"status": 200, "headers": {"content-type": media_type}},
        "chunks": [{"text": body}],
        "schema_dropped": true,
    }]});
    std::fs::write(&file, cassette.to_string()).unwrap();
    file.display().to_string()
}

#[tokio::test]
async fn what_is_not_recorded_is_reported_with_the_difference() {
    let file = cassette("/api/chat", &serde_json::json!({"model": "other"}), "application/x-ndjson", "");
    let text = format!("[providers.a]\nkind = \"ollama\"\nmodel = \"smollm2\"\ncassette = {file:?}\n");
    let error = program(&Config::from_toml(&text).unwrap()).await.unwrap_err();
    assert!(format!("{error:#}").contains("recorded \"other\", sent \"smollm2\""), "{error:#}");
}

/// Returns the request of each kind, found by a call with an empty cassette.
async fn sent(kind: &str) -> serde_json::Value {
    let server =
        formwork_testkit::server::Server::start([formwork_testkit::server::Reply::status(400)]).unwrap();
    let url = server.url();
    let text = format!(
        "[defaults]\nmax_attempts = 1\n[providers.a]\nkind = \"{kind}\"\nmodel = \"m\"\nbase_url = \"{url}\"\n{}",
        if kind == "ollama" { "probe = false\n" } else { "api_key_env = \"\"\n" }
    );
    program(&Config::from_toml(&text).unwrap()).await.unwrap_err();
    serde_json::from_slice(&server.received()[0].body).unwrap()
}

#[tokio::test]
async fn a_swap_of_the_provider_changes_the_file_alone() {
    let maria = "{\"name\": \"Maria\", \"age\": 34}";
    let text = serde_json::Value::from(maria);
    let ollama = format!(
        "{{\"model\":\"m\",\"message\":{{\"role\":\"assistant\",\"content\":{text}}},\"done\":true,\"done_reason\":\"stop\"}}\n"
    );
    let openai = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    for (kind, path, media_type, body) in [
        ("ollama", "/api/chat", "application/x-ndjson", ollama),
        ("llama-server", "/chat/completions", "text/event-stream", openai.clone()),
        ("groq", "/chat/completions", "text/event-stream", openai),
    ] {
        let request = sent(kind).await;
        let file = cassette(path, &request, media_type, &body);
        let config = format!(
            "[defaults]\nmax_attempts = 1\n[providers.a]\nkind = \"{kind}\"\nmodel = \"m\"\ncassette = {file:?}\n"
        );
        let person = program(&Config::from_toml(&config).unwrap()).await.unwrap();
        assert_eq!(person, Person { name: "Maria".to_owned(), age: 34 }, "{kind}");
        std::fs::remove_file(file).unwrap();
    }
}
