//! The steps with which every request for an answer begins: who asks, with which options, for which targets, and the wait for its turn.

use std::sync::Arc;

use axum::http::request::Parts;
use formwork_ledger::RecordId;
use formwork_serve::{Peer, Turn};
use tokio::time::Instant;

use super::Shared;
use crate::access::{Client, Seat};
use crate::options::Options;
use crate::problem::Problem;
use crate::record::Record;
use crate::seen::{Seen, begun};

/// The client of a request, and what it asks for in its headers.
pub(super) struct Asker {
    pub(super) client: Client,
    /// The place of the request among the open ones of its key.
    pub(super) seat: Option<Seat>,
    pub(super) options: Options,
    /// The address of a client without a key.
    peer: Option<Peer>,
}

impl Asker {
    /// Authenticates a request, counts it, and reads its options.
    pub(super) fn of(shared: &Shared, parts: &Parts) -> Result<Self, Problem> {
        let client = shared.access.client(&parts.headers)?;
        if let Some(seen) = Seen::current() {
            seen.asked_by(&client);
        }
        let seat = shared.access.count(&client)?;
        let peer = parts.extensions.get().filter(|_| client.0.is_none()).copied();
        Ok(Self { client, seat, options: Options::of(&parts.headers)?, peer })
    }

    /// Returns the targets of a model that the client may use.
    pub(super) fn targets(&self, shared: &Shared, model: &str) -> Result<Vec<usize>, Problem> {
        if let Some(seen) = Seen::current() {
            seen.asked_for(model);
        }
        self.client.may_ask(&shared.engine.names, model)?;
        shared.engine.resolve(model)
    }

    /// Waits for the turn of the request, until its deadline, and begins its record. The text is kept if texts are.
    pub(super) async fn begin(
        self,
        shared: &Arc<Shared>,
        path: &str,
        text: Option<&str>,
    ) -> Result<Begun, Problem> {
        let Self { client, seat, options, peer } = self;
        let within = shared.engine.deadline(options.bounds);
        let until = Instant::now() + within;
        let turn = match peer {
            Some(Peer(address)) => shared.turns.take(&address.to_string(), within).await,
            None => shared.turns.take(client.name(), within).await,
        };
        let turn = turn.inspect_err(|problem| shared.metrics.event(problem.kind.name()))?;
        let run = begun(path, &client, &options)
            .with_request(text.filter(|_| shared.keeps_bodies).map(str::to_owned));
        let id = run.id;
        let record = Record::new(Arc::clone(shared), run, options.trace.clone(), (client.clone(), seat));
        Ok(Begun { client, options, record, id, turn, until })
    }
}

/// A request that has its turn.
pub(super) struct Begun {
    pub(super) client: Client,
    pub(super) options: Options,
    pub(super) record: Record,
    pub(super) id: RecordId,
    pub(super) turn: Turn,
    /// The end of the time for the request.
    pub(super) until: Instant,
}
