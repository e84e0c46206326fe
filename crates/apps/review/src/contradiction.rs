//! Detects a verdict that contradicts the reasoning before it.
//!
//! The last sentence that states plainly whether the criterion is met decides, by fixed English phrases. Reasoning
//! without such a sentence, or in another language, contradicts nothing.

/// Returns the conclusion of a reasoning: `Some(true)` if it states that the criterion is met, `None` without a
/// conclusion.
pub(crate) fn conclusion(reasoning: &str) -> Option<bool> {
    let text = reasoning.to_lowercase().replace('’', "'");
    // A hedged sentence (`if`, `would`, `might`) is no conclusion.
    let sentences = text.split(['.', '!', '?', ';', '\n']).filter(|sentence| !hedged(sentence));
    sentences.filter_map(conclusion_of).next_back()
}

/// Phrases that state that the criterion is met.
const MET: &[&str] = &[
    "meets the criterion",
    "meet the criterion",
    "satisfies the criterion",
    "satisfy the criterion",
    "fulfils the criterion",
    "fulfills the criterion",
    "fulfill the criterion",
    "passes the criterion",
    "pass the criterion",
    "meets this criterion",
    "meet this criterion",
    "satisfies this criterion",
    "satisfy this criterion",
    "criterion is met",
    "criterion is satisfied",
    "criterion is fulfilled",
    "criterion holds",
    "verdict is pass",
    "verdict: pass",
    "verdict should be pass",
];

/// Phrases that state that the criterion is not met.
const MISSED: &[&str] = &[
    "fails the criterion",
    "fail the criterion",
    "fails this criterion",
    "fails to meet",
    "fails to satisfy",
    "violates the criterion",
    "criterion is violated",
    "criterion is not",
    "criterion fails",
    "criterion is unmet",
    "verdict is fail",
    "verdict: fail",
    "verdict should be fail",
];

/// Words that negate a phrase which follows within [`REACH`] words.
const NEGATIONS: &[&str] = &["not", "never", "neither", "nor", "hardly", "cannot", "n't", "without", "no"];

/// The maximum number of words between a negation and the phrase.
const REACH: usize = 4;

fn hedged(sentence: &str) -> bool {
    ["if ", "would ", "whether ", "unless ", "could ", "might ", "may "]
        .iter()
        .any(|word| sentence.contains(word))
}

fn conclusion_of(sentence: &str) -> Option<bool> {
    let missed = MISSED.iter().filter_map(|words| Some((sentence.rfind(words)?, false, *words)));
    let met = MET.iter().filter_map(|words| Some((sentence.rfind(words)?, true, *words)));
    // `fails to meet the criterion` contains a phrase of both lists; the one that starts first governs the other.
    let (at, positive, _) = missed.chain(met).min_by_key(|(at, ..)| *at)?;
    let before = sentence.get(..at).unwrap_or_default();
    let negated = before
        .split_whitespace()
        .rev()
        .take(REACH)
        .any(|word| NEGATIONS.contains(&word.trim_matches(',')) || word.ends_with("n't"));
    Some(positive != negated)
}

#[cfg(test)]
mod tests {
    use super::conclusion;

    #[test]
    fn conclusions_are_found() {
        for (reasoning, says) in [
            ("The summary names the cause. It meets the criterion.", Some(true)),
            ("The summary does not meet the criterion.", Some(false)),
            ("It doesn't satisfy this criterion, as the cause is missing.", Some(false)),
            ("The output fails to meet the criterion because it is rude.", Some(false)),
            ("It does not fail the criterion.", Some(true)),
            ("At first it seems to fail the criterion. But the criterion is met.", Some(true)),
            ("Therefore the criterion is not met", Some(false)),
            ("Verdict: fail", Some(false)),
            ("The answer is short and polite.", None),
            ("If it named the cause, the criterion is met.", None),
            ("It would meet the criterion with a date.", None),
            ("Das Kriterium ist erfüllt.", None),
            ("", None),
        ] {
            assert_eq!(conclusion(reasoning), says, "{reasoning}");
        }
    }
}
