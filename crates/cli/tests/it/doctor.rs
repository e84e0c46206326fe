//! `formwork doctor`: its findings, and that its advice solves the problem.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{answer, of};
use super::{Ran, against_schema, command, folder, formwork, run, temporary};

const CANARY: &str = r#"{"word": "serinus-7431"}"#;

/// A request that a server receives.
#[derive(Debug, Clone)]
struct Incoming {
    path: String,
    key: Option<String>,
    body: Value,
}

type Answers = dyn Fn(&Incoming) -> (u16, String) + Send + Sync;

/// A server whose responses depend on the request, like those of real servers.
struct Reacting {
    url: String,
    requests: Arc<Mutex<Vec<Incoming>>>,
}

impl Reacting {
    fn start(answers: impl Fn(&Incoming) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Incoming>>> = Arc::default();
        let (log, answers): (_, Arc<Answers>) = (Arc::clone(&requests), Arc::new(answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, answers) = (Arc::clone(&log), Arc::clone(&answers));
                std::thread::spawn(move || drop(Self::serve(stream, &log, &*answers)));
            }
        });
        Self { url, requests }
    }

    fn serve(mut stream: TcpStream, log: &Mutex<Vec<Incoming>>, answers: &Answers) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut length, mut key) = (0, None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "authorization" => key = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let request = Incoming { path, key, body: serde_json::from_slice(&body).unwrap_or_default() };
        log.lock().unwrap().push(request.clone());
        let (status, text) = answers(&request);
        write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        )
    }

    fn requests(&self) -> Vec<Incoming> {
        self.requests.lock().unwrap().clone()
    }
}

