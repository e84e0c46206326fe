//! The items of several lists that are versions of one item.

use std::collections::HashMap;

use serde_json::Value;

use crate::assign;
use crate::leaves::similarity;
use crate::pairing::Pairing;

/// The least similarity of two versions of an item: items that have one value of three in common are different ones.
const MIN_SIMILARITY: f64 = 0.25;

/// The versions of an item, each with the number of its list and its own in the list.
struct Group<'v> {
    first: &'v Value,
    versions: Vec<(usize, usize)>,
    keys: Vec<String>,
}

/// Groups the items of lists: equal ones, and of the rest those that are similar. Two items that several lists have as they are belong
/// to different groups. If the equal items of two lists, at least two, are in the same order, similar ones stand between the same equal
/// ones.
///
/// The order of the groups is that of the first list; an item that only later lists have follows the one before it there.
pub(crate) fn versions(lists: &[&[Value]]) -> Vec<Vec<(usize, usize)>> {
    let keys: Vec<Vec<String>> = lists.iter().map(|items| keys(items)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    keys.iter().flatten().for_each(|key| *counts.entry(key).or_default() += 1);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (list, (items, keys)) in lists.iter().zip(&keys).enumerate() {
        let is_shared = |key: &str| counts.get(key).is_some_and(|count| *count > 1);
        let partners = partners(items, keys, &groups, &is_shared);
        let mut after: HashMap<Option<usize>, Vec<Group<'_>>> = HashMap::new();
        let mut before = None;
        for (number, ((first, key), partner)) in items.iter().zip(keys).zip(partners).enumerate() {
            let (version, key) = ((list, number), key.clone());
            match partner.and_then(|at| Some((at, groups.get_mut(at)?))) {
                Some((at, group)) => {
                    group.versions.push(version);
                    group.keys.push(key);
                    before = Some(at);
                }
                None => {
                    let group = Group { first, versions: vec![version], keys: vec![key] };
                    after.entry(before).or_default().push(group);
                }
            }
        }
        let known = std::mem::take(&mut groups).into_iter().enumerate();
        groups.extend(after.remove(&None).unwrap_or_default());
        for (at, group) in known {
            groups.push(group);
            groups.extend(after.remove(&Some(at)).unwrap_or_default());
        }
    }
    groups.into_iter().map(|group| group.versions).collect()
}

/// Returns the group of each item of a list.
fn partners(
    items: &[Value],
    keys: &[String],
    groups: &[Group<'_>],
    is_shared: &dyn Fn(&str) -> bool,
) -> Vec<Option<usize>> {
    let mut of_key: HashMap<&str, usize> = HashMap::new();
    for (at, group) in groups.iter().enumerate() {
        group.keys.iter().for_each(|key| _ = of_key.entry(key).or_insert(at));
    }
    let mut is_free = vec![true; groups.len()];
    let mut take = |at: usize| is_free.get_mut(at).is_some_and(std::mem::take);
    let mut partners: Vec<Option<usize>> =
        keys.iter().map(|key| of_key.get(key.as_str()).copied().filter(|at| take(*at))).collect();
    // One equal item says nothing about the order.
    let is_ordered = partners.iter().flatten().count() > 1 && partners.iter().flatten().is_sorted();
    let mut rest: Vec<usize> = Vec::new();
    let mut from = 0;
    for at in 0..=items.len() {
        let equal = partners.get(at).copied().flatten();
        if at < items.len() && (equal.is_none() || !is_ordered) {
            rest.extend(equal.is_none().then_some(at));
            continue;
        }
        // The items since the last equal one, and the groups between.
        let end = equal.unwrap_or(groups.len());
        let free: Vec<usize> = (from..end).filter(|group| is_free.get(*group) == Some(&true)).collect();
        for (item, group) in similar(items, keys, &rest, groups, &free, is_shared) {
            if let Some(partner) = partners.get_mut(item) {
                *partner = Some(group);
            }
        }
        rest.clear();
        from = end + 1;
    }
    partners
}

/// Returns the best pairs of some items and some groups.
fn similar(
    items: &[Value],
    keys: &[String],
    rest: &[usize],
    groups: &[Group<'_>],
    free: &[usize],
    is_shared: &dyn Fn(&str) -> bool,
) -> Vec<(usize, usize)> {
    if rest.is_empty() || free.is_empty() {
        return Vec::new();
    }
    let own: Vec<Value> = rest.iter().filter_map(|at| items.get(*at)).cloned().collect();
    let others = free.iter().filter_map(|at| groups.get(*at));
    let others: Vec<Value> = others.map(|group| group.first.clone()).collect();
    let fits = |row: usize, column: usize, similarity: f64| {
        let key = rest.get(row).and_then(|at| keys.get(*at));
        let group = free.get(column).and_then(|at| groups.get(*at));
        let is_shared_group = group.is_some_and(|group| group.keys.iter().any(|key| is_shared(key)));
        similarity >= MIN_SIMILARITY && !(key.is_some_and(|key| is_shared(key)) && is_shared_group)
    };
    let best = |rows: usize, columns: usize, weight: &dyn Fn(usize, usize) -> f64| {
        let kept = |row: usize, column: usize| match weight(row, column) {
            similarity if fits(row, column, similarity) => similarity,
            _ => 0.0,
        };
        assign(rows, columns, kept)
    };
    // Equal items are paired already. Each has a key of its own, so that the numbers of `assign` are those of the lists.
    let pairing = Pairing::of([&own, &others], |item| format!("{item:p}"), best, similarity);
    // Long lists are paired without a look at how similar two items are.
    let pair = |(item, group): (usize, usize)| {
        let is_similar = fits(item, group, similarity(own.get(item)?, others.get(group)?));
        is_similar.then_some((*rest.get(item)?, *free.get(group)?))
    };
    pairing.pairs.into_iter().filter_map(pair).collect()
}

/// Returns a key for each item of a list: its value, and how many equal ones precede it.
fn keys(items: &[Value]) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let key = |item: &Value| {
        let text = item.to_string();
        let count = seen.entry(text.clone()).or_default();
        *count += 1;
        format!("{count} {text}")
    };
    items.iter().map(key).collect()
}
