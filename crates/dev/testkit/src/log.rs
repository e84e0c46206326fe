use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
pub use tracing_subscriber::fmt::format::FmtSpan;

/// Captures the lines that `tracing` writes for one thread, without colours and times.
///
/// ```
/// use formwork_testkit::{FmtSpan, Log};
///
/// let log = Log::default();
/// let guard = log.listen(FmtSpan::NONE);
/// tracing::warn!(attempt = 2, "rejected");
/// drop(guard);
/// assert!(log.text().contains(" WARN ") && log.text().ends_with("rejected attempt=2\n"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures the events of this thread, and these points of its spans, until the guard is dropped.
    pub fn listen(&self, spans: FmtSpan) -> DefaultGuard {
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();

        // If there is only one subscriber, `tracing` caches for all threads whether the first thread that reaches an event
        // has one. A second subscriber prevents this, because the threads of other tests have none.
        ANOTHER.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_span_events(spans)
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Returns all captured text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Returns the captured lines.
    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
