//! Colors in diagnostics.

use std::env;
use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ValueEnum;

/// The choice of colors for diagnostics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    // Documented values would take three lines in the help of every command.
    #[default]
    Auto,
    Always,
    Never,
}

static CHOSEN: OnceLock<Color> = OnceLock::new();

impl Color {
    /// Sets the choice of the process. Later calls have no effect.
    pub(crate) fn choose(self) {
        let _ = CHOSEN.set(self);
    }

    fn is_on(self, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        // https://no-color.org: any value except the empty one.
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && !is_set("NO_COLOR") && variable("TERM").as_deref() != Some("dumb"),
        }
    }
}

/// Returns whether to color the output to this stream.
pub(crate) fn is_on(stream: &impl IsTerminal) -> bool {
    let chosen = CHOSEN.get().copied().unwrap_or_default();
    chosen.is_on(stream.is_terminal(), |name| {
        env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::Color::{self, Always, Auto, Never};

    #[test]
    fn the_option_wins_over_the_environment_and_the_environment_over_the_terminal() {
        for (color, terminal, variables, expected) in [
            (Auto, true, &[][..], true),
            (Auto, false, &[], false),
            (Auto, true, &[("NO_COLOR", "1")], false),
            (Auto, true, &[("NO_COLOR", "false")], false),
            (Auto, true, &[("NO_COLOR", "")], true),
            (Auto, true, &[("TERM", "dumb")], false),
            (Auto, true, &[("TERM", "xterm")], true),
            (Always, false, &[("NO_COLOR", "1")], true),
            (Never, true, &[], false),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(
                Color::is_on(color, terminal, variable),
                expected,
                "{color:?} {terminal} {variables:?}"
            );
        }
    }
}
