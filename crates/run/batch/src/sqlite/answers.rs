//! Stored answers about single texts, outside of batches.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use formwork_core::{Clock as _, Context, Cost, Error, ErrorKind, Outcome, Run};
use formwork_extract::{Extractor, Journal, TokioClock};
use formwork_ledger::{Database, RecordId};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tables::{Asked, int, is_of};
use crate::question::Question;
use crate::{BatchError, RowEnd};

/// The rows of this process, which the statements on answers of batches read.
const ROWS: &str = "CREATE TEMP TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, key INTEGER NOT NULL, era INTEGER NOT NULL, digest BLOB)";

/// The answers of a store, for commands that ask about single texts: a stored answer to the same question about the same text is used
/// instead of a call, whichever batch or command paid for it, and each call is stored before it leaves.
///
/// ```
/// use std::sync::Arc;
/// use formwork_batch::{Answers, Question};
/// use formwork_extract::Extractor;
/// use formwork_testkit::Scripted;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let model = Scripted::new([r#"{"age": 34}"#]);
/// let extractor = Extractor::for_document("person", json!({"properties": {"age": {}}})).with_target(Arc::new(model)).build()?;
/// let folder = tempfile::tempdir()?;
/// let answers = Answers::open(folder.path().join("store.db"))?;
/// let question = Question::of(&extractor);
/// assert!(answers.find(&question, &extractor, "Maria is 34.")?.is_none());
///
/// let entry = Arc::new(answers.entry(&question, &extractor, "Maria is 34.")?);
/// let result = extractor.extraction("Maria is 34.").with_journal(entry.clone()).run().await;
/// entry.end(&result).await?;
/// let stored = answers.find(&question, &extractor, "Maria is 34.")?.map(|outcome| (outcome.value, outcome.calls.len()));
/// assert_eq!(stored, Some((json!({"age": 34}), 0)));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Answers {
    database: Database,
    /// The name under which the calls of this process are stored.
    name: String,
    next: AtomicU64,
}

impl Answers {
    /// Opens a store, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`BatchError::Store`] for a file that is no store, or one of a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BatchError> {
        let database = Database::of_ledger(path)?;
        database.write(|file| file.execute_batch(ROWS)).wait()?;
        Ok(Self {
            database,
            name: RecordId::next().to_string().replace("run_", "text_"),
            next: AtomicU64::new(0),
        })
    }

    /// Returns the newest stored value for this question about this text that satisfies the contract of the extractor, as the outcome
    /// of a run without a call; `None` if there is none.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn find(
        &self,
        question: &Question,
        extractor: &Extractor<Value>,
        text: &str,
    ) -> Result<Option<Outcome<Value>>, BatchError> {
        let contract = extractor.plan().contract();
        let context = Context { source: text, ..Context::EMPTY };
        let lines = self.database.read(|file| {
            let mut select = file.prepare_cached(
                "SELECT line, target, sampling, sample FROM answer WHERE input = ?1 AND prompt = ?2 AND outcome = 1 ORDER BY id DESC",
            )?;
            let mut rows = select.query(params![Sha256::digest(text).as_slice(), question.prompt])?;
            let mut lines: Vec<String> = Vec::new();
            while let Some(row) = rows.next()? {
                if is_of(question, row)? {
                    lines.push(row.get("line")?);
                }
            }
            Ok(lines)
        })?;
        let outcomes = lines.iter().filter_map(|line| stored(line));
        let mut fitting = outcomes.filter(|outcome| contract.judge(&outcome.value, &context).is_accepted());
        Ok(fitting.next().map(|outcome| outcome.with_source(text, contract)))
    }

    /// Begins the entry of a text, whose calls are stored by it.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn entry(
        &self,
        question: &Question,
        extractor: &Extractor<Value>,
        text: &str,
    ) -> Result<Entry, BatchError> {
        let contract = Value::from(extractor.plan().contract().digest());
        let asked = Asked::new(self.name.clone(), question.clone(), &contract);
        let (number, digest) = (self.next.fetch_add(1, Ordering::Relaxed), Sha256::digest(text));
        let add = move |file: &Connection| {
            file.prepare_cached("INSERT INTO rows VALUES (?1, ?1, 0, ?2)")?
                .execute(params![int(number), digest.as_slice()])
                .map(|_| ())
        };
        self.database.write(add).wait()?;
        Ok(Entry { database: self.database.clone(), asked: Arc::new(asked), number })
    }
}

/// Returns the outcome of a stored line.
fn stored(line: &str) -> Option<Outcome<Value>> {
    let mut line: Value = serde_json::from_str(line).ok()?;
    let own = line.as_object_mut()?;
    for (name, nothing) in [("provenance", json!([])), ("calls", json!([])), ("warnings", json!([]))] {
        if name != "warnings" || !own.contains_key(name) {
            own.insert(name.to_owned(), nothing);
        }
    }
    let factors = own.remove("factors");
    own.insert("usage".to_owned(), json!(formwork_core::Usage::default()));
    own.insert("cost".to_owned(), json!(Cost { tokens: 0, micro_usd: Some(0) }));
    let outcome: Outcome<Value> = serde_json::from_value(line).ok()?;
    // Answers of earlier versions have none.
    let factors = factors.and_then(|factors| serde_json::from_value(factors).ok());
    Some(match factors {
        Some(factors) => outcome.with_factors(factors),
        None => outcome,
    })
}

/// One text in a store: the journal of its run.
#[derive(Debug)]
pub struct Entry {
    database: Database,
    asked: Arc<Asked>,
    number: u64,
}

impl Entry {
    /// Stores the result, and the calls that are not stored yet.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub async fn end(&self, result: &Result<Outcome<Value>, Error>) -> Result<(), BatchError> {
        let end = RowEnd::new(Vec::new(), result.clone());
        let (asked, number, line, now) =
            (Arc::clone(&self.asked), self.number, end.line(), TokioClock::new().now());
        let end = move |file: &Connection| {
            if end.is_accepted() || !end.calls().is_empty() {
                asked.end(file, number, &end, &line, now)?;
            }
            file.execute("DELETE FROM rows WHERE number = ?1", [int(number)]).map(|_| ())
        };
        Ok(self.database.write(end).await?)
    }

    async fn write(
        &self,
        write: impl FnOnce(&Connection, &Asked, u64) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let (asked, number) = (Arc::clone(&self.asked), self.number);
        let written = self.database.write(move |file| write(file, &asked, number)).await;
        written.map_err(|error| Error::new(ErrorKind::Config, format!("the store: {error}")))
    }
}

#[async_trait]
impl Journal for Entry {
    async fn store(&self, run: &Run) -> Result<(), Error> {
        let calls = run.ledger().to_vec();
        self.write(move |file, asked, number| asked.add_calls(file, number, calls.iter()).map(|_| ())).await
    }

    async fn calling(&self, target: &str, reserve: Cost) -> Result<(), Error> {
        let (target, now) = (target.to_owned(), TokioClock::new().now());
        self.write(move |file, asked, number| {
            asked.intend(file, number, &target, (now, reserve.micro_usd, None))
        })
        .await
    }
}
