//! Strings: finds their end if quotes are not escaped, not closed or not `"`.

use serde_json::Value;

use super::space::LOOK_AHEAD;
use super::{Parsed, Parser, Place, Stop};
use crate::{Edit, EditKind, Level, Span};

/// The opening quotes of strings, each with its closing quotes.
const QUOTES: &[(char, &[char])] = &[
    ('"', &['"']),
    ('\'', &['\'']),
    ('`', &['`', '\'', '\u{B4}']),
    ('\u{B4}', &['\u{B4}', '\'']),
    ('\u{201C}', &['\u{201D}', '\u{201C}', '"']),
    ('\u{201D}', &['\u{201D}', '"']),
    ('\u{201E}', &['\u{201C}', '\u{201D}', '"']),
    ('\u{2018}', &['\u{2019}', '\u{2018}', '\'']),
    ('\u{2019}', &['\u{2019}', '\'']),
    ('\u{AB}', &['\u{BB}']),
];

/// The result of reading a string.
struct Text {
    text: String,
    /// Whether the text ended inside the string.
    cut: bool,
    /// Whether a quote or a line end inside the string may be its intended end.
    doubtful: bool,
}

impl Parser<'_> {
    /// Returns the closing quotes of a string that begins here; `None` if no string begins here.
    pub(super) fn quote(&self) -> Option<&'static [char]> {
        match self.peek()? {
            b'"' => Some(QUOTES[0].1),
            b'\'' | b'`' | 0x80.. => {
                let opening = self.source.char(self.at)?;
                QUOTES.iter().find(|(open, _)| *open == opening).map(|(_, closing)| *closing)
            }
            _ => None,
        }
    }

    /// Reads a string value, joined with the strings after `+`.
    pub(super) fn strings(&mut self, place: Place) -> Parsed<String> {
        let mut text = self.string(place)?.text;
        while self.level >= Level::Lenient {
            let plus = self.skip_space(self.at);
            if self.source.byte(plus) != Some(b'+') {
                break;
            }
            let start = self.at;
            self.at = self.skip_space(plus + 1);
            if self.quote().is_none() {
                self.at = start;
                break;
            }
            self.edit(EditKind::Concatenation, Span::new(start, self.at), "")?;
            text.push_str(&self.string(place)?.text);
        }
        Ok(text)
    }

    /// Reads an object's name, quoted or not; `None` if the text ends inside it.
    pub(super) fn key(&mut self) -> Parsed<Option<String>> {
        if self.quote().is_some() {
            let key = self.string(Place::Key)?;
            return Ok(if key.cut { None } else { Some(key.text) });
        }
        let end = self
            .source
            .find(self.at, |c| matches!(c, ':' | '=' | ',' | '{' | '}' | '[' | ']' | '"' | '\n' | '\r'));
        let name = self.source.slice(self.at, end).trim_end().to_owned();
        let span = Span::new(self.at, self.at + name.len());
        self.edit(EditKind::MissingQuote, span, &format!("\"{name}\""))?;
        self.at = span.end;
        Ok(if self.skip_space(self.at) >= self.source.end() { None } else { Some(name) })
    }

    fn string(&mut self, place: Place) -> Parsed<Text> {
        let (start, mark) = (self.at, self.edits.len());
        let closing = self.quote().unwrap_or(QUOTES[0].1);
        if let Some(text) = self.triple_quoted()? {
            return Ok(text);
        }
        let text = self.string_until(place, closing, false)?;
        if place == Place::Key
            && !text.cut
            && let Some(at) = self.quote_inside(start, mark)
        {
            let message = "a quote inside of a name: escape it as \\\"".to_owned();
            return Err(Stop::Syntax { at, message });
        }
        if !(text.cut && text.doubtful && self.level >= Level::Lenient) {
            return Ok(text);
        }
        // The string ran to the end of the text over quotes or line ends that look like the rest of the document: its own
        // closing quote is probably missing.
        let (cut_at, cut_edits) = (self.at, self.edits.split_off(mark));
        let closers = self.closers.take();
        self.at = start;
        let shorter = self.string_until(place, closing, true)?;
        if shorter.cut {
            self.edits.truncate(mark);
            self.edits.extend(cut_edits);
            (self.at, self.closers) = (cut_at, closers);
            return Ok(text);
        }
        Ok(shorter)
    }

    /// Returns the first quote inside of the string since `start`, by the edits since `mark`. An apostrophe between two letters is none.
    fn quote_inside(&self, start: usize, mark: usize) -> Option<usize> {
        let is_apostrophe = |at: usize, end: usize| {
            self.source.char(at) != Some('"')
                && self.source.slice(start, at).ends_with(char::is_alphanumeric)
                && self.source.char(end).is_some_and(char::is_alphanumeric)
        };
        let inner = self.edits.iter().skip(mark).filter(|edit| edit.kind == EditKind::InnerQuote);
        inner.map(|edit| edit.span).find(|span| !is_apostrophe(span.start, span.end)).map(|span| span.start)
    }

    /// Reads Python's `"""text"""`, if one begins here and ends.
    fn triple_quoted(&mut self) -> Parsed<Option<Text>> {
        let (start, mark) = (self.at, "\"\"\"");
        if self.level < Level::Lenient || !self.source.starts_with(start, mark) {
            return Ok(None);
        }
        let inner = start + mark.len();
        let Some(close) = self.source.find_word(inner, mark).filter(|close| *close > inner) else {
            return Ok(None);
        };
        let text = self.source.slice(inner, close).to_owned();
        self.at = close + mark.len();
        self.edit(EditKind::Quote, Span::new(start, self.at), &Value::from(text.as_str()).to_string())?;
        Ok(Some(Text { text, cut: false, doubtful: false }))
    }

    /// Reads a string from its opening quote on. If `at_delimiter`, the closing quote is missing, and the first character
    /// that can end a value ends the string.
    fn string_until(&mut self, place: Place, closing: &[char], at_delimiter: bool) -> Parsed<Text> {
        let start = self.at;
        let opening = self.source.char(start).unwrap_or('"');
        if opening != '"' {
            self.edit(EditKind::Quote, Span::new(start, start + opening.len_utf8()), "\"")?;
        }
        self.at += opening.len_utf8();
        let mut out = String::new();
        let mut doubtful = false;
        loop {
            let ends_name = |c: char| at_delimiter && place == Place::Key && ends_value(c, place);
            let plain = self.source.find(self.at, |c| is_special(c) || ends_name(c));
            out.push_str(self.source.slice(self.at, plain));
            self.at = plain;
            self.check_work()?;
            let Some(c) = self.source.char(self.at) else {
                self.close_at_end(self.source.end(), "\"");
                let raw = self.source.slice(start, self.source.end());
                let doubtful = doubtful || raw.trim_end().ends_with(['}', ']']);
                return Ok(Text { text: out, cut: true, doubtful });
            };
            if at_delimiter && ends_value(c, place) {
                let kept = out.trim_end().len();
                self.edit(EditKind::MissingQuote, Span::at(self.at - (out.len() - kept)), "\"")?;
                out.truncate(kept);
                return Ok(Text { text: out, cut: false, doubtful });
            }
            if c == '\\' {
                self.escape(&mut out)?;
                continue;
            }
            if closing.contains(&c) {
                if at_delimiter || self.level < Level::Lenient || self.closes(self.at + c.len_utf8(), place) {
                    self.at += c.len_utf8();
                    return Ok(Text { text: out, cut: false, doubtful });
                }
                if !doubtful && self.is_doubled(c, &out, place)? {
                    return Ok(Text { text: out, cut: false, doubtful });
                }
                if self.next_string_ends_this(&mut out, place, doubtful)? {
                    return Ok(Text { text: out, cut: false, doubtful: true });
                }
                doubtful = true;
                self.edit(
                    EditKind::InnerQuote,
                    Span::new(self.at, self.at + c.len_utf8()),
                    &format!("\\{c}"),
                )?;
            } else if c == '\n' && self.level >= Level::Lenient && self.line_ends_string(&mut out, place)? {
                return Ok(Text { text: out, cut: false, doubtful });
            } else if c < ' ' {
                let with = serde_json::to_string(&c).unwrap_or_default();
                self.edit(
                    EditKind::ControlCharacter,
                    Span::new(self.at, self.at + 1),
                    with.trim_matches('"'),
                )?;
            }
            out.push(c);
            self.at += c.len_utf8();
        }
    }

    /// Returns whether the quote before byte `after` ends the string, judged by the text after it.
    pub(super) fn closes(&self, after: usize, place: Place) -> bool {
        let next = self.skip_space(after);
        let Some(byte) = self.source.byte(next) else { return true };
        let gap = self.source.slice(after, next);
        let new_line = gap.contains('\n');
        match (byte, place) {
            (b':', _) => place == Place::Key,
            (b'=' | b'"' | b'\'', Place::Key) => true,
            (b'}' | b']' | b')', Place::Root) => false,
            (b'}', _) => self.open.contains(&b'{'),
            (b']', _) => self.open.contains(&b'['),
            (b')', _) => self.open.contains(&b'('),
            (b',', Place::Member) => {
                let then = self.skip_space(next + 1);
                matches!(self.source.byte(then), None | Some(b'}' | b']'))
                    || self.source.byte(then) == Some(b'{') && self.is_item()
                    || self.looks_like_key(then)
            }
            (b',', Place::Item) => {
                let then = self.skip_space(next + 1);
                self.source.byte(then).is_none_or(|b| starts_value(b) || matches!(b, b'}' | b']' | b','))
                    || self.literal_at(then)
            }
            (b',', Place::Key) => true,
            (b'+', _) => {
                self.source.byte(self.skip_space(next + 1)).is_some_and(|b| matches!(b, b'"' | b'\''))
            }
            (_, Place::Member) => (new_line || matches!(byte, b'"' | b'\'')) && self.looks_like_key(next),
            (_, Place::Item) => {
                matches!(byte, b'"' | b'\'' | b'{' | b'[') && !gap.is_empty()
                    || new_line && starts_value(byte)
            }
            (_, Place::Key | Place::Root) => false,
        }
    }

    /// Returns whether a member's name and its colon begin at `at`. A name that the end of the text cuts off counts.
    fn looks_like_key(&self, at: usize) -> bool {
        let mut chars = self.source.until(at + LOOK_AHEAD).chars(at);
        let Some((_, first)) = chars.next() else { return true };
        let quoted = QUOTES.iter().find(|(open, _)| *open == first).map(|(_, closing)| *closing);
        let mut escaped = false;
        // A quote before a separator rather ends a text: only a colon shows that a name begins.
        let separates =
            self.source.byte(at + first.len_utf8()).is_some_and(|b| matches!(b, b',' | b'}' | b']'));
        for (i, c) in chars {
            match (quoted, c) {
                _ if escaped => escaped = false,
                (_, '\\') => escaped = true,
                (Some(closing), c) if closing.contains(&c) => {
                    let next = self.source.byte(self.skip_space(i + c.len_utf8()));
                    return next.map_or(!separates, |b| b == b':');
                }
                (Some(_), '\n') => return false,
                (None, ':') => return true,
                (None, c) if !(c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.')) => {
                    return c == ' ' && self.source.byte(self.skip_space(i)) == Some(b':');
                }
                _ => {}
            }
        }
        !(quoted.is_some() && separates) && at + LOOK_AHEAD >= self.source.end()
    }

    /// Returns whether `true`, `false`, `null` or a Python literal begins at `at`.
    fn literal_at(&self, at: usize) -> bool {
        ["true", "false", "null", "True", "False", "None"].into_iter().any(|word| {
            self.source.starts_with(at, word)
                && !self.source.byte(at + word.len()).is_some_and(|b| b.is_ascii_alphanumeric())
        })
    }

    /// Ends the string at a raw line end if the next line continues the document, because the closing quote is missing
    /// then. Returns whether it did.
    fn line_ends_string(&mut self, out: &mut String, place: Place) -> Parsed<bool> {
        let next = self.skip_space(self.at);
        let quoted = self.source.byte(next).is_some_and(|b| matches!(b, b'"' | b'\''));
        if place == Place::Member && quoted && self.looks_like_key(next) {
            self.end_before(out, ',')
        } else {
            Ok(false)
        }
    }

    /// Ends the string before a comma if the quote after the comma begins the next name, or the next item of a list in
    /// which no quote stood before, and a name before a colon if the quote begins its value, because the closing quote is
    /// missing then. Returns whether it did.
    fn next_string_ends_this(&mut self, out: &mut String, place: Place, doubtful: bool) -> Parsed<bool> {
        let separator = if place == Place::Key { ':' } else { ',' };
        let begins_next = out.trim_end().ends_with(separator)
            && match place {
                Place::Member => self.looks_like_key(self.at),
                Place::Item => !doubtful && self.is_whole_string(self.at, place),
                Place::Key => !doubtful && self.is_whole_string(self.at, Place::Member),
                Place::Root => false,
            };
        if begins_next { self.end_before(out, separator) } else { Ok(false) }
    }

    /// Returns whether a string that begins at `at` ends at its first quote, and its list or object goes on or ends after it.
    fn is_whole_string(&self, at: usize, place: Place) -> bool {
        let Some(quote) = self.source.char(at) else { return false };
        let start = at + quote.len_utf8();
        let close = self.source.until(start + LOOK_AHEAD).find(start, |c| c == quote);
        close > start
            && self.source.char(close) == Some(quote)
            && self.closes(close + quote.len_utf8(), place)
    }

    /// Ends the string at quotes that stand twice or more: in `"a""b"` a comma is missing, in `"a"""` the last two are
    /// too many. Returns whether it did. `"say ""a"" now"` goes on.
    fn is_doubled(&mut self, quote: char, out: &str, place: Place) -> Parsed<bool> {
        let end = self.at + quote.len_utf8();
        let run = self.source.until(end + LOOK_AHEAD).find(end, |c| c != quote);
        let lacks_comma = place == Place::Item
            && run == end + quote.len_utf8()
            && out.ends_with(|c: char| !c.is_whitespace())
            && self.source.char(run).is_some_and(char::is_alphanumeric);
        if lacks_comma {
            self.at = end;
            return Ok(true);
        }
        if run > end && self.closes(run, place) {
            self.edit(EditKind::Junk, Span::new(end, run), "")?;
            self.at = run;
            return Ok(true);
        }
        Ok(false)
    }

    /// Ends the string before its trailing separator and white space. Returns whether it did: not if an escape stands there.
    fn end_before(&mut self, out: &mut String, separator: char) -> Parsed<bool> {
        let kept = out.trim_end().trim_end_matches(separator).trim_end().len();
        let end = self.at - (out.len() - kept);
        if !out.ends_with(self.source.slice(end, self.at)) {
            return Ok(false);
        }
        self.at = end;
        self.edit(EditKind::MissingQuote, Span::at(self.at), "\"")?;
        out.truncate(kept);
        Ok(true)
    }

    /// Reads one escape sequence, from its backslash on.
    fn escape(&mut self, out: &mut String) -> Parsed<()> {
        let start = self.at;
        let Some(c) = self.source.char(start + 1) else {
            self.close_at_end(start, "");
            return Ok(());
        };
        self.at += 1 + c.len_utf8();
        let read = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{C}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape(start, out),
            _ => return self.odd_escape(start, c, out),
        };
        out.push(read);
        Ok(())
    }

    fn unicode_escape(&mut self, start: usize, out: &mut String) -> Parsed<()> {
        let digits = |at: usize| {
            let hex = self.source.slice(at, at + 4);
            let all_hex = hex.len() == 4 && hex.bytes().all(|b| b.is_ascii_hexdigit());
            if all_hex { u32::from_str_radix(hex, 16).ok() } else { None }
        };
        let first = digits(self.at);
        let second = match first {
            Some(0xD800..=0xDBFF) if self.source.starts_with(self.at + 4, "\\u") => digits(self.at + 6),
            _ => None,
        };
        if let (Some(high), Some(low @ 0xDC00..=0xDFFF)) = (first, second) {
            self.at += 10;
            out.extend(char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)));
            return Ok(());
        }
        match first {
            Some(code) => {
                self.at += 4;
                let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                if c == char::REPLACEMENT_CHARACTER && code != 0xFFFD {
                    self.edit(EditKind::Escape, Span::new(start, self.at), "\\ufffd")?;
                }
                out.push(c);
            }
            None if self.source.end() - self.at < 4
                && self.source.slice(self.at, self.source.end()).bytes().all(|b| b.is_ascii_hexdigit()) =>
            {
                self.close_at_end(start, "");
            }
            None => {
                self.edit(EditKind::Escape, Span::new(start, self.at), "\\\\u")?;
                out.push_str("\\u");
            }
        }
        Ok(())
    }

    /// Reads an escape that JSON does not define. Letters keep their backslash (paths, regular expressions, LaTeX); other
    /// characters lose it.
    fn odd_escape(&mut self, start: usize, c: char, out: &mut String) -> Parsed<()> {
        let hex = if c == 'x' {
            let hex = Some(self.source.slice(self.at, self.at + 2)).filter(|hex| hex.len() == 2);
            hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())
        } else {
            None
        };
        if let Some(code) = hex {
            self.at += 2;
            out.push(char::from(code));
        } else if c == '\n' {
            // A line continuation: neither the backslash nor the line end belongs to the string.
        } else if c.is_ascii_alphanumeric() {
            out.push('\\');
            out.push(c);
        } else {
            out.push(c);
        }
        let span = Span::new(start, self.at);
        if self.level < EditKind::Escape.level() {
            return Err(Stop::Syntax {
                at: start,
                message: format!("{} (read at level lenient)", EditKind::Escape),
            });
        }
        self.edits.push(Edit::new(EditKind::Escape, span, ""));
        Ok(())
    }
}

/// Returns whether a character inside a string may need special treatment.
fn is_special(c: char) -> bool {
    c < ' ' || matches!(c, '"' | '\\' | '\'' | '`' | ',' | '}' | ']') || !c.is_ascii()
}

/// Returns whether `c` can end a value whose closing quote is missing.
fn ends_value(c: char, place: Place) -> bool {
    match place {
        Place::Key => matches!(c, ':' | '\n'),
        Place::Member | Place::Item => matches!(c, ',' | '}' | ']' | '\n'),
        Place::Root => c == '\n',
    }
}

fn starts_value(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'{' | b'[' | b'-' | b'0'..=b'9') || byte >= 0x80
}
