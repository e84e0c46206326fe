//! Tables of the pages.

use askama::Template;

/// A table of texts, some of which lead to another page.
#[derive(Debug, Template)]
#[template(path = "page/table.html")]
pub(super) struct Table {
    pub(super) title: &'static str,
    /// The names of the columns, with ` | ` between them.
    pub(super) head: &'static str,
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The page that it leads to; empty for none.
    pub(super) href: String,
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.to_string(), href: String::new() }
    }
}

impl Cell {
    /// Returns a cell that leads to the runs with these members of a [`RunQuery`](formwork_ledger::RunQuery).
    pub(super) fn runs(text: impl ToString, filter: &[(&str, &str)]) -> Self {
        Self { text: text.to_string(), href: href("/runs", filter) }
    }
}

/// Returns a path with the members of a query that are not empty.
pub(super) fn href(path: &str, query: &[(&str, &str)]) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    out.extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
    format!("{path}?{}", out.finish())
}

/// Returns a sum in US dollars, and the number of runs or calls that it lacks.
pub(super) fn sum(micro_usd: u64, unpriced: u64, what: &str) -> String {
    let known = formwork_ledger::format_usd(micro_usd);
    if unpriced == 0 { known } else { format!("{known}, and {unpriced} {what} without a price") }
}
