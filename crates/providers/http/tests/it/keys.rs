//! Keys: their sources, and that they are never printed.

use formwork_core::FaultKind::Auth as NotAuthorised;
use formwork_http::{ConfigError, HttpTransport, Key};
use formwork_testkit::server::Reply;
use formwork_wire::{Auth, Transport};

use crate::support::{ask, assert_fault, server, transport};

const SECRET: &str = "sk-very-secret-0123456789";

fn key() -> Key {
    Key::new("the test", SECRET).unwrap()
}

#[test]
fn a_key_comes_from_the_environment() {
    // Cargo sets these variables for every test; setting one would be unsafe while other tests run.
    assert!(Key::from_env("CARGO_PKG_NAME").is_ok());
    for (variable, words) in [
        ("FORMWORK_NO_SUCH_KEY", "is not set"),
        ("CARGO_PKG_VERSION_PRE", "is empty"),
        ("CARGO_PKG_DESCRIPTION", "has white space in it"),
    ] {
        let error = Key::from_env(variable).unwrap_err().to_string();
        assert!(error.contains(&format!("`{variable}`")) && error.contains(words), "{error}");
        assert!(!error.contains("Formwork's requests"), "the value is not shown: {error}");
    }
}

#[test]
fn what_cannot_be_a_key_is_none() {
    for (secret, words) in [
        ("", "is empty"),
        (" \n", "is empty"),
        ("sk-1\n", "line break"),
        ("sk-1\r\nx-evil: 1", "line break"),
        ("sk 1", "white space"),
        ("sk-ä", "not ASCII"),
        ("sk-\u{7f}", "not ASCII"),
    ] {
        let error = Key::new("vault `main`", secret).unwrap_err();
        assert!(matches!(error, ConfigError::BadKey { .. }));
        let error = error.to_string();
        assert!(error.starts_with("the API key in vault `main`") && error.contains(words), "{error}");
        assert!(!error.contains("sk-1") && !error.contains("evil"), "{error}");
        assert_eq!(Key::of_header("vault `main`", secret).is_ok(), secret == "sk 1", "{secret:?}");
    }
}

#[test]
fn nothing_secret_is_in_debug() {
    let transport = HttpTransport::new("https://h/v1?key=in-the-query")
        .unwrap()
        .with_key(Auth::BEARER, key())
        .unwrap()
        .with_secret_header("x-tenant", Key::of_header("the test", "Basic tenant-secret").unwrap())
        .unwrap()
        .with_proxy("http://user:proxy-secret@proxy:8080")
        .unwrap();
    for text in [format!("{transport:?}"), format!("{transport:#?}"), format!("{:?}", key())] {
        for secret in [SECRET, "tenant-secret", "proxy-secret", "in-the-query"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    assert!(format!("{transport:?}").contains("https://h/v1"));
    let message = format!("{SECRET}, tenant-secret, proxy-secret and more");
    assert_eq!(transport.redact(&message), "[redacted], [redacted], [redacted] and more");
}

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_get_it_into_a_fault() {
    // The key is cut at the end of a quotation.
    for before in [0, 400, 475, 480, 485, 490] {
        let message = format!("{} wrong key {SECRET}", "x".repeat(before));
        let server = server([Reply::status(401).with_body(message)]);
        let fault = ask(transport(&server).with_key(Auth::BEARER, key()).unwrap()).await.unwrap_err();
        assert_fault(&fault, NotAuthorised, &["401"]);
        assert!(!fault.message.contains("very-secret"), "{fault}");
        assert_eq!(server.received()[0].header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    }
}

#[tokio::test]
async fn headers_are_sent_with_every_request() {
    let server = server([Reply::status(200).with_body("one\n.\n")]);
    let transport = transport(&server)
        .with_header("X-Team", "forms")
        .unwrap()
        .with_key(Auth { header: "x-api-key", prefix: "" }, key())
        .unwrap();
    for _ in 0..2 {
        ask(transport.clone()).await.unwrap();
    }
    for request in server.received() {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/chat"));
        assert_eq!(request.body, b"hello");
        assert_eq!(request.header("x-team"), Some("forms"));
        assert_eq!(request.header("x-api-key"), Some(SECRET));
        assert!(request.header("user-agent").unwrap().starts_with("formwork/"));
    }
    assert_eq!(server.connections(), 1, "connections are kept");
}

#[test]
fn headers_that_are_none_are_refused() {
    let transport = || HttpTransport::new("http://h").unwrap();
    for (name, value) in [("", "x"), ("two words", "x"), ("x-a", "line\r\nx-evil: 1"), ("x-a", "\u{0}")] {
        let error = transport().with_header(name, value).unwrap_err().to_string();
        assert!(error.contains("cannot be sent") && !error.contains("evil"), "{error}");
    }
    assert!(transport().with_key(Auth { header: "no header", prefix: "" }, key()).is_err());
    assert!(transport().with_key(Auth { header: "x", prefix: "a\nb" }, key()).is_err());
    assert!(transport().with_key(Auth { header: "X-Capital", prefix: "" }, key()).is_ok());
}
