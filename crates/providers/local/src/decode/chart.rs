use llguidance::HashSet;
use llguidance::derivre::StateID;
use llguidance::earley::CGrammar;
use llguidance::earley::regexvec::MatchingLexemes;

use super::lexemes::Lexemes;
use super::rules::{END, NEVER, Rules, Symbol};

/// An Earley chart of a document in progress, with the shortest way to its end at every byte.
///
/// llguidance's own parser knows what may come next, but not how far the end is. This chart parses by the same grammar.
/// For each symbol that may come next in a row it has the cost of the cheapest way from behind that symbol to the end
/// of the document. A complete row never changes, so these costs are sums of two numbers.
pub(crate) struct Chart {
    rules: Rules,
    lexemes: Lexemes,
    rows: Vec<Row>,
    /// The state within the current lexeme.
    state: StateID,
    /// The number of bytes of the current lexeme.
    begun: usize,
    /// The costs by symbol, kept to avoid an allocation per row.
    costs: Vec<Way>,
}

/// A rule that is parsed up to this element, started in the row with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Item {
    at: usize,
    origin: usize,
}

/// The state between two lexemes.
struct Row {
    items: Vec<Item>,
    /// The symbols that may come next, sorted.
    next: Vec<(Symbol, Way)>,
    /// Whether the document may end here.
    accepts: bool,
}

/// The cheapest way to the end of the document from behind a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    /// The cost in bytes.
    cost: usize,
    /// The item of the row on this way.
    item: usize,
}

const NO_WAY: Way = Way { cost: NEVER, item: usize::MAX };

/// A state of the chart to return to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    rows: usize,
    state: StateID,
    begun: usize,
}

/// The grammar does not allow the byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unexpected;

impl Chart {
    /// Returns the chart before the first byte.
    ///
    /// # Errors
    /// A message of llguidance about lexemes that are too complex.
    pub(crate) fn new(grammar: &CGrammar) -> Result<Self, String> {
        let mut lexemes = Lexemes::new(grammar.lexer_spec())?;
        let rules = Rules::new(grammar, &mut lexemes);
        let costs = vec![NO_WAY; rules.symbols()];
        let mut chart = Self { rules, lexemes, rows: Vec::new(), state: StateID::DEAD, begun: 0, costs };
        let items = chart.rules.starts(Rules::START).iter().map(|at| Item { at: *at, origin: 0 }).collect();
        chart.add(items);
        Ok(chart)
    }

    /// Returns the present state.
    pub(crate) fn mark(&self) -> Mark {
        Mark { rows: self.rows.len(), state: self.state, begun: self.begun }
    }

