//! Runs the commands of the README in a checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use formwork_testkit::server::{Reply, Server};

use super::config::of;
use super::{formwork, run, temporary};

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The lines of all `sh` blocks.
fn lines(readme: &str) -> Vec<&str> {
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect()
}

/// The words of a command line, without its comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted && word.is_empty() => break,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

/// Returns whether a word of a command line is a path: it has a slash or one of the file extensions of this repository, and
/// contains no space.
fn is_path(word: &str) -> bool {
    const ENDINGS: [&str; 8] = [".json", ".txt", ".csv", ".yaml", ".toml", ".shape", ".jsonl", ".gguf"];
    !word.contains([' ', '{']) && (word.contains('/') || ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// Returns whether a path of the repository exists. A `*` in its last part matches any text.
fn exists(path: &str) -> bool {
    let path = root().join(path);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let Some((start, end)) = name.split_once('*') else { return path.exists() };
    let entries = path.parent().map(Path::read_dir).unwrap().unwrap();
    entries
        .map(|entry| entry.unwrap().file_name())
        .any(|name| name.to_string_lossy().starts_with(start) && name.to_string_lossy().ends_with(end))
}

#[test]
fn every_file_that_readme_and_the_help_of_the_command_name_exists() {
    let readme = readme();
    let lines = lines(&readme);
    assert!(lines.iter().filter(|line| line.contains("formwork")).count() > 10, "{lines:?}");
    for line in &lines {
        for word in words(line) {
            assert!(!is_path(&word) || exists(&word), "README.md: `{word}` does not exist: {line}");
        }
    }
    let help = formwork(&["--help"], "").stdout;
    let examples = help.split("Examples:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for line in examples.lines() {
        for word in words(line) {
            assert!(!is_path(&word) || exists(&word), "--help: `{word}` does not exist: {line}");
        }
    }
}

#[test]
fn no_command_of_readme_is_wrongly_used() {
    // Every model refuses the call: a command that reaches a model has been parsed.
    let server = Server::start([Reply::status(401)]).unwrap();
    let config = temporary("readme.toml", of(&server));
    let readme = readme();
    let binaries = Path::new(env!("CARGO_BIN_EXE_formwork")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([binaries].into_iter().chain(std::env::split_paths(&path))).unwrap();
    for line in lines(&readme).into_iter().filter(|line| words(line).contains(&"formwork".to_owned())) {
        if cfg!(not(feature = "local")) && line.starts_with("formwork models") {
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(root()).env("PATH", &path);
        shell.env_remove("FORMWORK_MODEL").env("FORMWORK_CONFIG", &config).env("OLLAMA_HOST", server.url());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = run(shell, "");
        // `doctor` and the commands that call a model end with 3 here, all others with 0.
        let asks = ["extract", "chat", "shape", "doctor", "review", "skill"];
        let expected =
            if asks.iter().any(|name| line.starts_with(&format!("formwork {name}"))) { 3 } else { 0 };
        assert_eq!(ran.code, expected, "{line}\n{}", ran.stderr);
    }
}

#[test]
fn the_doctors_report_in_readme_is_the_real_one() {
    let readme = readme();
    let block = |start: &str| {
        let rest = &readme[readme.find(start).unwrap()..];
        rest.split("```").next().unwrap().to_owned()
    };
    let expected = block("$ formwork doctor\n");
    // No server listens on port 9; a developer may have an Ollama server on the usual port.
    let folder = super::folder().join("letters");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("formwork.toml"), block("targets = [\"primary\"")).unwrap();
    let mut doctor = super::command(&["doctor"]);
    doctor.current_dir(&folder).env("OLLAMA_HOST", "127.0.0.1:9").env_remove("OPENAI_API_KEY");
    let ran = run(doctor, "");
    let (first, last) = ran.stderr.split_once('\n').unwrap();
    let printed = format!("$ formwork doctor\n{first}\n{}{last}", ran.stdout);
    let folder = folder.canonicalize().unwrap().display().to_string();
    let printed = printed.replace(&folder, "…/letters").replace("127.0.0.1:9:", "127.0.0.1:11434:");
    assert_eq!((ran.code, printed), (2, expected));
}
