//! The upstream server: Chat Completions with a constant response, sent at once.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::client::Message;
use crate::{Failure, plant, process};

/// The answer, which satisfies the schema.
const CONTENT: &str = r#"{\"name\": \"Maria Lindqvist\", \"age\": 34, \"city\": \"Lisbon\", \"job\": \"marine biologist\", \"tags\": [\"moved\", \"spring\"]}"#;

const EVENT: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Maria\"},\"finish_reason\":null}]}\n\n";

pub(crate) async fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    process::tell(listener.local_addr()?);
    let body = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m-1","choices":[{{"index":0,"message":{{"role":"assistant","content":"{CONTENT}","refusal":null}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":120,"completion_tokens":40,"total_tokens":160}}}}"#
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = if plant::is_planted("wrong") { answer.replace("Lindqvist", "Lundqvist") } else { answer };
    let answer: &'static [u8] = answer.leak().as_bytes();
    let held = Rc::new(RefCell::new(watch::Sender::new(())));
    let local = LocalSet::new();
    local
        .run_until(async {
            loop {
                let (socket, _) = listener.accept().await?;
                let held = Rc::clone(&held);
                tokio::task::spawn_local(async move {
                    // A client that disconnects ends only its own connection.
                    _ = talk(socket, answer, &held).await;
                });
            }
        })
        .await
}

async fn talk(
    mut socket: TcpStream,
    answer: &[u8],
    held: &RefCell<watch::Sender<()>>,
) -> Result<(), Failure> {
    socket.set_nodelay(true)?;
    let mut message = Message::default();
    loop {
        message.read(&mut socket).await?;
        let body = message.body();
        let has = |text: &str| body.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        if has("\"stream\":true") {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            socket.write_all(format!("{head}{:x}\r\n{EVENT}\r\n", EVENT.len()).as_bytes()).await?;
            if has("\"hold\"") {
                let mut released = held.borrow().subscribe();
                _ = released.changed().await;
            }
            if plant::is_planted("cut") {
                return Ok(());
            }
            let last = "data: [DONE]\n\n";
            socket.write_all(format!("{:x}\r\n{last}\r\n0\r\n\r\n", last.len()).as_bytes()).await?;
        } else {
            if has("\"release\"") {
                held.borrow().send_replace(());
            }
            socket.write_all(answer).await?;
        }
        message.clear();
    }
}
