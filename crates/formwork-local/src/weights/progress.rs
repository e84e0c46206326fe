use std::fmt;

/// Hears how far a long step is: a download, an unpacking, a conversion.
///
/// Any closure of this shape is one.
pub trait Progress: Send + Sync {
    /// `done` of `total` bytes of the step `what` are through; `total` is 0 where it is not known.
    fn report(&self, what: &str, done: u64, total: u64);
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
