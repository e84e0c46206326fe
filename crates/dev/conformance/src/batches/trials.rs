use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use formwork_core::{Call, Completion, Enforcement, Fault, FaultKind, Lowered, Message, Time};
use formwork_wire::Deltas;
use formwork_wire::batch::{BatchApi, FileRequest, FileResult, FileStatus, Found};
use futures_util::StreamExt as _;
use http::Response;

use super::{BatchOutcome, BatchProtocol, BatchScene};
use crate::script::{KEY, Script};
use crate::wire::{equal, short};
use crate::{Reply, ServerAnswer};

type Shared = Arc<dyn BatchProtocol>;
type Check = Pin<Box<dyn Future<Output = Result<(), String>>>>;
type Trial = fn(Shared) -> Check;

/// The names and functions of the tests.
pub(crate) const TRIALS: &[(&str, Trial)] = &[
    ("a_file_has_every_request_unchanged", |protocol| Box::pin(submitted(protocol))),
    ("a_file_is_found_by_its_key_alone", |protocol| Box::pin(found(protocol))),
    ("states_are_read", |protocol| Box::pin(states(protocol))),
    ("every_result_is_read_once", |protocol| Box::pin(results(protocol))),
    ("results_that_are_cut_off_are_faults", |protocol| Box::pin(cut(protocol))),
    ("a_file_is_cancelled_by_its_id", |protocol| Box::pin(cancelled(protocol))),
    ("errors_of_every_operation_are_classes", |protocol| Box::pin(errors(protocol))),
];

/// The id of the simulated file at the server.
const ID: &str = "file-7";

/// The key of the simulated file.
const FILE: &str = "0123456789abcdef0123";

fn call(text: &str) -> Call {
    Call::new(vec![Message::user(text)], Lowered::new(Enforcement::None, None))
}

/// Returns the ids and the encoded requests of a file.
fn requests(api: &dyn BatchApi) -> Result<Vec<FileRequest>, String> {
    let questions = ["Who?", "Where \"é🦀\"?", "When?"].iter().enumerate();
    let request = |(nth, question): (usize, &&str)| {
        let request = api.wire().encode(&call(question)).map_err(told)?;
        Ok(FileRequest { custom_id: format!("{FILE}-{nth}"), request })
    };
    questions.map(request).collect()
}

fn outcomes() -> Vec<(String, BatchOutcome)> {
    let outcomes = [
        BatchOutcome::Answer(ServerAnswer::new("{\"zulu\": \"é🦀\"}")),
        BatchOutcome::Error(400, "the prompt is too long".to_owned()),
        BatchOutcome::Unprocessed,
        BatchOutcome::Answer(ServerAnswer::new("two\nlines")),
    ];
    outcomes.into_iter().enumerate().map(|(nth, outcome)| (format!("{FILE}-{nth}"), outcome)).collect()
}

async fn submitted(protocol: Shared) -> Result<(), String> {
    let script = Script::new(protocol.replies(&BatchScene::Accepted { id: ID.to_owned() }));
    let api = protocol.api(script.clone());
    let limits = api.limits();
    equal("a file may have requests", &(limits.requests > 0 && limits.bytes > 0), &true)?;
    let requests = requests(&*api)?;
    let id = api.submit(FILE, requests.clone()).await.map_err(told)?;
    equal("id", &id.as_str(), &ID)?;
    let sent: Vec<u8> = script.requests().iter().flat_map(|request| request.body().to_vec()).collect();
    let mut end = 0;
    for FileRequest { custom_id, request } in &requests {
        let id = places(&sent, format!("\"{custom_id}\"").as_bytes());
        let body = places(&sent, request.body());
        equal(&format!("`{custom_id}` is sent once"), &(id.len(), body.len()), &(1, 1))?;
        equal("in the order of the file", &body.iter().all(|at| *at >= end), &true)?;
        end = body.iter().sum::<usize>() + request.body().len();
    }
    Ok(())
}

/// Returns the positions of a text.
fn places(all: &[u8], part: &[u8]) -> Vec<usize> {
    let windows = all.windows(part.len()).enumerate();
    windows.filter(|(_, window)| *window == part).map(|(at, _)| at).collect()
}

