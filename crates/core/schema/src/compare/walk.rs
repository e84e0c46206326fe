//! Finds the places at which two versions of a schema differ.

use std::collections::{BTreeSet, HashSet};

use formwork_core::JsonPath;
use formwork_core::keywords::{definition_name, find};
use serde_json::{Map, Value, json};

use super::bare::Bare;
use super::{Change, ChangeKind, Compatibility, verdict};

/// Lists the differences between two versions, each place once.
pub(super) fn changes(before: &Bare, after: &Bare) -> Vec<Change> {
    let mut walk =
        Walk { before, after, altered: altered(before, after), visited: HashSet::new(), changes: Vec::new() };
    walk.node(before.document(), after.document(), "$");
    walk.changes
}

/// Returns the definitions whose meaning may differ: their text, or that of a definition which they refer to, differs.
fn altered(before: &Bare, after: &Bare) -> BTreeSet<String> {
    let names: BTreeSet<&str> = before.names().chain(after.names()).collect();
    let differs = |name: &&str| before.definition(name) != after.definition(name);
    let mut altered: BTreeSet<String> = names.iter().copied().filter(differs).map(str::to_owned).collect();
    loop {
        let reaches = |name: &&str| {
            !altered.contains(*name) && after.definition(name).is_some_and(|body| mentions(body, &altered))
        };
        let more: Vec<String> = names.iter().copied().filter(reaches).map(str::to_owned).collect();
        if more.is_empty() {
            return altered;
        }
        altered.extend(more);
    }
}

fn mentions(part: &Value, names: &BTreeSet<String>) -> bool {
    find(part, |part| definition_name(part).is_some_and(|name| names.contains(name))).is_some()
}

struct Walk<'s> {
    before: &'s Bare,
    after: &'s Bare,
    altered: BTreeSet<String>,
    /// Pairs of schemas that were compared already, for schemas that refer to themselves.
    visited: HashSet<(*const Value, *const Value)>,
    changes: Vec<Change>,
}

impl<'s> Walk<'s> {
    fn node(&mut self, before: &'s Value, after: &'s Value, path: &str) {
        let (before, after) = (self.before.resolve(before), self.after.resolve(after));
        if self.same(before, after)
            || !self.visited.insert((std::ptr::from_ref(before), std::ptr::from_ref(after)))
        {
            return;
        }
        let (Value::Object(old), Value::Object(new)) = (before, after) else {
            return self.altered_here(before, after, path);
        };
        // Keywords that are compared part by part are removed before the rest is compared as a whole.
        let (mut old_rest, mut new_rest) = (old.clone(), new.clone());
        let mut parts: Vec<(&'s Value, &'s Value, String)> = Vec::new();
        for keyword in ["items", "additionalProperties"] {
            if let (Some(was @ Value::Object(_)), Some(is @ Value::Object(_))) =
                (old.get(keyword), new.get(keyword))
            {
                parts.push((was, is, format!("{path}[*]")));
                old_rest.remove(keyword);
                new_rest.remove(keyword);
            }
        }
        for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            let list = |keywords: &'s Map<String, Value>| keywords.get(keyword).and_then(Value::as_array);
            if let (Some(was), Some(is)) = (list(old), list(new))
                && was.len() == is.len()
            {
                let place = |n: usize| {
                    if keyword == "prefixItems" { format!("{path}[{n}]") } else { path.to_owned() }
                };
                parts.extend(was.iter().zip(is).enumerate().map(|(n, (was, is))| (was, is, place(n))));
                old_rest.remove(keyword);
                new_rest.remove(keyword);
            }
        }
        let described = |keywords: &Map<String, Value>| keywords.contains_key("properties");
        let members = described(old) || described(new);
        if members {
            neutral(&mut old_rest, &mut new_rest);
        }
        let (old_rest, new_rest) = (Value::Object(old_rest), Value::Object(new_rest));
        if !self.same(&old_rest, &new_rest) {
            self.altered_here(&old_rest, &new_rest, path);
        }
        for (was, is, place) in parts {
            self.node(was, is, &place);
        }
        if members {
            self.members(old, new, path);
        }
    }

    fn members(&mut self, old: &'s Map<String, Value>, new: &'s Map<String, Value>, path: &str) {
        let named = |keywords: &'s Map<String, Value>| {
            keywords.get("properties").and_then(Value::as_object).into_iter().flatten()
        };
        let member = |keywords: &'s Map<String, Value>, name: &str| {
            keywords.get("properties").and_then(|members| members.get(name))
        };
        let required = |keywords: &Map<String, Value>, name: &str| {
            let names = keywords.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|other| other == name))
        };
        for (name, is) in named(new) {
            let place = place(path, name);
            let (was_required, is_required) = (required(old, name), required(new, name));
            let Some(was) = member(old, name) else {
                self.push(place, ChangeKind::Added { required: is_required });
                continue;
            };
            match (was_required, is_required) {
                (false, true) => self.push(place.clone(), ChangeKind::Altered(Compatibility::Narrowed)),
                (true, false) => self.push(place.clone(), ChangeKind::Altered(Compatibility::Widened)),
                _ => {}
            }
            self.node(was, is, &place);
        }
        for (name, _) in named(old).filter(|(name, _)| member(new, name).is_none()) {
            self.push(place(path, name), ChangeKind::Removed);
        }
    }

    /// Records the verdict on two parts that are compared as a whole.
    fn altered_here(&mut self, before: &Value, after: &Value, path: &str) {
        let verdict = verdict(&self.before.alone(before), &self.after.alone(after));
        if verdict != Compatibility::Unchanged {
            self.push(path.to_owned(), ChangeKind::Altered(verdict));
        }
    }

    fn push(&mut self, path: String, kind: ChangeKind) {
        let change = Change { path, kind };
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    /// Returns whether two parts are equal, and so is everything that they refer to.
    fn same(&self, before: &Value, after: &Value) -> bool {
        let bare = |part: &Value| {
            let mut part = part.clone();
            if let Some(keywords) = part.as_object_mut() {
                keywords.remove("$defs");
            }
            part
        };
        let after = bare(after);
        bare(before) == after && !mentions(&after, &self.altered)
    }
}

/// Replaces the members of two objects by members of the same names that allow any value. What remains is the rule for
/// further members and their number.
fn neutral(old: &mut Map<String, Value>, new: &mut Map<String, Value>) {
    let names = |keywords: &Map<String, Value>| {
        let members = keywords.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let all: Map<String, Value> =
        names(old).into_iter().chain(names(new)).map(|name| (name, json!(true))).collect();
    for keywords in [old, new] {
        keywords.remove("required");
        keywords.insert("properties".to_owned(), Value::Object(all.clone()));
    }
}

/// Returns the path of a member.
fn place(path: &str, name: &str) -> String {
    let member = JsonPath::root().key(name).to_string();
    format!("{path}{}", member.strip_prefix('$').unwrap_or(&member))
}
