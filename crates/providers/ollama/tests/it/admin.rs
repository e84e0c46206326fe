//! Model management, against a scripted server (finding D6).

use std::sync::Arc;

use formwork_core::FaultKind;
use formwork_http::HttpTransport;
use formwork_ollama::{Admin, PullProgress};
use formwork_testkit::server::{Reply, Server};

/// Starts a server with these replies, and returns it with its administrator.
fn serving(replies: &[(u16, &str)]) -> (Server, Admin) {
    let replies = replies.iter().map(|(status, body)| Reply::json(*body).with_status(*status));
    let server = Server::start(replies).unwrap();
    let admin = admin(&server.url());
    (server, admin)
}

fn admin(url: &str) -> Admin {
    Admin::new(Arc::new(HttpTransport::new(url).unwrap()))
}

/// Returns the requests in the form of a server log.
fn paths(server: &Server) -> Vec<String> {
    server.received().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test]
async fn models_are_listed_and_shown() {
    let tags = r#"{"models":[{"name":"smollm2:latest","model":"smollm2:latest","modified_at":"2026-11-21T10:00:00Z","size":101,"digest":"abc"}]}"#;
    let show = r#"{"license":"Apache-2.0","template":"t","parameters":"stop x","capabilities":["completion"],"model_info":{"general.architecture":"llama","llama.context_length":8192}}"#;
    let (server, admin) =
        serving(&[(200, tags), (200, show), (404, r#"{"error":"model 'nope' not found"}"#)]);
    let models = admin.models().await.unwrap();
    assert_eq!((models[0].name.as_str(), models[0].size), ("smollm2:latest", 101));
    let info = admin.show("smollm2").await.unwrap();
    assert_eq!((info.licence.as_str(), info.context_tokens), ("Apache-2.0", Some(8192)));
    assert_eq!(
        (info.architecture.as_deref(), info.capabilities),
        (Some("llama"), vec!["completion".to_owned()])
    );
    let fault = admin.show("nope").await.unwrap_err();
    assert!(fault.kind == FaultKind::Unsupported && fault.message.contains("'nope' not found"), "{fault}");
    assert_eq!(paths(&server), ["GET /api/tags", "POST /api/show", "POST /api/show"]);
    assert_eq!(server.received()[1].body, br#"{"model":"smollm2"}"#);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_pull_says_how_far_it_is_and_is_done_only_when_it_is() {
    let whole = "{\"status\":\"pulling manifest\"}\n{\"status\":\"pulling abc\",\"digest\":\"sha256:abc\",\"total\":10,\"completed\":4}\n{\"status\":\"success\"}\n";
    let broken = "{\"status\":\"pulling manifest\"}\n{\"status\":\"succ";
    let failed =
        "{\"status\":\"pulling manifest\"}\n{\"error\":\"pull model manifest: file does not exist\"}\n";
    let (server, admin) =
        serving(&[(200, whole), (200, broken), (200, failed), (500, r#"{"error":"no space left"}"#)]);
    let mut seen: Vec<PullProgress> = Vec::new();
    admin.pull("smollm2", |progress| seen.push(progress.clone())).await.unwrap();
    let statuses: Vec<&str> = seen.iter().map(|progress| progress.status.as_str()).collect();
    assert_eq!(statuses, ["pulling manifest", "pulling abc", "success"]);
    assert_eq!(
        (seen[1].completed, seen[1].total, seen[1].digest.as_deref()),
        (Some(4), Some(10), Some("sha256:abc"))
    );
    let kinds = [FaultKind::BadWire, FaultKind::Unsupported, FaultKind::Overloaded];
    for kind in kinds {
        assert_eq!(admin.pull("nope", |_| {}).await.unwrap_err().kind, kind);
    }
    assert_eq!(paths(&server)[0], "POST /api/pull");
}

#[tokio::test]
async fn what_is_not_there_or_not_ollama_is_a_fault() {
    let (server, gone) = serving(&[]);
    drop(server);
    let fault = gone.models().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    for body in ["<html>", "[]", "{}"] {
        let (_server, admin) = serving(&[(200, body)]);
        let fault = admin.models().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadWire, "{fault}");
        let fault = admin.pull("m", |_| {}).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadWire, "{fault}");
    }
}

#[tokio::test]
async fn a_server_behind_a_path_and_a_key_is_administered_as_it_is_called() {
    let server = Server::start([Reply::json(r#"{"models": []}"#)]).unwrap();
    let transport = HttpTransport::new(&format!("{}/ollama", server.url())).unwrap();
    let key = formwork_http::Key::new("a test", "secret-123456789").unwrap();
    let transport = transport.with_key(formwork_wire::Auth::BEARER, key).unwrap();
    assert_eq!(Admin::new(Arc::new(transport)).models().await.unwrap(), []);
    let request = &server.received()[0];
    assert_eq!(request.path, "/ollama/api/tags");
    assert_eq!(request.header("authorization"), Some("Bearer secret-123456789"));
}
