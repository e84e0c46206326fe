//! The `formwork` command with everything that Acme adds, and with one more subcommand.

use std::process::ExitCode;

use formwork::providers::Providers;
use formwork_cli::Subcommand;
use formwork_cli::clap::{Arg, ArgMatches, Command};

fn main() -> ExitCode {
    let command = Command::new("part")
        .about("Append the check digit to a part number")
        .arg(Arg::new("number").required(true).help("The digits without the check digit"));
    formwork_cli::run_with(acme_provider::add_to(Providers::builtin()), [Subcommand::new(command, part)])
}

fn part(arguments: &ArgMatches, _: &Providers) -> ExitCode {
    let number = arguments.get_one::<String>("number").map(String::as_str).unwrap_or_default();
    println!("{number}{}", acme_provider::check_digit(number));
    ExitCode::SUCCESS
}
