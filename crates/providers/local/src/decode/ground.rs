//! Keeps texts, numbers and dates under the rule `grounded` along the words, numbers and dates of the source text.

use std::cell::Cell;
use std::ops::Range;

use formwork_core::evidence::{Candidates, Index, Prefix, subschema};
use formwork_core::keywords::{find, fits_type, target};
use formwork_core::{JsonPath, PathPattern, Rule};
use serde_json::Value;
use toktrie::{SimpleVob, TokTrie, TokenId, TrieNode};

use super::number::is_numeric;
use super::restraint::Table;

/// The maximum number of references and alternatives of one value, and of those around each other.
const MAX_PARTS: usize = 64;
const MAX_DEPTH: usize = 8;

/// Follows a document, and knows the tokens that keep its grounded values along the source text.
///
/// A value that cannot follow the source, for example a required number of a text without numbers, is free: everything
/// that the schema allows can be written. [`into_strays`](Self::into_strays) has its path.
#[derive(Debug)]
pub(crate) struct Ground {
    targets: Vec<PathPattern>,
    schema: Value,
    words: Candidates,
    /// The numbers of the source, and those that a schema accepts if it does not accept all.
    numbers: Vec<(Option<Value>, Candidates)>,
    dates: Candidates,
    place: Place,
    strays: Vec<JsonPath>,
}

/// The place in a document.
#[derive(Debug, Clone, Default)]
struct Place {
    frames: Vec<Frame>,
    mode: Mode,
    is_escaped: bool,
}

/// A state of the ground to return to.
pub(crate) struct Mark {
    place: Place,
    strays: usize,
}

/// An open container.
#[derive(Debug, Clone)]
enum Frame {
    /// The name of the current member, and whether a name comes next.
    Object(String, bool),
    /// The index of the current item.
    Array(usize),
}

#[derive(Debug, Clone, Default)]
enum Mode {
    /// Between values, or in one that is neither a text nor a number.
    #[default]
    Outside,
    Key(Vec<u8>),
    /// In a text that follows nothing.
    Free,
    /// In a text along the words, or along the dates.
    Words(Prefix),
    Date(Prefix),
    /// In a number along the numbers with this index; without a prefix it follows nothing.
    Number(Option<(usize, Prefix)>),
}

/// The values that a text in the schema can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Words,
    Date,
    /// Texts of a pattern or another format: a beginning of words that fits it may have no end that does.
    Other,
    /// The schema determines the text.
    Free,
}

impl Ground {
    /// Returns the ground of a document; `None` without a rule `grounded` or without a source.
    pub(crate) fn new(schema: &Value, rules: &[Rule], source: Option<&str>) -> Option<Self> {
        let grounded = |rule: &Rule| match rule {
            Rule::Grounded { target, min_length } => Some((target.clone(), min_length.unwrap_or(1))),
            _ => None,
        };
        let (targets, lengths): (Vec<_>, Vec<usize>) = rules.iter().filter_map(grounded).unzip();
        let min_length = *lengths.iter().min()?;
        let index = Index::new(source?);
        Some(Self {
            targets,
            schema: schema.clone(),
            words: index.words(min_length),
            numbers: fitting(schema, index.numbers()),
            dates: index.dates_of_json(),
            place: Place::default(),
            strays: Vec::new(),
        })
    }

    /// Returns the schema without the optional members of closed objects for which the source has no value.
    pub(crate) fn sayable(&self) -> Value {
        let mut schema = self.schema.clone();
        self.remove_unsayable(&mut schema, &JsonPath::root());
        schema
    }

