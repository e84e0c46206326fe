//! Responses with an error status.

use std::time::Duration;

use formwork_core::FaultKind::{Auth, BadWire, Overloaded, RateLimited, Unreachable};
use formwork_testkit::server::Reply;

use crate::support::{ask, assert_fault, get, server, transport};

#[tokio::test]
async fn a_web_page_is_not_the_protocol() {
    let server = server([Reply::html("<h1>It works!</h1>")]);
    let fault = ask(transport(&server)).await.unwrap_err();
    assert_fault(&fault, BadWire, &["web page", "It works!", "base URL"]);
    assert_eq!(fault.status, Some(200));
}

#[tokio::test]
async fn an_empty_body_is_an_answer_that_was_cut_off() {
    for reply in [Reply::status(200), Reply::pieces([""; 0]), Reply::status(204)] {
        let server = server([reply]);
        assert_fault(&ask(transport(&server)).await.unwrap_err(), Unreachable, &["cut off", "end marker"]);
    }
}

#[tokio::test]
async fn too_many_requests_say_when_to_come_back() {
    let limited = || Reply::status(429).with_body(r#"{"error": {"message": "slow down"}}"#);
    let cases = [
        (None, None),
        (Some("7"), Some(Duration::from_secs(7))),
        (Some("Wed, 21 Oct 2015 07:28:30 GMT"), Some(Duration::from_secs(30))),
        (Some("soon"), None),
        (Some("-5"), None),
        (Some("99999999999999999999999999"), None),
    ];
    for (header, wait) in cases {
        let reply = limited().with_header("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        let reply = match header {
            Some(header) => reply.with_header("retry-after", header),
            None => reply,
        };
        let server = server([reply]);
        let fault = ask(transport(&server)).await.unwrap_err();
        assert_fault(&fault, RateLimited, &["429", "slow down"]);
        assert_eq!((fault.retry_after, fault.status), (wait, Some(429)), "{header:?}");
    }
}

#[tokio::test]
async fn a_failing_server_is_overloaded() {
    for status in [500, 502, 503] {
        let server = server([Reply::status(status).with_header("x-request-id", "r-1").with_body("oh no")]);
        let fault = ask(transport(&server)).await.unwrap_err();
        assert_fault(&fault, Overloaded, &[&status.to_string(), "oh no"]);
        assert_eq!(fault.request_id.as_deref(), Some("r-1"));
        assert_eq!(server.received().len(), 1);
    }
}

#[tokio::test]
async fn an_error_with_an_endless_body_is_an_error() {
    let server = server([Reply::endless("no ".repeat(1000)).with_status(401)]);
    assert_fault(&ask(transport(&server)).await.unwrap_err(), Auth, &["401", "no no"]);
}

#[tokio::test]
async fn status_and_headers_come_through() {
    let server = server([Reply::status(418).with_header("x-kind", "teapot").with_body("short and stout")]);
    let response = get(&transport(&server), "/", None).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["x-kind"].as_bytes()), (418, &b"teapot"[..]));
    assert_eq!(response.into_body().collect(99).await.unwrap(), b"short and stout");
}
