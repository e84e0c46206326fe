//! Progress lines on standard error, where that is a terminal. All of them share one place, which lines of the log and
//! results do not get mixed with.

use std::io::{self, IsTerminal as _};
use std::ops::Deref;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// How many progress lines are open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether the command is ending, and shows no progress any more.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// A progress line; it disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Shows a progress line; `None` where nobody would see it.
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

/// Writes to the terminal while no progress line is shown; they come back below what was written.
pub(crate) fn beside<T>(write: impl FnOnce() -> T) -> T {
    if OPEN.load(Ordering::SeqCst) == 0 { write() } else { BARS.suspend(write) }
}

/// Removes all progress lines, for good: the command ends, and lines of calls that are left behind would stay.
pub(crate) fn close() {
    if !CLOSED.swap(true, Ordering::SeqCst) && OPEN.load(Ordering::SeqCst) > 0 {
        // An error is a terminal that is gone.
        _ = BARS.clear();
        BARS.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// Counts rows or wallets, and how long that has taken. Without a `total` it is not known how many there are.
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

/// A duration for people: `7 s`, `2 min 5 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
