//! The connections alone: a service that says hello, asked once, then ended in order.
//!
//! `cargo run -p formwork-serve --example embed-serve`

use std::convert::Infallible;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use formwork_serve::{Connections, Draining, serve};
use tokio::sync::oneshot;

fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let limits = Connections {
        read_timeout: Duration::from_secs(10),
        write_timeout: Duration::from_secs(10),
        max: 100,
        max_per_address: 50,
        drain: Duration::from_secs(5),
        accept_while_draining: false,
        tls: None,
    };
    let (end, ended) = oneshot::channel::<()>();
    let client = std::thread::spawn(move || {
        let mut socket = TcpStream::connect(address)?;
        socket.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        socket.read_to_string(&mut response)?;
        _ = end.send(());
        io::Result::Ok(response)
    });
    let hello = |_| async { Ok::<_, Infallible>(Response::new(Body::from("hello\n"))) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shutdown = async { _ = ended.await };
    runtime.block_on(serve(listener, hello, limits, Draining::new(), shutdown))?;
    match client.join() {
        Ok(response) => println!("{}", response?),
        Err(_) => println!("the client failed"),
    }
    Ok(())
}
