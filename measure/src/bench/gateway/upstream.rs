//! The upstream server: Chat Completions with a constant response, sent at once.

use std::rc::Rc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::plant::is_planted;
use crate::Failure;
use crate::bench::client::{Message, accept, chunk, contains, document};

/// The answer, which satisfies the schema.
const CONTENT: &str = r#"{\"name\": \"Maria Lindqvist\", \"age\": 34, \"city\": \"Lisbon\", \"job\": \"marine biologist\", \"tags\": [\"moved\", \"spring\"]}"#;

const EVENT: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Maria\"},\"finish_reason\":null}]}\n\n";

/// The head of a stream.
pub(super) const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The response, and the streams that are held open until a request releases them.
struct Upstream {
    answer: Vec<u8>,
    held: watch::Sender<()>,
}

pub(in crate::bench) async fn serve() -> Result<(), Failure> {
    let body = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m-1","choices":[{{"index":0,"message":{{"role":"assistant","content":"{CONTENT}","refusal":null}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":120,"completion_tokens":40,"total_tokens":160}}}}"#
    );
    let body = if is_planted("wrong") { body.replace("Lindqvist", "Lundqvist") } else { body };
    let answer = document(200, "content-type: application/json\r\n", &body);
    let upstream = Rc::new(Upstream { answer, held: watch::Sender::new(()) });
    accept(|socket| talk(socket, Rc::clone(&upstream))).await
}

async fn talk(mut socket: TcpStream, upstream: Rc<Upstream>) -> Result<(), Failure> {
    let mut message = Message::default();
    loop {
        message.read(&mut socket).await?;
        let has = |text| contains(message.body(), text);
        if has("\"stream\":true") {
            socket.write_all(&[STREAM, &chunk(EVENT)].concat()).await?;
            if has("\"hold\"") {
                _ = upstream.held.subscribe().changed().await;
            }
            if is_planted("cut") {
                return Ok(());
            }
            socket.write_all(&[chunk("data: [DONE]\n\n"), chunk("")].concat()).await?;
        } else {
            if has("\"release\"") {
                upstream.held.send_replace(());
            }
            socket.write_all(&upstream.answer).await?;
        }
    }
}
