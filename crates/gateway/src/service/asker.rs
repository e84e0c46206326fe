//! The steps with which every request for an answer begins: who asks, with which options, for which targets, and the wait for its turn.

use axum::http::HeaderMap;
use formwork_serve::Turn;

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
}

impl Asker {
    /// Authenticates a request, counts it, and reads its options.
    pub(super) fn of(shared: &Shared, headers: &HeaderMap) -> Result<Self, Problem> {
        let client = shared.access.client(headers)?;
        if let Some(seen) = Seen::current() {
            seen.asked_by(&client);
        }
        let seat = shared.access.count(&client)?;
        Ok(Self { client, seat, options: Options::of(headers)? })
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
        let turn = shared.turns.take(shared.engine.deadline(self.options.bounds)).await;
        turn.inspect_err(|problem| shared.metrics.event(problem.kind.name()))
    }
}
