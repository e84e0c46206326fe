//! Parses tokens into a shape.

use formwork_json::{Span, line_column};
use serde_json::Value;

use crate::lex::{self, Lexer, Token, cut};
use crate::names::{advice, alone, named, near_type};
use crate::{Field, Kind, MAX_BYTES, MAX_DEPTH, Node, ShapeError};

/// Parses a whole text. `fields` is a list of fields without the brackets of an object.
pub(crate) fn parse(text: &str, is_fields: bool) -> Result<Node, ShapeError> {
    if text.len() > MAX_BYTES {
        let message =
            format!("this is too long for a shape: {} bytes, and at most {MAX_BYTES} are taken", text.len());
        return Err(ShapeError::new(text, Span::at(0), message));
    }
    let mut lexer = Lexer::new(text);
    let ahead = lexer.next()?;
    let mut parser = Parser { text, lexer, ahead, end: 0, depth: 0, notes: Vec::new() };
    parser.notes.append(&mut parser.ahead.before);
    if parser.ahead.kind == lex::Kind::End {
        return Err(parser.wrong("the shape is empty: expected a type, most often `{\"name\": string}`"));
    }
    let root = if is_fields { parser.fields()? } else { parser.value()? };
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
    /// The end of the last token in the text.
    end: usize,
    depth: usize,
    /// The comments of the innermost open field, or of the whole shape outside all fields.
    notes: Vec<&'t str>,
}

/// One alternative.
enum Term<'t> {
    Type(Node),
    Literal(Value),
    /// A word that is not a type, or one only if it is alone: a literal among other literals, otherwise a mistake.
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
        self.end = token.span.end;
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
        let is_null = |term: &Term<'_>| matches!(term, Term::Literal(Value::Null));
        if terms.iter().filter(|(term, _)| !is_null(term)).count() == 1 {
            for (term, _) in &mut terms {
                if let Term::Word(word) = term
                    && let Some(kind) = alone(word)
                {
                    *term = Term::Type(Node::new(kind));
                }
            }
        }
        if self.is_at('[') && self.ahead.span.start == terms.last().map_or(0, |(_, span)| span.end) {
            return Err(self.wrong("an array is written with brackets around its items: `[string]`"));
        }
        if self.is_at('?') {
            return Err(self.wrong(advice("optional")));
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
            lex::Kind::Word(word) => match named(word).filter(|_| alone(word).is_none()) {
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
        let object = self.members(Some(open.span))?;
        self.close('}', open.span)?;
        Ok(object)
    }

    /// Parses a list of fields without brackets. The end of a line separates fields, too.
    fn fields(&mut self) -> Result<Node, ShapeError> {
        if let Some(comma) = next_field(self.text) {
            let message = "a description ends with its line: write the next field on a line of its own, or leave out \
                           this comma";
            return Err(self.wrong_at(Span::new(comma, comma + 1), message));
        }
        self.members(None)
    }

    /// Parses the fields of an object; `open` is its bracket.
    fn members(&mut self, open: Option<Span>) -> Result<Node, ShapeError> {
        let (mut fields, mut spans) = (Vec::new(), Vec::new());
        // The comments before a list of fields describe its first field.
        let mut ahead = if open.is_none() { std::mem::take(&mut self.notes) } else { Vec::new() };
        while !self.is_at('}') && (open.is_some() || self.ahead.kind != lex::Kind::End) {
            spans.push(self.ahead.span);
            let outer = std::mem::replace(&mut self.notes, std::mem::take(&mut ahead));
            let field = self.field(open)?;
            let mut more = self.is_at(',');
            if more {
                self.take()?;
            } else if open.is_none() {
                let gap = Span::new(self.end, self.ahead.span.start);
                more = gap.of(self.text).contains('\n');
            }
            let notes = std::mem::replace(&mut self.notes, outer);
            fields.push(Field { node: described(field.node, notes), ..field });
            if !more && !self.is_at('}') {
                if self.ahead.kind == lex::Kind::End {
                    break;
                }
                return Err(self.expected(match open {
                    Some(_) => "`,` and the next field, or `}`",
                    None => "`,` and the next field",
                }));
            }
        }
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

    /// Parses a field. A field without a type is a string.
    fn field(&mut self, open: Option<Span>) -> Result<Field, ShapeError> {
        self.inside(open)?;
        let name = match &self.ahead.kind {
            lex::Kind::Text(text) => text.clone(),
            lex::Kind::Word(word) => (*word).to_owned(),
            _ => return Err(self.expected("the name of a field, as in `\"name\": string`")),
        };
        self.take()?;
        let mut marks = ['?', '~'].map(|mark| (mark, false));
        while let Some(mark) = marks.iter_mut().find(|(mark, is_set)| !is_set && self.is_at(*mark)) {
            mark.1 = true;
            self.take()?;
        }
        let [(_, optional), (_, grounded)] = marks;
        let is_line = || Span::new(self.end, self.ahead.span.start).of(self.text).contains('\n');
        let is_end = match open {
            Some(_) => self.is_at('}'),
            None => self.ahead.kind == lex::Kind::End || is_line(),
        };
        self.inside(open)?;
        if is_end || self.is_at(',') {
            return Ok(Field { name, optional, grounded, node: Node::new(Kind::String) });
        }
        if !self.is_at(':') {
            return Err(self.expected("`:` and a type after the name of the field"));
        }
        self.take()?;
        Ok(Field { name, optional, grounded, node: self.value()? })
    }

    /// Returns an error if the text ends inside of an object.
    fn inside(&self, open: Option<Span>) -> Result<(), ShapeError> {
        match open {
            Some(open) if self.ahead.kind == lex::Kind::End => Err(self.unclosed('}', open)),
            _ => Ok(()),
        }
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

/// Returns the comma before a field that a comment on the same line hides; `None` for a text of several lines, whose
/// comments have an end.
fn next_field(text: &str) -> Option<usize> {
    let text = text.trim_end();
    let comment = text.find('#').filter(|_| !text.contains('\n'))?;
    let commas = text.match_indices(',').map(|(at, _)| at).filter(|at| *at > comment);
    commas.into_iter().find(|at| {
        let after = text.get(at + 1..).unwrap_or_default().trim_start();
        let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '"');
        let rest = after.trim_start_matches(in_name).trim_start();
        rest.len() < after.len() && (rest.is_empty() || rest.starts_with([':', '?', '~', ',', '#']))
    })
}

/// Returns a node with its comments as the description.
fn described<'t>(node: Node, notes: impl IntoIterator<Item = &'t str>) -> Node {
    node.with_description(&notes.into_iter().collect::<Vec<_>>().join(" "))
}
