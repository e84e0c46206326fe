//! A server with precomputed responses.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::canned::{Completion, chat, chat_piece};
use super::wires::WIRES;
use crate::Failure;
use crate::bench::client::{Message, accept, chunk, contains, document};

/// The responses by path: `/WIRE/…` responds at once, `/held/chat/…` stops after the first half until `/release`, `/flood/N/chat/…`
/// sends a text of N bytes. `/head` and `/last` return the head and the body of the last request.
struct Server {
    /// The document and the stream of each protocol.
    wires: Vec<(&'static str, [Vec<u8>; 2])>,
    /// The events of a stream of Chat Completions, one by one.
    events: Vec<Vec<u8>>,
    drop: Vec<u8>,
    last: RefCell<(String, String)>,
    released: watch::Sender<bool>,
    sent: Cell<u64>,
}

/// Returns the head of a stream.
fn stream_head(media_type: &str) -> Vec<u8> {
    let head = "x-request-id: req_7f3a\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\n{head}").into_bytes()
}

fn whole(media_type: &str, body: &str) -> Vec<u8> {
    document(200, &format!("content-type: {media_type}\r\nx-request-id: req_7f3a\r\n"), body)
}

/// The delay between two tokens of a paced stream.
const TOKEN: Duration = Duration::from_millis(10);

/// The length of the text in each event of a flood in bytes.
const PIECE: usize = 4096;

pub(in crate::bench) async fn serve() -> Result<(), Failure> {
    let wires = WIRES.iter().map(|wire| {
        let canned = (wire.canned)(&Completion::valid());
        let chunks: Vec<Vec<u8>> = canned.events.iter().map(|event| chunk(event)).collect();
        let head = stream_head(wire.framing.media_type());
        let document = whole("application/json", &canned.document);
        (wire.name, [document, [head, chunks.concat(), chunk("")].concat()])
    });
    let server = Rc::new(Server {
        wires: wires.collect(),
        events: chat(&Completion::valid()).events.iter().map(|event| chunk(event)).collect(),
        drop: chunk(&chat_piece(&"x-y.".repeat(PIECE / 4))),
        last: RefCell::default(),
        released: watch::Sender::new(false),
        sent: Cell::new(0),
    });
    accept(|socket| talk(socket, Rc::clone(&server))).await
}

async fn talk(mut socket: TcpStream, server: Rc<Server>) -> Result<(), Failure> {
    let mut message = Message::default();
    loop {
        message.read(&mut socket).await?;
        let head = String::from_utf8_lossy(message.head()).into_owned();
        let body = String::from_utf8_lossy(message.body()).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let mut names = path.split('/').skip(1);
        match names.next().unwrap_or_default() {
            "head" => {
                let head = whole("text/plain", &server.last.borrow().0);
                socket.write_all(&head).await?;
            }
            "last" => {
                let body = whole("application/json", &server.last.borrow().1);
                socket.write_all(&body).await?;
            }
            "sent" => socket.write_all(&whole("text/plain", &server.sent.get().to_string())).await?,
            "release" => {
                server.released.send_replace(true);
                socket.write_all(&whole("text/plain", "released")).await?;
            }
            "held" => {
                let (first, second) = server.events.split_at(server.events.len() / 2);
                socket.write_all(&stream_head("text/event-stream")).await?;
                // The pace of a fast model.
                for event in first {
                    tokio::time::sleep(TOKEN).await;
                    socket.write_all(event).await?;
                }
                let _ = server.released.subscribe().wait_for(|released| *released).await;
                socket.write_all(&[second.concat(), chunk("")].concat()).await?;
            }
            "flood" => {
                let most = names.next().unwrap_or_default().parse()?;
                server.flood(&mut socket, most).await?;
            }
            name => {
                let known = server.wires.iter().find(|(wire, _)| *wire == name);
                let (_, responses) = known.ok_or("an unknown path")?;
                // Gemini has a path of its own for streams.
                let is_stream = path.ends_with("alt=sse") || contains(message.body(), "\"stream\":true");
                socket.write_all(&responses[usize::from(is_stream)]).await?;
                *server.last.borrow_mut() = (head, body);
            }
        }
    }
}

impl Server {
    async fn flood(&self, socket: &mut TcpStream, most: u64) -> Result<(), Failure> {
        socket.write_all(&stream_head("text/event-stream")).await?;
        self.sent.set(0);
        while self.sent.get() < most {
            socket.write_all(&self.drop).await?;
            self.sent.set(self.sent.get() + self.drop.len() as u64);
        }
        let end = &self.events[self.events.len().saturating_sub(3)..];
        Ok(socket.write_all(&[end.concat(), chunk("")].concat()).await?)
    }
}
