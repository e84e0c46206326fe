//! A simulated Chat Completions server that injects faults (stalls, errors, truncated and wrong completions) and records every
//! call.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::answers::{Act, Answer, Faults};
use super::http::{Received, respond};
use super::invoice;
use super::record::Record;
use crate::Failure;

/// The time before which no client gives a call up by itself; [`Provider::section`] sets it to 1 s.
const TIMEOUT: Duration = Duration::from_millis(950);

/// The server. It ends with this process.
#[derive(Debug)]
pub(crate) struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    faults: Faults,
    latency: Duration,
    record: Mutex<Record>,
    calls: AtomicUsize,
    open: AtomicUsize,
    max_open: AtomicUsize,
    is_closed: AtomicBool,
}

impl Provider {
    /// Starts the server on a free port of this machine.
    pub(crate) fn start(faults: Faults, latency: Duration) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            faults,
            latency,
            record: Mutex::default(),
            calls: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            max_open: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.is_closed.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// Returns the settings of this provider for a configuration file.
    pub(crate) fn section(&self, model: &str) -> String {
        format!(
            "kind = \"llama-server\"\nmodel = \"{model}\"\nstream = false\nbase_url = \"http://{}/v1\"\nfirst_timeout_seconds = 1.0\n\
             timeout_seconds = 1.5\nprice = {{ input = 1.0, output = 1.0 }}\n",
            self.address
        )
    }

    /// Returns the number of calls received so far.
    pub(crate) fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of concurrent calls so far.
    pub(crate) fn max_open(&self) -> usize {
        self.shared.max_open.load(Ordering::SeqCst)
    }

    /// Returns the record of all calls.
    pub(crate) fn record(&self) -> Record {
        self.shared.record().clone()
    }

    /// Interrupts at most `max` calls by this function, and notes the calls in flight. When the function returns, no process may
    /// make a call any more without knowing of the interruption.
    pub(crate) fn kill(
        &self,
        name: &'static str,
        max: usize,
        kill: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let from = Instant::now();
        kill()?;
        self.shared.record().killed(name, from, Instant::now(), max);
        Ok(())
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        // A connection wakes the accepting thread, which then ends.
        _ = TcpStream::connect(self.address);
    }
}

/// Serves the requests of a connection.
fn serve(stream: &TcpStream, shared: &Shared) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let body = Received::read(&mut reader)?.body;
        let row = invoice::row_of(&body)?;
        let request: Value = serde_json::from_str(&body).unwrap_or_default();
        let nth = shared.record().begin(row, &request);
        let act = shared.faults.act(row, nth);
        shared.calls.fetch_add(1, Ordering::SeqCst);
        let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.max_open.fetch_max(open, Ordering::SeqCst);
        if !shared.latency.is_zero() {
            thread::sleep(shared.latency);
        }
        let is_sent = if is_closed(stream) {
            shared.record().abandoned(row, nth);
            false
        } else if act == Act::Stall {
            // Waits until the client disconnects.
            let begun = Instant::now();
            _ = reader.fill_buf();
            if begun.elapsed() < TIMEOUT {
                shared.record().abandoned(row, nth);
            }
            false
        } else {
            let answer = Answer::of(act, row, nth, &request);
            shared.record().answered(row, nth, &answer);
            let (status, text) = match act {
                Act::Fail => {
                    ("503 Service Unavailable", "{\"error\":{\"message\":\"overloaded\"}}".to_owned())
                }
                _ => ("200 OK", answer.response().to_string()),
            };
            let sent = if act == Act::Cut { text.floor_char_boundary(text.len() / 2) } else { text.len() };
            respond(stream, status, &text, sent).is_ok() && act != Act::Cut
        };
        shared.record().end(row, nth);
        shared.open.fetch_sub(1, Ordering::SeqCst);
        if !is_sent {
            return None;
        }
    }
}

/// Returns whether the client has closed the connection. A client sends its next request after the response, so there is nothing to read
/// from a connection that is open.
fn is_closed(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let is_closed = match stream.peek(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    };
    stream.set_nonblocking(false).is_err() || is_closed
}
