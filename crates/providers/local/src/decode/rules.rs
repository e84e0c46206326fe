use std::cmp::Reverse;
use std::collections::BinaryHeap;

use llguidance::HashMap;
use llguidance::earley::CGrammar;
use llguidance::earley::lexerspec::LexemeIdx;

use super::lexemes::Lexemes;

/// A symbol of the grammar: its index in [`Rules`].
pub(crate) type Symbol = u32;

/// The mark after the last element of each rule.
pub(crate) const END: Symbol = u32::MAX;

/// The cost of a symbol without a finite text: so small that the sum of two does not overflow.
pub(crate) const NEVER: usize = usize::MAX / 4;

/// The context-free grammar that llguidance derives from a schema, with the shortest text of each symbol.
///
/// The shortest texts are the least fixed point over the rules (Knuth's generalisation of Dijkstra's algorithm), which
/// covers recursive schemas, as long as the recursion can end.
pub(crate) struct Rules {
    symbols: Vec<Entry>,
    /// The right-hand sides, each followed by [`END`].
    elements: Vec<Symbol>,
    /// The symbol whose rule contains each element.
    heads: Vec<Symbol>,
    /// The length of the shortest text of each element and its successors in the rule, in bytes.
    rest: Vec<usize>,
}

struct Entry {
    lexeme: Option<LexemeIdx>,
    is_nullable: bool,
    /// The positions of the right-hand sides.
    rules: Vec<usize>,
    /// The length of the shortest text in bytes.
    min_length: usize,
    shortest: Shortest,
}

enum Shortest {
    /// The shortest text is empty, or there is none.
    Nothing,
    Text(Vec<u8>),
    /// The position of the rule with the shortest text.
    Rule(usize),
}

impl Rules {
    /// Reads the rules that are reachable from the start, which becomes symbol 0.
    pub(crate) fn new(grammar: &CGrammar, lexemes: &mut Lexemes) -> Self {
        let mut rules =
            Self { symbols: Vec::new(), elements: Vec::new(), heads: Vec::new(), rest: Vec::new() };
        let mut found = vec![grammar.start()];
        let mut known = HashMap::default();
        known.insert(grammar.start(), Self::START);
        while let Some(symbol) = found.get(rules.symbols.len()).copied() {
            let (head, data) = (rules.symbols.len() as Symbol, grammar.sym_data(symbol));
            let mut starts = Vec::new();
            for rule in grammar.rules_of(symbol) {
                starts.push(rules.elements.len());
                for inner in grammar.rule_rhs(*rule).0 {
                    rules.elements.push(*known.entry(*inner).or_insert_with(|| {
                        found.push(*inner);
                        (found.len() - 1) as Symbol
                    }));
                }
                rules.elements.push(END);
            }
            rules.heads.resize(rules.elements.len(), head);
            rules.symbols.push(Entry {
                lexeme: data.lexeme,
                is_nullable: data.is_nullable,
                rules: starts,
                min_length: NEVER,
                shortest: Shortest::Nothing,
            });
        }
        rules.find_shortest(lexemes);
        rules.rest = vec![0; rules.elements.len()];
        for at in (0..rules.elements.len()).rev() {
            if let Some(length) =
                rules.symbols.get(rules.elements[at] as usize).map(|symbol| symbol.min_length)
            {
                rules.rest[at] = (length + rules.rest[at + 1]).min(NEVER);
            }
        }
        rules
    }

    /// The symbol of a whole document.
    pub(crate) const START: Symbol = 0;

    /// Returns the number of symbols.
    pub(crate) fn symbols(&self) -> usize {
        self.symbols.len()
    }

    /// Returns the symbol at a position, or [`END`].
    pub(crate) fn element(&self, at: usize) -> Symbol {
        self.elements.get(at).copied().unwrap_or(END)
    }

    /// Returns the symbol whose rule contains this position.
    pub(crate) fn head(&self, at: usize) -> Symbol {
        self.heads.get(at).copied().unwrap_or(END)
    }

    /// Returns the length of the shortest text from this position to the end of its rule, in bytes.
    pub(crate) fn rest(&self, at: usize) -> usize {
        self.rest.get(at).copied().unwrap_or(NEVER)
    }

    /// Returns the positions of the rules of a symbol.
    pub(crate) fn starts(&self, symbol: Symbol) -> &[usize] {
        self.symbols.get(symbol as usize).map(|symbol| symbol.rules.as_slice()).unwrap_or_default()
    }

    /// Returns the lexeme of a symbol without rules.
    pub(crate) fn lexeme(&self, symbol: Symbol) -> Option<LexemeIdx> {
        self.symbols.get(symbol as usize)?.lexeme
    }

    /// Returns whether a symbol can match the empty text.
    pub(crate) fn is_nullable(&self, symbol: Symbol) -> bool {
        self.symbols.get(symbol as usize).is_some_and(|symbol| symbol.is_nullable)
    }

    /// Returns the length of a symbol's shortest text in bytes.
    pub(crate) fn min_length(&self, symbol: Symbol) -> usize {
        self.symbols.get(symbol as usize).map_or(NEVER, |symbol| symbol.min_length)
    }

    /// Appends the shortest text from this position to the end of its rule.
    pub(crate) fn write_rest(&self, at: usize, text: &mut Vec<u8>) {
        // An explicit stack, because a grammar may be nested deeper than a thread's stack allows.
        let mut places = vec![at];
        while let Some(at) = places.pop() {
            let Some(symbol) = self.symbols.get(self.element(at) as usize) else { continue };
            places.push(at + 1);
            match &symbol.shortest {
                Shortest::Nothing => {}
                Shortest::Text(bytes) => text.extend_from_slice(bytes),
                Shortest::Rule(start) => places.push(*start),
            }
        }
    }

    /// Computes the shortest texts in order of length: each is final when it is found.
    fn find_shortest(&mut self, lexemes: &mut Lexemes) {
        let mut used: Vec<Vec<usize>> = self.symbols.iter().map(|_| Vec::new()).collect();
        // For each rule, by its position: the number of its symbols without a known cost, and the cost of the others.
        let mut sums: HashMap<usize, (usize, usize)> = HashMap::default();
        for entry in &self.symbols {
            for start in &entry.rules {
                let inner = self.elements[*start..].iter().take_while(|element| **element != END);
                let count = inner.map(|symbol| used[*symbol as usize].push(*start)).count();
                sums.insert(*start, (count, 0));
            }
        }
        let mut heap = BinaryHeap::new();
        for (symbol, entry) in self.symbols.iter_mut().enumerate() {
            if let Some(lexeme) = entry.lexeme {
                let start = lexemes.set([lexeme]);
                let start = lexemes.start(&start);
                if let Some(text) = lexemes.end(start, lexeme) {
                    heap.push(Reverse((text.len(), symbol, None)));
                    entry.shortest = Shortest::Text(text);
                }
            } else if entry.is_nullable {
                heap.push(Reverse((0, symbol, None)));
            }
        }
        while let Some(Reverse((cost, symbol, rule))) = heap.pop() {
            let entry = &mut self.symbols[symbol];
            if entry.min_length < NEVER {
                continue;
            }
            entry.min_length = cost;
            if let Some(rule) = rule {
                entry.shortest = Shortest::Rule(rule);
            }
            for start in &used[symbol] {
                let Some((missing, sum)) = sums.get_mut(start) else { continue };
                *missing -= 1;
                *sum = (*sum + cost).min(NEVER - 1);
                if *missing == 0 {
                    heap.push(Reverse((*sum, self.heads[*start] as usize, Some(*start))));
                }
            }
        }
    }
}
