use std::ops::Deref;
use std::path::Path;

use formwork_core::{Context, JsonPath};
use formwork_json::{Level, line_column, locate, read_bytes};
use serde_json::{Map, Value};

use crate::wallet::Wallet;
use crate::{AiScore, CrossCheck, contract};

/// The maximum number of examples in a set; every prompt contains all of them.
pub const MAX_EXAMPLES: usize = 32;

/// A validated set of examples for the prompt: wallets with correct answers.
///
/// A file of examples is a JSON array of `{"wallet": …, "answer": …}`. Every answer has to satisfy the schema and the
/// cross-check, because models copy mistakes in examples.
///
/// ```
/// use formwork_oracle::{CrossCheck, Examples};
///
/// let text = r#"[{
///     "wallet": {"transactions": []},
///     "answer": {
///         "score": 900,
///         "scoreBreakdown": {"activity": 0, "maturity": 0, "diversity": 0, "riskBehavior": 40, "surveyMatch": 0},
///         "reasoning": "It never did anything.", "risk_factors": ["no history"], "strengths": []
///     }
/// }]"#;
/// let error = Examples::from_json("few.json", text.as_bytes(), &CrossCheck::default()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "few.json:4:18: $[0].answer.score: weightedSum: expected from 80 to 120, found 900"
/// );
/// # Ok::<(), formwork_oracle::ExamplesError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examples(Vec<Example>);

/// A validated example.
///
/// ```
/// use formwork_oracle::{CrossCheck, Examples};
///
/// let text = br#"[{"wallet": {"transactions": []}, "answer": {
///     "score": 100,
///     "scoreBreakdown": {"activity": 0, "maturity": 0, "diversity": 0, "riskBehavior": 40, "surveyMatch": 0},
///     "reasoning": "It never did anything.", "risk_factors": ["no history"], "strengths": []
/// }}]"#;
/// let examples = Examples::from_json("one.json", text, &CrossCheck::default())?;
/// let example = examples.iter().next().unwrap();
/// assert!(example.words.starts_with("transactions: 0") && example.answer.score == 100);
/// # Ok::<(), formwork_oracle::ExamplesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The wallet's text in the prompt.
    pub words: String,
    /// The correct answer.
    pub answer: AiScore,
}

/// The reason why a set of examples cannot be used: the location, the mistake, and the expectation in one line.
///
/// ```
/// use formwork_oracle::{CrossCheck, Examples, ExamplesError};
///
/// let error = Examples::from_json("none.json", b"{}", &CrossCheck::default()).unwrap_err();
/// assert!(matches!(error, ExamplesError::File { place, .. } if place.starts_with("none.json")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExamplesError {
    /// The file cannot be read, is not JSON, or does not have the form of a set.
    #[error("{place}: {message}")]
    File {
        /// The file, with line and column if they are known.
        place: String,
        /// The reason.
        message: String,
    },
    /// A wallet is invalid.
    #[error("{place}: $[{nth}].wallet: {message}")]
    Wallet {
        /// The file, with line and column.
        place: String,
        /// The position of the example, from 0.
        nth: usize,
        /// The reason, with the path in the wallet.
        message: String,
    },
    /// An answer violates the schema or fails the cross-check.
    #[error("{place}: {path}: {rule}: {detail}")]
    Answer {
        /// The file, with line and column.
        place: String,
        /// The path in the file.
        path: JsonPath,
        /// The keyword of the schema, or the rule name of the check.
        rule: String,
        /// The expected and the actual value.
        detail: String,
    },
}

