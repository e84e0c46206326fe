//! Progress lines on standard error, if that is a terminal. They do not mix with the log and the results.

use std::io::{self, IsTerminal as _};
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The open progress lines; `None` if the command is ending, and progress lines are disabled.
static OPEN: Mutex<Option<Vec<WeakProgressBar>>> = Mutex::new(Some(Vec::new()));

/// A progress line, removed when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Shows a progress line; `None` without a terminal.
    pub(crate) fn open(bar: ProgressBar, style: ProgressStyle) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let mut bars = open();
        let bars = bars.as_mut()?;
        let bar = BARS.add(bar.with_style(style));
        bars.push(bar.downgrade());
        bar.enable_steady_tick(Duration::from_millis(100));
        Some(Self(bar))
    }
}

impl Deref for Bar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        BARS.remove(&self.0);
        if let Some(bars) = open().as_mut() {
            bars.retain(|bar| bar.upgrade().is_some_and(|bar| !bar.is_finished()));
        }
    }
}

/// Hides all progress lines, writes to the terminal, and shows them again below.
pub(crate) fn beside<T>(write: impl FnOnce() -> T) -> T {
    let is_shown = open().as_ref().is_some_and(|bars| !bars.is_empty());
    if is_shown { BARS.suspend(write) } else { write() }
}

fn open() -> MutexGuard<'static, Option<Vec<WeakProgressBar>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all progress lines permanently. The command ends, and lines of cancelled calls would remain.
pub(crate) fn close() {
    let bars = open().take();
    // Each line is finished first: the thread that draws an open line could draw a cleared one again.
    for bar in bars.into_iter().flatten() {
        if let Some(bar) = bar.upgrade() {
            bar.finish_and_clear();
        }
    }
    BARS.set_draw_target(ProgressDrawTarget::hidden());
}

/// Returns the text of a progress line: the number of rows or wallets, and the elapsed time. `total` is `None` if unknown.
pub(crate) fn count(what: &'static str, total: Option<u64>) -> Option<Bar> {
    let bar = ProgressBar::new(total.unwrap_or_default());
    let of_all = if total.is_some() { "{pos} of {len}" } else { "{pos}" };
    let style = ProgressStyle::with_template(&format!("{{spinner}} {of_all} {what}, {{seconds}}")).ok()?;
    let style =
        style.with_key("seconds", |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
            _ = out.write_str(&seconds(state.elapsed()));
        });
    Bar::open(bar, style)
}

/// Formats a duration for people: `7 s`, `2 min 5 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
