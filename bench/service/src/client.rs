//! A client with many connections, and one request at a time on each.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::Failure;

/// Requests over several connections.
#[derive(Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) address: &'a str,
    pub(crate) wallet: &'a str,
    /// The length of the expected response in bytes.
    pub(crate) answer: usize,
    pub(crate) connections: usize,
    pub(crate) requests: usize,
}

impl Load<'_> {
    /// The number of requests without the expected response.
    pub(crate) async fn run(self) -> Result<usize, Failure> {
        let local = LocalSet::new();
        let each = self.requests.div_ceil(self.connections);
        let tasks: Vec<_> = (0..self.connections)
            .map(|_| {
                let (address, request, length) = (self.address.to_owned(), request(self.wallet), self.answer);
                local.spawn_local(async move {
                    let mut done = 0;
                    let result = talk(&address, &request, length, each, &mut done).await;
                    if let Err(error) = result {
                        eprintln!("after {done} requests: {error}");
                    }
                    each - done
                })
            })
            .collect();
        local
            .run_until(async {
                let mut errors = 0;
                for task in tasks {
                    errors += task.await?;
                }
                Ok(errors)
            })
            .await
    }
}

/// Returns the body of one response.
pub(crate) async fn ask(address: &str, wallet: &str) -> Result<String, Failure> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(&request(wallet)).await?;
    let mut buffer = Vec::new();
    let body = answer(&mut socket, &mut buffer).await?;
    Ok(String::from_utf8(buffer[body].to_vec())?)
}

async fn talk(
    address: &str,
    request: &[u8],
    length: usize,
    requests: usize,
    done: &mut usize,
) -> Result<(), Failure> {
    let mut socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    for _ in 0..requests {
        buffer.clear();
        socket.write_all(request).await?;
        let body = answer(&mut socket, &mut buffer).await?;
        if body.len() != length {
            return Err(String::from_utf8_lossy(&buffer).into());
        }
        *done += 1;
    }
    Ok(())
}

fn request(wallet: &str) -> Vec<u8> {
    let length = wallet.len();
    let head = format!(
        "POST /v1/score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), wallet.as_bytes()].concat()
}

/// Reads one response. Returns the range of its body in the buffer.
async fn answer(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<std::ops::Range<usize>, Failure> {
    loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = std::str::from_utf8(&buffer[..end])?;
            if !head.starts_with("HTTP/1.1 200 ") {
                return Err(String::from_utf8_lossy(buffer).into());
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.ok_or("the answer says no length")?.parse()?;
            if buffer.len() >= end + 4 + length {
                return Ok(end + 4..end + 4 + length);
            }
        }
        if socket.read_buf(buffer).await? == 0 {
            return Err("the connection was closed".into());
        }
    }
}
