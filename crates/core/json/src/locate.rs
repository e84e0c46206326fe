//! Finds the bytes of values in a JSON text. The text has to be JSON: the walk ends at the first syntax error.

use std::collections::HashSet;

use crate::lexer::unquoted;
use crate::{Event, JsonPath, Kind, Level, Lexer, Segment, Span, Token};

/// Returns the bytes of the value at `path`, quotes and brackets included; `None` if the JSON text has no such value.
///
/// If a name occurs several times in one object, the last one counts, as in the value that is read.
///
/// ```
/// use formwork_json::locate;
///
/// let text = r#"{"name": "Ada", "risks": ["none", 123]}"#;
/// assert_eq!(locate(text, &"$.risks[1]".parse()?).map(|span| span.of(text)), Some("123"));
/// # Ok::<(), formwork_json::PathError>(())
/// ```
pub fn locate(text: &str, path: &JsonPath) -> Option<Span> {
    let mut finder = Finder::new(path);
    walk(text, &mut finder);
    finder.found
}

/// Returns the bytes of the values at several paths like [`locate`], in one walk over the text.
///
/// ```
/// use formwork_json::locate_all;
///
/// let text = r#"{"name": "Ada", "age": 36}"#;
/// let spans = locate_all(text, [&"$.age".parse()?, &"$.city".parse()?]);
/// assert_eq!(spans.iter().map(|span| span.map(|span| span.of(text))).collect::<Vec<_>>(), [Some("36"), None]);
/// # Ok::<(), formwork_json::PathError>(())
/// ```
pub fn locate_all<'p>(text: &str, paths: impl IntoIterator<Item = &'p JsonPath>) -> Vec<Option<Span>> {
    let mut finders = Finders(paths.into_iter().map(Finder::new).collect());
    if !finders.0.is_empty() {
        walk(text, &mut finders);
    }
    finders.0.into_iter().map(|finder| finder.found).collect()
}

/// Returns the bytes of the *name* of the member at `path`, quotes included; `None` for an array item or the root.
///
/// ```
/// use formwork_json::locate_key;
///
/// let text = r#"{"name": "Ada"}"#;
/// assert_eq!(locate_key(text, &"$.name".parse()?).map(|span| span.of(text)), Some("\"name\""));
/// # Ok::<(), formwork_json::PathError>(())
/// ```
pub fn locate_key(text: &str, path: &JsonPath) -> Option<Span> {
    let Some(Segment::Key(_)) = path.last() else { return None };
    let mut finder = Finder::new(path);
    walk(text, &mut finder);
    finder.found.and(finder.key)
}

/// Returns the paths of the values that are open at byte `at`, innermost first, and of the outermost values that are entirely in the
/// text from there on. A number that ends at `at` is open, because it may miss digits.
///
/// ```
/// use formwork_json::values_around;
///
/// let text = r#"{"a": "cut", "b": {"c": 0}, "d": [1, 0]}"#;
/// let paths = |at| {
///     let (open, after) = values_around(text, at);
///     [open, after].map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>())
/// };
/// assert_eq!(paths(10), [vec!["$.a", "$"], vec!["$.b", "$.d"]]);
/// assert_eq!(paths(36), [vec!["$.d", "$"], vec!["$.d[1]"]]);
/// ```
pub fn values_around(text: &str, at: usize) -> (Vec<JsonPath>, Vec<JsonPath>) {
    let mut around = Around { at, path: Vec::new(), open: Vec::new(), after: Vec::new() };
    walk(text, &mut around);
    (around.open, around.after.into_iter().map(|(path, _)| path).collect())
}

/// Returns the names that repeat an earlier name of their object, each with its bytes.
pub(crate) fn duplicate_keys(text: &str) -> Vec<(Span, String)> {
    let mut visitor = Duplicates { open: Vec::new(), found: Vec::new() };
    walk(text, &mut visitor);
    visitor.found
}

/// A visitor of the values of a text, in the order in which [`walk`] finds them.
trait Walker {
    fn key(&mut self, _span: Span, _name: &str) {}
    fn index(&mut self, _index: usize) {}
    fn enter(&mut self, _object: bool) {}
    fn leave(&mut self) {}
    /// Visits a value after its members and items, with the byte that decided its end.
    fn value(&mut self, _span: Span, _at: usize) {}
}

struct Finder<'p> {
    path: &'p [Segment],
    /// The number of steps of `path` that lead to the current position of the walk.
    matched: usize,
    /// The depth of the walk, in members and items.
    depth: usize,
    found: Option<Span>,
    key: Option<Span>,
}

impl<'p> Finder<'p> {
    fn new(path: &'p JsonPath) -> Self {
        Self { path: path.segments(), matched: 0, depth: 0, found: None, key: None }
    }

    fn step(&mut self, same: impl Fn(&Segment) -> bool) -> bool {
        let here = self.matched == self.depth && self.path.get(self.depth).is_some_and(same);
        if here {
            self.matched += 1;
            self.found = None; // of equal names the last one counts, also on the way
        }
        self.depth += 1;
        here && self.matched == self.path.len()
    }
}

