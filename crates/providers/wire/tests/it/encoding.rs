use std::collections::{HashMap, HashSet};

use formwork_wire::{folded, safe_id};
use proptest::prelude::*;

#[test]
fn seeds_fit_and_differ() {
    const MAX_SEED: u64 = i32::MAX as u64;

    assert_eq!((folded(0), folded(7), folded(MAX_SEED)), (0, 7, MAX_SEED));
    let large = [u64::MAX, u64::MAX - 1, 1 << 31, 1 << 40, (1 << 40) + 1].map(folded);
    assert!(large.iter().all(|seed| *seed <= MAX_SEED));
    for (at, seed) in large.iter().enumerate() {
        assert!(!large[..at].contains(seed), "{large:?}");
    }
}

proptest! {
    #[test]
    fn identifiers_are_valid_and_distinct_and_valid_ones_stay(
        ids in prop::collection::hash_set(prop_oneof!["[ab_.:-]{0,3}", "[a-b.é]{60,70}", ".*"], 0..60),
    ) {
        let is_valid = |id: &str| {
            let is_safe = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
            (1..=64).contains(&id.len()) && id.bytes().all(is_safe)
        };
        let written: HashMap<&str, String> = ids.iter().map(|id| (&**id, safe_id(id).into_owned())).collect();
        for (id, safe) in &written {
            prop_assert!(is_valid(safe), "{id:?} {safe}");
            prop_assert!(!is_valid(id) || id == safe, "{id:?} {safe}");
        }
        prop_assert_eq!(written.values().collect::<HashSet<_>>().len(), ids.len());
    }
}
