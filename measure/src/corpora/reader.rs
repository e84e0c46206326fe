//! Scores the reader that walks the contract along with a growing text, on real schemas with labelled instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{Level, Outline, Outlook, Reader, Structure};
use formwork_json::{JsonPath, Places, Segment, Span, locate};
use formwork_schema::compile;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::LocationSegment;
use serde_json::{Map, Value};

use super::{Args, percent, rows, text};

/// Scores `schemas_maskbench`. A valid instance must never be stopped, whatever the order of its members and the chunks. An invalid
/// instance with an error at a leaf or a name, outside of unions, must be stopped before anything follows that leaf or name.
pub(super) fn run(args: &Args) -> Result<(), String> {
    let (mut valid, mut stopped, mut incomplete) = (0, 0, 0);
    let (mut invalid, mut found, mut missed) = (0, 0, BTreeMap::<&str, usize>::new());
    let print = |row: &Value, what: &str, document: &str, outlook: &Outlook| {
        if args.prints("reader") {
            println!("{}: {what}\n  {document}\n  {outlook:?}", text(row, "id"));
        }
    };
    for row in rows(&args.folder.join("schemas_maskbench.jsonl"))? {
        let Ok(compiled) = compile(&row["schema"]) else { continue };
        let structure: Arc<dyn Structure> = compiled.clone();
        let outline = Outline::new(&row["schema"], Some(structure));
        let errors = raw(&row["schema"]);
        for (number, instance) in row["instances"].as_array().into_iter().flatten().enumerate() {
            let data = &instance["data"];
            if instance["valid"] == true {
                for (chunk, document) in variants(data, number) {
                    valid += 1;
                    let outlook = read(&outline, &document, chunk);
                    if matches!(outlook, Outlook::Impossible { .. }) {
                        stopped += 1;
                        print(&row, "a valid instance is stopped", &document, &outlook);
                    } else if matches!(outlook, Outlook::Possible) {
                        incomplete += 1;
                    }
                }
            } else if let Some(errors) = errors.as_ref().filter(|_| !compiled.is_valid(data)) {
                let document = data.to_string();
                let ends = errors.iter_errors(data).filter_map(|error| end_of(&error, &document));
                let Some((end, keyword)) = ends.min() else { continue };
                invalid += 1;
                let outlook = read(&outline, &document, 1);
                if matches!(outlook, Outlook::Impossible { at, .. } if at <= end) {
                    found += 1;
                } else {
                    *missed.entry(keyword).or_default() += 1;
                    print(&row, &format!("{keyword} at byte {end} is not found there"), &document, &outlook);
                }
            }
        }
    }
    println!(
        "reader: {stopped} of {valid} valid texts are stopped, {incomplete} are never complete; of {invalid} invalid instances with \
         an error at a leaf or name outside of unions, {found} are stopped there = {:.1} % (missed: {missed:?})",
        percent(found, invalid),
    );
    Ok(())
}

/// Returns the validator of a schema with the errors as they are.
fn raw(schema: &Value) -> Option<jsonschema::Validator> {
    jsonschema::options().offline().should_validate_formats(true).build(schema).ok()
}

/// Returns the last byte that an error at a leaf or name outside of unions needs, if it is not the last byte of the text.
fn end_of(error: &jsonschema::ValidationError<'_>, document: &str) -> Option<(usize, &'static str)> {
    let segments = error.schema_path().to_string();
    let is_inside = |keyword: &str| segments.split('/').any(|step| step == keyword);
    if ["anyOf", "oneOf", "not", "if", "then", "else", "contains", "dependentSchemas", "dependencies"]
        .into_iter()
        .any(is_inside)
    {
        return None;
    }
    let path: JsonPath = error
        .instance_path()
        .iter()
        .map(|segment| match segment {
            LocationSegment::Property(name) => Segment::Key(name.to_string()),
            LocationSegment::Index(index) => Segment::Index(index),
        })
        .collect();
    let span = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let paths: Vec<JsonPath> = unexpected.iter().map(|name| path.key(name)).collect();
            let places = Places::find(document, &paths);
            paths.iter().filter_map(|path| places.key(path)).min_by_key(|span| span.end)
        }
        _ if path.get(&serde_json::from_str(document).ok()?)?.is_object() => None,
        _ if path.get(&serde_json::from_str(document).ok()?)?.is_array() => None,
        _ => locate(document, &path),
    };
    let Span { end, .. } = span.filter(|span| span.end < document.len())?;
    Some((end, keyword_of(error)))
}

fn keyword_of(error: &jsonschema::ValidationError<'_>) -> &'static str {
    let path = error.schema_path().to_string();
    let last = path.rsplit('/').next().unwrap_or_default();
    formwork_core::keywords::keyword(last).map_or("other", |keyword| keyword.name)
}

/// Returns the text of a document in three forms, each with a size of chunks: members in order, reversed and rotated.
fn variants(data: &Value, number: usize) -> [(usize, String); 3] {
    let pretty =
        serde_json::to_string_pretty(&ordered(data, &|members| members.reverse())).unwrap_or_default();
    let rotated = ordered(data, &|members| {
        let by = (number + 1) % members.len().max(1);
        members.rotate_left(by);
    });
    [(1, data.to_string()), (7, pretty), (usize::MAX, escaped(&rotated.to_string()))]
}

/// Changes the order of the members of an object.
type Order<'o> = &'o dyn Fn(&mut Vec<(String, Value)>);

fn ordered(value: &Value, order: Order<'_>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| ordered(item, order)).collect(),
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, member)| (name.clone(), ordered(member, order))).collect();
            order(&mut members);
            Value::Object(Map::from_iter(members))
        }
        scalar => scalar.clone(),
    }
}

/// Returns a JSON text in which characters beyond ASCII, and the letter `e` in strings, are escaped.
fn escaped(json: &str) -> String {
    let (mut out, mut in_text, mut after_backslash) = (String::new(), false, false);
    for c in json.chars() {
        if in_text && !after_backslash && (c == 'e' || !c.is_ascii()) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
        in_text ^= c == '"' && !after_backslash;
        after_backslash = in_text && c == '\\' && !after_backslash;
    }
    out
}

/// Reads a document in chunks of a number of bytes, rounded up to whole characters.
fn read(outline: &Outline, document: &str, size: usize) -> Outlook {
    let mut reader = Reader::new(Level::Clean);
    let mut rest = document;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        reader.push(outline, chunk, |_| {});
        rest = after;
    }
    reader.end(outline, |_| {});
    reader.outlook().clone()
}
