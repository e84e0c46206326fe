//! A tiny protocol, and functions that call it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{
    Call, Capabilities, Completion, Delta, End, Fault, FaultKind, Finish, Lowered, Message, Provider, Time,
    Usage,
};
use formwork_http::HttpTransport;
use formwork_testkit::server::{Reply, Server};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, Decoder, Deltas, Framed, Http, Messages, Ndjson, Transport, Wire};

/// Long enough for any machine, short enough for a test that waits for it.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// `text` in every line, `.` in the last one.
#[derive(Debug)]
pub(crate) struct Tiny(pub(crate) Capabilities);

#[async_trait]
impl Wire for Tiny {
    fn name(&self) -> &str {
        "tiny"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        let body = Bytes::from(call.messages[0].text());
        Request::post("/chat").body(body).map_err(|_| Fault::new(FaultKind::BadRequest, "no request"))
    }

    fn decoder(&self, _: &Call, _: &Parts) -> Box<dyn Decoder> {
        Box::new(Framed::<Ndjson, _>::new(Lines))
    }
}

struct Lines;

impl Messages for Lines {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        out.push_back(match text {
            "." => Delta::End(End::new(Finish::Stop, Usage::default())),
            text => Delta::Text(text.to_owned()),
        });
        Ok(())
    }
}

/// Returns a call with one message.
pub(crate) fn call(deadline: Option<Time>) -> Call {
    Call::new(vec![Message::user("hello")], Lowered::default()).with_deadline(deadline)
}

pub(crate) fn server(replies: impl IntoIterator<Item = Reply>) -> Server {
    Server::start(replies).unwrap()
}

pub(crate) fn transport(server: &Server) -> HttpTransport {
    HttpTransport::new(&server.url()).unwrap()
}

/// Returns a whole answer in the tiny protocol.
pub(crate) async fn ask(transport: HttpTransport) -> Result<Completion, Fault> {
    ask_by(transport, None).await
}

pub(crate) async fn ask_by(transport: HttpTransport, deadline: Option<Time>) -> Result<Completion, Fault> {
    let provider = Http::new(Tiny(Capabilities::default()), Arc::new(transport));
    provider.call(&call(deadline)).await?.collect().await
}

/// Returns the response to a GET request.
pub(crate) async fn get(
    transport: &HttpTransport,
    path: &str,
    deadline: Option<Time>,
) -> Result<Response<Body>, Fault> {
    transport.send(Request::get(path).body(Bytes::new()).unwrap(), deadline).await
}

/// Returns the whole body of the response to a GET request.
pub(crate) async fn body(transport: &HttpTransport, deadline: Option<Time>) -> Result<Vec<u8>, Fault> {
    get(transport, "/", deadline).await?.into_body().collect(usize::MAX).await
}

/// Asserts the class of a fault, and that its message contains all these words.
#[track_caller]
pub(crate) fn assert_fault(fault: &Fault, kind: FaultKind, words: &[&str]) {
    assert_eq!(fault.kind, kind, "{fault}");
    for word in words {
        assert!(fault.message.contains(word), "{word:?} is not in {:?}", fault.message);
    }
    assert!(!fault.message.contains('\n'), "{:?}", fault.message);
}
