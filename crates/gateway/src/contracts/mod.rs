//! Contracts: of requests, and named ones from a folder.

mod cache;
mod folder;
mod schema;

use formwork_core::{Absent, Coerce, Rule, Warning};
use serde_json::Value;

pub use formwork::contract::{ContractError, NamedContract, read_contract};

pub(crate) use cache::{Cache, Key};
pub(crate) use folder::Folder;
pub(crate) use schema::{Known, Schema};

/// The contract of an answer, and the form of its request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    pub(crate) rules: Vec<Rule>,
    pub(crate) instructions: Option<String>,
    pub(crate) examples: Vec<(String, Value)>,
    /// Warnings about its file.
    pub(crate) warnings: Vec<Warning>,
}

impl From<&NamedContract> for Spec {
    fn from(named: &NamedContract) -> Self {
        Self {
            name: named.name.clone(),
            schema: named.schema.clone().into(),
            rules: named.rules.clone(),
            instructions: named.instructions.clone(),
            examples: named.examples.clone(),
            warnings: Vec::new(),
        }
    }
}

impl Spec {
    pub(crate) fn new(name: String, schema: impl Into<Schema>) -> Self {
        Self { name, schema: schema.into(), ..Self::default() }
    }

    /// Returns the maximum number of bytes that it adds to a prompt: its schema, instructions and examples.
    pub(crate) fn length(&self) -> usize {
        /// More than the marks that a run counts around a schema and around each message.
        const AROUND: usize = 32;

        let texts = self.instructions.iter().map(String::len);
        let examples =
            self.examples.iter().map(|(input, output)| input.len() + output.to_string().len() + AROUND);
        let schema = self.name.len() + self.schema.length() + AROUND;
        texts.chain(examples).map(|length| length + AROUND).sum::<usize>() + schema
    }

    /// Marks members that a text may lack, and what is done with values that do not fit the schema.
    pub(crate) fn mark(&mut self, absent: Option<&Absent>, coerce: Option<&Coerce>) {
        if absent.is_some() || coerce.is_some() {
            self.schema = self.schema.with_marks(absent, coerce);
        }
    }
}