impl Examples {
    /// Returns an empty set.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Reads a set from a file.
    ///
    /// # Errors
    /// [`ExamplesError`] for the first mistake.
    pub fn read(path: &Path, check: &CrossCheck) -> Result<Self, ExamplesError> {
        let file = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| ExamplesError::File {
            place: file.clone(),
            message: format!("it cannot be read: {error}"),
        })?;
        Self::from_json(&file, &bytes, check)
    }

    /// Parses a set from JSON; `file` is its name in errors.
    ///
    /// # Errors
    /// [`ExamplesError`] for the first mistake.
    pub fn from_json(file: &str, json: &[u8], check: &CrossCheck) -> Result<Self, ExamplesError> {
        let text = String::from_utf8_lossy(json);
        let place = |at: usize| {
            let (line, column) = line_column(&text, at);
            format!("{file}:{line}:{column}")
        };
        let wrong = |at: usize, message: String| ExamplesError::File { place: place(at), message };
        let reading = read_bytes(json, Level::Strict)
            .map_err(|error| wrong(error.at().unwrap_or_default(), error.to_string()))?;
        let document = reading.into_candidates().swap_remove(0).value;
        let at = |path: &JsonPath| locate(&text, path).map_or(0, |span| span.start);
        let Value::Array(items) = document else {
            return Err(wrong(
                0,
                "a set of examples is an array: [{\"wallet\": …, \"answer\": …}]".to_owned(),
            ));
        };
        if items.len() > MAX_EXAMPLES {
            return Err(wrong(0, format!("{} examples: at most {MAX_EXAMPLES} are taken", items.len())));
        }
        let contract = contract(check).map_err(|error| wrong(0, error.to_string()))?;
        let mut examples = Vec::with_capacity(items.len());
        for (nth, item) in items.iter().enumerate() {
            let path = JsonPath::root().index(nth);
            let has_both =
                |item: &Map<String, Value>| ["wallet", "answer"].iter().all(|name| item.contains_key(*name));
            if !item.as_object().is_some_and(|item| item.len() == 2 && has_both(item)) {
                let message = format!("{path}: an example has `wallet` and `answer`, and nothing else");
                return Err(wrong(at(&path), message));
            }
            let own = path.key("wallet");
            let span = locate(&text, &own).map_or("", |span| span.of(&text));
            let wallet = Wallet::from_json(span.as_bytes()).map_err(|error| {
                let within = error.path().map(|path| format!("{path}: ")).unwrap_or_default();
                ExamplesError::Wallet {
                    place: place(at(&own)),
                    nth,
                    message: format!("{within}{}", error.message()),
                }
            })?;
            let own = path.key("answer");
            let answer = item.get("answer").unwrap_or(&Value::Null);
            let judgement = contract.judge(answer, &Context::EMPTY);
            if let Some(violation) = judgement.violations.first() {
                let inner = violation.path.segments().iter().cloned();
                let path = inner.fold(own.clone(), |path, segment| path.child(segment));
                // A missing value has no location, so the object without it is reported.
                let known = locate(&text, &path).or_else(|| locate(&text, &path.parent()?));
                let place = place(known.map_or(0, |span| span.start));
                let (rule, detail) = (violation.rule.clone(), violation.detail());
                return Err(ExamplesError::Answer { place, path, rule, detail });
            }
            let undecoded = || wrong(at(&own), format!("{own}: it does not decode"));
            let answer = judgement.into_decoded::<AiScore>().ok_or_else(undecoded)?;
            examples.push(Example { words: wallet.features().to_string(), answer });
        }
        Ok(Self(examples))
    }

    /// Returns the number, from 1, of the example whose reasoning is copied: as a whole, or as the whole of a passage
    /// of at least six words. White space, case and punctuation at the ends do not count.
    pub(crate) fn copied_by(&self, reasoning: &str) -> Option<usize> {
        let normalized = normal(reasoning);
        let copies = |example: &Example| {
            let own = normal(&example.answer.reasoning);
            let shorter = if own.len() < normalized.len() { &own } else { &normalized };
            own == normalized
                || is_passage(shorter) && (own.contains(&normalized) || normalized.contains(&own))
        };
        self.0.iter().position(copies).map(|index| index + 1)
    }

    /// Returns the number, from 1, of the example that has this risk or strength. White space, case and punctuation at the ends
    /// do not count.
    pub(crate) fn listed_in(&self, entry: &str) -> Option<usize> {
        let entry = normal(entry);
        let lists = |Example { answer, .. }: &Example| {
            answer.risk_factors.iter().chain(&answer.strengths).any(|own| normal(own) == entry)
        };
        self.0.iter().position(lists).map(|index| index + 1)
    }
}

