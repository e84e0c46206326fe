use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Category, Experience, RiskTolerance, Timestamp, WalletError};

/// The most free answers of a survey.
pub const MAX_ANSWERS: usize = 50;

/// The most characters of a question.
pub const MAX_QUESTION: usize = 500;

/// The most characters of a free answer. A model is shown far fewer of them.
pub const MAX_ANSWER: usize = 10_000;

/// The owner's statements: claims that are checked against the history, and free answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// How much they know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experience: Option<Experience>,
    /// Since when they use this wallet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_since: Option<Timestamp>,
    /// The purposes that they use it for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<Category>,
    /// How much risk they take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_tolerance: Option<RiskTolerance>,
    /// Answers in their own words. They are data: shown to the model in quotation marks and cut short, never checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
}

/// A question and what was answered, in the owner's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question, at most [`MAX_QUESTION`] characters.
    pub question: String,
    /// The answer, at most [`MAX_ANSWER`] characters.
    pub answer: String,
}

impl Survey {
    /// Whether it is within the limits.
    ///
    /// # Errors
    /// [`WalletError`] with the first member that is out of its range, by its JSON path in a wallet.
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
