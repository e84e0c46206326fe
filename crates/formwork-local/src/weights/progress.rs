use std::fmt;

/// Hears how far a long step is: a download, an unpacking, a conversion.
///
/// Any closure with the signature of [`report`](Self::report) is one.
pub trait Progress: Send + Sync {
    /// Takes note that `done` of `total` bytes of the step `what` are through; `total` is 0 where it is not known.
    fn report(&self, what: &str, done: u64, total: u64);

    /// Takes a message about something unusual that was mended, such as a damaged file that is fetched anew (default: it is
    /// ignored).
    fn notice(&self, _message: &str) {}
}

impl<F: Fn(&str, u64, u64) + Send + Sync> Progress for F {
    fn report(&self, what: &str, done: u64, total: u64) {
        self(what, done, total);
    }
}

impl fmt::Debug for dyn Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
