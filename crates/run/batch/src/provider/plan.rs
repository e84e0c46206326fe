//! Writes calls into files.

use std::collections::BTreeMap;

use formwork_core::{Cost, Event, Fault, FaultKind, Usage};
use formwork_ledger::RecordId;
use formwork_wire::Bytes;
use formwork_wire::batch::{FileLimits, FileRequest};
use formwork_wire::http::Request;
use futures_util::future::try_join_all;

use super::engine::{Halted, Planned, Work};
use super::record::{File, FileState, KEY, custom_id};
use super::rows::{Active, Next, NextCall};
use crate::drive::READ;
use crate::{BatchError, OpenRow};

/// A file that is being filled.
#[derive(Default)]
struct Draft {
    /// The rows with the maximum costs of their calls.
    rows: Vec<(u64, Cost)>,
    requests: Vec<FileRequest>,
    bytes: usize,
    key: String,
}

impl Work<'_> {
    /// Writes the next call of each open row that no file has into files, and submits these.
    pub(super) async fn plan(&mut self) -> Result<Planned, Halted> {
        let mut planned = Planned::default();
        let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
        let mut last = None;
        loop {
            let rows = self.store.open_rows(last, READ).await?;
            let Some(end) = rows.last() else { break };
            last = Some(end.number);
            let (mut states, mut calls) = (Vec::new(), Vec::new());
            let is_free = |row: &OpenRow| {
                let is_in_file = |handle: &String| self.files.files().any(|file| file.key == *handle);
                !self.round.held_back.contains(&row.number) && !row.handle.as_ref().is_some_and(is_in_file)
            };
            let rows: Vec<OpenRow> = rows.into_iter().filter(is_free).collect();
            // A process died before it recorded the file, or another engine has the call.
            let is_own = |row: &&OpenRow| row.handle.as_ref().is_some_and(|handle| handle.starts_with(KEY));
            self.drop_calls(rows.iter().filter(is_own).map(|row| row.number), false).await?;
            for row in rows {
                if self.store.reuse(&row, self.engine.extractor.plan().contract()).await? {
                    continue;
                }
                planned.has_rows = true;
                let active = Active::open(&self.engine.extractor, row, self.engine.clock.now());
                let Some((active, next, request)) = self.request(active).await? else { continue };
                if let Err(message) = self.reserve(active.number, next.reserve) {
                    planned.over_budget = Some(message);
                    break;
                }
                states.push((active.number, active.state()));
                calls.push((active.number, next, request));
            }
            let stored = states.into_iter().map(|(row, state)| self.store.checkpoint(row, state));
            try_join_all(stored).await?;
            for (row, next, request) in calls {
                let limits = self.limits(&next.target)?;
                let draft = drafts.entry(next.target.clone()).or_default();
                let is_full =
                    draft.requests.len() >= limits.requests || draft.bytes + size(&request) > limits.bytes;
                if is_full && !draft.requests.is_empty() {
                    let full = std::mem::take(draft);
                    planned.has_files = true;
                    self.seal(&next.target, full).await?;
                }
                drafts.entry(next.target).or_default().add(row, next.reserve, request);
            }
            if planned.over_budget.is_some() {
                break;
            }
            self.check_control().await?;
        }
        for (target, draft) in drafts.into_iter().filter(|(_, draft)| !draft.requests.is_empty()) {
            planned.has_files = true;
            self.seal(&target, draft).await?;
        }
        Ok(planned)
    }

    fn limits(&self, target: &str) -> Result<FileLimits, BatchError> {
        let (own, limits) = (self.engine.limits, self.api(target)?.limits());
        Ok(FileLimits {
            requests: own.requests.min(limits.requests).max(1),
            bytes: own.bytes.min(limits.bytes),
        })
    }

    /// Returns the row with its next call and the request of that; `None` if the row is finished or stays open.
    async fn request(
        &mut self,
        mut active: Active,
    ) -> Result<Option<(Active, NextCall, Request<Bytes>)>, Halted> {
        let number = active.number;
        loop {
            let next = match active.next(&self.engine.extractor).await? {
                Next::Call(row, next) => {
                    active = *row;
                    next
                }
                done @ Next::Done(..) => {
                    self.save(vec![(number, done)]).await?;
                    return Ok(None);
                }
            };
            let max = self.limits(&next.target)?.bytes;
            let fault = match self.api(&next.target)?.wire().encode(&next.call) {
                Ok(request) if size(&request) <= max => return Ok(Some((active, next, request))),
                Ok(request) => {
                    let length = request.body().len();
                    let message = format!("the request has {length} bytes, and a file at most {max}");
                    Fault::new(FaultKind::BadRequest, message)
                }
                Err(fault) => fault,
            };
            active.on(Event::failed(next.id, fault, Usage::default()))?;
        }
    }

    /// Records a file with its calls, and submits it.
    async fn seal(&mut self, target: &str, draft: Draft) -> Result<(), Halted> {
        let (store, key) = (&self.store, Some(draft.key.as_str()));
        try_join_all(draft.rows.iter().map(|(row, reserve)| store.intend(*row, target, *reserve, key)))
            .await?;
        let file = File {
            key: draft.key,
            target: target.to_owned(),
            planned: self.engine.clock.now(),
            state: FileState::Planned,
            requests: draft.requests.len(),
        };
        let number = self.files.add(file).await?;
        match self.submit(number, draft.requests).await {
            Ok(()) => Ok(()),
            Err(halted) => self.endure(halted, target).map(|_| ()),
        }
    }

    /// Writes the requests of a file once more, from the rows that still wait for them.
    pub(super) async fn rewritten(&self, number: u64) -> Result<Vec<FileRequest>, Halted> {
        let Some(file) = self.files.get(number) else { return Ok(Vec::new()) };
        let (mut rest, mut requests) = (self.store.rows_of(&file.key).await?, Vec::new());
        while !rest.is_empty() {
            for (active, next) in self.waiting(&mut rest, &file.key).await? {
                let request = self.api(&file.target)?.wire().encode(&next.call)?;
                requests.push(FileRequest { custom_id: custom_id(&file.key, active.number), request });
            }
        }
        Ok(requests)
    }
}

impl Draft {
    fn add(&mut self, row: u64, reserve: Cost, request: Request<Bytes>) {
        if self.key.is_empty() {
            self.key = RecordId::next().to_string().replace("run_", KEY);
        }
        self.bytes += size(&request);
        self.rows.push((row, reserve));
        self.requests.push(FileRequest { custom_id: custom_id(&self.key, row), request });
    }
}

/// Returns the number of bytes that a request takes in a file, at most.
fn size(request: &Request<Bytes>) -> usize {
    request.body().len() + 256
}
