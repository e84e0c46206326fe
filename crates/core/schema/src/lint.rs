use std::borrow::Cow;

use formwork_core::keywords::{self, Holds, keyword};
use formwork_core::{LintFinding, Severity, escape, misspelled};
use serde_json::{Map, Value};

use crate::SchemaError;
use crate::bounds::shallow;
use crate::compile::compile;
use crate::examine::unsatisfiable;
use crate::request::says_nothing;

/// Finds mistakes in a schema: it does not compile, refers to other documents, accepts no value or [every value](says_nothing),
/// or has keywords and required names that look misspelled.
///
/// It takes little time and stack for every schema. Whether some value satisfies the schema is therefore only decided if
/// the schema is small (256 KiB), not deep (40 nested parts, counting through references) and has few combinations of
/// alternatives (128 in all). At most 200 findings are returned.
///
/// ```
/// let findings = formwork_schema::lint(&serde_json::json!({"type": "object", "requird": ["a"]}));
/// assert_eq!(findings[0].to_string(), "warning: #/requird: unknown keyword: did you mean `required`?");
/// ```
pub fn lint(schema: &Value) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    match compile(schema) {
        // A schema that does not compile may be nested too deeply for the other checks.
        Err(error) if shallow(schema).is_err() => {
            return vec![LintFinding::new(error.pointer, Severity::Error, error.message)];
        }
        Err(error) => {
            findings.push(LintFinding::new(error.pointer, Severity::Error, error.message));
        }
        Ok(_) => {
            unsatisfiable(schema, &mut findings);
            if let Some(reason) = says_nothing(schema) {
                let SchemaError { pointer, message } = reason.into();
                findings.push(LintFinding::new(pointer, Severity::Warning, message));
            }
        }
    }
    let mut spelling = Spelling { path: Vec::new(), compared: 0, findings: Vec::new() };
    spelling.schema(schema);
    findings.append(&mut spelling.findings);
    findings.truncate(MAX_FINDINGS);
    findings
}

/// The maximum number of findings: a schema with more repeats one mistake.
const MAX_FINDINGS: usize = 200;

/// The maximum number of compared pairs of words, which limits the time for schemas with thousands of names.
const MAX_COMPARED: usize = 200_000;

/// The maximum number of wrong letters of a misspelled word.
const MAX_WRONG: usize = 2;

/// Finds misspelled words in a schema.
struct Spelling<'s> {
    /// The current place, as the names that lead there.
    path: Vec<Cow<'s, str>>,
    compared: usize,
    findings: Vec<LintFinding>,
}

impl<'s> Spelling<'s> {
    /// Examines a part of the schema, one step further inside.
    fn inside(&mut self, step: impl Into<Cow<'s, str>>, look: impl FnOnce(&mut Self)) {
        if self.findings.len() < MAX_FINDINGS && self.compared < MAX_COMPARED {
            self.path.push(step.into());
            look(self);
            self.path.pop();
        }
    }

    fn warn(&mut self, words: String) {
        let pointer: String = self.path.iter().map(|step| format!("/{}", escape(step))).collect();
        self.findings.push(LintFinding::new(pointer, Severity::Warning, words));
    }

    fn schema(&mut self, schema: &'s Value) {
        let Value::Object(members) = schema else { return };
        for (keyword, value) in members {
            self.inside(keyword, |here| here.keyword(keyword, value, members));
        }
    }

    fn keyword(&mut self, name: &'s str, value: &'s Value, members: &'s Map<String, Value>) {
        match (keyword(name).map(|known| known.holds), value) {
            (Some(Holds::Map), Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    self.inside(name, |here| here.schema(schema));
                }
            }
            (Some(Holds::Schema | Holds::List), Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    self.inside(index.to_string(), |here| here.schema(schema));
                }
            }
            (Some(Holds::Schema), schema) => self.schema(schema),
            (_, Value::Array(names)) if name == "required" => self.required(names, members.get("properties")),
            (None, _) if !name.starts_with("x-") => {
                if let Some(suggestion) = self.misspelled(name, keywords::ALL.iter().map(|known| known.name))
                {
                    self.warn(format!("unknown keyword: did you mean `{suggestion}`?"));
                }
            }
            _ => {}
        }
    }

    /// Adds a finding for each required name that no property has and that is similar to one.
    fn required(&mut self, names: &'s [Value], properties: Option<&'s Value>) {
        let Some(properties) = properties.and_then(Value::as_object) else { return };
        for (index, name) in names.iter().enumerate() {
            let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) else { continue };
            self.inside(index.to_string(), |here| {
                if let Some(suggestion) = here.misspelled(name, properties.keys().map(String::as_str)) {
                    here.warn(format!(
                        "`{name}` is required and no property has that name: did you mean `{suggestion}`?"
                    ));
                }
            });
        }
    }

    fn misspelled<'w>(&mut self, word: &str, among: impl Iterator<Item = &'w str>) -> Option<&'w str> {
        let among: Vec<_> = among.take(MAX_COMPARED.saturating_sub(self.compared)).collect();
        self.compared += among.len();
        misspelled(word, among, MAX_WRONG)
    }
}
