use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::reply::Reply;
use super::request::{Received, read};
use super::{End, Framing};

/// The remaining replies, and the requests so far.
#[derive(Debug)]
pub(super) struct Script {
    replies: VecDeque<Reply>,
    pub(super) received: Vec<Received>,
    pub(super) connections: usize,
}

impl Script {
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = replies.into_iter().collect();
        Self { replies, received: Vec::new(), connections: 0 }
    }

    fn answer(&mut self, request: Received) -> Reply {
        self.received.push(request);
        let next =
            if self.replies.len() > 1 { self.replies.pop_front() } else { self.replies.front().cloned() };
        next.unwrap_or_else(Reply::silent)
    }
}

/// Accepts connections until it is stopped.
pub(super) async fn until_stopped(
    listener: TcpListener,
    script: Arc<Mutex<Script>>,
    stopped: oneshot::Receiver<()>,
) {
    let accepting = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (connection, _) = listener.accept().await?;
            script.lock().unwrap_or_else(PoisonError::into_inner).connections += 1;
            // An error means that the client closed the connection.
            tokio::spawn(converse(connection, Arc::clone(&script)));
        }
    };
    tokio::select! {
        _ = stopped => {}
        ended = accepting => { let _: io::Result<()> = ended; }
    }
}

/// Answers the requests of one connection.
async fn converse(connection: TcpStream, script: Arc<Mutex<Script>>) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut connection = BufReader::new(connection);
    while let Some(request) = read(&mut connection).await? {
        let reply = script.lock().unwrap_or_else(PoisonError::into_inner).answer(request);
        let end = send(connection.get_mut(), &reply).await?;
        match end {
            None if reply.framing != Framing::Close => {}
            None | Some(End::Close) => break,
            Some(End::Reset) => {
                connection.get_ref().set_zero_linger()?;
                break;
            }
            Some(End::Stall) => std::future::pending().await,
        }
    }
    Ok(())
}

/// Sends a reply, up to the byte at which it is cut.
async fn send(to: &mut TcpStream, reply: &Reply) -> io::Result<Option<End>> {
    to.write_all(head(reply).as_bytes()).await?;
    let chunked = reply.framing == Framing::Chunked;
    let mut left = reply.cut.map_or(usize::MAX, |(bytes, _)| bytes);
    loop {
        for piece in &reply.pieces {
            if left > 0 && !reply.pause.is_zero() {
                tokio::time::sleep(reply.pause).await;
            }
            let sent = &piece[..piece.len().min(left)];
            if chunked && !sent.is_empty() {
                // The announced length of a chunk that is cut includes the missing bytes.
                to.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
            }
            to.write_all(sent).await?;
            left -= sent.len();
            if chunked && sent.len() == piece.len() && !sent.is_empty() {
                to.write_all(b"\r\n").await?;
            }
        }
        if !reply.endless || left == 0 {
            break;
        }
        // The server has to be stoppable even while nothing is written.
        tokio::task::yield_now().await;
    }
    if reply.cut.is_none() && chunked {
        to.write_all(b"0\r\n\r\n").await?;
    }
    to.flush().await?;
    Ok(reply.cut.map(|(_, end)| end))
}

fn head(reply: &Reply) -> String {
    let Some(status) = reply.head else { return String::new() };
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&match reply.framing {
        Framing::Length => {
            format!("content-length: {}\r\n", reply.pieces.iter().map(Vec::len).sum::<usize>())
        }
        Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
        Framing::Close => "connection: close\r\n".to_owned(),
    });
    head.push_str("\r\n");
    head
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}
