//! A text whose every byte that is read is counted: what proves that reading is linear.

use std::cell::Cell;

/// How many bytes a reading may look at for each byte of its text, retries and look-ahead included.
pub(crate) const WORK_FACTOR: usize = 64;

/// The bytes that every reading may look at beside those of [`WORK_FACTOR`], so that short texts never run out.
const WORK_BASE: usize = 16 * 1024;

/// Counts the bytes that were looked at while one text is read.
#[derive(Debug)]
pub(crate) struct Work {
    looked: Cell<usize>,
    limit: usize,
}

impl Work {
    /// The work that a text of this many bytes allows.
    pub(crate) const fn for_len(len: usize) -> Self {
        Self { looked: Cell::new(0), limit: len.saturating_mul(WORK_FACTOR).saturating_add(WORK_BASE) }
    }

    /// Counts `bytes` more.
    pub(crate) fn count(&self, bytes: usize) {
        self.looked.set(self.looked.get().wrapping_add(bytes));
    }

    /// Whether more was looked at than the text allows: it is to be given up.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.looked.get() > self.limit
    }

    /// How many bytes were looked at so far.
    #[cfg(test)]
    pub(crate) const fn looked(&self) -> usize {
        self.looked.get()
    }
}

/// The bytes of a text from its start up to `end`. They can be read only through methods that count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'t> {
    text: &'t str,
    end: usize,
    work: &'t Work,
}

impl<'t> Source<'t> {
    /// The first `end` bytes of `text`, or all of it if it is shorter.
    pub(crate) fn new(text: &'t str, end: usize, work: &'t Work) -> Self {
        Self { text, end: end.min(text.len()), work }
    }

    /// One past the last byte.
    pub(crate) const fn end(&self) -> usize {
        self.end
    }

    /// The same text up to `end`, rounded up to the next character.
    pub(crate) fn until(&self, end: usize) -> Self {
        let end = (end..self.end).find(|end| self.text.is_char_boundary(*end)).unwrap_or(self.end);
        Self { end, ..*self }
    }

    /// Whether more was looked at than the text allows.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.work.is_used_up()
    }

    /// The byte at `at`; `None` from the end on.
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.work.count(1);
        if at < self.end { self.text.as_bytes().get(at).copied() } else { None }
    }

    /// The character that begins at `at`; `None` from the end on.
    pub(crate) fn char(&self, at: usize) -> Option<char> {
        let c = self.uncounted(at).chars().next()?;
        self.work.count(c.len_utf8());
        Some(c)
    }

    /// The characters from `at` on, each with its byte offset.
    pub(crate) fn chars(&self, at: usize) -> impl Iterator<Item = (usize, char)> + use<'t> {
        let work = self.work;
        let rest = self.uncounted(at);
        rest.char_indices()
            .map(move |(offset, c)| (at + offset, c))
            .inspect(move |(_, c)| work.count(c.len_utf8()))
    }

    /// Whether `word` stands at `at`.
    pub(crate) fn starts_with(&self, at: usize, word: &str) -> bool {
        self.same(at, word, |a, b| a == b)
    }

    /// Whether `tag` stands at `at`, in capitals or not.
    pub(crate) fn starts_with_tag(&self, at: usize, tag: &str) -> bool {
        self.same(at, tag, |a, b| a.eq_ignore_ascii_case(&b))
    }

    fn same(&self, at: usize, word: &str, same: impl Fn(u8, u8) -> bool) -> bool {
        let rest = self.text.as_bytes().get(at..self.end).unwrap_or_default();
        let matched = rest.iter().zip(word.bytes()).take_while(|(a, b)| same(**a, *b)).count();
        self.work.count(matched + 1);
        matched == word.len()
    }

    /// The offset of the first character from `at` on that `wanted` names; the end if there is none.
    pub(crate) fn find(&self, at: usize, wanted: impl FnMut(char) -> bool) -> usize {
        self.found(at, self.uncounted(at).find(wanted))
    }

    /// The offset of the first `word` from `at` on; the end if there is none.
    pub(crate) fn find_word(&self, at: usize, word: &str) -> Option<usize> {
        let found = self.uncounted(at).find(word);
        let end = self.found(at, found);
        found.map(|_| end)
    }

    /// The bytes from `start` up to `end`; empty where that is no part of the text.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.work.count(end.saturating_sub(start));
        self.text.get(start..end.min(self.end)).unwrap_or_default()
    }

    /// Counts a search from `at` on, and turns what it found into an offset.
    fn found(&self, at: usize, found: Option<usize>) -> usize {
        let offset = found.map_or(self.end.max(at), |found| at + found);
        self.work.count(offset + 1 - at);
        offset
    }

    fn uncounted(&self, at: usize) -> &'t str {
        self.text.get(at..self.end).unwrap_or_default()
    }
}
