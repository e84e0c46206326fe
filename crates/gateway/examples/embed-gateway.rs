//! The gateway alone, in front of a scripted model: one request over a socket, whose first answer is wrong.
//!
//! `cargo run -p formwork-gateway --example embed-gateway`

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use formwork_extract::Backend;
use formwork_gateway::{Gateway, Target};
use formwork_testkit::Scripted;

fn main() -> io::Result<()> {
    let model = Scripted::new([r#"{"age": 340}"#, r#"{"age": 34}"#]);
    let target = Target::new(Backend::from(Arc::new(model)), None, "scripted");
    let gateway = Gateway::builder().with_target(target).build();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let serving = runtime.spawn(gateway.serve(listener, std::future::pending()));

    let schema = r#"{"type": "object", "properties": {"age": {"type": "integer", "maximum": 150}}, "required": ["age"]}"#;
    let body =
        format!(r#"{{"model": "default", "prompt": "Maria, 34", "stream": false, "format": {schema}}}"#);
    let mut socket = TcpStream::connect(address)?;
    write!(
        socket,
        "POST /api/generate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    socket.read_to_string(&mut response)?;
    println!("{response}");
    serving.abort();
    Ok(())
}
