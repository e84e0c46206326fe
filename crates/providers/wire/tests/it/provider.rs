use std::sync::Arc;

use formwork_core::{Delta, FaultKind, Provider};
use formwork_wire::Http;
use futures_util::StreamExt as _;

use crate::toy::{Line, Reply, Toy, call};

fn http(replies: impl IntoIterator<Item = Reply>) -> Http<Toy> {
    Http::new(Toy::default(), Arc::new(Line::new(replies)))
}

#[tokio::test]
async fn an_answer_is_put_together() {
    let http = http([Reply::ok(&["{\"a\"", ":\n1}\nend\nmore\n"])]).with_name("mine");
    let answer = http.call(&call("hi", None)).await.unwrap().collect().await.unwrap();
    assert_eq!((answer.text.as_str(), http.name()), ("{\"a\":1}", "mine"));
}

#[tokio::test]
async fn what_came_before_a_fault_is_kept() {
    let http = http([Reply::ok(&["some text\nbroken\nend\n"])]);
    let mut answer = http.call(&call("hi", None)).await.unwrap();
    assert_eq!(answer.next().await, Some(Ok(Delta::Text("some text".to_owned()))));
    let fault = answer.next().await.unwrap().unwrap_err();
    assert_eq!((fault.kind, fault.status), (FaultKind::Overloaded, Some(200)));
    assert!(fault.message.contains("[redacted]") && !fault.message.contains("sesame"));
    assert_eq!(answer.next().await, None);
}

#[tokio::test]
async fn an_end_without_its_mark_is_a_fault_that_may_pass() {
    for body in [&[][..], &["half"], &["whole\n"], &["whole\n", "[1, ", "\"no numb"], &["[1, \"no numb"]] {
        let http = http([Reply::ok(body)]);
        let fault = http.call(&call("hi", None)).await.unwrap().collect().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreachable, "{body:?}");
    }
    for body in [&["[1, \"no number\"]\nend\n"], &["[1, \"no number\"]"]] {
        let fault =
            http([Reply::ok(body)]).call(&call("hi", None)).await.unwrap().collect().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadWire, "{body:?}");
    }
}

#[tokio::test]
async fn faults_come_without_secrets() {
    let fault = http([]).call(&call("hi", None)).await.unwrap_err();
    assert!(fault.message.contains("[redacted]"), "{fault}");
    let refused = Reply(401, Vec::new(), vec![b"the key sesame is wrong".to_vec()]);
    let fault = http([refused]).call(&call("hi", None)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Auth);
    assert!(fault.message.contains("[redacted]") && !fault.message.contains("sesame"), "{fault}");
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let page = vec![b"<!DOCTYPE html><title>Welcome</title>".to_vec()];
    let reply = Reply(200, vec![("content-type", "text/html; charset=utf-8".to_owned())], page);
    let fault = http([reply]).call(&call("hi", None)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadWire);
    assert!(fault.message.contains("base URL") && fault.message.contains("Welcome"), "{fault}");
}

#[tokio::test]
async fn no_more_than_the_beginning_of_an_error_is_read() {
    let chunks = vec![vec![b'x'; 10_000]; 1_000];
    let fault = http([Reply(500, Vec::new(), chunks)]).call(&call("hi", None)).await.unwrap_err();
    assert!(fault.message.len() < 700);
}