fn chat(text: &str) -> (u16, String) {
    let message = json!({"role": "assistant", "content": text});
    (200, json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

fn ollama(text: &str) -> (u16, String) {
    let message = json!({"role": "assistant", "content": text});
    let body = json!({
        "model": "m", "message": message, "done": true, "done_reason": "stop", "prompt_eval_count": 15, "eval_count": 4,
    });
    (200, body.to_string())
}

fn error(status: u16, words: &str) -> (u16, String) {
    (status, json!({"error": {"message": words, "type": "invalid_request_error"}}).to_string())
}

fn doctor(text: &str, key: Option<&str>) -> (Ran, Value) {
    static NTH: AtomicUsize = AtomicUsize::new(0);
    let file = temporary(&format!("doctor-{}.toml", NTH.fetch_add(1, Ordering::SeqCst)), text);
    let mut command = command(&["doctor", "--config", &file, "--json"]);
    command.env("FORMWORK_CACHE", folder().join("doctor-cache"));
    if let Some(key) = key {
        command.env("FORMWORK_DOCTORS_KEY", key);
    }
    let ran = run(command, "");
    let row = ran.rows().remove(0);
    assert_eq!(against_schema("doctor-output.json", &row), Vec::<String>::new(), "{row}");
    (ran, row)
}

fn section(kind: &str, url: &str) -> String {
    let path = if kind == "ollama" { "" } else { "/v1" };
    format!("[providers.a]\nkind = \"{kind}\"\nmodel = \"m\"\nstream = false\nbase_url = \"{url}{path}\"\n")
}

/// A server, the doctor's finding about it, and the section after following the advice.
struct Case {
    kind: &'static str,
    server: Box<dyn Fn() -> Reacting>,
    advice: &'static str,
    apply: fn(&str, &str) -> String,
}

/// A configuration file with the line of the advice.
fn added(text: &str, fix: &str) -> String {
    let (_, line) = fix.split_once("add to [providers.a]: ").unwrap();
    format!("{text}{line}\n")
}

#[test]
fn its_advice_helps() {
    let case = |kind, advice, apply, answers: fn(&Incoming) -> (u16, String)| Case {
        kind,
        server: Box::new(move || Reacting::start(answers)),
        advice,
        apply,
    };
    let cases = [
        case(
            "llama-server",
            r#"add to [providers.a]: modes = ["json-object", "prompt"]"#,
            added,
            |request| match request.body["response_format"]["type"].as_str() {
                Some("json_object") => chat(r#"{"fruit": "apple"}"#),
                _ => chat("An apple."),
            },
        ),
        case(
            "llama-server",
            r#"add to [providers.a]: modes = ["json-object", "prompt"]"#,
            added,
            |request| match request.body["response_format"]["type"].as_str() {
                Some("json_schema") => {
                    error(400, "Invalid schema for response_format 'canary': not supported")
                }
                _ => chat(r#"{"fruit": "apple"}"#),
            },
        ),
        case(
            "llama-server",
            r#"change in [providers.a]: modes = ["prompt"]"#,
            |text, _| text.replace("modes = [\"json-object\", \"prompt\"]", "modes = [\"prompt\"]"),
            |_| chat("An apple."),
        ),
        case("ollama", "add to [providers.a]: think = false", added, |request| {
            if request.body["think"] == false { ollama(CANARY) } else { ollama("") }
        }),
        case("ollama", r#"add to [providers.a]: modes = ["json-object", "prompt"]"#, added, |request| {
            if request.body["format"] == "json" { ollama("{}") } else { ollama("An apple.") }
        }),
        case(
            "llama-server",
            "add its name to [providers.a]: api_key_env = ",
            |text, _| format!("{text}api_key_env = \"FORMWORK_DOCTORS_KEY\"\n"),
            |request| match request.key.as_deref() {
                Some("Bearer right") => chat(CANARY),
                _ => error(401, "wrong key"),
            },
        ),
        case(
            "llama-server",
            "correct `model`",
            |text, _| text.replace("\"m\"", "\"right\""),
            |request| match request.body["model"].as_str() {
                Some("right") => chat(CANARY),
                _ => (
                    404,
                    json!({"error": {"message": "The model `m` does not exist", "code": "model_not_found"}})
                        .to_string(),
                ),
            },
        ),
        case(
            "llama-server",
            "correct `base_url`",
            |text, _| text.replace("/elsewhere/v1", "/v1"),
            |request| match request.path.starts_with("/v1/") {
                true => chat(CANARY),
                false => (200, "<html>A page</html>".to_owned()),
            },
        ),
    ];
    for Case { kind, server, advice, apply } in cases {
        let server = server();
        let mut text = section(kind, &server.url);
        if advice.ends_with(r#"modes = ["prompt"]"#) {
            text.push_str("modes = [\"json-object\", \"prompt\"]\n");
        }
        if advice == "correct `base_url`" {
            text = text.replace("/v1", "/elsewhere/v1");
        }
        let (ran, row) = doctor(&text, Some("right"));
        assert_eq!((ran.code, &row["state"]), (3, &json!("unavailable")), "{advice}: {row}");
        assert!(row["fix"].as_str().unwrap().contains(advice), "{advice}: {row}");
        let calls = server.requests().len();
        let (ran, row) = doctor(&apply(&text, row["fix"].as_str().unwrap()), Some("right"));
        assert_eq!((ran.code, &row["state"]), (0, &json!("works")), "{advice}: {row} {}", ran.stderr);
        assert_eq!(server.requests().len(), calls + 1, "one call: {:?}", server.requests());
    }
}

#[test]
fn advice_about_the_other_side_helps() {
    // These servers are changed as advised, and the file stays unchanged.
    for (kind, before, advice) in [
        ("openai", error(402, "no credit"), "add credit"),
        ("llama-server", error(429, "slow down"), "try again later"),
        ("llama-server", error(503, "loading"), "try again later"),
        ("ollama", (404, json!({"error": "model 'm' not found"}).to_string()), "ollama pull m"),
    ] {
        let helped = Arc::new(Mutex::new(false));
        let state = Arc::clone(&helped);
        let server = Reacting::start(move |request| match (*state.lock().unwrap(), request.path.as_str()) {
            (false, _) => before.clone(),
            (true, "/api/chat") => ollama(CANARY),
            (true, _) => chat(CANARY),
        });
        let text = section(kind, &server.url).replace("\"openai\"\n", "\"openai\"\napi_key_env = \"\"\n");
        let (ran, row) = doctor(&text, None);
        assert!(ran.code == 3 && row["fix"].as_str().unwrap().contains(advice), "{advice}: {row}");
        *helped.lock().unwrap() = true;
        let (ran, row) = doctor(&text, None);
        assert_eq!((ran.code, &row["state"]), (0, &json!("works")), "{advice}: {row}");
    }
    // At first no server listens; then it is started.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (ran, row) = doctor(&section("llama-server", &format!("http://{address}")), None);
    assert!(
        ran.code == 3 && row["fix"].as_str().unwrap().contains("start the server, or correct `base_url`"),
        "{row}"
    );
    let server = Reacting::start(|_| chat(CANARY));
    assert_eq!(doctor(&section("llama-server", &server.url), None).0.code, 0);
    let silent = Server::start([Reply::silent(), answer(CANARY)]).unwrap();
    let text = section("llama-server", &silent.url());
    let (ran, row) = doctor(&format!("{text}timeout_seconds = 0.2\n"), None);
    assert!(ran.code == 3 && row["fix"].as_str().unwrap().contains("raise `timeout_seconds`"), "{row}");
    assert_eq!(doctor(&text, None).0.code, 0);
}

#[test]
fn every_provider_of_the_file_is_called_once_as_it_is_used() {
    let good = Server::start([answer(CANARY)]).unwrap();
    let bad = Server::start([answer(r#"{"word": "apple"}"#)]).unwrap();
    let mistyped = Server::start([Reply::status(404)]).unwrap();
    let text = format!(
        "targets = [\"primary\"]\n{}{}{}[providers.key]\nkind = \"openai\"\nmodel = \"m\"\napi_key_env = \"FORMWORK_NO_SUCH_KEY\"\n",
        of(&good),
        of(&bad).replace("primary", "careless"),
        of(&mistyped).replace("primary", "mistyped"),
    );
    let file = temporary("every.toml", &text);
    let ran = formwork(&["doctor", "--config", &file, "--json"], "");
    let rows = ran.rows();
    let states: Vec<_> =
        rows.iter().map(|row| (row["name"].as_str().unwrap(), row["state"].as_str().unwrap())).collect();
    let expected = [
        ("primary", "works"),
        ("careless", "unavailable"),
        ("mistyped", "unavailable"),
        ("key", "misconfigured"),
    ];
    assert_eq!((ran.code, states), (2, expected.to_vec()), "{rows:?}");
    assert_eq!((&rows[0]["enforced"], &rows[1]["enforced"]), (&json!(true), &json!(false)));
    assert!(rows[3]["error"].as_str().unwrap().contains("FORMWORK_NO_SUCH_KEY"), "{rows:?}");
    assert_eq!([&good, &bad, &mistyped].map(|server| server.received().len()), [1, 1, 1]);
    let ran = formwork(&["doctor", "--config", &file, "--provider", "primary", "--json"], "");
    assert_eq!((ran.code, ran.rows().len()), (0, 1));
}

#[test]
fn the_fix_of_a_wrong_key_names_the_variable() {
    let server = Server::start([Reply::status(401)]).unwrap();
    for (kind, more, key) in [
        ("llama-server", "api_key_env = \"FORMWORK_DOCTORS_KEY\"\n", "FORMWORK_DOCTORS_KEY"),
        ("openai", "api_key_env = \"FORMWORK_DOCTORS_KEY\"\n", "FORMWORK_DOCTORS_KEY"),
        ("openai", "", "OPENAI_API_KEY"),
        ("groq", "", "GROQ_API_KEY"),
    ] {
        let file = temporary(&format!("key-{kind}-{}.toml", more.len()), section(kind, &server.url()) + more);
        let mut command = command(&["doctor", "--config", &file, "--json"]);
        command.env(key, "wrong");
        let ran = run(command, "");
        let fix = format!("put a valid key into the environment variable {key}");
        assert_eq!((ran.code, &ran.rows()[0]["fix"]), (3, &json!(fix)), "{kind}");
    }
}

#[test]
fn the_doctor_speaks_to_people() {
    let text = "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n";
    let ran = formwork(&["doctor", "--config", &temporary("sick.toml", text)], "");
    assert_eq!(ran.code, 3);
    assert!(ran.stdout.starts_with("a (ollama, m)\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n  FAIL  connection failed: nothing listens at"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n  fix   start the server"), "{}", ran.stdout);
    let ran = formwork(&["doctor", "--help"], "");
    assert!(ran.code == 0 && ran.stdout.contains("Examples:\n  formwork doctor"), "{}", ran.stdout);
}

/// An Ollama server of this version. Its model thinks, and schemas are enforced only without thinking.
fn thinker(version: &'static str, digest: &'static str) -> Reacting {
    Reacting::start(move |request| match request.path.as_str() {
        "/api/version" => (200, json!({"version": version}).to_string()),
        "/api/tags" => (200, json!({"models": [{"name": "m:latest", "digest": digest}]}).to_string()),
        "/api/show" => (200, json!({"capabilities": ["completion", "thinking"]}).to_string()),
        _ if request.body["think"] != false => ollama("Hm."),
        _ if request.body["options"]["num_predict"] == 16 => ollama(r#"{"fw":"q7"}"#),
        _ => ollama(r#"{"name": "Maria", "age": 34, "city": "Lisbon"}"#),
    })
}

fn extract(url: &str, probe: bool, cache: &str) -> (Ran, Value) {
    static NTH: AtomicUsize = AtomicUsize::new(0);
    let text = format!("{}probe = {probe}\n", section("ollama", url));
    let file = temporary(&format!("probe-{}.toml", NTH.fetch_add(1, Ordering::SeqCst)), text);
    let person = super::example("person.schema.json");
    let mut command = command(&["extract", "--config", &file, "--schema", &person, "--json", "Maria, 34"]);
    command.env("FORMWORK_CACHE", folder().join(cache));
    let ran = run(command, "");
    let row = serde_json::from_str(&ran.stdout).unwrap();
    (ran, row)
}

#[test]
fn a_probe_is_a_call_that_was_requested_paid_once_and_verifies_what_calls_do() {
    let paths =
        |server: &Reacting| server.requests().into_iter().map(|request| request.path).collect::<Vec<_>>();
    let server = thinker("0.17.4", "one");
    let (_, row) = extract(&server.url, false, "probe-cache");
    assert!(
        paths(&server).iter().all(|path| path == "/api/chat"),
        "nobody asked for more: {:?}",
        paths(&server)
    );
    drop(row);

    // The first run makes two GET requests, a request about the model, and a call, which is in the ledger.
    let server = thinker("0.17.4", "one");
    let (ran, row) = extract(&server.url, true, "probe-cache");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        paths(&server),
        ["/api/version", "/api/tags", "/api/version", "/api/show", "/api/chat", "/api/chat"]
    );
    assert_eq!(server.requests().last().unwrap().body["think"], false, "calls are made as it was verified");
    let usage = &row["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(30), &json!(8)), "{row}");
    // It is a line of its own in the record, with its own tokens and cost.
    let lines = row["calls"].as_array().unwrap();
    let results: Vec<_> = lines.iter().map(|line| &line["verdict"]["result"]).collect();
    assert_eq!(results, ["probe", "accepted"], "{row}");
    for line in lines {
        let usage = &line["usage"];
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(15), &json!(4)), "{row}");
        assert_eq!(line["cost"]["tokens"], 19, "{row}");
    }
    assert_eq!(lines[0]["text"], "", "{row}");

    // The result is stored until the version or the model changes.
    let (_, row) = extract(&server.url, true, "probe-cache");
    assert_eq!(paths(&server)[6..], ["/api/version", "/api/tags", "/api/chat"]);
    assert_eq!(row["calls"].as_array().map(Vec::len), Some(1), "{row}");
    assert_eq!(
        (&row["usage"]["input_tokens"], &server.requests().last().unwrap().body["think"]),
        (&json!(15), &json!(false))
    );
}

#[test]
fn another_version_and_another_model_are_probed_again() {
    let now = Arc::new(Mutex::new(("1", "a")));
    let state = Arc::clone(&now);
    let server = Reacting::start(move |request| {
        let (version, digest) = *state.lock().unwrap();
        match request.path.as_str() {
            "/api/version" => (200, json!({"version": version}).to_string()),
            "/api/tags" => (200, json!({"models": [{"name": "m", "digest": digest}]}).to_string()),
            "/api/show" => (200, json!({"capabilities": ["completion"]}).to_string()),
            _ if request.body["options"]["num_predict"] == 16 => ollama(r#"{"fw":"q7"}"#),
            _ => ollama(r#"{"name": "Maria", "age": 34, "city": "Lisbon"}"#),
        }
    });
    let mut previous = 0;
    for (version, digest, again) in [
        ("1", "a", true),
        ("1", "a", false),
        ("2", "a", true),
        ("2", "b", true),
        ("2", "b", false),
        ("1", "a", false),
    ] {
        *now.lock().unwrap() = (version, digest);
        let (ran, _) = extract(&server.url, true, "probe-changes");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let found = server.requests().iter().filter(|request| request.path == "/api/show").count();
        assert_eq!(found, previous + usize::from(again), "{version} {digest}");
        previous = found;
    }
}

#[test]
fn every_step_down_is_one_line() {
    let maria = r#"{"name": "Maria", "age": 34, "city": "Lisbon"}"#;
    // Found by a probe.
    let server = Reacting::start(move |request| match request.path.as_str() {
        "/api/version" => (200, json!({"version": "1"}).to_string()),
        "/api/show" => (200, json!({"capabilities": ["completion"]}).to_string()),
        "/api/tags" => (404, String::new()),
        _ if request.body["options"]["num_predict"] == 16 && request.body["format"] != "json" => {
            ollama("Hello!")
        }
        _ if request.body["options"]["num_predict"] == 16 => ollama("{}"),
        _ => ollama(maria),
    });
    let (ran, _) = extract(&server.url, true, "probe-weaker");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("a: asked in `json-object`, because schemas are not enforced"),
        "{}",
        ran.stderr
    );

    // Found by a call: the server refuses the schema.
    let server = Reacting::start(move |request| {
        match request.body["format"].is_object() {
        true => (400, json!({"error": "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"}).to_string()),
        false => ollama(maria),
    }
    });
    let (ran, _) = extract(&server.url, false, "probe-refused");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("target `a` refused the schema"), "{}", ran.stderr);
}

#[test]
fn observations_are_forgotten_for_the_named_provider_or_for_all() {
    let server = Server::start([Reply::status(500)]).unwrap();
    let backup = of(&server).replace("primary", "backup").replace("\"m\"", "\"n\"")
        + "api_key_env = \"FORGETFUL_KEY\"\n";
    let file = temporary("doctor-forget.toml", of(&server) + &backup);
    let observations = folder().join("doctor-forget.jsonl");
    let with_key = |args: &[&str], key: Option<&str>| {
        let mut command = command(&[args, &["--config", &file]].concat());
        command.env("FORMWORK_OBSERVATIONS", &observations);
        key.map(|key| command.env("FORGETFUL_KEY", key));
        run(command, "")
    };
    let ran = |args: &[&str]| with_key(args, Some("key"));
    // A run leaves evidence about both providers, whose identities no test can know otherwise.
    let person = super::example("person.schema.json");
    for provider in ["primary", "backup"] {
        ran(&["extract", "--provider", provider, "--retries", "0", "--schema", &person, "x"]);
    }
    let left = || std::fs::read_to_string(&observations).unwrap();
    let names = || {
        let lines: Vec<Value> = left().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["primary", "backup"]);
    let two = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["shown"] = json!({"impossible": {"reason": "scripted"}});
        (0..2)
            .map(|request| {
                line["request"] = json!(request);
                format!("{line}\n")
            })
            .collect::<String>()
    };
    let both: String = left().lines().map(two).collect();
    let says = "because of 2 requests: scripted";
    for (args, forgotten, kept) in [
        (&["doctor", "--forget", "--provider", "backup"][..], 1, vec!["primary"; 2]),
        (&["doctor", "--forget"], 2, vec![]),
    ] {
        // No call needs a key, and none shows what the provider does.
        for (key, more, unsaid) in
            [(Some("key"), &[][..], "schemas"), (None, &[], "schemas"), (None, &["--json"], "\"works\"")]
        {
            std::fs::write(&observations, &both).unwrap();
            let calls = server.received().len();
            let found = with_key(&[args, more].concat(), key);
            assert_eq!((found.code, server.received().len()), (0, calls), "{}", found.stderr);
            let (removed, out) = (found.stdout.matches("1 observation was removed").count(), &found.stdout);
            assert!(removed == forgotten && !out.contains(unsaid), "{key:?} {out}");
            assert_eq!(names(), kept);
        }
    }
    std::fs::write(&observations, &both).unwrap();
    let shown = ran(&["doctor"]).stdout;
    assert_eq!(shown.matches(says).count(), 2, "{shown}");
    assert!(shown.contains("(since 20") && shown.contains(" UTC at the latest)"), "{shown}");
    let unknown = ran(&["doctor", "--forget", "--provider", "other"]);
    super::refused(&unknown, 2, "other");
    assert_eq!(left(), both, "a wrong name removes nothing");
}
