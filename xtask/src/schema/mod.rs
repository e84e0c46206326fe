//! `cargo xtask schema`: the JSON Schemas of everything that other programs read or write.

mod ajv;
mod document;
mod oracle;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use similar::TextDiff;

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing: print what would change, and fail if something would
    #[arg(long)]
    check: bool,
    /// Also compile every file in Ajv, strictly (needs Node)
    #[arg(long)]
    ajv: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let folder = workspace::root().join("schemas");
    let made: BTreeMap<String, String> =
        table::all().into_iter().map(|(name, text)| (format!("{name}.json"), text)).collect();
    let there = read(&folder)?;
    if args.check {
        check(&made, &there)?;
    } else {
        write(&folder, &made, &there)?;
    }
    if args.ajv {
        ajv::compile(&folder, made.keys())?;
        ajv::agrees(&folder)?;
    }
    Ok(())
}

/// The files of a folder, by name; a folder that is not there has none.
fn read(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    if !folder.exists() {
        return Ok(BTreeMap::new());
    }
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        files.insert(name.to_owned(), text);
    }
    Ok(files)
}

fn write(
    folder: &Path,
    made: &BTreeMap<String, String>,
    there: &BTreeMap<String, String>,
) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, text) in made.iter().filter(|(name, text)| there.get(*name) != Some(text)) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote schemas/{name}");
    }
    match orphans(made, there) {
        orphans if orphans.is_empty() => Ok(()),
        orphans => Err(orphans),
    }
}

fn check(made: &BTreeMap<String, String>, there: &BTreeMap<String, String>) -> Result<(), String> {
    let mut changes = String::new();
    for (name, text) in made {
        let old = there.get(name).map_or("", String::as_str);
        if old != text {
            let (before, after) = (format!("a/schemas/{name}"), format!("b/schemas/{name}"));
            let diff = TextDiff::from_lines(old, text.as_str());
            changes.push_str(&diff.unified_diff().header(&before, &after).to_string());
        }
    }
    print!("{changes}");
    let mut problems = Vec::new();
    if !changes.is_empty() {
        problems.push("schemas/ is not what the Rust types say; run `cargo xtask schema`".to_owned());
    }
    let orphans = orphans(made, there);
    if !orphans.is_empty() {
        problems.push(orphans);
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\nerror: ")) }
}

/// What is in the folder although no type makes it, with what to do; empty if there is nothing.
fn orphans(made: &BTreeMap<String, String>, there: &BTreeMap<String, String>) -> String {
    let names = there.keys().filter(|name| !made.contains_key(*name)).map(|name| format!("schemas/{name}"));
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return String::new();
    }
    format!("no type makes {}: delete it, or add its type to xtask/src/schema/table.rs", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_check_passes_on_what_the_types_make() {
        let made = files(&[("a.json", "{}\n")]);
        assert_eq!(check(&made, &made), Ok(()));
    }

    #[test]
    fn a_check_names_the_command_for_an_old_or_missing_file() {
        let made = files(&[("a.json", "{}\n"), ("b.json", "{}\n")]);
        let error = check(&made, &files(&[("a.json", "[]\n")])).unwrap_err();
        assert!(error.contains("cargo xtask schema"), "{error}");
    }

    #[test]
    fn a_file_that_no_type_makes_is_named() {
        let made = files(&[("a.json", "{}\n")]);
        let error = check(&made, &files(&[("a.json", "{}\n"), ("old.json", "{}\n")])).unwrap_err();
        assert!(error.contains("schemas/old.json") && error.contains("delete it"), "{error}");
    }
}
