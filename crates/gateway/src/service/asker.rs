//! The steps with which every request for an answer begins: who asks, with which options, for which targets, and the wait for its turn.

use axum::http::request::Parts;
use formwork_serve::{Peer, Turn};

use super::Shared;
use crate::access::{Client, Seat};
use crate::options::Options;
use crate::problem::Problem;
use crate::seen::Seen;

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
        shared.engine.names.resolve(model)
    }

    /// Waits for the turn of the request, until its deadline.
    pub(super) async fn turn(&self, shared: &Shared) -> Result<Turn, Problem> {
        let within = shared.engine.deadline(self.options.bounds);
        let turn = match self.peer {
            Some(Peer(address)) => shared.turns.take(&address.to_string(), within).await,
            None => shared.turns.take(self.client.name(), within).await,
        };
        turn.inspect_err(|problem| shared.metrics.event(problem.kind.name()))
    }
}
