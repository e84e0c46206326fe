use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{InferenceCapabilities, TokEnv, TokTrie};

use super::closing::Closer;
use super::restraint::Table;
use crate::error::one_line;

/// What turns schemas into constraints on one model's tokens.
pub(crate) struct Grammar {
    factory: ParserFactory,
    environment: TokEnv,
    closer: Closer,
    table: Table,
}

impl Grammar {
    /// # Errors
    /// What llguidance has against the vocabulary.
    pub(crate) fn new(environment: &TokEnv) -> Result<Self, String> {
        let capabilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(environment, capabilities, &slices)
            .map_err(|error| one_line(&error.to_string()))?;
        // It would write to stderr, which belongs to the program.
        factory.quiet();
        let trie = environment.tok_trie();
        let (closer, table) = (Closer::new(trie), Table::new(trie));
        Ok(Self { factory, environment: environment.clone(), closer, table })
    }

    /// A matcher at the beginning of a document.
    ///
    /// # Errors
    /// What of the schema cannot be enforced, on one line.
    pub(crate) fn matcher(&self, schema: &Value) -> Result<Matcher, String> {
        let grammar = TopLevelGrammar::from_json_schema(spaced(schema));
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(one_line(&error)),
            None => Ok(matcher),
        }
    }

    pub(crate) fn trie(&self) -> &TokTrie {
        self.environment.tok_trie()
    }

    pub(crate) const fn closer(&self) -> &Closer {
        &self.closer
    }

    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }
}

/// The schema with the one way of writing that models know best: a space after each comma and colon, no other white
/// space. Without it a small model loses its way in white space and copies values wrongly.
fn spaced(schema: &Value) -> Value {
    let guidance = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    let mut schema = schema.clone();
    match &mut schema {
        Value::Object(members) => {
            members.entry("x-guidance").or_insert(guidance);
        }
        Value::Bool(true) => schema = json!({"x-guidance": guidance}),
        _ => {}
    }
    schema
}
