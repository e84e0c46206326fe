//! Runtimes of every kind, and no runtime.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use formwork_core::FaultKind::Unsupported;
use formwork_testkit::server::Reply;

use crate::support::{ask, assert_fault, server, transport};

#[test]
fn one_transport_serves_several_runtimes() {
    let server = server([Reply::status(200).with_body("one\n.\n")]);
    let transport = transport(&server);
    for threads in [1, 2, 1] {
        let mut builder = match threads {
            1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        // The connections of a runtime end with it.
        let runtime = builder.enable_all().build().unwrap();
        for _ in 0..3 {
            assert_eq!(runtime.block_on(ask(transport.clone())).unwrap().text, "one");
        }
    }
}

#[test]
fn without_a_runtime_there_is_a_fault() {
    let server = server([Reply::status(200)]);
    let mut asking = pin!(ask(transport(&server)));
    let Poll::Ready(done) = asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it waits for what never comes");
    };
    assert_fault(&done.unwrap_err(), Unsupported, &["Tokio runtime"]);
}
