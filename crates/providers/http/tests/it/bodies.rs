//! Bodies that end too early or are too long.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use formwork_core::FaultKind::{BadWire, Unreachable};
use formwork_core::{Capabilities, Delta, Provider};
use formwork_testkit::server::{End, Framing, Reply};
use formwork_wire::Http;
use futures_util::StreamExt;

use crate::support::{Tiny, ask, assert_fault, body, call, server, transport};

#[tokio::test]
async fn how_a_body_is_cut_into_pieces_makes_no_difference() {
    let whole = "Größe\n€ 20\n.\n";
    let pieces: Vec<Vec<u8>> = whole.bytes().map(|byte| vec![byte]).collect();
    for reply in [
        Reply::status(200).with_body(whole),
        Reply::pieces(pieces),
        Reply::pieces([whole]).with_framing(Framing::Close),
        Reply::pieces(["Größe\n€ 20\n."]),
    ] {
        let server = server([reply]);
        assert_eq!(ask(transport(&server)).await.unwrap().text, "Größe€ 20");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_may_come_whole_the_next_time() {
    let whole = "first\nGröße\n.\n";
    // The body ends within a line, within a character, or before the end marker; by closing and by resetting.
    for (at, end) in [(8, End::Close), (9, End::Close), (13, End::Close), (9, End::Reset), (0, End::Reset)] {
        for reply in [Reply::status(200).with_body(whole), Reply::pieces([whole])] {
            let server = server([reply.cut_at(at, end)]);
            let fault = ask(transport(&server)).await.unwrap_err();
            assert_fault(&fault, Unreachable, &[&server.address().to_string(), "connection"]);
        }
    }
}

#[tokio::test]
async fn what_came_before_the_break_is_there() {
    let server = server([Reply::pieces(["one\ntwo\nthr", "ee"]).cut_at(11, End::Close)]);
    let provider = Http::new(Tiny(Capabilities::default()), Arc::new(transport(&server)));
    let answer = provider.call(&call(None)).await.unwrap();
    let deltas: Vec<_> = StreamExt::collect(answer).await;
    assert_eq!(deltas[..2], [Ok(Delta::Text("one".to_owned())), Ok(Delta::Text("two".to_owned()))]);
    let fault = deltas[2].clone().unwrap_err();
    assert_fault(&fault, Unreachable, &["after 11 bytes"]);
    assert_eq!((fault.status, deltas.len()), (Some(200), 3));
}

#[tokio::test]
async fn a_body_that_ends_without_its_end_marker_may_come_whole_the_next_time() {
    // The length of the body is not declared, so only the protocol notices that it is cut.
    let server = server([Reply::pieces(["one\ntw"]).with_framing(Framing::Close)]);
    assert_fault(&ask(transport(&server)).await.unwrap_err(), Unreachable, &["cut off", "end marker"]);
}

#[tokio::test]
async fn half_a_character_may_come_whole_the_next_time_and_half_a_one_within_a_line_not() {
    let server = server([Reply::pieces([b"one\n\xc3".to_vec()]), Reply::pieces([b"one\n\xc3\n".to_vec()])]);
    let transport = transport(&server);
    assert_fault(&ask(transport.clone()).await.unwrap_err(), Unreachable, &["within a character"]);
    assert_fault(&ask(transport).await.unwrap_err(), BadWire, &["UTF-8"]);
}

#[tokio::test]
async fn a_chunk_that_is_none_is_not_the_protocol() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = server([Reply::raw(format!("{head}nonsense\r\n"))]);
    assert_fault(&ask(transport(&server)).await.unwrap_err(), BadWire, &["malformed after 0 bytes"]);
}

#[tokio::test]
async fn an_endless_body_is_stopped_at_the_limit() {
    let server = server([Reply::endless(vec![b'x'; 64 * 1024])]);
    let fault = body(&transport(&server), None).await.unwrap_err();
    assert_fault(&fault, BadWire, &["longer than 67108864 bytes"]);
    let fault = body(&transport(&server).with_max_body_bytes(1000), None).await.unwrap_err();
    assert_fault(&fault, BadWire, &["longer than 1000 bytes"]);
}

#[tokio::test]
async fn a_body_as_long_as_the_limit_is_not_too_long() {
    let server = server([Reply::status(200).with_body([b'x'; 1000])]);
    assert_eq!(body(&transport(&server).with_max_body_bytes(1000), None).await.unwrap().len(), 1000);
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_packed_body_is_unpacked() {
    let server =
        server([Reply::status(200).with_header("content-encoding", "gzip").with_body(packed(b"one\n.\n"))]);
    assert_eq!(ask(transport(&server)).await.unwrap().text, "one");
    assert_eq!(server.received()[0].header("accept-encoding"), Some("gzip"));
}

#[tokio::test]
async fn a_body_that_is_small_only_while_packed_is_too_long() {
    let bomb = packed(&vec![0; 8_000_000]);
    assert!(bomb.len() < 20_000);
    let server = server([Reply::status(200).with_header("content-encoding", "gzip").with_body(bomb)]);
    let fault = body(&transport(&server).with_max_body_bytes(1_000_000), None).await.unwrap_err();
    assert_fault(&fault, BadWire, &["longer than 1000000 bytes"]);
}

#[tokio::test]
async fn a_body_that_is_not_packed_as_it_says_is_broken() {
    let server =
        server([Reply::status(200).with_header("content-encoding", "gzip").with_body("not gzip at all")]);
    assert_fault(&body(&transport(&server), None).await.unwrap_err(), BadWire, &["malformed after 0 bytes"]);
}
