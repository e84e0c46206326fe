//! Connections that serve several calls (finding D5).

use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Capabilities, Delta, Provider};
use formwork_testkit::server::{End, Framing, Reply};
use formwork_wire::Http;
use futures_util::StreamExt as _;

use crate::support::{Tiny, ask, call, server, transport};

#[tokio::test]
async fn forty_streamed_answers_one_after_another_use_one_connection() {
    let pause = Duration::from_millis(3);
    for reply in [
        Reply::pieces(["one\n", ".\n"]),
        // The body ends later than the answer, or is longer.
        Reply::pieces(["one\n", ".\n", "\n"]).with_pause(pause),
        Reply::pieces(["one\n".to_owned(), ".\n".to_owned(), "\n".repeat(1000)]).with_pause(pause),
        Reply::pieces(["one\n", ".\n"]).with_framing(Framing::Length),
        Reply::status(200).with_body("one\n.\n"),
    ] {
        let server = server([reply.clone()]);
        let transport = transport(&server);
        for _ in 0..40 {
            assert_eq!(ask(transport.clone()).await.unwrap().text, "one");
        }
        assert_eq!((server.received().len(), server.connections()), (40, 1), "{reply:?}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_end_behind_its_answer_takes_nothing_from_it() {
    for reply in [
        Reply::pieces(["one\n", ".\n", "more\n"]).cut_at(6, End::Stall),
        // The rest is longer than the client reads.
        Reply::pieces(["one\n".to_owned(), ".\n".to_owned(), "x".repeat(1_000_000)]),
        Reply::pieces(["one\n", ".\n", "more\n"]).cut_at(6, End::Reset),
        Reply::pieces(["one\n", ".\n", "more\n"]).cut_at(6, End::Close),
    ] {
        let server = server([reply.clone(), Reply::pieces(["one\n", ".\n"])]);
        let transport = transport(&server);
        for _ in 0..2 {
            assert_eq!(ask(transport.clone()).await.unwrap().text, "one", "{reply:?}");
        }
        assert_eq!(server.connections(), 2, "{reply:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_dropped_early_is_not_read_on() {
    let server = server([Reply::endless("one\n"), Reply::pieces(["two\n", ".\n"])]);
    let transport = transport(&server);
    let provider = Http::new(Tiny(Capabilities::default()), Arc::new(transport.clone()));
    let mut answer = provider.call(&call(None)).await.unwrap();
    assert!(matches!(answer.next().await, Some(Ok(Delta::Text(_)))));
    drop(answer);
    assert_eq!(ask(transport).await.unwrap().text, "two");
    assert_eq!(server.connections(), 2);
}

/// llama.cpp's server closes after each stream, although its header promises to keep the connection.
#[tokio::test]
async fn a_connection_that_the_server_closed_behind_an_answer_costs_no_call() {
    for end in [End::Close, End::Reset] {
        let server = server([Reply::status(200).with_body("one\n.\n").cut_at(6, end)]);
        let transport = transport(&server);
        for nth in 0..200 {
            let answer = ask(transport.clone()).await;
            assert_eq!(answer.map(|answer| answer.text), Ok("one".to_owned()), "{end:?}, call {nth}");
        }
        assert_eq!(server.received().len(), 200, "no request reached the server twice");
    }
}

#[tokio::test]
async fn closed_connections_cost_no_call_while_others_are_opened() {
    let server = server([Reply::status(200).with_body("one\n.\n").cut_at(6, End::Reset)]);
    let transport = transport(&server);
    for _ in 0..50 {
        let requests = (0..4).map(|_| ask(transport.clone()));
        for answer in futures_util::future::join_all(requests).await {
            assert_eq!(answer.map(|answer| answer.text), Ok("one".to_owned()));
        }
    }
}

/// The server may have processed the request, which costs money.
#[tokio::test]
async fn a_request_that_the_server_kept_for_a_while_is_not_sent_again() {
    let pause = Duration::from_millis(1_200);
    let hangs_up = Reply::raw("").with_pause(pause);
    let server = server([Reply::status(200).with_body("one\n.\n"), hangs_up]);
    let transport = transport(&server);
    assert_eq!(ask(transport.clone()).await.unwrap().text, "one");
    ask(transport).await.unwrap_err();
    assert_eq!(server.received().len(), 2, "each was sent once");
}

/// The server acts on a request and closes the connection: only a transport that may send it again does so.
#[tokio::test]
async fn a_request_that_must_not_be_carried_out_twice_is_sent_once() {
    for resends in [true, false] {
        let hangs_up = Reply::raw("");
        let good = || Reply::status(200).with_body("one\n.\n");
        let server = server([good(), hangs_up, good()]);
        let transport = transport(&server);
        let transport = if resends { transport } else { transport.without_resending() };
        ask(transport.clone()).await.unwrap();
        assert_eq!(ask(transport).await.is_ok(), resends);
        assert_eq!(server.received().len(), if resends { 3 } else { 2 });
    }
}
