//! The linter: the reactions of a dialect's server to a schema that was not lowered.

mod table;

use formwork_core::LintFinding;
use serde_json::Value;

use self::table::ROWS;
use crate::Reaction;
use crate::limits::Size;
use crate::profile::{Place, Profile};

/// Returns the findings by the data of a dialect.
pub(crate) fn findings(profile: &Profile, schema: &Value) -> Vec<LintFinding<Reaction>> {
    let mut findings = Vec::new();
    visit(&Place { schema, is_root: true, profile }, String::new(), &mut findings);
    if let Some(limits) = &profile.limits
        && let Some((what, size, most)) = Size::of(schema).over(limits)
    {
        let words = format!("{size} {what}, and {most} are taken");
        findings.push(LintFinding::new("", Reaction::Rejected, words).with_keyword("properties"));
    }
    findings
}

fn visit(place: &Place<'_>, pointer: String, out: &mut Vec<LintFinding<Reaction>>) {
    let Profile { engine, rules, .. } = place.profile;
    let of_engine = ROWS.iter().filter(|row| (row.when)(place, row.keyword));
    let of_engine = of_engine.filter_map(|row| Some((row.keyword, row.reaction(*engine)?, row.words)));
    let own = rules.iter().flat_map(|rule| rule.keywords.iter().map(move |keyword| (*keyword, rule)));
    let own = own.filter(|(keyword, rule)| (rule.when)(place, keyword));
    let own = own.map(|(keyword, rule)| (keyword, rule.reaction, rule.words));
    out.extend(of_engine.chain(own).map(|(keyword, reaction, words)| {
        LintFinding::new(pointer.as_str(), reaction, words).with_keyword(keyword)
    }));
    for (step, inner) in place.inside() {
        visit(&inner, format!("{pointer}{step}"), out);
    }
}
