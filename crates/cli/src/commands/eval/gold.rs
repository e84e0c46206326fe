//! The gold: JSON Lines, CSV, or a folder of texts with their values.

use std::fs;
use std::path::{Path, PathBuf};

use formwork_batch::Quoted;
use formwork_evidence::subschema;
use formwork_json::{Candidate, JsonPath, ReadError, Segment, read_exact};
use serde_json::{Map, Value};

use crate::exit::Failed;
use crate::files::{self, warn_of};
use crate::jsonl::{BadRow, numbered};
use crate::rows::EvalGold;

/// A row with its place in the gold, or the reason why there is none.
pub(super) type Placed = (String, Result<EvalGold, String>);

/// Iterates over the rows of the gold. `schema` tells numbers from texts in the cells of CSV.
///
/// # Errors
/// [`Failed`] for gold that cannot be read, also while iterating.
pub(super) fn rows(
    path: &Path,
    schema: Option<&Value>,
) -> Result<Box<dyn Iterator<Item = Result<Placed, Failed>>>, Failed> {
    let lines = path.join("gold.jsonl");
    let path = if lines.is_file() { &lines } else { path };
    let name = files::name(path);
    if path.is_dir() {
        return folder(path);
    }
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) {
        return csv(path, schema.cloned());
    }
    let rows = numbered::<EvalGold>(path)?;
    Ok(Box::new(rows.map(move |row| {
        let (line, row) = row?;
        Ok((format!("{name}:{line}"), row.map_err(|BadRow { message, .. }| message)))
    })))
}

/// Returns the text of a row; `None` if it has none.
pub(super) fn text_of(row: &EvalGold, gold: &Path) -> Result<Option<String>, String> {
    if let Some(text) = &row.input {
        return if text.trim().is_empty() {
            Err("the input has no text".to_owned())
        } else {
            Ok(Some(text.clone()))
        };
    }
    let Some(name) = &row.file else { return Ok(None) };
    let folder = if gold.is_dir() { gold } else { gold.parent().unwrap_or(Path::new("")) };
    match files::text(&folder.join(name)) {
        Ok(text) if text.trim().is_empty() => Err(format!("the file {name} has no text")),
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(error.to_string()),
    }
}

/// The end of the name of a schema in a folder.
const SCHEMA: &str = ".schema.json";

/// Returns the schema of the values in a folder: its only file `NAME.schema.json`. `None` for other gold.
pub(super) fn schema_in(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut schemas = files.filter(|file| files::name(file).ends_with(SCHEMA));
    schemas.next().filter(|_| schemas.next().is_none())
}

/// Reads a folder: `NAME.json` has the value of the text in `NAME.txt` or `NAME.md`.
fn folder(path: &Path) -> Result<Box<dyn Iterator<Item = Result<Placed, Failed>>>, Failed> {
    let unreadable = |error| Failed::usage(format!("cannot read {}: {error}", path.display()));
    let mut names: Vec<String> = fs::read_dir(path)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    names.retain(|name| !name.ends_with(SCHEMA));
    names.sort_unstable();
    let text_of = |stem: &str| {
        [".txt", ".md"].iter().map(|ending| format!("{stem}{ending}")).find(|name| names.contains(name))
    };
    let mut stems: Vec<&str> = names
        .iter()
        .filter_map(|name| [".json", ".txt", ".md"].iter().find_map(|ending| name.strip_suffix(ending)))
        .collect();
    stems.dedup();
    let row = |stem: &str| {
        let value = format!("{stem}.json");
        let place = path.join(&value).display().to_string();
        let row = if names.contains(&value) {
            files::json(&path.join(&value)).map_err(|error| error.to_string()).map(|expected| EvalGold {
                id: stem.into(),
                expected: Some(expected),
                schema: None,
                input: None,
                file: text_of(stem),
            })
        } else {
            Err(format!(
                "{}: there is no {value} with its value: it is not scored",
                path.join(stem).display()
            ))
        };
        Ok((place, row))
    };
    let rows: Vec<Result<Placed, Failed>> = stems.into_iter().map(row).collect();
    Ok(Box::new(rows.into_iter()))
}

