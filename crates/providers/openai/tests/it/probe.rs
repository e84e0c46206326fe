//! Probes of a server.

use formwork_core::{FaultKind, Provider};
use formwork_openai::OpenAi;
use formwork_wire::{Http, Wire};

use crate::support::Server;

#[tokio::test]
async fn a_list_of_models_tells_the_context() {
    for member in ["max_model_len", "context_length", "context_window"] {
        let body =
            format!(r#"{{"object": "list", "data": [{{"id": "other"}}, {{"id": "m", "{member}": 4096}}]}}"#);
        let server = Server::new(200, "application/json", body);
        let found = Http::new(OpenAi::new("m"), server.clone()).probe().await.unwrap();
        assert_eq!(found, OpenAi::new("m").capabilities().clone().with_context_tokens(4096));
        let requests = server.requests.lock().unwrap();
        assert_eq!((requests[0].method().as_str(), requests[0].uri().path()), ("GET", "/models"));
    }
}

#[tokio::test]
async fn a_server_without_a_list_is_there_too() {
    for (status, body) in [(404, "not found"), (405, ""), (200, "pong"), (200, r#"{"data": []}"#)] {
        let found =
            Http::new(OpenAi::new("m"), Server::new(status, "text/plain", body)).probe().await.unwrap();
        assert_eq!(&found, OpenAi::new("m").capabilities());
    }
}

#[tokio::test]
async fn a_wrong_key_is_a_fault() {
    let server = Server::new(401, "application/json", r#"{"error": {"message": "Incorrect API key"}}"#);
    assert_eq!(Http::new(OpenAi::new("m"), server).probe().await.unwrap_err().kind, FaultKind::Auth);
}
