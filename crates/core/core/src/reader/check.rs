//! Keywords that only a validator knows.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::keywords::{definition_name, find};
use crate::{Context, Report, Structure};

/// The validator of a schema, and the parts of the schema that its keywords refer to.
#[derive(Default)]
pub(super) struct Judge {
    pub(super) structure: Option<Arc<dyn Structure>>,
    /// `$defs` of the normalised schema.
    pub(super) definitions: Map<String, Value>,
    /// The `$schema` of a draft that has other formats than the latest one.
    pub(super) old_draft: Option<Value>,
}

/// Keywords that the validator judges, compiled at their first use.
pub(super) struct Check {
    pub(super) keyword: &'static str,
    schema: Value,
    compiled: OnceLock<Option<Arc<dyn Structure>>>,
}

impl Check {
    pub(super) fn new(keyword: &'static str, schema: Value) -> Self {
        Self { keyword, schema, compiled: OnceLock::new() }
    }

    /// Returns whether a value satisfies the keywords; `None` if no validator is known, or it does not take them alone.
    pub(super) fn accepts(&self, judge: &Judge, value: &Value) -> Option<bool> {
        let compile = || judge.structure.as_ref()?.compiled(&self.alone(judge)?);
        let structure = self.compiled.get_or_init(compile).as_ref()?;
        let mut report = Report::default();
        structure.validate(value, &Context::EMPTY, &mut report);
        Some(report.is_empty())
    }

    /// Returns the keywords as a schema of its own, with the definitions that they refer to. `None` if they mean something else
    /// alone: older drafts do not have the same formats.
    fn alone(&self, judge: &Judge) -> Option<Value> {
        let mut schema = self.schema.clone();
        let (mut needed, mut open, mut has_format) = (Map::new(), vec![&self.schema], false);
        while let Some(next) = open.pop() {
            find(next, |node| {
                has_format |= node.get("format").is_some();
                if let Some(name) = definition_name(node)
                    && let Some(definition) = judge.definitions.get(name)
                    && needed.insert(name.to_owned(), definition.clone()).is_none()
                {
                    open.push(definition);
                }
                false
            });
        }
        if let Some(draft) = judge.old_draft.as_ref().filter(|_| has_format) {
            if self.keyword != "format" {
                return None;
            }
            schema["$schema"] = draft.clone();
        }
        if let Value::Object(keywords) = &mut schema
            && !needed.is_empty()
        {
            keywords.insert("$defs".to_owned(), Value::Object(needed));
        }
        Some(schema)
    }
}
