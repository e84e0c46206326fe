use std::fmt;
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use formwork::providers::Providers;

type Run = Box<dyn Fn(&ArgMatches, &Providers) -> ExitCode>;

/// A subcommand of your own; see [`run_with`](crate::run_with).
///
/// ```
/// use std::process::ExitCode;
///
/// use formwork_cli::Subcommand;
/// use formwork_cli::clap::Command;
///
/// let command = Command::new("kinds").about("List the kinds of providers");
/// let kinds = Subcommand::new(command, |_, providers| {
///     providers.kinds().for_each(|kind| println!("{}", kind.name()));
///     ExitCode::SUCCESS
/// });
/// assert_eq!(kinds.name(), "kinds");
/// ```
pub struct Subcommand {
    command: Command,
    run: Run,
}

impl Subcommand {
    /// Creates a subcommand with the name, the help and the arguments of a [`Command`]. The function gets its arguments, and returns
    /// the exit code of the process.
    pub fn new(command: Command, run: impl Fn(&ArgMatches, &Providers) -> ExitCode + 'static) -> Self {
        Self { command, run: Box::new(run) }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.command.get_name()
    }

    pub(crate) fn run(&self, arguments: &ArgMatches, providers: &Providers) -> ExitCode {
        (self.run)(arguments, providers)
    }
}

impl fmt::Debug for Subcommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subcommand").field(&self.name()).finish()
    }
}

/// Adds subcommands to a command.
///
/// # Errors
/// One line, if the command has a subcommand of one of these names already.
pub(crate) fn added(command: Command, own: &[Subcommand]) -> Result<Command, String> {
    own.iter().try_fold(command, |command, own| {
        if own.name() == "help" || command.find_subcommand(own.name()).is_some() {
            return Err(format!("there are two subcommands `{}`: give your own another name", own.name()));
        }
        Ok(command.subcommand(own.command.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_an_error() {
        let own = |name: &'static str| Subcommand::new(Command::new(name), |_, _| ExitCode::SUCCESS);
        let command = || Command::new("formwork").subcommand(Command::new("extract").alias("x"));
        assert!(added(command(), &[own("part"), own("parts")]).is_ok());
        for names in [["part", "extract"], ["x", "part"], ["part", "help"], ["part", "part"]] {
            let message = added(command(), &names.map(own)).unwrap_err();
            assert!(message.contains("two subcommands `"), "{names:?}: {message}");
        }
    }
}
