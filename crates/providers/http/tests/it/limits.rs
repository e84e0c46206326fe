//! Slow servers. The limits are short and the servers far slower, so that no test depends on the speed of the machine.

use std::time::{Duration, Instant};

use formwork_core::FaultKind::Timeout;
use formwork_core::{RateLimit, Time};
use formwork_testkit::server::{End, Reply, Server};
use formwork_wire::Transport;

use crate::support::{SHORT, ask, ask_by, assert_fault, body, server, transport};

/// Returns a time shortly after now, by the transport's clock.
fn soon(server: &Server) -> Option<Time> {
    Some(transport(server).now().after(SHORT))
}

#[tokio::test]
async fn a_server_that_never_begins_runs_into_the_first_byte_timeout() {
    let server = server([Reply::silent()]);
    let fault = ask(transport(&server).with_first_byte_timeout(SHORT)).await.unwrap_err();
    assert_fault(&fault, Timeout, &["first-byte timeout", "200ms", &server.address().to_string()]);
}

/// A wait has a lower bound; the others end long before the pause, on any machine.
#[tokio::test]
async fn a_request_waits_for_the_end_of_a_pause_that_the_headers_before_it_ask_for() {
    let seconds = Duration::from_secs;
    for (left, reset, deadline, pause, waits) in [
        ("0", "700ms", None, Some(Duration::from_millis(700)), true),
        // Something is left.
        ("1", "19s", None, None, false),
        // The deadline is before the end of the pause, or the pause is long: the server decides.
        ("0", "19s", Some(seconds(15)), Some(seconds(19)), false),
        ("0", "1h", None, Some(seconds(3600)), false),
    ] {
        let limited = Reply::status(200)
            .with_header("x-ratelimit-remaining-requests", left)
            .with_header("x-ratelimit-reset-requests", reset)
            .with_body("one\n.\n");
        let free =
            Reply::status(200).with_header("x-ratelimit-remaining-requests", "9").with_body("two\n.\n");
        let server = server([limited, free]);
        let transport = transport(&server);
        let limits = ask(transport.clone()).await.unwrap().limits;
        assert_eq!(RateLimit::pause(&limits), pause, "{left} {reset}");
        let started = Instant::now();
        let until = deadline.map(|deadline| transport.now().after(deadline));
        let second = ask_by(transport.clone(), until).await.unwrap();
        assert_eq!((second.text.as_str(), RateLimit::pause(&second.limits)), ("two", None));
        let passed = started.elapsed();
        let is_right = if waits { passed >= Duration::from_millis(500) } else { passed < seconds(15) };
        assert!(is_right, "{left} {reset}: {passed:?}");
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_runs_into_the_idle_timeout() {
    let server = server([Reply::status(200).with_body("one\ntwo\n.\n").cut_at(5, End::Stall)]);
    let fault = ask(transport(&server).with_idle_timeout(SHORT)).await.unwrap_err();
    assert_fault(&fault, Timeout, &["idle timeout", "200ms", "5 bytes"]);
}

#[tokio::test]
async fn the_deadline_holds_before_the_head() {
    let server = server([Reply::silent()]);
    let fault = ask_by(transport(&server), soon(&server)).await.unwrap_err();
    assert_fault(&fault, Timeout, &["sent no response", "deadline"]);
}

#[tokio::test]
async fn the_deadline_holds_within_the_body() {
    let server = server([Reply::status(200).with_body("one\ntwo\n.\n").cut_at(5, End::Stall)]);
    let fault = ask_by(transport(&server), soon(&server)).await.unwrap_err();
    assert_fault(&fault, Timeout, &["incomplete by the deadline", "5 bytes"]);
}

#[tokio::test]
async fn the_deadline_holds_against_one_byte_at_a_time() {
    // The server is never idle for long, and needs a quarter of an hour for the body.
    let server = server([Reply::slow("x".repeat(20_000), Duration::from_millis(50))]);
    let fault = ask_by(transport(&server).with_idle_timeout(Duration::from_secs(60)), soon(&server)).await;
    // On a busy machine the deadline may pass before the head arrives.
    assert_fault(&fault.unwrap_err(), Timeout, &["by the deadline"]);
}

#[tokio::test]
async fn the_deadline_holds_against_a_body_that_always_comes() {
    let server = server([Reply::endless(vec![b'x'; 16])]);
    let started = Instant::now();
    let transport = transport(&server).with_max_body_bytes(usize::MAX);
    let fault = body(&transport, soon(&server)).await.unwrap_err();
    assert_fault(&fault, Timeout, &["incomplete by the deadline"]);
    // The deadline is a whole number of milliseconds, so it may pass before `SHORT` has.
    assert!(started.elapsed() >= SHORT / 2);
}

/// Tokio's clock is paused and jumps to the next limit.
#[tokio::test(start_paused = true)]
async fn a_call_may_take_as_long_as_its_deadline_allows() {
    let server = server([Reply::silent()]);
    let transport = transport(&server);
    for minutes in [1, 4, 6, 600] {
        let until = transport.now().after(Duration::from_secs(60 * minutes));
        let fault = ask_by(transport.clone(), Some(until)).await.unwrap_err();
        assert_fault(&fault, Timeout, &["sent no response", "deadline"]);
    }
    let fault = ask(transport).await.unwrap_err();
    assert_fault(&fault, Timeout, &["300s (first-byte timeout)"]);
}

#[tokio::test]
async fn nothing_is_sent_after_the_deadline() {
    let server = server([Reply::status(200)]);
    let fault = ask_by(transport(&server), Some(Time(1))).await.unwrap_err();
    assert_fault(&fault, Timeout, &["the deadline passed before"]);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_reader_that_takes_its_time_is_not_the_servers_fault() {
    let server = server([Reply::status(200).with_body("one\n.\n")]);
    let transport = transport(&server).with_idle_timeout(SHORT);
    let response = crate::support::get(&transport, "/", None).await.unwrap();
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(response.into_body().collect(99).await.unwrap(), b"one\n.\n");
}

#[tokio::test]
async fn limits_that_no_clock_can_count_to_are_none() {
    let server = server([Reply::status(200).with_body("one\n.\n")]);
    let transport = transport(&server)
        .with_first_byte_timeout(Duration::MAX)
        .with_idle_timeout(Duration::MAX)
        .with_connect_timeout(Duration::MAX);
    assert_eq!(ask_by(transport, Some(Time(u64::MAX))).await.unwrap().text, "one");
}
