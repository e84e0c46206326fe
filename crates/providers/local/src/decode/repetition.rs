use std::collections::HashMap;

/// The number of tokens of a phrase.
const PHRASE: usize = 4;

/// The maximum number of occurrences of a phrase in one string.
const MOST: u32 = 3;

/// Stops a string that repeats itself.
///
/// Common repetition penalties make small models misspell the names that they copy (measured: "Lindqvist" loses letters).
/// Therefore nothing happens until the same four tokens occurred three times within one JSON string. Then the fourth
/// token is excluded after the first three, and the model continues otherwise, mostly by ending the string.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    recent: Vec<u32>,
    counts: HashMap<[u32; PHRASE - 1], Vec<(u32, u32)>>,
}

impl Repetition {
    /// Reads a token; `inside` is whether it lies entirely within one string.
    pub(crate) fn push(&mut self, token: u32, inside: bool) {
        if !inside {
            self.recent.clear();
            self.counts.clear();
            return;
        }
        if let Some(start) = self.start() {
            let followers = self.counts.entry(start).or_default();
            match followers.iter_mut().find(|(follower, _)| *follower == token) {
                Some((_, count)) => *count += 1,
                None => followers.push((token, 1)),
            }
        }
        self.recent.push(token);
    }

    /// Returns the tokens that must not come next.
    pub(crate) fn banned(&self) -> Vec<u32> {
        let followers = self.start().and_then(|start| self.counts.get(&start));
        let often = followers.into_iter().flatten().filter(|(_, count)| *count >= MOST);
        often.map(|(token, _)| *token).collect()
    }

    /// Returns the last tokens, with which the next phrase would start.
    fn start(&self) -> Option<[u32; PHRASE - 1]> {
        self.recent.last_chunk().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_may_come_three_times_in_a_string() {
        let mut repetition = Repetition::default();
        for round in 0..3 {
            for token in [1, 2, 3, 4, 5] {
                assert!(repetition.banned().is_empty(), "round {round}");
                repetition.push(token, true);
            }
        }
        repetition.push(1, true);
        repetition.push(2, true);
        repetition.push(3, true);
        assert_eq!(repetition.banned(), [4]);
    }

    #[test]
    fn each_string_counts_for_itself_and_structure_never() {
        let mut repetition = Repetition::default();
        for _ in 0..10 {
            for token in [1, 2, 3, 4] {
                repetition.push(token, true);
            }
            assert!(repetition.banned().is_empty());
            repetition.push(9, false);
        }
        for _ in 0..50 {
            repetition.push(7, false);
            assert!(repetition.banned().is_empty());
        }
    }
}
