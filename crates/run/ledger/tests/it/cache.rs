use std::collections::HashMap;
use std::time::Duration;

use formwork_core::Time;
use formwork_ledger::{Ledger, NewKey, Settings};
use proptest::prelude::*;

use crate::given::{NOW, ledger};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_cached_is_the_last_value_of_its_key_until_it_expires(
        puts in prop::collection::vec((0_usize..3, 0_u8..6, ".{0,40}", 1_u64..2000), 1..40),
        later in 0_u64..3000,
    ) {
        let ledger = ledger();
        let mut keys = vec![None];
        for name in ["a", "b"] {
            keys.push(Some(ledger.add_key(NewKey::new(name), NOW).unwrap().0.id));
        }
        let mut model = HashMap::new();
        for (key, digest, value, ttl) in puts {
            ledger.cache_put(keys[key], format!("d{digest}"), value.clone(), Duration::from_millis(ttl), NOW);
            model.insert((key, digest), (value, ttl));
        }
        ledger.flush_blocking().unwrap();
        for (key, id) in keys.iter().enumerate() {
            for digest in 0..6 {
                let expected = model.get(&(key, digest)).filter(|(_, ttl)| *ttl > later).map(|(value, _)| value.clone());
                prop_assert_eq!(ledger.cache_get(*id, &format!("d{digest}"), Time(NOW.0 + later)).unwrap(), expected);
            }
        }
    }
}

#[test]
fn the_oldest_values_make_room_for_new_ones() {
    const MAX: u64 = 100_000;
    let ledger = Ledger::in_memory(Settings { max_cache_bytes: MAX, ..Settings::default() }).unwrap();
    let hour = Duration::from_secs(3600);
    for nth in 0..400_u64 {
        ledger.cache_put(None, format!("d{nth}"), "x".repeat(1000), hour, Time(NOW.0 + nth));
        if nth % 7 == 0 {
            ledger.flush_blocking().unwrap();
        }
    }
    ledger.flush_blocking().unwrap();
    let is_there = |nth: u64| ledger.cache_get(None, &format!("d{nth}"), NOW).unwrap().is_some();
    let kept: Vec<_> = (0..400).filter(|&nth| is_there(nth)).collect();
    assert!((80..=100).contains(&kept.len()), "{} values are kept", kept.len());
    assert_eq!(kept, (400 - kept.len() as u64..400).collect::<Vec<_>>(), "the newest are kept");
    // An entry larger than the whole cache is not stored, and does not evict other entries.
    ledger.cache_put(None, "huge", "x".repeat(200_000), hour, NOW);
    ledger.flush_blocking().unwrap();
    assert!(ledger.cache_get(None, "huge", NOW).unwrap().is_none() && is_there(399));
}
