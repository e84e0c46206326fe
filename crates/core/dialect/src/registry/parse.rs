//! Parses the text of a registry to its rows, with the location of each mistake.

use std::ops::Range;
use std::sync::LazyLock;

use formwork_core::{Price, advised};
use formwork_json::line_column;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{Entry, Limits, NativeMode, Registry, RegistryError};
use crate::Dialects;

/// The keys of a file.
static FILE: LazyLock<Vec<String>> = LazyLock::new(keys::<Registry>);
static ROW: LazyLock<Vec<String>> = LazyLock::new(keys::<Entry>);
static LIMITS: LazyLock<Vec<String>> = LazyLock::new(keys::<Limits>);
static PRICE: LazyLock<Vec<String>> = LazyLock::new(keys::<Price>);

/// Returns the keys of a table of the file, in the order of the type's fields.
fn keys<T: JsonSchema>() -> Vec<String> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect()
}

/// Parses the rows of a file.
pub(super) fn parse(text: &str, dialects: &Dialects) -> Result<Vec<Entry>, RegistryError> {
    let error = |at: usize, key: String, message: String| {
        let (line, column) = line_column(text, at);
        RegistryError { line, column, key, message }
    };
    let start = |span: Option<Range<usize>>| span.map_or(0, |span| span.start);
    let table = DeTable::parse(text)
        .map_err(|wrong| error(start(wrong.span()), String::new(), one_line(wrong.message())))?
        .into_inner();
    unknown_key(&table, &FILE).map_or(Ok(()), |(at, key, message)| Err(error(at, key, message)))?;
    let Some(models) = table.get("model") else { return Ok(Vec::new()) };
    let Some(rows) = models.get_ref().as_array() else {
        let message = "rows begin with `[[model]]`, in double brackets".to_owned();
        return Err(error(models.span().start, "model".to_owned(), message));
    };
    let mut entries = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let name = format!("model[{index}]");
        let within = |key: &str| if key.is_empty() { name.clone() } else { format!("{name}.{key}") };
        if let Some((at, key, message)) = unknown_key_of_row(row) {
            return Err(error(at, within(&key), message));
        }
        let entry = Entry::deserialize(ValueDeserializer::from(row.clone())).map_err(|wrong| {
            let at = wrong.span().map_or(row.span().start, |span| span.start);
            error(at, within(&key_at(row.get_ref(), at)), one_line(wrong.message()))
        })?;
        if let Some((key, message)) = contradiction(&entry, dialects) {
            let at = row.get_ref().get(key).map_or(row.span().start, |value| value.span().start);
            return Err(error(at, within(key), message));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The byte of a mistake, the path of its key, and the message.
type Wrong = (usize, String, String);

fn unknown_key(table: &DeTable<'_>, known: &[String]) -> Option<Wrong> {
    let unknown = table.keys().filter(|key| !known.iter().any(|known| known == key.get_ref().as_ref()));
    let first = unknown.min_by_key(|key| key.span().start)?;
    let key = first.get_ref().as_ref();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Some((first.span().start, key.to_owned(), advised("there is no such key", key, &known)))
}

fn unknown_key_of_row(row: &Spanned<DeValue<'_>>) -> Option<Wrong> {
    let table = row.get_ref().as_table()?;
    let inside = |name: &str, known: &[String]| {
        let (at, key, message) = unknown_key(table.get(name)?.get_ref().as_table()?, known)?;
        Some((at, format!("{name}.{key}"), message))
    };
    let found = [unknown_key(table, &ROW), inside("limits", &LIMITS), inside("price", &PRICE)];
    found.into_iter().flatten().min_by_key(|(at, ..)| *at)
}

/// Returns the path of the innermost key whose value is at this byte; empty if there is none.
fn key_at(value: &DeValue<'_>, at: usize) -> String {
    let Some(table) = value.as_table() else { return String::new() };
    let Some((key, inner)) = table.iter().find(|(_, inner)| inner.span().contains(&at)) else {
        return String::new();
    };
    let deeper = key_at(inner.get_ref(), at);
    if deeper.is_empty() { key.get_ref().to_string() } else { format!("{}.{deeper}", key.get_ref()) }
}

/// Returns a contradiction between several keys: the key to change, and the reason.
fn contradiction(entry: &Entry, dialects: &Dialects) -> Option<(&'static str, String)> {
    if let Some(dialect) = &entry.dialect {
        if let Err(message) = dialects.get(dialect) {
            return Some(("dialect", message));
        }
        if entry.native != NativeMode::Schema {
            let native = entry.native;
            return Some((
                "dialect",
                format!("a dialect is for `native = \"schema\"`, and here it is \"{native}\""),
            ));
        }
    }
    let empty = [("family", &entry.family), ("provider", &entry.provider), ("source", &entry.source)];
    let (key, _) = empty.into_iter().find(|(_, text)| text.trim().is_empty())?;
    Some((key, "it is empty".to_owned()))
}

/// Returns the parser's message, which may have several lines, on one line.
fn one_line(message: &str) -> String {
    message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "match = \"a\"\nfamily = \"A\"\nprovider = \"p\"\nnative = \"schema\"\nsource = \"s\"\nchecked = \"2026-11-21\"\n";

    fn wrong(text: &str) -> String {
        parse(text, &Dialects::builtin()).unwrap_err().to_string()
    }

    fn wrong_row(more: &str) -> String {
        wrong(&format!("[[model]]\n{GOOD}{more}\n"))
    }

    #[test]
    fn the_lists_of_keys_are_those_of_the_types() {
        let schema = serde_json::to_value(schemars::schema_for!(Entry)).unwrap();
        let same = |listed: &[String], properties: &Value| {
            let there: Vec<&String> = properties.as_object().unwrap().keys().collect();
            assert!(there.into_iter().eq(listed));
        };
        same(&ROW, &schema["properties"]);
        same(&LIMITS, &schema["$defs"]["Limits"]["properties"]);
        same(&PRICE, &schema["$defs"]["Price"]["properties"]);
    }

    #[test]
    fn a_row_needs_little() {
        assert_eq!(parse("", &Dialects::builtin()).unwrap(), []);
        let rows = parse(&format!("[[model]]\n{GOOD}"), &Dialects::builtin()).unwrap();
        assert!(rows.len() == 1 && !rows[0].strict && rows[0].price.is_none() && rows[0].limits.is_empty());
    }

    #[test]
    fn unknown_keys_come_with_the_nearest_name() {
        assert_eq!(wrong("[[models]]\n"), "1:3: models: there is no such key: did you mean `model`?");
        assert_eq!(
            wrong_row("  context_token = 5"),
            "8:3: model[0].context_token: there is no such key: did you mean `context_tokens`?"
        );
        assert_eq!(
            wrong_row("limits = { depht = 5 }"),
            "8:12: model[0].limits.depht: there is no such key: did you mean `depth`?"
        );
        assert_eq!(
            wrong_row("[model.price]\ninput = 1\ncached = 2"),
            "10:1: model[0].price.cached: there is no such key: did you mean `cache_read`?"
        );
        // The first mistake in the text is reported, not the first in the alphabet.
        assert!(wrong_row("zzz = 1\naaa = 2").starts_with("8:1: model[0].zzz: "));
    }

    #[test]
    fn wrong_values_have_their_place_and_key() {
        for (more, start, says) in [
            (
                "dialect = \"open-ai\"",
                "8:11: model[0].dialect: ",
                "no dialect `open-ai`: did you mean `openai`?",
            ),
            ("dialect = \"klingon\"", "8:11: model[0].dialect: ", "there are openai, "),
            ("strict = \"yes\"", "8:10: model[0].strict: ", "expected a boolean"),
            ("temperature = \"always\"", "8:15: model[0].temperature: ", "`when_effort_none`"),
            ("price = { input = -1, output = 0 }", "8:19: model[0].price.input: ", "-1"),
            ("price = { input = 1 }", "8:9: model[0].price: ", "missing field `output`"),
            ("retires = \"2026-02-30\"", "8:11: model[0].retires: ", "`2026-02-30` is no day"),
            ("retires = 2026-02-28", "8:11: model[0].retires: ", "expected a string"),
            ("strict = true\nstrict = true", "9:1: ", "duplicate key"),
            ("strict = ", "8:10: ", ""),
        ] {
            let error = wrong_row(more);
            assert!(
                error.starts_with(start) && error.contains(says) && !error.contains('\n'),
                "{more}: {error}"
            );
        }
        for (from, to, start, says) in [
            ("\"a\"", "\"\"", "2:9: model[0].match: ", "a pattern is the name of a model"),
            ("\"a\"", "[]", "2:9: model[0].match: ", "an empty list matches no model"),
            ("\"a\"", "7", "2:9: model[0].match: ", "expected a pattern or a list of patterns"),
            ("source = \"s\"", "", "1:1: model[0]: ", "missing field `source`"),
            ("\"s\"", "\" \"", "6:10: model[0].source: ", "it is empty"),
            (
                "\"schema\"",
                "\"tool\"\ndialect = \"openai\"",
                "6:11: model[0].dialect: ",
                "here it is \"tool\"",
            ),
        ] {
            let error = wrong(&format!("[[model]]\n{}", GOOD.replace(from, to)));
            assert!(error.starts_with(start) && error.contains(says), "{to}: {error}");
        }
        let second = format!("[[model]]\n{GOOD}[[model]]\n{}", GOOD.replace("schema", "scheme"));
        assert!(
            wrong(&second).starts_with("12:10: model[1].native: unknown variant `scheme`"),
            "{}",
            wrong(&second)
        );
        assert!(wrong("model = 3").starts_with("1:9: model: rows begin with"), "{}", wrong("model = 3"));
        assert!(wrong("model = [3]").starts_with("1:10: model[0]: "), "{}", wrong("model = [3]"));
        // Columns count characters.
        assert!(wrong_row("notes = \"äöü\" x").starts_with("8:15: "), "{}", wrong_row("notes = \"äöü\" x"));
    }
}
