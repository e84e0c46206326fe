//! The log probabilities of the tokens of an answer.

use std::sync::Arc;

use formwork_json::{JsonPath, Places};
use serde::{Deserialize, Serialize};

/// A token of an answer: the length of its text in bytes, and the natural logarithm of its probability, in thousandths.
///
/// ```
/// use formwork_core::LogProb;
///
/// let token = LogProb::new(3, -0.25);
/// assert_eq!((token.length, token.milli), (3, -250));
/// assert_eq!(LogProb::new(3, f64::NAN).milli, LogProb::new(3, f64::NEG_INFINITY).milli);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogProb {
    /// The length of the token's text in bytes.
    pub length: u32,
    /// The natural logarithm of its probability in thousandths, at most 0 and at least -1,000,000.
    pub milli: i32,
}

impl LogProb {
    /// Creates a token. What is no number counts as the lowest logarithm.
    pub fn new(length: usize, log: f64) -> Self {
        let milli = (log * 1000.0).round();
        let milli = if milli.is_nan() { LOWEST } else { milli.clamp(LOWEST, 0.0) };
        Self { length: u32::try_from(length).unwrap_or(u32::MAX), milli: milli as i32 }
    }

    fn log(self) -> f64 {
        f64::from(self.milli) / 1000.0
    }
}

const LOWEST: f64 = -1_000_000.0;

/// A token above this probability is certain: no other one could have begun another value.
const CERTAIN: f64 = 0.99;

/// The tokens of an answer in the ledger of a run. They are not stored with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogProbs(pub(crate) Arc<[LogProb]>);

// Two ledgers are equal whether or not one of them was stored.
crate::equal::always_equal!(LogProbs);

/// The probabilities of the tokens of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tokens {
    /// The product over all its tokens.
    pub(crate) product: f64,
    /// The probability of its first token that is not certain, where another value would have begun; 1 if all are certain.
    pub(crate) first: f64,
}

impl LogProbs {
    /// Returns the probabilities of the values at these paths of an answer's text; `None` for those that the text lacks.
    pub(crate) fn of_leaves<'p>(
        &self,
        text: &str,
        paths: impl IntoIterator<Item = &'p JsonPath> + Clone,
    ) -> Vec<Option<Tokens>> {
        let total: usize = self.0.iter().map(|token| token.length as usize).sum();
        // The beginning of an answer may be given, and has no tokens.
        let Some(mut at) = text.len().checked_sub(total).filter(|_| total > 0) else { return Vec::new() };
        let start = |token: &LogProb| {
            let from = at;
            at += token.length as usize;
            from
        };
        let starts: Vec<usize> = self.0.iter().map(start).collect();
        let of = |span: formwork_json::Span| {
            let first = starts.partition_point(|start| *start <= span.start).checked_sub(1)?;
            let last = starts.partition_point(|start| *start < span.end);
            let logs = self.0.get(first..last)?.iter().map(|token| token.log());
            let product = logs.clone().sum::<f64>().exp();
            let first = logs.map(f64::exp).find(|probability| *probability < CERTAIN).unwrap_or(1.0);
            Some(Tokens { product, first })
        };
        let places = Places::find(text, paths.clone());
        paths.into_iter().map(|path| places.value(path).and_then(of)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(pieces: &[(&str, f64)]) -> (String, LogProbs) {
        let text = pieces.iter().map(|(piece, _)| *piece).collect();
        let tokens = pieces.iter().map(|(piece, p)| LogProb::new(piece.len(), p.ln()));
        (text, LogProbs(tokens.collect()))
    }

    fn of(pieces: &[(&str, f64)], given: &str, path: &str) -> Option<(i64, i64)> {
        let (text, log_probs) = tokens(pieces);
        let path = path.parse().unwrap();
        let found = log_probs.of_leaves(&format!("{given}{text}"), [&path]).pop().flatten()?;
        Some(((found.product * 100.0).round() as i64, (found.first * 100.0).round() as i64))
    }

    #[test]
    fn a_value_has_the_product_of_its_tokens_and_the_first_that_was_not_certain() {
        let pieces = [
            ("{\"a\":", 0.1),
            (" \"", 1.0),
            ("Ma", 0.5),
            ("ria\"", 0.8),
            (", \"b\"", 0.3),
            (": ", 1.0),
            ("34", 0.9),
            ("}", 0.2),
        ];
        assert_eq!(of(&pieces, "", "$.a"), Some((40, 50)));
        assert_eq!(of(&pieces, "", "$.b"), Some((90, 90)));
        assert_eq!(of(&pieces, "", "$.c"), None);
        // The given beginning of an answer has no tokens.
        assert_eq!(of(&pieces[1..], "{\"a\":", "$.b"), Some((90, 90)));
        // A token of two values counts for both, and tokens that are longer than the text count for none.
        assert_eq!(of(&[("[1", 0.5), (",2]", 0.5)], "", "$[0]"), Some((50, 50)));
        let (_, log_probs) = tokens(&[("[12345]", 0.5)]);
        assert!(log_probs.of_leaves("[1]", [&"$[0]".parse().unwrap()]).is_empty());
    }
}
