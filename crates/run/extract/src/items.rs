//! The list items that a stream has sent.

use std::collections::BTreeMap;

use formwork_core::{Item, JsonPath};
use serde_json::Value;

/// The items that were sent and not taken back.
#[derive(Debug, Default)]
pub(crate) struct SentItems(BTreeMap<JsonPath, Value>);

/// A change of the items.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    Replaced(JsonPath),
    Sent(Item),
}

impl SentItems {
    /// Adds an item. Returns the changes that the reader of the stream does not know.
    pub(crate) fn add(&mut self, item: Item) -> impl Iterator<Item = Change> + use<> {
        let before = self.0.insert(item.path.clone(), item.value.clone());
        let is_known = before.as_ref() == Some(&item.value);
        let replaced = before.filter(|_| !is_known).map(|_| Change::Replaced(item.path.clone()));
        replaced.into_iter().chain((!is_known).then_some(Change::Sent(item)))
    }

    /// Returns the changes that lead to the items of the accepted document.
    pub(crate) fn accept(&mut self, document: &Value) -> Vec<Change> {
        let gone: Vec<JsonPath> =
            self.0.keys().filter(|path| path.get(document).is_none()).cloned().collect();
        gone.iter().for_each(|path| drop(self.0.remove(path)));
        let mut changes: Vec<Change> = gone.into_iter().map(Change::Replaced).collect();
        let mut items = Vec::new();
        collect(document, &JsonPath::root(), &mut items);
        for (path, value) in items {
            changes.extend(self.add(Item { path, value: value.clone() }));
        }
        changes
    }
}

/// Adds the items of the outermost lists of a value.
fn collect<'v>(value: &'v Value, path: &JsonPath, out: &mut Vec<(JsonPath, &'v Value)>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| collect(member, &path.key(name.as_str()), out));
        }
        Value::Array(items) => {
            out.extend(items.iter().enumerate().map(|(index, item)| (path.index(index), item)));
        }
        _ => {}
    }
}
