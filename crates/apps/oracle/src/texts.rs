//! Finds texts of an answer that say nothing about the wallet.

use formwork_core::{JsonPath, Report, Stage, Violation};
use serde_json::Value;

use crate::Examples;

/// The keyword of violations for a text without a word.
pub(crate) const BLANK: &str = "blankText";

/// The keyword of violations for a text that is copied from the prompt.
pub(crate) const COPIED: &str = "copiedText";

/// Adds a violation for each text of an answer without a letter, and for a reasoning that is copied from an example or from
/// the `system` prompt.
pub(crate) fn check(answer: &Value, examples: &Examples, system: &str, out: &mut Report) {
    let root = JsonPath::root();
    let mut of = |path: JsonPath, text: &Value| {
        if text.as_str().is_some_and(|text| !text.contains(char::is_alphabetic)) {
            let violation = Violation::new(path, BLANK, Stage::Check);
            out.push(violation.with_expected("a text about the wallet").with_found("a text without a word"));
        }
    };
    of(root.key("reasoning"), &answer["reasoning"]);
    for list in ["risk_factors", "strengths"] {
        for (nth, text) in answer[list].as_array().into_iter().flatten().enumerate() {
            of(root.key(list).index(nth), text);
        }
    }
    let reasoning = answer["reasoning"].as_str().unwrap_or_default().trim();
    let found = match examples.copied_by(reasoning) {
        Some(nth) => format!("the reasoning of example {nth}"),
        None if !reasoning.is_empty() && system.contains(reasoning) => "a text of the prompt".to_owned(),
        None => return,
    };
    let violation = Violation::new(root.key("reasoning"), COPIED, Stage::Check);
    out.push(violation.with_expected("a reasoning about this wallet").with_found(found));
}
