//! The order of the records of a list.

use std::collections::BTreeMap;

/// The cost of a window before that of the record before it, and of one that overlaps it.
const OUT_OF_ORDER: f64 = 0.8;
const OVERLAP: f64 = 3.0;

/// The tokens of the input in which a record may stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// The token from which the leaves of the record are searched.
    pub(crate) anchor: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) score: f64,
}

/// Chooses one window for each record of a list, in the order of the records or, if it fits better, in the opposite order: the newest row may be
/// the first or the last one.
pub(crate) fn place(windows: &[Vec<Window>]) -> Vec<Option<Window>> {
    let (sum, mut chosen) = in_order(windows.iter());
    let (descending, mut reversed) = in_order(windows.iter().rev());
    // The order of the text is the usual one.
    if descending - OUT_OF_ORDER / 2.0 > sum {
        reversed.reverse();
        chosen = reversed;
    }
    apart(windows, &chosen)
}

/// Returns the chosen windows. Of records whose windows overlap, the later ones get their best window that is free: records out of order may
/// have chosen the same one.
fn apart(windows: &[Vec<Window>], chosen: &[Option<usize>]) -> Vec<Option<Window>> {
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let is_free = |taken: &BTreeMap<usize, usize>, window: &Window| {
        taken.range(..=window.end).next_back().is_none_or(|(_, end)| *end < window.start)
    };
    let mut found: Vec<Option<Window>> = Vec::new();
    let mut clashes = Vec::new();
    for (number, (own, chosen)) in windows.iter().zip(chosen).enumerate() {
        let window = chosen.and_then(|chosen| own.get(chosen)).copied();
        match window {
            Some(window) if is_free(&taken, &window) => _ = taken.insert(window.start, window.end),
            Some(window) => clashes.push((number, own, window)),
            None => {}
        }
        found.push(window);
    }
    for (number, own, window) in clashes {
        let free = own.iter().filter(|it| it.score > window.score - OVERLAP && is_free(&taken, it));
        let best = free.reduce(|best, it| if it.score > best.score { it } else { best });
        if let Some((best, slot)) = best.zip(found.get_mut(number)) {
            taken.insert(best.start, best.end);
            *slot = Some(*best);
        }
    }
    found
}

/// Chooses one window for each record, so that the sum of the scores is as large as possible, and returns the sum and their numbers. A
/// window before the one of the record before it costs, and an overlap costs more. Records without windows are skipped.
fn in_order<'w>(windows: impl Iterator<Item = &'w Vec<Window>>) -> (f64, Vec<Option<usize>>) {
    let windows: Vec<_> = windows.collect();
    // For each record, the best sum of each window, and the window of the record before it.
    let mut sums: Vec<Vec<(f64, Option<usize>)>> = Vec::new();
    let mut previous: Option<usize> = None;
    for (number, own) in windows.iter().enumerate() {
        let before = previous.and_then(|before| Some((windows.get(before)?, sums.get(before)?)));
        let of_own = match before {
            None => own.iter().map(|window| (window.score, None)).collect(),
            Some((before, sums)) => {
                let (mut by_end, mut best_from): (Vec<usize>, Vec<usize>) =
                    ((0..before.len()).collect(), Vec::new());
                let end = |at: &usize| before.get(*at).map_or(0, |window| window.end);
                let sum = |at: usize| sums.get(at).map_or(f64::NEG_INFINITY, |sum| sum.0);
                by_end.sort_by_key(end);
                // The best window of those that end first, and of those from each on.
                let best_until: Vec<usize> = by_end
                    .iter()
                    .scan(None, |best: &mut Option<usize>, at| {
                        *best = best.filter(|best| sum(*best) >= sum(*at)).or(Some(*at));
                        *best
                    })
                    .collect();
                for at in (0..before.len()).rev() {
                    let best = best_from.last().copied().filter(|best| sum(*best) > sum(at));
                    best_from.push(best.unwrap_or(at));
                }
                best_from.reverse();
                let best = |window: &Window| {
                    let earlier = by_end.partition_point(|at| end(at) < window.start).checked_sub(1);
                    let later = before.partition_point(|it| it.start <= window.end);
                    let options = [
                        earlier.and_then(|at| best_until.get(at)).map(|at| (sum(*at), *at)),
                        best_from.get(later).map(|at| (sum(*at) - OUT_OF_ORDER, *at)),
                        best_from.first().map(|at| (sum(*at) - OVERLAP, *at)),
                    ];
                    options.into_iter().flatten().reduce(|best, it| if it.0 > best.0 { it } else { best })
                };
                own.iter()
                    .map(|window| {
                        best(window)
                            .map_or((window.score, None), |best| (window.score + best.0, Some(best.1)))
                    })
                    .collect()
            }
        };
        sums.push(of_own);
        if !own.is_empty() {
            previous = Some(number);
        }
    }
    let best = |sums: &Vec<(f64, Option<usize>)>| {
        let sums = sums.iter().enumerate().map(|(at, sum)| (sum.0, at));
        sums.reduce(|best, it| if it.0 > best.0 { it } else { best })
    };
    let last = previous.and_then(|last| best(sums.get(last)?));
    let (mut chosen, mut at) = (vec![None; windows.len()], last.map(|last| last.1));
    for (slot, sums) in chosen.iter_mut().zip(&sums).rev().filter(|(_, sums)| !sums.is_empty()) {
        *slot = at;
        at = at.and_then(|at| sums.get(at)?.1);
    }
    (last.map_or(0.0, |last| last.0), chosen)
}
