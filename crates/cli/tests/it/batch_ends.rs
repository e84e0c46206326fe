//! The ends of `formwork batch`: signals, folders that cannot be written to, and the options of the next process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use formwork_testkit::server::{Reply, Server};
use serde_json::json;

use super::batch::{MARIA, batch, config, out, rows, slow};
use super::chaos::invoice;
use super::config::{chat, of};
use super::{command, example, refused, temporary};

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[cfg(unix)]
#[test]
fn the_first_signal_finishes_the_rows_in_progress() {
    for name in ["TERM", "INT"] {
        let provider = slow();
        let input: String =
            (0..5000).map(|row| format!("{}\n", json!({"id": row, "input": invoice::input(row)}))).collect();
        let input = temporary(&format!("batch-{name}.jsonl"), input);
        let contract = temporary("batch-ends.json", r#"{"type": "object", "required": ["number"]}"#);
        // On a busy machine an answer can take longer than the provider's time limits of about a second.
        let section = provider.section("m").replace("timeout_seconds = 1", "timeout_seconds = 600");
        let config = temporary(&format!("batch-{name}.toml"), format!("[providers.p]\n{section}"));
        let out = out(name);
        let args = ["batch", "run", &input, "-c", &contract, "-o", &out, "--config", &config];
        let child =
            command(&[&args[..], &["--concurrency", "64", "--grace", "3600"]].concat()).spawn().unwrap();
        while provider.calls() < 200 {
            std::thread::sleep(Duration::from_millis(2));
        }
        signal(&child, name);
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let message = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(130), "{name}: {message}");
        assert!(message.starts_with("ending: rows in progress have 3600 s to finish"), "{name}: {message}");
        assert!(message.ends_with(&format!("error: interrupted; `formwork batch resume {out}` goes on\n")));
        let numbers = batch(&["status", &out, "--json"]).rows().swap_remove(0);
        // Every answer that was paid for is stored, and every row that was begun has its result.
        assert_eq!(
            (&numbers["calls"], &numbers["state"]),
            (&json!(provider.calls()), &json!("open")),
            "{name}"
        );
        assert_eq!(numbers["accepted"], numbers["calls"], "{name}");
        assert!(numbers["open"].as_u64().unwrap() > 0, "{name}");
        let estimate = &numbers["estimate"];
        assert!(estimate["low"].as_f64() <= estimate["expected"].as_f64(), "{estimate}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_or_the_end_of_the_grace_drops_the_calls() {
    for (grace, signals) in [("3600", 2), ("0.001", 1)] {
        let server =
            Server::start(std::iter::repeat_with(Reply::silent).take(9).collect::<Vec<_>>()).unwrap();
        let (out, person) = (out(&format!("grace-{signals}")), example("person.schema.json"));
        let (rows, config) = (rows("batch-grace.jsonl", 3), config(&server));
        let args = ["batch", "run", &rows, "-c", &person, "-o", &out, "--config", &config, "--grace", grace];
        let mut child = command(&[&args[..], &["--concurrency", "2"]].concat()).spawn().unwrap();
        while server.received().len() < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        signal(&child, "INT");
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.starts_with("ending: "), "{line}");
        if signals == 2 {
            signal(&child, "INT");
        }
        errors.read_to_string(&mut line).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
        assert!(line.contains("uncertain 2 calls") && !line.contains("in flight"), "{line}");
        // A call has 120 s.
        assert!(begun.elapsed() < Duration::from_secs(90), "{line}");
        assert_eq!(batch(&["status", &out, "--json"]).rows()[0]["open"], 3);
    }
}

#[test]
fn options_hold_for_the_next_process_and_a_wrong_one_changes_nothing() {
    let server = chat(&[r#"{"age": 1}"#, r#"{"age": 1}"#, r#"{"age": 1}"#, r#"{"age": 1}"#, MARIA]);
    let other = format!(
        "[providers.other]\nkind = \"llama-server\"\nmodel = \"o\"\nbase_url = \"{}/v1\"\n",
        server.url()
    );
    let config = temporary("batch-options.toml", of(&server) + &other);
    let (rows, out, person) = (rows("batch-options.jsonl", 1), out("options"), example("person.schema.json"));
    let run = ["run", &rows, "-c", &person, "-o", &out, "--config", &config, "--provider", "primary"];
    let ran = batch(&[&run[..], &["--allow-failures", "--concurrency", "1"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let calls = server.received().len();
    let numbers = || batch(&["status", &out, "--json"]).rows().swap_remove(0);
    assert_eq!((&numbers()["rejected"], &numbers()["open"]), (&json!(1), &json!(0)));
    // Nothing is opened again for a provider that is not there.
    refused(&batch(&["retry", &out, "--provider", "absent"]), 2, "absent");
    assert_eq!((&numbers()["rejected"], &numbers()["open"]), (&json!(1), &json!(0)));
    assert_eq!(batch(&["resume", &out, "--provider", "primary"]).code, 0, "--allow-failures holds");
    // A model alone keeps the configuration and the provider.
    let ran = batch(&["retry", &out, "--model", "m2"]);
    let received = server.received();
    assert!(received.len() > calls, "{}", ran.stderr);
    let body = String::from_utf8_lossy(&received[calls].body).into_owned();
    assert!(body.contains(r#""model":"m2""#), "{body}");
}

/// The command as a user who may read the folder and not write to it.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_to_is_viewed_and_exported() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let server = chat(&[MARIA; 2]);
    let (rows, made, person) = (rows("batch-sealed.jsonl", 2), out("sealed"), example("person.schema.json"));
    let (own, store) = (config(&server), format!("{made}/store.db"));
    let run = ["run", &rows, "-c", &person, "-o", &made, "--config", &own, "--store", &store];
    assert_eq!(batch(&run).code, 0);
    // Another user can reach this folder.
    let place = std::env::temp_dir().join(format!("formwork-sealed-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let mode =
        |path: &std::path::Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let folder = place.join("sealed");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(&made).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        mode(&folder.join(entry.file_name()), 0o444);
    }
    let program = place.join("formwork");
    fs::hard_link(env!("CARGO_BIN_EXE_formwork"), &program)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_formwork"), &program).map(drop))
        .unwrap();
    mode(&place, 0o755);
    mode(&folder, 0o555);
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let table = folder.display().to_string();
    for args in [vec!["status", &table], vec!["export", &table], vec!["watch", &table]] {
        let mut child = Command::new(&program);
        child.arg("batch").args(&args).env("FORMWORK_OBSERVATIONS", "").current_dir("/");
        if is_root {
            child.uid(65534).gid(65534);
        }
        let output = child.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        let printed = text(&output.stdout);
        let says = if args[0] == "export" { "Maria Lindqvist" } else { "2" };
        assert!(printed.contains(says), "{args:?}: {printed}");
    }
    mode(&folder, 0o755);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), fs::read_dir(&made).unwrap().count());
    fs::remove_dir_all(&place).unwrap();
}
