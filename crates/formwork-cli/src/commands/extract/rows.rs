//! `formwork extract --jsonl`: many inputs, some at a time, answered in order.

use std::collections::HashMap;
use std::path::Path;

use formwork::providers::Providers;
use formwork_core::{Error, ErrorKind};
use formwork_extract::{CancellationToken, Extraction, Extractor};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::schema::Given;
use super::{Args, Asks, EMPTY, report, schema, source};
use crate::exit::{Failed, Status};
use crate::jsonl::BadRow;
use crate::rows::{ExtractInput, ExtractOutput};
use crate::rules::Placed;
use crate::{files, jsonl, output, rules, terminal};

pub(super) async fn run(
    args: &Args,
    providers: &Providers,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    let schema = args.schema.as_deref().map(Path::new);
    let inputs = [source(args)].into_iter().chain(schema).chain(args.rules.as_deref());
    files::one_standard_input(&inputs.collect::<Vec<_>>())?;
    let rules = args.rules.as_deref().map(rules::of_file).transpose()?.unwrap_or_default();
    let common = match &args.schema {
        Some(argument) => Some(schema::given(argument, &rules)?),
        None => None,
    };
    let mut rows = jsonl::incoming::<ExtractInput>(source(args))?;
    let asks = Asks::new(args, providers).await?;
    let name = common.as_ref().map(|common| common.name.clone());
    let common = match common {
        Some(Given { name, usable }) => {
            Some(asks.extractor(usable).map_err(|error| super::failed(&error, Some(&name)))?)
        }
        None => None,
    };
    let mut extractors = Extractors { asks, common, name, rules, known: HashMap::new() };
    // No row is begun after a cancel; those that are open still say how far they came.
    let rows = stream::poll_fn(|cx| rows.poll_recv(cx)).take_until(cancel.cancelled());
    let answers = rows.map(|row| {
        // The rows are read, and their schemas compiled, only as there is room for them.
        let prepared = row.map(|row| prepare(&mut extractors, row, cancel));
        async move {
            let (id, extraction) = prepared?;
            let result = match extraction {
                Ok(extraction) => extraction.run().await,
                Err(error) => Err(error),
            };
            Ok::<_, Failed>(ExtractOutput::new(id, &result))
        }
    });
    let mut answers = std::pin::pin!(answers.buffered(usize::from(args.concurrency)));
    let progress = terminal::count("rows", None);
    let mut all_ok = true;
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        all_ok &= answer.ok;
        output::row(&answer)?;
        progress.iter().for_each(|bar| bar.inc(1));
    }
    drop(progress);
    if cancel.is_cancelled() {
        Err(Failed::interrupted())
    } else {
        Ok(Status::of(all_ok || args.allow_failures))
    }
}

/// A row's `id`, and what there is to do for it.
fn prepare(
    extractors: &mut Extractors<'_>,
    row: jsonl::Row<ExtractInput>,
    cancel: &CancellationToken,
) -> (Value, Result<Extraction<Value>, Error>) {
    let ExtractInput { id, input, schema } = match row {
        Ok(row) => row,
        Err(BadRow { id, message }) => return (id, Err(Error::new(ErrorKind::Config, message))),
    };
    if input.trim().is_empty() {
        return (id, Err(Error::new(ErrorKind::Config, EMPTY)));
    }
    let verbose = extractors.asks.args.verbose;
    let name = extractors.name.clone().filter(|_| schema.is_none());
    let extraction = extractors.of(schema).map(|extractor| {
        let extraction = extractors.asks.extraction(&extractor, input, name.as_deref());
        let extraction = extraction.with_cancel(cancel.clone());
        if verbose { extraction.with_observer(report::Report) } else { extraction }
    });
    (id, extraction)
}

/// The extractors of the schemas that were seen; rows tend to repeat them.
struct Extractors<'a> {
    asks: Asks<'a>,
    common: Option<Extractor<Value>>,
    /// The name of the common schema.
    name: Option<String>,
    /// The rules of `--rules`, for every schema.
    rules: Vec<Placed>,
    known: HashMap<String, Extractor<Value>>,
}

/// The most schemas that are kept.
const KEPT: usize = 64;

impl Extractors<'_> {
    fn of(&mut self, schema: Option<Value>) -> Result<Extractor<Value>, Error> {
        let Some(schema) = schema else {
            let missing =
                || Error::new(ErrorKind::Config, "the row has no `schema`, and there is no --schema");
            return self.common.clone().ok_or_else(missing);
        };
        let text = schema.to_string();
        if let Some(known) = self.known.get(&text) {
            return Ok(known.clone());
        }
        let extractor = self.asks.extractor(schema::usable(schema)?.with_rules(&self.rules)?)?;
        if self.known.len() < KEPT {
            self.known.insert(text, extractor.clone());
        }
        Ok(extractor)
    }
}
