//! The places of requested values in the answer to a patch.

use std::collections::HashMap;

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use super::closed::in_document;

/// One requested value.
#[derive(Debug, Clone)]
pub(crate) struct Place<'p> {
    /// The path in the document. For the rest of a list or of a map it is one past the last item or member.
    pub(super) path: &'p JsonPath,
    /// The position in its list, if other positions of the list are requested with it: the answer has an object with one member for
    /// each position.
    pub(super) index: Option<usize>,
    /// Whether the members for each ten positions are an object of their own, so that the schema of ten positions is written once.
    pub(super) by_tens: bool,
    /// Whether all further items of a list, or members of a map, are requested.
    pub(super) is_rest: bool,
    /// The number of steps of `path` before the position.
    at: usize,
}

impl Place<'_> {
    /// Returns the name of the member of the answer.
    pub(super) fn name(&self) -> String {
        let steps = self.path.segments();
        let (before, after) = steps.split_at(self.at.min(steps.len()));
        match self.index {
            Some(_) => {
                let rest: JsonPath = after.iter().skip(1).cloned().collect();
                let list: JsonPath = before.iter().cloned().collect();
                format!("{}[*]{}", label(&list), rest.to_string().trim_start_matches('$'))
            }
            None if self.is_rest => label(self.path).trim_end_matches(']').to_owned() + ":]",
            None => label(self.path),
        }
    }

    /// Returns the name of the member of the answer, and the names of the values around and at the value in it for a group.
    pub(super) fn keys(&self) -> (String, Vec<String>) {
        let keys = match self.index {
            Some(index) if self.by_tens => vec![(index - index % 10).to_string(), (index % 10).to_string()],
            Some(index) => vec![index.to_string()],
            None => Vec::new(),
        };
        (self.name(), keys)
    }

    /// Returns the path in the answer of a leaf of the document; `None` if it is not in this value.
    pub(crate) fn of_leaf(&self, leaf: &JsonPath) -> Option<JsonPath> {
        leaf.is_within(self.path).then(|| in_document(leaf, self.path, &self.in_answer())).flatten()
    }

    /// Returns the path of the value in the answer.
    pub(super) fn in_answer(&self) -> JsonPath {
        let (name, keys) = self.keys();
        keys.into_iter().fold(JsonPath::root().key(name), |path, key| path.key(key))
    }
}

/// The places of a patch, in the order of the answer: places in the same list that differ only in their position form a group.
#[derive(Debug)]
pub(crate) struct Places<'p>(Vec<Place<'p>>);

impl<'p> Places<'p> {
    /// Returns the places of these paths of a document.
    pub(crate) fn new(paths: &'p [JsonPath], document: &Value) -> Self {
        let mut groups: Vec<Vec<Place<'p>>> = Vec::new();
        let mut known: HashMap<(&[Segment], &[Segment]), usize> = HashMap::new();
        for path in paths {
            let steps = path.segments();
            let at = steps.iter().rposition(|step| matches!(step, Segment::Index(_)));
            let (is_rest, by_tens) = (is_rest(path, document), false);
            let place = Place { path, index: None, by_tens, is_rest, at: at.unwrap_or_default() };
            let Some(at) = at.filter(|_| !place.is_rest) else {
                groups.push(vec![place]);
                continue;
            };
            let (before, after) = steps.split_at(at);
            let group = *known.entry((before, after.get(1..).unwrap_or_default())).or_insert(groups.len());
            match groups.get_mut(group) {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        let places = groups.into_iter().flat_map(|mut group| {
            if group.len() > 1 {
                for place in &mut group {
                    if let Some(Segment::Index(index)) = place.path.segments().get(place.at) {
                        place.index = Some(*index);
                    }
                }
                // Positions that are requested in any order are written in theirs.
                group.sort_by_key(|place| place.index);
                let by_tens = has_full_tens(&group);
                group.iter_mut().for_each(|place| place.by_tens = by_tens);
            }
            group
        });
        Self(places.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Place<'p>> {
        self.0.iter()
    }

    /// Returns the places of each member of the answer.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Place<'p>]> {
        self.0
            .chunk_by(|one, other| one.index.is_some() && other.index.is_some() && one.name() == other.name())
    }
}

/// Returns whether at least two tens of positions are requested in full, and with them at least half of all positions.
fn has_full_tens(group: &[Place<'_>]) -> bool {
    let tens = group.chunk_by(|one, other| one.index.map(|at| at / 10) == other.index.map(|at| at / 10));
    let full = tens.filter(|ten| ten.len() == 10).count();
    full >= 2 && full * 20 >= group.len()
}

/// Returns the values of the answer to a patch with their paths in the document: those that a run splices into it.
///
/// ```
/// use formwork_core::{JsonPath, values_of_patch};
/// use serde_json::json;
///
/// let document = json!({"items": [{"price": "x"}]});
/// let paths = ["$.items[0].price".parse::<JsonPath>()?];
/// let patch = json!({"items[0].price": 3});
/// assert_eq!(values_of_patch(&paths, &document, &patch), [(paths[0].clone(), &json!(3))]);
/// // A whole document is not a patch.
/// assert!(values_of_patch(&paths, &document, &json!({"items": [{"price": 3}]})).is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn values_of_patch<'p>(
    paths: &[JsonPath],
    document: &Value,
    patch: &'p Value,
) -> Vec<(JsonPath, &'p Value)> {
    let places = Places::new(paths, document);
    places.iter().filter_map(|place| Some((place.path.clone(), place.in_answer().get(patch)?))).collect()
}

/// Returns whether a path is one past the last item of a list, or a position in an object, which stands for its further members.
pub(super) fn is_rest(path: &JsonPath, document: &Value) -> bool {
    let Some(Segment::Index(index)) = path.last() else { return false };
    match path.parent().unwrap_or_default().get(document) {
        Some(Value::Array(items)) => items.len() == *index,
        Some(Value::Object(_)) => true,
        _ => false,
    }
}

/// Returns the schema of further members of a map, given the schema of the map: of an object whose members have names of their own.
/// `None` if the schema has no such members, or if other schemas decide about them as well.
pub(super) fn others(map: &Value) -> Option<Value> {
    const DECIDING: [&str; 9] =
        ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "unevaluatedProperties", "enum"];
    let members = map.as_object()?;
    let is_named =
        members.get("properties").and_then(Value::as_object).is_some_and(|named| !named.is_empty());
    let is_map = members.get("patternProperties").is_some_and(Value::is_object)
        || match members.get("additionalProperties") {
            Some(Value::Bool(is_open)) => *is_open && !is_named,
            Some(schema) => schema.is_object(),
            None => !is_named && members.get("type").is_some_and(|kind| kind == "object"),
        };
    if !is_map || DECIDING.iter().any(|keyword| members.contains_key(*keyword)) {
        return None;
    }
    let mut schema = members.clone();
    for keyword in ["minProperties", "dependentRequired", "dependencies"] {
        schema.shift_remove(keyword);
    }
    Some(Value::Object(schema))
}

/// Returns the property name for `path` in a patch schema, for example `items[0].price` for `$.items[0].price`.
pub(super) fn label(path: &JsonPath) -> String {
    let text = path.to_string();
    match path.segments().first() {
        Some(Segment::Key(_)) if text.starts_with("$.") => text.chars().skip(2).collect(),
        _ => text.chars().skip(1).collect(),
    }
}
