//! A server of OpenAI's Files and Batches APIs. It processes a part of its requests, answers some of them wrongly, and has its
//! client killed at chosen requests.

use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::http::{Received, respond};
use super::provider::{Act, Faults, Record, right};

/// A batch that was accepted.
#[derive(Debug)]
struct Accepted {
    key: Value,
    /// The id and the row of each request.
    requests: Vec<(String, u64)>,
    /// The number of requests for its state.
    polls: u32,
    is_processed: bool,
    is_expired: bool,
    /// Whether all of its results were fetched.
    is_fetched: bool,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<String, String>,
    batches: Vec<Accepted>,
    record: Record,
    twice: usize,
    requests: usize,
}

/// The moment at which the client is to be killed; the server answers nothing more until that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A request came and nothing was done with it.
    Before,
    /// A request was carried out and is not answered.
    After,
    /// A request was answered.
    Answered,
}

/// The server. It ends with the process.
#[derive(Debug)]
pub(crate) struct Batches {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    deaths: Receiver<Moment>,
}

impl Batches {
    /// Starts the server on a free port of this machine. The client dies at the requests of these numbers, from 0, at each of the three
    /// moments in turn. Each seventh batch expires when half of it is done.
    pub(crate) fn start(faults: Faults, deaths: Vec<usize>) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let state = Arc::new(Mutex::new(State::default()));
        let (sender, receiver) = channel();
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, sender, deaths) = (Arc::clone(&of_thread), sender.clone(), deaths.clone());
                thread::spawn(move || serve(&stream, &state, faults, &deaths, &sender));
            }
        });
        Ok(Self { address, state, deaths: receiver })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether the client is to be killed now.
    pub(crate) fn death(&self) -> Option<Moment> {
        self.deaths.try_recv().ok()
    }

    /// Returns the record of all processed calls.
    pub(crate) fn record(&self) -> Record {
        self.lock().record.clone()
    }

    /// Returns how many batches were accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.lock().batches.len()
    }

    /// Returns the number of requests that were accepted while an earlier one of their row was open or had unfetched results.
    pub(crate) fn twice(&self) -> usize {
        self.lock().twice
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers the requests of a connection.
fn serve(
    stream: &TcpStream,
    state: &Mutex<State>,
    faults: Faults,
    deaths: &[usize],
    sender: &Sender<Moment>,
) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let request = Received::read(&mut reader)?;
        let mut open = state.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = open.requests;
        open.requests += 1;
        let moments = [Moment::Before, Moment::After, Moment::Answered];
        let death = deaths.iter().position(|at| *at == nth).map(|at| moments[at % 3]);
        if death == Some(Moment::Before) {
            return sender.send(Moment::Before).ok();
        }
        let answer = open.answer(&request, faults);
        drop(open);
        if death == Some(Moment::After) {
            return sender.send(Moment::After).ok();
        }
        let (status, body) = match &answer {
            Some(body) => ("200 OK", body.as_str()),
            None => ("404 Not Found", r#"{"error":{"message":"there is no such thing"}}"#),
        };
        respond(stream, status, body, body.len()).ok()?;
        if let Some(moment) = death {
            return sender.send(moment).ok();
        }
    }
}

