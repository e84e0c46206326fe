//! README.md and the pages of docs/SUMMARY.md: runs their commands, reads their configurations, and follows their links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use formwork::config::Config;
use formwork_dialect::registry::Registry;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::of;
use super::serve::{Serving, send};
use super::{against_schema, formwork, run};

/// The needs of commands beside a checkout: a command with the comment `# needs REASON` has one of these reasons. The test has a key and
/// its server, the ledger and a terminal for a service, and runs those commands.
const NEEDS: [&str; 9] = [
    "a build",
    "a key in OPENAI_API_KEY",
    "a Restate server",
    "a terminal of its own",
    "an hour",
    "the ledger",
    "the servers",
    "the service",
    "Python",
];

/// The commands of README.md that `.ci/run` runs: the first one and the test command.
const BY_CI: [&str; 2] = ["cargo run --bin formwork -- extract ", "cargo test --workspace"];

/// The files of a reader that commands name, each with the example in its place.
const OF_READERS: [(&str, &str); 3] = [
    ("gold.jsonl", "gold/gold.jsonl"),
    ("invoice.schema.json", "gold/invoice.schema.json"),
    ("invoice.txt", "letter.txt"),
];

/// The page for contributors: it has drawings and lines of any length.
const FOR_CONTRIBUTORS: &str = "docs/ARCHITECTURE.md";

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages that docs/SUMMARY.md lists.
fn listed() -> Vec<String> {
    links(&text_of("docs/SUMMARY.md")).map(|link| format!("docs/{link}")).collect()
}

/// README.md and the pages, each with its text.
fn pages() -> Vec<(String, String)> {
    let names = [vec!["README.md".to_owned()], listed()].concat();
    names.into_iter().map(|name| (name.clone(), text_of(&name))).collect()
}

/// The targets of the Markdown links of a text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

/// A fenced block: its language (with attributes), and its lines.
struct Block<'t> {
    language: &'t str,
    text: String,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open): (Vec<Block<'_>>, bool) = (Vec::new(), false);
    for line in page.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(_), true) => open = false,
            (Some(language), false) => {
                blocks.push(Block { language, text: String::new() });
                open = true;
            }
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

/// A command of an `sh` block, with the text of its comments.
struct Shell {
    line: String,
    note: String,
}

impl Shell {
    /// The reason for which this command is not run here.
    fn need(&self) -> Option<&str> {
        self.note.strip_prefix("needs ")
    }

    /// The exit codes that are right if the server refuses every call: 3 for commands that call a model, 2 or 3 for batches,
    /// unless the comment states another one.
    fn expected(&self) -> Vec<i32> {
        if let Some(code) = self.note.split("exit code ").nth(1) {
            let code = code.split(|letter: char| !letter.is_ascii_digit()).next().unwrap();
            return vec![code.parse().unwrap()];
        }
        let is = |names: &[&str]| names.iter().any(|name| self.line.starts_with(&format!("formwork {name}")));
        if self.line.contains("examples/correction.toml") {
            vec![0]
        } else if is(&["batch run", "batch resume"]) {
            vec![2, 3]
        } else if is(&["extract", "chat", "shape run", "doctor", "review", "skill run"])
            || is(&["eval"]) && self.line.contains(" -m ")
        {
            vec![3]
        } else if is(&["oracle report"]) {
            // The fallback's scores miss the targets.
            vec![1]
        } else {
            vec![0]
        }
    }
}

/// The commands of a block. A comment follows its command, or stands above it; `\` continues a line.
fn commands(block: &str) -> Vec<Shell> {
    let (mut commands, mut note) = (Vec::new(), String::new());
    for line in block.replace("\\\n", "").lines().filter(|line| !line.trim().is_empty()) {
        if let Some(above) = line.strip_prefix("# ") {
            note = above.to_owned();
            continue;
        }
        let (line, after) = line.split_once(" # ").unwrap_or((line, ""));
        if !after.is_empty() {
            note = after.to_owned();
        }
        commands.push(Shell { line: line.trim().to_owned(), note: std::mem::take(&mut note) });
    }
    commands
}

fn shells(page: &str) -> Vec<Shell> {
    let blocks = blocks(page).into_iter().filter(|block| block.language == "sh");
    blocks.flat_map(|block| commands(&block.text)).collect()
}

/// The words of a command line.
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

