use toktrie::{TokTrie, TokenId};

use super::ground::Ground;
use super::restraint::Table;
use super::sampler::{Sampler, log_total};
use super::{Halt, Host};
use formwork_core::evidence::Prefix;

/// The maximum number of forward passes of a search.
const MAX_PASSES: usize = 32;

/// The minimum logarithm of the probability of a token in a text.
const MIN_LOG: f32 = -16.0;

/// Texts that are less probable than the best one by this factor (as a power of e, after the division by the temperature) are not
/// drawn: each has less than a twentieth of its weight.
const IMPROBABLE: f32 = 3.0;

/// Finds the most probable texts that stand in the source as wholes: the product of the probabilities of their tokens and of their ends.
///
/// The most probable token can begin a text that goes on with improbable ones, because only a few words follow it in the
/// source. The search is a uniform-cost search: it continues the most probable beginning, until a complete text is more
/// probable than all beginnings. A model that is sure of a text needs one forward pass per token. Above temperature 0, the search goes
/// on for other texts that can be drawn, as far as the passes suffice.
pub(crate) struct Search<'s> {
    pub(crate) trie: &'s TokTrie,
    pub(crate) table: &'s Table,
    pub(crate) ground: &'s Ground,
    pub(crate) begin: Prefix,
    /// The maximum number of tokens of the text.
    pub(crate) max: usize,
    /// The minimum logarithm of the probability of the text.
    pub(crate) min: f32,
    pub(crate) temperature: f32,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// The texts that can be drawn, the most probable one first.
    Texts(Vec<Text>),
    /// No text is as probable as demanded.
    Improbable,
    /// Too many forward passes would be necessary.
    Nothing,
}

/// A text, with the logarithms of the probabilities of its tokens, and of the whole text with its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) logs: Vec<f32>,
    pub(crate) log: f32,
}

impl Text {
    /// Returns one of some texts by their probabilities; `None` if there is none.
    pub(crate) fn drawn(mut texts: Vec<Self>, sampler: &mut Sampler) -> Option<Self> {
        let logs: Vec<f32> = texts.iter().map(|text| text.log).collect();
        let at = sampler.pick(&logs, None)? as usize;
        (at < texts.len()).then(|| texts.swap_remove(at))
    }
}

/// The beginning of a text, or a complete one.
#[derive(Debug, Clone)]
struct Open {
    text: Text,
    prefix: Prefix,
    is_complete: bool,
}

