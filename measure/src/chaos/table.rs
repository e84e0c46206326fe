//! The tables that the chaos tests print.

use std::fmt::Display;

use super::play::checker::Found;
use super::play::kill::{self, Play};
use super::play::submit::{self, Submitted};

/// The result of a chaos test: its table, and the errors.
pub(super) type Played = (String, Vec<String>);

/// A table with one row, in Markdown.
#[derive(Debug, Default)]
pub(super) struct Table {
    names: String,
    cells: String,
    columns: usize,
}

impl Table {
    /// Adds a column.
    #[must_use]
    pub(super) fn with(mut self, name: &str, cell: impl Display) -> Self {
        self.names += &format!("| {name} ");
        self.cells += &format!("| {cell} ");
        self.columns += 1;
        self
    }

    /// Adds the columns that all chaos tests have.
    #[must_use]
    pub(super) fn with_found(self, found: &Found, seconds: f64) -> Self {
        self.with("values", found.accepted)
            .with("rejected", found.rejected)
            .with("lost", found.lost.len())
            .with("doubled", found.doubled.len())
            .with("crossed", found.crossed.len())
            .with("changed", found.changed.len())
            .with("calls", found.calls)
            .with("repeated", found.repeated)
            .with(
                "uncertain",
                found.counts.last().map_or_else(|| "-".to_owned(), |counts| counts[2].to_string()),
            )
            .with("in flight at kills", found.in_flight.all)
            .with("of them without a response", found.in_flight.open)
            .with("age of the oldest repeated response, ms", found.oldest.as_millis())
            .with("most calls in a second", found.most_per_second)
            .with("integrity", &found.integrity)
            .with("s", format!("{seconds:.1}"))
    }
}

impl Display for Table {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(to, "{}|\n{}|", self.names, "|---".repeat(self.columns))?;
        write!(to, "{}|", self.cells)
    }
}

/// Returns the table of a test of the engine on SQLite.
pub(super) fn sqlite(play: &Play, seen: &kill::Seen) -> Table {
    Table::default()
        .with("rows", play.rows)
        .with("kills", seen.kills)
        .with("SIGTERM", seen.terms)
        .with("full disk", seen.full)
        .with_found(&seen.found, seen.seconds)
        .with("most open", seen.max_open)
}

/// Returns the table of a test of the engine for batch APIs.
pub(super) fn provider_batch(play: &submit::Play, seen: &Submitted) -> Table {
    let [before, after, answered] = seen.kills;
    Table::default()
        .with("rows", play.rows)
        .with("files", seen.accepted)
        .with(
            "kills before / after a request was carried out / answered",
            format!("{before} / {after} / {answered}"),
        )
        .with("SIGTERM after an answer", seen.terms)
        .with("submitted twice", seen.twice)
        .with_found(&seen.found, seen.seconds)
}