impl State {
    fn answer(&mut self, request: &Received, faults: Faults) -> Option<String> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = path.strip_prefix("/v1")?;
        match (request.method.as_str(), path) {
            ("POST", "/files") => {
                let lines = request.body.split("\r\n\r\n").nth(2)?.split("\r\n--").next()?;
                let id = format!("file-{}", self.files.len());
                self.files.insert(id.clone(), lines.to_owned());
                Some(json!({"id": id}).to_string())
            }
            ("POST", "/batches") => self.accept(&serde_json::from_str(&request.body).ok()?),
            ("GET", "/batches") => {
                let after = query.split('&').find_map(|part| part.strip_prefix("after=batch-"));
                let end = after.map_or(Some(self.batches.len()), |nth| nth.parse().ok())?;
                let start = end.saturating_sub(20);
                let page: Vec<Value> = (start..end).rev().map(|nth| self.document(nth)).collect();
                Some(json!({"data": page, "has_more": start > 0}).to_string())
            }
            ("GET", _) if path.starts_with("/batches/batch-") => {
                let nth = path.strip_prefix("/batches/batch-")?.parse().ok()?;
                self.poll(nth, faults)?;
                Some(self.document(nth).to_string())
            }
            ("GET", _) => {
                let id = path.strip_prefix("/files/")?.strip_suffix("/content")?;
                if let Some(nth) = id.strip_prefix("errors-").and_then(|nth| nth.parse::<usize>().ok()) {
                    self.batches.get_mut(nth)?.is_fetched = true;
                }
                self.files.get(id).cloned()
            }
            _ => None,
        }
    }

    fn accept(&mut self, sent: &Value) -> Option<String> {
        let file = self.files.get(sent["input_file_id"].as_str()?)?;
        let mut requests = Vec::new();
        for line in file.lines() {
            let line: Value = serde_json::from_str(line).ok()?;
            let text = line["body"].to_string();
            let digits = text.split("document ").nth(1)?;
            let row = digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()?;
            requests.push((line["custom_id"].as_str()?.to_owned(), row));
        }
        let open: HashSet<u64> = self
            .batches
            .iter()
            .filter(|batch| !batch.is_fetched)
            .flat_map(|batch| batch.requests.iter().map(|(_, row)| *row))
            .collect();
        self.twice += requests.iter().filter(|(_, row)| open.contains(row)).count();
        let nth = self.batches.len();
        self.batches.push(Accepted {
            key: sent["metadata"].clone(),
            requests,
            polls: 0,
            is_processed: false,
            is_expired: nth % 7 == 6,
            is_fetched: false,
        });
        Some(self.document(nth).to_string())
    }

    /// Processes a batch at the second request for its state.
    fn poll(&mut self, nth: usize, faults: Faults) -> Option<()> {
        let batch = self.batches.get_mut(nth)?;
        batch.polls += 1;
        if batch.polls < 2 || batch.is_processed {
            return Some(());
        }
        batch.is_processed = true;
        let half = if batch.is_expired { batch.requests.len() / 2 } else { batch.requests.len() };
        let (mut output, mut errors) = (String::new(), String::new());
        // No provider promises an order.
        for (at, (id, row)) in batch.requests.iter().enumerate().rev() {
            let calls = self.record.entry(*row).or_default();
            let act = faults.act(*row, calls.len());
            if at >= half || act == Act::Stall {
                let error =
                    json!({"code": "batch_expired", "message": "This request could not be executed."});
                let line = json!({"custom_id": id, "response": null, "error": error});
                errors.push_str(&format!("{line}\n"));
                continue;
            }
            calls.push(act);
            if act == Act::Fail {
                let body = json!({"error": {"message": "overloaded"}});
                let line =
                    json!({"custom_id": id, "response": {"status_code": 503, "body": body}, "error": null});
                errors.push_str(&format!("{line}\n"));
                continue;
            }
            let (text, finish) = match act {
                Act::Wrong => (format!("I am not sure about document {row}."), "stop"),
                Act::Cut => (right(*row)[..10].to_owned(), "length"),
                _ => (right(*row), "stop"),
            };
            let body = json!({
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20},
            });
            let line =
                json!({"custom_id": id, "response": {"status_code": 200, "body": body}, "error": null});
            output.push_str(&format!("{line}\n"));
        }
        self.files.insert(format!("output-{nth}"), output);
        self.files.insert(format!("errors-{nth}"), errors);
        Some(())
    }

    fn document(&self, nth: usize) -> Value {
        let batch = &self.batches[nth];
        let status = match (batch.is_processed, batch.is_expired) {
            (false, _) => "in_progress",
            (true, false) => "completed",
            (true, true) => "expired",
        };
        let mut document = json!({"id": format!("batch-{nth}"), "metadata": batch.key, "status": status,
            "request_counts": {"total": batch.requests.len(), "completed": 0, "failed": 0}});
        if batch.is_processed {
            document["output_file_id"] = json!(format!("output-{nth}"));
            document["error_file_id"] = json!(format!("errors-{nth}"));
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ask(state: &mut State, method: &str, path: &str, body: &str) -> Value {
        let faults = Faults { wrong: 0, fail: 0, stall: 0, cut: 0, latency: Duration::ZERO };
        let request =
            Received { method: method.to_owned(), path: format!("/v1{path}"), body: body.to_owned() };
        let answer = state.answer(&request, faults).expect("an answer");
        serde_json::from_str(&answer).unwrap_or(Value::String(answer))
    }

    fn submit(state: &mut State, row: u64) {
        let line = json!({"custom_id": format!("c{row}"), "body": {"text": format!("document {row} of")}});
        let form = format!("--b\r\n\r\nbatch\r\n--b\r\n\r\n{line}\n\r\n--b--");
        let file = ask(state, "POST", "/files", &form);
        ask(state, "POST", "/batches", &json!({"input_file_id": file["id"]}).to_string());
    }

    /// A server that does not see it would let every batch pass.
    #[test]
    fn a_row_that_is_submitted_twice_is_seen_until_its_results_are_fetched() {
        let mut state = State::default();
        submit(&mut state, 1);
        submit(&mut state, 2);
        assert_eq!(state.twice, 0);
        submit(&mut state, 1);
        assert_eq!(state.twice, 1);
        for _ in 0..2 {
            ask(&mut state, "GET", "/batches/batch-1", "");
        }
        submit(&mut state, 2);
        assert_eq!(state.twice, 2);
        ask(&mut state, "GET", "/batches/batch-3", "");
        assert_eq!(ask(&mut state, "GET", "/batches/batch-3", "")["status"], "completed");
        for nth in [1, 3] {
            ask(&mut state, "GET", &format!("/files/output-{nth}/content"), "");
            let request = Received {
                method: "GET".to_owned(),
                path: format!("/v1/files/errors-{nth}/content"),
                body: String::new(),
            };
            let faults = Faults { wrong: 0, fail: 0, stall: 0, cut: 0, latency: Duration::ZERO };
            assert_eq!(state.answer(&request, faults).as_deref(), Some(""));
        }
        submit(&mut state, 2);
        assert_eq!(state.twice, 2);
    }
}
