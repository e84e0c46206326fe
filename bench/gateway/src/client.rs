//! A minimal HTTP/1.1 client, so that the client costs little CPU time.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::Failure;

/// A request of Chat Completions.
pub(crate) fn request(body: &Value) -> Vec<u8> {
    request_with(body, "any", "300")
}

/// A request with a key and a deadline in seconds.
pub(crate) fn request_with(body: &Value, key: &str, deadline: &str) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer {key}\r\nx-formwork-deadline: {deadline}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// A request or a response as it arrives: its bytes, and where its body begins.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
    body: usize,
}

impl Message {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    fn head(&self) -> Option<(usize, String)> {
        let end = self.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        Some((end + 4, String::from_utf8_lossy(&self.bytes[..end]).to_ascii_lowercase()))
    }

    /// Reads to the end of the head. Returns whether the body is chunked, and its length otherwise.
    async fn read_head(&mut self, socket: &mut TcpStream) -> Result<(bool, usize), Failure> {
        loop {
            if let Some((body, head)) = self.head() {
                self.body = body;
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                return match length {
                    Some(length) => Ok((false, length.trim().parse()?)),
                    None if head.contains("transfer-encoding: chunked") => Ok((true, 0)),
                    None => Err(format!("there is no length: {head}").into()),
                };
            }
            self.more(socket).await?;
        }
    }

    async fn more(&mut self, socket: &mut TcpStream) -> Result<(), Failure> {
        match socket.read_buf(&mut self.bytes).await? {
            0 => Err("the connection was closed".into()),
            _ => Ok(()),
        }
    }

    /// Reads to the end of the body.
    pub(crate) async fn read(&mut self, socket: &mut TcpStream) -> Result<(), Failure> {
        let (is_chunked, length) = self.read_head(socket).await?;
        while if is_chunked {
            !self.bytes.ends_with(b"\r\n0\r\n\r\n")
        } else {
            self.bytes.len() < self.body + length
        } {
            self.more(socket).await?;
        }
        Ok(())
    }
}

/// A connection, with one request at a time.
pub(crate) struct Connection {
    socket: TcpStream,
    message: Message,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, message: Message::default() })
    }

    /// Sends a request and reads its response.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.message.clear();
        self.socket.write_all(request).await?;
        self.message.read(&mut self.socket).await?;
        if !self.message.bytes.starts_with(b"HTTP/1.1 200 ") || !contains(self.message.body(), b"Lindqvist") {
            return Err(String::from_utf8_lossy(&self.message.bytes).into());
        }
        Ok(())
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        Ok(self.socket.write_all(request).await?)
    }

    /// Sends a request. Returns the status and the raw body of the response.
    pub(crate) async fn whole(&mut self, request: &[u8]) -> Result<(u16, String), Failure> {
        self.send(request).await?;
        // A stream that is cut off ends with the connection.
        let read = self.message.read(&mut self.socket).await;
        let head =
            self.message.bytes.get(9..12).and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
        match (head, read) {
            (Some(status), _) if self.message.body > 0 => {
                Ok((status, String::from_utf8_lossy(self.message.body()).into_owned()))
            }
            (_, Err(error)) => Err(error),
            _ => Err("no response".into()),
        }
    }

    /// Sends a request for a stream and reads its first event.
    pub(crate) async fn begin(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.socket.write_all(request).await?;
        self.message.read_head(&mut self.socket).await?;
        while !contains(self.message.body(), b"Maria") {
            self.message.more(&mut self.socket).await?;
        }
        Ok(())
    }

    /// Reads a stream to its end.
    pub(crate) async fn end(&mut self) -> Result<(), Failure> {
        while !self.message.bytes.ends_with(b"\r\n0\r\n\r\n") {
            self.message.more(&mut self.socket).await?;
        }
        if contains(self.message.body(), b"[DONE]") { Ok(()) } else { Err("a stream without its end".into()) }
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|some| some == text)
}

/// Sends requests over several connections, one request at a time on each. Returns the number of requests without a correct
/// response.
pub(crate) async fn load(
    address: &str,
    request: &[u8],
    connections: usize,
    requests: usize,
) -> Result<usize, Failure> {
    let local = LocalSet::new();
    let each = requests.div_ceil(connections);
    let request: Rc<[u8]> = request.into();
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let (address, request) = (address.to_owned(), Rc::clone(&request));
            local.spawn_local(async move {
                let mut done = 0;
                let load = async {
                    let mut connection = Connection::open(&address).await?;
                    for _ in 0..each {
                        connection.ask(&request).await?;
                        done += 1;
                    }
                    Ok::<_, Failure>(())
                };
                if let Err(error) = load.await {
                    eprintln!("after {done} requests: {error}");
                }
                each - done
            })
        })
        .collect();
    let mut errors = 0;
    local
        .run_until(async {
            for task in tasks {
                errors += task.await?;
            }
            Ok(errors)
        })
        .await
}

/// Sends requests at a constant rate. Returns the latencies in milliseconds, each from the time at which the request was due, and
/// the number of requests without a response.
pub(crate) async fn open_loop(
    address: &str,
    request: &[u8],
    rate: u32,
    time: Duration,
) -> Result<(Vec<f64>, usize), Failure> {
    let local = LocalSet::new();
    let request: Rc<[u8]> = request.into();
    let number = (time.as_secs_f64() * f64::from(rate)) as u32;
    let idle: Rc<std::cell::RefCell<VecDeque<Connection>>> = Rc::default();
    local
        .run_until(async {
            for _ in 0..8 {
                let connection = Connection::open(address).await?;
                idle.borrow_mut().push_back(connection);
            }
            let start = Instant::now();
            let mut tasks = Vec::new();
            for nth in 0..number {
                let due = start + Duration::from_secs(1) * nth / rate;
                // The runtime's timers have a resolution of one millisecond, so the last millisecond is spent spinning.
                if let Some(rest) = due.checked_duration_since(Instant::now() + Duration::from_millis(2)) {
                    tokio::time::sleep(rest).await;
                }
                while Instant::now() < due {
                    tokio::task::yield_now().await;
                }
                let (idle, request, address) = (Rc::clone(&idle), Rc::clone(&request), address.to_owned());
                tasks.push(tokio::task::spawn_local(async move {
                    let kept = idle.borrow_mut().pop_front();
                    let mut connection = match kept {
                        Some(connection) => connection,
                        None => Connection::open(&address).await?,
                    };
                    connection.ask(&request).await?;
                    let took = due.elapsed().as_secs_f64() * 1e3;
                    idle.borrow_mut().push_back(connection);
                    Ok::<_, Failure>(took)
                }));
            }
            let (mut times, mut errors) = (Vec::new(), 0);
            for task in tasks {
                match task.await? {
                    Ok(took) => times.push(took),
                    Err(error) => {
                        eprintln!("{error}");
                        errors += 1;
                    }
                }
            }
            Ok((times, errors))
        })
        .await
}