impl Walker for Finder<'_> {
    fn key(&mut self, span: Span, name: &str) {
        if self.step(|segment| matches!(segment, Segment::Key(key) if key == name)) {
            self.key = Some(span);
        }
    }

    fn index(&mut self, index: usize) {
        self.step(|segment| matches!(segment, Segment::Index(i) if *i == index));
    }

    fn value(&mut self, span: Span, _: usize) {
        if self.matched == self.path.len() && self.depth == self.matched {
            self.found = Some(span);
        }
        self.matched = self.matched.min(self.depth.saturating_sub(1));
        self.depth = self.depth.saturating_sub(1);
    }
}

/// Several finders that share one walk.
struct Finders<'p>(Vec<Finder<'p>>);

impl Walker for Finders<'_> {
    fn key(&mut self, span: Span, name: &str) {
        self.0.iter_mut().for_each(|finder| finder.key(span, name));
    }

    fn index(&mut self, index: usize) {
        self.0.iter_mut().for_each(|finder| finder.index(index));
    }

    fn value(&mut self, span: Span, at: usize) {
        self.0.iter_mut().for_each(|finder| finder.value(span, at));
    }
}

struct Around {
    at: usize,
    path: Vec<Segment>,
    open: Vec<JsonPath>,
    after: Vec<(JsonPath, Span)>,
}

impl Walker for Around {
    fn key(&mut self, _span: Span, name: &str) {
        self.path.push(Segment::Key(name.to_owned()));
    }

    fn index(&mut self, index: usize) {
        self.path.push(Segment::Index(index));
    }

    fn value(&mut self, span: Span, at: usize) {
        if span.start >= self.at {
            // Values are found in the order of their ends, so the values inside of this one are the last in the list.
            while self.after.pop_if(|(_, inner)| span.contains(*inner)).is_some() {}
            self.after.push((self.path.iter().cloned().collect(), span));
        } else if at >= self.at {
            self.open.push(self.path.iter().cloned().collect());
        }
        self.path.pop();
    }
}

struct Duplicates {
    open: Vec<HashSet<String>>,
    found: Vec<(Span, String)>,
}

impl Walker for Duplicates {
    fn key(&mut self, span: Span, name: &str) {
        if self.open.last_mut().is_some_and(|names| !names.insert(name.to_owned())) {
            self.found.push((span, name.to_owned()));
        }
    }

    fn enter(&mut self, _object: bool) {
        self.open.push(HashSet::new());
    }

    fn leave(&mut self) {
        self.open.pop();
    }
}

/// Walks over the first document of a text, up to its first syntax error.
fn walk(text: &str, walker: &mut impl Walker) {
    let mut lexer = Lexer::new(Level::Strict);
    // The number of items so far of each open array; `None` for objects.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut visit = |Event { token, span, at }: Event| match token {
        Token::Begin(kind) => {
            if let Some(Some(items)) = open.last_mut() {
                walker.index(*items);
                *items += 1;
            }
            if matches!(kind, Kind::Object | Kind::Array) {
                open.push((kind == Kind::Array).then_some(0));
                walker.enter(kind == Kind::Object);
            }
        }
        Token::Key => walker.key(span, &unquoted(span.of(text))),
        Token::End(kind) => {
            if matches!(kind, Kind::Object | Kind::Array) {
                open.pop();
                walker.leave();
            }
            walker.value(span, at);
        }
        Token::Edit(_) => {}
    };
    lexer.push(text.as_bytes(), &mut visit);
    lexer.end(visit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(text: &'t str, path: &str) -> Option<&'t str> {
        locate(text, &path.parse().unwrap()).map(|span| span.of(text))
    }

    #[test]
    fn values_are_found_at_every_depth() {
        let text = r#" {"a": {"b": [10, {"c": "x,}]"}]}, "d": null, "a\"": 1.5} "#;
        assert_eq!(found(text, "$"), Some(text.trim()));
        assert_eq!(found(text, "$.a"), Some(r#"{"b": [10, {"c": "x,}]"}]}"#));
        assert_eq!(found(text, "$.a.b[0]"), Some("10"));
        assert_eq!(found(text, "$.a.b[1].c"), Some(r#""x,}]""#));
        assert_eq!(found(text, "$.d"), Some("null"));
        assert_eq!(found(text, r#"$['a"']"#), Some("1.5"));
        assert_eq!(found(text, "$.b"), None);
        assert_eq!(found(text, "$.a.b[2]"), None);
        assert_eq!(found(text, "$.a.a"), None);
        assert_eq!(found("7", "$"), Some("7"));
        assert_eq!(found("[[1],[2]]", "$[1][0]"), Some("2"));
        assert_eq!(found("[[1],[2]]", "$[0]"), Some("[1]"));
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        let text = r#"{"a": 1, "a": 2}"#;
        assert_eq!(found(text, "$.a"), Some("2"));
        assert_eq!(locate_key(text, &"$.a".parse().unwrap()), Some(Span::new(9, 12)));
    }

    #[test]
    fn several_paths_are_found_as_each_alone() {
        let text = r#"{"a": {"b": [10, 11]}, "\u0061": {"b": 2}, "c\"": [1]}"#;
        let paths: Vec<JsonPath> =
            ["$.a.b", "$", "$.x", r#"$['c"'][0]"#, "$.a"].map(|path| path.parse().unwrap()).into();
        let alone: Vec<_> = paths.iter().map(|path| locate(text, path)).collect();
        assert_eq!(locate_all(text, &paths), alone);
        assert_eq!(alone.iter().filter(|span| span.is_some()).count(), 4);
    }
}
