//! A batch with a model of one's own and an engine that is stopped and gone on with: `cargo run -p formwork-batch --example embed-batch`.

use std::sync::Arc;

use formwork_batch::{Batch, Engine, InProcess, Row, Spec};
use formwork_extract::{CancellationToken, Extractor};
use formwork_testkit::Scripted;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let answers = [r#"{"age": 34}"#, r#"{"age": "forty-one"}"#, r#"{"age": 41}"#];
    let extractor = Extractor::for_document("person", schema.clone())
        .with_target(Arc::new(Scripted::new(answers)))
        .build()?;

    let folder = tempfile::tempdir()?;
    let rows = [Row::new("maria", "Maria is 34."), Row::new("jon", "Jon is 41.")];
    drop(Batch::create(folder.path(), &Spec::new(schema, "letters"), rows.map(Ok))?);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // The first process takes one row, the second one the rest.
        for limit in [Some(1), None] {
            let batch = Arc::new(Batch::open(folder.path())?);
            if let Some(rows) = limit {
                batch.limit(rows, None)?;
            }
            let engine = InProcess::new(extractor.clone(), 1);
            let ended = engine.run(Arc::clone(&batch) as _, &CancellationToken::new()).await?;
            batch.close()?;
            println!("{ended:?}: {:?}", batch.view().progress()?);
        }
        print!("{}", std::fs::read_to_string(folder.path().join("part-00001.jsonl"))?);
        Ok(())
    })
}
