//! The linter: the reactions of a dialect's server to a schema that was not lowered.

mod place;
mod table;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::place::Place;
use self::table::ROWS;
use crate::limits::Size;
use crate::profile::Profile;
use crate::{Dialects, Verdict};

/// A part of a schema that a dialect does not support as it is.
///
/// ```
/// let findings = formwork_dialect::lint("openai", &serde_json::json!({"type": "object", "minProperties": 1}));
/// let finding = findings.iter().find(|finding| finding.keyword == "minProperties").unwrap();
/// assert_eq!((finding.pointer.as_str(), finding.words.as_str()), ("", "not supported"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// The schema with the keyword, or without a required one, as an RFC 6901 JSON Pointer.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The provider's reaction.
    pub verdict: Verdict,
    /// The reason, for people.
    pub words: String,
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, verdict, words } = self;
        write!(f, "#{pointer}: `{keyword}` {verdict}: {words}")
    }
}

/// Returns the parts of a schema that the server of a dialect would reject, ignore or misread, in the order of the
/// document. [`Dialect::lint`](crate::Dialect::lint) does the same for any dialect.
///
/// It covers `openai`, `anthropic`, `gemini`, `gemini-openapi`, `llama-cpp`, `ollama` and `llguidance`; for other names
/// the result is empty. The lint has no findings for a schema that the dialect itself wrote, nor for a keyword whose
/// treatment is uncertain.
///
/// ```
/// use formwork_dialect::{Verdict, lint};
///
/// let schema = serde_json::json!({"type": "number", "maximum": 1});
/// let findings = lint("llama-cpp", &schema);
/// assert_eq!((findings.len(), findings[0].verdict), (1, Verdict::Ignored));
/// assert_eq!(findings[0].to_string(), "#: `maximum` ignored: bounds hold for integers only");
/// assert!(lint("llguidance", &schema).is_empty());
/// ```
pub fn lint(dialect: &str, schema: &Value) -> Vec<LintFinding> {
    Dialects::builtin().get(dialect).map(|dialect| dialect.lint(schema)).unwrap_or_default()
}

/// Returns the findings by the data of a dialect.
pub(crate) fn findings(profile: &Profile, schema: &Value) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    visit(&Place { schema, is_root: true, profile }, String::new(), &mut findings);
    if let Some(limits) = &profile.limits
        && let Some((what, size, most)) = Size::of(schema).over(limits)
    {
        findings.push(LintFinding {
            pointer: String::new(),
            keyword: "properties".to_owned(),
            verdict: Verdict::Rejected,
            words: format!("{size} {what}, and {most} are taken"),
        });
    }
    findings
}

fn visit(place: &Place<'_>, pointer: String, out: &mut Vec<LintFinding>) {
    let Profile { engine, rules, .. } = place.profile;
    let of_engine = ROWS.iter().filter(|row| (row.when)(place, row.keyword));
    let of_engine = of_engine.filter_map(|row| Some((row.keyword, row.verdict(*engine)?, row.words)));
    let own = rules.iter().filter(|rule| (rule.when)(place.schema));
    let own = own.map(|rule| (rule.keyword, rule.verdict, rule.words));
    out.extend(of_engine.chain(own).map(|(keyword, verdict, words)| LintFinding {
        pointer: pointer.clone(),
        keyword: keyword.to_owned(),
        verdict,
        words: words.to_owned(),
    }));
    for (step, inner) in place.inside() {
        visit(&inner, format!("{pointer}{step}"), out);
    }
}
