/// The length of the longest repeated text that is detected, in bytes.
pub(super) const MAX_PERIOD: usize = 256;

/// The number of bytes that are compared with each other to find a period. Twice [`MAX_PERIOD`], so that two periods of one
/// window are multiples of the shorter one (Fine and Wilf).
const WINDOW: usize = 2 * MAX_PERIOD;

/// The number of bytes that are kept: enough to hold a window that begins anywhere in the last window but one.
const KEPT: usize = 4 * WINDOW;

/// Measures how far back a growing text repeats itself, in time linear in the text.
///
/// The search for a period runs at the end of each window; the period is then followed byte by byte. A repetition of four
/// windows is found in the second of them at the latest, and measured back to its beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct Repetition {
    /// The last bytes.
    tail: Vec<u8>,
    seen: usize,
    period: usize,
    len: usize,
}

impl Repetition {
    /// Takes the next byte.
    pub(super) fn push(&mut self, byte: u8) {
        if self.period > 0 {
            let goes_on = self.tail.len().checked_sub(self.period).and_then(|at| self.tail.get(at));
            if goes_on == Some(&byte) {
                self.len += 1;
            } else {
                (self.period, self.len) = (0, 0);
            }
        }
        if self.tail.len() >= 2 * KEPT {
            self.tail.drain(..KEPT);
        }
        self.tail.push(byte);
        self.seen += 1;
        if self.period == 0 && self.seen.is_multiple_of(WINDOW) {
            self.search();
        }
    }

    /// Returns the shortest period of the end of the text, up to [`MAX_PERIOD`] bytes, and the number of bytes that repeat
    /// with it. Both are 0 as long as no period is found.
    pub(super) const fn period_and_len(&self) -> (usize, usize) {
        (self.period, self.len)
    }

    /// Returns the text that is repeated, from any byte of it.
    pub(super) fn unit(&self) -> &[u8] {
        self.tail.len().checked_sub(self.period).and_then(|from| self.tail.get(from..)).unwrap_or_default()
    }

    fn search(&mut self) {
        let Some((_, window)) = self.tail.split_at_checked(self.tail.len() - WINDOW) else { return };
        let period = (1..=MAX_PERIOD).find(|period| window.get(*period..) == window.get(..WINDOW - period));
        let Some(period) = period else { return };
        let again = self.tail.get(period..).unwrap_or_default();
        let equal = self.tail.iter().rev().skip(period).zip(again.iter().rev());
        (self.period, self.len) =
            (period, period + equal.take_while(|(before, after)| before == after).count());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns how many of the last bytes of a text repeat with a period.
    fn len_of(text: &[u8], period: usize) -> usize {
        let equal = text.iter().rev().skip(period).zip(text.iter().rev());
        text.len().min(period + equal.take_while(|(before, after)| before == after).count())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn four_windows_of_repetition_are_measured_exactly(
            parts in prop::collection::vec(("[ab]{1,6}[a-c]{0,300}", 1usize..40), 1..5),
        ) {
            let text: Vec<u8> = parts.iter().flat_map(|(unit, times)| unit.repeat(*times).into_bytes()).collect();
            let mut repetition = Repetition::default();
            for (end, byte) in text.iter().enumerate() {
                repetition.push(*byte);
                // Comparing at every byte would make the test too slow.
                if end % 97 == 0 || end + 1 == text.len() {
                    let so_far = &text[..=end];
                    let longest = (1..=MAX_PERIOD).map(|period| (period, len_of(so_far, period)));
                    let (period, len) = longest.rev().max_by_key(|(_, len)| *len).unwrap();
                    let (found, found_len) = repetition.period_and_len();
                    if len >= KEPT {
                        prop_assert_eq!((found, found_len), (period, len), "at byte {}", end);
                    } else if found > 0 {
                        prop_assert_eq!(found_len, len_of(so_far, found));
                    }
                }
            }
        }
    }
}
