//! How a command ends.

use std::fmt;
use std::io;
use std::process::ExitCode;

use formwork_core::ErrorKind;

use crate::stderr::say;
use crate::terminal;

/// A command that did all that was asked, with its verdict.
pub(crate) enum Status {
    /// Everything is fine.
    Ok,
    /// The command worked, its answer is no: an invalid document, unreadable text, no valid answer.
    Negative,
}

/// Why a command could not do what was asked: one line for people, and the exit code.
#[derive(Debug)]
pub(crate) struct Failed {
    code: u8,
    message: String,
    lacks_key: bool,
}

impl Status {
    /// Everything is fine, or not.
    pub(crate) const fn of(fine: bool) -> Self {
        if fine { Self::Ok } else { Self::Negative }
    }
}

impl Failed {
    const fn new(code: u8, message: String) -> Self {
        Self { code, message, lacks_key: false }
    }

    /// Wrong usage, configuration, or a schema that cannot be used.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(2, message.to_string())
    }

    /// The command worked, and what was asked for is not to be had.
    pub(crate) fn no_answer(message: impl fmt::Display) -> Self {
        Self::new(1, message.to_string())
    }

    /// No provider answered, or there is no model.
    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(3, message.to_string())
    }

    /// Returns the failure of a run of a model, with the exit code of its kind. A deadline before any answer of a provider
    /// is a provider that did not answer.
    pub(crate) fn of(kind: ErrorKind, answered: bool, message: impl fmt::Display) -> Self {
        match kind {
            ErrorKind::Schema | ErrorKind::Config => Self::usage(message),
            ErrorKind::Unavailable => Self::unavailable(message),
            ErrorKind::Deadline if !answered => Self::unavailable(message),
            ErrorKind::Cancelled => Self::interrupted(),
            _ => Self::no_answer(message),
        }
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self::stopped("interrupted")
    }

    /// The user ended the work before its end.
    pub(crate) fn stopped(message: impl fmt::Display) -> Self {
        Self::new(130, message.to_string())
    }
}

impl Failed {
    /// The same failure, which is one of a provider whose key is missing.
    pub(crate) fn of_key(self) -> Self {
        Self { lacks_key: true, ..self }
    }

    /// Whether nothing is wrong but the key of a provider.
    pub(crate) const fn lacks_key(&self) -> bool {
        self.lacks_key
    }

    /// Whether the user has to change something about the command or the configuration.
    pub(crate) const fn is_usage(&self) -> bool {
        self.code == 2
    }

    /// Whether somebody pressed Ctrl-C.
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.code == 130
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writing to standard output failed. A reader that has enough (`| head`) is no error.
impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { 0 } else { 2 };
        Self::new(code, format!("cannot write the output: {error}"))
    }
}

pub(crate) fn code(done: Result<Status, Failed>) -> ExitCode {
    terminal::close();
    match done {
        Ok(Status::Ok) => ExitCode::SUCCESS,
        Ok(Status::Negative) => ExitCode::from(1),
        Err(Failed { code: 0, .. }) => ExitCode::SUCCESS,
        Err(Failed { code, message, .. }) => {
            say!("error: {}", counted(&message));
            ExitCode::from(code)
        }
    }
}

/// Returns the text with equal lines that follow each other as one line with their number.
fn counted(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let counted = lines.chunk_by(|one, next| one == next).map(|equal| match equal {
        [one] => (*one).to_owned(),
        [one, ..] => format!("{one} ({} times)", equal.len()),
        [] => String::new(),
    });
    counted.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn equal_lines_are_one_with_their_number() {
        for (text, expected) in [
            ("", ""),
            ("a", "a"),
            ("a\nb\na", "a\nb\na"),
            ("a\n  b\n  b\n  b\n  c\n  c", "a\n  b (3 times)\n  c (2 times)"),
        ] {
            assert_eq!(counted(text), expected);
        }
    }
}
