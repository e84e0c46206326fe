//! Places in an input, and the numbers there.

use std::hash::{BuildHasher as _, Hash};

use foldhash::quality::FixedState;

use crate::decimal::Decimal;

/// Tokens in sequence that may be a value: those from `first` to `last`, and the bytes of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A number in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numeral {
    hash: u64,
    pub(crate) value: Decimal,
    pub(crate) range: Range,
}

impl Numeral {
    pub(crate) fn new(value: Decimal, range: Range) -> Self {
        Self { hash: hash(&value), value, range }
    }

    pub(crate) fn sort(numbers: &mut [Self]) {
        numbers.sort_unstable_by_key(|number| (number.hash, number.range.start, number.range.end));
    }

    /// Returns the places of a value among sorted numbers.
    pub(crate) fn places(numbers: &[Self], value: Decimal) -> impl Iterator<Item = Range> + '_ {
        let hash = hash(&value);
        let start = numbers.partition_point(|number| number.hash < hash);
        let equal = numbers.get(start..).unwrap_or_default().iter().take_while(move |it| it.hash == hash);
        equal.filter(move |number| number.value == value).map(|number| number.range)
    }
}

pub(crate) fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    FixedState::with_seed(0).hash_one(value)
}
