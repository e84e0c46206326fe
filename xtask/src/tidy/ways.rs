//! The shortest ways through a graph.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

/// Returns the shortest way to each node that a node reaches: to itself as well, if it lies in a circle. A way has both of its ends.
pub(super) fn ways<N: Ord + Copy, I: IntoIterator<Item = N>>(
    from: N,
    next: impl Fn(N) -> I,
) -> BTreeMap<N, Vec<N>> {
    let mut ways = BTreeMap::new();
    let mut ends = VecDeque::from([(from, vec![from])]);
    while let Some((end, way)) = ends.pop_front() {
        for node in next(end) {
            if let Entry::Vacant(free) = ways.entry(node) {
                let longer = [way.as_slice(), &[node]].concat();
                free.insert(longer.clone());
                ends.push_back((node, longer));
            }
        }
    }
    ways
}
