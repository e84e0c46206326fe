use std::panic::{AssertUnwindSafe, catch_unwind};

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{InferenceCapabilities, TokEnv, TokTrie};

use super::chart::Chart;
use super::restraint::Table;
use crate::error::{one_line, panic_text};

/// The compiler of schemas into constraints on one model's tokens.
pub(crate) struct Grammar {
    factory: ParserFactory,
    environment: TokEnv,
    table: Table,
}

impl Grammar {
    /// # Errors
    /// The reason why llguidance refuses the vocabulary.
    pub(crate) fn new(environment: &TokEnv) -> Result<Self, String> {
        let capabilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(environment, capabilities, &slices)
            .map_err(|error| one_line(&error.to_string()))?;
        // It would write to stderr, which belongs to the program.
        factory.quiet();
        let table = Table::new(environment.tok_trie());
        Ok(Self { factory, environment: environment.clone(), table })
    }

    /// Returns what is needed to write a document of a schema, before its first byte: the matcher says what may come
    /// next, the chart how far it is to the end.
    ///
    /// # Errors
    /// Returns, on one line, what of the schema cannot be enforced.
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

/// Returns the schema with the one way of writing that models know best: a space after each comma and colon, no other
/// white space. Without it a small model loses its way in white space and copies values wrongly.
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
