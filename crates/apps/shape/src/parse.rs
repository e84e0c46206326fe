//! Parses tokens into a shape.

use formwork_json::{Span, line_column};
use serde_json::Value;

use crate::lex::{self, Lexer, Token, cut};
use crate::names::{advice, named, near_type};
use crate::{Field, Kind, MAX_BYTES, MAX_DEPTH, Node, ShapeError};

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Node, ShapeError> {
    if text.len() > MAX_BYTES {
        let message =
            format!("this is too long for a shape: {} bytes, and at most {MAX_BYTES} are taken", text.len());
        return Err(ShapeError::new(text, Span::at(0), message));
    }
    let mut lexer = Lexer::new(text);
    let ahead = lexer.next()?;
    let mut parser = Parser { text, lexer, ahead, depth: 0, notes: Vec::new() };
    parser.notes.append(&mut parser.ahead.before);
    if parser.ahead.kind == lex::Kind::End {
        return Err(parser.wrong("the shape is empty: expected a type, most often `{\"name\": string}`"));
    }
    let root = parser.value()?;
    if parser.ahead.kind != lex::Kind::End {
        return Err(parser.expected("the end of the shape"));
    }
    let notes = std::mem::take(&mut parser.notes);
    let last = std::mem::take(&mut parser.ahead.before);
    Ok(described(root, notes.into_iter().chain(last)))
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    ahead: Token<'t>,
    depth: usize,
    /// The comments of the innermost open field, or of the whole shape outside all fields.
    notes: Vec<&'t str>,
}

/// One alternative.
enum Term<'t> {
    Type(Node),
    Literal(Value),
    /// A word that is not a type: a literal among other literals, otherwise a mistake.
    Word(&'t str),
}

impl<'t> Parser<'t> {
    fn wrong(&self, message: impl Into<String>) -> ShapeError {
        self.wrong_at(self.ahead.span, message)
    }

    fn expected(&self, what: &str) -> ShapeError {
        self.wrong(format!("expected {what}, found {}", self.ahead.kind.words()))
    }

    fn wrong_at(&self, span: Span, message: impl Into<String>) -> ShapeError {
        ShapeError::new(self.text, span, message)
    }