    fn remove_unsayable(&self, part: &mut Value, path: &JsonPath) {
        let is_closed = part.get("additionalProperties") == Some(&Value::Bool(false));
        let required = part.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(members) = part.get_mut("properties").and_then(Value::as_object_mut) {
            members.retain(|name, member| {
                let path = path.key(name);
                let is_required = required.iter().any(|one| one == name);
                let is_sayable = match member.get("type").and_then(Value::as_str) {
                    _ if is_required || !is_closed || !self.is_target(&path) => true,
                    Some("number" | "integer") => {
                        self.number(Some(member)).is_some() || is_determined(member)
                    }
                    Some("string") => {
                        self.words.begin().is_some() || kind(&self.schema, member) != Kind::Words
                    }
                    _ => true,
                };
                if is_sayable {
                    self.remove_unsayable(member, &path);
                }
                is_sayable
            });
        }
        if let Some(items) = part.get_mut("items") {
            self.remove_unsayable(items, &path.index(0));
        }
    }

    /// Returns whether the document is between values, or at the beginning of one along words or dates.
    pub(crate) fn is_between(&self) -> bool {
        matches!(self.place.mode, Mode::Outside | Mode::Key(_)) || self.begins()
    }

    /// Returns the path of the text that begins here along words or dates, if no list is around it.
    pub(crate) fn begun(&self) -> Option<JsonPath> {
        let is_object = |frame: &Frame| matches!(frame, Frame::Object(..));
        (self.begins() && self.place.frames.iter().all(is_object)).then(|| self.place.path())
    }

    /// Returns the beginning of the text along the words that begins here.
    pub(crate) fn begun_words(&self) -> Option<Prefix> {
        self.words.begin().filter(|_| self.begins() && matches!(self.place.mode, Mode::Words(_)))
    }

    /// Returns whether a list is open that has items.
    pub(crate) fn follows_items(&self) -> bool {
        matches!(self.place.frames.last(), Some(Frame::Array(index)) if *index > 0)
    }

