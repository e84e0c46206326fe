use std::fmt;

/// Observes long steps: downloads, unpacking, conversions.
///
/// Every closure with the signature of [`report`](Self::report) implements it.
///
/// ```
/// use formwork_local::Progress;
///
/// let bar = |what: &str, done: u64, total: u64| println!("{what}: {done} of {total} bytes");
/// bar.report("downloading", 10, 100);
/// ```
pub trait Progress: Send + Sync {
    /// Receives the progress of the step `what`: `done` of `total` bytes; `total` is 0 if it is unknown.
    fn report(&self, what: &str, done: u64, total: u64);

    /// Receives a message about a repaired problem, for example a damaged file that is fetched again (default:
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Records notices.
    #[derive(Clone, Default)]
    pub(in crate::weights) struct Notices(Arc<Mutex<Vec<String>>>);

    impl Notices {
        pub(in crate::weights) fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl Progress for Notices {
        fn report(&self, _: &str, _: u64, _: u64) {}

        fn notice(&self, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }
}
