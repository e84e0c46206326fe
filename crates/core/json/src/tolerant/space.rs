use super::{Parsed, Parser};
use crate::source::Source;
use crate::{EditKind, Level, Span};

impl Parser<'_> {
    /// Skips white space and comments.
    pub(super) fn space(&mut self) -> Parsed<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                // At levels that do not read comments, searching for their end would be wasted work.
                Some(b'/' | b'#') if self.level < EditKind::Comment.level() => return Ok(()),
                Some(b'/' | b'#') => match comment_end(&self.source, self.at) {
                    Some(end) => {
                        self.check_work()?;
                        self.edit(EditKind::Comment, Span::new(self.at, end), "")?;
                        self.at = end;
                    }
                    None => return Ok(()),
                },
                Some(0x80..) => match self.source.char(self.at).filter(|c| is_odd_space(*c)) {
                    Some(c) => {
                        self.edit(EditKind::Whitespace, Span::new(self.at, self.at + c.len_utf8()), " ")?;
                        self.at += c.len_utf8();
                    }
                    None => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// Returns the offset of the first byte from `at` on that is neither white space nor part of a comment, within
    /// [`LOOK_AHEAD`] bytes.
    pub(super) fn skip_space(&self, mut at: usize) -> usize {
        let limit = (at + LOOK_AHEAD).min(self.source.end());
        while at < limit {
            match self.source.byte(at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
                Some(b'/' | b'#') if self.level >= Level::Lenient => {
                    match comment_end(&self.source.until(limit), at) {
                        Some(end) => at = end,
                        None => break,
                    }
                }
                Some(0xC2) if self.source.byte(at + 1) == Some(0xA0) => at += 2,
                _ => break,
            }
        }
        at
    }
}

/// The maximum look-ahead of a decision in bytes, which keeps reading linear.
pub(super) const LOOK_AHEAD: usize = 256;

/// Returns the offset after the comment that begins at `at`, if one does.
fn comment_end(source: &Source<'_>, at: usize) -> Option<usize> {
    if source.starts_with(at, "/*") {
        return Some(source.find_word(at + 2, "*/").map_or(source.end(), |close| close + 2));
    }
    let is_line = source.starts_with(at, "//") || source.starts_with(at, "#");
    is_line.then(|| source.find(at, |c| c == '\n'))
}

/// Returns whether a character is white space that JSON does not define, or is invisible.
pub(crate) fn is_odd_space(c: char) -> bool {
    !c.is_ascii()
        && (c.is_whitespace() || matches!(c, '\u{FEFF}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{180E}'))
}
