//! The results of a file are joined with its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use formwork_core::Outcome as RunOutcome;
use formwork_core::{CallRecord, Cost, Error, ErrorKind};
use formwork_wire::Bytes;
use formwork_wire::http::Response;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use serde_json::Value;

use super::engine::{Halted, Work};
use super::record::{File, FileRows, Files, custom_id};
use super::rows::{Next, event};
use crate::drive::{MAX_DEFERRED, Outcome, READ, Turn, settle};
use crate::row::RunError;
use crate::{BatchError, RowState};

/// The state of a row after its call, which is to be stored.
enum After {
    Open(RowState),
    Done(Vec<CallRecord>, u32, Box<Result<RunOutcome<Value>, Error>>),
}

impl Work<'_> {
    /// Joins the results of a file with its rows, and removes the file. A crash in between is harmless: a row that has its answer does
    /// not wait for the call any more.
    pub(super) async fn collect(&mut self, number: u64, file: &File, id: &str) -> Result<(), Halted> {
        let rows = Files::rows(self.store.as_ref(), number).await?;
        let mut missing: BTreeSet<u64> = rows.keys().copied().collect();
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
            self.join(file, &rows, chunk).await?;
        }
        self.miss(file, &rows, missing).await?;
        let store = Arc::clone(&self.store);
        Ok(self.files.remove(store.as_ref(), number).await?)
    }

    /// Reports responses to the runs of their rows.
    async fn join(
        &mut self,
        file: &File,
        rows: &FileRows,
        mut responses: BTreeMap<u64, Response<Bytes>>,
    ) -> Result<(), Halted> {
        let numbers: Vec<u64> = responses.keys().copied().collect();
        let mut rest = numbers.as_slice();
        while !rest.is_empty() {
            let mut states = Vec::new();
            for row in self.among(&mut rest).await? {
                let Some(response) = responses.remove(&row.number) else { continue };
                let Some((mut active, next)) = self.waiting(row, rows).await? else { continue };
                let (row, now) = (active.number, self.engine.clock.now());
                self.round.answered |= response.status().is_success();
                self.answered |= response.status().is_success();
                let wire = self.api(&file.target)?.wire();
                let cost = active.on(event(wire, &next.call, next.id, response, now))?;
                self.book(row, cost);
                states.push((
                    row,
                    match active.next(&self.engine.extractor).await? {
                        Next::Call(active, _) => After::Open(active.state()),
                        Next::Done(history, deferred, result) => {
                            After::Done(history, deferred, Box::new(result))
                        }
                    },
                ));
            }
            self.save(states).await?;
        }
        Ok(())
    }

    /// Leaves rows without a result to the next round, unless that happens again and again.
    async fn miss(&mut self, file: &File, rows: &FileRows, missing: BTreeSet<u64>) -> Result<(), Halted> {
        let numbers: Vec<u64> = missing.into_iter().collect();
        let mut rest = numbers.as_slice();
        let message = format!("`{}` has not processed the request in {MAX_DEFERRED} files", file.target);
        while !rest.is_empty() {
            let mut states = Vec::new();
            for row in self.among(&mut rest).await? {
                let Some((mut active, _)) = self.waiting(row, rows).await? else { continue };
                let row = active.number;
                self.book(row, Cost::default());
                active.deferred += 1;
                if active.deferred < MAX_DEFERRED {
                    states.push((row, After::Open(active.state())));
                } else if self.answered {
                    let deferred = active.deferred;
                    let (history, error) = active.give_up(&message);
                    states.push((row, After::Done(history, deferred, Box::new(Err(error)))));
                } else {
                    self.note(Outcome::Deferred(ErrorKind::Unavailable, message.clone()));
                }
            }
            self.save(states).await?;
        }
        Ok(())
    }

    /// Stores the states of rows, all at once because they share commits.
    async fn save(&mut self, states: Vec<(u64, After)>) -> Result<(), BatchError> {
        let (store, now, may_reject) = (self.store.as_ref(), self.engine.clock.now(), self.answered);
        let saved = states.into_iter().map(|(row, after)| async move {
            match after {
                After::Open(state) => store.checkpoint(row, state).await.map(|()| Outcome::Cut),
                After::Done(history, deferred, result) => {
                    let result = (*result).map_err(RunError::from);
                    settle(store, row, history, deferred, result, &Turn::alone(may_reject), now).await
                }
            }
        });
        let outcomes = try_join_all(saved).await?;
        outcomes.into_iter().for_each(|outcome| self.note(outcome));
        Ok(())
    }
}
