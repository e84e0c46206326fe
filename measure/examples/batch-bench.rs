//! Measures batches with providers in this process: `cargo run --release --manifest-path measure/Cargo.toml --example batch-bench`.
//!
//! Prints one line of Markdown per measurement: rows per second and CPU time with a provider that answers at once, the wall time
//! with a provider that takes its time, and how long a large batch takes to continue after `kill -9`. With an argument: `bound` or
//! `resume ROWS` for one of them, `table ENDING ROWS` for a file in and a file out (`jsonl`; with the feature `parquet`, `parquet`).

#[path = "../src/cpu.rs"]
mod cpu;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cpu::cpu;
use formwork_batch::{Batch, Columns, Ended, Engine, InProcess, Row, Spec, View, read_rows};
use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Price, Provider, SharedProvider, Usage};
use formwork_extract::{Backend, CancellationToken, Extractor};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Notify;

type Done = Result<(), Box<dyn std::error::Error>>;

/// A provider that gives the right answer after a while.
#[derive(Debug, Default)]
struct Played {
    capabilities: Capabilities,
    latency: Duration,
    called: Notify,
}

#[async_trait]
impl Provider for Played {
    fn name(&self) -> &str {
        "played"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        self.called.notify_one();
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let text = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;
        let completion = Completion::new(text).with_usage(Usage::new(120, 24));
        Ok(Answer::new(stream::iter(completion.into_deltas().map(Ok).collect::<Vec<_>>())))
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "city": {"type": "string"},
        },
        "required": ["name", "age", "city"],
        "additionalProperties": false,
    })
}

fn extractor(latency: Duration) -> Result<Extractor<Value>, formwork_core::Error> {
    extractor_of(Arc::new(Played { latency, ..Played::default() }))
}

fn extractor_of(provider: SharedProvider) -> Result<Extractor<Value>, formwork_core::Error> {
    let backend = Backend::new(provider).with_price(Price::new(150_000, 600_000));
    Extractor::for_document("person", schema()).with_target(backend).build()
}

fn rows(count: u64) -> impl Iterator<Item = Result<Row, formwork_batch::BadRow>> + Send {
    let text =
        "Maria Lindqvist, 34, moved to Lisbon last spring. She asks for a copy of the report of the meeting.";
    (0..count).map(move |number| Ok(Row::new(format!("row-{number}"), format!("{text} No. {number}"))))
}

/// The peak of the memory of this process in megabytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() / 1024
}

async fn run(
    batch: &Arc<Batch>,
    latency: Duration,
    open: usize,
) -> Result<(f64, Duration), Box<dyn std::error::Error>> {
    let engine = InProcess::new(extractor(latency)?, open);
    let (started, before) = (Instant::now(), cpu()?);
    let ended = engine.run(Arc::clone(batch) as _, &CancellationToken::new()).await?;
    // Measured before the thread that writes files ends, because its time would be lost.
    let cpu = cpu()?.saturating_sub(before);
    batch.close()?;
    assert_eq!(ended, Ended::Done);
    Ok((started.elapsed().as_secs_f64(), cpu))
}

async fn instant(count: u64) -> Done {
    let folder = tempfile::tempdir()?;
    let batch = Arc::new(Batch::create(folder.path(), &Spec::new(schema(), "rows"), rows(count))?);
    let (seconds, cpu) = run(&batch, Duration::ZERO, 128).await?;
    println!(
        "| instant provider, {count} rows, 128 open | {:.0} rows/s | {:.0} µs of CPU per row |",
        count as f64 / seconds,
        cpu.as_micros() as f64 / count as f64
    );
    Ok(())
}

/// The load average of the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

/// The time in which all processes of this machine used its CPUs, and the time in which they could have.
fn machine() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let times: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|time| time.parse().ok())
        .collect();
    let all: f64 = times.iter().take(8).sum();
    // The fourth and fifth are the times without work.
    (all - times.iter().skip(3).take(2).sum::<f64>(), all)
}

async fn bound(count: u64, latency: Duration) -> Done {
    let folder = tempfile::tempdir()?;
    let batch = Arc::new(Batch::create(folder.path(), &Spec::new(schema(), "rows"), rows(count))?);
    let before = machine();
    let (seconds, cpu) = run(&batch, latency, 64).await?;
    let after = machine();
    let least = count as f64 * latency.as_secs_f64() / 64.0;
    println!(
        "| provider of {latency:?}, {count} rows, 64 open | {seconds:.2} s, {:.3} x calls x latency / 64; {:.1} ms more per call \
         | CPU: own {:.0} %, machine {:.0} %, load {} |",
        seconds / least,
        (seconds / least - 1.0) * latency.as_secs_f64() * 1000.0,
        cpu.as_secs_f64() / seconds * 100.0,
        (after.0 - before.0) / (after.1 - before.1) * 100.0,
        load(),
    );
    Ok(())
}

