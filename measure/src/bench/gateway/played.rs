//! The upstream server of the soak: a simulated Chat Completions server that responds, stalls, cuts streams off or fails as the
//! request demands, and counts the completions that are billed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::plant::is_planted;
use super::upstream::STREAM;
use crate::Failure;
use crate::bench::client::{Message, accept, chunk, document};

/// The tokens of every completion.
pub(in crate::bench) const TOKENS: (u64, u64) = (100, 50);

pub(in crate::bench) async fn serve() -> Result<(), Failure> {
    let paid = Rc::new(Cell::new(0));
    accept(|socket| talk(socket, Rc::clone(&paid))).await
}

async fn talk(mut socket: TcpStream, paid: Rc<Cell<u64>>) -> Result<(), Failure> {
    let mut message = Message::default();
    loop {
        message.read(&mut socket).await?;
        let body = String::from_utf8_lossy(message.body()).into_owned();
        let word = |name: &str| -> &str {
            let rest = body.split_once(name).map_or("", |(_, rest)| rest);
            rest.split(';').next().unwrap_or_default()
        };
        let (act, id) = (word("act="), word("id="));
        let nth = paid.get();
        let is_hit = nth % 20 == 7;
        let id = if is_hit && is_planted("cross") { "Q0Q" } else { id };
        let act = if is_hit && act == "right" && is_planted("lose") { "stall" } else { act };
        // This call is not reported to the client.
        paid.set(nth + u64::from(is_hit && is_planted("charge")));
        let is_again = body.contains("\"assistant\"");
        let text = match act {
            "count" => Some((200, json!({"paid": paid.get()}))),
            "fail" => Some((500, json!({"error": {"message": "played"}}))),
            "stall" => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                return Ok(());
            }
            _ => None,
        };
        if let Some((status, text)) = text {
            socket.write_all(&of_json(status, &text)).await?;
            continue;
        }
        // The schema may be in the prompt: after a completion that violates it, the gateway uses a weaker output mode.
        let content = if word("kind=") == "contract" {
            let age = if act == "mend" && !is_again { "\"old\"" } else { "34" };
            format!("{{\"id\": \"{id}\", \"age\": {age}}}")
        } else {
            format!("This is for {id}.")
        };
        let (input, output) = TOKENS;
        let usage =
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
        let choice = |name: &str, part: serde_json::Value, finish: Option<&str>| json!([{"index": 0, name: part, "finish_reason": finish}]);
        if !body.contains("\"stream\":true") {
            let choices = choice("message", json!({"role": "assistant", "content": content}), Some("stop"));
            let text = json!({
                "id": "c", "object": "chat.completion", "created": 1, "model": "m-1", "choices": choices, "usage": usage,
            });
            socket.write_all(&of_json(200, &text)).await?;
            paid.set(paid.get() + 1);
            continue;
        }
        socket.write_all(STREAM).await?;
        for piece in content.split_inclusive(' ') {
            let event = json!({"choices": choice("delta", json!({"content": piece}), None)});
            socket.write_all(&chunk(&format!("data: {event}\n\n"))).await?;
            if act == "cut" {
                return Ok(());
            }
            if act == "leave" {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
        let last = json!({"choices": choice("delta", json!({}), Some("stop")), "usage": usage});
        let last = chunk(&format!("data: {last}\n\ndata: [DONE]\n\n"));
        socket.write_all(&[last, chunk("")].concat()).await?;
        paid.set(paid.get() + 1);
    }
}

fn of_json(status: u16, body: &serde_json::Value) -> Vec<u8> {
    document(status, "content-type: application/json\r\n", &body.to_string())
}
