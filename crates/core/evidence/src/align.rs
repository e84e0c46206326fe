//! The alignment of lists.

/// The maximum number of pairs of rows and columns for which the best assignment is computed; larger tables are assigned
/// greedily.
const MAX_EXACT: usize = 400 * 400;

/// Assigns rows to columns, each at most once, so that the sum of the weights is as large as possible. Returns the column of each
/// row. Pairs with a weight of 0 or less are not assigned.
///
/// The result is the best assignment (by the Hungarian algorithm, in cubic time) for up to 160,000 pairs. Beyond that, the pair with
/// the largest weight is assigned first, then the next one, and so on ([`greedy`]).
///
/// ```
/// use formwork_evidence::assign;
///
/// let weights = [[0.9, 0.8], [0.8, 0.0]];
/// assert_eq!(assign(2, 2, |row, column| weights[row][column]), [Some(1), Some(0)]);
/// ```
pub fn assign(rows: usize, columns: usize, weight: impl Fn(usize, usize) -> f64) -> Vec<Option<usize>> {
    if rows.saturating_mul(columns) > MAX_EXACT {
        return greedy(rows, columns, weight)
            .into_iter()
            .map(|pair| pair.filter(|pair| pair.1 > 0.0).map(|pair| pair.0))
            .collect();
    }
    let kept = |row: usize, column: usize| weight(row, column) > 0.0;
    let mut of_rows = vec![None; rows];
    if rows > columns {
        let of_columns = hungarian(columns, rows, &|column, row| weight(row, column));
        for (column, row) in of_columns.into_iter().enumerate() {
            if let Some(row) = row.filter(|row| kept(*row, column)) {
                set(&mut of_rows, row, Some(column));
            }
        }
    } else {
        for (row, column) in hungarian(rows, columns, &weight).into_iter().enumerate() {
            set(&mut of_rows, row, column.filter(|column| kept(row, *column)));
        }
    }
    of_rows
}

/// Returns the best assignment of all rows, for at most as many rows as columns: the algorithm of shortest augmenting paths with
/// potentials. Index 0 of the arrays stands for "none".
fn hungarian(rows: usize, columns: usize, weight: &dyn Fn(usize, usize) -> f64) -> Vec<Option<usize>> {
    let mut costs = vec![0.0; rows * columns];
    for (index, cost) in costs.iter_mut().enumerate() {
        let weight = weight(index / columns, index % columns);
        // A pair that is not worth assigning costs the same as none.
        *cost = if weight.is_finite() { -weight.max(0.0) } else { 0.0 };
    }
    let cost =
        |row: usize, column: usize| costs.get((row - 1) * columns + column - 1).copied().unwrap_or_default();
    let at = |list: &[f64], index: usize| list.get(index).copied().unwrap_or_default();
    let (mut row_potential, mut column_potential) = (vec![0.0; rows + 1], vec![0.0; columns + 1]);
    let mut row_of: Vec<usize> = vec![0; columns + 1];
    let row_at = |row_of: &[usize], column: usize| row_of.get(column).copied().unwrap_or_default();
    for row in 1..=rows {
        set(&mut row_of, 0, row);
        let (mut way, mut slack, mut used) =
            (vec![0_usize; columns + 1], vec![f64::INFINITY; columns + 1], vec![false; columns + 1]);
        let mut column = 0;
        loop {
            set(&mut used, column, true);
            let (current, mut delta, mut next) = (row_at(&row_of, column), f64::INFINITY, 0);
            for other in 1..=columns {
                if used.get(other).copied().unwrap_or(true) {
                    continue;
                }
                let reduced =
                    cost(current, other) - at(&row_potential, current) - at(&column_potential, other);
                if reduced < at(&slack, other) {
                    set(&mut slack, other, reduced);
                    set(&mut way, other, column);
                }
                if at(&slack, other) < delta {
                    delta = at(&slack, other);
                    next = other;
                }
            }
            for other in 0..=columns {
                if used.get(other).copied().unwrap_or(false) {
                    add(&mut row_potential, row_at(&row_of, other), delta);
                    add(&mut column_potential, other, -delta);
                } else {
                    add(&mut slack, other, -delta);
                }
            }
            column = next;
            if row_at(&row_of, column) == 0 {
                break;
            }
        }
        while column != 0 {
            let previous = way.get(column).copied().unwrap_or_default();
            let moved = row_at(&row_of, previous);
            set(&mut row_of, column, moved);
            column = previous;
        }
    }
    let mut assigned = vec![None; rows];
    for (column, row) in row_of.iter().enumerate().skip(1) {
        if let Some(slot) = row.checked_sub(1).and_then(|row| assigned.get_mut(row)) {
            *slot = Some(column - 1);
        }
    }
    assigned
}

fn set<T>(list: &mut [T], index: usize, value: T) {
    if let Some(slot) = list.get_mut(index) {
        *slot = value;
    }
}

fn add(list: &mut [f64], index: usize, value: f64) {
    if let Some(slot) = list.get_mut(index) {
        *slot += value;
    }
}

/// Assigns the pair of a row and a column with the largest weight first, then the largest of the rest, and so on. Of pairs with equal
/// weights, the one with the smaller row, then the smaller column, is first. Returns the column of each row, with its weight.
///
/// ```
/// use formwork_evidence::greedy;
///
/// let weights = [[0.9, 0.8], [0.8, 0.0]];
/// assert_eq!(greedy(2, 2, |row, column| weights[row][column]), [Some((0, 0.9)), Some((1, 0.0))]);
/// ```
pub fn greedy(
    rows: usize,
    columns: usize,
    weight: impl Fn(usize, usize) -> f64,
) -> Vec<Option<(usize, f64)>> {
    let pairs = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let mut pairs: Vec<(f64, usize, usize)> =
        pairs.map(|(row, column)| (weight(row, column), row, column)).collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (mut of_rows, mut taken) = (vec![None; rows], vec![false; columns]);
    for (weight, row, column) in pairs {
        if let (Some(slot @ None), Some(taken @ false)) = (of_rows.get_mut(row), taken.get_mut(column)) {
            *slot = Some((column, weight));
            *taken = true;
        }
    }
    of_rows
}
