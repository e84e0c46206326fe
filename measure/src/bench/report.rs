//! Reports figures and goals, as a table or as JSON.

use serde::Serialize;
use serde_json::{Value, json};

use super::measure::Pair;

/// The goal for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// A figure of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// The description of the measurement.
    what: String,
    /// The medians of both sides, from which the figure was computed.
    from: String,
    figure: f64,
    unit: &'static str,
    goal: Option<Goal>,
}

impl Row {
    /// Creates a row with the ratio of our time to the peer's.
    pub(super) fn ratio(what: &str, pair: &Pair, goal: Option<Goal>) -> Self {
        let from = format!("{} / {}", time(pair.ours), time(pair.peer));
        Self { what: what.to_owned(), from, figure: pair.ratio, unit: "x", goal }
    }

    /// Creates a row with a figure that is not a ratio.
    pub(super) fn figure(
        what: &str,
        from: String,
        figure: f64,
        unit: &'static str,
        goal: Option<Goal>,
    ) -> Self {
        Self { what: what.to_owned(), from, figure, unit, goal }
    }

    /// Creates a row without a figure, and with the reason.
    pub(super) fn absent(what: &str, why: String, unit: &'static str) -> Self {
        Self { what: what.to_owned(), from: why, figure: f64::NAN, unit, goal: None }
    }

    /// Returns whether the goal is met, or `None` without a goal.
    pub(super) fn is_met(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::AtMost(most) => self.figure <= most,
            Goal::AtLeast(least) => self.figure >= least,
        })
    }

    fn cells(&self) -> [String; 5] {
        let goal = match self.goal {
            None => String::new(),
            Some(Goal::AtMost(most)) => format!("<= {most}"),
            Some(Goal::AtLeast(least)) => format!(">= {least}"),
        };
        let word = match self.is_met() {
            None => "",
            Some(true) => "ok",
            Some(false) => "MISSED",
        };
        let figure = match self.figure.is_nan() {
            true => "not measured".to_owned(),
            false => format!("{:.2} {}", self.figure, self.unit),
        };
        [self.what.clone(), self.from.clone(), figure, goal, word.to_owned()]
    }
}

/// Formats nanoseconds with a suitable unit.
fn time(nanoseconds: f64) -> String {
    if nanoseconds < 10_000.0 {
        format!("{nanoseconds:.0} ns")
    } else {
        format!("{:.1} µs", nanoseconds / 1000.0)
    }
}

/// Formats the figures as a table with one line per figure.
pub(super) fn table(rows: &[Row]) -> String {
    let head = ["what", "median: ours / peer", "figure", "goal", ""].map(str::to_owned);
    let lines: Vec<[String; 5]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let mut widths = [0; 5];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Returns the figures as one JSON document.
pub(super) fn json(rows: &[Row]) -> Value {
    let rows = rows.iter().map(|row| {
        let mut document = json!(row);
        document["met"] = json!(row.is_met());
        document
    });
    json!({"rows": rows.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let pair = Pair { ours: 2_600.0, peer: 2_000.0, ratio: 1.3 };
        vec![
            Row::ratio("read and judge", &pair, Some(Goal::AtMost(1.3))),
            Row::figure("tokens", String::new(), 0.5, "t/s", Some(Goal::AtLeast(1.0))),
            Row::figure("crates", "cargo tree".to_owned(), 42.0, "crates", None),
            Row::absent("a peer", "no network".to_owned(), "x"),
        ]
    }

    #[test]
    fn a_table_says_what_was_met_and_missed() {
        assert_eq!(
            table(&rows()),
            "what            median: ours / peer  figure        goal\n\
             read and judge  2600 ns / 2000 ns    1.30 x        <= 1.3  ok\n\
             tokens                               0.50 t/s      >= 1    MISSED\n\
             crates          cargo tree           42.00 crates\n\
             a peer          no network           not measured\n"
        );
    }

    #[test]
    fn programs_get_the_same() {
        let document = json(&rows());
        assert_eq!(document["rows"][0]["goal"], json!({"at_most": 1.3}));
        let met: Vec<_> = document["rows"].as_array().unwrap().iter().map(|row| row["met"].clone()).collect();
        assert_eq!(met, [json!(true), json!(false), Value::Null, Value::Null]);
        assert_eq!(document["rows"][3]["figure"], Value::Null);
    }
}
