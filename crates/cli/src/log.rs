//! The log of the services on standard error.

use std::io;

use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::Layer;
use tracing_subscriber::fmt::format::{DefaultFields, Format};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::stderr;

/// Standard error, coordinated with progress lines.
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Each line is one write, so that lines do not mix.
        stderr::error_text(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log of warnings, and of every request if `verbose`.
pub(crate) fn start(verbose: bool) {
    init(verbose, lines().without_time());
}

/// Starts the log of a service that writes every request as a line of JSON with its time if `verbose`, and only warnings, as text,
/// if not.
pub(crate) fn start_json(verbose: bool) {
    match verbose {
        true => init(true, lines().json().flatten_event(true).with_current_span(false).with_span_list(false)),
        false => start(false),
    }
}

fn lines<S>() -> Layer<S, DefaultFields, Format, fn() -> Lines> {
    let writer: fn() -> Lines = || Lines;
    tracing_subscriber::fmt::layer()
        .with_writer(writer)
        // The default handler of write errors uses a macro that panics if standard error is closed.
        .log_internal_errors(false)
        .with_ansi(false)
        .with_target(false)
}

fn init(verbose: bool, lines: impl tracing_subscriber::Layer<Registry> + Send + Sync) {
    let level = if verbose { LevelFilter::INFO } else { LevelFilter::WARN };
    let of_ours = Targets::new()
        .with_target("formwork_oracle", level)
        .with_target("formwork_gateway", level)
        // The end of a failure belongs to its beginning.
        .with_target("formwork_ledger", LevelFilter::INFO)
        .with_target("formwork", LevelFilter::WARN);
    // A program with a subscriber of its own keeps it.
    _ = tracing_subscriber::registry().with(lines.with_filter(of_ours)).try_init();
}
