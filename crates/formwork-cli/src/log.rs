//! The services' log on standard error.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::stderr;

/// Standard error, beside the progress line.
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Lines are written whole.
        stderr::error_text(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs what goes wrong, and if `verbose` every request.
pub(crate) fn start(verbose: bool) {
    let level = if verbose { LevelFilter::INFO } else { LevelFilter::WARN };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Lines)
        // The default reports a failure to write with a macro that panics if that fails, too.
        .log_internal_errors(false)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    let of_ours = Targets::new()
        .with_target("formwork_oracle", level)
        .with_target("formwork_gateway", level)
        .with_target("formwork", LevelFilter::WARN);
    // Whoever has set a subscriber already has a log.
    _ = tracing_subscriber::registry().with(lines).with(of_ours).try_init();
}
