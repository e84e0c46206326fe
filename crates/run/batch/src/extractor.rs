use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use formwork_extract::{CancellationToken, Extractor};
use serde_json::{Value, json};

use crate::{Batch, BatchError, Ended, Engine as _, InProcess, Progress, Question, Row, Spec};

/// The number of rows in progress at the same time.
const ROWS: usize = 64;

/// Adds batches to [`Extractor`](formwork_extract::Extractor), for callers who need no other engine.
#[async_trait]
pub trait ExtractorBatch {
    /// Processes all rows, at most 64 at a time, and stores the results in a folder. If the folder has a batch of the same rows and the
    /// same contract, that batch is continued. Dropping the future keeps the state of the batch; the next call continues it.
    ///
    /// # Errors
    /// [`BatchError::OtherBatch`] or [`BatchError::OtherContract`] for the folder of another batch, [`BatchError::Locked`] if another
    /// process works on it, and the errors of the store.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use formwork_batch::{Ended, ExtractorBatch as _, Row};
    /// use formwork_extract::Extractor;
    /// use formwork_testkit::Scripted;
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    /// let model = Scripted::new([r#"{"age": 34}"#; 2]);
    /// let extractor = Extractor::for_document("person", schema).with_target(Arc::new(model)).build()?;
    ///
    /// let rows = [Row::new("maria", "Maria is 34."), Row::new("jon", "Jon is 34.")];
    /// let folder = tempfile::tempdir()?;
    /// let (ended, progress) = extractor.batch(rows.to_vec(), folder.path()).await?;
    /// assert_eq!((ended, progress.accepted), (Ended::Done, 2));
    /// let lines = std::fs::read_to_string(folder.path().join("part-00001.jsonl"))?;
    /// assert!(lines.contains(r#"{"id":"maria","value":{"age":34}"#)); // The order of the lines is that of the answers.
    ///
    /// // Every row has its result, so nothing is asked.
    /// assert_eq!(extractor.batch(rows.to_vec(), folder.path()).await?.0, Ended::Done);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    async fn batch(&self, rows: Vec<Row>, folder: &Path) -> Result<(Ended, Progress), BatchError>;
}

#[async_trait]
impl ExtractorBatch for Extractor<Value> {
    async fn batch(&self, rows: Vec<Row>, folder: &Path) -> Result<(Ended, Progress), BatchError> {
        let contract = json!({"digest": self.plan().contract().digest()});
        let rows = rows.into_iter().map(|row| Ok(Ok(row)));
        let mut batch = match Batch::open(folder) {
            Ok(batch) => {
                batch.check_rows(rows)?;
                batch
            }
            Err(BatchError::NoBatch(_)) => {
                Batch::create_fallible(folder, &Spec::new(contract.clone(), "rows of a program"), rows)?
            }
            Err(error) => return Err(error),
        };
        if batch.view().spec().contract != contract {
            let difference = "its digest is another one".to_owned();
            return Err(BatchError::OtherContract { path: folder.to_owned(), difference });
        }
        let question = Question::of(self);
        let judged = batch.judge(&contract, &question, |_, _| false)?;
        batch.ask(contract, question, judged)?;
        let batch = Arc::new(batch);
        let engine = InProcess::new(self.clone(), ROWS);
        let ended = engine.run(Arc::clone(&batch) as _, &CancellationToken::new()).await;
        let closed = batch.close();
        let ended = ended?;
        closed?;
        Ok((ended, batch.view().progress()?))
    }
}
