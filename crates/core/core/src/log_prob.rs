//! The log probabilities of the tokens of an answer.

use std::sync::Arc;

use formwork_json::{JsonPath, Places};
use serde::{Deserialize, Serialize};

/// A token of an answer: the length and a digest of its text, and the natural logarithm of its probability, in thousandths.
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
    /// The digest of its text; absent for tokens that are known to be those of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<u32>,
}

impl LogProb {
    /// Creates a token of a list that may have tokens before and after the answer, such as those of its end.
    pub fn of(text: &[u8], log: f64) -> Self {
        Self { digest: Some(digest(text)), ..Self::new(text.len(), log) }
    }

    /// Creates a token. What is no number counts as the lowest logarithm.
    pub fn new(length: usize, log: f64) -> Self {
        let milli = (log * 1000.0).round();
        let milli = if milli.is_nan() { LOWEST } else { milli.clamp(LOWEST, 0.0) };
        Self { length: u32::try_from(length).unwrap_or(u32::MAX), milli: milli as i32, digest: None }
    }

    /// Returns the end of the token if it stands at an offset of a text.
    fn end(self, text: &[u8], at: usize) -> Option<usize> {
        let end = at + self.length as usize;
        let own = text.get(at..end)?;
        self.digest.is_none_or(|digest| digest == self::digest(own)).then_some(end)
    }

    fn log(self) -> f64 {
        f64::from(self.milli) / 1000.0
    }
}

const LOWEST: f64 = -1_000_000.0;

/// Returns a digest of a text (FNV-1a).
fn digest(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

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
    /// Returns where each token of an answer's text starts, with its logarithm; `None` if the tokens are not those of the text. Servers
    /// list tokens that the text lacks: thoughts and fences before it, and the token of the end after it. The beginning of an answer may be
    /// given, and has no tokens.
    pub(crate) fn aligned(&self, text: &str) -> Option<Vec<(usize, f64)>> {
        let text = text.as_bytes();
        let of = |tokens: &[LogProb], mut at: usize| {
            let mut starts = Vec::new();
            for token in tokens {
                if at == text.len() {
                    break;
                }
                starts.push((at, token.log()));
                at = token.end(text, at)?;
            }
            (at == text.len() && !starts.is_empty()).then_some(starts)
        };
        let ends = self.0.iter().scan(0, |end, token| {
            *end += token.length as usize;
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let (last, before) =
            (ends.last().copied().unwrap_or(0), |first: usize| ends.get(first.checked_sub(1)?));
        // Only digests tell other tokens from those of the text. A draft among the thoughts may be the same text.
        let are_known = self.0.iter().all(|token| token.digest.is_some());
        let firsts = 0..if are_known { self.0.len() } else { 1 };
        let is_enough = |first: &usize| last - before(*first).unwrap_or(&0) >= text.len();
        let mut rests = firsts.rev().filter(is_enough).filter_map(|first| self.0.get(first..));
        rests.find_map(|tokens| of(tokens, 0)).or_else(|| {
            ends.iter().rev().find_map(|end| of(&self.0, text.len().checked_sub(*end).filter(|_| *end > 0)?))
        })
    }

    /// Returns the probabilities of the values at these paths of an answer's text; `None` for those that the text lacks.
    pub(crate) fn of_leaves<'p>(
        &self,
        text: &str,
        paths: impl IntoIterator<Item = &'p JsonPath> + Clone,
    ) -> Vec<Option<Tokens>> {
        let Some(tokens) = self.aligned(text) else { return Vec::new() };
        let of = |span: formwork_json::Span| {
            let first = tokens.partition_point(|(start, _)| *start <= span.start).checked_sub(1)?;
            let last = tokens.partition_point(|(start, _)| *start < span.end);
            let logs = tokens.get(first..last)?.iter().map(|(_, log)| *log);
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
    use proptest::prelude::*;

    use super::*;

    fn tokens(pieces: &[(&str, f64)]) -> (String, LogProbs) {
        let text = pieces.iter().map(|(piece, _)| *piece).collect();
        let tokens = pieces.iter().map(|(piece, p)| LogProb::new(piece.len(), p.ln()));
        (text, LogProbs(tokens.collect()))
    }

    fn digested(pieces: &[&[u8]]) -> LogProbs {
        let of = |(nth, piece): (usize, &&[u8])| LogProb::of(piece, -0.001 * (nth % 7 + 1) as f64);
        LogProbs(pieces.iter().enumerate().map(of).collect())
    }

    proptest! {
        #[test]
        fn tokens_around_the_text_change_nothing_and_without_one_of_its_tokens_there_are_none(
            members in prop::collection::vec(("[a-zäß\"]{0,6}", "[a-zäß\"]{0,6}", 0_u32..1000), 1..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 2..12),
            thoughts in prop::collection::vec("[<>a-z\n ]{1,8}", 0..4),
            ends in prop::collection::vec("<[a-z|]{1,8}>", 0..3),
        ) {
            let members = members.into_iter().enumerate();
            let of = |(nth, (name, text, number))| (format!("{nth}{name}"), serde_json::json!([text, number]));
            let value: serde_json::Value = members.map(of).collect::<serde_json::Map<_, _>>().into();
            let text = value.to_string();
            // Tokens may be parts of characters.
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).chain([0, text.len()]).collect();
            at.sort_unstable();
            at.dedup();
            let plain: Vec<&[u8]> = at.windows(2).map(|ends| &text.as_bytes()[ends[0]..ends[1]]).collect();
            let paths: Vec<JsonPath> = value.as_object().unwrap().keys().flat_map(|name| {
                (0..2).map(move |nth| JsonPath::root().key(name).index(nth))
            }).collect();
            let expected = digested(&plain).of_leaves(&text, &paths);
            prop_assert!(expected.iter().all(Option::is_some) && !expected.is_empty());

            let own = digested(&plain).0;
            let around = |own: &[LogProb]| {
                let other = |text: &String| LogProb::of(text.as_bytes(), -5.0);
                LogProbs(thoughts.iter().map(other).chain(own.iter().copied()).chain(ends.iter().map(other)).collect())
            };
            prop_assert_eq!(around(&own).of_leaves(&text, &paths), expected);
            if own.len() > 2 {
                let lost = cuts[0].index(own.len() - 2) + 1;
                let rest: Vec<LogProb> = own.iter().enumerate().filter(|(nth, _)| *nth != lost).map(|(_, it)| *it).collect();
                prop_assert!(around(&rest).of_leaves(&text, &paths).is_empty());
            }
        }
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