    /// Takes the next token; its comments belong to the innermost open field.
    fn take(&mut self) -> Result<Token<'t>, ShapeError> {
        let mut token = std::mem::replace(&mut self.ahead, self.lexer.next()?);
        self.notes.append(&mut token.before);
        self.notes.append(&mut token.after);
        Ok(token)
    }

    fn is_at(&self, sign: char) -> bool {
        self.ahead.kind == lex::Kind::Sign(sign)
    }

    /// Parses all alternatives of one place.
    fn value(&mut self) -> Result<Node, ShapeError> {
        let mut terms = vec![self.term()?];
        while self.is_at('|') {
            self.take()?;
            terms.push(self.term()?);
        }
        if self.is_at('[') && self.ahead.span.start == terms.last().map_or(0, |(_, span)| span.end) {
            return Err(self.wrong("an array is written with brackets around its items: `[string]`"));
        }
        match <[_; 1]>::try_from(terms) {
            Ok([(Term::Type(node), _)]) => Ok(node),
            Ok([(Term::Literal(value), _)]) => Ok(Node::new(Kind::OneOf(vec![value]))),
            Ok([(Term::Word(word), span)]) => {
                Err(self.wrong_at(span, format!("there is no type `{}`: {}", cut(word), advice(word))))
            }
            Err(terms) => self.alternatives(terms),
        }
    }

    /// Returns the node for literals, or for one type and `null`.
    fn alternatives(&self, terms: Vec<(Term<'t>, Span)>) -> Result<Node, ShapeError> {
        let (mut node, mut values): (Option<Node>, Vec<(Value, Span)>) = (None, Vec::new());
        for (term, span) in terms {
            let value = match term {
                Term::Type(_) if node.is_some() => {
                    let message = "a place has one type, and may have `null` beside it: write `any`, and say in a \
                                   comment what it may be";
                    return Err(self.wrong_at(span, message));
                }
                Term::Type(found) => {
                    node = Some(found);
                    continue;
                }
                Term::Literal(value) => value,
                Term::Word(word) => {
                    if let Some(near) = near_type(word) {
                        let quoted = Value::from(cut(word));
                        let message = format!(
                            "there is no type `{}`: did you mean `{near}`? The text is written {quoted}",
                            cut(word)
                        );
                        return Err(self.wrong_at(span, message));
                    }
                    Value::from(word)
                }
            };
            if values.iter().any(|(known, _)| *known == value) {
                return Err(self.wrong_at(
                    span,
                    format!("{} is an alternative already: leave it out", cut(&value.to_string())),
                ));
            }
            values.push((value, span));
        }
        let Some(node) = node else {
            return Ok(Node::new(Kind::OneOf(values.into_iter().map(|(value, _)| value).collect())));
        };
        match values.iter().find(|(value, _)| !value.is_null()) {
            Some((value, span)) => {
                let message = format!(
                    "{} cannot stand beside a type: a place has either one type, with `null` if need be, or alternatives \
                     that are all spelled out",
                    cut(&value.to_string())
                );
                Err(self.wrong_at(*span, message))
            }
            None => Ok(node.or_null()),
        }
    }

    fn term(&mut self) -> Result<(Term<'t>, Span), ShapeError> {
        let span = self.ahead.span;
        let term = match &self.ahead.kind {
            lex::Kind::Sign('{') => return Ok((Term::Type(self.nested(Self::object)?), span)),
            lex::Kind::Sign('[') => return Ok((Term::Type(self.nested(Self::array)?), span)),
            lex::Kind::Word("null") => Term::Literal(Value::Null),
            lex::Kind::Word("true") => Term::Literal(Value::Bool(true)),
            lex::Kind::Word("false") => Term::Literal(Value::Bool(false)),
            lex::Kind::Word(word) => match named(word) {
                Some(kind) => Term::Type(Node::new(kind)),
                None => Term::Word(word),
            },
            lex::Kind::Text(text) => Term::Literal(Value::from(text.as_str())),
            lex::Kind::Number(number) => Term::Literal(Value::Number(number.clone())),
            _ => return Err(self.expected("a type")),
        };
        self.take()?;
        Ok((term, span))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Node, ShapeError>) -> Result<Node, ShapeError> {
        if self.depth >= MAX_DEPTH {
            return Err(
                self.wrong(format!("this is nested too deeply: at most {MAX_DEPTH} levels are taken"))
            );
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn array(&mut self) -> Result<Node, ShapeError> {
        let open = self.take()?;
        if self.is_at(']') {
            return Err(self.wrong("expected the type of the items, as in `[string]`, found `]`"));
        }
        let notes = std::mem::take(&mut self.ahead.before);
        let item = described(self.value()?, notes);
        if self.is_at(',') {
            return Err(self.wrong("an array has one type for all of its items: expected `]`, found `,`"));
        }
        self.close(']', open.span)?;
        Ok(Node::new(Kind::Array(Box::new(item))))
    }

    fn object(&mut self) -> Result<Node, ShapeError> {
        let open = self.take()?;
        let (mut fields, mut spans) = (Vec::new(), Vec::new());
        while !self.is_at('}') {
            spans.push(self.ahead.span);
            let outer = std::mem::take(&mut self.notes);
            let field = self.field(open.span)?;
            let more = self.is_at(',');
            if more {
                self.take()?;
            }
            let notes = std::mem::replace(&mut self.notes, outer);
            fields.push(Field { node: described(field.node, notes), ..field });
            if !more && !self.is_at('}') {
                if self.ahead.kind == lex::Kind::End {
                    break;
                }
                return Err(self.expected("`,` and the next field, or `}`"));
            }
        }
        self.close('}', open.span)?;
        match twins(&fields) {
            Some((first, second)) => Err(self.twice(&fields, &spans, first, second)),
            None => Ok(Node::new(Kind::Object(fields))),
        }
    }

    fn twice(&self, fields: &[Field], spans: &[Span], first: usize, second: usize) -> ShapeError {
        let at = |index: usize| spans.get(index).copied().unwrap_or_default();
        let name = fields.get(second).map(|field| cut(&field.name)).unwrap_or_default();
        let (line, _) = line_column(self.text, at(first).start);
        let message = format!("the field `{name}` is there already, on line {line}: take one of them out");
        self.wrong_at(at(second), message)
    }

    fn field(&mut self, open: Span) -> Result<Field, ShapeError> {
        let name = match &self.ahead.kind {
            lex::Kind::Text(text) => text.clone(),
            lex::Kind::Word(word) => (*word).to_owned(),
            lex::Kind::End => return Err(self.unclosed('}', open)),
            _ => return Err(self.expected("the name of a field, as in `\"name\": string`")),
        };
        self.take()?;
        let optional = self.is_at('?');
        if optional {
            self.take()?;
        }
        if !self.is_at(':') {
            return Err(self.expected("`:` and a type after the name of the field"));
        }
        self.take()?;
        Ok(Field { name, optional, node: self.value()? })
    }

    fn close(&mut self, sign: char, open: Span) -> Result<(), ShapeError> {
        if self.is_at(sign) {
            return self.take().map(|_| ());
        }
        if self.ahead.kind == lex::Kind::End {
            return Err(self.unclosed(sign, open));
        }
        Err(self.expected(&format!("`{sign}`")))
    }

    fn unclosed(&self, sign: char, open: Span) -> ShapeError {
        let found = open.of(self.text);
        self.wrong_at(open, format!("this `{found}` is never closed: expected `{sign}` before the end"))
    }
}

/// Returns the positions of the first duplicate field: the earlier and the later one.
fn twins(fields: &[Field]) -> Option<(usize, usize)> {
    let mut names: Vec<(&str, usize)> =
        fields.iter().enumerate().map(|(index, field)| (field.name.as_str(), index)).collect();
    names.sort_unstable();
    let pairs = names.windows(2).filter_map(|pair| match pair {
        [(one, first), (other, second)] if one == other => Some((*first, *second)),
        _ => None,
    });
    pairs.min_by_key(|(_, second)| *second)
}

/// Returns a node with its comments as the description.
fn described<'t>(node: Node, notes: impl IntoIterator<Item = &'t str>) -> Node {
    node.with_description(&notes.into_iter().collect::<Vec<_>>().join(" "))
}
