//! The leaves of a value, grouped by the records that they belong to.

use std::collections::HashMap;
use std::rc::Rc;

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use crate::compare::subschema;
use crate::find::{Place, key, places};
use crate::index::Index;
use crate::label::Label;
use crate::status::Status;

/// A leaf of the value.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) path: JsonPath,
    /// The value as JSON writes it; texts without quotes.
    pub(crate) written: String,
    /// The places of the value in the input. Equal leaves share them.
    pub(crate) places: Rc<[Place]>,
    pub(crate) label: Label,
    /// The member of the record that the leaf is, as a path without indexes.
    pub(crate) member: String,
    /// The number of its record.
    pub(crate) record: usize,
    /// The chosen place.
    pub(crate) chosen: Option<usize>,
}

impl Leaf {
    /// Returns the status of the leaf at a place. Leaves with equal values share their places, but not their notation.
    pub(crate) fn status(&self, index: &Index<'_>, place: &Place) -> Status {
        let is_verbatim = index.slice(place.range.start, place.range.end) == self.written;
        match place.status {
            Status::Exact | Status::Normalised if is_verbatim => Status::Exact,
            Status::Exact => Status::Normalised,
            status => status,
        }
    }
}

/// A record: the leaves of an object or of an item of a list.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) leaves: Vec<usize>,
    /// The record around it.
    pub(crate) parent: Option<usize>,
    /// The token at which the record was found.
    pub(crate) anchor: Option<usize>,
}

/// All leaves of a value.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) records: Vec<Record>,
    /// The records of each list, in the order of its items; outer lists precede inner ones.
    pub(crate) lists: Vec<Vec<usize>>,
    /// The records of objects outside of lists. The root is the first.
    pub(crate) objects: Vec<usize>,
}

/// The facts about a value that the walk collects.
#[derive(Clone)]
struct At<'v, 's> {
    path: JsonPath,
    schema: Option<&'s Value>,
    name: &'v str,
    parents: Vec<&'v str>,
    record: usize,
    in_list: bool,
}

impl Records {
    pub(crate) fn of(index: &Index<'_>, value: &Value, schema: Option<&Value>) -> Self {
        let mut records = Self { records: vec![Record::default()], objects: vec![0], ..Self::default() };
        let mut known = HashMap::new();
        let path = JsonPath::root();
        let at = At { path, schema, name: "", parents: Vec::new(), record: 0, in_list: false };
        records.walk(value, &at, schema, &mut |leaf| {
            Rc::clone(known.entry(key(leaf)).or_insert_with(|| places(index, leaf).into()))
        });
        records
    }

    /// Chooses the first place of each leaf if every choice gives each leaf the same status. Returns whether that is so.
    pub(crate) fn take_first(&mut self, index: &Index<'_>) -> bool {
        let is_same = self.leaves.iter().all(|leaf| {
            let mut statuses = leaf.places.iter().map(|place| (leaf.status(index, place), place.needs_label));
            let first = statuses.next();
            first.is_none_or(|(_, needs_label)| !needs_label) && statuses.all(|it| Some(it) == first)
        });
        if is_same {
            self.leaves.iter_mut().for_each(|leaf| leaf.chosen = (!leaf.places.is_empty()).then_some(0));
        }
        is_same
    }

    fn walk<'v, 's>(
        &mut self,
        value: &'v Value,
        at: &At<'v, 's>,
        root: Option<&'s Value>,
        places: &mut dyn FnMut(&Value) -> Rc<[Place]>,
    ) {
        let sub = |step: &Segment| subschema(root?, at.schema?, step);
        let parents =
            || at.parents.iter().copied().chain([at.name]).filter(|name| !name.is_empty()).collect();
        match value {
            Value::Object(members) => {
                let record = match at.in_list || at.path.is_root() {
                    true => at.record,
                    false => self.open(at.record),
                };
                if record != at.record {
                    self.objects.push(record);
                }
                for (name, member) in members {
                    let step = Segment::Key(name.clone());
                    let (schema, path) = (sub(&step), at.path.child(step));
                    let at = At { path, schema, name, parents: parents(), record, in_list: at.in_list };
                    self.walk(member, &at, root, places);
                }
            }
            Value::Array(items) => {
                let list = self.lists.len();
                self.lists.push(Vec::new());
                for (index, item) in items.iter().enumerate() {
                    let record = self.open(at.record);
                    if let Some(list) = self.lists.get_mut(list) {
                        list.push(record);
                    }
                    let step = Segment::Index(index);
                    let (schema, path) = (sub(&step), at.path.child(step));
                    // The items of a list of texts have the name of the list.
                    let is_leaf = !item.is_object() && !item.is_array();
                    let (name, parents) =
                        if is_leaf { (at.name, at.parents.clone()) } else { ("", parents()) };
                    self.walk(item, &At { path, schema, name, parents, record, in_list: true }, root, places);
                }
            }
            leaf => {
                let number = self.leaves.len();
                self.leaves.push(Leaf {
                    path: at.path.clone(),
                    written: leaf.as_str().map_or_else(|| leaf.to_string(), |text| text.trim().to_owned()),
                    places: places(leaf),
                    label: Label::new(at.name, &at.parents, at.schema),
                    member: member(&at.path),
                    record: at.record,
                    chosen: None,
                });
                if let Some(record) = self.records.get_mut(at.record) {
                    record.leaves.push(number);
                }
            }
        }
    }

    /// Opens a record within another one.
    fn open(&mut self, parent: usize) -> usize {
        self.records.push(Record { parent: Some(parent), ..Record::default() });
        self.records.len() - 1
    }
}

/// Returns the path of a leaf without the indexes of items.
pub(crate) fn member(path: &JsonPath) -> String {
    let step = |step: &Segment| match step {
        Segment::Key(name) => name.clone(),
        Segment::Index(_) => "*".to_owned(),
    };
    path.segments().iter().map(step).collect::<Vec<_>>().join("\0")
}
