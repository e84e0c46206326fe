use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::patience::Impatient;
use crate::seats::Seats;
use crate::tls::Tls;

/// The interval of a timer without a task. Setting a timer that is due before all others writes to a file descriptor, which wakes the
/// runtime, and every request sets some (tokio's `reregister`). With this timer, one of them is due earlier.
const TICK: Duration = Duration::from_secs(1);

/// The time for responses to requests that have none when the time of draining is over.
const LAST: Duration = Duration::from_secs(1);

/// The delay after a failed `accept`, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// The limits and the encryption of connections.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_serve::Connections;
///
/// let limits = Connections {
///     read_timeout: Duration::from_secs(10),
///     write_timeout: Duration::from_secs(10),
///     max: 1_000,
///     max_per_address: 100,
///     drain: Duration::from_secs(15),
///     accept_while_draining: true,
///     tls: None,
/// };
/// # drop(limits);
/// ```
#[derive(Debug, Clone)]
pub struct Connections {
    /// The time limit for receiving the head of a request, and for the TLS handshake.
    pub read_timeout: Duration,
    /// The time for which a client may keep a response waiting. While it reads less than 1 KiB per second, the time runs out; then its
    /// connection is closed.
    pub write_timeout: Duration,
    /// The maximum number of open connections. Further connections wait to be accepted. On Linux at most half of the files that the
    /// process may open, because a request needs a connection to a model as well.
    pub max: usize,
    /// The maximum number of open connections from one address; at most three quarters of all. Further ones are closed. Connections from
    /// this machine are not limited: a proxy makes all of its own.
    pub max_per_address: usize,
    /// The time limit for open requests after the service was stopped.
    pub drain: Duration,
    /// Whether connections are accepted during that time, so that the service can respond with 503.
    pub accept_while_draining: bool,
    /// The certificate for TLS. `None`: connections are not encrypted.
    pub tls: Option<Tls>,
}

/// The address of the client, as an extension of each request.
///
/// ```
/// use formwork_serve::Peer;
///
/// /// Returns the address, as text.
/// fn address<B>(request: &axum::http::Request<B>) -> Option<String> {
///     request.extensions().get().map(|Peer(address)| address.to_string())
/// }
/// # assert_eq!(address(&axum::http::Request::new(())), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// A flag that shows requests whether the service is stopping. Clones share the flag.
///
/// ```
/// use formwork_serve::Draining;
///
/// let draining = Draining::new();
/// assert!(!draining.is_set());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Draining(Arc<watch::Sender<Phase>>);

/// The phases of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd)]
enum Phase {
    #[default]
    Open,
    Draining,
    /// The time for open requests is over.
    Over,
}

impl Draining {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the service is stopping.
    pub fn is_set(&self) -> bool {
        *self.0.borrow() >= Phase::Draining
    }

    /// Returns whether the time for open requests is over.
    pub fn has_ended(&self) -> bool {
        *self.0.borrow() == Phase::Over
    }

    /// Waits until the time for open requests is over. A request without a response has a second then to say so.
    pub async fn is_over(&self) {
        reached(&mut self.0.subscribe(), Phase::Over).await;
    }
}

