//! Which schemas a model may be asked about: told before one is loaded, or fetched.

use std::sync::Arc;

use formwork_core::{Contract, Error, ErrorKind, Inline, Rule, Severity};
use formwork_schema::{compile, lint};
use serde_json::Value;

use crate::rules;

/// A schema that can be asked about, and the rules that belong to it.
#[derive(Clone)]
pub(super) struct Usable {
    pub(super) schema: Value,
    pub(super) rules: Vec<Rule>,
}

/// Takes the rules out of a schema and adds `more`.
///
/// # Errors
/// Refuses a schema that cannot be compiled, one that every answer to would be rejected, and rules that can never run.
pub(super) fn usable(mut schema: Value, more: &[Rule]) -> Result<Usable, Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Schema, message));
    let own = match rules::take(&mut schema) {
        Ok(own) => own,
        Err(message) => return refused(message),
    };
    let compiled = match compile(&schema) {
        Ok(compiled) => compiled,
        Err(error) => return refused(format!("#{}: {}", error.pointer, error.message)),
    };
    if let Some(finding) = lint(&schema).into_iter().find(|finding| finding.severity == Severity::Error) {
        return refused(format!("#{}: {}", finding.pointer, finding.message));
    }
    let rules: Vec<Rule> = own.into_iter().chain(more.iter().cloned()).collect();
    let contract = Contract::new(Arc::new(Inline::new("answer", schema.clone())), compiled);
    rules.iter().cloned().fold(contract, Contract::with_rule).check_paths()?;
    Ok(Usable { schema, rules })
}
