//! Splits a text into tokens, each with the comments around it.

use formwork_json::Span;
use serde_json::{Number, Value};

use crate::ShapeError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'t> {
    /// One of `{ } [ ] : , | ?`.
    Sign(char),
    /// `string`, `low`, `user-id`.
    Word(&'t str),
    /// `"low"`.
    Text(String),
    /// `-1.5`.
    Number(Number),
    /// The end of the text.
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind<'t>,
    pub(crate) span: Span,
    /// The comments between this token and the previous one, except for those on the previous token's line.
    pub(crate) before: Vec<&'t str>,
    /// The comments after it on its line.
    pub(crate) after: Vec<&'t str>,
}

impl Kind<'_> {
    /// Returns the token as a message names it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Sign(sign) => format!("`{sign}`"),
            Self::Word(word) => format!("`{}`", cut(word)),
            Self::Text(text) => format!("the text {}", Value::from(cut(text))),
            Self::Number(number) => format!("the number {}", cut(&number.to_string())),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Returns a word, cut for a message.
pub(crate) fn cut(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Token<'t>, ShapeError> {
        let before = self.comments(false)?;
        let start = self.at;
        let kind = self.kind()?;
        let span = Span::new(start, self.at);
        let after = if kind == Kind::End { Vec::new() } else { self.comments(true)? };
        Ok(Token { kind, span, before, after })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, span: Span, message: impl Into<String>) -> ShapeError {
        ShapeError::new(self.text, span, message)
    }

    /// Skips white space and returns the comments: those on this line only, or all.
    fn comments(&mut self, on_this_line: bool) -> Result<Vec<&'t str>, ShapeError> {
        let mut found = Vec::new();
        loop {
            let rest = self.rest();
            let blank = |c: char| c.is_whitespace() && !(on_this_line && c == '\n');
            let comment = rest.trim_start_matches(blank);
            let start = self.at + (rest.len() - comment.len());
            let line = [("//", "/"), ("#", "")].iter().find_map(|(mark, more)| {
                let body = comment.strip_prefix(mark)?.split('\n').next().unwrap_or_default();
                Some((mark.len() + body.len(), body.strip_prefix(more).unwrap_or(body)))
            });
            if let Some((length, body)) = line {
                self.at = start + length;
                found.push(body);
            } else if let Some(body) = comment.strip_prefix("/*") {
                let Some((body, _)) = body.split_once("*/") else {
                    return Err(
                        self.error(Span::new(start, start + 2), "this comment has no end: expected `*/`")
                    );
                };
                self.at = start + 4 + body.len();
                found.push(body.strip_prefix('*').unwrap_or(body));
            } else {
                self.at = start;
                return Ok(found);
            }
        }
    }

    fn kind(&mut self) -> Result<Kind<'t>, ShapeError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Kind::End) };
        match first {
            '{' | '}' | '[' | ']' | ':' | ',' | '|' | '?' | '~' => {
                self.at += 1;
                Ok(Kind::Sign(first))
            }
            '"' => self.quoted(rest),
            '-' | '0'..='9' => self.number(rest),
            c if c.is_alphabetic() || matches!(c, '_' | '$') => {
                let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.');
                let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                self.at += end;
                Ok(Kind::Word(rest.get(..end).unwrap_or_default()))
            }
            other => {
                let span = Span::new(self.at, self.at + other.len_utf8());
                Err(self.error(
                    span,
                    match other {
                        '\'' | '`' | '“' | '”' | '‘' | '’' => {
                            format!("{other:?} is no quotation mark of JSON: write \"…\"")
                        }
                        '(' | ')' => format!("`{other}` has no meaning here: alternatives need no brackets"),
                        '<' | '>' => format!("`{other}` has no meaning here: an array is written `[string]`"),
                        '=' | ';' => {
                            format!("`{other}` has no meaning here: write `\"name\": type` and `,` between")
                        }
                        other => format!("{other:?} has no meaning here"),
                    },
                ))
            }
        }
    }

    fn quoted(&mut self, rest: &'t str) -> Result<Kind<'t>, ShapeError> {
        let body = rest.get(1..).unwrap_or_default();
        // Strings without escapes need no JSON parser.
        let special = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        let plain = body.bytes().position(special).unwrap_or(body.len());
        if body.as_bytes().get(plain) == Some(&b'"') {
            self.at += plain + 2;
            return Ok(Kind::Text(body.get(..plain).unwrap_or_default().to_owned()));
        }
        let mut is_escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                '\n' => break,
                '"' if !is_escaped => {
                    let span = Span::new(self.at, self.at + at + 1);
                    let text = serde_json::from_str(span.of(self.text));
                    let text = text.map_err(|_| {
                        let message =
                            "this text is no JSON string: expected the escapes of RFC 8259, section 7";
                        self.error(span, message)
                    })?;
                    self.at = span.end;
                    return Ok(Kind::Text(text));
                }
                c => is_escaped = c == '\\' && !is_escaped,
            }
        }
        Err(self.error(Span::new(self.at, self.at + 1), "this text has no end on its line: expected `\"`"))
    }

    fn number(&mut self, rest: &'t str) -> Result<Kind<'t>, ShapeError> {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '+' | '-' | '.')));
        let span = Span::new(self.at, self.at + end.unwrap_or(rest.len()));
        let number = serde_json::from_str(span.of(self.text));
        let number = number.map_err(|_| {
            let excerpt = cut(span.of(self.text));
            self.error(
                span,
                format!("`{excerpt}` is no JSON number: expected one such as -1.5, or a \"text\""),
            )
        })?;
        self.at = span.end;
        Ok(Kind::Number(number))
    }
}
