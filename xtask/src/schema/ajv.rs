//! Compiles the schema files with Ajv, the validator of most JavaScript programs, and compares its verdicts with ours.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use formwork_core::{Context, Report, Validator as _};
use serde_json::Value;

use crate::workspace;

const AJV: &str = "ajv@8.17.1";
const FORMATS: &str = "ajv-formats@3.0.1";
const SCRIPT: &str = include_str!("ajv.mjs");

/// The oracle's documents, with the correct verdict on each.
const DOCUMENTS: &str = include_str!("../../../crates/apps/oracle/tests/documents.json");

/// Compiles files of a folder in Ajv's strict mode, and compares the verdicts of Ajv and of Formwork on the oracle's documents with each
/// other and with the correct ones.
pub(super) fn check<'n>(folder: &Path, names: impl Iterator<Item = &'n String>) -> Result<(), String> {
    let place = workspace::target().join("ajv");
    install(&place)?;
    let (script, documents) = (place.join("ajv.mjs"), place.join("documents.json"));
    for (path, text) in [(&script, SCRIPT), (&documents, DOCUMENTS)] {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut node = Command::new("node");
    node.arg(&script).arg(&documents).arg(folder.join("ai-score.v1.json"));
    node.args(names.map(|name| folder.join(name))).stderr(Stdio::inherit());
    let output = node.output().map_err(|error| missing("node", &error))?;
    if !output.status.success() {
        return Err("Ajv does not compile a schema, see above".to_owned());
    }
    let theirs: Vec<bool> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("ajv.mjs: {error}"))?;
    compare(&theirs)?;
    println!("Ajv: all schemas compile, and {} documents are judged as we judge them", theirs.len());
    Ok(())
}

/// Compares both verdicts on every document with the correct one.
fn compare(theirs: &[bool]) -> Result<(), String> {
    let documents: Vec<Value> = serde_json::from_str(DOCUMENTS).map_err(|error| error.to_string())?;
    let schema =
        formwork_schema::compile(&formwork_oracle::AI_RESPONSE_SCHEMA).map_err(|error| error.to_string())?;
    if theirs.len() != documents.len() {
        return Err(format!("Ajv judged {} of {} documents", theirs.len(), documents.len()));
    }
    for (row, theirs) in documents.iter().zip(theirs) {
        let mut report = Report::default();
        schema.validate(&row["document"], &Context::EMPTY, &mut report);
        let ours = report.is_empty();
        if row["valid"] != ours || row["valid"] != *theirs {
            return Err(format!(
                "{}: it is valid: {}; Ajv says {theirs}, we say {ours}",
                row["why"], row["valid"]
            ));
        }
    }
    Ok(())
}

/// Installs Ajv into its own folder, once.
fn install(place: &Path) -> Result<(), String> {
    let stamp = place.join("installed");
    let expected = format!("{AJV} {FORMATS}\n");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == expected) {
        return Ok(());
    }
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(place);
    let output = npm.args([AJV, FORMATS]).output().map_err(|error| missing("npm", &error))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("npm cannot install {AJV} and {FORMATS}: {}", words.trim()));
    }
    fs::write(&stamp, expected).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn missing(program: &str, error: &std::io::Error) -> String {
    format!(
        "cannot run {program}: {error}; `cargo xtask schema --ajv` needs Node 18 or later with npm: install it, or leave `--ajv` out"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_verdict_is_recognised_by_its_reason() {
        let documents: Vec<Value> = serde_json::from_str(DOCUMENTS).unwrap();
        let mut right: Vec<bool> = documents.iter().map(|row| row["valid"] == true).collect();
        assert_eq!((right.len(), compare(&right)), (20, Ok(())));
        right[8] = true;
        let error = compare(&right).unwrap_err();
        assert_eq!(error, "\"below the least\": it is valid: false; Ajv says true, we say false");
    }
}
