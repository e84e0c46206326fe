//! How far long steps are: on standard error, if that is a terminal.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use crate::stderr::say;

/// A bar for a step that counts bytes.
#[derive(Default)]
pub(crate) struct Bytes(Mutex<Option<(String, ProgressBar)>>);

impl formwork_local::Progress for Bytes {
    fn notice(&self, message: &str) {
        say!("warning: {message}");
    }

    fn report(&self, what: &str, done: u64, total: u64) {
        if !io::stderr().is_terminal() {
            return;
        }
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_none_or(|(step, _)| step != what) {
            if let Some((_, bar)) = open.take() {
                bar.finish_and_clear();
            }
            *open = Some((what.to_owned(), bar(what, total)));
        }
        if let Some((_, bar)) = open.as_ref() {
            bar.set_position(done);
            if total > 0 && done >= total {
                bar.finish_and_clear();
            }
        }
    }
}

fn bar(what: &str, total: u64) -> ProgressBar {
    let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::new_spinner() };
    let template = if total > 0 {
        "{prefix} {bar:30} {bytes}/{total_bytes}, {eta}"
    } else {
        "{spinner} {prefix} {bytes}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    bar
}
