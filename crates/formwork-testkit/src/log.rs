use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
pub use tracing_subscriber::fmt::format::FmtSpan;

/// The lines that `tracing` writes for what happens in one thread, without colours and times.
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
    /// Writes the events of this thread, and these moments of its spans, until the guard is dropped.
    pub fn listen(&self, spans: FmtSpan) -> DefaultGuard {
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();

        // While there is one subscriber only, `tracing` asks the thread that comes to an event first whether anybody listens,
        // and keeps that answer for all threads. The other tests' threads have no subscriber.
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

    /// Returns all that was written.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Returns the lines that were written.
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
