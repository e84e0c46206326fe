//! Downloads from a model hub.

use std::io;

use formwork_core::FaultKind::{Auth as NotAuthorised, BadWire, Timeout, Unreachable, Unsupported};
use formwork_core::{Fault, FaultKind};
use formwork_http::{DownloadError, HttpTransport, Key, MOST_REDIRECTS};
use formwork_testkit::server::{End, Reply, Server};
use formwork_wire::Auth;

use crate::support::{SHORT, assert_fault, server, transport};

const SECRET: &str = "hf-very-secret-0123456789";

fn with_key(server: &Server) -> HttpTransport {
    let key = Key::new("the test", SECRET).unwrap();
    transport(server).with_key(Auth::BEARER, key).unwrap().with_header("x-team", "forms").unwrap()
}

async fn fault(transport: &HttpTransport) -> Fault {
    let mut file = Vec::new();
    match transport.download("/file", &mut file, |_, _| {}).await.unwrap_err() {
        DownloadError::Fault(fault) => fault,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_file_comes_as_it_is_and_progress_is_told() {
    let whole: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
    let server = server([Reply::status(200).with_body(whole.clone())]);
    let (mut file, mut progress) = (Vec::new(), Vec::new());
    let length =
        with_key(&server).download("m/model.gguf", &mut file, |done, all| progress.push((done, all))).await;
    assert_eq!((length.unwrap(), &file), (100_000, &whole));
    assert_eq!((progress[0], *progress.last().unwrap()), ((0, Some(100_000)), (100_000, Some(100_000))));
    let request = &server.received()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/m/model.gguf"));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
}

#[tokio::test]
async fn the_key_stays_with_the_first_server() {
    let storage = server([Reply::status(200).with_body("weights")]);
    // The first redirect leads to the same server, as for a renamed model; the second to the storage.
    let hub = server([Reply::redirect("/new/file?x=1"), Reply::redirect(format!("{}/blob", storage.url()))]);
    let mut file = Vec::new();
    with_key(&hub).download("/file", &mut file, |_, _| {}).await.unwrap();
    assert_eq!(file, b"weights");
    let paths: Vec<_> = hub.received().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/file", "/new/file?x=1"]);
    assert!(hub.received().iter().all(|request| request.header("authorization").is_some()));
    let there = &storage.received()[0];
    assert_eq!(
        (there.path.as_str(), there.header("authorization"), there.header("x-team")),
        ("/blob", None, None)
    );
    assert!(!format!("{there:?}").contains(SECRET));
}

#[test]
fn a_download_may_be_spawned() {
    const fn spawned<T: Send>(_: &T) {}
    let transport = HttpTransport::new("http://h").unwrap();
    let mut file = Vec::new();
    spawned(&transport.download("/file", &mut file, |_, _| {}));
}

#[tokio::test]
async fn redirects_end() {
    let server = server([Reply::redirect("/again")]);
    let fault = fault(&transport(&server)).await;
    assert_fault(&fault, BadWire, &["redirects more than", &MOST_REDIRECTS.to_string()]);
    assert_eq!(server.received().len(), MOST_REDIRECTS + 1);
}

#[tokio::test]
async fn redirects_to_what_is_not_the_web_are_not_followed() {
    for to in ["file:///etc/passwd", "ftp://h/x", "http://"] {
        let server = server([Reply::redirect(to)]);
        assert_fault(&fault(&transport(&server)).await, BadWire, &["redirects to"]);
    }
    let server = server([Reply::status(302)]);
    assert_fault(&fault(&transport(&server)).await, BadWire, &["redirects to"]);
}

#[tokio::test]
async fn an_error_is_not_written() {
    for (reply, kind) in [
        (Reply::status(404).with_body("no such model"), Unsupported),
        (Reply::status(401).with_body(format!("not with {SECRET}")), NotAuthorised),
    ] {
        let server = server([reply]);
        let mut file = Vec::new();
        let error = with_key(&server).download("/file", &mut file, |_, _| {}).await.unwrap_err();
        let DownloadError::Fault(fault) = &error else { panic!("{error}") };
        assert_eq!((fault.kind, file.len()), (kind, 0));
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_breaks_off_or_stalls_is_a_fault() {
    let cases: [(End, FaultKind, &str); 2] =
        [(End::Close, Unreachable, "after 3 bytes"), (End::Stall, Timeout, "idle timeout")];
    for (end, kind, words) in cases {
        let server = server([Reply::status(200).with_body("weights").cut_at(3, end)]);
        assert_fault(&fault(&transport(&server).with_idle_timeout(SHORT)).await, kind, &[words]);
    }
}

#[tokio::test]
async fn a_full_disk_is_told_apart() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let server = server([Reply::status(200).with_body("weights")]);
    let error = transport(&server).download("/file", &mut Full, |_, _| {}).await.unwrap_err();
    assert!(
        matches!(error, DownloadError::Write(_)) && error.to_string().contains("no space left"),
        "{error}"
    );
}
