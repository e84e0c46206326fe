//! `cargo xtask nightly`: the checks that take too long for every change.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the commands instead of running them
    #[arg(long)]
    list: bool,
}

/// A command of cargo, and the variables that it is run with.
struct Step {
    variables: Vec<(&'static str, String)>,
    command: String,
}

/// The input of README.md's first command.
const TEXT: &str = "Maria Lindqvist, 34, moved to Lisbon last spring.";

/// Every step; `{text}` is an argument of its own. Generated cases are drawn from `seed`.
fn steps(seed: u64) -> Vec<Step> {
    let step = |command: &str| Step { variables: Vec::new(), command: command.to_owned() };
    let with =
        |name, value: &str, command| Step { variables: vec![(name, value.to_owned())], ..step(command) };
    // Features that nobody combines in the workspace, where they are all on at once.
    let features = [
        "",
        "http",
        "anthropic",
        "bedrock",
        "cohere",
        "gemini",
        "ollama",
        "openai",
        "oracle",
        "review",
        "skill",
        "golden",
        "local",
        "anthropic,bedrock,cohere,gemini,ollama,openai,oracle,skill,local",
    ];
    let mut steps: Vec<Step> = features
        .iter()
        .map(|features| {
            step(&format!("check --quiet -p formwork --no-default-features --features={features}"))
        })
        .collect();
    steps.extend([
        // Other runs draw the cases that `.cargo/config.toml` names.
        with("PROPTEST_RNG_SEED", &seed.to_string(), "test --quiet --workspace"),
        step("test --quiet -p formwork-cli --no-default-features"),
        // The worker, which no other step builds.
        step("clippy --quiet -p formwork-batch --all-targets --features=restate -- -D warnings"),
        step("test --quiet -p formwork-batch --features=restate"),
        step("test --quiet -p formwork-oracle --no-default-features"),
        step("xtask deny bans licenses sources advisories"),
        step("xtask registry check --strict"),
        step("xtask servers up"),
        with(
            "FORMWORK_LIVE",
            "llama-server,litellm,gemini-litellm,ollama",
            "test --workspace --test conformance",
        ),
        step("run -p formwork-cli -- doctor --config examples/servers.toml"),
    ]);
    steps.extend(["llama-server", "litellm", "gemini-litellm", "ollama"].map(|provider| {
        let schema = "--schema examples/person.schema.json";
        step(&format!("run -p formwork-cli -- extract --config examples/servers.toml --provider {provider} {schema} {{text}}"))
    }));
    steps.push(step("xtask servers down"));
    // Workers, Restate's server, connections and the submitting process die.
    steps.push(step("xtask chaos restate --rows 5000 --worker-kills 5 --server-kills 2"));
    // As a user gets it.
    steps.push(step("run --release -p formwork-cli -- extract --schema examples/person.schema.json {text}"));
    steps.push(step("run --release --bin shape-runner-cli -- --input examples/feature-design-input.json"));
    steps
}

/// Runs every step, whatever the others come to.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let mut failed = Vec::new();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for Step { variables, command } in steps(seed) {
        let shown = format!("cargo {}", command.replace("{text}", &format!("{TEXT:?}")));
        let set: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        if args.list {
            println!("{set}{shown}");
            continue;
        }
        eprintln!("\n== {set}{shown}");
        let start = Instant::now();
        let mut cargo = workspace::cargo();
        cargo.envs(variables);
        cargo.args(command.split_whitespace().map(|word| if word == "{text}" { TEXT } else { word }));
        let is_fine = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?.success();
        eprintln!(
            "== {} after {:.0} s",
            if is_fine { "done" } else { "FAILED" },
            start.elapsed().as_secs_f64()
        );
        if !is_fine {
            failed.push(shown);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed:\n{}", failed.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A step that names what is not there would fail at night, and nobody would be there.
    #[test]
    fn every_package_feature_and_file_of_a_step_is_there() {
        let root = workspace::root();
        for Step { command, .. } in steps(1) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let after = |flag: &str| words.iter().position(|word| *word == flag).map(|at| words[at + 1]);
            if let Some(package) = after("-p") {
                let manifest =
                    fs::read_to_string(root.join("crates").join(package).join("Cargo.toml")).unwrap();
                let features =
                    words.iter().find_map(|word| word.strip_prefix("--features=")).unwrap_or_default();
                for feature in features.split(',').filter(|feature| !feature.is_empty()) {
                    assert!(manifest.contains(&format!("\n{feature} = [")), "{command}: {feature}");
                }
            }
            for file in words.iter().filter(|word| word.starts_with("examples/")) {
                assert!(root.join(file).exists(), "{command}: {file}");
            }
        }
    }
}
