//! `cargo xtask schema`: generates the JSON Schemas of all documents that other programs read or write.

mod ajv;
mod oracle;
mod table;

use formwork::golden::Error;

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; print the files that would change, and fail if there are any
    #[arg(long)]
    check: bool,
    /// Also compile every file in Ajv's strict mode (needs Node)
    #[arg(long)]
    ajv: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let path = workspace::root().join("schemas");
    let folder = || table::all(&path);
    if args.check {
        folder().check().map_err(|error| match error {
            Error::Outdated(report) => {
                print!("{}", report.diff());
                report.summary()
            }
            error => error.to_string(),
        })?;
    } else {
        let written = folder().write().map_err(|error| error.to_string())?;
        written.files.iter().for_each(|name| println!("wrote schemas/{name}"));
        if !written.stale.is_empty() {
            return Err(format!(
                "no type makes schemas/{}: delete it, or add its type to xtask/src/schema/table.rs",
                written.stale.join(", schemas/")
            ));
        }
    }
    if args.ajv {
        let files = folder().files().map_err(|error| error.to_string())?;
        ajv::check(&path, files.keys().filter(|name| *name != table::OPENAPI))?;
    }
    Ok(())
}
