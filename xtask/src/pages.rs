//! `cargo xtask pages`: drives Chromium through the pages for admins and those of `--html`, with axe-core on each.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::{Environment, done, installed, npm};
use crate::workspace;

const BROWSER: Environment =
    Environment { folder: "pages-python", packages: &["selenium", "pillow"], clients: &[] };

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The Python interpreter that creates the environment
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Write screenshots to target/pages-images
    #[arg(long)]
    screenshots: bool,
}

/// Builds the command and the example `pages` of formwork-gateway, installs selenium and axe-core below `target`, and runs the checks. Chromium and
/// its driver come from Debian's packages.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    if !std::path::Path::new("/usr/bin/chromedriver").exists() {
        return Err(
            "there is no /usr/bin/chromedriver: run `apt-get install chromium chromium-driver`".to_owned()
        );
    }
    let target = workspace::target();
    let example = ["build", "--package", "formwork-gateway", "--features", "otlp", "--example", "pages"];
    done(workspace::cargo().args(example), "cargo build")?;
    let axe = npm("pages-node", &["axe-core"])?.join("node_modules/axe-core/axe.min.js");
    let shots = target.join("pages-images");
    std::fs::create_dir_all(&shots).map_err(|error| format!("{}: {error}", shots.display()))?;
    let shots = if args.screenshots { shots } else { PathBuf::from("-") };
    let python = installed(&args.python, &BROWSER)?;
    let scripts = workspace::root().join("xtask/pages");
    let program = target.join("debug/examples/pages");
    done(
        Command::new(&python).arg(scripts.join("pages.py")).args([&program, &axe, &shots]),
        "a check of the pages",
    )?;
    done(
        Command::new(&python).arg(scripts.join("files.py")).args([&axe, &shots]).args(written(&target)?),
        "a check of the pages that commands write",
    )
}

/// Writes the pages of `--html` below `target`, and returns their files.
fn written(target: &Path) -> Result<[PathBuf; 3], String> {
    let build = ["build", "--package", "formwork-cli", "--bin", "formwork"];
    done(workspace::cargo().args(build), "cargo build")?;
    let write = |name: &str, arguments: &[&str]| {
        let file = target.join(name);
        let mut command = Command::new(target.join("debug/formwork"));
        command.current_dir(workspace::root()).args(arguments).arg("--html").arg(&file);
        done(&mut command, name).map(|()| file)
    };
    let [gold, answers, other] =
        ["gold", "answers", "other"].map(|name| format!("examples/gold/{name}.jsonl"));
    let value = target.join("evidence.json");
    std::fs::write(&value, r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#)
        .map_err(|error| format!("{}: {error}", value.display()))?;
    let value = value.display().to_string();
    Ok([
        write("evidence.html", &["evidence", "--input", "examples/letter.txt", &value])?,
        write("evaluation.html", &["eval", &gold, "--answers", &answers])?,
        write("comparison.html", &["eval", &gold, "--answers", &answers, "--answers", &other])?,
    ])
}
