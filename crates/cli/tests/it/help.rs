//! Rules for the text of `--help`.

use super::formwork;

/// Every command without subcommands, by its words.
fn commands() -> Vec<Vec<&'static str>> {
    let mut commands = vec![
        vec!["extract"],
        vec!["batch", "run"],
        vec!["batch", "resume"],
        vec!["batch", "retry"],
        vec!["batch", "status"],
        vec!["batch", "watch"],
        vec!["batch", "pause"],
        vec!["batch", "cancel"],
        vec!["batch", "export"],
        vec!["check"],
        vec!["chat"],
        vec!["shape", "run"],
        vec!["shape", "check"],
        vec!["shape", "to-schema"],
        vec!["shape", "from-schema"],
        vec!["read"],
        vec!["evidence"],
        vec!["eval"],
        vec!["doctor"],
        vec!["lower"],
        vec!["review"],
        vec!["skill", "run"],
        vec!["skill", "check"],
        vec!["skill", "list"],
        vec!["skill", "new"],
        vec!["skill", "report"],
        vec!["oracle", "score"],
        vec!["oracle", "batch"],
        vec!["oracle", "calibrate"],
        vec!["oracle", "compare"],
        vec!["oracle", "import"],
        vec!["oracle", "report"],
        vec!["oracle", "serve"],
        vec!["serve"],
        vec!["runs", "list"],
        vec!["runs", "show"],
        vec!["runs", "export"],
        vec!["runs", "prune"],
        vec!["runs", "feedback"],
        vec!["keys", "add"],
        vec!["keys", "list"],
        vec!["keys", "revoke"],
        vec!["keys", "rotate"],
    ];
    if cfg!(feature = "local") {
        for action in ["list", "fetch", "show", "path", "remove"] {
            commands.push(vec!["models", action]);
        }
    }
    commands
}

#[test]
fn every_command_has_examples_exit_codes_and_short_texts() {
    for command in commands() {
        let help = formwork(&[&command[..], &["--help"]].concat(), "").stdout;
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        let example = format!("formwork {}", command.join(" "));
        assert!(examples.contains(&example), "{command:?}: {help}");
        assert!(help.contains("Exit codes:"), "{command:?}: {help}");
        let config = help.split("--config <FILE>").nth(1).and_then(|rest| rest.split("\n\n").next());
        let config =
            config.and_then(|rest| rest.split("\n      --").next()).map(|rest| rest.split("\n  -").next());
        let config = config.flatten();
        let config = config.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(config.len() <= 100, "{command:?}: {config}");
    }
}

#[test]
fn helps_say_what_words_mean() {
    for (args, says) in [
        (&["lower"][..], "the part of JSON Schema that a provider takes"),
        (&["lower"], "every valid answer stays possible"),
        (&["oracle"], "A sample application: scores crypto wallets from 0 to 1000"),
        (
            &["skill", "report"],
            "Measure a skill: valid at first, retries, consistency, validation time, run time",
        ),
        (&["skill", "new"], "LLM_REVIEW           a model judges one of the inputs by a rubric"),
        (&["read"], "strict JSON before JSON that needs other quotes"),
        (&["extract"], "max-attempts divided by the number of providers, rounded up"),
        #[cfg(feature = "local")]
        (&["models"], "reasoning        whether the model thinks before it answers"),
    ] {
        let help = formwork(&[args, &["--help"]].concat(), "").stdout;
        assert!(help.contains(says), "{args:?}: {help}");
    }
}

/// Clap shows the documentation comment of shared arguments in place of the description of their command.
#[test]
fn every_command_begins_with_a_description_of_its_own() {
    let mut seen = std::collections::BTreeMap::new();
    for words in commands() {
        let arguments: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        let help = formwork(&arguments, "").stdout;
        let description = help.lines().next().unwrap_or_default().to_owned();
        assert!(!description.is_empty() && !description.starts_with("Usage"), "{words:?}: {help}");
        if let Some(other) = seen.insert(description.clone(), words.clone()) {
            panic!("{other:?} and {words:?} have the same description: {description}");
        }
    }
    assert!(seen.keys().any(|description| description.starts_with("Extract valid JSON from a text")));
}
