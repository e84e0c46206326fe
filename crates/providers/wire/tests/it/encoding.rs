use formwork_wire::folded;

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
