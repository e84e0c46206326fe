use std::sync::Arc;

use formwork_core::{Completion, Fault, FaultKind, Provider};
use formwork_wire::cassette::{Cassette, Mutation, Player, Recorder};
use formwork_wire::{Http, SharedTransport};
use serde_json::json;

use crate::toy::{Line, Reply, Toy, call};

async fn ask(transport: SharedTransport, text: &str) -> Result<Completion, Fault> {
    let schema = Some(json!({"type": "object", "properties": {"b": {}, "a": {}}}));
    Http::new(Toy::default(), transport).call(&call(text, schema)).await?.collect().await
}

/// Records two responses and a fault. One of the responses ends inside a character.
async fn recorded() -> Cassette {
    let crab = "🦀".as_bytes();
    let json = vec![("content-type", "application/x-ndjson".to_owned()), ("set-cookie", "sesame".to_owned())];
    let chunks = vec![crab[..2].to_vec(), crab[2..].to_vec(), b" sesame\nend\n".to_vec()];
    let recorder = Recorder::new(Arc::new(Line::new([Reply(200, json, chunks), Reply::ok(&["two\nend\n"])])));
    let shared: SharedTransport = Arc::new(recorder.clone());
    ask(shared.clone(), "one").await.unwrap();
    ask(shared.clone(), "two, sesame").await.unwrap();
    ask(shared, "three").await.unwrap_err();
    recorder.cassette()
}

#[tokio::test]
async fn what_was_recorded_is_played() {
    let text = recorded().await.to_json();
    let cassette = Cassette::from_json(&text).unwrap();
    assert_eq!(cassette, recorded().await);
    let player = Arc::new(Player::new(cassette));
    assert_eq!(ask(player.clone(), "two, [redacted]").await.unwrap().text, "two");
    assert_eq!(ask(player.clone(), "one").await.unwrap().text, "🦀 [redacted]");
    assert_eq!(ask(player.clone(), "three").await.unwrap_err().kind, FaultKind::Unreachable);
    assert_eq!(player.left(), 0);
}

#[tokio::test]
async fn nothing_secret_is_kept() {
    let text = recorded().await.to_json();
    assert!(!text.contains("sesame") && text.contains("[redacted]") && !text.contains("cookie"), "{text}");
}

#[tokio::test]
async fn what_was_not_recorded_is_refused_with_the_difference() {
    let player = Arc::new(Player::new(recorded().await));
    let fault = ask(player.clone(), "on").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadRequest);
    assert!(fault.message.contains(r#"/ask: recorded "one", sent "on""#), "{fault}");

    let schema = Some(json!({"type": "object", "properties": {"a": {}, "b": {}}}));
    let fault = Http::new(Toy::default(), player.clone()).call(&call("one", schema)).await.unwrap_err();
    assert!(fault.message.contains("/format/properties: recorded properties"), "{fault}");

    ask(player.clone(), "one").await.unwrap();
    let fault = ask(player, "one").await.unwrap_err();
    assert!(fault.message.contains("differs"), "{fault}");
    let fault = ask(Arc::new(Player::new(Cassette::default())), "one").await.unwrap_err();
    assert!(fault.message.contains("has been replayed"), "{fault}");
}

#[tokio::test]
async fn a_replay_can_be_changed() {
    let cassette = recorded().await;
    for at in 0..8 {
        let player = Player::new(cassette.clone().with_mutation(0, &Mutation::Truncate(at)));
        let fault = ask(Arc::new(player), "one").await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreachable, "{at}");
    }
    let player = Arc::new(Player::new(cassette.with_mutation(0, &Mutation::DropSchema)));
    let answer = Http::new(Toy::default(), player).call(&call("one", None)).await.unwrap().collect().await;
    assert_eq!(answer.unwrap().text, "🦀 [redacted]");
}

#[test]
fn reasons_to_stop_are_replaced_across_chunks() {
    let text = json!({"formwork_cassette": 1, "exchanges": [{
        "request": {"method": "POST", "path": "/"},
        "response": {"status": 200},
        "chunks": [{"text": "{\"finish_reas"}, {"text": "on\": \"stop\", \"done_reason\":null}"}],
    }]});
    let cassette = Cassette::from_json(&text.to_string()).unwrap();
    let changed = cassette.with_mutation(0, &Mutation::Finish("length".to_owned()));
    let body = changed.exchanges[0].chunks[0].bytes();
    assert_eq!(std::str::from_utf8(body).unwrap(), r#"{"finish_reason":"length", "done_reason":null}"#);
}

#[test]
fn what_is_no_cassette_is_refused() {
    for (text, words) in [
        ("[", "line 1"),
        (r#"{"formwork_cassette": 2, "exchanges": []}"#, "version 2"),
        (r#"{"formwork_cassette": 1, "exchange": []}"#, "unknown field `exchange`"),
    ] {
        let error = Cassette::from_json(text).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_secret_is_removed_wherever_the_chunks_are_cut() {
    let body = "🦀 before sesame between sesame after\nend\n".as_bytes();
    for first in 1..body.len() {
        for second in [first, first + 1, first + 5, body.len()] {
            let second = second.min(body.len());
            let chunks = [&body[..first], &body[first..second], &body[second..]].map(<[u8]>::to_vec);
            let reply =
                Reply(200, vec![("content-type", "application/x-ndjson".to_owned())], chunks.to_vec());
            let recorder = Recorder::new(Arc::new(Line::new([reply])));
            ask(Arc::new(recorder.clone()), "one").await.unwrap();
            let exchange = recorder.cassette().exchanges.remove(0);
            let kept: Vec<u8> = exchange.chunks.iter().flat_map(|chunk| chunk.bytes().to_vec()).collect();
            let kept = String::from_utf8(kept).unwrap();
            assert_eq!(kept, "🦀 before [redacted] between [redacted] after\nend\n", "{first} {second}");
        }
    }
}
