//! `cargo xtask schema` writes `schemas/`; `cargo xtask schema --check` fails where a file is not what its type says.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["schema", "--check"] => team_xtask::schemas().check(),
        ["schema"] => team_xtask::schemas().write().map(|written| {
            written.files.iter().for_each(|file| println!("wrote schemas/{file}"));
            written.stale.iter().for_each(|file| println!("no type owns schemas/{file}: delete it"));
        }),
        _ => {
            eprintln!("usage: cargo xtask schema [--check]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