/// Returns a text for comparisons: in lower case, with single spaces, without punctuation at its ends.
pub(crate) fn normal(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    words.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

/// Returns whether a normal text is long enough not to match by chance.
pub(crate) fn is_passage(normal: &str) -> bool {
    normal.split(' ').nth(5).is_some()
}

/// The examples, in order.
impl Deref for Examples {
    type Target = [Example];

    fn deref(&self) -> &[Example] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(answer: &str) -> Result<Examples, ExamplesError> {
        let text = format!("[\n  {{\"wallet\": {{\"transactions\": []}}, \"answer\": {answer}}}\n]");
        Examples::from_json("few.json", text.as_bytes(), &CrossCheck::default())
    }

    fn answer(score: &str, reasoning: &str) -> String {
        format!(
            r#"{{"score": {score}, "scoreBreakdown": {{"activity": 0, "maturity": 0, "diversity": 0, "riskBehavior": 40,
            "surveyMatch": 0}}, "reasoning": "{reasoning}", "risk_factors": [], "strengths": []}}"#
        )
    }

    #[test]
    fn a_right_set_is_read() {
        let examples = set(&answer("100", "It never did anything.")).unwrap();
        assert_eq!((examples.len(), examples.iter().next().unwrap().answer.score), (1, 100));
        assert!(examples.iter().next().unwrap().words.contains("transactions: 0"));
        assert!(Examples::from_json("x", b"[]", &CrossCheck::default()).unwrap().is_empty());
    }

    #[test]
    fn a_copied_reasoning_is_noticed_and_a_likeness_is_none() {
        let own = "It never did anything, and nobody knows it.";
        let examples = set(&answer("100", own)).unwrap();
        for (reasoning, copied) in [
            (own.to_owned(), Some(1)),
            (format!("  {}\n", own.replace(' ', "  ")), Some(1)),
            (format!("{own} That is all."), Some(1)),
            (own.trim_end_matches('.').to_uppercase(), Some(1)),
            ("It never did anything, and nobody".to_owned(), Some(1)),
            ("It never did".to_owned(), None),
            ("It did a lot, and everybody knows it.".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(examples.copied_by(&reasoning), copied, "{reasoning}");
            assert_eq!(Examples::none().copied_by(&reasoning), None);
        }
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        let whole = "It never did anything.";
        for (normalized, expected) in [
            (
                answer("79", whole),
                "few.json:2:56: $[0].answer.score: weightedSum: expected from 80 to 120, found 79",
            ),
            (
                answer("1001", whole),
                "few.json:2:56: $[0].answer.score: maximum: expected at most 1000, found 1001",
            ),
            ("{}".to_owned(), "few.json:2:46: $[0].answer.score: required: required field is missing"),
            ("[".to_owned(), "few.json:"),
        ] {
            let error = set(&normalized).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = set(&answer("100", "short")).unwrap_err().to_string();
        assert!(error.contains("$[0].answer.reasoning: minLength"), "{error}");
        for (text, expected) in [
            ("{}", "few.json:1:1: a set of examples is an array"),
            ("[{\"wallet\": {}}]", "few.json:1:2: $[0]: an example has `wallet` and `answer`"),
            ("[{\"wallet\": {\"summary\": 3}, \"answer\": {}}]", "few.json:1:13: $[0].wallet: $.summary: "),
        ] {
            let error = Examples::from_json("few.json", text.as_bytes(), &CrossCheck::default()).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        let many = format!("[{}]", vec!["1"; MAX_EXAMPLES + 1].join(","));
        let error = Examples::from_json("few.json", many.as_bytes(), &CrossCheck::default()).unwrap_err();
        assert!(error.to_string().contains("at most 32"), "{error}");
        let error = Examples::read(Path::new("no/such.json"), &CrossCheck::default()).unwrap_err();
        assert!(error.to_string().starts_with("no/such.json: it cannot be read: "), "{error}");
    }
}
