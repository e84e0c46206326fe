//! A simulated Chat Completions server that injects faults (stalls, errors, truncated and wrong completions) and records every
//! call.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::http::{Received, respond};

/// The provider's reaction to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// The correct completion.
    Right,
    /// A completion that is not JSON.
    Wrong,
    /// Status 503.
    Fail,
    /// No response.
    Stall,
    /// Half of the correct response, and then a closed connection.
    Cut,
}

/// The number of each fault per 1,000 calls, and the latency of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) wrong: u64,
    pub(crate) fail: u64,
    pub(crate) stall: u64,
    pub(crate) cut: u64,
    pub(crate) latency: Duration,
}

impl Faults {
    /// Returns the reaction to the nth call of a row. It is the same in every run.
    pub(crate) fn act(&self, row: u64, nth: usize) -> Act {
        let z = (row << 8 | nth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let mut left = (z ^ (z >> 31)) % 1000;
        for (share, act) in
            [(self.wrong, Act::Wrong), (self.fail, Act::Fail), (self.stall, Act::Stall), (self.cut, Act::Cut)]
        {
            if left < share {
                return act;
            }
            left -= share;
        }
        Act::Right
    }
}

/// The calls of each row, in the order of arrival.
pub(crate) type Record = HashMap<u64, Vec<Act>>;

/// The server. It ends with this process.
#[derive(Debug)]
pub(crate) struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    faults: Faults,
    record: Mutex<Record>,
    calls: AtomicUsize,
    open: AtomicUsize,
    max_open: AtomicUsize,
    is_closed: AtomicBool,
}

impl Provider {
    /// Starts the server on a free port of this machine.
    pub(crate) fn start(faults: Faults) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared {
            faults,
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
    pub(crate) fn section(&self) -> String {
        format!(
            "kind = \"llama-server\"\nmodel = \"m\"\nstream = false\nbase_url = \"http://{}/v1\"\nfirst_timeout_seconds = 1.0\n\
             timeout_seconds = 1.5\nprice = {{ input = 1.0, output = 1.0 }}\n",
            self.address
        )
    }

    /// Returns the number of calls received so far.
    pub(crate) fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Returns the number of calls without a response yet.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of concurrent calls so far.
    pub(crate) fn max_open(&self) -> usize {
        self.shared.max_open.load(Ordering::SeqCst)
    }

    /// Returns the record of all calls.
    pub(crate) fn record(&self) -> Record {
        self.shared.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        // A connection wakes the accepting thread, which then ends.
        _ = TcpStream::connect(self.address);
    }
}

/// Returns the correct completion for a row.
pub(crate) fn right(row: u64) -> String {
    format!("{{\"number\": {row}, \"check\": {}}}", row * 7 % 1009)
}

/// Serves the requests of a connection.
fn serve(stream: &TcpStream, shared: &Shared) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let body = Received::read(&mut reader)?.body;
        let digits = body.split("document ").nth(1)?;
        let row: u64 = digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()?;
        let act = {
            let mut record = shared.record.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = record.entry(row).or_default();
            let act = shared.faults.act(row, calls.len());
            calls.push(act);
            act
        };
        shared.calls.fetch_add(1, Ordering::SeqCst);
        let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.max_open.fetch_max(open, Ordering::SeqCst);
        if !shared.faults.latency.is_zero() {
            thread::sleep(shared.faults.latency);
        }
        let text = match act {
            Act::Wrong => {
                format!("I am not sure about document {row}, in any of its {} parts.", body.len() % 97)
            }
            _ => right(row),
        };
        if act == Act::Stall {
            // Waits until the client disconnects.
            _ = reader.fill_buf();
            shared.open.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let quoted = serde_json::Value::from(text);
        let answer = format!(
            "{{\"choices\":[{{\"message\":{{\"role\":\"assistant\",\"content\":{quoted}}},\"finish_reason\":\"stop\"}}],\
             \"usage\":{{\"prompt_tokens\":100,\"completion_tokens\":20}}}}"
        );
        let (status, answer) = match act {
            Act::Fail => ("503 Service Unavailable", "{\"error\":{\"message\":\"overloaded\"}}".to_owned()),
            _ => ("200 OK", answer),
        };
        let sent = if act == Act::Cut { answer.len() / 2 } else { answer.len() };
        let written = respond(stream, status, &answer, sent);
        shared.open.fetch_sub(1, Ordering::SeqCst);
        if written.is_err() || act == Act::Cut {
            return None;
        }
    }
}
