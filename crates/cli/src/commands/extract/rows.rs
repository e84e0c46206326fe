//! `formwork extract --jsonl`: many inputs, some concurrently, with results in order.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Instant;

use formwork::config::Places;
use formwork::providers::Providers;
use formwork_core::{Error, ErrorKind, Outcome, Rules};
use formwork_extract::{CancellationToken, Observer, RunId};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::schema::Given;
use super::store::{Asks, Begun};
use super::{Args, EMPTY, Requests, schema, source, store};
use crate::exit::{Failed, Status};
use crate::jsonl::BadRow;
use crate::rows::{ExtractInput, ExtractOutput};
use crate::rules::Placed;
use crate::stderr::say;
use crate::{files, jsonl, rules};

pub(super) async fn run(
    args: &Args,
    providers: &Providers,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    let schema = args.schema.as_deref().map(Path::new);
    let inputs = [source(args)].into_iter().chain(schema).chain(args.rules.as_deref());
    files::one_standard_input(&inputs.collect::<Vec<_>>())?;
    let rules = args.rules.as_deref().map(rules::of_file).transpose()?.unwrap_or_default();
    let common = super::given(args, &rules, providers)?;
    let mut rows = jsonl::incoming::<ExtractInput>(source(args))?;
    let requests = Requests::new(args, providers).await?;
    let own = common.as_ref().and_then(|common| common.usable.evidence);
    let evidence = args.evidence.or(own).or(requests.opened.defaults.evidence);
    let doubt = super::doubt(args, &requests.opened.defaults);
    let follow_up = &requests.follow_up();
    let name = common.as_ref().map(|common| common.name.clone());
    let common = match common {
        Some(Given { name, usable }) => {
            Some(requests.asks(usable).map_err(|error| super::failed(&error, Some(&name)))?)
        }
        None => None,
    };
    let (known, down) = (HashMap::new(), Arc::new(Once::new()));
    let registered = providers.rules();
    let mut extractors = Extractors { requests, common, name, rules, registered, known, down };
    // A cancellation starts no further row. The results of open rows are still printed.
    let rows = stream::poll_fn(|cx| rows.poll_recv(cx)).take_until(cancel.cancelled());
    let answers = rows.map(|row| {
        // A row is read, and its schema compiled, only when fewer than `concurrency` rows are in progress.
        let prepared = row.map(|row| prepare(&mut extractors, row, cancel));
        async move {
            let (id, extraction) = prepared?;
            let started = Instant::now();
            let mut result = match extraction {
                Ok(Begun::Stored(outcome)) => Ok(*outcome),
                Ok(Begun::Run(extraction, entry)) => {
                    let result = extraction.run().await;
                    store::keep(entry, &result).await;
                    result
                }
                Err(error) => Err(error),
            };
            if evidence == Some(Places::Quote) {
                follow_up.quote(&mut result, started, cancel).await;
            }
            let row = ExtractOutput::new(id, &result);
            let row = if evidence.is_some() { row.with_evidence(&result) } else { row };
            let confidence = result.as_ref().ok().zip(doubt).map(|(outcome, doubt)| doubt.of(outcome, &[]));
            Ok::<_, Failed>(ExtractOutput { confidence, ..row })
        }
    });
    let mut answers = std::pin::pin!(answers.buffered(usize::from(args.concurrency)));
    let mut printed = jsonl::Printed::new("rows", None);
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        printed.row(&answer, answer.ok)?;
    }
    if cancel.is_cancelled() {
        Err(Failed::interrupted())
    } else {
        Ok(Status::of(printed.all_ok || args.allow_failures))
    }
}

/// The `id` of a row, and its extraction or error.
fn prepare(
    extractors: &mut Extractors<'_>,
    (line, row): (usize, jsonl::Row<ExtractInput>),
    cancel: &CancellationToken,
) -> (Value, Result<Begun, Error>) {
    let ExtractInput { id, input, schema } = match row {
        Ok(row) => row,
        Err(BadRow { id, message }) => return (id, Err(Error::new(ErrorKind::Config, message))),
    };
    if input.trim().is_empty() {
        let place = files::name(source(extractors.requests.args));
        return (id, Err(Error::new(ErrorKind::Config, format!("{place}:{line}: {EMPTY}"))));
    }
    let name = extractors.name.clone().filter(|_| schema.is_none());
    let begun = extractors.of(schema).and_then(|asks| {
        let down = Down(Arc::clone(&extractors.down));
        let (extraction, entry) = match extractors.requests.begin(&asks, input, name.as_deref())? {
            Begun::Run(extraction, entry) => (extraction, entry),
            stored @ Begun::Stored(_) => return Ok(stored),
        };
        Ok(Begun::Run(extraction.with_cancel(cancel.clone()).with_observer(down), entry))
    });
    (id, begun)
}

/// An observer that prints once that no provider can be reached, and the consequence for later rows.
struct Down(Arc<Once>);

impl Observer for Down {
    fn done(&self, _: RunId, result: &Result<Outcome<Value>, Error>) {
        let Err(error) = result else { return };
        // A row without a call follows a row whose targets were unreachable.
        if error.kind() == ErrorKind::Unavailable && error.calls().is_empty() {
            self.0.call_once(|| {
                say!(
                    "warning: {}; until then, rows fail without a call; then a single call is made",
                    error.message()
                );
            });
        }
    }
}

/// The extractors of earlier schemas, because rows often repeat schemas.
struct Extractors<'a> {
    requests: Requests<'a>,
    common: Option<Asks>,
    /// The name of the schema of `--schema`.
    name: Option<String>,
    /// The rules of `--rules`, which apply with every schema.
    rules: Vec<Placed>,
    /// The rules from outside of Formwork.
    registered: &'a Rules,
    known: HashMap<String, Asks>,
    /// Whether the warning about unreachable providers was printed.
    down: Arc<Once>,
}

/// The maximum number of cached extractors.
const KEPT: usize = 64;

impl Extractors<'_> {
    fn of(&mut self, schema: Option<Value>) -> Result<Asks, Error> {
        let Some(schema) = schema else {
            let missing =
                || Error::new(ErrorKind::Config, "the row has no `schema`, and there is no --schema");
            return self.common.clone().ok_or_else(missing);
        };
        let text = schema.to_string();
        if let Some(known) = self.known.get(&text) {
            return Ok(known.clone());
        }
        let asks = self.requests.asks(
            schema::usable(schema, &self.requests.args.marks, self.registered, self.requests.args.any)?
                .with_rules(&self.rules, self.registered)?,
        )?;
        if self.known.len() < KEPT {
            self.known.insert(text, asks.clone());
        }
        Ok(asks)
    }
}