    /// Returns whether a text stands at a place that no earlier item of the list needs; `items` are the texts in it, with their indexes.
    /// It is `true` as well if little work cannot decide it.
    pub(crate) fn has_place(&self, text: &[u8], items: &[(usize, &[u8])]) -> bool {
        let places = |text: &[u8]| {
            let begin = self.words.begin()?;
            let read = text.iter().try_fold(begin, |prefix, byte| self.words.step(prefix, *byte))?;
            self.words.places(read).filter(|places| !places.is_empty())
        };
        let Some(own) = places(text) else { return true };
        let follows = |index: usize| {
            let mut place = self.place.clone();
            place.frames.last_mut().into_iter().for_each(|frame| *frame = Frame::Array(index));
            self.kind(&place) == Kind::Words
        };
        let others = items.iter().filter(|(index, _)| follows(*index));
        let mut others: Vec<(usize, Places)> =
            others.filter_map(|(index, text)| Some((*index, places(text)?))).collect();
        // Only the items count that compete for its places, and those that compete with these.
        let (mut near, mut reached) = (Vec::new(), own.clone());
        loop {
            let is_near =
                |(_, places): &mut (usize, Places)| places.iter().any(|place| overlaps(&reached, place));
            let more: Vec<_> = others.extract_if(.., is_near).collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more.iter().flat_map(|(_, places)| places).cloned());
            near.extend(more);
        }
        near.sort_by_key(|(index, _)| *index);
        // An item that has no place of its own, because the schema demanded it, needs none.
        let mut placed = Vec::new();
        for (_, places) in near {
            placed.push(places);
            if !have_places(&placed) {
                placed.pop();
            }
        }
        placed.push(own);
        have_places(&placed)
    }

    /// Returns whether a text along the words may end.
    pub(crate) fn ends(&self, prefix: Prefix) -> bool {
        self.words.ends(prefix)
    }

    /// Returns the tokens that continue a text along the words, and the text with each.
    pub(crate) fn words_after(&self, trie: &TokTrie, prefix: Prefix) -> Vec<(TokenId, Prefix)> {
        let (mut open, mut found) = (vec![(trie.root(), prefix)], Vec::new());
        while let Some((node, prefix)) = open.pop() {
            for child in trie.node_children(node) {
                let Some(next) = self.words.step(prefix, child.byte()) else { continue };
                found.extend(child.token_id().map(|token| (token, next)));
                open.push((child, next));
            }
        }
        found
    }

    fn begins(&self) -> bool {
        match self.place.mode {
            Mode::Words(prefix) => self.words.begin() == Some(prefix),
            Mode::Date(prefix) => self.dates.begin() == Some(prefix),
            _ => false,
        }
    }

    /// Returns to the start of the document.
    pub(crate) fn restart(&mut self) {
        (self.place, self.strays) = (Place::default(), Vec::new());
    }

    /// Returns the paths of the values that did not follow the source.
    pub(crate) fn into_strays(self) -> Vec<JsonPath> {
        self.strays
    }

    /// Returns the present state.
    pub(crate) fn mark(&self) -> Mark {
        Mark { place: self.place.clone(), strays: self.strays.len() }
    }

    /// Returns to an earlier state.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.place = mark.place;
        self.strays.truncate(mark.strays);
    }

    /// Reads bytes of the document. A value that leaves the source is free from there on.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let mut place = std::mem::take(&mut self.place);
        for byte in bytes {
            let before = (!matches!(place.mode, Mode::Outside)).then(|| place.path());
            let stays = self.step(&mut place, *byte);
            let begins_free = before.is_none() && matches!(place.mode, Mode::Free);
            if !stays || begins_free && self.kind(&place) != Kind::Free {
                self.strays.push(before.unwrap_or_else(|| place.path()));
            }
        }
        self.place = place;
    }

    /// Returns the bytes that complete the current text or number along the source; none if it is complete or free.
    pub(crate) fn rest(&self) -> &[u8] {
        let rest = match &self.place.mode {
            Mode::Words(prefix) => self.words.rest(*prefix),
            Mode::Date(prefix) => self.dates.rest(*prefix),
            Mode::Number(Some((of, prefix))) => self.numbers.get(*of).and_then(|all| all.1.rest(*prefix)),
            _ => None,
        };
        rest.unwrap_or_default()
    }

    /// Returns the tokens of a mask that stay along the source; `None` if there are none.
    pub(crate) fn narrow(&self, trie: &TokTrie, table: &Table, mask: &SimpleVob) -> Option<SimpleVob> {
        let mut left = mask.clone();
        let stays = |token: u32| {
            let mut place = self.place.clone();
            trie.token(token).iter().all(|byte| self.step(&mut place, *byte))
        };
        match &self.place.mode {
            Mode::Words(_) | Mode::Date(_) => {
                left.set_all(false);
                self.walk(trie, trie.root(), &self.place, mask, &mut left);
            }
            // Only a quotation mark ends the text, and a value may follow in the same token.
            Mode::Key(_) | Mode::Free => table
                .quotes()
                .iter()
                .filter(|token| mask.is_allowed(**token) && !stays(**token))
                .for_each(|token| left.disallow_token(*token)),
            Mode::Outside | Mode::Number(_) => {
                mask.iter().filter(|token| !stays(*token)).for_each(|token| left.disallow_token(token));
            }
        }
        (!left.is_zero()).then_some(left)
    }

    /// Adds the tokens below a node that stay along the source from a place on.
    fn walk(&self, trie: &TokTrie, node: &TrieNode, place: &Place, mask: &SimpleVob, left: &mut SimpleVob) {
        for child in trie.node_children(node) {
            let mut next = place.clone();
            if !self.step(&mut next, child.byte()) {
                continue;
            }
            if let Some(token) = child.token_id().filter(|token| mask.is_allowed(*token)) {
                left.allow_token(token);
            }
            self.walk(trie, child, &next, mask, left);
        }
    }

    /// Reads a byte; returns whether the document stays along the source. If not, the value is free from there on.
    fn step(&self, place: &mut Place, byte: u8) -> bool {
        let was_escaped = std::mem::take(&mut place.is_escaped);
        let is_text = !matches!(place.mode, Mode::Outside | Mode::Number(_));
        place.is_escaped = is_text && byte == b'\\' && !was_escaped;
        let is_quote = is_text && byte == b'"' && !was_escaped;
        let (next, stays) = match &mut place.mode {
            Mode::Outside => return self.outside(place, byte),
            Mode::Key(name) if is_quote => {
                let name = format!("\"{}\"", String::from_utf8_lossy(name));
                let name = serde_json::from_str(&name).unwrap_or_default();
                if let Some(frame) = place.frames.last_mut() {
                    *frame = Frame::Object(name, false);
                }
                (Mode::Outside, true)
            }
            Mode::Key(name) => {
                name.push(byte);
                return true;
            }
            Mode::Free if is_quote => (Mode::Outside, true),
            Mode::Free => return true,
            Mode::Words(prefix) if is_quote => (Mode::Outside, self.words.ends(*prefix)),
            Mode::Date(prefix) if is_quote => (Mode::Outside, self.dates.ends(*prefix)),
            Mode::Words(prefix) => match self.words.step(*prefix, byte) {
                Some(next) => (Mode::Words(next), true),
                None => (Mode::Free, false),
            },
            Mode::Date(prefix) => match self.dates.step(*prefix, byte) {
                Some(next) => (Mode::Date(next), true),
                None => (Mode::Free, false),
            },
            Mode::Number(prefix) if is_numeric(byte) => match prefix {
                Some((of, known)) => {
                    let next = self.numbers.get(*of).and_then(|all| Some((*of, all.1.step(*known, byte)?)));
                    (Mode::Number(next), next.is_some())
                }
                None => return true,
            },
            Mode::Number(prefix) => {
                let ends = prefix
                    .is_none_or(|(of, prefix)| self.numbers.get(of).is_some_and(|all| all.1.ends(prefix)));
                place.mode = Mode::Outside;
                return self.outside(place, byte) && ends;
            }
        };
        place.mode = next;
        stays
    }

    /// Reads a byte between values.
    fn outside(&self, place: &mut Place, byte: u8) -> bool {
        match byte {
            b'{' => place.frames.push(Frame::Object(String::new(), true)),
            b'[' => place.frames.push(Frame::Array(0)),
            b'}' | b']' => drop(place.frames.pop()),
            b',' => match place.frames.last_mut() {
                Some(Frame::Object(_, is_name_next)) => *is_name_next = true,
                Some(Frame::Array(index)) => *index += 1,
                None => {}
            },
            b'"' if matches!(place.frames.last(), Some(Frame::Object(_, true))) => {
                place.mode = Mode::Key(Vec::new());
            }
            b'"' => {
                let begun = match self.kind(place) {
                    Kind::Words => self.words.begin().map(Mode::Words),
                    // A text may name no full date, and the schema wants one.
                    Kind::Date => Some(self.dates.begin().map_or(Mode::Free, Mode::Date)),
                    Kind::Other | Kind::Free => Some(Mode::Free),
                };
                let stays = begun.is_some();
                place.mode = begun.unwrap_or(Mode::Free);
                return stays;
            }
            b'-' | b'0'..=b'9' => {
                let part = self.part(place);
                place.mode = Mode::Number(None);
                if let Some(part) = part.filter(|part| !part.is_some_and(is_determined)) {
                    let next =
                        self.number(part).and_then(|(of, all, empty)| Some((of, all.step(empty, byte)?)));
                    place.mode = Mode::Number(next);
                    return next.is_some();
                }
            }
            _ => {}
        }
        true
    }

    /// Returns the numbers of the source that a schema accepts, with their index and their empty beginning; `None` if there are none.
    fn number(&self, part: Option<&Value>) -> Option<(usize, &Candidates, Prefix)> {
        let of = self.numbers.iter().position(|(schema, _)| schema.is_some() && schema.as_ref() == part);
        let (_, all) = self.numbers.get(of.unwrap_or_default())?;
        Some((of.unwrap_or_default(), all, all.begin()?))
    }

    /// Returns the values that the text at a place can be.
    fn kind(&self, place: &Place) -> Kind {
        let part = self.part(place);
        part.map_or(Kind::Free, |part| part.map_or(Kind::Words, |part| kind(&self.schema, part)))
    }

    fn is_target(&self, path: &JsonPath) -> bool {
        let covers =
            |target: &PathPattern| target.steps().len() <= path.segments().len() && target.touches(path);
        self.targets.iter().any(covers)
    }

    /// Returns the schema of the value at a place, if it is known; `None` if no rule is about the value.
    fn part(&self, place: &Place) -> Option<Option<&Value>> {
        let path = place.path();
        let mut steps = path.segments().iter();
        let inside = |part, step| subschema(&self.schema, part, step);
        self.is_target(&path).then(|| steps.try_fold(&self.schema, inside))
    }
}

