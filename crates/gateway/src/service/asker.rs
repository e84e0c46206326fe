//! The steps with which every request for an answer begins: its arrival, its client, options and targets, the wait for its turn, and
//! the reservation of its cost.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use formwork_http::with_trace;
use formwork_ledger::{KeyId, RecordId};
use formwork_serve::{Peer, Seat, Turn};
use tokio::time::Instant;

use super::Shared;
use super::job::{no_json, text};
use super::refused::refused;
use super::reserve::{Cost, reserve};
use crate::access::Client;
use crate::document::Document;
use crate::options::Options;
use crate::problem::Problem;
use crate::protocol::Protocol;
use crate::record::Record;
use crate::seen::{Seen, begun, trace_here};

/// Works on a request within the trace of its caller. A problem is told in the words of a protocol.
///
/// The work is boxed by the caller, because a future is copied whole, each time it is passed on, into those that contain it.
pub(super) async fn answered(
    protocol: &Protocol,
    work: Pin<Box<impl Future<Output = Result<Response, Problem>>>>,
) -> Response {
    let trace = trace_here();
    let response = if trace.is_empty() { work.await } else { with_trace(trace, work).await };
    response.unwrap_or_else(|problem| refused(protocol, &problem))
}

/// The client of a request, and what it asks for.
pub(super) struct Asker {
    pub(super) shared: Arc<Shared>,
    path: String,
    client: Client,
    /// The place of the request among the open ones of its key.
    seat: Option<Seat<KeyId>>,
    pub(super) options: Box<Options>,
    /// The address of a client without a key.
    peer: Option<Peer>,
    /// The targets of the model that it asks for.
    pub(super) targets: Vec<usize>,
}

impl Asker {
    /// Authenticates a request, counts it, and reads its options and its body. Returns its headers and the body as well.
    pub(super) async fn receive(
        shared: Arc<Shared>,
        request: Request<Body>,
    ) -> Result<(Self, HeaderMap, String), Problem> {
        let (parts, body) = request.into_parts();
        let client = shared.access.client(&parts.headers)?;
        if let Some(seen) = Seen::current() {
            seen.asked_by(&client);
        }
        let seat = shared.access.count(&client)?;
        let peer = parts.extensions.get().filter(|_| client.0.is_none()).copied();
        let options = Box::new(Options::of(&parts.headers)?);
        let text = text(&shared, &parts.headers, body).await?;
        let path = parts.uri.path().to_owned();
        Ok((Self { shared, path, client, seat, options, peer, targets: Vec::new() }, parts.headers, text))
    }

    /// Reads the body of a protocol, and the targets of its model. Returns the name of the model as well.
    pub(super) fn read<'t>(&mut self, text: &'t str) -> Result<(Document<'t>, String), Problem> {
        let document = Document::read(text).map_err(|error| no_json(&error))?;
        let model = document.word(["model"]).map(str::to_owned);
        let model = model.ok_or_else(|| Problem::invalid("model", "missing field `model`"))?;
        self.asks_for(&model)?;
        Ok((document, model))
    }

    /// Takes the targets of a model that the client may use.
    pub(super) fn asks_for(&mut self, model: &str) -> Result<(), Problem> {
        if let Some(seen) = Seen::current() {
            seen.asked_for(model);
        }
        self.client.may_ask(&self.shared.engine.names, model)?;
        self.targets = self.shared.engine.resolve(model)?;
        Ok(())
    }

    /// Waits for the turn of the request, until its deadline, begins its record, and reserves its `cost` if it is known yet. The text is
    /// kept if texts are.
    pub(super) async fn begin(self, text: Option<&str>, cost: Option<Cost<'_>>) -> Result<Begun, Problem> {
        let Self { shared, path, client, seat, mut options, peer, targets } = self;
        let within = shared.engine.deadline(options.bounds);
        let until = Instant::now() + within;
        let turn = match peer {
            Some(Peer(address)) => shared.turns.take(address, within).await,
            None => shared.turns.take(client.name(), within).await,
        };
        let mut turn = turn.inspect_err(|problem| shared.metrics.event(problem.kind.name()))?;
        let run = begun(path, &client, &options, shared.is_kept())
            .with_request(text.filter(|_| shared.keeps_bodies).map(str::to_owned));
        let id = run.id;
        let mut record = Record::new(Arc::clone(&shared), run, (client.clone(), seat));
        if let Some(cost) = cost {
            let held = (&client, &mut *record);
            let turn = (&mut turn, until);
            Box::pin(reserve(&shared, held, cost, &targets, &mut options.bounds, turn)).await?;
        }
        Ok(Begun { shared, client, options, targets, record, id, turn, until })
    }
}

/// A request that has its turn.
pub(super) struct Begun {
    pub(super) shared: Arc<Shared>,
    pub(super) client: Client,
    pub(super) options: Box<Options>,
    pub(super) targets: Vec<usize>,
    pub(super) record: Box<Record>,
    pub(super) id: RecordId,
    pub(super) turn: Turn,
    /// The end of the time for the request.
    pub(super) until: Instant,
}
