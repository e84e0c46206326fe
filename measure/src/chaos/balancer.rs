//! A balancer before several workers: it takes HTTP/2 streams, and gives them to the workers in turns.

use std::io::{ErrorKind, Read as _};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::Failure;

/// The time within which a worker has to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);

/// The time within which a worker has to close a connection that was cut.
const CLOSE: Duration = Duration::from_secs(10);

/// The balancer. It ends with the process.
pub(super) struct Balancer {
    pub(super) address: SocketAddr,
    cut: Arc<Notify>,
    workers: Arc<Workers>,
}

impl Balancer {
    /// Starts a balancer on a free port of this machine.
    pub(super) fn start(workers: Vec<SocketAddr>) -> Result<Self, Failure> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let cut = Arc::new(Notify::new());
        let workers = Arc::new(Workers::new(workers));
        let (cuts, shared) = (Arc::clone(&cut), Arc::clone(&workers));
        thread::spawn(move || {
            runtime.block_on(async move {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    accept(listener, shared, cuts).await;
                }
            });
        });
        Ok(Self { address, cut, workers })
    }

    /// Closes all connections, and waits until the workers have closed theirs. From then on a worker knows of the cut: a call
    /// that it begins in the same moment is dropped, which closes its connection to the provider.
    pub(super) fn cut(&self) -> Result<(), Failure> {
        self.cut.notify_waiters();
        let sockets = self.workers.forget();
        let begun = Instant::now();
        for socket in &sockets {
            _ = socket.shutdown(Shutdown::Write);
        }
        for mut socket in sockets {
            loop {
                match socket.read(&mut [0; 4096]) {
                    Ok(0) => break,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        thread::sleep(Duration::from_millis(1));
                    }
                    Ok(_) => {}
                    Err(_) => break,
                }
                if begun.elapsed() > CLOSE {
                    return Err("a worker does not close a connection that was cut".into());
                }
            }
        }
        Ok(())
    }
}

async fn accept(listener: TcpListener, workers: Arc<Workers>, cut: Arc<Notify>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        _ = stream.set_nodelay(true);
        let (workers, cut) = (Arc::clone(&workers), Arc::clone(&cut));
        tokio::spawn(async move {
            let service = service_fn(move |request| forward(Arc::clone(&workers), request));
            let mut builder = server::Builder::new(TokioExecutor::new());
            builder.max_concurrent_streams(4096);
            tokio::select! {
                _ = builder.serve_connection(TokioIo::new(stream), service) => {}
                () = cut.notified() => {}
            }
        });
    }
}

/// The workers, and the connections to those that were reached.
struct Workers {
    state: Mutex<(usize, Vec<Worker>)>,
}

struct Worker {
    address: SocketAddr,
    connection: Option<client::SendRequest<Incoming>>,
    /// Copies of the sockets of all its connections, which are open until a cut. Requests that arrive together can open several.
    sockets: Vec<std::net::TcpStream>,
}

impl Workers {
    fn new(addresses: Vec<SocketAddr>) -> Self {
        let workers =
            addresses.into_iter().map(|address| Worker { address, connection: None, sockets: Vec::new() });
        Self { state: Mutex::new((0, workers.collect())) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (usize, Vec<Worker>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all connections, and returns their sockets.
    fn forget(&self) -> Vec<std::net::TcpStream> {
        let mut state = self.state();
        let forget = |worker: &mut Worker| {
            worker.connection = None;
            std::mem::take(&mut worker.sockets)
        };
        state.1.iter_mut().flat_map(forget).collect()
    }

    /// Returns the place and the address of the next worker, and the connection to it if there is one.
    fn turn(&self) -> Option<(usize, SocketAddr, Option<client::SendRequest<Incoming>>)> {
        let mut state = self.state();
        let (turn, workers) = &mut *state;
        *turn = (*turn + 1) % workers.len().max(1);
        let worker = workers.get(*turn)?;
        let open = worker.connection.clone().filter(|connection| !connection.is_closed());
        Some((*turn, worker.address, open))
    }

    async fn connected(&self) -> Result<client::SendRequest<Incoming>, Failure> {
        let count = self.state().1.len();
        for _ in 0..count {
            let Some((place, address, open)) = self.turn() else { break };
            if let Some(open) = open {
                return Ok(open);
            }
            let Ok(Ok(stream)) = tokio::time::timeout(CONNECT, TcpStream::connect(address)).await else {
                continue;
            };
            _ = stream.set_nodelay(true);
            let stream = stream.into_std()?;
            let socket = stream.try_clone()?;
            let stream = TcpStream::from_std(stream)?;
            let (sender, connection) = client::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            if let Some(worker) = self.state().1.get_mut(place) {
                worker.connection = Some(sender.clone());
                worker.sockets.push(socket);
            }
            return Ok(sender);
        }
        Err("no worker accepts connections".into())
    }
}

/// Gives a request to a worker. A failure resets the stream, and Restate tries again.
async fn forward(workers: Arc<Workers>, request: Request<Incoming>) -> Result<Response<Incoming>, Failure> {
    let mut worker = workers.connected().await?;
    worker.ready().await?;
    Ok(worker.send_request(request).await?)
}
