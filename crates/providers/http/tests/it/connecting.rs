//! Servers that are not running, or are not HTTP servers.

use formwork_core::FaultKind::{BadWire, Timeout, Unreachable};
use formwork_http::HttpTransport;
use formwork_testkit::server::Reply;

use crate::support::{ask, assert_fault, server, transport};

#[tokio::test]
async fn a_server_that_is_down_is_unreachable() {
    let server = server([]);
    let transport = transport(&server);
    let address = server.address().to_string();
    drop(server);
    assert_fault(&ask(transport).await.unwrap_err(), Unreachable, &["nothing listens at", &address, "port"]);
}

#[tokio::test]
async fn a_name_that_nobody_has_is_unreachable() {
    // This name never exists (RFC 6761, section 6.4). In some networks the lookup takes long.
    let transport = HttpTransport::new("http://nobody.invalid:1234").unwrap();
    let fault = ask(transport).await.unwrap_err();
    assert!(matches!(fault.kind, Unreachable | Timeout), "{fault}");
    assert_fault(&fault, fault.kind, &["nobody.invalid:1234"]);
}

#[tokio::test]
async fn the_port_of_something_else_is_not_the_protocol() {
    let server =
        server([Reply::raw("220 mail.example ESMTP\r\n"), Reply::raw("\u{0}\u{1}\u{2}nonsense\r\n\r\n")]);
    for _ in 0..2 {
        let fault = ask(transport(&server)).await.unwrap_err();
        assert_fault(&fault, BadWire, &[&server.address().to_string(), "not HTTP", "port"]);
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_before_it_answers_is_unreachable() {
    let server = server([Reply::raw("")]);
    assert_fault(&ask(transport(&server)).await.unwrap_err(), Unreachable, &["without a response"]);
    assert_eq!(server.received().len(), 1, "nothing is sent twice behind the ledger's back");
}

#[tokio::test]
async fn a_head_that_is_cut_is_unreachable() {
    let server = server([Reply::raw("HTTP/1.1 200 OK\r\ncontent-le")]);
    assert_fault(&ask(transport(&server)).await.unwrap_err(), Unreachable, &["without a response"]);
}

#[tokio::test]
async fn a_head_without_end_is_not_the_protocol() {
    let head = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(2_000_000));
    let server = server([Reply::raw(head)]);
    assert_fault(&ask(transport(&server)).await.unwrap_err(), BadWire, &["not HTTP"]);
}
