//! Finds texts of an answer that say nothing about the wallet.

use formwork_core::{JsonPath, Report, Stage, Violation};
use serde_json::Value;

use crate::Examples;
use crate::examples::{is_passage, normal};

/// The keyword of violations for a text without a word.
pub(crate) const BLANK: &str = "blankText";

/// The keyword of violations for a text that is copied from the prompt.
pub(crate) const COPIED: &str = "copiedText";

/// Adds a violation for each text of an answer without a letter, and for each that is copied from an example or from the
/// `system` prompt or the `user` message. White space, case and punctuation at the ends of a text do not count.
///
/// A risk or a strength has few words, which can be in a prompt by chance, so it is copied only as a whole line or sentence, or
/// as a passage of at least six words.
pub(crate) fn check(answer: &Value, examples: &Examples, system: &str, user: &str, out: &mut Report) {
    let root = JsonPath::root();
    let prompts = [system, user];
    let whole = prompts.map(normal);
    let is_sentence = |text: &str| {
        prompts.iter().flat_map(|prompt| prompt.split(['\n', '.'])).any(|one| normal(one) == text)
    };
    let mut of = |path: JsonPath, text: &Value, example: Option<String>, is_short: bool| {
        let Some(text) = text.as_str() else { return };
        if !text.contains(char::is_alphabetic) {
            let violation = Violation::new(path, BLANK, Stage::Check);
            return out.push(
                violation.with_expected("a text about the wallet").with_found("a text without a word"),
            );
        }
        let text = normal(text);
        let is_copied = || {
            whole.iter().any(|prompt| prompt.contains(&text))
                && (!is_short || is_passage(&text) || is_sentence(&text))
        };
        if let Some(found) = example.or_else(|| is_copied().then(|| "a text of the prompt".to_owned())) {
            let violation = Violation::new(path, COPIED, Stage::Check);
            out.push(violation.with_expected("a text about this wallet").with_found(found));
        }
    };
    let reasoning = &answer["reasoning"];
    let example = examples.copied_by(reasoning.as_str().unwrap_or_default());
    let example = example.map(|nth| format!("the reasoning of example {nth}"));
    of(root.key("reasoning"), reasoning, example, false);
    for list in ["risk_factors", "strengths"] {
        for (nth, text) in answer[list].as_array().into_iter().flatten().enumerate() {
            let example = examples.listed_in(text.as_str().unwrap_or_default());
            let example = example.map(|nth| format!("a text of example {nth}"));
            of(root.key(list).index(nth), text, example, true);
        }
    }
}
