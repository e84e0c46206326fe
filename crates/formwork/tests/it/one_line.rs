//! Documents of tiny models in one line, on llama.cpp's server.

use formwork::Setup;
use formwork::config::Config;
use formwork::providers::Providers;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::swap::Person;

fn person() -> Reply {
    let message = json!({"role": "assistant", "content": r#"{"name": "Maria", "age": 34}"#});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    Reply::json(
        json!({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}).to_string(),
    )
}

fn tokens() -> Reply {
    let pieces = json!([
        {"id": 87, "piece": "x"}, {"id": 198, "piece": "\n"}, {"id": 472, "piece": "\n   "}, {"id": 476, "piece": " \""},
        {"id": 216, "piece": " "}, {"id": 4, "piece": "\\n"}, {"id": 90, "piece": [34, 10, 195]}, {"id": 91, "piece": [195]},
        {"id": 7, "piece": ",\r\n"}, {"id": 198, "piece": "\n"},
    ]);
    Reply::json(json!({ "tokens": pieces }).to_string())
}

/// Extracts two persons, and returns the path and `logit_bias` of each request.
async fn asked(replies: Vec<Reply>, settings: &str) -> Vec<(String, Value)> {
    let server = Server::start(replies).unwrap();
    let text = format!(
        "[providers.a]\nkind = \"llama-server\"\nbase_url = \"{}/v1\"\nstream = false\n{settings}",
        server.url()
    );
    let setup = Setup::open(&Config::from_toml(&text).unwrap(), &Providers::builtin()).await.unwrap();
    for _ in 0..2 {
        let extractor = setup.extractor::<Person>().build().unwrap();
        assert_eq!(extractor.extract("Maria, 34.").await.unwrap().value.age, 34);
    }
    let received = server.received().into_iter().map(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        if request.path == "/tokenize" {
            assert!(body["content"].as_str().unwrap().contains("{\n    \"a"), "{body}");
        }
        (request.path, body["logit_bias"].clone())
    });
    received.collect()
}

#[tokio::test]
async fn a_tiny_model_gets_no_token_with_a_line_break() {
    const CHAT: &str = "/v1/chat/completions";
    let told = |path: &str, bias: Value| (path.to_owned(), bias);
    let tiny = "model = \"smollm2:135m\"\n";
    let bias = json!([[7, false], [90, false], [198, false], [472, false]]);
    assert_eq!(
        asked(vec![tokens(), person(), person()], tiny).await,
        [told("/tokenize", Value::Null), told(CHAT, bias.clone()), told(CHAT, bias.clone())],
        "the tokens are requested once"
    );
    for status in [400, 401, 404, 422, 500] {
        assert_eq!(
            asked(vec![Reply::status(status), person(), person()], tiny).await,
            [told("/tokenize", Value::Null), told(CHAT, Value::Null), told(CHAT, Value::Null)],
            "{status}: the server is not asked again"
        );
    }
    let busy = || Reply::status(503);
    assert_eq!(
        asked(vec![busy(), person(), tokens(), person()], tiny).await,
        [
            told("/tokenize", Value::Null),
            told(CHAT, Value::Null),
            told("/tokenize", Value::Null),
            told(CHAT, bias)
        ],
        "a fault is no answer"
    );
    let plain = vec![told(CHAT, Value::Null), told(CHAT, Value::Null)];
    for other in ["model = \"qwen3-8b\"\n", "model = \"smollm2:135m\"\ndialects = [\"prompt\"]\n"] {
        assert_eq!(asked(vec![person(), person()], other).await, plain, "{other}");
    }
    let own = format!("{tiny}extra = {{ logit_bias = [] }}\n");
    let own = asked(vec![tokens(), person(), person()], &own).await;
    assert_eq!(own[1..], [told(CHAT, json!([])), told(CHAT, json!([]))]);
}
