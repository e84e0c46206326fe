//! Decides the criteria that need no model.

use formwork_core::{Context, JsonPath, Report, Segment, Validator as _, Violation, nearest};
use regex::Regex;
use serde_json::Value;

use crate::Material;
use crate::aggregate::undecided;
use crate::answer::as_text;
use crate::quote::{line, sentences};
use crate::{Criterion, CriterionResult, Indeterminate, Verdict};

/// The maximum number of violations that a reasoning lists.
const LISTED: usize = 5;

/// Returns the result of a criterion that needs no model; `None` if a model has to judge it.
pub(crate) fn decide(criterion: &Criterion, material: &Material) -> Option<CriterionResult> {
    if criterion.human {
        let why = Indeterminate::HumanJudgement.words().to_owned();
        return Some(undecided(criterion, Indeterminate::HumanJudgement, why));
    }
    let missing: Vec<&str> =
        criterion.needs.iter().map(String::as_str).filter(|name| !material.has(name)).collect();
    if !missing.is_empty() {
        let why = format!("not given: {}", missing.join(", "));
        return Some(undecided(criterion, Indeterminate::MissingData, why));
    }
    let output = &material.output;
    if let Some(rule) = &criterion.rule {
        // A rule holds for absent values, so an absent value cannot be evaluated by it.
        if let Some(path) = rule.reads().into_iter().find(|path| path.get(output).is_none()) {
            return Some(undecided(criterion, Indeterminate::MissingData, absent(output, &path)));
        }
        let mut report = Report::default();
        rule.validate(output, &Context { source: &material.task, data: &Value::Null }, &mut report);
        return Some(judged(criterion, report.violations()));
    }
    if let Some(schema) = &criterion.schema {
        // The rubric was checked before, so the schema always compiles here.
        let compiled = formwork_schema::compile(schema).ok()?;
        let mut report = Report::default();
        compiled.validate(output, &Context::EMPTY, &mut report);
        return Some(judged(criterion, report.violations()));
    }
    let pattern = criterion.pattern.as_ref()?;
    let Some(found) = pattern.path.get(output) else {
        return Some(undecided(criterion, Indeterminate::MissingData, absent(output, &pattern.path)));
    };
    let text = as_text(found);
    let is_match = Regex::new(&pattern.matches).ok()?.is_match(&text);
    let (holds, verb) = (is_match != pattern.not, if is_match { "matches" } else { "does not match" });
    let why = format!("{} {verb} `{}`", pattern.path, line(&pattern.matches, 100));
    Some(result(criterion, holds, why))
}

/// Returns the reason that the output has no value at `path`, with the most similar member that it has.
fn absent(output: &Value, path: &JsonPath) -> String {
    let members = path.parent().and_then(|parent| parent.get(output)?.as_object());
    let suggestion = match (members, path.last()) {
        (Some(members), Some(Segment::Key(name))) => nearest(name, members.keys().map(String::as_str)),
        _ => None,
    };
    let meant = suggestion.zip(path.parent()).map(|(name, parent)| parent.key(name));
    let meant = meant.map(|path| format!(": did you mean `{path}`?")).unwrap_or_default();
    format!("the output has no `{path}`{meant}")
}

fn judged(criterion: &Criterion, violations: &[Violation]) -> CriterionResult {
    if violations.is_empty() {
        return result(criterion, true, "the rule holds".to_owned());
    }
    let mut why: Vec<String> =
        violations.iter().take(LISTED).map(|violation| sentences(&violation.to_string(), 200)).collect();
    if violations.len() > LISTED {
        why.push(format!("and {} more", violations.len() - LISTED));
    }
    result(criterion, false, why.join("; "))
}

fn result(criterion: &Criterion, holds: bool, reasoning: String) -> CriterionResult {
    CriterionResult::new(&criterion.id, if holds { Verdict::Pass } else { Verdict::Fail }, reasoning, 100)
}

#[cfg(test)]
mod tests {
    use formwork_core::Rule;
    use serde_json::json;

    use super::*;
    use crate::Pattern;

    fn verdict(criterion: &Criterion, output: Value) -> (Verdict, String) {
        let result =
            decide(criterion, &Material { task: "Ada counts.".to_owned(), ..Material::new(output) }).unwrap();
        (result.verdict, result.reasoning)
    }

    #[test]
    fn rules_decide() {
        let rule = Rule::AtMost { target: "$.low".parse().unwrap(), limit: "$.high".parse().unwrap() };
        let criterion = Criterion { rule: Some(rule), ..Criterion::new("a", "low is at most high") };
        assert_eq!(verdict(&criterion, json!({"low": 1, "high": 2})).0, Verdict::Pass);
        let (failed, why) = verdict(&criterion, json!({"low": 3, "high": 2}));
        assert_eq!((failed, why.as_str()), (Verdict::Fail, "atMost at $.low: expected at most 2, found 3"));
        assert_eq!(
            verdict(&criterion, json!({"low": 3})),
            (Verdict::Indeterminate, "the output has no `$.high`".into())
        );
        let rule = Rule::grounded("$.name".parse().unwrap());
        let quoted = Criterion { rule: Some(rule), ..Criterion::new("a", "b") };
        assert_eq!(verdict(&quoted, json!({"name": "ada"})).0, Verdict::Pass);
        assert_eq!(verdict(&quoted, json!({"name": "Bob"})).0, Verdict::Fail);
    }

    #[test]
    fn schemas_and_patterns_decide() {
        let criterion =
            Criterion { schema: Some(json!({"required": ["x", "y"]})), ..Criterion::new("a", "b") };
        assert_eq!(verdict(&criterion, json!({"x": 1, "y": 2})).0, Verdict::Pass);
        let (failed, why) = verdict(&criterion, json!({}));
        assert!(failed == Verdict::Fail && why.contains("$.x") && why.contains("$.y"), "{why}");
        let matches = |not| {
            let pattern = Pattern { path: "$.x".parse().unwrap(), matches: "(?i)sorry".into(), not };
            Criterion { pattern: Some(pattern), ..Criterion::new("a", "b") }
        };
        let criterion = matches(true);
        assert_eq!(verdict(&criterion, json!({"x": "fine"})).0, Verdict::Pass);
        assert_eq!(verdict(&criterion, json!({"x": "Sorry, no"})).0, Verdict::Fail);
        assert_eq!(verdict(&matches(false), json!({"x": ["sorry"]})).0, Verdict::Pass);
        let (undecided, why) = verdict(&criterion, json!({"xx": "Sorry"}));
        assert_eq!(
            (undecided, why.as_str()),
            (Verdict::Indeterminate, "the output has no `$.x`: did you mean `$.xx`?")
        );
    }

    #[test]
    fn people_and_missing_data_come_first() {
        let human = Criterion { human: true, ..Criterion::new("a", "b") };
        assert_eq!(
            decide(&human, &Material::new(json!(1))).unwrap().reason,
            Some(Indeterminate::HumanJudgement)
        );
        let needs = Criterion {
            needs: vec!["prices".to_owned()],
            schema: Some(json!(true)),
            ..Criterion::new("a", "b")
        };
        let with = |prices: Value| {
            let data = [("prices".to_owned(), prices)].into_iter().collect();
            Material { data, ..Material::new(json!(1)) }
        };
        let without = with(Value::Null);
        assert_eq!(decide(&needs, &without).unwrap().reason, Some(Indeterminate::MissingData));
        let with = with(json!([1]));
        assert_eq!(decide(&needs, &with).unwrap().verdict, Verdict::Pass);
        assert!(decide(&Criterion::new("a", "b"), &with).is_none());
    }
}
