//! Whether a verdict contradicts the reasoning before it.
//!
//! Words decide, not a model: the last sentence that says outright whether the criterion is met. Reasoning that says so
//! nowhere, or not in English, contradicts nothing.

/// Whether a reasoning ends in a conclusion, and which: `Some(true)` if it says that the criterion is met.
pub(crate) fn conclusion(reasoning: &str) -> Option<bool> {
    let text = reasoning.to_lowercase().replace('’', "'");
    // What is said with a reservation is no conclusion.
    let sentences = text.split(['.', '!', '?', ';', '\n']).filter(|sentence| !hedged(sentence));
    sentences.filter_map(said).next_back()
}

/// Phrases which show that a sentence is about the criterion being met.
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

/// Phrases which show that it is not.
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

/// Words that turn a statement around which follows them within a few words.
const NEGATIONS: &[&str] = &["not", "never", "neither", "nor", "hardly", "cannot", "n't", "without", "no"];

/// How many words before a statement a negation still counts.
const REACH: usize = 4;

fn hedged(sentence: &str) -> bool {
    ["if ", "would ", "whether ", "unless ", "could ", "might ", "may "]
        .iter()
        .any(|word| sentence.contains(word))
}

fn said(sentence: &str) -> Option<bool> {
    let missed = MISSED.iter().filter_map(|words| Some((sentence.rfind(words)?, false, *words)));
    let met = MET.iter().filter_map(|words| Some((sentence.rfind(words)?, true, *words)));
    // `fails to meet the criterion` has both; what begins first governs what is inside of it.
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
