//! From scores to probabilities.

use formwork_core::Calibration;

/// The number of leaves from which a step is no accident: neighbouring groups of equal scores with fewer are one step.
const MIN_LEAVES: usize = 25;

/// The maximum width of a step of several groups with fewer leaves: scores that differ more say different things.
const MAX_WIDTH: f64 = 0.2;

/// The weight in leaves of the neighbour's share of right ones, to which a step of few leaves is drawn.
const PRIOR: f64 = 5.0;

/// The number of bins of the calibration error.
const BINS: usize = 10;

/// A leaf of gold with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The number of the document. The leaves of a document are never in both parts of a split.
    pub document: usize,
    /// The score; see [`scores`](formwork_evidence::scores).
    pub score: f64,
    /// Whether the leaf is right.
    pub right: bool,
}

/// Fits the probability that a leaf with a score is right by isotonic regression, for answers of a configuration that are compared with a
/// number of `others`, with or without `evidence`; `None` with fewer than 4 documents or 50 leaves, or without both right and wrong leaves.
///
/// ```
/// use formwork_eval::{Scored, calibrate};
///
/// // 9 of 10 leaves with the score 0.8 are right, and 2 of 10 with the score 0.3.
/// let leaf = |nth: usize| Scored { document: nth % 50, score: if nth % 2 == 0 { 0.8 } else { 0.3 }, right: nth % 20 < if nth % 2 == 0 { 18 } else { 4 } };
/// let gold: Vec<Scored> = (0..1000).map(leaf).collect();
/// let calibration = calibrate("small", 0, true, &gold).ok_or("too few leaves")?;
/// assert!((calibration.probability(0.8) - 0.9).abs() < 0.01 && (calibration.probability(0.3) - 0.2).abs() < 0.01);
/// assert!(calibration.error < 0.1);
/// # Ok::<(), &'static str>(())
/// ```
pub fn calibrate(configuration: &str, others: usize, evidence: bool, gold: &[Scored]) -> Option<Calibration> {
    let mut documents: Vec<usize> = gold.iter().map(|leaf| leaf.document).collect();
    documents.sort_unstable();
    documents.dedup();
    let right = gold.iter().filter(|leaf| leaf.right).count();
    if documents.len() < 4 || gold.len() < 2 * MIN_LEAVES || right == 0 || right == gold.len() {
        return None;
    }
    let fitted = |error: f64, leaves: &[Scored]| Calibration {
        configuration: configuration.to_owned(),
        models: Vec::new(),
        others,
        evidence,
        documents: documents.len(),
        leaves: gold.len(),
        error,
        points: steps(leaves),
    };
    // The halves are drawn, because gold is often sorted or repeats a pattern.
    let half = |leaf: &Scored| half(documents.binary_search(&leaf.document).unwrap_or_default());
    let held_out = |part: usize| {
        let other: Vec<Scored> = gold.iter().copied().filter(|leaf| half(leaf) != part).collect();
        let calibration = fitted(0.0, &other);
        let tested = gold.iter().filter(move |leaf| half(leaf) == part);
        tested.map(move |leaf| (calibration.probability(leaf.score), leaf.right)).collect::<Vec<_>>()
    };
    let tested: Vec<(f64, bool)> = (0..2).flat_map(held_out).collect();
    Some(fitted(calibration_error(&tested), gold))
}

/// Returns the half of a document: 0 or 1, for each two neighbours one of each.
fn half(document: usize) -> usize {
    let pair = (document / 2) as u64;
    let bit = usize::from(pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1);
    (document % 2) ^ bit
}

/// Returns the mean difference between the probability and the share of right leaves, in 10 bins of equal width, each weighted by its leaves.
///
/// ```
/// use formwork_eval::calibration_error;
///
/// assert_eq!(calibration_error(&[(0.75, true), (0.75, true), (0.75, true), (0.75, false)]), 0.0);
/// assert_eq!(calibration_error(&[(0.9, false), (0.9, true)]), 0.4);
/// ```
pub fn calibration_error(tested: &[(f64, bool)]) -> f64 {
    let mut bins = [(0.0, 0.0); BINS];
    for (probability, right) in tested {
        let bin = ((probability * BINS as f64) as usize).min(BINS - 1);
        if let Some((sum, rights)) = bins.get_mut(bin) {
            *sum += probability;
            *rights += f64::from(u8::from(*right));
        }
    }
    bins.iter().map(|(sum, right)| (sum - right).abs()).sum::<f64>() / tested.len().max(1) as f64
}

/// Returns the probability that a random right leaf has a higher score than a random wrong one (AUROC; equal scores count half); `None`
/// without right or without wrong leaves.
///
/// ```
/// use formwork_eval::auroc;
///
/// assert_eq!(auroc(&[(0.9, true), (0.2, false), (0.2, true)]), Some(0.75));
/// assert_eq!(auroc(&[(0.9, true)]), None);
/// ```
pub fn auroc(scored: &[(f64, bool)]) -> Option<f64> {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut above, mut wrong, mut right) = (0.0, 0.0, 0.0);
    for group in sorted.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq()) {
        let rights = group.iter().filter(|(_, right)| *right).count() as f64;
        let wrongs = group.len() as f64 - rights;
        above += rights * (wrong + wrongs / 2.0);
        (right, wrong) = (right + rights, wrong + wrongs);
    }
    (right * wrong > 0.0).then(|| above / (right * wrong))
}

