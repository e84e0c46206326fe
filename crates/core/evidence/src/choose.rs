//! The choice among several places of the same value.
//!
//! Lists are solved first: each item gets the place of its record, its *anchor*, where most of its leaves stand together; of equal places,
//! so that the records follow each other in the order of the items. Then each record chooses the places of its leaves near its anchor.
//! Objects follow, then the root. A second pass knows which places the other records have taken.

use std::collections::HashMap;

use crate::align::assign;
use crate::find::Place;
use crate::index::Index;
use crate::label::{Column, Surroundings};
use crate::order::{Window, place};
use crate::record::Records;
use crate::text::size;

/// The maximum number of anchors of a record, and of all records of a list together.
const MAX_ANCHORS: usize = 2048;
const MAX_ANCHORS_OF_LIST: usize = 200_000;
/// The number of places on each side of an anchor that a leaf considers.
const NEAR: usize = 5;
/// The maximum number of places of a leaf that are scored.
const MAX_SCORED: usize = 128;
/// The maximum number of leaves of an object whose columns attract its other leaves.
const MAX_BELOW: usize = 100;
/// The nearness below which a place does not belong to a record.
const FAR: f64 = 0.25;
/// The advantage of a place on the side of the anchor on which the order of the members expects it.
const IN_ORDER: f64 = 0.15;
/// The advantage of a window for each of its leaves in the segment of its anchor: a record stands where most of its leaves stand together.
const TOGETHER: f64 = 1.0;
/// The penalty for a place within that of another leaf of the record, such as the number in its identifier.
const INSIDE: f64 = 1.5;
/// The label from which on a word such as `yes` counts as the value of a leaf.
const NAMED: f64 = 0.5;

/// Chooses a place for each leaf that has places.
pub(crate) fn choose(index: &Index<'_>, records: &mut Records) {
    let mut choice =
        Choice { index, around: Surroundings::new(index), owners: HashMap::new(), labels: HashMap::new() };
    for _ in 0..2 {
        for list in 0..records.lists.len() {
            choice.list(records, list);
        }
        for record in records.objects.clone().into_iter().rev() {
            choice.object(records, record);
        }
    }
}

struct Choice<'i, 't> {
    index: &'i Index<'t>,
    around: Surroundings<'i, 't>,
    /// The leaves that chose a place with this token.
    owners: HashMap<u32, Vec<usize>>,
    /// The label score of each leaf and place.
    labels: HashMap<(usize, usize), f64>,
}

impl Choice<'_, '_> {
    /// Chooses the places of the items of a list.
    fn list(&mut self, records: &mut Records, list: usize) {
        let items = records.lists.get(list).cloned().unwrap_or_default();
        items.iter().for_each(|item| self.release(records, *item));
        let max = (MAX_ANCHORS_OF_LIST / items.len().max(1)).clamp(16, MAX_ANCHORS);
        let windows: Vec<Vec<Window>> = items.iter().map(|item| self.windows(records, *item, max)).collect();
        for (item, window) in items.iter().zip(place(&windows)) {
            if let Some(record) = records.records.get_mut(*item) {
                record.anchor = window.map(|window| window.anchor);
            }
        }
        let mut columns = HashMap::new();
        for pass in 0..2 {
            for item in &items {
                self.release(records, *item);
                self.leaves(records, *item, Some(&columns));
            }
            if pass == 0 {
                columns = self.columns(records, &items);
                // A list of texts has no columns.
                if columns.is_empty() {
                    break;
                }
            }
        }
    }

    /// Chooses the places of the leaves of an object outside of lists.
    fn object(&mut self, records: &mut Records, record: usize) {
        self.release(records, record);
        let anchor = match record {
            0 => None,
            _ => {
                let windows = self.windows(records, record, MAX_ANCHORS).into_iter();
                windows
                    .reduce(|best, it| if it.score > best.score { it } else { best })
                    .map(|best| best.anchor)
            }
        };
        if let Some(record) = records.records.get_mut(record) {
            record.anchor = anchor;
        }
        self.leaves(records, record, None);
    }