/// A folder with the files of a checkout that commands name, in which a command can write.
fn checkout(name: &str) -> PathBuf {
    let folder = super::folder().join(name.replace(['/', '.'], "-"));
    fs::create_dir_all(&folder).unwrap();
    for name in ["examples", "schemas"] {
        std::os::unix::fs::symlink(root().canonicalize().unwrap().join(name), folder.join(name)).unwrap();
    }
    for (name, example) in OF_READERS {
        fs::copy(super::example(example), folder.join(name)).unwrap();
    }
    let wallet: Value = serde_json::from_str(&text_of("examples/wallets/casual.json")).unwrap();
    fs::write(folder.join("wallets.jsonl"), format!("{wallet}\n")).unwrap();
    let calibration = json!({
        "configuration": "openai/gpt-5.4-mini", "others": 0, "evidence": true, "documents": 200, "leaves": 400,
        "error": 0.01, "points": [[0.0, 0.02], [1.0, 0.99]],
    });
    fs::write(folder.join("calibration.json"), json!({"calibrations": [calibration]}).to_string()).unwrap();
    folder
}

/// A shell that runs a line in a folder, with this build of the command in its path.
fn shell(line: &str, folder: &Path) -> Command {
    let binaries = Path::new(env!("CARGO_BIN_EXE_formwork")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([binaries].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("PATH", &path);
    shell.env_remove("FORMWORK_MODEL").env_remove("FORMWORK_CONFIG").env_remove("OPENAI_API_KEY");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

#[test]
fn every_command_of_the_pages_runs_or_says_what_it_needs() {
    // Every model refuses the call: a command that reaches a model has been parsed.
    let server = Server::start([Reply::status(401)]).unwrap();
    let run_page = |(name, text): &(String, String)| {
        let folder = checkout(name);
        fs::write(folder.join("refused.toml"), of(&server)).unwrap();
        // The provider has the name of its kind, so that `-m openai/MODEL` and `--provider openai` select it.
        let keyed = format!(
            "[providers.openai]\nkind = \"openai\"\nmodel = \"m\"\nprice = {{ input = 1, output = 1 }}\nbase_url = \"{}/v1\"\n",
            server.url()
        );
        fs::write(folder.join("keyed.toml"), keyed).unwrap();
        let (mut ran_here, mut serving) = (0, None::<Serving>);
        for command in shells(text) {
            let line = &command.line;
            if name == "README.md" && BY_CI.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            let need = command.need();
            let needs = |reason: &str| need.is_some_and(|need| need.starts_with(reason));
            assert!(
                need.is_none() || NEEDS.iter().any(|reason| needs(reason)),
                "{name}: {need:?} is unknown"
            );
            let config = folder.join(if needs("a key in") { "keyed.toml" } else { "refused.toml" });
            if needs("a terminal of its own") && !line.starts_with("formwork worker") {
                drop(serving.take());
                let mut service = super::command(&[]);
                service.args(&words(line)[1..]).args(["--listen", "127.0.0.1:0"]);
                service.current_dir(&folder).env("FORMWORK_CONFIG", &config);
                serving = Some(Serving::of(&mut service));
                ran_here += 1;
                continue;
            }
            if needs("the service") {
                let path = line.strip_prefix("curl http://127.0.0.1:8190").unwrap();
                let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
                let serving = serving.as_ref().unwrap();
                let status = send(&serving.address, &request).map(|(status, _)| status);
                assert_eq!(status, Some(200), "{name}: {line}");
                ran_here += 1;
                continue;
            }
            if need.is_some() && !["a key in", "an hour", "the ledger"].iter().any(|reason| needs(reason)) {
                continue;
            }
            assert!(
                words(line).contains(&"formwork".to_owned()),
                "{name}: say what `{line}` needs, by a comment such as `# needs {}`",
                NEEDS[0]
            );
            ran_here += 1;
            if cfg!(not(feature = "local")) && line.starts_with("formwork models") {
                continue;
            }
            let mut shell = shell(line, &folder);
            // A query of the page is for the store in the folder of the batch.
            shell.env("FORMWORK_STORE", folder.join("letters").join("store.db"));
            shell.env("FORMWORK_CONFIG", config).env("OLLAMA_HOST", server.url());
            if needs("a key in") {
                shell.env("OPENAI_API_KEY", "sk-0123456789");
            }
            let ran = run(shell, "");
            assert!(command.expected().contains(&ran.code), "{name}: {line}\n{}: {}", ran.code, ran.stderr);
        }
        // A query is for the batch that the commands of the page made.
        for query in blocks(text).into_iter().filter(|block| block.language == "sql") {
            let ledger = rusqlite::Connection::open(folder.join("letters").join("store.db")).unwrap();
            ledger
                .execute_batch(&query.text)
                .unwrap_or_else(|error| panic!("{name}: {error}\n{}", query.text));
        }
        ran_here
    };
    let pages = pages();
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let running: Vec<_> = pages.iter().map(|page| scope.spawn(|| run_page(page))).collect();
        running.into_iter().map(|page| page.join().unwrap()).collect()
    });
    assert!(counts.iter().sum::<usize>() > 60, "{counts:?}");
}

#[test]
fn every_block_of_the_pages_has_a_check() {
    let library = text_of("crates/formwork/src/lib.rs");
    for (name, text) in pages() {
        assert!(!text.contains("\n    $ "), "{name}: a command is not in a fenced block");
        for block in blocks(&text) {
            match block.language {
                // `every_command_of_the_pages_runs_or_says_what_it_needs`
                "sh" => {}
                // A drawing.
                "" | "text" if name == FOR_CONTRIBUTORS => {}
                // Doc tests compile and run them.
                "rust" | "rust,no_run" => {
                    assert!(
                        library.contains(&format!("../../../{name}")),
                        "{name}: no doc test of `formwork`"
                    );
                }
                "toml" => {
                    // A part of a file gets a provider.
                    let is_part = !block.text.contains("[providers.");
                    let more = if is_part { "\n[providers.added]\nkind = \"local\"\n" } else { "" };
                    let file = format!("{}{more}", block.text);
                    Config::from_toml(&file).unwrap_or_else(|error| panic!("{name}: {error}\n{file}"));
                    let value: Value = toml::from_str(&file).unwrap();
                    let errors = against_schema("formwork.toml.json", &value);
                    assert!(errors.is_empty(), "{name}: {errors:?}\n{file}");
                }
                "json" => {
                    for line in serde_json::Deserializer::from_str(&block.text).into_iter::<Value>() {
                        line.unwrap_or_else(|error| panic!("{name}: {error}\n{}", block.text));
                    }
                }
                // The same text is a file, which the commands of the page use.
                "yaml" => assert_eq!(block.text, text_of("examples/person.yaml"), "{name}"),
                // `the_transcripts_are_what_the_command_prints`
                "text" => {
                    assert!(name == "docs/ARCHITECTURE.md" || block.text.starts_with("$ formwork "), "{name}")
                }
                // `cargo xtask clients` runs the same client, and `--daft` the file that has these lines.
                "python" => {
                    let engines =
                        ["daft", "ray"].map(|name| text_of(&format!("examples/engines/{name}_letters.py")));
                    let is_client = block.text.contains("base_url=\"http://127.0.0.1:8190/v1\"");
                    assert!(is_client || engines.iter().any(|file| file.contains(&block.text)), "{name}");
                }
                // `every_command_of_the_pages_runs_or_says_what_it_needs`
                "sql" => assert!(text.contains(" --out letters\n"), "{name}"),
                language => panic!("{name}: a block in the language `{language}` has no check"),
            }
        }
    }
}

#[test]
fn readme_and_the_pages_have_their_form() {
    let readme = text_of("README.md");
    assert!(readme.lines().count() <= 150, "README.md has {} lines", readme.lines().count());
    let on_disk = fs::read_dir(root().join("docs")).unwrap().map(Result::unwrap);
    let on_disk = on_disk.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name());
    let on_disk: BTreeSet<String> = on_disk.map(|name| format!("docs/{}", name.to_string_lossy())).collect();
    let mut listed: BTreeSet<String> = listed().into_iter().collect();
    listed.insert("docs/SUMMARY.md".to_owned());
    assert_eq!(on_disk, listed, "docs/SUMMARY.md lists every page of docs/");
    for (name, text) in pages() {
        let folder = root().join(&name).parent().unwrap().to_owned();
        for link in links(&text).filter(|link| !link.starts_with("http")) {
            let file = link.split('#').next().unwrap();
            assert!(file.is_empty() || folder.join(file).exists(), "{name}: {link} leads to no file");
        }
        if name == FOR_CONTRIBUTORS {
            continue;
        }
        let mut open = false;
        for (number, line) in text.lines().enumerate() {
            open ^= line.starts_with("```");
            // A row of a table and a printed line cannot be broken.
            let is_fixed = name != "README.md" && (open || line.starts_with('|'));
            let length = line.chars().count();
            assert!(is_fixed || length <= 120, "{name}:{}: {length} characters", number + 1);
        }
    }
}

