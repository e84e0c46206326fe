//! `cargo xtask tidy`: checks the rules of the project that the compiler does not check.

mod attributes;
mod circles;
mod crates;
mod documents;
mod features;
mod files;
mod imports;
mod layers;
mod locks;
mod sample;
mod sentences;
mod ways;

use std::fs;

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the number of dependencies of each crate with default features
    #[arg(long)]
    trees: bool,
    /// Print N random public items with their documentation instead of checking; SEED determines the items
    #[arg(long, num_args = 2, value_names = ["N", "SEED"])]
    sample: Option<Vec<u64>>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let root = workspace::root();
    let tracked =
        workspace::stdout(std::process::Command::new("git").args(["ls-files", "-z"]).current_dir(&root))?;
    // A tracked file that was deleted will be removed by the next commit.
    let files =
        tracked.split_terminator('\0').filter_map(|name| Some((name, fs::read(root.join(name)).ok()?)));
    if let Some([count, seed]) = args.sample.as_deref() {
        let texts: Vec<(&str, String)> =
            files.filter_map(|(name, bytes)| Some((name, String::from_utf8(bytes).ok()?))).collect();
        let items = sample::items(texts.iter().map(|(name, text)| (*name, text.as_str())));
        let total =
            format!("of all, {} of {} have one", items.iter().filter(|i| i.example).count(), items.len());
        let drawn = sample::draw(items, usize::try_from(*count).unwrap_or(usize::MAX), *seed);
        for item in &drawn {
            println!("{item}");
        }
        println!(
            "{} of {} have an example; {total}",
            drawn.iter().filter(|i| i.example).count(),
            drawn.len()
        );
        return Ok(());
    }
    let mut crates = crates::from_metadata(&workspace::metadata("Cargo.toml")?)?;
    for member in &mut crates {
        member.by_default = workspace::tree(&member.name)?.into_iter().collect();
    }
    // The tools of the other workspace may depend on anything.
    crates.extend(crates::from_metadata(&workspace::metadata("measure/Cargo.toml")?)?);
    if args.trees {
        for member in &crates {
            println!("{}: {} crates in its tree", member.name, member.by_default.len());
        }
    }
    let mut problems = imports::check(&crates, layers::TABLE);
    problems.extend(features::check(
        &workspace::features("normal,build")?,
        &workspace::features("normal,build,dev")?,
    ));
    let architecture = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).ok();
    problems.extend(documents::architecture(&crates, architecture.as_deref()));
    for member in &crates {
        let manifest = fs::read_to_string(&member.manifest)
            .map_err(|error| format!("{}: {error}", member.manifest.display()))?;
        problems.extend(documents::manifest(&member.name, &manifest));
        let examples = member.examples.iter().filter_map(|path| fs::read_to_string(path).ok());
        let page = fs::read_to_string(member.manifest.with_file_name("src/lib.rs")).unwrap_or_default();
        problems.extend(documents::examples(&member.name, &page, &examples.collect::<Vec<_>>()));
    }
    let mut sources = Vec::new();
    for (name, bytes) in files {
        problems.extend(files::check(name, &bytes));
        if let (true, Ok(text)) = (name.ends_with(".rs"), std::str::from_utf8(&bytes)) {
            problems.extend(attributes::check(name, text));
            problems.extend(sentences::check(name, text));
            sources.push((name.to_owned(), text.to_owned()));
        }
        if let (true, Ok(text)) = (name.ends_with("/Cargo.lock"), std::str::from_utf8(&bytes)) {
            problems.extend(locks::check(name, text, &crates));
        }
    }
    problems.extend(circles::check(&sources));
    match problems.len() {
        0 => {
            println!("tidy: {} crates, nothing to say", crates.len());
            Ok(())
        }
        n => Err(format!(
            "{n} {} untidy:\n  {}",
            if n == 1 { "thing is" } else { "things are" },
            problems.join("\n  ")
        )),
    }
}