/// Kills a process with half of the rows done, and measures the start of the next one.
async fn resume(count: u64) -> Done {
    let folder = tempfile::tempdir()?;
    let started = Instant::now();
    drop(Batch::create(folder.path(), &Spec::new(schema(), "rows"), rows(count))?);
    let imported = started.elapsed().as_secs_f64();
    // Separate processes, so that the memory of the last one contains only the resumed batch.
    let program = std::env::current_exe()?;
    let mut child = std::process::Command::new(&program).arg("work").arg(folder.path()).spawn()?;
    let view = View::open(folder.path())?;
    while view.progress()?.accepted < count / 2 {
        if let Some(status) = child.try_wait()? {
            return Err(format!("the process ended early: {status}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    let output = std::process::Command::new(program).arg("go-on").arg(folder.path()).output()?;
    println!(
        "| {count} rows, killed with {} done | read in {imported:.1} s | {}, load {} |",
        view.progress()?.accepted,
        String::from_utf8_lossy(&output.stdout).trim(),
        load(),
    );
    Ok(())
}

/// Opens a batch, and works until its first call.
async fn go_on(folder: &str) -> Done {
    let started = Instant::now();
    let batch = Arc::new(Batch::open(folder)?);
    let opened = started.elapsed().as_secs_f64();
    let provider = Arc::new(Played { latency: Duration::from_secs(60), ..Played::default() });
    let shared: SharedProvider = Arc::clone(&provider) as _;
    let engine = InProcess::new(extractor_of(shared)?, 64);
    let cancel = CancellationToken::new();
    tokio::select! {
        ended = engine.run(Arc::clone(&batch) as _, &cancel) => drop(ended?),
        () = provider.called.notified() => {}
    }
    println!(
        "{:.3} s to open, {:.3} s until the first call, {} MB",
        opened,
        started.elapsed().as_secs_f64(),
        peak()
    );
    Ok(())
}

/// Processes a file of rows with a provider that answers at once, and writes the results to a file with the same ending, in a process of
/// its own, whose memory is measured.
fn table(ending: &str, count: u64) -> Done {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(format!("rows.{ending}"));
    if ending == "parquet" {
        parquet(&path, count)?;
    } else {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        for row in rows(count).flatten() {
            writeln!(file, "{}", json!({"id": row.id, "input": row.input}))?;
        }
        file.flush()?;
    }
    let output =
        std::process::Command::new(std::env::current_exe()?).arg("in-and-out").arg(&path).output()?;
    println!(
        "| {count} rows, {ending} | {}, load {} |",
        String::from_utf8_lossy(&output.stdout).trim(),
        load()
    );
    Ok(())
}

async fn in_and_out(path: &Path) -> Done {
    let started = Instant::now();
    let folder = path.with_extension("batch");
    let batch =
        Batch::create_fallible(&folder, &Spec::new(schema(), "rows"), read_rows(path, &Columns::default())?)?;
    let (batch, read) = (Arc::new(batch), started.elapsed().as_secs_f64());
    let (seconds, cpu) = run(&batch, Duration::ZERO, 128).await?;
    let begun = Instant::now();
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let count = batch.view().export_to(&path.with_file_name(format!("out.{ending}")), false)?;
    let (written, all) = (begun.elapsed().as_secs_f64(), started.elapsed().as_secs_f64());
    println!(
        "{:.0} rows/s (read {read:.1} s, processed {seconds:.1} s, written {written:.1} s), {:.0} µs of CPU per row, {} MB",
        count as f64 / all,
        cpu.as_micros() as f64 / count as f64,
        peak()
    );
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path, count: u64) -> Done {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    let mut writer: Option<parquet::arrow::ArrowWriter<std::fs::File>> = None;
    let mut rows = rows(count).flatten().peekable();
    while rows.peek().is_some() {
        let (ids, inputs): (Vec<_>, Vec<_>) = rows
            .by_ref()
            .take(10_000)
            .map(|row| (row.id.as_str().unwrap_or_default().to_owned(), row.input))
            .unzip();
        let columns: [(&str, ArrayRef); 2] =
            [("id", Arc::new(StringArray::from(ids))), ("input", Arc::new(StringArray::from(inputs)))];
        let batch = RecordBatch::try_from_iter(columns)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(parquet::arrow::ArrowWriter::try_new(
                std::fs::File::create(path)?,
                batch.schema(),
                None,
            )?),
        };
        writer.write(&batch)?;
    }
    writer.map(|writer| writer.close()).transpose()?;
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Path, _: u64) -> Done {
    Err("Parquet needs the feature `parquet`: add --features parquet".into())
}

fn main() -> Done {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["go-on", folder] => return runtime.block_on(go_on(folder)),
        ["work", folder] => {
            let batch = Arc::new(Batch::open(folder)?);
            return runtime.block_on(run(&batch, Duration::ZERO, 128)).map(drop);
        }
        ["bound"] => {
            return runtime.block_on(async {
                bound(6_400, Duration::from_millis(100)).await?;
                bound(3_200, Duration::from_millis(500)).await
            });
        }
        ["table", ending, rows] => return table(ending, rows.parse()?),
        ["in-and-out", path] => return runtime.block_on(in_and_out(Path::new(path))),
        ["resume", rows] => return runtime.block_on(resume(rows.parse()?)),
        _ => {}
    }
    let large = arguments.first().and_then(|rows| rows.parse().ok()).unwrap_or(1_000_000);
    println!("| case | result | |\n|---|---|---|");
    runtime.block_on(async {
        for _ in 0..3 {
            instant(20_000).await?;
        }
        bound(6_400, Duration::from_millis(100)).await?;
        bound(3_200, Duration::from_millis(500)).await?;
        resume(large).await
    })
}
