//! Progress bars of long steps, on standard error if that is a terminal.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use crate::stderr::say;
use crate::terminal::Bar;

/// A progress bar of a step that counts bytes.
#[derive(Default)]
pub(crate) struct Bytes(Mutex<Option<(String, Bar)>>);

impl formwork_local::Progress for Bytes {
    fn notice(&self, message: &str) {
        say!("warning: {message}");
    }

    fn report(&self, what: &str, done: u64, total: u64) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_none_or(|(step, _)| step != what) {
            *open = None;
            *open = bar(what, total).map(|bar| (what.to_owned(), bar));
        }
        if let Some((_, bar)) = open.as_ref() {
            bar.set_position(done);
        }
        if total > 0 && done >= total {
            *open = None;
        }
    }
}

fn bar(what: &str, total: u64) -> Option<Bar> {
    let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::new_spinner() };
    let template = if total > 0 {
        "{prefix} {bar:30} {bytes}/{total_bytes}, {eta}"
    } else {
        "{spinner} {prefix} {bytes}"
    };
    let style = ProgressStyle::with_template(template).ok()?;
    Bar::open(bar.with_prefix(what.to_owned()), style)
}
