//! Measures the cost of validation for a score: parsing, validating, decoding and cross-checking a completion.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use formwork_core::{Context, Contract, Level};
use formwork_oracle::fallback::{self, Counts};
use formwork_oracle::wallet::{Reader, Wallet};
use formwork_oracle::{AiScore, CrossCheck};

use super::report::{Goal, Row};
use crate::{Failure, workspace};

/// The number of wallets. Each has a valid completion, and one whose score contradicts its breakdown.
const WALLETS: usize = 200;

/// The number of validations per completion.
const ROUNDS: usize = 21;

pub(super) fn measure() -> Result<Vec<Row>, Failure> {
    let check = CrossCheck::default();
    let contract = formwork_oracle::contract(&check).map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    // The first round warms up caches, like the first score of a process.
    for round in 0..=ROUNDS {
        for (text, is_right) in answers(&check)? {
            let start = Instant::now();
            let accepted = black_box(is_accepted(&contract, black_box(&text)));
            let took = start.elapsed().as_nanos() as f64 / 1000.0;
            if accepted != is_right {
                return Err(format!("judged wrongly: {text}").into());
            }
            if round > 0 {
                times.push(took);
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let rank = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
    let from = format!("p50 {:.1} µs, n = {}", rank(50), times.len());
    let what = "the oracle's validation, text to score or violations, p95";
    Ok(vec![Row::figure(what, from, rank(95), "µs", Some(Goal::AtMost(20.0)))])
}

/// Returns completions, and whether each is valid.
fn answers(check: &CrossCheck) -> Result<Vec<(String, bool)>, String> {
    let mut answers = Vec::new();
    for wallet in wallets()?.iter().cycle().take(WALLETS) {
        let mut answer = fallback::score(&Counts::from(&wallet.features()), check);
        answers.push((text(&answer)?, true));
        answer.score = (answer.score + 500) % 1000;
        answers.push((text(&answer)?, false));
    }
    Ok(answers)
}

/// The wallets of the examples.
fn wallets() -> Result<Vec<Wallet>, String> {
    let folder = workspace::root().join("examples/wallets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files.iter().map(|path| Reader::new().file(path).map_err(|error| error.to_string())).collect()
}

fn text(answer: &AiScore) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}

fn is_accepted(contract: &Contract, text: &str) -> bool {
    let Ok(reading) = formwork_json::read(text, Level::Clean) else { return false };
    let Some(candidate) = reading.into_candidates().into_iter().next() else { return false };
    let judgement = contract.judge(&candidate.value, &Context::EMPTY);
    judgement.is_accepted() && judgement.into_decoded::<AiScore>().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_answers_are_right() {
        let check = CrossCheck::default();
        let contract = formwork_oracle::contract(&check).unwrap();
        let answers = answers(&check).unwrap();
        assert_eq!(answers.len(), 2 * WALLETS);
        assert!(answers.iter().all(|(text, is_right)| is_accepted(&contract, text) == *is_right));
    }
}
