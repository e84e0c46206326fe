//! Exit codes, and the error that ends a command.

use std::fmt;
use std::io;
use std::process::ExitCode;

use formwork_core::ErrorKind;

use crate::stderr::say;
use crate::terminal;

/// The verdict of a command that completed.
pub(crate) enum Status {
    /// The result is positive.
    Ok,
    /// The result is negative: an invalid document, unreadable text, no valid answer.
    Negative,
}

/// The reason why a command failed: a message for people, and the exit code.
#[derive(Debug)]
pub(crate) struct Failed {
    code: u8,
    message: String,
    lacks_key: bool,
}

impl Status {
    /// Returns `Ok` if `fine`, else `Negative`.
    pub(crate) const fn of(fine: bool) -> Self {
        if fine { Self::Ok } else { Self::Negative }
    }
}

impl Failed {
    const fn new(code: u8, message: String) -> Self {
        Self { code, message, lacks_key: false }
    }

    /// Returns the failure for wrong usage, a wrong configuration, or an invalid schema (exit code 2).
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(2, message.to_string())
    }

    /// Returns the failure for a missing result, although the command worked (exit code 1).
    pub(crate) fn no_answer(message: impl fmt::Display) -> Self {
        Self::new(1, message.to_string())
    }

    /// Returns the failure for a provider that did not answer, or a missing model (exit code 3).
    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(3, message.to_string())
    }

    /// Returns the failure of a run, with the exit code of its kind. A deadline before any answer counts as a provider that
    /// did not answer.
    pub(crate) fn of(kind: ErrorKind, answered: bool, message: impl fmt::Display) -> Self {
        match kind {
            ErrorKind::Schema | ErrorKind::Config => Self::usage(message),
            ErrorKind::Unavailable => Self::unavailable(message),
            ErrorKind::Deadline if !answered => Self::unavailable(message),
            ErrorKind::Cancelled => Self::interrupted(),
            _ => Self::no_answer(message),
        }
    }

    /// Returns the failure for an interruption by Ctrl-C (exit code 130).
    pub(crate) fn interrupted() -> Self {
        Self::stopped("interrupted")
    }

    /// The user ended the work before its end.
    pub(crate) fn stopped(message: impl fmt::Display) -> Self {
        Self::new(130, message.to_string())
    }
}

impl Failed {
    /// Marks the failure as caused by a missing API key.
    pub(crate) fn of_key(self) -> Self {
        Self { lacks_key: true, ..self }
    }

    /// Returns whether the only cause is a missing API key.
    pub(crate) const fn lacks_key(&self) -> bool {
        self.lacks_key
    }

    /// Returns whether the user has to change the command or the configuration.
    pub(crate) const fn is_usage(&self) -> bool {
        self.code == 2
    }

    /// Returns whether Ctrl-C caused the failure.
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.code == 130
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Converts an error of standard output. A reader that closed the pipe (`| head`) is no error.
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

/// Returns a text in which repeated consecutive lines are one line with their count.
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
