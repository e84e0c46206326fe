//! The reservation of the maximum cost of a request.

use formwork::providers::Protocol;
use formwork_ledger::{Hold, RecordId};
use formwork_serve::Turn;
use tokio::time::Instant;

use super::Shared;
use crate::access::{Client, now};
use crate::ask::Ask;
use crate::document::Extent;
use crate::engine::Bounds;
use crate::problem::{Kind, Problem};
use crate::record::Record;

/// The parts of a request that its cost depends on.
#[derive(Clone, Copy)]
pub(super) struct Cost<'a> {
    pub(super) ask: &'a Ask,
    pub(super) prompt: Extent,
    /// The protocol whose targets get the request as the client wrote it; `None` if no target does.
    pub(super) given: Option<Protocol>,
    /// Whether runs keep the calls within the limit. Other requests keep their own limit from the start, because nothing ends their
    /// calls later.
    pub(super) is_run: bool,
}

/// Reserves the maximum cost of a request, and limits its runs to what was reserved. A request that is refused is recorded. One that has to
/// wait for the budget of its key gives up its turn, and takes another one afterwards, until its deadline.
///
/// # Errors
/// [`Kind::OutOfBudget`], [`Kind::Invalid`] or [`Kind::Forbidden`] for a request whose maximum cost is not known, and the problems of the
/// key and of the turn.
pub(super) async fn reserve(
    shared: &Shared,
    (client, record): (&Client, &mut Record),
    cost: Cost<'_>,
    targets: &[usize],
    bounds: &mut Bounds,
    (turn, until): (&mut Turn, Instant),
) -> Result<(), Problem> {
    let held = reserved(shared, client, cost, targets, *bounds, (record.id(), turn)).await;
    let (hold, limit) = record.checked(held)?;
    record.hold(hold);
    bounds.budget = limit;
    if turn.has_ended() {
        let taken = shared.turns.take(client.name(), until.saturating_duration_since(Instant::now())).await;
        *turn = record.checked(taken.inspect_err(|problem| shared.metrics.event(problem.kind.name())))?;
    }
    Ok(())
}

/// Returns the hold, and the limit for the run.
async fn reserved(
    shared: &Shared,
    client: &Client,
    Cost { ask, prompt, given, is_run }: Cost<'_>,
    targets: &[usize],
    bounds: Bounds,
    (run, turn): (Option<RecordId>, &Turn),
) -> Result<(Option<Hold>, Option<u64>), Problem> {
    // A run does not know of input that the server adds.
    let own = bounds.budget.filter(|_| !is_run || prompt.hidden().is_some());
    let key = client.0.as_ref();
    if key.is_none() && own.is_none() {
        return Ok((None, bounds.budget));
    }
    let worst = shared.engine.worst(ask, prompt, targets, (given, is_run));
    let (whole, call) = match (worst, key.and_then(|key| key.budget)) {
        (Ok(worst), _) => worst,
        (Err(reason), Some(_)) => {
            let message = format!("the API key `{}` has a budget, and {reason}", client.name());
            return Err(Problem::new(Kind::Forbidden, message));
        }
        (Err(reason), None) if own.is_some() => {
            return Err(Problem::invalid("x-formwork-budget", format!("`x-formwork-budget`: {reason}")));
        }
        (Err(_), None) => (0, 0),
    };
    if let Some(own) = own.filter(|own| call > *own) {
        let usd = |micro: u64| micro as f64 / 1e6;
        let message = format!(
            "the request may cost up to {} US dollars, and `x-formwork-budget` allows {}: set a lower limit of tokens",
            usd(call),
            usd(own)
        );
        return Err(Problem::new(Kind::OutOfBudget, message));
    }
    let Some(key) = key else { return Ok((None, bounds.budget)) };
    let limits = match (key.left(now()), bounds.budget) {
        (left, Some(own)) => (own.min(call), own.min(left.unwrap_or(own).max(call))),
        // The remaining budget must cover at least one attempt, but not all of them.
        (Some(left), None) => (call, whole.min(left.max(call))),
        (None, None) => (whole, whole),
    };
    let hold = shared.access.reserve(client, limits, run, (turn, shared.engine.limits.budget_wait)).await?;
    let amount = hold.as_ref().map_or(limits.1, Hold::amount);
    // The lower one of the header's limit and of what the key has reserved.
    let limit = bounds.budget.into_iter().chain(key.budget.map(|_| amount)).min();
    Ok((hold, limit))
}
