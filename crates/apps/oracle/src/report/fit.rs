use schemars::JsonSchema;
use serde::Serialize;

use super::Point;
use crate::ScoreSource;
use crate::wallet::Band;

/// The agreement of scores with those that a person would give, for the model and for the fallback.
///
/// ```
/// use formwork_oracle::report::{Expected, Fit};
///
/// let model = Fit { n: 20, within: 4, mean_error: 180.0, correlation: Some(0.2) };
/// let fallback = Fit { n: 20, within: 9, mean_error: 95.0, correlation: Some(0.6) };
/// let expected = Expected { model: Some(model), fallback: Some(fallback) };
/// assert!(expected.is_model_worse());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Expected {
    /// The scores by a model; `None` if there are none.
    pub model: Option<Fit>,
    /// The fallback's scores of the same wallets, or of all wallets if no model gave a score. `None` for a ledger of an
    /// older version without them.
    pub fallback: Option<Fit>,
}

/// The agreement of scores with the expected bands of wallets.
///
/// ```
/// use formwork_oracle::report::Fit;
///
/// let fit = Fit { n: 10, within: 8, mean_error: 40.5, correlation: None };
/// assert_eq!(fit.within as f64 / fit.n as f64, 0.8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The number of scores with an expectation.
    pub n: u64,
    /// The number of scores within the band.
    pub within: u64,
    /// The average distance of a score from the middle of its band, in points.
    pub mean_error: f64,
    /// Pearson's correlation of scores and middles, -1 to 1; `None` if one of them is constant.
    pub correlation: Option<f64>,
}

impl Expected {
    pub(super) fn of(points: &[Point]) -> Option<Self> {
        if points.is_empty() {
            return None;
        }
        let of_model = |point: &&Point| point.source == ScoreSource::Ai;
        let model = Fit::of(points.iter().filter(of_model).map(|point| (point.expected, point.score)));
        let same = points.iter().filter(|point| model.is_none() || of_model(point));
        let counted: Option<Vec<_>> = same.map(|point| Some((point.expected, point.counted?))).collect();
        Some(Self { model, fallback: counted.and_then(|pairs| Fit::of(pairs.into_iter())) })
    }

    /// Returns whether the model's scores are further off than the fallback's, so that they tell less about wallets
    /// than a rule without any model.
    pub fn is_model_worse(&self) -> bool {
        matches!((self.model, self.fallback), (Some(model), Some(fallback)) if model.mean_error > fallback.mean_error)
    }
}

impl Fit {
    fn of(pairs: impl Iterator<Item = (Band, u16)> + Clone) -> Option<Self> {
        let values = pairs.clone().map(|(band, score)| (f64::from(band.middle()), f64::from(score)));
        let (count, sum_x, sum_y) = values
            .clone()
            .fold((0_u32, 0.0, 0.0), |(count, sum_x, sum_y), (x, y)| (count + 1, sum_x + x, sum_y + y));
        if count == 0 {
            return None;
        }
        let n = f64::from(count);
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (mut xy, mut xx, mut yy, mut off) = (0.0, 0.0, 0.0, 0.0);
        for (x, y) in values {
            xy += (x - mean_x) * (y - mean_y);
            xx += (x - mean_x).powi(2);
            yy += (y - mean_y).powi(2);
            off += (x - y).abs();
        }
        Some(Self {
            n: u64::from(count),
            within: pairs.filter(|(band, score)| band.contains(*score)).count() as u64,
            mean_error: off / n,
            correlation: (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt()),
        })
    }

    /// Returns the correlation with two digits, or a dash.
    pub(super) fn line(&self) -> String {
        self.correlation.map_or_else(|| "-".to_owned(), |correlation| format!("{correlation:.2}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(min: u16, max: u16, score: u16, counted: u16, source: ScoreSource) -> Point {
        Point { expected: Band { min, max }, score, counted: Some(counted), source }
    }

    #[test]
    fn scores_are_held_against_the_middle_and_the_band() {
        let band = |min, max| Band { min, max };
        let fit =
            Fit::of([(band(0, 100), 50), (band(400, 600), 700), (band(800, 1000), 900)].into_iter()).unwrap();
        assert_eq!((fit.n, fit.within), (3, 2));
        assert!((fit.mean_error - 200.0 / 3.0).abs() < 1e-9);
        assert!(fit.correlation.unwrap() > 0.9);
        let still = Fit::of([(band(0, 100), 5), (band(400, 600), 5)].into_iter()).unwrap();
        assert_eq!((still.correlation, still.line().as_str()), (None, "-"));
    }

    #[test]
    fn model_and_counting_are_compared_on_the_same_wallets() {
        use ScoreSource::{Ai, Fallback};
        let noise = [
            point(800, 1000, 150, 870, Ai),
            point(0, 100, 700, 70, Ai),
            // The fallback computed this wallet's score, so it is no evidence about the model.
            point(400, 500, 0, 0, Fallback),
        ];
        let expected = Expected::of(&noise).unwrap();
        let (model, fallback) = (expected.model.unwrap(), expected.fallback.unwrap());
        assert_eq!((model.n, model.within, model.mean_error), (2, 0, 700.0));
        assert_eq!((fallback.n, fallback.within, fallback.mean_error), (2, 2, 25.0));
        assert!(model.correlation.unwrap() < 0.0 && fallback.correlation.unwrap() > 0.0);
        assert!(expected.is_model_worse());

        let counted = Expected::of(&noise[2..]).unwrap();
        assert_eq!((counted.model, counted.fallback.unwrap().n, counted.is_model_worse()), (None, 1, false));
        let older = Expected::of(&[Point { counted: None, ..noise[0] }]).unwrap();
        assert_eq!((older.model.unwrap().n, older.fallback, older.is_model_worse()), (1, None, false));
        assert_eq!(Expected::of(&[]), None);
    }
}
