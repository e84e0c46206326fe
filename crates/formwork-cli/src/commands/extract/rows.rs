//! `formwork extract --jsonl`: many inputs, some at a time, answered in order.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use formwork_core::{Error, ErrorKind, Input};
use formwork_extract::{CancellationToken, Extraction, Extractor};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::{Args, Asks};
use crate::exit::{Done, Failed};
use crate::rows::{ExtractInput, ExtractOutput};
use crate::{files, jsonl};

pub(super) async fn run(args: &Args, cancel: &CancellationToken) -> Result<Done, Failed> {
    let common = match &args.schema {
        Some(path) => Some((path, files::json(path)?)),
        None => None,
    };
    let asks = Asks::new(args).await?;
    let common = match common {
        Some((path, schema)) => {
            Some(asks.extractor(schema).map_err(|error| super::failed(&error, Some(path)))?)
        }
        None => None,
    };
    let mut extractors = Extractors { asks, common, known: HashMap::new() };
    let path = args.file.as_deref().unwrap_or(Path::new("-"));
    let rows = jsonl::rows::<ExtractInput>(path)?;
    let answers = stream::iter(rows).map(|row| {
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
    let progress = jsonl::progress();
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &answer).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        // Whoever reads along gets each row when it is there.
        out.flush()?;
        progress.inc(1);
        if cancel.is_cancelled() {
            return Err(Failed::interrupted());
        }
    }
    progress.finish_and_clear();
    Ok(Done::Fine)
}

/// A row's `id`, and what there is to do for it.
fn prepare(
    extractors: &mut Extractors<'_>,
    row: jsonl::Row<ExtractInput>,
    cancel: &CancellationToken,
) -> (Value, Result<Extraction<Value>, Error>) {
    let ExtractInput { id, input, schema } = match row {
        Ok(row) => row,
        Err(message) => return (Value::Null, Err(Error::new(ErrorKind::Config, message))),
    };
    let extractor = extractors.of(schema);
    (id, extractor.map(|extractor| extractor.extraction(Input::from(input)).with_cancel(cancel.clone())))
}

/// The extractors of the schemas that were seen; rows tend to repeat them.
struct Extractors<'a> {
    asks: Asks<'a>,
    common: Option<Extractor<Value>>,
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
        let extractor = self.asks.extractor(schema)?;
        if self.known.len() < KEPT {
            self.known.insert(text, extractor.clone());
        }
        Ok(extractor)
    }
}
