//! The best assignment, compared with all assignments.

use formwork_evidence::{assign, greedy};
use proptest::prelude::*;

/// Returns the largest sum of all assignments of rows to columns.
fn best(weights: &[Vec<f64>], row: usize, taken: &mut [bool]) -> f64 {
    let Some(own) = weights.get(row) else { return 0.0 };
    let mut largest = best(weights, row + 1, taken);
    for column in 0..own.len() {
        if !taken[column] && own[column] > 0.0 {
            taken[column] = true;
            largest = largest.max(own[column] + best(weights, row + 1, taken));
            taken[column] = false;
        }
    }
    largest
}

proptest! {
    #[test]
    fn no_assignment_has_a_larger_sum(rows in 0_usize..5, columns in 0_usize..5, cells in prop::collection::vec(-1.0_f64..1.0, 25)) {
        let weights: Vec<Vec<f64>> = (0..rows).map(|row| cells[row * 5..row * 5 + columns].to_vec()).collect();
        let assigned = assign(rows, columns, |row, column| weights[row][column]);
        let mut seen = vec![false; columns];
        let mut sum = 0.0;
        for (row, column) in assigned.iter().enumerate() {
            if let Some(column) = *column {
                prop_assert!(!std::mem::replace(&mut seen[column], true), "column {column} twice");
                sum += weights[row][column];
            }
        }
        let largest = best(&weights, 0, &mut vec![false; columns]);
        prop_assert!((sum - largest).abs() < 1e-9, "{sum} instead of {largest}");
    }
}

#[test]
fn the_greedy_assignment_takes_the_largest_pair_first() {
    let weights = [[0.9, 0.8], [0.8, 0.1]];
    let pairs = greedy(2, 2, |row, column| weights[row][column]);
    assert_eq!(pairs, [Some((0, 0.9)), Some((1, 0.1))]);
}
