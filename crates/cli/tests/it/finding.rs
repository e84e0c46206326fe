//! The search for the configuration, and the messages about its result (findings D1, D3, D4).

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{chat, of};
use super::{Ran, command, example, refused, run, temporary};

/// A folder outside of any repository, deleted with the value.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("formwork-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(fs::canonicalize(folder).unwrap())
    }

    fn folder(&self, path: &str) -> PathBuf {
        let folder = self.0.join(path);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A configuration with an error that is detected without a model or a server: a missing key.
    fn file(&self, path: &str) -> PathBuf {
        let file = self.0.join(path);
        self.folder(file.parent().unwrap().strip_prefix(&self.0).unwrap().to_str().unwrap());
        fs::write(
            &file,
            "[providers.it]\nkind = \"openai\"\nmodel = \"m\"\napi_key_env = \"FORMWORK_NO_SUCH_KEY\"\n",
        )
        .unwrap();
        file
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `formwork doctor`, which prints the name of the configuration, in a folder and with a home folder. Without a configuration
/// it examines a provider that needs none.
fn doctor(here: &Path, home: &Path) -> Command {
    let mut command = command(&["doctor", "--provider", "it"]);
    command.current_dir(here).env("HOME", home).env_remove("XDG_CONFIG_HOME");
    command
}

/// Returns the file that was read, from the output of the command.
fn read(ran: &Ran) -> Option<PathBuf> {
    ran.stderr
        .lines()
        .find_map(|line| line.strip_prefix("configuration: /"))
        .map(|path| PathBuf::from(format!("/{path}")))
}

#[cfg(unix)]
#[test]
fn a_configuration_is_looked_for_in_the_project_and_then_in_the_users_folder() {
    let place = Place::new("project");
    let (above, user) = (place.file("formwork.toml"), place.file("home/.config/formwork/formwork.toml"));
    let (root, deep) = (place.folder("repository"), place.folder("repository/a/b"));
    let home = place.folder("home");
    let found = |here: &Path| read(&run(doctor(here, &home), ""));
    // Outside a repository, only the current folder is searched.
    assert_eq!(found(&deep), Some(user.clone()));
    assert_eq!(found(&place.0), Some(above));
    // Inside a repository, all folders up to its root are searched.
    place.folder("repository/.git");
    assert_eq!(found(&deep), Some(user.clone()), "never above the repository");
    let of_root = place.file("repository/formwork.toml");
    assert_eq!((found(&deep), found(&root)), (Some(of_root.clone()), Some(of_root)));
    let nearer = place.file("repository/a/formwork.toml");
    assert_eq!(found(&deep), Some(nearer));
    // XDG_CONFIG_HOME in place of ~/.config, if it is absolute.
    let elsewhere = place.file("xdg/formwork/formwork.toml");
    let empty = place.folder("empty");
    for (folder, expected) in [(place.0.join("xdg"), elsewhere), (PathBuf::from("xdg"), user)] {
        let mut command = doctor(&empty, &home);
        command.env("XDG_CONFIG_HOME", folder);
        assert_eq!(read(&run(command, "")), Some(expected));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_could_have_written_is_refused_unless_it_is_named() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    let place = Place::new("trust");
    let (folder, home) = (place.folder("here"), place.folder("home"));
    let file = place.file("here/formwork.toml");
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (path, mode, usual) in [(&file, 0o646, 0o644), (&folder, 0o777, 0o755), (&folder, 0o1777, 0o755)] {
        open(path, mode);
        let ran = run(doctor(&folder, &home), "");
        refused(&ran, 2, "can be written by everyone; the file was not read");
        assert_eq!(ran.stderr.matches("formwork.toml").count(), 1, "{}", ran.stderr);
        let mut named = doctor(&folder, &home);
        named.env("FORMWORK_CONFIG", &file);
        assert_eq!(read(&run(named, "")).as_ref(), Some(&file), "{mode:o}");
        open(path, usual);
        assert_eq!(read(&run(doctor(&folder, &home), "")).as_ref(), Some(&file));
    }
    // A symbolic link is checked at its target.
    let linked = place.folder("linked");
    symlink(&file, linked.join("formwork.toml")).unwrap();
    open(&file, 0o646);
    refused(&run(doctor(&linked, &home), ""), 2, "can be written by everyone");
    open(&file, 0o644);
    // Only root can give files away.
    if chown(&file, Some(12_345), None).is_ok() {
        refused(&run(doctor(&folder, &home), ""), 2, "belongs to another user; the file was not read");
    }
}

fn extract(more: &[&str]) -> Command {
    let mut command = command(&[&["extract", "-s", &example("person.schema.json")], more].concat());
    command.env("HOME", "/nowhere").env_remove("XDG_CONFIG_HOME");
    command
}

const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[test]
fn the_environment_is_a_configuration_without_a_file() {
    let server = chat(&[MARIA]);
    let mut command = extract(&["-v", "x"]);
    for (name, value) in [
        ("KIND", "llama-server"),
        ("MODEL", "m"),
        ("STREAM", "false"),
        ("BASE_URL", &format!("{}/v1", server.url())),
    ] {
        command.env(format!("FORMWORK__PROVIDERS__PRIMARY__{name}"), value);
    }
    command.env("FORMWORK__DEFAULTS__TEMPERATURE", "0.6");
    let ran = run(command, "");
    assert_eq!((ran.code, ran.stdout.trim()), (0, MARIA), "{}", ran.stderr);
    assert_eq!(bodies(&server)[0]["temperature"], 0.6);
    assert!(ran.stderr.contains("configuration: the environment\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("environment variable FORMWORK__DEFAULTS__TEMPERATURE\n"), "{}", ran.stderr);
}

#[test]
fn formwork_model_changes_the_model_and_nothing_else() {
    let (first, second) = (chat(&["no"]), chat(&[MARIA]));
    let text = format!("{}{}", of(&first), of(&second).replace("primary", "backup"));
    let text = format!("[defaults]\nmax_attempts = 2\ntemperature = 0.9\n{text}");
    let file = temporary("override.toml", text.replace("primary]", "primary]\nfirst_timeout_seconds = 5"));
    let mut ask = extract(&["--config", &file, "-v", "x"]);
    ask.env("FORMWORK_MODEL", "seven");
    let ran = run(ask, "");
    let sent = bodies(&first);
    assert_eq!(
        (&sent[0]["model"], &sent[0]["temperature"]),
        (&json!("seven"), &json!(0.9)),
        "{}",
        ran.stderr
    );
    let message = "model: seven instead of the one of `primary` (FORMWORK_MODEL)";
    assert!(
        ran.stderr.contains(message) && ran.stderr.contains(&format!("configuration: {file}\n")),
        "{}",
        ran.stderr
    );
    let mut wrong = extract(&["--config", &file, "x"]);
    wrong.env("FORMWORK_MODEL", "").env("FORMWORK__PROVIDERS__PRIMARY__MODEL", "[1]");
    refused(&run(wrong, ""), 2, "the environment variable FORMWORK__PROVIDERS__PRIMARY__MODEL: invalid type");
}

#[test]
fn the_servers_that_other_programs_know_by_variables_are_called() {
    let ollama = Server::start([Reply::json(
        json!({"model": "m", "message": {"role": "assistant", "content": MARIA}, "done": true, "done_reason": "stop"})
            .to_string(),
    )])
    .unwrap();
    let mut ask = extract(&["--provider", "ollama", "--model", "m", "x"]);
    ask.env("OLLAMA_HOST", ollama.address().to_string());
    let ran = run(ask, "");
    assert_eq!((ran.code, ran.stdout.trim()), (0, MARIA), "{}", ran.stderr);

    let openai = chat(&[MARIA]);
    let mut ask = extract(&["--provider", "openai", "--model", "m", "x"]);
    ask.env("OPENAI_BASE_URL", format!("{}/v1", openai.url())).env("OPENAI_API_KEY", "k-123456789");
    let ran = run(ask, "");
    assert_eq!((ran.code, openai.received().len()), (0, 1), "{}", ran.stderr);

    // Anthropic's SDKs have a base URL without `/v1`. The key has its own header and is never printed.
    let message =
        json!({"type": "message", "content": [{"type": "text", "text": MARIA}], "stop_reason": "end_turn"});
    let refused_key = json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key k-123456789"}});
    let anthropic = Server::start([
        Reply::json(message.to_string()),
        Reply::json(refused_key.to_string()).with_status(401),
    ])
    .unwrap();
    for (address, code) in [(anthropic.url(), 0), (format!("{}/v1", anthropic.url()), 3)] {
        let mut ask = extract(&["--provider", "anthropic", "--model", "claude-sonnet-4-6", "-v", "x"]);
        ask.env("ANTHROPIC_BASE_URL", address).env("ANTHROPIC_API_KEY", "k-123456789");
        let ran = run(ask, "");
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(!ran.stderr.contains("k-123456789"), "{}", ran.stderr);
    }
    for received in anthropic.received() {
        assert_eq!(received.header("x-api-key"), Some("k-123456789"));
        assert_eq!((received.header("authorization"), received.path.as_str()), (None, "/v1/messages"));
        let sent: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(sent["output_config"]["format"]["type"], "json_schema");
        assert_eq!(sent["max_tokens"], 128_000);
    }
    // Google's libraries leave the version out of the address.
    let message = json!({"candidates": [{"content": {"parts": [{"text": MARIA}]}, "finishReason": "STOP"}]});
    let gemini = Server::start([Reply::json(message.to_string())]).unwrap();
    let mut ask = extract(&["-m", "gemini/gemini-2.5-flash", "x"]);
    ask.env("GOOGLE_GEMINI_BASE_URL", gemini.url()).env("GEMINI_API_KEY", "k-123456789");
    let ran = run(ask, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let received = gemini.received().remove(0);
    assert!(received.path.starts_with("/v1beta/models/gemini-2.5-flash:"), "{}", received.path);
    assert_eq!(received.header("x-goog-api-key"), Some("k-123456789"));
    let mut keyless = extract(&["--provider", "anthropic", "--model", "m", "x"]);
    keyless.env_remove("ANTHROPIC_API_KEY");
    refused(&run(keyless, ""), 2, "ANTHROPIC_API_KEY");

    // The address in the file takes precedence, and the variable of another vendor has no effect.
    let named = chat(&[MARIA]);
    let file =
        temporary("named-url.toml", of(&named).replace("llama-server", "openai") + "api_key_env = \"\"\n");
    let vendor = temporary("vendor-url.toml", of(&named));
    for file in [file, vendor] {
        let mut ask = extract(&["--config", &file, "x"]);
        ask.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
        assert_eq!(run(ask, "").code, 0, "{file}");
    }
    assert_eq!(named.received().len(), 2);

    let mut wrong = extract(&["--provider", "openai", "--model", "m", "x"]);
    wrong.env("OPENAI_BASE_URL", "ftp://h").env("OPENAI_API_KEY", "k-123456789");
    refused(&run(wrong, ""), 2, "is no base URL");
}

#[test]
fn a_model_with_a_kind_before_it_names_its_provider() {
    let place = Place::new("model-names");
    for (model, sent) in [("openai/gpt-4o-mini", "gpt-4o-mini"), ("openai/org/fine:tuned", "org/fine:tuned")]
    {
        let server = chat(&[MARIA]);
        let mut ask = extract(&["-m", model, "-v", "x"]);
        ask.current_dir(&place.0);
        ask.env("OPENAI_BASE_URL", format!("{}/v1", server.url())).env("OPENAI_API_KEY", "k-123456789");
        let ran = run(ask, "");
        assert_eq!((ran.code, ran.stdout.trim()), (0, MARIA), "{}", ran.stderr);
        assert_eq!(bodies(&server)[0]["model"], sent);
    }
    // A section of that name is used as it is, and an explicit provider leaves the model's name unchanged.
    for arguments in
        [["-m", "openai/gpt-4o-mini", "-v"], ["--provider=openai", "-m=openai/gpt-4o-mini", "-v"]]
    {
        let server = chat(&[MARIA]);
        let file = place.0.join("formwork.toml");
        let text =
            of(&server).replace("providers.primary", "providers.openai").replace("llama-server", "openai");
        fs::write(&file, text + "api_key_env = \"\"\n").unwrap();
        let mut ask = extract(&arguments);
        ask.arg("x").current_dir(&place.0);
        let ran = run(ask, "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let expected = if arguments[0] == "-m" { "gpt-4o-mini" } else { "openai/gpt-4o-mini" };
        assert_eq!(bodies(&server)[0]["model"], expected);
    }
    // A file that exists, a file of Hugging Face and an unknown kind are models in this process.
    fs::create_dir_all(place.0.join("openai")).unwrap();
    fs::write(place.0.join("openai/own.gguf"), "no model").unwrap();
    for model in
        ["openai/own.gguf", "openai/mistyped.gguf", "esperanto/m"].iter().filter(|_| cfg!(feature = "local"))
    {
        let mut ask = extract(&["-m", model, "x"]);
        ask.current_dir(&place.0).env_remove("OPENAI_API_KEY");
        let ran = run(ask, "");
        assert!(ran.code != 0 && ran.stderr.contains(model), "{}", ran.stderr);
        assert!(!ran.stderr.contains("OPENAI_API_KEY"), "{}", ran.stderr);
    }
}

#[test]
fn the_key_of_gemini_is_found_and_goes_into_its_header_alone() {
    let document = json!({
        "candidates": [{"content": {"parts": [{"text": MARIA}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 9},
    });
    let (key, other) = ("AIza-0123456789", "AIza-9876543210");
    for (variables, expected) in [
        (vec![("GEMINI_API_KEY", key), ("GOOGLE_API_KEY", other)], key),
        (vec![("GOOGLE_API_KEY", other)], other),
    ] {
        let server = Server::start([Reply::json(document.to_string())]).unwrap();
        let place = Place::new("gemini-key");
        let file = place.0.join("formwork.toml");
        let text = format!(
            "[providers.it]\nkind = \"gemini\"\nmodel = \"gemini-2.5-flash\"\nbase_url = \"{}\"\nrecord = \"tape.json\"\n",
            server.url()
        );
        fs::write(&file, text).unwrap();
        let mut ask = extract(&["--config", file.to_str().unwrap(), "-v", "x"]);
        ask.env_remove("GEMINI_API_KEY").env_remove("GOOGLE_API_KEY").envs(variables);
        let ran = run(ask, "");
        assert_eq!((ran.code, ran.stdout.trim()), (0, MARIA), "{}", ran.stderr);
        let received = server.received();
        assert_eq!(received[0].header("x-goog-api-key"), Some(expected));
        let tape = fs::read_to_string(place.0.join("tape.json")).unwrap();
        let called = format!("{} {}", received[0].path, String::from_utf8_lossy(&received[0].body));
        for output in [&tape, &called, &ran.stderr, &ran.stdout] {
            assert!(!output.contains(expected), "{output}");
        }
    }
    // Vertex AI needs an access token, and the project from the environment variable of Google's tools.
    let server = Server::start([Reply::json(document.to_string())]).unwrap();
    let text = "[providers.it]\nkind = \"gemini\"\npreset = \"vertex\"\nmodel = \"gemini-2.5-flash\"\nstream = false\n";
    let file = temporary("vertex.toml", format!("{text}base_url = \"{}\"\n", server.url()));
    let mut ask = extract(&["--config", &file, "x"]);
    ask.env("GOOGLE_CLOUD_PROJECT", "p-1")
        .env("GOOGLE_CLOUD_LOCATION", "us-east5")
        .env("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.0123456789");
    let ran = run(ask, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let received = server.received();
    assert_eq!(received[0].header("authorization"), Some("Bearer ya29.0123456789"));
    let path =
        "/v1/projects/p-1/locations/us-east5/publishers/google/models/gemini-2.5-flash:generateContent";
    assert_eq!(received[0].path, path);

    let mut ask = extract(&["--provider", "gemini", "--model", "gemini-2.5-flash", "x"]);
    ask.env_remove("GEMINI_API_KEY").env_remove("GOOGLE_API_KEY");
    let ran = run(ask, "");
    assert!(ran.stderr.contains("the environment variable `GEMINI_API_KEY` is not set"), "{}", ran.stderr);
}

#[test]
fn a_schema_over_the_limits_of_a_dialect_is_requested_in_the_prompt() {
    // Too many optional members of one object are grouped in lists; those of variants of a union are not.
    let variant = |name: &str| {
        let properties: serde_json::Map<_, _> =
            (0..20).map(|n| (format!("{name}_{n}"), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let value = json!({"anyOf": [variant("left"), variant("right")]});
    let schema = json!({"type": "object", "properties": {"value": value}, "required": ["value"]}).to_string();
    let schema = temporary("many-optional.schema.json", schema);
    let text = "{\"value\": {\"left_7\": \"x\"}}";
    let answer =
        json!({"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"});
    let server = Server::start([Reply::json(answer.to_string())]).unwrap();
    let mut ask = command(&[
        "extract",
        "--provider",
        "anthropic",
        "--model",
        "claude-sonnet-4-6",
        "--schema",
        &schema,
        "x",
    ]);
    ask.env("ANTHROPIC_BASE_URL", server.url()).env("ANTHROPIC_API_KEY", "k-123456789");
    let ran = run(ask, "");
    assert_eq!((ran.code, ran.stdout.trim()), (0, text), "{}", ran.stderr);
    assert!(ran.stderr.contains("optional properties"), "the weaker mode is said: {}", ran.stderr);
    let sent = &bodies(&server)[0];
    assert_eq!(sent["output_config"], Value::Null);
    assert!(sent.to_string().contains("right_19"), "{sent}");
}

/// Kinds of servers on this machine, with their default addresses.
const ON_THIS_MACHINE: [(&str, &str); 3] = [
    ("vllm", "http://localhost:8000/v1"),
    ("sglang", "http://localhost:30000/v1"),
    ("lm-studio", "http://localhost:1234/v1"),
];

#[test]
fn the_address_of_a_server_is_shown_and_counts_even_if_it_is_the_default_of_the_kind() {
    for (kind, address) in ON_THIS_MACHINE {
        let text = format!("[providers.a]\nkind = \"{kind}\"\nmodel = \"m\"\n");
        let file = temporary(&format!("default-{kind}.toml"), text);
        let shown = run(command(&["config", "show", "--config", &file, "--json"]), "").rows().remove(0);
        assert_eq!(shown["providers"][0]["address"], *address, "{shown}");
        if TcpStream::connect(address.trim_start_matches("http://").trim_end_matches("/v1")).is_ok() {
            continue;
        }
        // A server that is not running fails at once, without a retry.
        let person = example("person.schema.json");
        let model = format!("{kind}/m");
        for args in [["--config", &file], ["-m", &model]] {
            let ran = run(command(&[&["extract", "-s", &person, "--json", "x"], &args[..]].concat()), "");
            let calls = ran.rows().remove(0)["calls"].as_array().unwrap().len();
            assert_eq!((ran.code, calls), (3, 1), "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn defaults_mean_the_same_for_every_command() {
    let input = temporary("defaults-input.txt", "Plan a week.");
    let rubric =
        temporary("defaults-rubric.yaml", "name: r\ncriteria:\n  - {id: a, description: It is kind.}\n");
    let wallet = example("wallets/whale.json");
    let skill = "name: defaults\ndescription: d\ntemplate_type: LLM_JSON_GENERATION\nprompt: x\noutput: {shape: '{\"a\": string}'}\n";
    let skill = temporary("defaults-skill.yaml", skill);
    let (shape, person) = (example("feature-design.shape"), example("person.schema.json"));
    let commands: [&[&str]; 6] = [
        &["extract", "-s", &person, "x"],
        &["shape", "run", "-s", &shape, "-i", &input],
        &["chat", "What is JSON?"],
        &["review", "--rubric", &rubric, &input],
        &["skill", "run", &skill],
        &["oracle", "score", &wallet, "--no-fallback"],
    ];
    for args in commands {
        let server = chat(&["no", "no.", "no!", "no?"]);
        let defaults =
            "[defaults]\nmax_attempts = 4\ntemperature = 0.9\nmax_tokens = 77\ntimeout_seconds = 3000\n";
        let name = format!("defaults-{}.toml", server.address().port());
        let file = temporary(&name, format!("{defaults}{}", of(&server)));
        let ran = run(command(&[args, &["--config", &file]].concat()), "");
        let sent = bodies(&server);
        assert_eq!(sent.len(), 4, "{args:?}: {}", ran.stderr);
        assert_eq!(sent[0]["temperature"], 0.9, "{args:?}");
        for body in &sent {
            assert_eq!(body["max_tokens"], 77, "{args:?}: {body}");
            assert!(body["temperature"].as_f64().unwrap() <= 0.9, "{args:?}");
        }

        // The first target gets three of four attempts; an equal share would be two.
        let (first, second) = (chat(&["no", "no.", "no!"]), chat(&["no"]));
        let backup = of(&second).replace("primary", "backup");
        let name = format!("share-{}.toml", first.address().port());
        let shares = format!("{defaults}attempts_per_target = 3\n{}{backup}", of(&first));
        let file = temporary(&name, shares);
        let ran = run(command(&[args, &["--config", &file]].concat()), "");
        assert_eq!((bodies(&first).len(), bodies(&second).len()), (3, 1), "{args:?}: {}", ran.stderr);
    }
}
