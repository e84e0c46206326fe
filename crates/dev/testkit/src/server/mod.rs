//! A scripted HTTP server on this machine, with the faults of real ones: for tests of HTTP clients.
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

/// An HTTP server at a free port of 127.0.0.1 that sends one [`Reply`] for each request, and records the requests.
///
/// After the last reply it repeats that one; without any it never responds. Requests on one connection are answered one
/// after another (HTTP/1.1, RFC 9112), several connections at the same time. It runs on a thread of its own, so that tests
/// may block. Dropping it closes all connections.
///
/// ```
/// use formwork_testkit::server::{Reply, Server};
///
/// let server = Server::start([Reply::json(r#"{"age": 34}"#)])?;
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// assert_eq!((server.connections(), server.received()), (0, vec![]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that sends these replies in order.
    ///
    /// # Errors
    /// An error of the operating system, if no port or thread is available.
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

    /// Returns the address that it listens at.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its base URL: `http://127.0.0.1:` and its port.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every request so far, in order. A request is recorded before its reply begins.
    pub fn received(&self) -> Vec<Received> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).received.clone()
    }

    /// Returns the number of connections so far.
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
