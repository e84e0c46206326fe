//! `cargo xtask clients`: runs clients of other languages against `formwork serve`, and compares their requests with those of
//! `formwork extract`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{servers, workspace};

/// A Python environment: its folder below `target`, its packages, and the clients of `clients.py` that run in it. The frameworks
/// have a separate environment, because they may require older versions of `openai`.
pub(crate) struct Environment {
    pub(crate) folder: &'static str,
    pub(crate) packages: &'static [&'static str],
    pub(crate) clients: &'static [&'static str],
}

const OFFICIAL: Environment = Environment {
    folder: "clients",
    packages: &["openai", "anthropic", "ollama"],
    clients: &["openai", "anthropic", "ollama"],
};

const FRAMEWORKS: Environment = Environment {
    folder: "clients-frameworks",
    packages: &["anthropic", "ollama", "instructor", "pydantic-ai-slim[openai]", "langchain-openai"],
    clients: &["instructor", "pydantic-ai", "langchain-openai"],
};

/// The vendors' packages whose requests are compared with those of the command.
const VENDORS: Environment = Environment {
    folder: "clients-vendors",
    packages: &["openai", "anthropic", "google-genai"],
    clients: &[],
};

/// The data engine whose workers have `formwork extract --jsonl` as a coprocess.
const ENGINE: Environment = Environment { folder: "clients-daft", packages: &["daft"], clients: &[] };

/// The package that computes the signatures of AWS.
const AWS: Environment = Environment { folder: "clients-aws", packages: &["botocore"], clients: &[] };

/// The Node packages.
const NODE: [&str; 4] = ["openai", "ai", "@ai-sdk/openai-compatible", "zod"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The Python interpreter that creates the environments of the clients
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Run only the Python clients of OpenAI, Anthropic and Ollama: takes a minute, without Node and without the comparison
    #[arg(long)]
    short: bool,
    /// Only extract by three protocols through LiteLLM's proxy, behind which `formwork serve` answers with the model in its process
    #[arg(long, conflicts_with = "short")]
    litellm: bool,
    /// Only run examples/engines/daft_letters.py with Daft from PyPI, against a simulated model
    #[arg(long, conflicts_with_all = ["short", "litellm"])]
    daft: bool,
    /// Only extract from a simulated Bedrock that verifies the signatures of requests with botocore from PyPI
    #[arg(long, conflicts_with_all = ["short", "litellm", "daft"])]
    aws: bool,
}

/// Builds `formwork`, installs the clients from their package registries below `target`, runs the checks, and compares requests.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let features: &[&str] = if args.aws { &["--features", "formwork-cli/aws"] } else { &[] };
    // Another choice of packages would have other features, and compile half of the dependencies again.
    done(workspace::cargo().args(["build", "--bin", "formwork"]).args(features), "cargo build")?;
    let program = workspace::target().join("debug").join("formwork");
    let script = |name: &str| workspace::root().join("xtask/clients").join(name);
    if args.litellm {
        return done(servers::litellm()?.arg(script("litellm.py")).arg(program), "litellm.py");
    }
    let check = |environment: &Environment, name: &str, more: Option<String>| {
        let python = installed(&args.python, environment)?;
        done(Command::new(python).arg(script(name)).arg(&program).args(environment.clients).args(more), name)
    };
    if args.daft {
        return check(&ENGINE, "daft_rows.py", None);
    }
    if args.aws {
        return check(&AWS, "bedrock.py", None);
    }
    if args.short {
        return check(&OFFICIAL, "clients.py", None);
    }
    let node = npm("clients-node", &NODE)?;
    // All checks run, so that a failing check does not hide the results of the others.
    let official = check(&OFFICIAL, "clients.py", Some(format!("node={}", node.display())));
    let frameworks = check(&FRAMEWORKS, "clients.py", None);
    let requests = check(&VENDORS, "vendor_requests.py", None);
    requests.and(frameworks).and(official)
}

/// Installs npm packages below `target`, and returns their folder.
pub(crate) fn npm(folder: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let folder = workspace::target().join(folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let install = ["install", "--silent", "--no-audit", "--no-fund", "--prefix"];
    done(Command::new("npm").args(install).arg(&folder).args(packages), "npm install")?;
    Ok(folder)
}

/// Returns the Python interpreter of an environment with the newest versions of its packages.
pub(crate) fn installed(creator: &Path, environment: &Environment) -> Result<PathBuf, String> {
    let folder = workspace::target().join(environment.folder);
    let python = folder.join("bin").join("python");
    if !python.exists() {
        done(Command::new(creator).args(["-m", "venv"]).arg(&folder), "python -m venv")?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"];
    done(Command::new(&python).args(install).args(environment.packages), "pip install")?;
    Ok(python)
}

pub(crate) fn done(command: &mut Command, name: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{name} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed")) }
}