    /// Returns the windows in which a record may stand, in the order of the input: around each place of its two rarest leaves, with the
    /// nearest places of its other leaves.
    fn windows(&mut self, records: &Records, record: usize, max: usize) -> Vec<Window> {
        let Some(record) = records.records.get(record) else { return Vec::new() };
        let mut leaves: Vec<usize> = record.leaves.clone();
        leaves.retain(|leaf| records.leaves.get(*leaf).is_some_and(|leaf| !leaf.places.is_empty()));
        let count = |leaf: &usize| records.leaves.get(*leaf).map_or(0, |leaf| leaf.places.len());
        leaves.sort_by_key(count);
        let seeds = leaves.iter().take(2).filter_map(|leaf| Some((*leaf, records.leaves.get(*leaf)?)));
        let mut seeds: Vec<(usize, usize)> = seeds
            .flat_map(|(number, leaf)| {
                leaf.places.iter().take(max).map(move |it| (size(it.range.first), number))
            })
            .collect();
        seeds.sort_unstable();
        seeds.dedup_by_key(|(token, _)| *token);
        let parent =
            record.parent.and_then(|parent| records.records.get(parent)).and_then(|parent| parent.anchor);
        let with_labels = seeds.len() <= MAX_SCORED;
        let mut windows: Vec<Window> = Vec::with_capacity(seeds.len());
        for (token, seed) in seeds {
            let score = parent.map_or(0.0, |parent| 0.5 * self.nearness(parent, token));
            let mut together: Vec<Place> = Vec::new();
            let mut window = Window { anchor: token, start: token, end: token, score };
            for leaf in &leaves {
                let Some(of_leaf) = records.leaves.get(*leaf) else { continue };
                let weight = 1.0 / (1.0 + (of_leaf.places.len() as f64).ln());
                let (mut best, mut at) = (0.0, None);
                let nearest = near(&of_leaf.places, token, 2);
                for number in nearest.iter().copied() {
                    let Some(place) = of_leaf.places.get(number) else { continue };
                    let (first, last) = (size(place.range.first), size(place.range.last));
                    let named = if with_labels { 0.3 * self.label(records, *leaf, number) } else { 0.0 };
                    let nearness = self.nearness(token, place.nearest(token));
                    // Records are often written in the order of their members.
                    let in_order = first == token || (first > token) == (*leaf > seed);
                    let fit = nearness * (place.quality + named + if in_order { IN_ORDER } else { 0.0 })
                        - 0.5 * self.taken(records, *leaf, place);
                    if fit > best {
                        (best, at) = (fit, Some((first, last)).filter(|_| nearness > FAR));
                    }
                }
                window.score += weight * best;
                let mut nearest = nearest.into_iter().filter_map(|number| of_leaf.places.get(number));
                let beside = nearest.find(|place| {
                    self.segment(token) == self.segment(size(place.range.first))
                        && !together.iter().any(|other| place.meets(other))
                });
                together.extend(beside);
                if let Some((first, last)) = at {
                    (window.start, window.end) = (window.start.min(first), window.end.max(last));
                }
            }
            window.score += TOGETHER * together.iter().map(|place| place.quality).sum::<f64>();
            windows.push(window);
        }
        windows.sort_by(|one, other| {
            let key = |it: &Window| (it.start, it.end);
            key(one).cmp(&key(other)).then(other.score.total_cmp(&one.score))
        });
        windows.dedup_by_key(|window| (window.start, window.end));
        windows
    }

    /// Chooses the places of the leaves of a record near its anchor, in the columns of the members of a list or, in an object, below each other.
    fn leaves(&mut self, records: &mut Records, record: usize, columns: Option<&HashMap<String, Column>>) {
        let Some((leaves, anchor)) = records.records.get(record).map(|it| (it.leaves.clone(), it.anchor))
        else {
            return;
        };
        // Equal values compete for the same places.
        let mut equal: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<*const Place, usize> = HashMap::new();
        for leaf in leaves {
            let Some(places) = records.leaves.get(leaf).map(|leaf| &leaf.places).filter(|it| !it.is_empty())
            else {
                continue;
            };
            let next = equal.len();
            match equal.get_mut(*known.entry(places.as_ptr()).or_insert(next)) {
                Some(group) => group.push(leaf),
                None => equal.push(vec![leaf]),
            }
        }
        // Values with one place are certain; the others see what these have taken.
        equal.sort_by_key(|group| {
            group.first().and_then(|leaf| records.leaves.get(*leaf)).map_or(0, |leaf| leaf.places.len())
        });
        let mut below = Vec::new();
        for group in equal {
            let expected = |member: &str| match columns {
                Some(columns) => columns.get(member).map_or(&[][..], std::slice::from_ref),
                None => below.as_slice(),
            };
            self.group(records, &group, anchor, &expected);
            if columns.is_none() && anchor.is_some() && below.len() < MAX_BELOW {
                below.extend(group.iter().filter_map(|leaf| {
                    let leaf = records.leaves.get(*leaf)?;
                    self.around.column(leaf.places.get(leaf.chosen?)?)
                }));
            }
        }
    }

