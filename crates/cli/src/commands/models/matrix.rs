//! `formwork models --matrix`: known facts about models, as a table.

use std::borrow::Cow;
use std::path::Path;

use formwork_dialect::registry::{Entry, Registry};
use indicatif::HumanCount;

use crate::exit::{Failed, Status};
use crate::{files, output};

/// Prints all rows, starting with those of a file.
pub(super) fn show(file: Option<&Path>, json: bool) -> Result<Status, Failed> {
    let known = Registry::embedded();
    let registry = match file {
        None => Cow::Borrowed(known),
        Some(path) => {
            let text = files::text(path)?;
            let own = Registry::from_toml(&text)
                .map_err(|error| Failed::usage(format!("{}:{error}", files::name(path))))?;
            Cow::Owned(known.overlaid_with(own))
        }
    };
    if json {
        registry.entries().iter().try_for_each(output::row)?;
    } else {
        output::text(&table(registry.entries()))?;
    }
    Ok(Status::Ok)
}

const HEAD: [&str; 8] =
    ["match", "native", "strict", "temperature", "reasoning", "context", "retires", "recommended use"];

/// The index of the column with numbers of tokens, which is aligned right.
const CONTEXT: usize = 5;

type Cells = [String; HEAD.len()];

fn table(entries: &[Entry]) -> String {
    let lines: Vec<Cells> =
        [HEAD.map(str::to_owned)].into_iter().chain(entries.iter().flat_map(cells)).collect();
    output::table(&lines, |column| column == CONTEXT)
}

/// Returns the lines of a row. Further names are below the first one.
fn cells(entry: &Entry) -> impl Iterator<Item = Cells> {
    let known = [
        entry.native.to_string(),
        if entry.strict { "yes" } else { "no" }.to_owned(),
        entry.temperature.to_string(),
        entry.reasoning.to_string(),
        entry.context_tokens.map_or_else(|| "-".to_owned(), |tokens| HumanCount(tokens.into()).to_string()),
        match (entry.retired, entry.retires) {
            (true, Some(date)) => format!("retired {date}"),
            (true, None) => "retired".to_owned(),
            (false, Some(date)) => date.to_string(),
            (false, None) => "-".to_owned(),
        },
        entry.recommended_use.clone().unwrap_or_else(|| "-".to_owned()),
    ];
    entry.patterns.iter().enumerate().map(move |(line, pattern)| {
        let mut cells = Cells::default();
        if line == 0 {
            for (cell, known) in cells.iter_mut().skip(1).zip(&known) {
                cell.clone_from(known);
            }
        }
        let [name, ..] = &mut cells;
        *name = pattern.to_string();
        cells
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_what_is_gone_is_marked() {
        let row = "family = \"F\"\nprovider = \"p\"\nsource = \"s\"\nchecked = \"2026-11-21\"\n";
        let text = format!(
            "[[model]]\nmatch = [\"a-long-name*\", \"b\"]\nnative = \"schema\"\nstrict = true\n\
             temperature = \"when_effort_none\"\nreasoning = \"by_default\"\ncontext_tokens = 1050000\n\
             use = \"Everything\"\n{row}[[model]]\nmatch = \"c\"\nnative = \"none\"\ncontext_tokens = 200\n\
             retires = \"2026-06-15\"\nretired = true\n{row}[[model]]\nmatch = \"d\"\nnative = \"tool\"\n\
             retires = \"2027-01-01\"\n{row}[[model]]\nmatch = \"e\"\nnative = \"object\"\nretired = true\n{row}"
        );
        let expected = "\
match         native  strict  temperature       reasoning     context  retires             recommended use
a-long-name*  schema  yes     when_effort_none  by_default  1,050,000  -                   Everything
b
c             none    no      no                none              200  retired 2026-06-15  -
d             tool    no      no                none                -  2027-01-01          -
e             object  no      no                none                -  retired             -
";
        assert_eq!(table(Registry::from_toml(&text).unwrap().entries()), expected);
    }
}