impl Place {
    /// Returns the path of the current value.
    fn path(&self) -> JsonPath {
        self.frames.iter().fold(JsonPath::root(), |path, frame| match frame {
            Frame::Object(name, _) => path.key(name.as_str()),
            Frame::Array(index) => path.index(*index),
        })
    }
}

/// The places of a text.
type Places = Vec<Range<usize>>;

/// The maximum number of steps of the search for places that do not overlap.
const MAX_STEPS: usize = 2_000;

/// Returns whether texts can stand at places that do not overlap; `true` if too many steps would be necessary.
fn have_places(texts: &[Places]) -> bool {
    // Equal texts would be tried in each order.
    let count = |places: &Places| texts.iter().filter(|other| *other == places).count();
    if texts.iter().any(|places| count(places) > places.len()) {
        return false;
    }
    let (mut texts, mut steps): (Vec<&Places>, usize) = (texts.iter().collect(), MAX_STEPS);
    texts.sort_by_key(|places| places.len());
    place_all(&texts, &mut Vec::new(), &mut steps)
}

fn place_all(texts: &[&Places], taken: &mut Places, steps: &mut usize) -> bool {
    let Some((places, others)) = texts.split_first() else { return true };
    places.iter().any(|place| {
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return true;
        }
        if overlaps(taken, place) {
            return false;
        }
        taken.push(place.clone());
        let is_placed = place_all(others, taken, steps);
        taken.pop();
        is_placed
    })
}