    /// Chooses the places of leaves with the same value.
    fn group<'c>(
        &mut self,
        records: &mut Records,
        group: &[usize],
        anchor: Option<usize>,
        expected: &dyn Fn(&str) -> &'c [Column],
    ) {
        let candidates = self.candidates(records, group, anchor);
        let mut weights = vec![0.0; group.len() * candidates.len()];
        for (row, leaf) in group.iter().enumerate() {
            for (column, number) in candidates.iter().enumerate() {
                let rank = (row as f64 - column as f64).abs().min(10.0);
                if let Some(weight) = weights.get_mut(row * candidates.len() + column) {
                    *weight = self.weight(records, *leaf, *number, anchor, expected) - 0.03 * rank;
                }
            }
        }
        let weight = |row: usize, column: usize| {
            weights.get(row * candidates.len() + column).copied().unwrap_or_default()
        };
        let assigned = assign(group.len(), candidates.len(), weight);
        for (row, (leaf, column)) in group.iter().zip(assigned).enumerate() {
            // More leaves than places: a place serves several.
            let best = (0..candidates.len()).filter(|column| weight(row, *column) > 0.0);
            let best = column.or_else(|| {
                best.reduce(|best, it| if weight(row, it) > weight(row, best) { it } else { best })
            });
            let chosen = best.and_then(|column| candidates.get(column)).copied();
            let range = records.leaves.get_mut(*leaf).and_then(|leaf| {
                leaf.chosen = chosen;
                leaf.places.get(chosen?).map(|place| place.range)
            });
            if let Some(range) = range {
                (range.first..=range.last)
                    .take(16)
                    .for_each(|token| self.owners.entry(token).or_default().push(*leaf));
            }
        }
    }

    /// Returns the numbers of the places that leaves with the same value consider.
    fn candidates(&self, records: &Records, group: &[usize], anchor: Option<usize>) -> Vec<usize> {
        let Some(first) = group.first().and_then(|leaf| records.leaves.get(*leaf)) else { return Vec::new() };
        let places = &first.places;
        if places.len() <= 2 * NEAR + group.len() {
            return (0..places.len()).collect();
        }
        if let Some(anchor) = anchor {
            return near(places, anchor, NEAR + group.len());
        }
        if places.len() <= MAX_SCORED {
            return (0..places.len()).collect();
        }
        // Of very many places, the first ones and those next to words of the names.
        let mut numbers: Vec<usize> = (0..MAX_SCORED / 2).collect();
        for leaf in group.iter().filter_map(|leaf| records.leaves.get(*leaf)) {
            for word in leaf.label.names.iter().flatten() {
                let found = self.index.occurrences(word);
                let step = (found.len() / MAX_SCORED).max(1);
                numbers.extend(found.step_by(step).flat_map(|token| near(places, token, 1)));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.truncate(4 * MAX_SCORED);
        numbers
    }

    /// Returns how well a place fits a leaf.
    fn weight<'c>(
        &mut self,
        records: &Records,
        leaf: usize,
        number: usize,
        anchor: Option<usize>,
        expected: &dyn Fn(&str) -> &'c [Column],
    ) -> f64 {
        let Some((of_leaf, place)) =
            records.leaves.get(leaf).and_then(|it| Some((it, it.places.get(number)?)))
        else {
            return 0.0;
        };
        let alone = of_leaf.places.len() == 1 && !place.needs_label;
        let named = if alone { 0.0 } else { self.label(records, leaf, number) };
        if place.needs_label && named < NAMED {
            return 0.0;
        }
        let near = match anchor {
            Some(anchor) => 3.0 * self.nearness(anchor, place.nearest(anchor)),
            None => 0.3 / (1.0 + number as f64),
        };
        let expected = expected(&of_leaf.member);
        let own = if expected.is_empty() { None } else { self.around.column(place) };
        let column = expected.iter().map(|expected| fit(*expected, own)).fold(0.0, f64::max);
        let slice = self.index.slice(place.range.start, place.range.end);
        let notation = match &of_leaf.written {
            written if slice == written => 0.15,
            // 2.00 rather than 2 for 2.0
            written if written.contains('.') == slice.contains(['.', ',']) => 0.1,
            _ => 0.0,
        };
        // Every place of a value is better than none.
        3.0 + notation + place.quality + near + 1.2 * named + 0.8 * column - self.taken(records, leaf, place)
    }

    fn label(&mut self, records: &Records, leaf: usize, number: usize) -> f64 {
        if let Some(known) = self.labels.get(&(leaf, number)) {
            return *known;
        }
        let of_leaf = records.leaves.get(leaf);
        let score = of_leaf
            .and_then(|it| Some(self.around.score(&it.label, it.places.get(number)?)))
            .unwrap_or_default();
        self.labels.insert((leaf, number), score);
        score
    }

    fn segment(&self, token: usize) -> u32 {
        self.index.token(token).map_or(0, |token| token.segment)
    }

    /// Returns how near two tokens are: 1 for the same one, less in other lines and sentences.
    fn nearness(&self, one: usize, other: usize) -> f64 {
        let tokens = one.abs_diff(other) as f64;
        match self.segment(one).abs_diff(self.segment(other)) {
            0 => 1.0 / (1.0 + tokens / 60.0),
            segments => 0.6 / (1.0 + tokens / 60.0 + 0.4 * f64::from(segments)),
        }
    }

    /// Returns the penalty for a place that other leaves have, wholly or within a longer one.
    fn taken(&self, records: &Records, leaf: usize, place: &Place) -> f64 {
        let record = records.leaves.get(leaf).map(|leaf| leaf.record);
        let mut penalty: f64 = 0.0;
        let owners =
            (place.range.first..=place.range.last).take(16).filter_map(|token| self.owners.get(&token));
        for owner in owners.flatten().filter(|owner| **owner != leaf) {
            let Some(other) = records.leaves.get(*owner) else { continue };
            let Some(taken) = other.chosen.and_then(|chosen| other.places.get(chosen)) else { continue };
            let same = taken.range == place.range;
            let within = taken.range.start <= place.range.start && place.range.end <= taken.range.end;
            penalty = penalty.max(match within {
                true if same => 1.0,
                true if Some(other.record) == record => INSIDE,
                true => 0.5,
                false => 0.0,
            });
        }
        penalty
    }

    /// Forgets the choices of a record.
    fn release(&mut self, records: &mut Records, record: usize) {
        let leaves = records.records.get(record).map(|record| record.leaves.clone()).unwrap_or_default();
        for number in leaves {
            let Some(leaf) = records.leaves.get_mut(number) else { continue };
            let Some(place) = leaf.chosen.take().and_then(|chosen| leaf.places.get(chosen)) else { continue };
            for token in (place.range.first..=place.range.last).take(16) {
                if let Some(owners) = self.owners.get_mut(&token) {
                    owners.retain(|owner| *owner != number);
                }
            }
        }
    }

    /// Returns the most frequent column of each member in the rows of a list. A member needs the same column in two rows.
    fn columns(&self, records: &Records, items: &[usize]) -> HashMap<String, Column> {
        let mut of_members: HashMap<&str, Vec<Column>> = HashMap::new();
        for leaf in
            items.iter().filter_map(|item| records.records.get(*item)).flat_map(|record| &record.leaves)
        {
            let Some(leaf) = records.leaves.get(*leaf) else { continue };
            let place = leaf.chosen.and_then(|chosen| leaf.places.get(chosen));
            if let Some(column) = place.and_then(|place| self.around.column(place)) {
                of_members.entry(&leaf.member).or_default().push(column);
            }
        }
        let is_record = |member: &str| !member.ends_with('*');
        let common =
            of_members.into_iter().filter(|(member, _)| is_record(member)).filter_map(|(member, columns)| {
                let votes = |one: &Column| {
                    columns.iter().take(200).filter(|other| fit(*one, Some(**other)) > 0.9).count()
                };
                let best = columns
                    .iter()
                    .take(200)
                    .map(|column| (votes(column), column))
                    .reduce(|best, it| if it.0 > best.0 { it } else { best });
                best.filter(|(votes, _)| *votes >= 2).map(|(_, column)| (member.to_owned(), *column))
            });
        common.collect()
    }
}

/// Returns how well a column fits another one: 1 for the same cell, or the same left or right border.
fn fit(one: Column, other: Option<Column>) -> f64 {
    match (one, other) {
        (Column::Cell(one), Some(Column::Cell(other))) => f64::from(u8::from(one == other)),
        (Column::At(from, to), Some(Column::At(other_from, other_to))) => {
            let distance = from.abs_diff(other_from).min(to.abs_diff(other_to)) as f64;
            1.0 / (1.0 + distance * distance / 16.0)
        }
        _ => 0.0,
    }
}

/// Returns the numbers of up to `count` places before a token and as many from it on.
fn near(places: &[Place], token: usize, count: usize) -> Vec<usize> {
    let at = places.partition_point(|place| size(place.range.first) < token);
    (at.saturating_sub(count)..(at + count).min(places.len())).collect()
}
