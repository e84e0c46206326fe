//! The URLs of requests.

use formwork_core::FaultKind::BadRequest;
use formwork_http::HttpTransport;
use formwork_testkit::server::Reply;

use crate::support::{assert_fault, get, server};

#[tokio::test]
async fn the_base_urls_path_and_query_are_kept() {
    let server = server([Reply::status(200)]);
    for (base, path, sent) in [
        ("", "/api/chat", "/api/chat"),
        ("/", "/api/chat", "/api/chat"),
        ("/ollama", "/api/chat", "/ollama/api/chat"),
        ("/ollama/", "/api/chat", "/ollama/api/chat"),
        ("/v1/traces", "/", "/v1/traces"),
        ("/v1?api-version=2024", "/chat", "/v1/chat?api-version=2024"),
        ("/v1/?api-version=2024", "/chat?alt=sse", "/v1/chat?api-version=2024&alt=sse"),
    ] {
        let transport = HttpTransport::new(&format!("{}{base}", server.url())).unwrap();
        get(&transport, path, None).await.unwrap();
        assert_eq!(server.received().last().unwrap().path, sent);
    }
}

#[tokio::test]
async fn a_protocol_does_not_say_which_server() {
    let transport = HttpTransport::new("http://127.0.0.1:1").unwrap();
    let fault = get(&transport, "http://elsewhere.example/chat", None).await.unwrap_err();
    assert_fault(&fault, BadRequest, &["has to be a path"]);
}
