//! The results of a file are joined with its rows.

use std::collections::{BTreeMap, BTreeSet};

use formwork_core::{Cost, ErrorKind};
use formwork_wire::Bytes;
use formwork_wire::http::Response;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;

use super::engine::{Halted, Work};
use super::record::{File, custom_id};
use super::rows::{Next, event};
use crate::BatchError;
use crate::drive::{MAX_DEFERRED, Outcome, READ, Turn, settle};
use crate::row::{Accepted, RunError};

impl Work<'_> {
    /// Joins the results of a file with its rows, and removes the file. A crash in between is harmless: a row that has its answer does
    /// not wait for the call any more.
    pub(super) async fn collect(&mut self, number: u64, file: &File, id: &str) -> Result<(), Halted> {
        let mut missing: BTreeSet<u64> = self.store.rows_of(&file.key).await?.into_iter().collect();
        let mut results = self.api(&file.target)?.results(id).await?;
        let prefix = custom_id(&file.key, 0);
        let prefix = prefix.trim_end_matches('0');
        let mut is_ended = false;
        while !is_ended {
            let mut chunk = BTreeMap::new();
            while chunk.len() < READ {
                let Some(result) = results.next().await else {
                    is_ended = true;
                    break;
                };
                let result = result?;
                let row = result.custom_id.strip_prefix(prefix).and_then(|row| row.parse::<u64>().ok());
                if let (Some(row), Some(response)) = (row, result.response)
                    && missing.remove(&row)
                {
                    chunk.insert(row, response);
                }
            }
            self.join(file, chunk).await?;
        }
        self.miss(file, missing).await?;
        // Answers to rows that have another plan now are paid for as well.
        self.drop_calls(self.store.rows_of(&file.key).await?, true).await?;
        Ok(self.files.remove(number).await?)
    }

    /// Reports responses to the runs of their rows.
    async fn join(
        &mut self,
        file: &File,
        mut responses: BTreeMap<u64, Response<Bytes>>,
    ) -> Result<(), Halted> {
        let mut rest: Vec<u64> = responses.keys().copied().collect();
        while !rest.is_empty() {
            let mut states = Vec::new();
            for (mut active, next) in self.waiting(&mut rest, &file.key).await? {
                let (row, now) = (active.number, self.engine.clock.now());
                let Some(response) = responses.remove(&row) else { continue };
                self.round.answered |= response.status().is_success();
                self.answered |= response.status().is_success();
                let wire = self.api(&file.target)?.wire();
                let cost = active.on(event(wire, &next.call, next.id, response, now))?;
                self.book(row, cost);
                states.push((row, active.next(&self.engine.extractor).await?));
            }
            self.save(states).await?;
        }
        Ok(())
    }

    /// Leaves rows without a result to the next round, unless that happens again and again.
    async fn miss(&mut self, file: &File, missing: BTreeSet<u64>) -> Result<(), Halted> {
        let mut rest: Vec<u64> = missing.into_iter().collect();
        let message = format!("`{}` has not processed the request in {MAX_DEFERRED} files", file.target);
        while !rest.is_empty() {
            let mut states = Vec::new();
            let waiting = self.waiting(&mut rest, &file.key).await?;
            self.drop_calls(waiting.iter().map(|(active, _)| active.number), false).await?;
            for (mut active, next) in waiting {
                let row = active.number;
                self.book(row, Cost::default());
                active.deferred += 1;
                self.round.held_back.insert(row);
                if active.deferred < MAX_DEFERRED {
                    states.push((row, Next::Call(Box::new(active), next)));
                } else if self.answered {
                    states.push((row, active.give_up(&message)));
                } else {
                    self.note(row, Outcome::Deferred(ErrorKind::Unavailable, message.clone(), None));
                }
            }
            self.save(states).await?;
        }
        Ok(())
    }

    /// Closes the open calls of rows, all at once because they share commits.
    pub(super) async fn drop_calls(
        &self,
        rows: impl IntoIterator<Item = u64>,
        may_be_made: bool,
    ) -> Result<(), BatchError> {
        try_join_all(rows.into_iter().map(|row| self.store.drop_call(row, may_be_made))).await.map(|_| ())
    }

    /// Stores the states of rows, all at once because they share commits.
    pub(super) async fn save(&mut self, states: Vec<(u64, Next)>) -> Result<(), BatchError> {
        let (store, now, may_reject) = (self.store.as_ref(), self.engine.clock.now(), self.answered);
        let saved = states.into_iter().map(|(row, after)| async move {
            let outcome = match after {
                Next::Call(active, _) => store.checkpoint(row, active.state()).await.map(|()| Outcome::Cut),
                Next::Done(history, deferred, result) => {
                    let result = result.map(Accepted::from).map_err(RunError::from);
                    settle(store, row, history, deferred, result, &Turn::alone(may_reject), now).await
                }
            };
            outcome.map(|outcome| (row, outcome))
        });
        let outcomes = try_join_all(saved).await?;
        outcomes.into_iter().for_each(|(row, outcome)| self.note(row, outcome));
        Ok(())
    }
}