/// Reads CSV with the columns `id`, `input` or `file`, and either `expected` with JSON or a column `expected.PATH` for each value.
fn csv(
    path: &Path,
    schema: Option<Value>,
) -> Result<Box<dyn Iterator<Item = Result<Placed, Failed>>>, Failed> {
    let name = files::name(path);
    let unreadable = |error: csv::Error| Failed::usage(format!("{}: {error}", files::name(path)));
    let file = fs::File::open(path).map_err(|error| unreadable(error.into()))?;
    let mut reader = csv::ReaderBuilder::new().from_reader(Quoted::new(file, b','));
    let headers: Vec<String> = reader.headers().map_err(unreadable)?.iter().map(str::to_owned).collect();
    if headers.is_empty() {
        return Err(Failed::usage(format!("{name}: the file is empty")));
    }
    let column = |wanted: &str| headers.iter().position(|header| header.trim() == wanted);
    let (id, input, file, whole) = (column("id"), column("input"), column("file"), column("expected"));
    let values = columns(&headers).map_err(|error| Failed::usage(format!("{name}: {error}")))?;
    if whole.is_some() && !values.is_empty() {
        let message = format!("{name}: the header has `expected` and `expected.PATH`: use one of them");
        return Err(Failed::usage(message));
    }
    let Some(id) = id.filter(|_| whole.is_some() || !values.is_empty()) else {
        return Err(Failed::usage(format!(
            "{name}: the header needs the columns `id` and `expected` (JSON), or `id` and one `expected.PATH` for each value; it has {}",
            headers.join(", ")
        )));
    };
    let rows = reader.into_records().map(move |record| {
        let record = match record {
            Ok(record) => record,
            Err(error) if error.is_io_error() => return Err(Failed::usage(format!("{name}: {error}"))),
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                return Ok((format!("{name}:{line}"), Err(format!("{name}:{line}: {error}"))));
            }
        };
        let place = format!("{name}:{}", record.position().map_or(0, csv::Position::line));
        let cell = |at: Option<usize>| at.and_then(|at| record.get(at)).map(str::to_owned);
        let expected = match cell(whole).filter(|_| values.is_empty()) {
            Some(text) if text.trim().is_empty() => Ok(None),
            Some(text) => match read_exact(&text) {
                Ok(document) => Ok(Some(kept(&place, &text, document))),
                Err(error) => Err(format!("{place}: the cell of `expected` is no JSON: {error}")),
            },
            None => {
                let mut expected = Value::Object(Map::new());
                let cells = values.iter().try_for_each(|(at, path)| {
                    let cell = record.get(*at).unwrap_or_default();
                    if let Some(cell) = of_cell(cell, path, schema.as_ref(), &place)? {
                        insert(&mut expected, path.segments(), cell);
                    }
                    Ok(())
                });
                cells.map(|()| Some(expected))
            }
        };
        let expected = match expected {
            Ok(expected) => expected,
            Err(error) => return Ok((place, Err(error))),
        };
        let id = record.get(id).unwrap_or_default().into();
        let text = cell(input).filter(|text| !text.is_empty());
        Ok((
            place,
            Ok(EvalGold {
                id,
                expected,
                schema: None,
                input: text,
                file: cell(file).filter(|it| !it.is_empty()),
            }),
        ))
    });
    Ok(Box::new(rows))
}

/// Returns the value of a cell, and prints its [warnings](crate::files::warnings).
fn kept(place: &str, text: &str, document: Candidate) -> Value {
    warn_of(place, text.as_bytes(), &document);
    document.value
}

/// The highest index of an item that a column may state: the items before it are filled with null.
const MAX_INDEX: usize = 9_999;

/// Returns the columns with values, each with its path.
fn columns(headers: &[String]) -> Result<Vec<(usize, JsonPath)>, String> {
    let mut all: Vec<(usize, JsonPath)> = Vec::new();
    for (at, header) in headers.iter().enumerate() {
        let Some(path) = header.trim().strip_prefix("expected").filter(|path| path.starts_with(['.', '[']))
        else {
            continue;
        };
        // A name may have any letters, such as spaces, as long as no brackets tell the steps apart.
        let names = path.split('.').skip(1);
        let plain = || names.fold(JsonPath::root(), |path, name| path.key(name));
        let read = format!("${path}").parse();
        let read = read.or_else(|error| if path.contains('[') { Err(error) } else { Ok(plain()) });
        let path: JsonPath = read.map_err(|error| {
            format!("the column `{header}`: {error}: write a path such as `expected.items[0].price`")
        })?;
        let is_far = |step: &Segment| matches!(step, Segment::Index(index) if *index > MAX_INDEX);
        if path.segments().iter().any(is_far) {
            return Err(format!("the column `{header}`: a list has at most {} items here", MAX_INDEX + 1));
        }
        if let Some((other, _)) =
            all.iter().find(|(_, known)| path.is_within(known) || known.is_within(&path))
        {
            let other = headers.get(*other).map(String::as_str).unwrap_or_default();
            return Err(format!(
                "the columns `{other}` and `{header}` are about the same value: leave one of them out"
            ));
        }
        all.push((at, path));
    }
    Ok(all)
}

/// Returns the value of a cell: none for an empty cell, unless the schema has null there; the text where the schema has texts, and otherwise JSON if it is JSON.
///
/// # Errors
/// A message for a cell with an integer that cannot be kept exactly.
fn of_cell(
    cell: &str,
    path: &JsonPath,
    schema: Option<&Value>,
    place: &str,
) -> Result<Option<Value>, String> {
    let own = schema.and_then(|root| {
        path.segments().iter().try_fold(root, |schema, segment| subschema(root, schema, segment))
    });
    if cell.trim().is_empty() {
        let has_null = own.is_none_or(|own| own.to_string().contains("\"null\""));
        return Ok((has_null && path.segments().iter().all(|step| matches!(step, Segment::Key(_))))
            .then_some(Value::Null));
    }
    let is_text = own.and_then(|own| own.get("type")).is_some_and(|kind| match kind {
        Value::Array(kinds) => kinds.iter().all(|kind| kind == "string" || kind == "null"),
        kind => kind == "string",
    });
    match read_exact(cell) {
        _ if is_text => Ok(Some(cell.into())),
        Ok(document) => Ok(Some(kept(place, cell, document))),
        Err(ReadError::Inexact { message, .. }) => {
            let path = path.to_string();
            Err(format!("{place}: the column `expected{}`: {message}", path.trim_start_matches('$')))
        }
        Err(_) => Ok(Some(cell.into())),
    }
}

/// Sets the value at a path. Items that no cell states are null.
fn insert(value: &mut Value, path: &[Segment], cell: Value) {
    match path.split_first() {
        None => *value = cell,
        Some((Segment::Key(name), rest)) => {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            if let Some(members) = value.as_object_mut() {
                insert(members.entry(name.clone()).or_insert(Value::Null), rest, cell);
            }
        }
        Some((Segment::Index(index), rest)) => {
            if !value.is_array() {
                *value = Value::Array(Vec::new());
            }
            if let Some(items) = value.as_array_mut() {
                while items.len() <= *index {
                    items.push(Value::Null);
                }
                items.get_mut(*index).into_iter().for_each(|item| insert(item, rest, cell.clone()));
            }
        }
    }
}