/// Waits for a phase. A sender that is dropped reaches none.
async fn reached(phases: &mut watch::Receiver<Phase>, phase: Phase) {
    if phases.wait_for(|now| *now >= phase).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Responds to HTTP/1.1 requests until `shutdown` is done. Then it sets `draining`, and ends when the open requests have their
/// responses, or a second after [`Connections::drain`].
///
/// # Errors
/// An error of the listener. A failed connection does not affect the others.
///
/// ```
/// use std::convert::Infallible;
/// use std::net::TcpListener;
///
/// use axum::body::Body;
/// use axum::http::Response;
/// use formwork_serve::{Connections, Draining, serve};
///
/// /// Responds `hello` to every request, until `shutdown` is done.
/// async fn hello(limits: Connections, shutdown: impl Future<Output = ()>) -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080")?;
///     let answer = |_| async { Ok::<_, Infallible>(Response::new(Body::from("hello"))) };
///     serve(listener, answer, limits, Draining::new(), shutdown).await
/// }
/// ```
pub async fn serve<F, R>(
    listener: std::net::TcpListener,
    answer: F,
    limits: Connections,
    draining: Draining,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Response<axum::body::Body>, Infallible>> + Send + 'static,
{
    serve_with(listener, answer, || limits.clone(), draining, shutdown).await
}

/// Responds to requests as [`serve`] does, with limits that may change: each connection has those of its beginning. Only
/// [`Connections::max`] stays that of the start.
///
/// # Errors
/// As [`serve`].
///
/// ```
/// use std::convert::Infallible;
/// use std::net::TcpListener;
/// use std::sync::{Arc, PoisonError, RwLock};
///
/// use axum::body::Body;
/// use axum::http::Response;
/// use formwork_serve::{Connections, Draining, serve_with};
///
/// /// Responds `hello`; whoever has the limits may change them meanwhile.
/// async fn hello(limits: Arc<RwLock<Connections>>, shutdown: impl Future<Output = ()>) -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080")?;
///     let answer = |_| async { Ok::<_, Infallible>(Response::new(Body::from("hello"))) };
///     let limits = || limits.read().unwrap_or_else(PoisonError::into_inner).clone();
///     serve_with(listener, answer, limits, Draining::new(), shutdown).await
/// }
/// ```
pub async fn serve_with<F, R>(
    listener: std::net::TcpListener,
    answer: F,
    limits: impl Fn() -> Connections,
    draining: Draining,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Response<axum::body::Body>, Infallible>> + Send + 'static,
{
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let max = limits().max.min(by_files().unwrap_or(usize::MAX)).clamp(1, Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(max));
    let addresses = Seats::default();
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            _ = tick.tick() => {}
            Some(_) = open.join_next() => {}
            (place, accepted) = accept(&places, &listener) => match accepted {
                Ok((socket, address)) => {
                    let limits = limits();
                    let max_of_each = limits.max_per_address.min(max - max / 4).max(1);
                    if let Some(seat) = addresses.connect(address.ip(), max_of_each) {
                        let talk = talk((socket, address.ip()), answer.clone(), limits, draining.0.subscribe());
                        open.spawn(async move {
                            let _held = (place, seat);
                            talk.await;
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(target: "formwork_serve", %error, "a connection could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    let limits = limits();
    let listener = Some(listener).filter(|_| limits.accept_while_draining);
    draining.0.send_replace(Phase::Draining);
    let drained = tokio::time::timeout(limits.drain, async {
        let mut late = JoinSet::new();
        while !open.is_empty() {
            let accepted = async {
                match &listener {
                    Some(listener) => accept(&places, listener).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = open.join_next() => {}
                Some(_) = late.join_next() => {}
                (place, accepted) = accepted => if let Ok((socket, address)) = accepted {
                    // This connection needs no signal to end: its response has `connection: close`.
                    let ended = watch::Sender::default().subscribe();
                    let talk = talk((socket, address.ip()), answer.clone(), limits.clone(), ended);
                    late.spawn(async move {
                        let _place = place;
                        talk.await;
                    });
                },
            }
        }
    });
    if drained.await.is_err() {
        draining.0.send_replace(Phase::Over);
        let answered = async { while open.join_next().await.is_some() {} };
        _ = tokio::time::timeout(LAST, answered).await;
    }
    if !open.is_empty() {
        tracing::warn!(target: "formwork_serve", connections = open.len(), "open requests are broken off");
        open.shutdown().await;
    }
    Ok(())
}

/// Returns half of the number of files that this process may open, where the system says it.
fn by_files() -> Option<usize> {
    /// Files that are open beside connections: the ledger, libraries, standard streams.
    const OTHERS: usize = 32;

    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let files: usize = files.split_whitespace().next()?.parse().ok()?;
    Some(files.saturating_sub(OTHERS) / 2)
}

async fn accept(
    places: &Arc<Semaphore>,
    listener: &TcpListener,
) -> (Option<OwnedSemaphorePermit>, io::Result<(TcpStream, std::net::SocketAddr)>) {
    let place = Arc::clone(places).acquire_owned().await;
    (place.ok(), listener.accept().await)
}

/// Answers the requests of one connection until either side ends it.
async fn talk<F, R>(
    (socket, address): (TcpStream, IpAddr),
    answer: F,
    limits: Connections,
    ended: watch::Receiver<Phase>,
) where
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Result<Response<axum::body::Body>, Infallible>>,
{
    let answer = move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(address));
        answer(request)
    };
    // Responses are written in large pieces already, so Nagle's algorithm would only delay them.
    let _ = socket.set_nodelay(true);
    let socket = Impatient::new(socket, limits.write_timeout);
    let Some(acceptor) = limits.tls.as_ref().map(Tls::acceptor) else {
        return speak(socket, answer, limits.read_timeout, ended).await;
    };
    // A failed TLS handshake ends only the client's own connection.
    if let Ok(Ok(encrypted)) = tokio::time::timeout(limits.read_timeout, acceptor.accept(socket)).await {
        speak(encrypted, answer, limits.read_timeout, ended).await;
    }
}

async fn speak<S, F, R>(stream: S, answer: F, read_timeout: Duration, mut ended: watch::Receiver<Phase>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Result<Response<axum::body::Body>, Infallible>>,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(read_timeout)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that disconnects, or sends no HTTP, ends only its own connection.
        _ = connection.as_mut() => return,
        () = reached(&mut ended, Phase::Draining) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