async fn found(protocol: Shared) -> Result<(), String> {
    for (key, expected) in [(FILE, Found::Id(ID.to_owned())), ("fedcba98765432100123", Found::No)] {
        let scene = BatchScene::Listed { id: ID.to_owned(), key: FILE.to_owned(), requests: 3 };
        let api = protocol.api(Script::new(protocol.replies(&scene)));
        equal(
            &format!("the file of `{key}`"),
            &api.find(key, 3, Time(0), &[]).await.map_err(told)?,
            &expected,
        )?;
    }
    Ok(())
}

async fn states(protocol: Shared) -> Result<(), String> {
    for (scene, expected) in [
        (BatchScene::Open { finished: 0, requests: 3 }, FileStatus::Open { finished: 0 }),
        (BatchScene::Open { finished: 2, requests: 3 }, FileStatus::Open { finished: 2 }),
        (BatchScene::Ended { requests: 3 }, FileStatus::Ended),
    ] {
        let script = Script::new(protocol.replies(&scene));
        let status = protocol.api(script.clone()).status(ID).await.map_err(told)?;
        equal(&format!("state of {scene:?}"), &status, &expected)?;
        equal("the file is named", &names(&script), &true)?;
    }
    Ok(())
}

/// Returns whether a request has the id of the file in its path.
fn names(script: &Script) -> bool {
    script.requests().iter().any(|request| request.uri().path().contains(ID))
}

async fn results(protocol: Shared) -> Result<(), String> {
    let replies = protocol.replies(&BatchScene::Results(outcomes()));
    for bytes in [usize::MAX, 7, 1] {
        let replies: Vec<Reply> = replies.iter().cloned().map(|reply| reply.in_chunks(bytes)).collect();
        let (mut read, fault) = read(&protocol, replies).await?;
        equal("the fault of the results", &fault, &None)?;
        // No provider promises an order.
        read.sort_by(|one, other| one.custom_id.cmp(&other.custom_id));
        let ids = |results: &[FileResult]| -> Vec<String> {
            results.iter().map(|result| result.custom_id.clone()).collect()
        };
        equal("the ids", &ids(&read), &outcomes().into_iter().map(|(id, _)| id).collect())?;
        for (result, (id, outcome)) in read.into_iter().zip(outcomes()) {
            check(&protocol, result.response, &outcome).map_err(|wrong| format!("{id}: {wrong}"))?;
        }
    }
    Ok(())
}

/// Returns the results before the first fault, and the kind of the fault.
async fn read(
    protocol: &Shared,
    replies: Vec<Reply>,
) -> Result<(Vec<FileResult>, Option<FaultKind>), String> {
    let results = match protocol.api(Script::new(replies)).results(ID).await {
        Ok(results) => results.collect::<Vec<_>>().await,
        Err(fault) => vec![Err(fault)],
    };
    let mut whole = Vec::new();
    for result in results {
        match result {
            Ok(result) => whole.push(result),
            Err(fault) => return Ok((whole, Some(fault.kind))),
        }
    }
    Ok((whole, None))
}

/// Checks that the protocol of the requests reads this response as this outcome.
fn check(protocol: &Shared, response: Option<Response<Bytes>>, outcome: &BatchOutcome) -> Result<(), String> {
    let api = protocol.api(Script::new([]));
    let Some((head, body)) = response.map(Response::into_parts) else {
        return equal("without a response", outcome, &BatchOutcome::Unprocessed);
    };
    match outcome {
        BatchOutcome::Answer(answer) => {
            equal("status", &head.status.as_u16(), &200)?;
            let (mut decoder, mut deltas) = (api.wire().decoder(&call("Who?"), &head), Deltas::new());
            decoder.push(&body, &mut deltas).and_then(|()| decoder.end(&mut deltas)).map_err(told)?;
            let mut completion = Completion::new("");
            for delta in deltas {
                completion.push(delta);
            }
            equal("text", &completion.text, &answer.text)?;
            let usage = completion.usage;
            equal("tokens", &(usage.input_tokens, usage.output_tokens), &(11, 7))
        }
        BatchOutcome::Error(status, message) => {
            equal("status", &head.status.as_u16(), status)?;
            let fault = api.wire().fault(&call("Who?"), &head, &body, Time(0));
            equal("the fault quotes the server's message", &fault.message.contains(message), &true)
        }
        BatchOutcome::Unprocessed => Err(format!("a response, {}, of a request without one", head.status)),
    }
}

