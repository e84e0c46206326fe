//! The linter: a dialect's verdict on a schema that was not lowered.

mod place;
mod table;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::place::Place;
use self::table::ROWS;
use crate::Dialects;
use crate::limits::Size;
use crate::profile::Profile;

/// Something in a schema that a dialect does not take as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// RFC 6901 JSON Pointer of the schema that the keyword stands in, or is missing in.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The provider's reaction.
    pub verdict: Verdict,
    /// Why, in words.
    pub words: String,
}

/// A provider's reaction to a keyword that it does not know, or knows otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It answers with an error.
    Rejected,
    /// It goes on as if the keyword were not there, so that invalid answers can come.
    Ignored,
    /// It reads it so that some valid answers, or all of them, cannot be given.
    Forbids,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rejected => "rejected",
            Self::Ignored => "ignored",
            Self::Forbids => "forbids valid answers",
        })
    }
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, verdict, words } = self;
        write!(f, "#{pointer}: `{keyword}` {verdict}: {words}")
    }
}

/// Returns what a dialect of this crate would reject, ignore or misread in a schema as it stands, in the order of the document;
/// [`Dialect::lint`](crate::Dialect::lint) is the same for any dialect.
///
/// For every dialect of [`Native`](crate::Native); the dialects that enforce no schema
/// find nothing, and so does an unknown name. The lint reports nothing about schemas that the dialect itself wrote, and nothing about a keyword whose
/// treatment is not known for sure.
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

/// Returns what the server of a dialect would reject, ignore or misread, by the data of the dialect.
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
