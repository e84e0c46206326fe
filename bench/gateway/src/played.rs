//! The upstream server of the soak: a simulated Chat Completions server that responds, stalls, cuts streams off or fails as the
//! request demands, and counts the completions that are billed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::client::Message;
use crate::{Failure, plant, process};

/// The tokens of every completion.
pub(crate) const TOKENS: (u64, u64) = (100, 50);

pub(crate) async fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    process::tell(listener.local_addr()?);
    let paid = Rc::new(Cell::new(0_u64));
    let local = LocalSet::new();
    local
        .run_until(async {
            loop {
                let (socket, _) = listener.accept().await?;
                let paid = Rc::clone(&paid);
                tokio::task::spawn_local(async move {
                    // A client that disconnects ends only its own connection.
                    _ = talk(socket, &paid).await;
                });
            }
        })
        .await
}

async fn talk(mut socket: TcpStream, paid: &Cell<u64>) -> Result<(), Failure> {
    socket.set_nodelay(true)?;
    let mut message = Message::default();
    loop {
        message.read(&mut socket).await?;
        let body = String::from_utf8_lossy(message.body()).into_owned();
        message.clear();
        let word = |name: &str| -> &str {
            let rest = body.split_once(name).map_or("", |(_, rest)| rest);
            rest.split(';').next().unwrap_or_default()
        };
        let (act, id) = (word("act="), word("id="));
        let nth = paid.get();
        let is_hit = nth % 20 == 7;
        let id = if is_hit && plant::is_planted("cross") { "Q0Q" } else { id };
        let act = if is_hit && act == "right" && plant::is_planted("lose") { "stall" } else { act };
        // This call is not reported to the client.
        paid.set(nth + u64::from(is_hit && plant::is_planted("charge")));
        let is_again = body.contains("\"assistant\"");
        match act {
            "count" => {
                let text = format!("{{\"paid\":{}}}", paid.get());
                socket.write_all(&document(200, &text)).await?;
                continue;
            }
            "fail" => {
                socket.write_all(&document(500, "{\"error\":{\"message\":\"played\"}}")).await?;
                continue;
            }
            "stall" => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                return Ok(());
            }
            _ => {}
        }
        let age = if act == "mend" && !is_again { "\\\"old\\\"" } else { "34" };
        // The schema may be in the prompt: after a completion that violates it, the gateway uses a weaker output mode.
        let content = if word("kind=") == "contract" {
            format!("{{\\\"id\\\": \\\"{id}\\\", \\\"age\\\": {age}}}")
        } else {
            format!("This is for {id}.")
        };
        let usage = format!(
            "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{}}}",
            TOKENS.0,
            TOKENS.1,
            TOKENS.0 + TOKENS.1
        );
        if !body.contains("\"stream\":true") {
            let text = format!(
                "{{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m-1\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{content}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}"
            );
            socket.write_all(&document(200, &text)).await?;
            paid.set(paid.get() + 1);
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        socket.write_all(head.as_bytes()).await?;
        for piece in content.split_inclusive(' ') {
            let event = format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}},\"finish_reason\":null}}]}}\n\n"
            );
            socket.write_all(&chunk(&event)).await?;
            if act == "cut" {
                return Ok(());
            }
            if act == "leave" {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
        let last = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
        );
        let mut bytes = chunk(&last);
        bytes.extend_from_slice(b"0\r\n\r\n");
        socket.write_all(&bytes).await?;
        paid.set(paid.get() + 1);
    }
}

fn document(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Played\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
