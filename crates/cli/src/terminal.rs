//! Progress lines on standard error, if that is a terminal. They do not mix with the log and the results.

use std::io::{self, IsTerminal as _};
use std::ops::Deref;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The number of open progress lines.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether the command is ending, and progress lines are disabled.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// A progress line, removed when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Shows a progress line; `None` without a terminal.
    pub(crate) fn open(bar: ProgressBar, style: ProgressStyle) -> Option<Self> {
        if !io::stderr().is_terminal() || CLOSED.load(Ordering::SeqCst) {
            return None;
        }
        OPEN.fetch_add(1, Ordering::SeqCst);
        let bar = BARS.add(bar.with_style(style));
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
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Hides all progress lines, writes to the terminal, and shows them again below.
pub(crate) fn beside<T>(write: impl FnOnce() -> T) -> T {
    if OPEN.load(Ordering::SeqCst) == 0 { write() } else { BARS.suspend(write) }
}

/// Removes all progress lines permanently. The command ends, and lines of cancelled calls would remain.
pub(crate) fn close() {
    if !CLOSED.swap(true, Ordering::SeqCst) && OPEN.load(Ordering::SeqCst) > 0 {
        // An error means that the terminal was closed.
        _ = BARS.clear();
        BARS.set_draw_target(ProgressDrawTarget::hidden());
    }
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
