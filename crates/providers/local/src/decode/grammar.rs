use std::panic::{AssertUnwindSafe, catch_unwind};

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{InferenceCapabilities, TokEnv, TokTrie};

use super::chart::Chart;
use super::restraint::Table;
use crate::error::{one_line, panic_text};

/// Compiles schemas to constraints on the tokens of one model.
pub(crate) struct Grammar {
    factory: ParserFactory,
    environment: TokEnv,
    table: Table,
}

impl Grammar {
    /// # Errors
    /// A message with the reason why llguidance rejects the vocabulary.
    pub(crate) fn new(environment: &TokEnv) -> Result<Self, String> {
        let capabilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(environment, capabilities, &slices)
            .map_err(|error| one_line(&error.to_string()))?;
        // llguidance would write to standard error, which belongs to the program.
        factory.quiet();
        let table = Table::new(environment.tok_trie());
        Ok(Self { factory, environment: environment.clone(), table })
    }

    /// Returns the state of a document of a schema before its first byte: the matcher knows what may come next, the
    /// chart how far the end is.
    ///
    /// # Errors
    /// A message in one line with the part of the schema that cannot be enforced.
    pub(crate) fn begin(&self, schema: &Value) -> Result<(Matcher, Chart), String> {
        let grammar = TopLevelGrammar::from_json_schema(spaced(schema));
        let parser = self.factory.create_parser(grammar).map_err(|error| one_line(&error.to_string()))?;
        let chart = catch_unwind(AssertUnwindSafe(|| Chart::new(parser.parser.grammar())))
            .unwrap_or_else(|panic| Err(panic_text(&*panic)))
            .map_err(|error| one_line(&error))?;
        Ok((Matcher::new(Ok(parser)), chart))
    }

    pub(crate) fn trie(&self) -> &TokTrie {
        self.environment.tok_trie()
    }

    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }
}

/// Returns the schema with fixed white space: one space after each comma and colon, as in most training data. With free
/// white space, small models lose track and copy values wrongly.
fn spaced(schema: &Value) -> Value {
    let guidance = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    match schema.clone() {
        Value::Object(mut members) => {
            members.insert("x-guidance".to_owned(), guidance);
            Value::Object(members)
        }
        Value::Bool(true) => json!({"x-guidance": guidance}),
        other => other,
    }
}
