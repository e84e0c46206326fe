//! A server on this machine that answers from a script, and misbehaves as scripted: for tests of code that speaks HTTP.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use formwork_testkit::server::{End, Reply, Server};
//!
//! let server = Server::start([
//!     Reply::status(429).with_header("retry-after", "2"),
//!     Reply::json(r#"{"age": 34}"#).cut_at(5, End::Close),
//! ])?;
//! let mut client = TcpStream::connect(server.address())?;
//! client.write_all(b"POST /chat HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}")?;
//! let mut head = [0; 30];
//! client.read_exact(&mut head)?;
//! assert_eq!(&head, b"HTTP/1.1 429 Too Many Requests");
//! assert_eq!((server.received()[0].path.as_str(), server.received()[0].body.as_slice()), ("/chat", &b"{}"[..]));
//! # Ok::<(), std::io::Error>(())
//! ```

mod reply;
mod request;
mod serve;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use reply::{End, Framing, Reply};
pub use request::Received;

use serve::Script;

/// A server at a free port of 127.0.0.1 that gives one [`Reply`] for each request, and remembers the requests.
///
/// After the last reply it goes on with that one; without any it never answers. Requests on one connection are answered
/// one after another (HTTP/1.1, RFC 9112), several connections at the same time. It has a thread of its own, so that
/// tests may block. Dropping it ends all connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that gives these replies in order.
    ///
    /// # Errors
    /// If there is no port or no thread to be had.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let script = Arc::new(Mutex::new(Script::new(replies)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&script);
        let thread = std::thread::Builder::new().name("scripted server".to_owned()).spawn(move || {
            // The connections are tasks of this runtime, and end with it.
            runtime.block_on(serve::until_stopped(listener, serving, stopped));
        })?;
        Ok(Self { address, script, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base URL: `http://127.0.0.1:` and its port.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order. A request is there before its reply begins.
    pub fn received(&self) -> Vec<Received> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).received.clone()
    }

    /// How many connections were made to it so far.
    pub fn connections(&self) -> usize {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).connections
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
