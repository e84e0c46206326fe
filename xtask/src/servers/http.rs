//! A minimal HTTP client for health checks on loopback.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::Address;

/// The timeout of a request. A server that is busy with a model responds within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum size of a response in bytes. No response to these requests is longer.
const MOST: u64 = 1 << 20;

/// Returns the JSON body of a response with status 200, or `None` for any other response and any error.
pub(super) fn get(address: &Address, path: &str) -> Option<Value> {
    serde_json::from_slice(body(&response(address, path)?)?).ok()
}

/// Whether a path answers with 200.
pub(super) fn answers(address: &Address, path: &str) -> bool {
    response(address, path).is_some_and(|response| body(&response).is_some())
}

/// All that comes back for a path.
fn response(address: &Address, path: &str) -> Option<Vec<u8>> {
    let socket = *address.sockets().first()?;
    let mut stream = TcpStream::connect_timeout(&socket, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    // HTTP/1.0: the body ends with the connection and is not chunked.
    let request = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", address.authority());
    // The request is sent in one write, because a server may respond and close after the first packet.
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the body of a response with status 200.
fn body(response: &[u8]) -> Option<&[u8]> {
    let end = response.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = response.split_at(end + 4);
    let head = std::str::from_utf8(head).ok()?;
    let mut words = head.split_whitespace();
    let good = words.next()?.starts_with("HTTP/1.") && words.next()? == "200";
    good.then_some(body)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_status_200_has_a_body() {
        let good = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"status\": \"ok\"}";
        assert_eq!(body(good), Some(br#"{"status": "ok"}"#.as_slice()));
        for bad in [
            "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\": \"loading\"}",
            "HTTP/1.1 200 OK\r\n{}",
            "SSH-2.0-x 200\r\n\r\n{}",
            "",
        ] {
            assert_eq!(body(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_server_that_is_there_is_called_and_one_that_is_not_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::loopback(listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n[1]").unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        assert_eq!(get(&address, "/x"), Some(json!([1])));
        assert!(server.join().unwrap().starts_with("GET /x HTTP/1.0\r\n"));
        assert_eq!(get(&address, "/x"), None);
    }
}
