//! Administering, against a server that answers one connection after another from a script.

use formwork_core::FaultKind;
use formwork_ollama::{Admin, PullProgress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Serves these replies and gives the address, and a handle that brings the first lines of the requests.
async fn serving(replies: Vec<(u16, &'static str)>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut lines = Vec::new();
        for (status, body) in replies {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            // The bodies that are sent are objects, and none is sent with GET.
            let is_whole = |request: &[u8]| {
                request.ends_with(b"}") || request.starts_with(b"GET") && request.ends_with(b"\r\n\r\n")
            };
            while !is_whole(&request) {
                let read = stream.read(&mut buffer).await.unwrap();
                assert!(read > 0, "the request was cut off");
                request.extend_from_slice(&buffer[..read]);
            }
            lines.push(String::from_utf8_lossy(&request).lines().next().unwrap().to_owned());
            let head =
                format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
        }
        lines
    });
    (address, server)
}

#[tokio::test]
async fn models_are_listed_and_shown() {
    let tags = r#"{"models":[{"name":"smollm2:latest","model":"smollm2:latest","modified_at":"2026-11-21T10:00:00Z","size":101,"digest":"abc"}]}"#;
    let show = r#"{"license":"Apache-2.0","template":"t","parameters":"stop x","capabilities":["completion"],"model_info":{"general.architecture":"llama","llama.context_length":8192}}"#;
    let (address, server) =
        serving(vec![(200, tags), (200, show), (404, r#"{"error":"model 'nope' not found"}"#)]).await;
    let admin = Admin::new(&address).unwrap();
    let models = admin.models().await.unwrap();
    assert_eq!((models[0].name.as_str(), models[0].size), ("smollm2:latest", 101));
    let shown = admin.show("smollm2").await.unwrap();
    assert_eq!((shown.licence.as_str(), shown.context_tokens), ("Apache-2.0", Some(8192)));
    assert_eq!(
        (shown.architecture.as_deref(), shown.capabilities),
        (Some("llama"), vec!["completion".to_owned()])
    );
    let fault = admin.show("nope").await.unwrap_err();
    assert!(fault.kind == FaultKind::Unsupported && fault.message.contains("'nope' not found"), "{fault}");
    let lines = server.await.unwrap();
    assert_eq!(lines, ["GET /api/tags HTTP/1.1", "POST /api/show HTTP/1.1", "POST /api/show HTTP/1.1"]);
}

#[tokio::test]
async fn a_pull_says_how_far_it_is_and_is_done_only_when_it_is() {
    let whole = "{\"status\":\"pulling manifest\"}\n{\"status\":\"pulling abc\",\"digest\":\"sha256:abc\",\"total\":10,\"completed\":4}\n{\"status\":\"success\"}\n";
    let broken = "{\"status\":\"pulling manifest\"}\n{\"status\":\"succ";
    let failed =
        "{\"status\":\"pulling manifest\"}\n{\"error\":\"pull model manifest: file does not exist\"}\n";
    let (address, server) =
        serving(vec![(200, whole), (200, broken), (200, failed), (500, r#"{"error":"no space left"}"#)])
            .await;
    let admin = Admin::new(&address).unwrap();
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
    assert_eq!(server.await.unwrap()[0], "POST /api/pull HTTP/1.1");
}

#[tokio::test]
async fn what_is_not_there_or_not_ollama_is_a_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let fault = Admin::new(&address).unwrap().models().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    let (address, _server) = serving(vec![(200, "<html>")]).await;
    let fault = Admin::new(&address).unwrap().models().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadWire, "{fault}");
}

#[test]
fn addresses_that_would_be_misread_are_refused() {
    assert!(Admin::new("http://127.0.0.1:11434").is_ok() && Admin::new("http://127.0.0.1:11434/").is_ok());
    for (address, words) in [
        ("http://127.0.0.1/ollama", "without a path"),
        ("http://127.0.0.1/?a=1", "without a path"),
        ("https://ollama.example", "plain http"),
        ("127.0.0.1:11434", "no URL"),
    ] {
        let fault = Admin::new(address).unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadRequest);
        assert!(fault.message.contains(words), "{fault}");
    }
}
