use std::path::{Path, PathBuf};

/// Why a model could not be opened. Each is one line that names the file and, where there is one, the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The file is not a model that this crate runs: damaged, of another architecture, or with another tokenizer.
    #[error("{}: {reason}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// There are no weights and no way to get them.
    #[error("no weights for `{model}`: {reason}")]
    Weights {
        /// The model that was asked for.
        model: String,
        /// The sources that were tried, and the command that helps.
        reason: String,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
    /// The thread that runs the model could not be started, or died.
    #[error("the model's thread failed: {0}")]
    Thread(String),
}

impl LocalError {
    /// A file that is no model for us, on one line whatever the reason holds.
    pub(crate) fn model(path: &Path, reason: impl ToString) -> Self {
        Self::Model { path: path.to_owned(), reason: one_line(&reason.to_string()) }
    }

    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File { path: path.to_owned(), reason: one_line(&reason.to_string()) }
    }

    pub(crate) fn weights(model: &str, reason: impl ToString) -> Self {
        Self::Weights { model: model.to_owned(), reason: one_line(&reason.to_string()) }
    }
}

/// The text with every run of white space as one space, cut at a length that still fits a terminal line or two.
pub(crate) fn one_line(text: &str) -> String {
    const MAX: usize = 400;
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + word.len() + 1 > MAX {
            line.push_str(" …");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns the words of a panic, as far as it was text.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    one_line(text.unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_bounded_line() {
        let error = LocalError::model(Path::new("m.gguf"), "bad\n  magic");
        assert_eq!(error.to_string(), "m.gguf: bad magic");
        assert!(one_line(&"word ".repeat(1000)).len() < 410);
    }
}