/// Tests that results that end within a line end with a fault, and that no result is made up.
async fn cut(protocol: Shared) -> Result<(), String> {
    let replies = protocol.replies(&BatchScene::Results(outcomes()));
    let (whole, _) = read(&protocol, replies.clone()).await?;
    let Some((last, before)) = replies.split_last() else { return Err("no responses".to_owned()) };
    for at in 0..last.body.len() {
        let cut = last.clone().cut(at);
        let line = cut.body.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_within = !line.is_empty() && serde_json::from_slice::<serde_json::Value>(line).is_err();
        let (read, fault) = read(&protocol, before.iter().cloned().chain([cut]).collect()).await?;
        let is_known = |result: &FileResult| {
            let same = |other: &&FileResult| other.custom_id == result.custom_id;
            whole.iter().find(same).is_some_and(|other| body(other) == body(result))
        };
        equal(&format!("results of a file cut at byte {at}"), &read.iter().all(is_known), &true)?;
        if is_within {
            equal(&format!("a fault of results cut at byte {at}"), &fault.is_some(), &true)?;
        }
    }
    Ok(())
}

fn body(result: &FileResult) -> Option<&Bytes> {
    result.response.as_ref().map(Response::body)
}

async fn cancelled(protocol: Shared) -> Result<(), String> {
    let script = Script::new(protocol.replies(&BatchScene::Cancelled { id: ID.to_owned() }));
    protocol.api(script.clone()).cancel(ID).await.map_err(told)?;
    equal("the file is named", &names(&script), &true)
}

async fn errors(protocol: Shared) -> Result<(), String> {
    use FaultKind::{Auth, BadWire, Overloaded, RateLimited, Unsupported};
    for operation in ["submit", "find", "status", "results", "cancel"] {
        for (status, kind) in
            [(401, Auth), (404, Unsupported), (429, RateLimited), (500, Overloaded), (503, Overloaded)]
        {
            let reply = protocol.error(status, &format!("something is wrong with {KEY}"));
            let fault = fails(&protocol, operation, reply.with_header("retry-after", "7")).await?;
            let place = |what: &str| format!("{operation}, {status}: {what}");
            equal(&place("kind"), &fault.kind, &kind)?;
            equal(&place("status"), &fault.status, &Some(status))?;
            equal(&place("quotes the server"), &fault.message.contains("something is wrong"), &true)?;
            equal(&place("prints the key"), &format!("{fault:?}{fault}").contains(KEY), &false)?;
            if matches!(status, 429 | 503) {
                equal(&place("delay"), &fault.retry_after, &Some(Duration::from_secs(7)))?;
            }
        }
        let page = Reply::new(200, "text/html", "<html>Sign in</html>");
        // The response to a cancellation has nothing that is needed.
        if operation != "cancel" {
            let fault = fails(&protocol, operation, page).await?;
            equal(&format!("{operation}: kind of a page"), &fault.kind, &BadWire)?;
        }
    }
    Ok(())
}

/// Returns the fault of an operation whose first request has this response.
async fn fails(protocol: &Shared, operation: &str, reply: Reply) -> Result<Fault, String> {
    let described = format!("{reply:?}");
    let api = protocol.api(Script::new([reply]));
    let found = match operation {
        "submit" => api.submit(FILE, requests(&*api)?).await.map(|_| ()),
        "find" => api.find(FILE, 3, Time(0), &[]).await.map(|_| ()),
        "status" => api.status(ID).await.map(|_| ()),
        "results" => match api.results(ID).await {
            Ok(mut results) => {
                results.next().await.unwrap_or(Ok(FileResult::unprocessed(String::new()))).map(|_| ())
            }
            Err(fault) => Err(fault),
        },
        _ => api.cancel(ID).await,
    };
    found.err().ok_or_else(|| format!("{operation} succeeds with {}", short(&described)))
}

fn told(fault: Fault) -> String {
    fault.to_string()
}
