use formwork_core::JsonPath;
use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::{Parsed, Place};

pub(super) fn parse(text: &str) -> Parsed {
    let refused = |error: Error| (error.span().map_or(0, |span| span.start), error.message().to_owned());
    let tree = DeTable::parse(text).map_err(refused)?;
    let mut places = vec![Place { path: JsonPath::root(), key: None, value: 0 }];
    members(tree.get_ref(), &JsonPath::root(), &mut places).map_err(|(at, why)| (at, why.to_owned()))?;
    let value = Value::deserialize(Deserializer::from(tree)).map_err(refused)?;
    Ok((value, places))
}

/// The location and the reason of a value that JSON does not have.
type NoJson = (usize, &'static str);

fn members(table: &DeTable<'_>, path: &JsonPath, places: &mut Vec<Place>) -> Result<(), NoJson> {
    table.iter().try_for_each(|(name, value)| {
        place(value, Some(name.span().start), path.key(name.get_ref().as_ref()), places)
    })
}

fn place(
    value: &Spanned<DeValue<'_>>,
    key: Option<usize>,
    path: JsonPath,
    places: &mut Vec<Place>,
) -> Result<(), NoJson> {
    let at = value.span().start;
    places.push(Place { path: path.clone(), key, value: at });
    match value.get_ref() {
        DeValue::Table(table) => members(table, &path, places),
        DeValue::Array(items) => {
            items.iter().enumerate().try_for_each(|(n, item)| place(item, None, path.index(n), places))
        }
        DeValue::Datetime(_) => Err((at, "a date is written in quotation marks here")),
        DeValue::Float(number) if number.as_str().parse().is_ok_and(|number: f64| !number.is_finite()) => {
            Err((at, "JSON has no number for this"))
        }
        _ => Ok(()),
    }
}