    /// Returns to an earlier state.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.rows.truncate(mark.rows);
        (self.state, self.begun) = (mark.state, mark.begun);
    }

    /// Parses more of the document.
    ///
    /// # Errors
    /// [`Unexpected`] at a byte that the grammar does not allow. The chart can then only go back to an earlier state.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Unexpected> {
        bytes.iter().try_for_each(|byte| self.step(*byte))
    }

    /// Returns the length of the shortest way to the end in bytes; `None` if there is none.
    pub(crate) fn distance(&mut self) -> Option<usize> {
        self.nearest().map(|(cost, _)| cost)
    }

    /// Returns the shortest way to the end; `None` if there is none.
    pub(crate) fn way(&mut self) -> Option<Vec<u8>> {
        let (cost, next) = self.nearest()?;
        let mut text = Vec::with_capacity(cost);
        let Some((symbol, way)) = next else { return Some(text) };
        let lexeme = self.rules.lexeme(symbol)?;
        text.append(&mut self.lexemes.end(self.state, lexeme)?);
        let mut item = *self.rows.last()?.items.get(way.item)?;
        loop {
            self.rules.write_rest(item.at + 1, &mut text);
            let head = self.rules.head(item.at);
            if head == Rules::START && item.origin == 0 {
                return Some(text);
            }
            let row = self.rows.get(item.origin)?;
            item = *row.items.get(row.behind(head).item)?;
        }
    }

    /// Returns the cost of the shortest way to the end, and the symbol of its first lexeme, if there is one.
    fn nearest(&mut self) -> Option<(usize, Option<(Symbol, Way)>)> {
        let row = self.rows.last()?;
        if self.begun == 0 && row.accepts {
            return Some((0, None));
        }
        let (rules, lexemes) = (&self.rules, &mut self.lexemes);
        // A lower bound of each cost: the length of the lexeme's shortest text without the bytes so far.
        let mut next: Vec<(usize, Symbol, Way)> = row
            .next
            .iter()
            .filter(|(symbol, way)| {
                way.cost < NEVER
                    && rules.lexeme(*symbol).is_some_and(|lexeme| lexemes.is_possible(self.state, lexeme))
            })
            .map(|(symbol, way)| {
                (way.cost + rules.min_length(*symbol).saturating_sub(self.begun), *symbol, *way)
            })
            .collect();
        next.sort_unstable_by_key(|(bound, symbol, _)| (*bound, *symbol));
        let mut nearest: Option<(usize, Option<(Symbol, Way)>)> = None;
        for (bound, symbol, way) in next {
            if nearest.as_ref().is_some_and(|(cost, _)| bound >= *cost) {
                break;
            }
            let end = rules.lexeme(symbol).and_then(|lexeme| lexemes.distance(self.state, lexeme));
            let cost = end.map_or(NEVER, |end| end + way.cost);
            if cost < nearest.as_ref().map_or(NEVER, |(cost, _)| *cost) {
                nearest = Some((cost, Some((symbol, way))));
            }
        }
        nearest
    }

    fn step(&mut self, byte: u8) -> Result<(), Unexpected> {
        let mut state = self.lexemes.step(self.state, byte);
        if state.is_dead() {
            // The byte starts the next lexeme, so the current one may have ended.
            if self.begun == 0 {
                return Err(Unexpected);
            }
            let ended = self.lexemes.accepted(self.state).clone();
            self.scan(&ended)?;
            state = self.lexemes.step(self.state, byte);
            if state.is_dead() {
                return Err(Unexpected);
            }
        }
        self.state = state;
        self.begun += 1;
        let ended = self.lexemes.ended(state);
        if ended.is_some() {
            let ended = ended.clone();
            self.scan(&ended)?;
        }
        Ok(())
    }

    /// Starts the next row after these lexemes.
    fn scan(&mut self, ended: &MatchingLexemes) -> Result<(), Unexpected> {
        let items = self.rows.last().map(|row| row.items.as_slice()).unwrap_or_default();
        let scanned: Vec<Item> = items
            .iter()
            .filter(|item| {
                let lexeme = self.rules.lexeme(self.rules.element(item.at));
                lexeme.is_some_and(|lexeme| ended.contains(lexeme))
            })
            .map(|item| Item { at: item.at + 1, ..*item })
            .collect();
        if scanned.is_empty() {
            return Err(Unexpected);
        }
        self.add(scanned);
        Ok(())
    }

    /// Completes a row and makes it the current one.
    fn add(&mut self, mut items: Vec<Item>) {
        let current = self.rows.len();
        let mut known: HashSet<Item> = items.iter().copied().collect();
        let mut accepts = current == 0 && self.rules.is_nullable(Rules::START);
        let mut done = 0;
        while let Some(Item { at, origin }) = items.get(done).copied() {
            done += 1;
            let mut add = |item| {
                if known.insert(item) {
                    items.push(item);
                }
            };
            let symbol = self.rules.element(at);
            if symbol == END {
                let head = self.rules.head(at);
                accepts |= head == Rules::START && origin == 0;
                // Items that end in the row of their start were already advanced when they were predicted.
                let before = self.rows.get(origin).map(|row| row.items.as_slice()).unwrap_or_default();
                before
                    .iter()
                    .filter(|item| self.rules.element(item.at) == head)
                    .for_each(|item| add(Item { at: item.at + 1, ..*item }));
            } else if self.rules.lexeme(symbol).is_none() {
                self.rules.starts(symbol).iter().for_each(|at| add(Item { at: *at, origin: current }));
                if self.rules.is_nullable(symbol) {
                    add(Item { at: at + 1, origin });
                }
            }
        }
        let next = self.ways(&items, current);
        let lexemes = next.iter().filter_map(|(symbol, _)| self.rules.lexeme(*symbol));
        let lexemes = self.lexemes.set(lexemes);
        (self.state, self.begun) = (self.lexemes.start(&lexemes), 0);
        self.rows.push(Row { items, next, accepts });
    }

    /// Returns the cheapest way to the end from behind each symbol that may come next.
    fn ways(&mut self, items: &[Item], current: usize) -> Vec<(Symbol, Way)> {
        let mut next = Vec::new();
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (index, Item { at, origin }) in items.iter().enumerate() {
                let symbol = self.rules.element(*at);
                let Some(known) = self.costs.get(symbol as usize).copied() else { continue };
                let head = self.rules.head(*at);
                let up = if head == Rules::START && *origin == 0 {
                    0
                } else if *origin == current {
                    self.costs.get(head as usize).map_or(NEVER, |way| way.cost)
                } else {
                    self.rows.get(*origin).map_or(NEVER, |row| row.behind(head).cost)
                };
                let cost = (self.rules.rest(at + 1) + up).min(NEVER);
                if known == NO_WAY {
                    next.push(symbol);
                }
                if known == NO_WAY || cost < known.cost {
                    self.costs[symbol as usize] = Way { cost, item: index };
                    changed = true;
                }
            }
        }
        next.sort_unstable();
        let ways = next
            .into_iter()
            .map(|symbol| (symbol, std::mem::replace(&mut self.costs[symbol as usize], NO_WAY)));
        ways.collect()
    }
}

