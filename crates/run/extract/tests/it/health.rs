//! The numbers of a few hundred rows: how many calls one weak signal costs, and how many a server that ignores schemas does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use formwork_core::*;
use formwork_extract::{Backend, Extractor, ObservationStore};
use formwork_testkit::VirtualClock;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

const RIGHT: &str = r#"{"a": 1}"#;
const IMPOSSIBLE: &str = r#"{"b": "one"}"#;
const PROSE: &str = "I think that it is one.";

/// A server whose reply is a function of the call's number, from 0, and of the schema's presence in the request.
struct Server {
    name: &'static str,
    capabilities: Capabilities,
    reply: fn(usize, bool) -> Result<&'static str, Fault>,
    calls: AtomicUsize,
    without_schema: AtomicUsize,
}

impl Server {
    fn new(name: &'static str, reply: fn(usize, bool) -> Result<&'static str, Fault>) -> Arc<Self> {
        let capabilities = Capabilities::new(Enforcement::Schema);
        let (calls, without_schema) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { name, capabilities, reply, calls, without_schema })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn without_schema(&self) -> usize {
        self.without_schema.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[async_trait]
impl Provider for Server {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let nth = self.calls.fetch_add(1, Ordering::SeqCst);
        let has_schema = call.enforcement() == Enforcement::Schema;
        self.without_schema.fetch_add(usize::from(!has_schema), Ordering::SeqCst);
        let reply = (self.reply)(nth, has_schema);
        let deltas = match reply {
            Ok(text) => Completion::new(text).into_deltas().map(Ok).collect(),
            Err(fault) => vec![Ok(Delta::Text("{\"a\"".to_owned())), Err(fault)],
        };
        Ok(Answer::new(futures_util::stream::iter(deltas)))
    }
}

fn backend(server: &Arc<Server>) -> Backend {
    ["openai", "json-object", "prompt"].iter().fold(Backend::from(Arc::clone(server)), |backend, name| {
        backend.with_mode(formwork_dialect::dialect(name).unwrap())
    })
}

fn extractor(servers: &[&Arc<Server>]) -> Extractor<Value> {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false});
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let builder = Extractor::for_document("thing", schema).with_clock(clock);
    let builder = builder.with_observation_store(ObservationStore::new());
    servers.iter().fold(builder, |builder, server| builder.with_target(backend(server))).build().unwrap()
}

/// Extracts different rows, `concurrency` at a time, and returns the number of rows with a value.
async fn rows(extractor: &Extractor<Value>, rows: usize, concurrency: usize) -> usize {
    let results = extractor.extract_all((0..rows).map(|row| format!("row {row}")), concurrency);
    results.filter(|result| std::future::ready(result.is_ok())).count().await
}

#[tokio::test]
async fn one_row_of_another_type_takes_the_schema_from_no_other_row() {
    for concurrency in [1, 8] {
        let server = Server::new("prose", |nth, _| Ok(if nth == 50 { PROSE } else { RIGHT }));
        assert_eq!(rows(&extractor(&[&server]), 300, concurrency).await, 300);
        assert_eq!((server.calls(), server.without_schema()), (301, 0), "{concurrency}");
        // The row itself is asked again without enforcement, which the server does not seem to have.
        let server = Server::new("impossible", |nth, _| Ok(if nth == 50 { IMPOSSIBLE } else { RIGHT }));
        assert_eq!(rows(&extractor(&[&server]), 300, concurrency).await, 300);
        assert_eq!((server.calls(), server.without_schema()), (301, 1), "{concurrency}");
    }
}

#[tokio::test]
async fn ten_answers_in_prose_among_three_hundred_change_nothing() {
    for concurrency in [1, 8] {
        for reply in [
            (|nth: usize, _: bool| Ok(if nth % 30 == 7 { PROSE } else { RIGHT })) as fn(usize, bool) -> _,
            // In a row, they end four requests at most.
            |nth, _| {
                Ok(if (100..110).contains(&nth) { [PROSE, "It is one.", "One."][nth % 3] } else { RIGHT })
            },
        ] {
            let server = Server::new("chatty", reply);
            rows(&extractor(&[&server]), 300, concurrency).await;
            assert_eq!(server.without_schema(), 0, "{concurrency}");
        }
    }
}

#[tokio::test]
async fn a_server_that_ignores_every_schema_wastes_few_calls() {
    for (reply, most) in [
        ((|_: usize, schema: bool| Ok(if schema { IMPOSSIBLE } else { RIGHT })) as fn(usize, bool) -> _, 10),
        // Four requests end in prose after two attempts each, because the answers repeat; the first answer of the fifth decides.
        (|_, schema| Ok(if schema { PROSE } else { RIGHT }), 10),
    ] {
        let server = Server::new("deaf", reply);
        let answered = rows(&extractor(&[&server]), 300, 1).await;
        let wasted = server.calls() - server.without_schema();
        assert!(wasted <= most, "{wasted} calls had a schema");
        assert!(answered >= 296, "{answered} rows have a value");
    }
}

#[tokio::test]
async fn runs_in_flight_leave_enforcement_as_soon_as_other_runs_have_shown_that_there_is_none() {
    for concurrency in [1, 4, 8] {
        let server = Server::new("deaf", |_, schema| Ok(if schema { PROSE } else { RIGHT }));
        rows(&extractor(&[&server]), 300, concurrency).await;
        let wasted = server.calls() - server.without_schema();
        assert!(wasted <= 10 + concurrency, "{wasted} calls had a schema at concurrency {concurrency}");
    }
}

#[tokio::test]
async fn one_broken_stream_moves_no_row_to_the_backup() {
    let server = Server::new("primary", |nth, _| match nth {
        3 => Err(Fault::new(FaultKind::Unreachable, "the connection was reset")),
        _ => Ok(RIGHT),
    });
    let backup = Server::new("backup", |_, _| Ok(RIGHT));
    assert_eq!(rows(&extractor(&[&server, &backup]), 20, 1).await, 20);
    assert_eq!((server.calls(), backup.calls()), (21, 0));
}
