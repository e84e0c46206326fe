use formwork_core::{Error, Violation};
use formwork_review::GenerationResult;
use formwork_review::document::{DocumentError, nearest};

/// The reason why a skill could not be run, or had no output.
///
/// `{}` formats the error in one line. `{:#}` of a [`Document`](Self::Document) adds the lines of the file.
///
/// ```
/// use formwork_core::ErrorKind;
/// use formwork_skill::{Skill, SkillError};
///
/// let error = Skill::parse("a.yaml", "name: a\n").unwrap_err();
/// assert!(matches!(&error, SkillError::Document(document) if document.findings().len() == 1));
/// assert_eq!(error.to_string(), "a.yaml:1:1: required field `description` is missing");
/// assert_eq!(SkillError::failed("a", "no text").kind(), None::<ErrorKind>);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The skill's file has mistakes.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The file cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The path of the file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// There is no skill of this name.
    #[error("there is no skill `{name}`{}", words(.meant.as_deref(), .there, "; there is none"))]
    Unknown {
        /// The requested name.
        name: String,
        /// The most similar name of a skill, if there is one.
        meant: Option<String>,
        /// The names of all skills.
        there: Vec<String>,
    },
    /// The inputs are invalid.
    #[error("skill `{skill}`: {}", .problems.join("; "))]
    Inputs {
        /// The name of the skill.
        skill: String,
        /// The problems, as messages.
        problems: Vec<String>,
        /// The violations of the problems that a schema found.
        violations: Vec<Violation>,
    },
    /// The template cannot be rendered.
    #[error("skill `{skill}`, {which}: {message}")]
    Template {
        /// The name of the skill.
        skill: String,
        /// `prompt` or `system`.
        which: &'static str,
        /// The reason.
        message: String,
    },
    /// The handler is not registered.
    #[error("skill `{skill}`: no handler `{handler}` is registered{}", words(.meant.as_deref(), .there, "; there is none"))]
    Handler {
        /// The name of the skill.
        skill: String,
        /// The name of the handler.
        handler: String,
        /// The most similar name of a handler, if there is one.
        meant: Option<String>,
        /// The names of all handlers.
        there: Vec<String>,
    },
    /// The handler failed.
    #[error("skill `{skill}`: the handler failed: {message}")]
    Failed {
        /// The name of the skill.
        skill: String,
        /// The handler's message.
        message: String,
    },
    /// The handler did not return within the time limit.
    #[error("skill `{skill}`: the handler is not done after {seconds} seconds")]
    Late {
        /// The name of the skill.
        skill: String,
        /// The time limit in seconds.
        seconds: f64,
    },
    /// A skill ran itself, directly or through other skills.
    #[error("a skill must not run itself: {}", .chain.join(" -> "))]
    Recursion {
        /// The names of the skills that ran each other, the same name first and last.
        chain: Vec<String>,
    },
    /// Skills ran skills beyond the maximum depth.
    #[error("skills run each other more than {limit} deep: {}", .chain.join(" -> "))]
    Deep {
        /// The maximum depth.
        limit: usize,
        /// The names of the skills that ran each other.
        chain: Vec<String>,
    },
    /// The provider that the skill names does not exist.
    #[error("{place}: {message}")]
    Provider {
        /// The location in the skill's file.
        place: String,
        /// The reason.
        message: String,
    },
    /// No data was generated.
    #[error("skill `{skill}`: {}", .result.error.as_ref().map_or("nothing was generated", |error| &error.message))]
    Generation {
        /// The name of the skill.
        skill: String,
        /// The result, with every call.
        result: Box<GenerationResult>,
    },
    /// The review was impossible.
    #[error("skill `{skill}`: {error}")]
    Review {
        /// The name of the skill.
        skill: String,
        /// The reason.
        error: Error,
    },
}

impl SkillError {
    /// Creates the error of a skill's handler, with a message.
    pub fn failed(skill: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self::Failed { skill: skill.into(), message: message.to_string() }
    }

    /// Returns the class of a failed generation or review, for errors that have one.
    pub fn kind(&self) -> Option<formwork_core::ErrorKind> {
        match self {
            Self::Generation { result, .. } => result.error.as_ref().map(|error| error.kind),
            Self::Review { error, .. } => Some(error.kind()),
            _ => None,
        }
    }
}

/// Returns the most similar name, or all names.
/// Returns the advice for an unknown name: the name that is meant, or the names that there are.
pub(crate) fn advice<'n>(name: &str, there: impl Iterator<Item = &'n String>, none: &str) -> String {
    let there: Vec<&str> = there.map(String::as_str).collect();
    let meant = nearest(name, there.iter().copied());
    words(meant, &there, none)
}

fn words(meant: Option<&str>, there: &[impl std::borrow::Borrow<str>], none: &str) -> String {
    match (meant, there) {
        (Some(meant), _) => format!(": did you mean `{meant}`?"),
        (None, []) => none.to_owned(),
        (None, there) => format!("; there are {}", there.join(", ")),
    }
}
