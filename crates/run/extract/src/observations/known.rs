//! The observations of a store, found by target and schema without a search through all of them.

use std::collections::HashMap;

use formwork_core::{SamplingParameter, Time};

/// The maximum number of observations; the oldest is removed first.
const MAX_KNOWN: usize = 256;

/// An observation about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The target rejects the schema with this digest in this dialect.
    Refuses { schema: String, dialect: String },
    /// The target ignores schemas.
    Ignores,
    /// The target runs away with the schema that has this digest.
    RunsAway { schema: String },
    /// The target rejects this sampling parameter.
    RefusesSampling(SamplingParameter),
}

impl What {
    /// Returns the digest of the schema that the observation is about; empty if it is about all schemas.
    fn schema(&self) -> &str {
        match self {
            Self::Refuses { schema, .. } | Self::RunsAway { schema } => schema,
            Self::Ignores | Self::RefusesSampling(_) => "",
        }
    }
}

/// The observations, at most [`MAX_KNOWN`].
#[derive(Debug, Default)]
pub(super) struct Known {
    by_target: HashMap<String, HashMap<String, Vec<Entry>>>,
    len: usize,
    /// The number of observations that were ever added.
    added: u64,
}

#[derive(Debug)]
struct Entry {
    what: What,
    since: Time,
    nth: u64,
}

impl Known {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        (self.len, self.by_target) = (0, HashMap::new());
    }

    /// Returns the observations about a target that apply to the schema with this digest, each with its time.
    pub(super) fn of<'k>(
        &'k self,
        target: &str,
        schema: &str,
    ) -> impl Iterator<Item = (&'k What, Time)> + use<'k> {
        let of_target = self.by_target.get(target);
        let of_schema = |schema: &str| of_target.and_then(|known| known.get(schema)).into_iter().flatten();
        of_schema("").chain(of_schema(schema)).map(|entry| (&entry.what, entry.since))
    }

    /// Adds an observation in the place of the same earlier one. The oldest one makes room.
    pub(super) fn add(&mut self, target: String, what: What, since: Time) {
        self.remove(&target, &what);
        if self.len >= MAX_KNOWN {
            self.remove_oldest();
        }
        let (nth, schema) = (self.added, what.schema().to_owned());
        let entries = self.by_target.entry(target).or_default().entry(schema).or_default();
        entries.push(Entry { what, since, nth });
        (self.len, self.added) = (self.len + 1, self.added + 1);
    }

    /// Removes an observation, if it is there.
    pub(super) fn remove(&mut self, target: &str, what: &What) {
        let Some(of_target) = self.by_target.get_mut(target) else { return };
        let Some(entries) = of_target.get_mut(what.schema()) else { return };
        let Some(at) = entries.iter().position(|entry| entry.what == *what) else { return };
        entries.remove(at);
        self.len -= 1;
        if entries.is_empty() {
            of_target.remove(what.schema());
        }
        if of_target.is_empty() {
            self.by_target.remove(target);
        }
    }

    fn remove_oldest(&mut self) {
        let all = self.by_target.iter().flat_map(|(target, known)| {
            known.values().flatten().map(move |entry| (entry.nth, target, &entry.what))
        });
        let oldest = all.min_by_key(|(nth, ..)| *nth);
        if let Some((target, what)) = oldest.map(|(_, target, what)| (target.clone(), what.clone())) {
            self.remove(&target, &what);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Known {
        fn all(&self) -> Vec<(&str, &What, Time)> {
            let mut all: Vec<_> = self
                .by_target
                .iter()
                .flat_map(|(target, known)| known.values().flatten().map(move |entry| (target, entry)))
                .collect();
            all.sort_by_key(|(_, entry)| entry.nth);
            all.into_iter().map(|(target, entry)| (target.as_str(), &entry.what, entry.since)).collect()
        }
    }

    fn what() -> impl Strategy<Value = What> {
        let digest = (0..200_u32).prop_map(|number| number.to_string());
        prop_oneof![
            8 => digest.clone().prop_map(|schema| What::RunsAway { schema }),
            8 => (digest, "[ab]").prop_map(|(schema, dialect)| What::Refuses { schema, dialect }),
            1 => Just(What::Ignores),
            1 => Just(What::RefusesSampling(SamplingParameter::Seed)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The index answers as a search through a list would.
        #[test]
        fn the_index_knows_what_a_list_would_know(
            changes in prop::collection::vec(("[xyz]", what(), 0_u8..8), 0..700),
        ) {
            let (mut known, mut list) = (Known::default(), Vec::<(String, What, Time)>::new());
            for (nth, (target, what, kind)) in changes.into_iter().enumerate() {
                let now = Time(nth as u64);
                list.retain(|(other, old, _)| !(*other == target && *old == what));
                if kind == 0 {
                    known.remove(&target, &what);
                } else {
                    if list.len() >= MAX_KNOWN {
                        list.remove(0);
                    }
                    list.push((target.clone(), what.clone(), now));
                    known.add(target, what, now);
                }
                prop_assert_eq!(known.len(), list.len());
            }
            let listed: Vec<_> = list.iter().map(|(target, what, since)| (target.as_str(), what, *since)).collect();
            prop_assert_eq!(known.all(), listed.clone());
            for target in ["x", "y", "z"] {
                for schema in ["0", "7", "199"] {
                    let mut found: Vec<_> = known.of(target, schema).collect();
                    found.sort_by_key(|(_, since)| *since);
                    let expected: Vec<_> = listed
                        .iter()
                        .filter(|(of, what, _)| *of == target && ["", schema].contains(&what.schema()))
                        .map(|(_, what, since)| (*what, *since))
                        .collect();
                    prop_assert_eq!(found, expected);
                }
            }
            known.clear();
            prop_assert!(known.is_empty() && known.all().is_empty());
        }
    }
}