#[test]
fn every_file_that_the_pages_and_the_help_of_the_command_name_exists() {
    /// A word of a command line is a path of the repository if it begins with a folder of it.
    fn is_path(word: &str) -> bool {
        word.starts_with("examples/") || word.starts_with("schemas/") || word.starts_with("crates/")
    }
    let lines = pages().into_iter().flat_map(|(name, text)| {
        shells(&text).into_iter().map(move |command| (name.clone(), command.line)).collect::<Vec<_>>()
    });
    let help = formwork(&["--help"], "").stdout;
    let examples = help.split("Examples:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let lines = lines.chain(examples.lines().map(|line| ("--help".to_owned(), line.to_owned())));
    let mut paths = 0;
    for (name, line) in lines {
        for word in words(&line).iter().filter(|word| is_path(word)) {
            assert!(exists(word), "{name}: `{word}` does not exist: {line}");
            paths += 1;
        }
    }
    assert!(paths > 30, "{paths}");
}

/// A word of a page or of the command's sources that the registry knows as a model with a date of retirement.
fn retiring(text: &str) -> Option<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"-._/:@".contains(letter));
    let mut words = words.map(|word| word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()));
    words.find(|word| Registry::embedded().lookup(word).is_some_and(|model| model.retires.is_some()))
}