/// A range of scores with one probability.
#[derive(Clone, Copy)]
struct Block {
    leaves: f64,
    right: f64,
    scores: f64,
    lowest: f64,
}

impl Block {
    fn rate(&self) -> f64 {
        self.right / self.leaves
    }

    const fn join(&mut self, other: Self) {
        self.leaves += other.leaves;
        self.right += other.right;
        self.scores += other.scores;
        self.lowest = self.lowest.min(other.lowest);
    }
}

/// Returns the steps of isotonic regression: mean scores with shares of right leaves, both ascending.
fn steps(gold: &[Scored]) -> Vec<[f64; 2]> {
    let mut sorted = gold.to_vec();
    sorted.sort_by(|one, other| one.score.total_cmp(&other.score));
    let mut groups: Vec<Block> = Vec::new();
    for equal in sorted.chunk_by(|one, other| one.score.total_cmp(&other.score).is_eq()) {
        let leaves = equal.len() as f64;
        let right = equal.iter().filter(|leaf| leaf.right).count() as f64;
        let scores = equal.iter().map(|leaf| leaf.score).sum();
        let mut block = Block { leaves, right, scores, lowest: equal.first().map_or(0.0, |leaf| leaf.score) };
        let is_near = |before: &mut Block| {
            before.leaves.max(leaves) < MIN_LEAVES as f64 && block.lowest - before.lowest <= MAX_WIDTH
        };
        if let Some(before) = groups.pop_if(is_near) {
            block.join(before);
        }
        groups.push(block);
    }
    let mut blocks: Vec<Block> = Vec::new();
    for mut block in groups {
        // Pool adjacent violators.
        while let Some(before) = blocks.pop_if(|before| before.rate() >= block.rate()) {
            block.join(before);
        }
        blocks.push(block);
    }
    // One leaf of each kind is added, because no share is 0 or 1 for certain.
    let share = |block: &Block| (block.right + 1.0) / (block.leaves + 2.0);
    let point = |(at, block): (usize, &Block)| {
        let neighbour = blocks.get(at + 1).or_else(|| blocks.get(at.checked_sub(1)?));
        let drawn =
            neighbour.filter(|_| block.leaves < MIN_LEAVES as f64).map_or(share(block), |neighbour| {
                (block.right + PRIOR * share(neighbour)) / (block.leaves + PRIOR)
            });
        [block.scores / block.leaves, drawn]
    };
    let mut points: Vec<[f64; 2]> = blocks.iter().enumerate().map(point).collect();
    let mut highest: f64 = 0.0;
    for point in &mut points {
        highest = highest.max(point[1]);
        point[1] = highest;
    }
    points
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gold(groups: &[(f64, usize, usize)]) -> Vec<Scored> {
        let of = |(score, right, wrong): &(f64, usize, usize)| {
            let leaves = (0..right + wrong).map(|nth| nth < *right);
            leaves.map(|right| (*score, right)).collect::<Vec<_>>()
        };
        let leaves = groups.iter().flat_map(of).enumerate();
        leaves.map(|(nth, (score, right))| Scored { document: nth % 8, score, right }).collect()
    }

    #[test]
    fn a_small_group_of_other_scores_has_a_step_of_its_own() {
        for (groups, scores) in [
            (&[(0.0, 0, 20), (1.0, 180, 0)][..], [0.0, 1.0]),
            (&[(0.5, 100, 100), (1.0, 20, 0)], [0.5, 1.0]),
            (&[(0.0, 0, 3), (0.05, 1, 2), (0.9, 90, 10)], [0.0, 0.9]),
        ] {
            let calibration = calibrate("any", 0, true, &gold(groups)).unwrap();
            let [low, high] = scores.map(|score| calibration.probability(score));
            assert!(low + 0.3 < high, "{groups:?}: {:?}", calibration.points);
        }
        // Near scores of few leaves are one step, and one leaf is hardly a reason.
        let near = calibrate("any", 0, true, &gold(&[(0.80, 1, 4), (0.85, 1, 4), (0.9, 90, 10)])).unwrap();
        assert_eq!(near.points.len(), 2, "{:?}", near.points);
        let one = calibrate("any", 0, true, &gold(&[(0.0, 0, 1), (0.9, 90, 10)])).unwrap();
        let [low, high] = [0.0, 0.9].map(|score| one.probability(score));
        assert!(low > 0.7 && low < high, "{:?}", one.points);
    }

    proptest! {
        #[test]
        fn a_higher_score_has_no_lower_probability(
            groups in prop::collection::vec((0_u8..=20, 0_usize..40, 0_usize..40), 1..12)
        ) {
            let groups: Vec<_> = groups.into_iter().map(|(score, right, wrong)| (f64::from(score) / 20.0, right, wrong)).collect();
            let points = steps(&gold(&groups));
            let is_sorted = |at: usize| points.windows(2).all(|two| two[0][at] <= two[1][at]);
            prop_assert!(is_sorted(0) && is_sorted(1), "{points:?}");
            prop_assert!(points.iter().all(|point| point[1] > 0.0 && point[1] < 1.0));
        }
    }
}
