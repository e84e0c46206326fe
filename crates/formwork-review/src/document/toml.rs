use std::ops::Range;

use formwork_core::JsonPath;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Parsed, Place};

pub(super) fn parse(text: &str) -> Parsed {
    let refused =
        |span: Option<Range<usize>>, message: &str| (span.map_or(0, |span| span.start), message.to_owned());
    let tree = DeTable::parse(text).map_err(|error| refused(error.span(), error.message()))?;
    let values: toml::Table = toml::from_str(text).map_err(|error| refused(error.span(), error.message()))?;
    let mut places = vec![Place { path: JsonPath::root(), key: None, value: 0 }];
    members(tree.get_ref(), &JsonPath::root(), &mut places);
    let value = values.into_iter().map(|(name, value)| {
        let value = json(value, &JsonPath::root().key(name.as_str()))?;
        Ok((name, value))
    });
    let value: Result<Map<_, _>, (JsonPath, &str)> = value.collect();
    let value = value.map_err(|(path, why)| {
        let at = places.iter().find(|place| place.path == path).map_or(0, |place| place.value);
        (at, why.to_owned())
    })?;
    Ok((Value::Object(value), places))
}

fn members(table: &DeTable<'_>, path: &JsonPath, places: &mut Vec<Place>) {
    for (name, value) in table {
        let path = path.key(name.get_ref().as_ref());
        place(value, Some(name.span().start), path, places);
    }
}

fn place(value: &Spanned<DeValue<'_>>, key: Option<usize>, path: JsonPath, places: &mut Vec<Place>) {
    places.push(Place { path: path.clone(), key, value: value.span().start });
    match value.get_ref() {
        DeValue::Table(table) => members(table, &path, places),
        DeValue::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                place(item, None, path.index(n), places);
            }
        }
        _ => {}
    }
}

fn json(value: toml::Value, path: &JsonPath) -> Result<Value, (JsonPath, &'static str)> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(yes) => yes.into(),
        toml::Value::Float(number) => {
            Number::from_f64(number).ok_or_else(|| (path.clone(), "JSON has no number for this"))?.into()
        }
        toml::Value::Datetime(_) => return Err((path.clone(), "a date is written in quotation marks here")),
        toml::Value::Array(items) => {
            let items = items.into_iter().enumerate().map(|(n, item)| json(item, &path.index(n)));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => {
            let members = table.into_iter().map(|(name, value)| {
                let value = json(value, &path.key(name.as_str()))?;
                Ok((name, value))
            });
            Value::Object(members.collect::<Result<_, (JsonPath, &str)>>()?)
        }
    })
}
