use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Category, Experience, RiskTolerance, Timestamp, WalletError};

/// The maximum number of free answers in a survey.
pub const MAX_ANSWERS: usize = 50;

/// The maximum number of characters of a question.
pub const MAX_QUESTION: usize = 500;

/// The maximum number of characters of a free answer. The prompt contains far fewer.
pub const MAX_ANSWER: usize = 10_000;

/// The owner's statements: claims that are compared with the history, and free answers.
///
/// ```
/// use formwork_oracle::wallet::{Category, Survey};
///
/// let survey = Survey { uses: vec![Category::Swap, Category::Swap], ..Survey::default() };
/// assert_eq!(survey.check().unwrap_err().message(), "swap is there already: name each use once");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// The claimed experience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experience: Option<Experience>,
    /// The claimed start of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_since: Option<Timestamp>,
    /// The claimed purposes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<Category>,
    /// The claimed risk tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_tolerance: Option<RiskTolerance>,
    /// Answers in the owner's own words. The prompt quotes them as data, cut short; nothing checks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
}

/// A question and the owner's answer.
///
/// ```
/// use formwork_oracle::wallet::Answer;
///
/// let answer: Answer = serde_json::from_str(r#"{"question": "Why?", "answer": "For fun."}"#)?;
/// assert_eq!(answer.answer, "For fun.");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question, at most [`MAX_QUESTION`] characters.
    pub question: String,
    /// The answer, at most [`MAX_ANSWER`] characters.
    pub answer: String,
}

impl Survey {
    /// Checks that the survey is within the limits.
    ///
    /// # Errors
    /// [`WalletError`] for the first value out of range, with its JSON path in a wallet.
    pub fn check(&self) -> Result<(), WalletError> {
        let wrong = |path: String, message: String| Err(WalletError::at(format!("$.survey.{path}"), message));
        if let Some((place, one)) =
            self.uses.iter().enumerate().find(|(place, one)| self.uses[..*place].contains(one))
        {
            return wrong(format!("uses[{place}]"), format!("{one} is there already: name each use once"));
        }
        if self.answers.len() > MAX_ANSWERS {
            let message = format!("{} answers: give at most {MAX_ANSWERS}", self.answers.len());
            return wrong("answers".to_owned(), message);
        }
        for (place, Answer { question, answer }) in self.answers.iter().enumerate() {
            for (name, text, most) in [("question", question, MAX_QUESTION), ("answer", answer, MAX_ANSWER)] {
                let length = text.chars().count();
                if length > most {
                    let message = format!("{length} characters: give at most {most}");
                    return wrong(format!("answers[{place}].{name}"), message);
                }
            }
        }
        Ok(())
    }
}
