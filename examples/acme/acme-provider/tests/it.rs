//! The pass-through, the batch API and the dialect of Acme.

use acme_provider::{ACME, add_to};
use formwork::config::{Config, Section};
use formwork::core::{Call, Enforcement, Lowered, Message, Time};
use formwork::dialect::Native;
use formwork::extract::block_on;
use formwork::providers::{Protocol, Providers};
use formwork::wire::batch::{FileRequest, FileStatus, Found};
use formwork::wire::http::Request;
use formwork_testkit::server::{Reply, Server};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

fn section(server: &Server) -> Section {
    let text =
        format!("[providers.a]\nkind = \"acme\"\nmodel = \"anvil-1\"\nbase_url = \"{}\"", server.url());
    Config::from_toml(&text).unwrap().section("a").unwrap().clone()
}

#[test]
fn the_dialect_keeps_the_laws_of_lowering() {
    assert_eq!(formwork_conformance::dialect(&Native::new(&ACME)), Ok(()));
}

#[test]
fn chat_completions_are_passed_on_unchanged() {
    let server = Server::start([Reply::json("{}")]).unwrap();
    let raw = add_to(Providers::builtin()).raw(&section(&server)).unwrap().unwrap();
    assert_eq!((raw.protocol, raw.model.as_str()), (Protocol::OpenAi, "anvil-1"));
    let request = Request::post("/chat/completions").body("{\"n\": 1}".into()).unwrap();
    let response = block_on(raw.transport.send(request, None)).unwrap().unwrap();
    assert_eq!(response.status(), 200);
    let received = &server.received()[0];
    assert_eq!(
        (received.path.as_str(), &received.body[..]),
        ("/openai/v1/chat/completions", &b"{\"n\": 1}"[..])
    );
}

#[test]
fn a_file_of_requests_is_submitted_found_and_read() {
    let lines = [
        json!({"id": "f-1", "status": 200, "answer": {"reply": "{}", "stopped": "end"}}),
        json!({"id": "f-2", "status": 503, "answer": {"problem": "too much"}}),
        json!({"id": "f-3"}),
    ];
    let server = Server::start([
        Reply::json(r#"{"night": "n-7"}"#),
        Reply::json(r#"{"data": [{"night": "n-6", "name": "e"}, {"night": "n-7", "name": "f"}]}"#),
        Reply::json(r#"{"state": "running", "done": 2}"#),
        Reply::json(r#"{"state": "over"}"#),
        Reply::json(lines.map(|line| format!("{line}\n")).concat()),
        Reply::json("{}"),
    ])
    .unwrap();
    let api = add_to(Providers::builtin()).batch(&section(&server)).unwrap().unwrap();
    let call = Call::new(vec![Message::user("Who?")], Lowered::new(Enforcement::None, None));
    let request = api.wire().encode(&call).unwrap();
    let requests = vec![FileRequest { custom_id: "f-1".to_owned(), request }];
    let results = block_on(async {
        assert_eq!(api.submit("f", requests).await.unwrap(), "n-7");
        assert_eq!(api.find("f", 1, Time(0), &[]).await.unwrap(), Found::Id("n-7".to_owned()));
        assert_eq!(api.status("n-7").await.unwrap(), FileStatus::Open { finished: 2 });
        assert_eq!(api.status("n-7").await.unwrap(), FileStatus::Ended);
        let results: Vec<_> = api.results("n-7").await.unwrap().collect().await;
        api.cancel("n-7").await.unwrap();
        results
    })
    .unwrap();
    let read = results.into_iter().map(|result| result.unwrap());
    let read =
        read.map(|result| (result.custom_id, result.response.map(|response| response.status().as_u16())));
    let expected = [("f-1", Some(200)), ("f-2", Some(503)), ("f-3", None)];
    assert!(read.eq(expected.map(|(id, status)| (id.to_owned(), status))));
    let received = server.received();
    let file: Value = serde_json::from_slice(&received[0].body).unwrap();
    assert_eq!((&file["name"], &file["requests"][0]["ask"]["stream"]), (&json!("f"), &json!(false)));
    let paths: Vec<&str> = received.iter().map(|request| request.path.as_str()).collect();
    let night = "/v2/nights/n-7";
    let (results, end) = (format!("{night}/results"), format!("{night}/end"));
    assert_eq!(paths, ["/v2/nights", "/v2/nights", night, night, &results, &end]);
}