impl Search<'_> {
    /// Returns the texts that can be drawn at this temperature.
    ///
    /// # Errors
    /// The errors of the host.
    pub(crate) fn run(&self, logits: &[f32], host: &mut impl Host) -> Result<Found, Halt> {
        let none = Text { tokens: Vec::new(), logs: Vec::new(), log: 0.0 };
        let mut open = Vec::new();
        self.extend(&Open { text: none, prefix: self.begin, is_complete: false }, logits, &mut open);
        let mut computed: Vec<TokenId> = Vec::new();
        let mut texts: Vec<Text> = Vec::new();
        let (mut min, mut passes) = (self.min, 0);
        let is_over = loop {
            // The first of equals, so that the order is deterministic.
            let order = |(a, one): &(usize, &Open), (b, other): &(usize, &Open)| {
                one.text.log.total_cmp(&other.text.log).then(b.cmp(a))
            };
            let best = open.iter().enumerate().max_by(order).map(|(at, _)| at);
            let best = best.map(|at| open.swap_remove(at)).filter(|best| best.text.log >= min);
            let Some(best) = best else { break true };
            if best.is_complete {
                min = min.max(best.text.log - IMPROBABLE * self.temperature);
                texts.push(best.text);
                if self.temperature == 0.0 {
                    break true;
                }
                continue;
            }
            if passes == MAX_PASSES {
                break false;
            }
            passes += 1;
            let tokens = &best.text.tokens;
            let known = computed.iter().zip(tokens).take_while(|(one, other)| one == other).count();
            host.rewind(computed.len() - known);
            computed.clone_from(tokens);
            let logits = host.next(tokens.get(known..).unwrap_or_default())?;
            self.extend(&best, &logits, &mut open);
        };
        host.rewind(computed.len());
        Ok(match (texts.is_empty(), is_over) {
            (false, _) => Found::Texts(texts),
            (true, true) => Found::Improbable,
            (true, false) => Found::Nothing,
        })
    }

    /// Adds the texts that go on from a beginning.
    fn extend(&self, from: &Open, logits: &[f32], open: &mut Vec<Open>) {
        let total = log_total(logits, None);
        if self.ground.ends(from.prefix) {
            let log = from.text.log + log_total(logits, Some(self.table.ends())) - total;
            open.push(Open {
                text: Text { log, ..from.text.clone() },
                prefix: from.prefix,
                is_complete: true,
            });
        }
        if from.text.tokens.len() == self.max {
            return;
        }
        for (token, prefix) in self.ground.words_after(self.trie, from.prefix) {
            let own = logits.get(token as usize).map_or(f32::NEG_INFINITY, |logit| logit - total);
            if own > MIN_LOG {
                let mut text = from.text.clone();
                text.tokens.push(token);
                text.logs.push(own);
                text.log += own;
                open.push(Open { text, prefix, is_complete: false });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use formwork_core::Rule;
    use formwork_core::evidence::Index;
    use proptest::prelude::*;
    use serde_json::json;
    use toktrie::ApproximateTokEnv;

    use super::*;

    /// A model whose predictions are random functions of the text so far.
    struct Random {
        seed: u64,
        written: Vec<TokenId>,
        passes: usize,
    }

    impl Random {
        fn logits(&self, written: &[TokenId]) -> Vec<f32> {
            let mut state = written.iter().fold(self.seed, |state, token| mixed(state ^ u64::from(*token)));
            let logit = |_| {
                state = mixed(state);
                (state % 1000) as f32 / 200.0
            };
            (0..256).map(logit).collect()
        }
    }

    fn mixed(state: u64) -> u64 {
        let state = (state ^ (state >> 29)).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state ^ (state >> 32)
    }

    impl Host for Random {
        fn next(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, Halt> {
            assert!(!tokens.is_empty(), "a forward pass needs a token");
            self.passes += 1;
            self.written.extend(tokens);
            Ok(self.logits(&self.written))
        }

        fn rewind(&mut self, count: usize) {
            self.written.truncate(self.written.len() - count);
        }

        fn emit(&mut self, _: String) {}
    }

    proptest! {
        #[test]
        fn the_most_probable_runs_of_words_are_found(
            source in "[abc]{1,3}( [abc]{1,3}){0,2}",
            seed: u64,
            min in prop_oneof![Just(f32::NEG_INFINITY), -30f32..0.0],
            temperature in prop_oneof![Just(0.0), 0.1f32..1.0],
        ) {
            let environment = ApproximateTokEnv::single_byte_env();
            let trie = environment.tok_trie();
            let table = Table::new(trie);
            let schema = json!({"type": "string"});
            let mut ground = Ground::new(&schema, &[Rule::grounded("$".parse().unwrap())], Some(&source)).unwrap();
            ground.push(b"\"");
            let search = Search { trie, table: &table, ground: &ground, begin: ground.begun_words().unwrap(), max: 64, min, temperature };
            let mut host = Random { seed, written: Vec::new(), passes: 0 };
            let start = host.logits(&[]);
            let found = search.run(&start, &mut host);
            prop_assert!(host.passes <= MAX_PASSES && host.written.is_empty());

            let words: Vec<&str> = source.split(' ').collect();
            let runs = (0..words.len()).flat_map(|from| (from..words.len()).map(move |to| (from, to)));
            let runs: BTreeSet<String> = runs.map(|(from, to)| words[from..=to].join(" ")).collect();
            let log = |text: &str| {
                let bytes: Vec<TokenId> = text.bytes().chain([b'"']).map(TokenId::from).collect();
                (0..bytes.len()).map(|at| {
                    let logits = host.logits(&bytes[..at]);
                    logits[bytes[at] as usize] - log_total(&logits, None)
                }).sum::<f32>()
            };
            let best = runs.iter().map(|text| log(text)).fold(f32::NEG_INFINITY, f32::max);
            if let Ok(Found::Texts(found)) = found {
                let mut texts = Vec::new();
                for found in found {
                    let text = String::from_utf8(trie.decode_raw(&found.tokens)).unwrap();
                    prop_assert!(Index::new(&source).states(&json!(text), 1), "{text}");
                    prop_assert!(found.log >= min && (log(&text) - found.log).abs() < 1e-3, "{text}");
                    texts.push(text);
                }
                prop_assert!((log(&texts[0]) - best).abs() < 1e-3, "{texts:?}");
                prop_assert!(temperature > 0.0 || texts.len() == 1);
                let is_over = host.passes < MAX_PASSES && temperature > 0.0;
                let least = min.max(best - IMPROBABLE * temperature) + 1e-3;
                for text in runs.iter().filter(|text| is_over && log(text) > least) {
                    prop_assert!(texts.contains(text), "{text}: {texts:?}");
                }
            } else if let Ok(Found::Improbable) = found {
                prop_assert!(best < min);
            } else {
                prop_assert!(host.passes == MAX_PASSES);
            }
        }
    }
}
