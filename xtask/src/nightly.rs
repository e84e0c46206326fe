//! `cargo xtask nightly`: the checks that are too slow for every change.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the commands instead of running them
    #[arg(long)]
    list: bool,
}

/// A cargo command and its environment variables.
struct Step {
    variables: Vec<(&'static str, String)>,
    command: String,
}

/// The input of the first command in README.md.
const TEXT: &str = "Maria Lindqvist, 34, moved to Lisbon last spring.";

/// Returns all steps. `{text}` is one argument. `seed` determines the generated test cases.
fn steps(seed: u64) -> Vec<Step> {
    let step = |command: &str| Step { variables: Vec::new(), command: command.to_owned() };
    let with =
        |name, value: &str, command| Step { variables: vec![(name, value.to_owned())], ..step(command) };
    // Feature combinations that a build of the workspace does not cover, because it unites all features.
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
        "aws,bedrock",
        "google,gemini",
        "anthropic,bedrock,cohere,gemini,ollama,openai,oracle,skill,local",
    ];
    let mut steps: Vec<Step> = features
        .iter()
        .map(|features| {
            step(&format!("check --quiet -p formwork --no-default-features --features={features}"))
        })
        .collect();
    steps.extend([
        // Other test runs use the seed in `.cargo/config.toml`.
        with("PROPTEST_RNG_SEED", &seed.to_string(), "test --quiet --workspace"),
        // The laws of lowering on ten times as many schemas as in other test runs.
        with("PROPTEST_CASES", "1000", "test --quiet -p formwork-dialect --test it laws::every_dialect"),
        step("test --quiet -p formwork-cli --no-default-features"),
        step("clippy --quiet -p formwork-batch --all-targets --features=parquet,restate -- -D warnings"),
        step("test --quiet -p formwork-batch --features=parquet,restate"),
        step("test --quiet -p formwork-oracle --no-default-features"),
        step("xtask deny bans licenses sources advisories"),
        step("xtask registry check --strict"),
        step("xtask clients --aws"),
        step("xtask clients --litellm"),
        step("clippy --quiet --manifest-path measure/Cargo.toml --workspace --all-targets -- -D warnings"),
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
    steps.push(step(
        "evals chaos restate --rows 5000 --worker-kills 5 --server-kills 2 --calls-per-second 250",
    ));
    steps.push(step("evals chaos provider-batch"));
    steps.push(step("run --release -p formwork-cli -- extract --schema examples/person.schema.json {text}"));
    steps.push(step("run --release --bin shape-runner-cli -- --input examples/feature-design-input.json"));
    steps
}

/// Runs every step, also after a failed one.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let mut failed = Vec::new();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for Step { variables, command } in steps(seed) {
        let command_line = format!("cargo {}", command.replace("{text}", &format!("{TEXT:?}")));
        let set: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        if args.list {
            println!("{set}{command_line}");
            continue;
        }
        eprintln!("\n== {set}{command_line}");
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
            failed.push(command_line);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed:\n{}", failed.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Steps must name existing packages and features, because an error would only show at night.
    #[test]
    fn every_package_feature_and_file_of_a_step_is_there() {
        let root = workspace::root();
        let metadata = workspace::metadata("Cargo.toml").unwrap();
        for Step { command, .. } in steps(1) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let after = |flag: &str| words.iter().position(|word| *word == flag).map(|at| words[at + 1]);
            if let Some(package) = after("-p") {
                let packages = metadata["packages"].as_array().unwrap().iter();
                let known = packages.filter(|known| known["name"] == package && known["source"].is_null());
                let manifest = known.map(|known| known["manifest_path"].as_str().unwrap()).next().unwrap();
                let manifest = fs::read_to_string(manifest).unwrap();
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