fn overlaps(places: &[Range<usize>], place: &Range<usize>) -> bool {
    places.iter().any(|other| other.start < place.end && place.start < other.end)
}

/// Returns whether the schema lists the values.
fn is_determined(part: &Value) -> bool {
    part.get("enum").is_some() || part.get("const").is_some()
}

/// Returns numbers, and those of them that each subschema accepts, unless it accepts all or is not about numbers.
fn fitting(schema: &Value, numbers: Candidates) -> Vec<(Option<Value>, Candidates)> {
    let mut all = vec![(None, numbers.clone())];
    // Visits every subschema.
    _ = find(schema, |part| {
        let is_known = || all.iter().any(|(known, _)| known.as_ref() == Some(part));
        if part.is_object()
            && !is_determined(part)
            && fits_type(part, &0.into()) != Some(false)
            && !is_known()
        {
            let rejected = Cell::new(false);
            let fitting = numbers.filtered(|number| {
                let fits = serde_json::from_str(number)
                    .is_ok_and(|number| accepts(schema, part, &number, MAX_DEPTH));
                rejected.set(rejected.get() || !fits);
                fits
            });
            all.extend(rejected.get().then(|| (Some(part.clone()), fitting)));
        }
        false
    });
    all
}

/// Returns whether a schema accepts a number, by types, bounds, references and alternatives.
fn accepts(root: &Value, part: &Value, number: &Value, depth: usize) -> bool {
    let (Some(depth), Some(value)) = (depth.checked_sub(1), number.as_f64()) else { return true };
    let bound = |keyword: &str, holds: fn(f64, f64) -> bool| {
        part.get(keyword).and_then(Value::as_f64).is_none_or(|bound| holds(value, bound))
    };
    let fits = |part: &Value| accepts(root, part, number, depth);
    let list = |keyword: &str| part.get(keyword).and_then(Value::as_array);
    fits_type(part, number) != Some(false)
        && bound("minimum", |value, bound| value >= bound)
        && bound("maximum", |value, bound| value <= bound)
        && bound("exclusiveMinimum", |value, bound| value > bound)
        && bound("exclusiveMaximum", |value, bound| value < bound)
        // A quotient of decimal fractions is seldom exact.
        && bound("multipleOf", |value, step| (value / step - (value / step).round()).abs() < 1e-6)
        && target(root, part).is_none_or(fits)
        && list("allOf").is_none_or(|all| all.iter().all(fits))
        && ["anyOf", "oneOf"].into_iter().filter_map(list).all(|any| any.iter().any(fits))
}

