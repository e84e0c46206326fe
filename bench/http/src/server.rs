//! A minimal HTTP/1.1 server with persistent connections and precomputed responses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Failure;
use crate::wires::{WIRES, chat_events, chat_piece};

/// The responses by path: `/WIRE/…` responds at once, `/held/chat/…` stops after the first half until `/release`, `/flood/N/chat/…`
/// sends a text of N bytes. `/head` and `/last` return the head and the body of the last request, `/sent` the number of bytes of
/// the flood sent so far.
struct Canned {
    /// The document and the stream of each protocol.
    wires: Vec<(&'static str, [Vec<u8>; 2])>,
    /// The events of a stream of Chat Completions, one by one.
    events: Vec<Vec<u8>>,
    drop: Vec<u8>,
    last: Mutex<(String, Vec<u8>)>,
    sent: AtomicU64,
    released: watch::Sender<bool>,
}

/// Returns the head of a stream.
fn stream_head(media_type: &str) -> Vec<u8> {
    let head = "x-request-id: req_7f3a\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\n{head}").into_bytes()
}

/// The delay between two tokens of a paced stream.
const TOKEN: Duration = Duration::from_millis(10);

/// The length of the text in each event of a flood in bytes.
const PIECE: usize = 4096;

pub(crate) async fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    // The parent process holds the other end of standard input. Its end of file means that the parent is gone.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let canned = Arc::new(Canned::new());
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let canned = Arc::clone(&canned);
        // A client that disconnects does not affect the others.
        tokio::spawn(async move { canned.talk(socket).await });
    }
}

impl Canned {
    fn new() -> Self {
        let wires = WIRES.iter().map(|wire| {
            let chunks: Vec<Vec<u8>> = (wire.events)().iter().map(|event| chunk(event)).collect();
            let head = stream_head(wire.framing.media_type());
            let document = whole("application/json", (wire.document)().as_bytes());
            (wire.name, [document, [head, chunks.concat(), END.to_vec()].concat()])
        });
        Self {
            wires: wires.collect(),
            events: chat_events().iter().map(|event| chunk(event)).collect(),
            drop: chunk(&chat_piece(&"x-y.".repeat(PIECE / 4))),
            last: Mutex::default(),
            sent: AtomicU64::new(0),
            released: watch::Sender::new(false),
        }
    }

    async fn talk(&self, mut socket: TcpStream) -> std::io::Result<()> {
        let mut buffer = Vec::with_capacity(16 * 1024);
        while let Some((head, body)) = request(&mut socket, &mut buffer).await? {
            let path = head.split(' ').nth(1).unwrap_or_default();
            match path.split('/').nth(1).unwrap_or_default() {
                "head" => {
                    socket.write_all(&whole("text/plain", self.last().0.as_bytes())).await?;
                    continue;
                }
                "last" => {
                    socket.write_all(&whole("application/json", &self.last().1)).await?;
                    continue;
                }
                "sent" => {
                    let sent = self.sent.load(Ordering::Relaxed).to_string();
                    socket.write_all(&whole("text/plain", sent.as_bytes())).await?;
                }
                "release" => {
                    self.released.send_replace(true);
                    socket.write_all(&whole("text/plain", b"released")).await?;
                }
                "held" => {
                    let (first, second) = self.events.split_at(self.events.len() / 2);
                    socket.write_all(&stream_head("text/event-stream")).await?;
                    // The pace of a fast model.
                    for event in first {
                        tokio::time::sleep(TOKEN).await;
                        socket.write_all(event).await?;
                    }
                    let _ = self.released.subscribe().wait_for(|released| *released).await;
                    socket.write_all(&[second.concat(), END.to_vec()].concat()).await?;
                }
                "flood" => {
                    let most = path.split('/').nth(2).and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
                    self.flood(&mut socket, most).await?;
                }
                name => {
                    let Some((_, responses)) = self.wires.iter().find(|(wire, _)| *wire == name) else {
                        return Ok(());
                    };
                    // Gemini has a path of its own for streams.
                    let is_stream = path.ends_with("alt=sse") || memmem(&body, b"\"stream\":true");
                    socket.write_all(&responses[usize::from(is_stream)]).await?;
                }
            }
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (head, body);
        }
        Ok(())
    }

    fn last(&self) -> (String, Vec<u8>) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn flood(&self, socket: &mut TcpStream, most: u64) -> std::io::Result<()> {
        socket.write_all(&stream_head("text/event-stream")).await?;
        let mut sent = 0;
        while sent < most {
            socket.write_all(&self.drop).await?;
            sent += self.drop.len() as u64;
            self.sent.store(sent, Ordering::Relaxed);
        }
        let end = &self.events[self.events.len().saturating_sub(3)..];
        socket.write_all(&[end.concat(), END.to_vec()].concat()).await
    }
}

/// Encodes a chunk (RFC 9112, section 7.1).
fn chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

const END: &[u8] = b"0\r\n\r\n";

fn whole(media_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\nx-request-id: req_7f3a\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Reads the head and the body of the next request of a connection. `None`: the connection has ended.
async fn request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Option<(String, Vec<u8>)>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            let whole = end + 4 + length.unwrap_or(0);
            if buffer.len() >= whole {
                let body = buffer[end + 4..whole].to_vec();
                buffer.drain(..whole);
                return Ok(Some((head, body)));
            }
        }
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn memmem(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
