//! Equal violations at neighbouring places, as one line of a message.

use std::collections::HashMap;

use formwork_json::{JsonPath, Segment};

use crate::Violation;
use crate::violation::write_place;

/// Violations of one rule with one expectation, at places that differ in one index of a list, without gaps.
pub(crate) struct Group {
    /// The first violation. Its found value is empty if the others have different ones.
    pub(crate) violation: Violation,
    /// The position of the index in the path, and the last index; `None` for a single place.
    range: Option<(usize, usize)>,
    /// The number of violations.
    pub(crate) count: usize,
}

/// Groups violations, in the order of the first of each group.
pub(crate) fn grouped(violations: &[Violation]) -> Vec<Group> {
    // The key of a group is its first path without one index; a group of one has a key for each of its indices.
    let mut open: HashMap<(JsonPath, usize, &str, &str), usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for violation in violations {
        let holes: Vec<(usize, usize)> = indices(&violation.path).collect();
        let key =
            |hole: usize| (without(&violation.path, hole), hole, &*violation.rule, &*violation.expected);
        let joined = holes.iter().find_map(|&(hole, index)| {
            let group = groups.get_mut(*open.get(&key(hole))?)?;
            let first = indices(&group.violation.path).find(|(at, _)| *at == hole)?.1;
            let last = match group.range {
                Some((at, last)) if at == hole => last,
                Some(_) => return None,
                None => first,
            };
            if last.checked_add(1) != Some(index) {
                return None;
            }
            group.range = Some((hole, index));
            group.count += 1;
            if group.violation.found != violation.found {
                group.violation.found.clear();
            }
            Some(())
        });
        if joined.is_none() {
            for (hole, _) in holes {
                // A later group takes the place of an earlier one, which has a gap before this violation.
                open.insert(key(hole), groups.len());
            }
            groups.push(Group { violation: violation.clone(), range: None, count: 1 });
        }
    }
    groups
}

impl Group {
    /// Returns a group of one.
    pub(crate) fn single(violation: &Violation) -> Self {
        Self { violation: violation.clone(), range: None, count: 1 }
    }

    /// Returns the places: `$.items[0-299].price`.
    pub(crate) fn place(&self) -> String {
        let Some((hole, last)) = self.range else { return self.violation.place() };
        let (before, after) = self.violation.path.segments().split_at(hole + 1);
        let mut text = String::new();
        write_place(&before.iter().cloned().collect(), &mut text);
        if text.ends_with(']') {
            text.pop();
            let mut rest = String::new();
            write_place(&after.iter().cloned().collect(), &mut rest);
            text.push_str(&format!("-{last}]{}", rest.trim_start_matches('$')));
        }
        text
    }
}

/// Returns the positions and values of the indices of a path, the last one first.
fn indices(path: &JsonPath) -> impl Iterator<Item = (usize, usize)> + '_ {
    path.segments().iter().enumerate().rev().filter_map(|(at, segment)| match segment {
        Segment::Index(index) => Some((at, *index)),
        Segment::Key(_) => None,
    })
}

fn without(path: &JsonPath, hole: usize) -> JsonPath {
    let other = path.segments().iter().enumerate();
    other.map(|(at, segment)| if at == hole { Segment::Index(0) } else { segment.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stage;
    use proptest::prelude::*;

    fn at(path: &str, found: &str) -> Violation {
        let path = path.parse().unwrap();
        Violation::new(path, "type", Stage::Schema).with_expected("number").with_found(found)
    }

    fn places(violations: &[Violation]) -> Vec<(String, usize)> {
        grouped(violations).iter().map(|group| (group.place(), group.count)).collect()
    }

    #[test]
    fn neighbours_with_equal_errors_are_one_line() {
        let items: Vec<Violation> = (0..300)
            .flat_map(|n| ["price", "name"].map(|name| at(&format!("$.items[{n}].{name}"), "string")))
            .collect();
        let expected = [("$.items[0-299].price".to_owned(), 300), ("$.items[0-299].name".to_owned(), 300)];
        assert_eq!(places(&items), expected);
        assert_eq!(grouped(&items)[0].violation.found, "string");

        let gap = [at("$[0]", "1"), at("$[1]", "2"), at("$[3]", "3"), at("$[4]", "3"), at("$.a[4]", "3")];
        let expected = [("$[0-1]", 2), ("$[3-4]", 2), ("$.a[4]", 1)];
        assert_eq!(places(&gap), expected.map(|(place, count)| (place.to_owned(), count)));
        assert_eq!(grouped(&gap)[0].violation.found, "", "different values are not one");
        let matrix = [at("$[0][0]", ""), at("$[0][1]", ""), at("$[1][0]", ""), at("$[1][1]", "")];
        assert_eq!(places(&matrix), [("$[0][0-1]".to_owned(), 2), ("$[1][0-1]".to_owned(), 2)]);
        let other = [at("$[0]", ""), Violation { rule: "enum".into(), ..at("$[1]", "") }];
        assert_eq!(places(&other).len(), 2, "another rule is another line");
    }

    proptest! {
        /// The ranges of all lines contain exactly the places of all violations, in any order and with any gaps.
        #[test]
        fn lines_cover_every_violation_once(
            indices in prop::collection::vec((0_usize..6, 0_usize..6, 0_usize..2), 0..60)
        ) {
            let violations: Vec<Violation> =
                indices.iter().map(|(a, b, rule)| Violation {
                    rule: ["type", "enum"][*rule].into(), ..at(&format!("$[{a}].x[{b}]"), "")
                }).collect();
            let groups = grouped(&violations);
            let mut covered: Vec<(JsonPath, String)> = Vec::new();
            for group in &groups {
                let paths: Vec<JsonPath> = match group.range {
                    None => vec![group.violation.path.clone()],
                    Some((hole, last)) => {
                        let first = super::indices(&group.violation.path).find(|(at, _)| *at == hole).unwrap().1;
                        let at = |index: usize| {
                            let segments = group.violation.path.segments().iter().enumerate();
                            segments.map(|(at, one)| if at == hole { Segment::Index(index) } else { one.clone() }).collect()
                        };
                        (first..=last).map(at).collect()
                    }
                };
                prop_assert_eq!(paths.len(), group.count);
                covered.extend(paths.into_iter().map(|path| (path, group.violation.rule.clone())));
            }
            let mut all: Vec<(JsonPath, String)> =
                violations.iter().map(|one| (one.path.clone(), one.rule.clone())).collect();
            let sort = |list: &mut Vec<(JsonPath, String)>| list.sort_by_key(|(path, rule)| (path.to_string(), rule.clone()));
            sort(&mut all);
            sort(&mut covered);
            prop_assert_eq!(covered, all);
        }
    }
}