/// Returns the values that a text can be by its schema and all its alternatives.
fn kind(root: &Value, part: &Value) -> Kind {
    let (mut open, mut seen, mut found) = (vec![part], 0, Kind::Words);
    while let Some(part) = open.pop() {
        seen += 1;
        let format = part.get("format").and_then(Value::as_str);
        match format {
            _ if is_determined(part) || seen > MAX_PARTS => return Kind::Free,
            Some("date") => found = Kind::Date,
            _ if format.is_some() || part.get("pattern").is_some() => return Kind::Other,
            _ => {}
        }
        open.extend(target(root, part));
        let lists = ["anyOf", "oneOf", "allOf"].iter().filter_map(|keyword| part.get(keyword)?.as_array());
        open.extend(lists.flatten());
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SOURCE: &str =
        "Invoice for \"Maria\" Lindqvist,\nOslo: 1,250.00 EUR, 3 items, 5 March 2024. 東京都 Café";

    fn ground(source: &str) -> Ground {
        let text = json!({"type": "string"});
        let schema = json!({
            "$defs": {"few": {"type": "number", "maximum": 10}, "nullable": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "properties": {
                "name": text, "nick": {"$ref": "#/$defs/nullable"}, "kind": {"enum": ["a", 7]},
                "due": {"type": "string", "format": "date"}, "code": {"type": "string", "pattern": "^[A-Z]$"},
                "total": {"type": "number"}, "count": {"type": "integer"}, "items": {"items": text}, "free": text,
                "quantity": {"type": "integer"}, "few": {"anyOf": [{"$ref": "#/$defs/few"}, {"type": "null"}]},
                "step": {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 3}, "mail": {"type": "string", "format": "email"},
                "at": {"type": "string", "format": "date-time"},
                "rows": {"items": {"properties": {"who": text, "what": text}}},
            },
        });
        let paths = [
            "$.name",
            "$.nick",
            "$.kind",
            "$.due",
            "$.code",
            "$.total",
            "$.items",
            "$.rows[*].who",
            "$.quantity",
            "$.few",
            "$.step",
            "$.mail",
            "$.at",
        ];
        let rules = paths.map(|path| Rule::grounded(path.parse().unwrap()));
        Ground::new(&schema, &rules, Some(source)).unwrap()
    }

    /// Returns the first value of a document that leaves the source.
    fn stray(source: &str, document: &str) -> Option<String> {
        let mut ground = ground(source);
        ground.push(document.as_bytes());
        ground.strays.first().map(ToString::to_string)
    }

    #[test]
    fn grounded_values_are_words_numbers_and_dates_of_the_source() {
        for (document, expected) in [
            (r#"{"name": "Lindqvist, Oslo"}"#, None),
            (r#"{"name": "\"Maria\" Lindqvist", "nick": "東京"}"#, None),
            (r#"{"name": "Lind"}"#, Some("$.name")),
            (r#"{"name": "Oslo", "nick": "Marie"}"#, Some("$.nick")),
            (r#"{"name": "", "nick": null}"#, Some("$.name")),
            (r#"{"nick": null, "total": 1250}"#, None),
            (r#"{"total": 1250.00, "name": "1,250.00"}"#, None),
            (r#"{"total": 125, "name": "Oslo"}"#, Some("$.total")),
            (r#"{"total": 12}"#, Some("$.total")),
            (r#"{"total": 4}"#, Some("$.total")),
            (r#"{"total": -3}"#, Some("$.total")),
            (r#"{"items": ["Oslo", "EUR"], "total": 3}"#, None),
            (r#"{"items": ["Oslo", "USD"]}"#, Some("$.items[1]")),
            (
                r#"{"rows": [{"who": "Maria", "what": "x"}, {"what": "y", "who": "z"}]}"#,
                Some("$.rows[1].who"),
            ),
            (r#"{"due": "2024-03-05"}"#, None),
            (r#"{"due": "2024-03-06"}"#, Some("$.due")),
            // The schema determines this value, and no rule is about the other ones.
            (r#"{"kind": "a", "free": "anything", "count": 99}"#, None),
            // A text with a pattern or another format is free, and named.
            (r#"{"code": "Z"}"#, Some("$.code")),
            (r#"{"mail": "a@b.io"}"#, Some("$.mail")),
            (r#"{"at": "2024-03-05T00:00:00Z"}"#, Some("$.at")),
            (r#"{"kind": 7, "other": {"name": "x"}}"#, None),
        ] {
            assert_eq!(stray(SOURCE, document).as_deref(), expected, "{document}");
        }
    }

    #[test]
    fn grounded_numbers_are_those_that_the_schema_accepts() {
        const SOURCE: &str = "Quantity of apples 12.5 kg, boxes 3 of 12 kg or 4.5 kg, 15 a@b.io";
        for (document, expected) in [
            (r#"{"quantity": 3, "few": 3}"#, None),
            (r#"{"quantity": 12, "name": "a@b.io"}"#, None),
            (r#"{"quantity": 12.5}"#, Some("$.quantity")),
            (r#"{"few": 4.5, "step": 12.5}"#, None),
            (r#"{"few": 12}"#, Some("$.few")),
            (r#"{"few": 10}"#, Some("$.few")),
            (r#"{"step": 3}"#, Some("$.step")),
            (r#"{"total": 12.5}"#, None),
        ] {
            assert_eq!(stray(SOURCE, document).as_deref(), expected, "{document}");
        }
        // The beginning of a number that the schema rejects is no beginning.
        for document in [r#"{"quantity": 1"#, r#"{"few": 1"#] {
            assert_eq!(
                stray("12.5 kg, 3 boxes", document),
                Some(document[2..].split('"').next().map(|name| format!("$.{name}")).unwrap())
            );
        }
    }

    #[test]
    fn a_value_is_free_after_it_left_the_source_and_the_next_one_is_not() {
        let mut ground = ground(SOURCE);
        ground.push(br#"{"total": 9999.5, "name": "Eve", "items": ["Os"#);
        assert_eq!(ground.strays.iter().map(ToString::to_string).collect::<Vec<_>>(), ["$.total", "$.name"]);
        assert_eq!(ground.rest(), b"lo");
        assert!(Ground::new(&json!({}), &[], Some(SOURCE)).is_none());
        assert!(Ground::new(&json!({}), &[Rule::grounded(JsonPath::root().into())], None).is_none());
    }

    /// Returns whether a text has a place beside the items of a list before it.
    fn has_place(source: &str, items: &[&str], text: &str) -> bool {
        let json =
            |text: &str| serde_json::Value::from(text).to_string().trim_matches('"').as_bytes().to_vec();
        let mut ground = ground(source);
        ground.push(br#"{"items": [""#);
        let items: Vec<Vec<u8>> = items.iter().map(|text| json(text)).collect();
        let items: Vec<(usize, &[u8])> = items.iter().map(Vec::as_slice).enumerate().collect();
        ground.has_place(&json(text), &items)
    }

    #[test]
    fn a_text_has_a_place_unless_the_items_before_it_need_all_of_them() {
        const SOURCE: &str = "Paris Hilton saw Ann in Paris. Ann \\C\\ saw 1,250";
        for (text, items, expected) in [
            ("Paris", &[][..], true),
            ("Paris", &["Paris"], true),
            ("Paris", &["Paris", "Paris"], false),
            ("Paris", &["Paris Hilton"], true),
            ("Paris Hilton", &["Paris"], true),
            ("Paris Hilton", &["Paris", "Paris"], false),
            ("Hilton", &["Paris", "Paris Hilton"], false),
            ("saw Ann in", &["saw", "Ann", "Ann"], false),
            ("C\\", &["\\C"], false),
            // A number can stand in other notations.
            ("1250", &["1250"], true),
            ("1,250", &["saw"], true),
            ("not there", &["Paris", "not there"], true),
            // Items that have no place, because a schema demanded them, need none.
            ("Hilton", &["Paris", "Paris", "Paris", "Paris"], true),
            ("Ann", &["Hilton", "Hilton", "Ann", "Ann"], false),
        ] {
            assert_eq!(has_place(SOURCE, items, text), expected, "{text}: {items:?}");
        }
        let many = "x y ".repeat(MAX_STEPS);
        assert!(has_place(&many, &["x"; 200], "x"), "more places than are compared");
        let few = "x y ".repeat(60);
        assert!(has_place(&few, &["x"; 59], "x") && !has_place(&few, &["x"; 60], "x"));
        assert!(has_place(&few, &["x y"; 60], "y"), "too many steps");
    }

    /// Returns whether runs of words stand at places of a text that do not overlap.
    fn stand(words: &[&str], runs: &[String], taken: u64) -> bool {
        let Some((run, others)) = runs.split_first() else { return true };
        let run: Vec<&str> = run.split(' ').collect();
        (0..words.len()).any(|from| {
            let own = ((1 << run.len()) - 1) << from;
            words[from..].starts_with(&run) && taken & own == 0 && stand(words, others, taken | own)
        })
    }

    proptest::proptest! {
        #[test]
        fn a_text_has_a_place_if_all_runs_of_words_can_be_placed(
            words in proptest::collection::vec("[abc]", 1..7),
            runs in proptest::collection::vec((0_usize..6, 1_usize..4), 1..6),
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let run = |(from, length): (usize, usize)| {
                let from = from % words.len();
                words[from..words.len().min(from + length)].join(" ")
            };
            let mut placed: Vec<String> = Vec::new();
            let mut items: Vec<String> = Vec::new();
            for run in runs.into_iter().map(run) {
                placed.push(run.clone());
                let expected = stand(&words, &placed, 0);
                let earlier: Vec<&str> = items.iter().map(String::as_str).collect();
                proptest::prop_assert_eq!(has_place(&words.join(" "), &earlier, &run), expected, "{:?}, {}", items, run);
                if !expected {
                    placed.pop();
                }
                items.push(run);
            }
        }
    }

    #[test]
    fn optional_members_without_a_value_in_the_source_are_left_out() {
        let members = |source: &str, schema: Value| {
            let ground =
                Ground::new(&schema, &[Rule::grounded(JsonPath::root().into())], Some(source)).unwrap();
            let schema = ground.sayable();
            schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        let schema = |is_closed: bool| {
            json!({"additionalProperties": !is_closed, "required": ["a"], "properties": {
                "a": {"type": "number"}, "b": {"type": "number"}, "c": {"type": ["number", "null"]}, "d": {"type": "string"},
                "e": {"type": "integer", "enum": [4]},
            }})
        };
        assert_eq!(members("no digits", schema(true)), ["a", "c", "d", "e"]);
        assert_eq!(members("no digits", schema(false)), ["a", "b", "c", "d", "e"]);
        assert_eq!(members("4", schema(true)), ["a", "b", "c", "d", "e"]);
        let whole = json!({"additionalProperties": false, "properties": {"b": {"type": "integer"}, "c": {"type": "number"}}});
        assert_eq!(members("4.5", whole), ["c"]);
        assert_eq!(members(" -- ", schema(true)), ["a", "c", "e"]);
    }
}