impl Row {
    /// Returns the cheapest way to the end from behind a symbol.
    fn behind(&self, symbol: Symbol) -> Way {
        let found = self.next.binary_search_by_key(&symbol, |(symbol, _)| *symbol);
        found.ok().and_then(|at| self.next.get(at)).map_or(NO_WAY, |(_, way)| *way)
    }
}

#[cfg(test)]
mod tests {
    use llguidance::api::TopLevelGrammar;
    use llguidance::{Matcher, ParserFactory};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use toktrie::ApproximateTokEnv;

    use super::*;

    /// A matcher on single bytes, and the chart of the same grammar.
    fn begin(schema: &Value) -> (Matcher, Chart) {
        let mut schema = schema.clone();
        schema["x-guidance"] =
            json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
        let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
        factory.quiet();
        let parser = factory.create_parser(TopLevelGrammar::from_json_schema(schema)).unwrap();
        let chart = Chart::new(parser.parser.grammar()).unwrap();
        (Matcher::new(Ok(parser)), chart)
    }

    fn object(properties: Value) -> Value {
        let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Schemas, most of them recursive, with the length of the shortest document.
    fn schemas() -> Vec<(Value, usize)> {
        let node = json!({"$ref": "#/$defs/node"});
        let with = |root: Value, defs: Value| {
            let mut schema = root;
            schema["$defs"] = defs;
            schema
        };
        let linked = |alternatives: Value| {
            let next = json!({"anyOf": alternatives});
            with(node.clone(), json!({"node": object(json!({"value": {"type": "integer"}, "next": next}))}))
        };
        let mut optional = object(json!({"a": node, "name": {"type": "string"}}));
        optional["required"] = json!(["name"]);
        let mut elsewhere = object(json!({"next": {"type": "integer"}, "inner": node}));
        elsewhere["required"] = json!(["next", "inner"]);
        let mut inner = object(json!({"next": node, "value": {"type": "integer"}}));
        inner["required"] = json!(["value"]);
        vec![
            (json!({}), 1),
            (linked(json!([node, {"type": "null"}])), r#"{"value": 0, "next": null}"#.len()),
            (linked(json!([{"type": "null"}, node])), r#"{"value": 0, "next": null}"#.len()),
            (
                with(
                    node.clone(),
                    json!({"node": object(json!({"children": {"type": "array", "items": node}}))}),
                ),
                r#"{"children": []}"#.len(),
            ),
            (
                with(
                    node.clone(),
                    json!({"node": {"anyOf": [
                        object(json!({"children": {"type": "array", "items": node, "minItems": 2}})),
                        {"const": "leaf"},
                    ]}}),
                ),
                r#""leaf""#.len(),
            ),
            (
                with(
                    node.clone(),
                    json!({
                        "node": object(json!({"left": {"$ref": "#/$defs/other"}})),
                        "other": {"anyOf": [object(json!({"right": node})), object(json!({"end": {"type": "boolean"}}))]},
                    }),
                ),
                r#"{"left": {"end": true}}"#.len(),
            ),
            (with(node.clone(), json!({"node": optional})), r#"{"name": ""}"#.len()),
            (with(elsewhere, json!({"node": inner})), r#"{"next": 0, "inner": {"value": 0}}"#.len()),
            (
                json!({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": true}}),
                2,
            ),
            (
                json!({"type": "array", "minItems": 50, "items": object(json!({"n": {"type": "integer"}}))}),
                2 + 50 * r#"{"n": 0}, "#.len() - 2,
            ),
            (json!({"type": "string", "minLength": 300}), 302),
            (json!({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{40}(x|yy)$"}), 2 + 3 + 1 + 40 + 1),
            (json!({"type": "string", "format": "date-time"}), 2 + "2024-01-01T00:00:00Z".len()),
            (json!({"type": "string", "format": "uuid"}), 38),
            (json!({"type": "integer", "minimum": 1200, "multipleOf": 25}), 4),
            (json!({"type": "number", "minimum": 0.125, "maximum": 0.1875}), 4),
            (json!({"enum": ["a much longer name", "abc", [1, 2, 3, 4], {"k": "v"}]}), 5),
            (
                json!({"allOf": [
                    {"type": "object", "properties": {"a": {"type": "string", "minLength": 4}}, "required": ["a"]},
                    {"properties": {"a": {"maxLength": 9}, "b": {"type": "null"}}, "required": ["b"], "additionalProperties": false},
                ], "type": "object"}),
                r#"{"a": "....", "b": null}"#.len(),
            ),
            (
                json!({"type": "object", "patternProperties": {"^k[0-9]{2}$": {"const": 7}},
                    "additionalProperties": false, "minProperties": 1}),
                r#"{"k00": 7}"#.len(),
            ),
        ]
    }

    #[test]
    fn the_shortest_document_of_a_schema_is_found() {
        for (schema, length) in schemas() {
            let (mut matcher, mut chart) = begin(&schema);
            let way = chart.way().unwrap_or_else(|| panic!("{schema}"));
            let text = String::from_utf8(way.clone()).unwrap();
            assert_eq!((way.len(), chart.distance()), (length, Some(length)), "{schema}: {text}");
            let tokens: Vec<u32> = way.iter().map(|byte| u32::from(*byte)).collect();
            matcher.consume_tokens(&tokens).unwrap_or_else(|error| panic!("{error}: {schema}: {text}"));
            assert!(matcher.is_accepting().unwrap(), "{schema}: {text}");
            serde_json::from_str::<Value>(&text).unwrap();
        }
    }

    #[test]
    fn what_nothing_satisfies_in_finite_length_has_no_way() {
        let endless = json!({"$ref": "#/$defs/node", "$defs": {"node": object(json!({"n": {"$ref": "#/$defs/node"}}))}});
        let (_, mut chart) = begin(&endless);
        assert_eq!((chart.distance(), chart.way()), (None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// From any beginning that the matcher allows: the way is one of the matcher's, has the length that is said, and
        /// no byte leads nearer to the end than by one.
        #[test]
        fn from_everywhere_the_way_to_the_end_is_shortest(
            index in 0..schemas().len(), choices in proptest::collection::vec(any::<u16>(), 0..120), plain: bool,
        ) {
            let (schema, _) = schemas().swap_remove(index);
            let (mut matcher, mut chart) = begin(&schema);
            for choice in choices {
                if matcher.is_stopped() {
                    break;
                }
                let mask = matcher.compute_mask().unwrap();
                let printable = |byte: &u8| !plain || (b' '..=b'~').contains(byte);
                let allowed: Vec<u8> = (0..=254).filter(|byte| mask.is_allowed(u32::from(*byte))).collect();
                let plainly: Vec<u8> = allowed.iter().copied().filter(printable).collect();
                let allowed = if plainly.is_empty() { allowed } else { plainly };
                let distance = chart.distance().unwrap();
                for byte in &allowed {
                    let mark = chart.mark();
                    prop_assert_eq!(chart.read(&[*byte]), Ok(()), "{} {:?}", schema, *byte as char);
                    prop_assert!(chart.distance().unwrap() + 1 >= distance, "{} {:?}", schema, *byte as char);
                    chart.back_to(mark);
                }
                let Some(byte) = allowed.get(usize::from(choice) % allowed.len().max(1)) else { break };
                matcher.consume_token(u32::from(*byte)).unwrap();
                prop_assert_eq!(chart.read(&[*byte]), Ok(()));
            }
            if !matcher.is_stopped() {
                let way = chart.way().unwrap();
                prop_assert_eq!(Some(way.len()), chart.distance());
                let tokens: Vec<u32> = way.iter().map(|byte| u32::from(*byte)).collect();
                prop_assert!(matcher.consume_tokens(&tokens).is_ok(), "{}: {:?}", schema, way);
                prop_assert!(matcher.is_accepting().unwrap(), "{}: {:?}", schema, way);
            }
        }
    }
}
