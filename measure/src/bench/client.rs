//! A minimal HTTP/1.1 client, so that the client costs little CPU time, and the parts of the servers that respond at once.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::measure::{Pair, Side, rounds};
use super::process::{self, Server};
use crate::Failure;

/// Returns a POST request with JSON. `headers` are further lines of its head, each with its end.
pub(super) fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Sends a GET request, and returns the body of the response.
pub(crate) async fn get(address: &str, path: &str) -> Result<String, Failure> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let (status, body) = Connection::open(address).await?.whole(request.as_bytes()).await?;
    if status == 200 { Ok(body) } else { Err(format!("{path}: status {status}: {body}").into()) }
}

/// Returns a response with its length.
pub(super) fn document(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Played\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// Encodes a chunk (RFC 9112, section 7.1). An empty one is the last.
pub(super) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Listens on a free port of this machine, reports it to the parent process, and answers each connection by a task of its own.
pub(super) async fn accept<F>(talk: impl Fn(TcpStream) -> F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + 'static,
{
    let listener = process::listen().await?;
    let accepting = async {
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            // A client that disconnects ends only its own connection.
            tokio::task::spawn_local(talk(socket));
        }
    };
    LocalSet::new().run_until(accepting).await
}

/// A request or a response as it arrives: its bytes, and where its body begins.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
    body: usize,
}

impl Message {
    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[..self.body.saturating_sub(4)]
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// Reads to the end of the head. Returns the length of the body, or `None` if it is chunked.
    async fn read_head(&mut self, socket: &mut TcpStream) -> Result<Option<usize>, Failure> {
        self.bytes.clear();
        loop {
            if let Some(end) = self.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                self.body = end + 4;
                let head = String::from_utf8_lossy(self.head()).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                return match length {
                    Some(length) => Ok(Some(length.trim().parse()?)),
                    None if head.contains("transfer-encoding: chunked") => Ok(None),
                    None if head.starts_with("get ") => Ok(Some(0)),
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

    /// Reads the next message of a connection.
    pub(super) async fn read(&mut self, socket: &mut TcpStream) -> Result<(), Failure> {
        match self.read_head(socket).await? {
            Some(length) => {
                while self.bytes.len() < self.body + length {
                    self.more(socket).await?;
                }
                Ok(())
            }
            None => self.read_chunks(socket).await,
        }
    }

    async fn read_chunks(&mut self, socket: &mut TcpStream) -> Result<(), Failure> {
        while !self.bytes.ends_with(b"\r\n0\r\n\r\n") {
            self.more(socket).await?;
        }
        Ok(())
    }
}

/// A connection, with one request at a time.
pub(super) struct Connection {
    socket: TcpStream,
    message: Message,
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, message: Message::default() })
    }

    /// Sends a request and reads its response, which has to have the status 200 and a correct body.
    pub(super) async fn ask(
        &mut self,
        request: &[u8],
        is_right: impl Fn(&[u8]) -> bool,
    ) -> Result<&[u8], Failure> {
        self.send(request).await?;
        self.message.read(&mut self.socket).await?;
        if !self.message.bytes.starts_with(b"HTTP/1.1 200 ") || !is_right(self.message.body()) {
            return Err(String::from_utf8_lossy(&self.message.bytes).into());
        }
        Ok(self.message.body())
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        Ok(self.socket.write_all(request).await?)
    }

    /// Sends a request. Returns the status and the raw body of the response.
    pub(super) async fn whole(&mut self, request: &[u8]) -> Result<(u16, String), Failure> {
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

    /// Returns a header of the last response, whose name is given in small letters.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(self.message.head()).into_owned();
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    }

    /// Sends a request for a stream and reads the events to this text.
    pub(super) async fn begin(&mut self, request: &[u8], until: &str) -> Result<(), Failure> {
        self.send(request).await?;
        self.message.read_head(&mut self.socket).await?;
        while !contains(self.message.body(), until) {
            self.message.more(&mut self.socket).await?;
        }
        Ok(())
    }

    /// Reads a stream to its end.
    pub(super) async fn end(&mut self) -> Result<(), Failure> {
        self.message.read_chunks(&mut self.socket).await?;
        if contains(self.message.body(), "[DONE]") { Ok(()) } else { Err("a stream without its end".into()) }
    }
}

pub(super) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|some| some == text.as_bytes())
}

/// Sends requests over several connections, one request at a time on each. Returns the number of requests without a correct
/// response.
pub(super) async fn load(
    address: &str,
    request: &[u8],
    is_right: impl Fn(&[u8]) -> bool,
    connections: usize,
    requests: usize,
) -> usize {
    let each = requests.div_ceil(connections);
    let talk = async || {
        let mut done = 0;
        let load = async {
            let mut connection = Connection::open(address).await?;
            while done < each {
                connection.ask(request, &is_right).await?;
                done += 1;
            }
            Ok::<_, Failure>(())
        };
        if let Err(error) = load.await {
            eprintln!("after {done} requests: {error}");
        }
        each - done
    };
    join_all((0..connections).map(|_| talk())).await.into_iter().sum()
}

/// The load of a comparison: the number of concurrent connections, the requests of each side per turn, and the number of turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) requests: usize,
    pub(super) rounds: usize,
}

/// Compares two servers under the same load. Returns the CPU time of a request in microseconds, and the number of requests without a
/// correct response.
pub(super) async fn compare(
    mut ours: Server,
    mut peer: Server,
    request: &[u8],
    is_right: impl Fn(&[u8]) -> bool,
    Load { connections, requests, rounds: count }: Load,
) -> Result<(Pair, usize), Failure> {
    let mut errors = 0;
    let mut turn = async |side, requests: usize| -> Result<f64, Failure> {
        let server = if side == Side::Ours { &mut ours } else { &mut peer };
        let before = server.used()?.cpu;
        errors += load(&server.address, request, &is_right, connections, requests).await;
        Ok((server.used()?.cpu - before) / requests as f64)
    };
    turn(Side::Ours, requests / 4).await?;
    turn(Side::Peer, requests / 4).await?;
    let rounds = rounds(count, async |side| turn(side, requests).await).await?;
    Ok((Pair::of(&rounds), errors))
}

/// Sends requests at a constant rate. Returns the latencies in milliseconds, each from the time at which the request was due, and
/// the number of requests without a correct response.
pub(super) async fn open_loop(
    address: &str,
    request: &[u8],
    is_right: fn(&[u8]) -> bool,
    rate: u32,
    time: Duration,
) -> Result<(Vec<f64>, usize), Failure> {
    let request: Rc<[u8]> = request.into();
    let number = (time.as_secs_f64() * f64::from(rate)) as u32;
    let idle: Rc<RefCell<VecDeque<Connection>>> = Rc::default();
    let sending = async {
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
                connection.ask(&request, is_right).await?;
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
    };
    LocalSet::new().run_until(sending).await
}
