use std::path::{Path, PathBuf};

/// The reason why a model cannot be opened. Each message is one line with the file and, if there is one, the fix.
///
/// ```
/// use formwork_local::{Local, LocalError, LocalOptions};
///
/// let error = Local::open(LocalOptions::new().with_model("no/such.gguf")).unwrap_err();
/// assert!(matches!(error, LocalError::Weights { model, .. } if model == "no/such.gguf"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The file is damaged, or its architecture or tokenizer is not supported.
    #[error("{}: {reason}", path.display())]
    Model {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The weights are not on this machine and cannot be fetched.
    #[error("no weights for `{model}`: {reason}")]
    Weights {
        /// The requested model.
        model: String,
        /// The sources that were tried, and the command that gets the file.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The path of the file or folder.
        path: PathBuf,
        /// The message of the operating system.
        reason: String,
    },
    /// The thread of the model could not be started, or has panicked.
    #[error("the model's thread failed: {0}")]
    Thread(String),
}

impl LocalError {
    /// Returns the error of an unusable file, on one line for every reason.
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

/// Returns the text with single spaces, cut to the length of a line or two in a terminal.
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

/// Returns the message of a panic, if it was text.
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
