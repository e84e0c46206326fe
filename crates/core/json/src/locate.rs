//! Finds the bytes of values in a JSON text. The text has to be JSON: the walk ends at the first syntax error.

use std::collections::{HashMap, HashSet};

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
    Places::find(text, [path]).value(path)
}

/// The bytes of values and names in a JSON text, found in one walk over it, whose time does not grow with the number of paths.
///
/// ```
/// use formwork_json::{JsonPath, Places};
///
/// let text = r#"{"name": "Ada"}"#;
/// let path = "$.name".parse()?;
/// let places = Places::find(text, [&path]);
/// assert_eq!(places.value(&path).map(|span| span.of(text)), Some("\"Ada\""));
/// assert_eq!(places.key(&path).map(|span| span.of(text)), Some("\"name\""));
/// assert_eq!(places.value(&JsonPath::root()).map(|span| span.of(text)), Some(text));
/// assert_eq!(places.value(&"$.other".parse()?), None);
/// # Ok::<(), formwork_json::PathError>(())
/// ```
#[derive(Debug)]
pub struct Places<'p> {
    /// The steps of all paths as a tree, whose root comes first.
    steps: Vec<Step<'p>>,
    /// The steps to the current position of the walk; `None` where no path leads.
    open: Vec<Option<usize>>,
}

#[derive(Debug, Default)]
struct Step<'p> {
    names: HashMap<&'p str, usize>,
    indices: HashMap<usize, usize>,
    value: Option<Span>,
    key: Option<Span>,
}

impl<'p> Places<'p> {
    /// Finds the values at these paths, and those around them.
    pub fn find(text: &str, paths: impl IntoIterator<Item = &'p JsonPath>) -> Self {
        let mut places = Self { steps: vec![Step::default()], open: vec![Some(0)] };
        let mut paths = paths.into_iter().peekable();
        if paths.peek().is_some() {
            paths.for_each(|path| places.add(path));
            walk(text, &mut places);
        }
        places
    }

    /// Returns the bytes of the value at a path, quotes and brackets included; `None` if the text has no such value, or if the path is not
    /// one of those that were looked for or the beginning of one.
    ///
    /// If a name occurs several times in one object, the last one counts, as in the value that is read.
    pub fn value(&self, path: &JsonPath) -> Option<Span> {
        self.step(path)?.value
    }

    /// Returns the bytes of the *name* of the member at a path, quotes included, like [`value`](Self::value); `None` for an array item or
    /// the root.
    pub fn key(&self, path: &JsonPath) -> Option<Span> {
        let step = self.step(path)?;
        step.value.and(step.key)
    }

    fn step(&self, path: &JsonPath) -> Option<&Step<'p>> {
        let next = |step: &Step<'p>, segment: &Segment| self.steps.get(step.child(segment)?);
        path.segments().iter().try_fold(self.steps.first()?, next)
    }

    fn add(&mut self, path: &'p JsonPath) {
        let mut at = 0;
        for segment in path.segments() {
            let new = self.steps.len();
            let step = &mut self.steps[at];
            at = match segment {
                Segment::Key(name) => *step.names.entry(name).or_insert(new),
                Segment::Index(index) => *step.indices.entry(*index).or_insert(new),
            };
            if at == new {
                self.steps.push(Step::default());
            }
        }
    }

    /// Enters a member or an item. What an equal name led to before is forgotten.
    fn enter(&mut self, child: impl Fn(&Step<'p>) -> Option<usize>, key: Option<Span>) {
        let next = self.open.last().copied().flatten().and_then(|at| child(&self.steps[at]));
        if let Some(at) = next {
            if self.steps[at].value.is_some() {
                self.forget(at);
            }
            self.steps[at].key = key;
        }
        self.open.push(next);
    }

    fn forget(&mut self, at: usize) {
        let mut left = vec![at];
        while let Some(at) = left.pop() {
            let step = &mut self.steps[at];
            step.value = None;
            left.extend(step.names.values().chain(step.indices.values()));
        }
    }
}

impl Step<'_> {
    fn child(&self, segment: &Segment) -> Option<usize> {
        match segment {
            Segment::Key(name) => self.names.get(name.as_str()).copied(),
            Segment::Index(index) => self.indices.get(index).copied(),
        }
    }
}

impl Walker for Places<'_> {
    fn key(&mut self, span: Span, name: &str) {
        self.enter(|step| step.names.get(name).copied(), Some(span));
    }

    fn index(&mut self, index: usize) {
        self.enter(|step| step.indices.get(&index).copied(), None);
    }

    fn value(&mut self, span: Span, _at: usize) {
        if let Some(at) = self.open.pop().flatten() {
            self.steps[at].value = Some(span);
        }
    }
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
        let path = "$.a".parse().unwrap();
        assert_eq!(Places::find(text, [&path]).key(&path), Some(Span::new(9, 12)));
    }

    #[test]
    fn several_paths_are_found_as_each_alone() {
        let text = r#"{"a": {"b": [10, 11]}, "\u0061": {"b": 2}, "c\"": [1]}"#;
        let paths: Vec<JsonPath> =
            ["$.a.b", "$", "$.x", r#"$['c"'][0]"#, "$.a"].map(|path| path.parse().unwrap()).into();
        let alone: Vec<_> = paths.iter().map(|path| locate(text, path)).collect();
        let places = Places::find(text, &paths);
        assert_eq!(paths.iter().map(|path| places.value(path)).collect::<Vec<_>>(), alone);
        assert_eq!(alone.iter().filter(|span| span.is_some()).count(), 4);
        let none = Places::find(text, []);
        assert_eq!((none.value(&JsonPath::root()), none.key(&paths[0])), (None, None));
    }
}
