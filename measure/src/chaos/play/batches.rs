//! A server of OpenAI's Files and Batches APIs. It processes a part of its requests, answers some of them wrongly, and has its
//! client killed at chosen requests.

use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::answers::{Act, Answer, Faults};
use super::http::{Received, respond};
use super::invoice;
use super::record::Record;
use crate::Failure;

/// A batch that was accepted.
#[derive(Debug)]
struct Accepted {
    key: Value,
    /// The id, the row and the body of each request.
    requests: Vec<(String, u64, Value)>,
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

/// Returns the answer to the nth call of a row, from 0, whose request has this body.
pub(crate) type Reply = dyn Fn(u64, usize, &Value) -> (Act, Answer) + Send + Sync;

/// Returns the answers of a provider with these faults.
pub(crate) fn replies(faults: Faults) -> Arc<Reply> {
    Arc::new(move |row, nth, request| {
        let act = faults.act(row, nth);
        (act, Answer::of(act, row, nth, request))
    })
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
    pub(crate) fn start(reply: Arc<Reply>, deaths: Vec<usize>) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let (sender, receiver) = channel();
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, reply) = (Arc::clone(&of_thread), Arc::clone(&reply));
                let (sender, deaths) = (sender.clone(), deaths.clone());
                thread::spawn(move || serve(&stream, &state, &*reply, &deaths, &sender));
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
    reply: &Reply,
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
        let answer = open.answer(&request, reply);
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
    fn answer(&mut self, request: &Received, reply: &Reply) -> Option<String> {
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
                self.poll(nth, reply)?;
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
            let mut line: Value = serde_json::from_str(line).ok()?;
            let body = line["body"].take();
            let row = invoice::row_of(&body.to_string())?;
            requests.push((line["custom_id"].as_str()?.to_owned(), row, body));
        }
        let open: HashSet<u64> = self
            .batches
            .iter()
            .filter(|batch| !batch.is_fetched)
            .flat_map(|batch| batch.requests.iter().map(|(_, row, _)| *row))
            .collect();
        self.twice += requests.iter().filter(|(_, row, _)| open.contains(row)).count();
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
    fn poll(&mut self, nth: usize, reply: &Reply) -> Option<()> {
        let batch = self.batches.get_mut(nth)?;
        batch.polls += 1;
        if batch.polls < 2 || batch.is_processed {
            return Some(());
        }
        batch.is_processed = true;
        let half = if batch.is_expired { batch.requests.len() / 2 } else { batch.requests.len() };
        let (mut output, mut errors) = (String::new(), String::new());
        // No provider promises an order.
        for (at, (id, row, request)) in batch.requests.iter().enumerate().rev() {
            let (act, answer) = reply(*row, self.record.of(*row).len(), request);
            if at >= half || act == Act::Stall {
                let error =
                    json!({"code": "batch_expired", "message": "This request could not be executed."});
                let line = json!({"custom_id": id, "response": null, "error": error});
                errors.push_str(&format!("{line}\n"));
                continue;
            }
            let nth = self.record.begin(*row, request);
            self.record.answered(*row, nth, &answer);
            self.record.end(*row, nth);
            if matches!(act, Act::Fail | Act::Cut) {
                let body = json!({"error": {"message": "overloaded"}});
                let line =
                    json!({"custom_id": id, "response": {"status_code": 503, "body": body}, "error": null});
                errors.push_str(&format!("{line}\n"));
                continue;
            }
            let body = answer.response();
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
    use super::*;

    const NONE: Faults = Faults { wrong: 0, fail: 0, stall: 0, cut: 0 };

    fn ask(state: &mut State, method: &str, path: &str, body: &str) -> Value {
        let request =
            Received { method: method.to_owned(), path: format!("/v1{path}"), body: body.to_owned() };
        let answer = state.answer(&request, &*replies(NONE)).expect("an answer");
        serde_json::from_str(&answer).unwrap_or(Value::String(answer))
    }

    fn submit(state: &mut State, row: u64) {
        let line = json!({"custom_id": format!("c{row}"), "body": {"text": invoice::input(row)}});
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
            assert_eq!(state.answer(&request, &*replies(NONE)).as_deref(), Some(""));
        }
        submit(&mut state, 2);
        assert_eq!(state.twice, 2);
    }
}