#[test]
fn no_example_names_a_model_that_retires() {
    fn sources(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let of = |path: PathBuf| match path.is_dir() {
            true => sources(&path),
            false => vec![(path.display().to_string(), fs::read_to_string(&path).unwrap())],
        };
        entries.flat_map(of).collect()
    }
    let sources = sources(&root().join("crates/cli/src"));
    assert!(sources.len() > 50, "{}", sources.len());
    for (name, text) in pages().into_iter().chain(sources) {
        assert_eq!(retiring(&text), None, "{name}: a user who copies it soon gets an error of the vendor");
    }
    assert_eq!(retiring("formwork init openai/gpt-4o-mini, or local."), Some("openai/gpt-4o-mini"));
}

/// The block of a page that begins with this command, as command and output.
fn transcript(page: &str, command: &str) -> (String, String) {
    let text = text_of(page);
    let block =
        blocks(&text).into_iter().find(|block| block.text.starts_with(&format!("$ {command}"))).unwrap();
    let (line, output) = block.text.split_once('\n').unwrap();
    (line.strip_prefix("$ ").unwrap().to_owned(), output.to_owned())
}

#[test]
fn the_transcripts_are_what_the_command_prints() {
    let in_order = |line: &str, folder: &Path| {
        // One pipe for both streams keeps the order of a terminal.
        let mut shell = shell(&format!("{{ {line}; }} 2>&1"), folder);
        // No server listens on port 9; a developer may have an Ollama server on the usual port.
        shell.env("OLLAMA_HOST", "127.0.0.1:9");
        run(shell, "")
    };
    let (line, expected) = transcript("README.md", "formwork extract");
    let ran = in_order(&line, &checkout("transcript"));
    // A busy machine takes longer.
    let printed: Vec<String> = ran.stdout.lines().map(without_time).collect();
    let expected: Vec<&str> = expected.lines().collect();
    assert_eq!(
        (ran.code, printed.as_slice()),
        (0, expected.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>().as_slice()),
        "README.md: change the transcript, and examples/correction.cassette.json if a request changed"
    );

    let (line, expected) = transcript("docs/models.md", "formwork doctor");
    let folder = super::folder().join("letters");
    fs::create_dir_all(&folder).unwrap();
    let models = text_of("docs/models.md");
    let file = blocks(&models)
        .into_iter()
        .find(|block| block.text.starts_with("targets = [\"primary\", \"backup\"]"));
    fs::write(folder.join("formwork.toml"), file.unwrap().text).unwrap();
    let ran = in_order(&line, &folder);
    let folder = folder.canonicalize().unwrap().display().to_string();
    let printed = ran.stdout.replace(&folder, "…/letters").replace("127.0.0.1:9:", "127.0.0.1:11434:");
    assert_eq!((ran.code, printed), (2, expected));
}

/// A line of `-v` whose time is zero.
fn without_time(line: &str) -> String {
    let Some((start, rest)) = line.split_once(": ").filter(|(start, _)| start.starts_with("attempt ")) else {
        return line.to_owned();
    };
    let Some((target, rest)) = rest.split_once(", ") else { return line.to_owned() };
    match rest.split_once(" s, ") {
        Some((seconds, rest)) if seconds.parse::<f64>().is_ok() => {
            format!("{start}: {target}, 0.0 s, {rest}")
        }
        _ => line.to_owned(),
    }
}
