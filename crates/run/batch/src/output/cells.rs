//! The cells of a row of a table: the id, the columns of the input, and the parts of its result.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::BatchError;
use crate::members::Members;
use crate::sqlite::Found;

/// One cell: its group, by which columns are ordered, its column, and its value as JSON.
pub(super) struct Cell {
    pub(super) group: Group,
    pub(super) column: String,
    pub(super) json: String,
}

/// The groups of columns, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Id,
    Input,
    Value,
    Result,
}

/// The members of a result that are columns of the same name.
const PLAIN: [&str; 2] = ["warnings", "not_stated"];

/// The members of a result whose parts are columns, such as `evidence.age`.
const NESTED: [&str; 2] = ["evidence", "confidence"];

/// The columns that a table has beside those of the input; a column of the input with such a name is called `input.NAME`.
const ADDED: [&str; 12] = [
    "id", "value", "verdict", "contract", "target", "attempts", "cost_usd", "model", "prompt", "at",
    PLAIN[0], PLAIN[1],
];

/// The beginnings of the columns that a table has beside those of the input.
const ADDED_PARTS: [&str; 4] = ["value.", "evidence.", "confidence.", "error."];

/// Returns the cells of a row.
///
/// # Errors
/// The message of a result that is not JSON, or of two cells of one column.
pub(super) fn cells(row: &Found<'_>, contract: &str) -> Result<Vec<Cell>, BatchError> {
    let broken = |error: serde_json::Error| fault(row, &format!("its result cannot be read: {error}"));
    let mut found = Vec::new();
    let mut add =
        |group, column: &str, json: String| found.push(Cell { group, column: column.to_owned(), json });
    add(Group::Id, "id", row.id.to_owned());
    if let Some(columns) = row.columns {
        let Members(columns) = serde_json::from_str(columns).map_err(broken)?;
        for (name, text) in &columns {
            let is_added =
                ADDED.contains(&name.as_str()) || ADDED_PARTS.iter().any(|part| name.starts_with(part));
            let column = if is_added { format!("input.{name}") } else { name.clone() };
            add(Group::Input, &column, text.to_string());
        }
    }
    let verdict = match row.is_accepted {
        Some(true) => "accepted",
        Some(false) => "rejected",
        None => "open",
    };
    add(Group::Result, "verdict", Value::from(verdict).to_string());
    let Members(line) = serde_json::from_str(row.line.unwrap_or("{}")).map_err(broken)?;
    let is_given = line.iter().any(|(name, _)| name == "contract");
    if row.line.is_some() && !is_given {
        add(Group::Result, "contract", Value::from(contract).to_string());
    }
    for (name, text) in [("model", row.model), ("prompt", row.prompt), ("at", row.at)] {
        text.iter().for_each(|text| add(Group::Result, name, Value::from(*text).to_string()));
    }
    for (name, text) in &line {
        let member = |path: &str| {
            let value: Option<Value> = serde_json::from_str(text.get()).ok();
            value.and_then(|value| value.pointer(path).filter(|part| !part.is_null()).cloned())
        };
        match name.as_str() {
            "value" => flatten(name, text, &mut |name, text| add(Group::Value, name, text.to_owned())),
            "calls" => {
                // The calls of a rejected row are listed.
                let listed: Result<Vec<&RawValue>, _> = serde_json::from_str(text.get());
                let calls = listed.map_or(text.to_string(), |calls| calls.len().to_string());
                add(Group::Result, "attempts", if row.is_own { calls } else { "0".to_owned() });
            }
            "origin" => {
                let target = member("/target").or_else(|| member("/from"));
                target.iter().for_each(|target| add(Group::Result, "target", target.to_string()));
            }
            "cost" => {
                let micro_usd = member("/micro_usd").and_then(|cost| cost.as_f64());
                let micro_usd = if row.is_own { micro_usd } else { Some(0.0) };
                micro_usd.iter().for_each(|cost| add(Group::Result, "cost_usd", (cost / 1e6).to_string()));
            }
            "error" => {
                for part in ["class", "message"] {
                    let text = member(&format!("/{part}"));
                    text.iter()
                        .for_each(|text| add(Group::Result, &format!("error.{part}"), text.to_string()));
                }
            }
            "contract" => add(Group::Result, name, text.to_string()),
            name if PLAIN.contains(&name) => add(Group::Result, name, text.to_string()),
            name if NESTED.contains(&name) => {
                flatten(name, text, &mut |name, text| add(Group::Result, name, text.to_owned()));
            }
            _ => {}
        }
    }
    let twice = found
        .iter()
        .enumerate()
        .find(|(nth, cell)| found.iter().take(*nth).any(|other| other.column == cell.column));
    match twice {
        Some((_, cell)) => Err(fault(
            row,
            &format!(
                "two columns are called `{}`: export JSON Lines, or rename the column of the rows",
                cell.column
            ),
        )),
        None => Ok(found),
    }
}

/// Returns the error of a row that cannot be written.
pub(super) fn fault(row: &Found<'_>, message: &str) -> BatchError {
    BatchError::Input {
        place: format!("row {} (id {})", row.number + 1, row.id),
        message: message.to_owned(),
    }
}

/// Gives the parts of a JSON value to a function; members of objects have the path as their column. Empty objects and lists stay
/// whole.
fn flatten(name: &str, text: &RawValue, add: &mut dyn FnMut(&str, &str)) {
    match serde_json::from_str(text.get()) {
        Ok(Members(members)) if !members.is_empty() => {
            members.iter().for_each(|(part, text)| flatten(&format!("{name}.{part}"), text, add));
        }
        _ => add(name, text.get()),
    }
}

/// Returns the text of a cell: a string without its quotes, any other value as JSON.
pub(super) fn text(json: String) -> String {
    if json.starts_with('"') {
        return serde_json::from_str::<Value>(&json)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or(json);
    }
    json
}
