//! Consecutive calls over HTTP, for every kind of provider.

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_testkit::server::{Reply, Server};
use serde_json::Value;

use super::swap::Person;

/// Returns a streamed response, one chunk per line.
fn streamed(kind: &str) -> Reply {
    let maria = Value::from(r#"{"name": "Maria", "age": 34}"#);
    let (media_type, pieces) = match kind {
        "ollama" => (
            "application/x-ndjson",
            vec![
                format!("{{\"model\":\"m\",\"message\":{{\"role\":\"assistant\",\"content\":{maria}}},\"done\":false}}\n"),
                "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n".to_owned(),
            ],
        ),
        _ => (
            "text/event-stream",
            vec![
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{maria}}}}}]}}\n\n"),
                "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_owned(),
                "data: [DONE]\n\n".to_owned(),
            ],
        ),
    };
    Reply::pieces(pieces).with_header("content-type", media_type)
}

#[tokio::test]
async fn forty_streamed_calls_one_after_another_use_one_connection() {
    for kind in ["ollama", "llama-server", "openai"] {
        let server = Server::start([streamed(kind)]).unwrap();
        let more = if kind == "ollama" { "probe = false" } else { "api_key_env = \"\"" };
        let text = format!(
            "[defaults]\nmax_attempts = 1\n[providers.a]\nkind = \"{kind}\"\nmodel = \"m\"\nbase_url = \"{}\"\n{more}\n",
            server.url()
        );
        let config = Config::from_toml(&text).unwrap();
        let setup = formwork::Setup::open(&config, &Providers::builtin()).await.unwrap();
        let extractor = setup.extractor::<Person>().build().unwrap();
        for _ in 0..40 {
            let person = extractor.extract("Maria, 34.").await.unwrap().value;
            assert_eq!(person, Person { name: "Maria".to_owned(), age: 34 });
        }
        assert_eq!((server.received().len(), server.connections()), (40, 1), "{kind}");
    }
}
