use formwork_core::{Error, Violation};
use formwork_review::GenerationResult;
use formwork_review::document::DocumentError;

/// Why a skill could not be run, or brought nothing.
///
/// `{}` is one line; `{:#}` of a [`Document`](Self::Document) shows the places.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The file cannot be used.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A file cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// There is no such skill.
    #[error("there is no skill `{name}`{}", advice(.meant.as_deref(), .there))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The name that was most likely meant.
        meant: Option<String>,
        /// All that there are.
        there: Vec<String>,
    },
    /// The inputs do not fit.
    #[error("skill `{skill}`: {}", .problems.join("; "))]
    Inputs {
        /// Of which skill.
        skill: String,
        /// The problems, in words.
        problems: Vec<String>,
        /// The same as data, for those that a schema found.
        violations: Vec<Violation>,
    },
    /// The template cannot be filled in.
    #[error("skill `{skill}`, {which}: {message}")]
    Template {
        /// Of which skill.
        skill: String,
        /// `prompt` or `system`.
        which: &'static str,
        /// Why.
        message: String,
    },
    /// Nobody registered the handler.
    #[error("skill `{skill}`: no handler `{handler}` is registered{}", advice(.meant.as_deref(), .there))]
    Handler {
        /// Which skill asks for it.
        skill: String,
        /// Its name.
        handler: String,
        /// The name that was most likely meant.
        meant: Option<String>,
        /// All that there are.
        there: Vec<String>,
    },
    /// The handler failed.
    #[error("skill `{skill}`: the handler failed: {message}")]
    Failed {
        /// Which skill.
        skill: String,
        /// In the handler's words.
        message: String,
    },
    /// The handler does not end.
    #[error("skill `{skill}`: the handler is not done after {seconds} seconds")]
    Late {
        /// Which skill.
        skill: String,
        /// The limit.
        seconds: f64,
    },
    /// A skill came to run itself.
    #[error("a skill must not run itself: {}", .chain.join(" -> "))]
    Recursion {
        /// The skills that ran each other, the same name first and last.
        chain: Vec<String>,
    },
    /// Skills ran skills too deeply.
    #[error("skills run each other more than {limit} deep: {}", .chain.join(" -> "))]
    Deep {
        /// The limit.
        limit: usize,
        /// The skills that ran each other.
        chain: Vec<String>,
    },
    /// The provider that the skill names is not there.
    #[error("{place}: {message}")]
    Provider {
        /// Where the skill names it.
        place: String,
        /// The reason.
        message: String,
    },
    /// Nothing was generated.
    #[error("skill `{skill}`: {}", .result.error.as_ref().map_or("nothing was generated", |error| &error.message))]
    Generation {
        /// Which skill.
        skill: String,
        /// The result, with every attempt.
        result: Box<GenerationResult>,
    },
    /// Nothing could be reviewed.
    #[error("skill `{skill}`: {error}")]
    Review {
        /// Which skill.
        skill: String,
        /// Why.
        error: Error,
    },
}

impl SkillError {
    /// A handler's own failure.
    pub fn failed(skill: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self::Failed { skill: skill.into(), message: message.to_string() }
    }

    /// The kind of the error of a run of a model, if it is one.
    pub fn kind(&self) -> Option<formwork_core::ErrorKind> {
        match self {
            Self::Generation { result, .. } => result.error.as_ref().map(|error| error.kind),
            Self::Review { error, .. } => Some(error.kind()),
            _ => None,
        }
    }
}

/// Which name was meant, or which there are.
fn advice(meant: Option<&str>, there: &[String]) -> String {
    match (meant, there) {
        (Some(meant), _) => format!(": did you mean `{meant}`?"),
        (None, []) => "; there is none".to_owned(),
        (None, there) => format!("; there are {}", there.join(", ")),
    }
}
