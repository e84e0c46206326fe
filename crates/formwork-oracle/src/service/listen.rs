//! Accepts connections, limits and times them, and shuts them down in order.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::Limits;
use super::routes::Routes;

/// The pause after `accept` fails, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn serve(
    listener: std::net::TcpListener,
    routes: Routes,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(limits.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let (ending, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accept = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = open.join_next() => {}
            (place, accepted) = accept => match accepted {
                Ok((socket, _)) => {
                    let connection = talk(socket, routes.clone(), limits.read_timeout, ended.clone());
                    open.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(target: "formwork_oracle", %error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    ending.send_replace(true);
    let drained =
        tokio::time::timeout(limits.drain, async { while open.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(target: "formwork_oracle", connections = open.len(), "requests are broken off");
        open.shutdown().await;
    }
    Ok(())
}

/// Serves one connection, request by request, until either side closes it.
async fn talk(socket: TcpStream, routes: Routes, read_timeout: Duration, mut ended: watch::Receiver<bool>) {
    // Responses are short and written at once, so delaying small packets gains nothing.
    let _ = socket.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(read_timeout)
        .serve_connection(TokioIo::new(socket), service_fn(move |request| routes.clone().answer(request)));
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that disconnects or sends invalid HTTP does not concern the others.
        _ = connection.as_mut() => return,
        // An error means that the server was dropped, which ends the connection as well.
        _ = ended.wait_for(|is_ended| *is_ended) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
