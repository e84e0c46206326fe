//! A text that counts every byte that is read, to guarantee that reading takes linear time.

use std::cell::Cell;

/// The opening and closing marks of reasoning blocks, as models write them.
pub(crate) const REASONING: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// The maximum number of bytes that may be examined for each byte of the text, retries and look-ahead included.
pub(crate) const WORK_FACTOR: usize = 64;

/// The number of bytes that may be examined in addition to [`WORK_FACTOR`], so that short texts never reach the limit.
const WORK_BASE: usize = 16 * 1024;

/// Counts the bytes that are examined while one text is read.
#[derive(Debug)]
pub(crate) struct Work {
    looked: Cell<usize>,
    limit: usize,
}

impl Work {
    /// Returns the work that is allowed for a text of this many bytes.
    pub(crate) const fn for_len(len: usize) -> Self {
        Self { looked: Cell::new(0), limit: len.saturating_mul(WORK_FACTOR).saturating_add(WORK_BASE) }
    }

    /// Counts `bytes` more.
    pub(crate) fn count(&self, bytes: usize) {
        self.looked.set(self.looked.get().wrapping_add(bytes));
    }

    /// Returns whether the limit is reached, so that reading has to stop.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.looked.get() > self.limit
    }

    /// Returns the number of bytes that were examined so far.
    #[cfg(test)]
    pub(crate) const fn looked(&self) -> usize {
        self.looked.get()
    }
}

/// The bytes of a text from its start up to `end`, readable only through methods that count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'t> {
    text: &'t str,
    end: usize,
    work: &'t Work,
}

impl<'t> Source<'t> {
    /// Creates a source of the first `end` bytes of `text`, or all of it if it is shorter.
    pub(crate) fn new(text: &'t str, end: usize, work: &'t Work) -> Self {
        Self { text, end: end.min(text.len()), work }
    }

    /// Returns the offset after the last byte.
    pub(crate) const fn end(&self) -> usize {
        self.end
    }

    /// Returns the same text up to `end`, rounded up to the next character.
    pub(crate) fn until(&self, end: usize) -> Self {
        let end = (end..self.end).find(|end| self.text.is_char_boundary(*end)).unwrap_or(self.end);
        Self { end, ..*self }
    }

    /// Returns whether the limit of work is reached.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.work.is_used_up()
    }

    /// Returns the byte at `at`; `None` from the end on.
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.work.count(1);
        if at < self.end { self.text.as_bytes().get(at).copied() } else { None }
    }

    /// Returns the character that begins at `at`; `None` from the end on.
    pub(crate) fn char(&self, at: usize) -> Option<char> {
        let c = self.uncounted(at).chars().next()?;
        self.work.count(c.len_utf8());
        Some(c)
    }

    /// Returns the characters from `at` on, each with its byte offset.
    pub(crate) fn chars(&self, at: usize) -> impl Iterator<Item = (usize, char)> + use<'t> {
        let work = self.work;
        let rest = self.uncounted(at);
        rest.char_indices()
            .map(move |(offset, c)| (at + offset, c))
            .inspect(move |(_, c)| work.count(c.len_utf8()))
    }

    /// Returns whether the text continues with `word` at `at`.
    pub(crate) fn starts_with(&self, at: usize, word: &str) -> bool {
        self.same(at, word, |a, b| a == b)
    }

    /// Returns whether the text continues with `tag` at `at`, ignoring ASCII case.
    pub(crate) fn starts_with_tag(&self, at: usize, tag: &str) -> bool {
        self.same(at, tag, |a, b| a.eq_ignore_ascii_case(&b))
    }

    fn same(&self, at: usize, word: &str, same: impl Fn(u8, u8) -> bool) -> bool {
        let rest = self.text.as_bytes().get(at..self.end).unwrap_or_default();
        let matched = rest.iter().zip(word.bytes()).take_while(|(a, b)| same(**a, *b)).count();
        self.work.count(matched + 1);
        matched == word.len()
    }

    /// Returns the offset of the first character from `at` on that `wanted` accepts; the end if there is none.
    pub(crate) fn find(&self, at: usize, matches: impl FnMut(char) -> bool) -> usize {
        self.found(at, self.uncounted(at).find(matches))
    }

    /// Returns the offset of the first `word` from `at` on; `None` if there is none.
    pub(crate) fn find_word(&self, at: usize, word: &str) -> Option<usize> {
        let found = self.uncounted(at).find(word);
        let end = self.found(at, found);
        found.map(|_| end)
    }

    /// Returns the text from `start` up to `end`; empty if that is not a part of the text.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.work.count(end.saturating_sub(start));
        self.text.get(start..end.min(self.end)).unwrap_or_default()
    }

    /// Counts a search from `at` on, and turns its result into an offset.
    fn found(&self, at: usize, found: Option<usize>) -> usize {
        let offset = found.map_or(self.end.max(at), |found| at + found);
        self.work.count(offset + 1 - at);
        offset
    }

    fn uncounted(&self, at: usize) -> &'t str {
        self.text.get(at..self.end).unwrap_or_default()
    }
}
