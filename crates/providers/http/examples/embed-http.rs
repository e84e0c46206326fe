//! Uses this crate alone: sends a request with a deadline, and prints the fault if it fails.
//!
//! `cargo run -p formwork-http --example embed-http -- http://localhost:11434 /api/tags`

use std::time::Duration;

use formwork_core::{Fault, FaultKind};
use formwork_http::HttpTransport;
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Transport};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let base_url = args.next().unwrap_or_else(|| "http://localhost:11434".to_owned());
    let path = args.next().unwrap_or_else(|| "/api/tags".to_owned());
    match get(&base_url, &path).await {
        Ok((status, body)) => println!("{status}\n{}", String::from_utf8_lossy(&body)),
        Err(fault) => println!("{fault}"),
    }
}

async fn get(base_url: &str, path: &str) -> Result<(u16, Vec<u8>), Fault> {
    let wrong = |error: &dyn std::error::Error| Fault::new(FaultKind::BadRequest, error.to_string());
    let transport = HttpTransport::new(base_url)
        .map_err(|error| wrong(&error))?
        .with_connect_timeout(Duration::from_secs(2))
        .with_max_body_bytes(1024 * 1024);
    let request = Request::get(path).body(Bytes::new()).map_err(|error| wrong(&error))?;
    let deadline = transport.now().after(Duration::from_secs(10));
    let response = transport.send(request, Some(deadline)).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect(usize::MAX).await?))
}
