//! `formwork batch`: every row gets exactly one result, even if the process dies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::chaos::answers::Faults;
use super::chaos::invoice;
use super::chaos::kill;
use super::chaos::provider::Provider;
use super::chaos::submit;
use super::config::{chat, of, of_text};
use super::{Ran, against_schema, example, folder, formwork, refused, temporary};

pub(super) const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

/// A folder for a batch, which does not exist yet.
pub(super) fn out(name: &str) -> String {
    let path = folder().join(format!("batch-{name}"));
    drop(std::fs::remove_dir_all(&path));
    path.display().to_string()
}

pub(super) fn config(server: &Server) -> String {
    let price = "price = { input = 1.0, output = 1.0 }\n";
    temporary(&format!("batch-{}.toml", server.address().port()), format!("{}{price}", of(server)))
}

pub(super) fn batch(args: &[&str]) -> Ran {
    formwork(&[&["batch"], args].concat(), "")
}

/// Starts or resumes a batch with one row at a time, so that scripted completions arrive in the order of the rows.
pub(super) fn work(args: &[&str], config: &str) -> Ran {
    batch(&[args, &["--config", config, "--concurrency", "1"]].concat())
}

pub(super) fn lines(out: &str, kind: &str) -> Vec<Value> {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with(kind));
    names.sort();
    let text: String = names.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn rows(name: &str, count: usize) -> String {
    let rows: String =
        (0..count).map(|row| format!("{{\"id\": {row}, \"input\": \"Maria, 34, No. {row}\"}}\n")).collect();
    temporary(name, rows)
}

#[test]
fn a_batch_is_limited_continued_exported_and_never_called_twice() {
    let server =
        chat(&[MARIA, r#"{"name": "Jon", "age": "x", "city": "Bergen"}"#, r#"{"age": 41}"#, MARIA, MARIA]);
    let (rows, out, config) = (rows("batch-limit.jsonl", 4), out("limit"), config(&server));
    let person = example("person.schema.json");
    let run: &[&str] = &["run", &rows, "--contract", &person, "--out", &out];
    let ran = work(&[run, &["--limit", "2"]].concat(), &config);
    assert_eq!((ran.code, server.received().len()), (0, 3), "{}", ran.stderr);
    let status = batch(&["status", &out, "--json"]);
    let numbers = &status.rows()[0];
    assert_eq!(against_schema("batch-output.json", numbers), Vec::<String>::new());
    assert_eq!(
        (&numbers["state"], &numbers["accepted"], &numbers["open"], &numbers["calls"]),
        (&json!("open"), &json!(2), &json!(2), &json!(3))
    );
    // The same command resumes the batch, and so does `resume`, which uses the stored configuration.
    let ran = work(&[run, &["--limit", "1"]].concat(), &config);
    assert_eq!((ran.code, server.received().len()), (0, 4), "{}", ran.stderr);
    let ran = batch(&["resume", &out]);
    assert_eq!((ran.code, server.received().len()), (0, 5), "{}", ran.stderr);
    let ran = batch(&["resume", &out, "--json"]);
    assert_eq!(
        (ran.code, server.received().len(), &ran.rows()[0]["state"]),
        (0, 5, &json!("done")),
        "{}",
        ran.stderr
    );

    let values = lines(&out, "part-");
    assert_eq!(values.iter().map(|line| line["id"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(values[1]["value"], json!({"name": "Jon", "age": 41, "city": "Bergen"}));
    assert_eq!((&values[1]["calls"], &values[1]["usage"]["input_tokens"]), (&json!(2), &json!(18)));
    // Each row counts its values by their support, and names the most doubtful one.
    let evidence = &values[1]["evidence"];
    let found = ["exact", "normalised", "not_found"].map(|name| evidence[name].as_u64().unwrap());
    assert_eq!(found.iter().sum::<u64>(), 3, "{evidence}");
    assert!(
        values[1]["confidence"]["path"].is_string() && values[1]["confidence"]["score"].is_number(),
        "{evidence}"
    );
    let exported = batch(&["export", &out]);
    assert_eq!((exported.code, exported.rows()), (0, values));
    assert!(batch(&["status", &out]).stdout.contains("4 with a value, 0 rejected, 0 open"));
    assert_eq!(batch(&["watch", &out]).stdout.lines().count(), 1);
}

#[test]
fn rejected_rows_have_every_attempt_and_can_be_processed_again() {
    let server = chat(&["no", "nothing", "not at all", MARIA]);
    let (rows, out, config) = (rows("batch-rejected.jsonl", 1), out("rejected"), config(&server));
    let person = example("person.schema.json");
    let ran = work(&["run", &rows, "--contract", &person, "--out", &out], &config);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let rejected = lines(&out, "rejected-");
    let calls = rejected[0]["calls"].as_array().unwrap();
    let texts: Vec<_> = calls.iter().map(|call| call["text"].as_str().unwrap()).collect();
    assert_eq!(
        (texts, &rejected[0]["error"]["class"]),
        (vec!["no", "nothing", "not at all"], &json!("rejected"))
    );
    assert!(calls.iter().all(|call| against_schema("call.json", call).is_empty()));
    assert!(lines(&out, "part-").is_empty());
    assert_eq!(batch(&["export", &out, "--rejected"]).rows(), rejected);
    assert!(ran.stderr.contains("1: rejected (json)"), "{}", ran.stderr);

    assert_eq!(batch(&["resume", &out, "--allow-failures"]).code, 0);
    let ran = work(&["retry", &out], &config);
    assert_eq!(
        (ran.code, lines(&out, "part-").len(), lines(&out, "rejected-").len()),
        (0, 1, 0),
        "{}",
        ran.stderr
    );
    assert_eq!(lines(&out, "part-")[0]["calls"], 4);
}

#[test]
fn bad_input_is_one_message_each_and_the_batch_stays_as_it_is() {
    let server = chat(&[MARIA; 9]);
    let config = config(&server);
    let (person, other) =
        (example("person.schema.json"), temporary("batch-other.json", r#"{"type": "object"}"#));
    let input = rows("batch-bad.jsonl", 2);
    let mine = out("bad");
    assert_eq!(work(&["run", &input, "-c", &person, "-o", &mine], &config).code, 0);
    let newer = out("newer");
    assert_eq!(work(&["run", &input, "-c", &person, "-o", &newer], &config).code, 0);
    let file = rusqlite::Connection::open(Path::new(&newer).join("ledger.db")).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let strange = out("strange");
    std::fs::create_dir(&strange).unwrap();
    std::fs::write(Path::new(&strange).join("notes.txt"), "mine").unwrap();
    let foreign = out("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(Path::new(&foreign).join("ledger.db"), "not a database, but a long enough text").unwrap();
    let fresh = out("fresh");
    let fewer = rows("batch-fewer.jsonl", 1);
    let changed = temporary(
        "batch-changed.jsonl",
        "{\"id\": 0, \"input\": \"Maria, 34, No. 0\"}\n{\"id\": 1, \"input\": \"x\"}\n",
    );
    let table = temporary("batch-columns.csv", "name,text\na,b\n");
    let no_schema = temporary("batch-bad-contract.json", r#"{"type": "objekt"}"#);
    let letters = out("letters");
    std::fs::create_dir(&letters).unwrap();
    std::fs::write(Path::new(&letters).join("a.txt"), "Maria, 34").unwrap();
    let within = format!("{letters}/out");
    let before = batch(&["status", &mine]).stdout;
    for (args, says) in [
        (vec!["run", "no/such.jsonl", "-c", &person, "-o", &fresh], "no/such.jsonl: No such file"),
        (vec!["run", &input, "-c", "no/such.json", "-o", &fresh], "cannot read the contract no/such.json"),
        (vec!["run", &input, "-c", &no_schema, "-o", &fresh], "objekt"),
        (
            vec!["run", &table, "-c", &person, "-o", &fresh],
            "there is no column `id`; the columns are `name`, `text`: name them with --id and --input",
        ),
        (
            vec!["run", &input, "-c", &person, "-o", &strange],
            "is not empty and holds no batch: name a new folder",
        ),
        (vec!["run", &input, "-c", &person, "-o", &foreign], "is not a ledger of formwork"),
        (vec!["run", &input, "-c", &person, "-o", &newer], "has format 99"),
        (vec!["run", &input, "-c", &other, "-o", &mine], "the contract differs from the one of the batch"),
        (vec!["run", &fewer, "-c", &person, "-o", &mine], "it has more rows than the 1 of the input"),
        (vec!["run", &changed, "-c", &person, "-o", &mine], "the input of row 2 (id 1) has changed"),
        (vec!["run", &letters, "-c", &person, "-o", &within], "within the folder of the rows"),
        (vec!["resume", &strange], "holds no batch: start one with `formwork batch run`"),
        (vec!["status", "no/such"], "holds no batch"),
        (vec!["resume", &newer], "use a newer version of formwork"),
    ] {
        let with_config: Vec<&str> =
            if args[0] == "status" { args.clone() } else { [&args[..], &["--config", &config]].concat() };
        let ran = batch(&with_config);
        refused(&ran, 2, says);
        assert!(!Path::new(&fresh).join("ledger.db").exists(), "{args:?} left a batch behind");
    }
    // The restrictions that are in force depend on the time.
    let of_batch = |status: &str| status.split("in force").next().unwrap_or_default().to_owned();
    let after = batch(&["status", &mine]).stdout;
    // The second batch found the answers of the first in the store.
    assert_eq!((of_batch(&after), server.received().len()), (of_batch(&before), 2));
    assert_eq!(std::fs::read_dir(&strange).unwrap().count(), 1);
}

#[test]
fn invalid_rows_are_rejected_with_their_place_and_the_others_are_processed() {
    let server = chat(&[MARIA; 2]);
    let input = temporary(
        "batch-poison.jsonl",
        format!(
            "{{\"id\": \"a\", \"input\": \"Maria, 34\"}}\nnonsense\n{{\"id\": \"a\", \"input\": \"x\"}}\n{{\"id\": \"b\"}}\n\
             {{\"id\": \"huge\", \"input\": \"{}\"}}\n{{\"id\": \"c\", \"input\": \"Maria, 34!\"}}\n",
            "x".repeat(50 << 20)
        ),
    );
    let (out, person) = (out("poison"), example("person.schema.json"));
    let ran = work(&["run", &input, "-c", &person, "-o", &out], &config(&server));
    assert_eq!((ran.code, server.received().len()), (1, 2), "{}", ran.stderr);
    let ids = |lines: &[Value]| lines.iter().map(|line| line["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&lines(&out, "part-")), ["a", "c"]);
    let rejected = lines(&out, "rejected-");
    assert_eq!(ids(&rejected), [Value::Null, json!("a"), json!("b"), json!("huge")]);
    for (line, says) in
        rejected.iter().zip(["batch-poison.jsonl:2: ", "row 3: the id \"a\"", "`input` is missing", "50 MiB"])
    {
        assert!(line["error"]["message"].as_str().unwrap().contains(says), "{line}");
    }
    assert!(ran.stderr.contains("4: input"), "{}", ran.stderr);
}

#[test]
fn a_new_contract_keeps_the_values_that_satisfy_it() {
    let server = chat(&[
        MARIA,
        r#"{"name": "Jon", "age": 17, "city": "Bergen"}"#,
        r#"{"name": "Jon", "age": 71, "city": "Bergen"}"#,
    ]);
    let (input, out, config) = (rows("batch-new.jsonl", 2), out("new"), config(&server));
    let person = example("person.schema.json");
    assert_eq!(work(&["run", &input, "-c", &person, "-o", &out], &config).code, 0);
    let text = std::fs::read_to_string(&person).unwrap().replace("\"minimum\": 0", "\"minimum\": 18");
    let adults = temporary("batch-adults.json", text);
    let ran = work(&["run", &input, "-c", &adults, "-o", &out], &config);
    refused(&ran, 2, "/schema/properties/age/minimum was 0 and is 18");
    let ages = || lines(&out, "part-").iter().map(|line| line["value"]["age"].clone()).collect::<Vec<_>>();
    let ran = work(&["run", &input, "-c", &adults, "-o", &out, "--new-contract"], &config);
    refused(&ran, 2, "1 values satisfy it, 0 stored ones return, 1 violate it; 1 rows are processed");
    assert_eq!((ages(), server.received().len()), (vec![34.into(), 17.into()], 2));
    let ran = work(&["run", &input, "-c", &adults, "-o", &out, "--new-contract", "--yes"], &config);
    assert_eq!((ran.code, server.received().len()), (0, 3), "{}", ran.stderr);
    assert_eq!(ages(), [34, 71]);
    // The first value of the second row returns, and no call is made.
    let text = std::fs::read_to_string(&person).unwrap().replace("150", "40");
    let young = temporary("batch-young.json", text);
    let ran = work(&["run", &input, "-c", &young, "-o", &out, "--new-contract", "--yes"], &config);
    assert_eq!((ran.code, server.received().len()), (0, 3), "{}", ran.stderr);
    assert_eq!(ages(), [34, 17]);
}

#[test]
fn stored_values_are_judged_with_the_text_of_their_row_and_as_answers_to_their_instructions() {
    let server = chat(&[MARIA; 6]);
    let text = |nth| json!({"id": nth, "input": format!("{nth}. Maria Lindqvist, 34, Lisbon")}).to_string();
    let input = temporary("batch-grounded.jsonl", format!("{}\n{}\n", text(1), text(2)));
    let config = config(&server);
    let store = folder().join("grounded-store.db").display().to_string();
    drop(std::fs::remove_file(&store));
    let person: Value =
        serde_json::from_str(&std::fs::read_to_string(example("person.schema.json")).unwrap()).unwrap();
    let contract = |name: &str, maximum: u32, instructions: &str| {
        let mut schema = person.clone();
        schema["properties"]["age"]["maximum"] = maximum.into();
        let rules = json!([{"rule": "grounded", "target": "$.name"}]);
        temporary(name, json!({"schema": schema, "rules": rules, "instructions": instructions}).to_string())
    };
    let run = |out: &str, contract: &str, more: &[&str]| {
        let ran = work(&[&["run", &*input, "-c", contract, "-o", out], more].concat(), &config);
        (ran.code, server.received().len(), ran.stderr)
    };
    let (mine, first) = (out("grounded"), contract("grounded-1.yaml", 150, "Read."));
    assert_eq!(run(&mine, &first, &["--store", &store]).1, 2);
    let second = contract("grounded-2.yaml", 149, "Read.");
    let (code, calls, says) = run(&mine, &second, &["--new-contract"]);
    assert_eq!((code, calls), (0, 2), "{says}");
    assert!(says.contains("2 values satisfy it, 0 stored ones return, 0 violate it; 0 rows"), "{says}");
    assert_eq!(run(&out("grounded-other"), &first, &["--store", &store]).1, 2);
    // Other instructions are another question, whatever the values are.
    let third = contract("grounded-3.yaml", 149, "Read well.");
    let (code, calls, says) = run(&mine, &third, &["--new-contract"]);
    assert_eq!((code, calls), (2, 2), "{says}");
    let found = "0 values satisfy it, 0 stored ones return, 0 violate it, 2 answer other instructions or examples; 2 rows";
    assert!(says.contains(found) && says.contains("add --yes to set 2 values aside"), "{says}");
    assert_eq!(run(&mine, &third, &["--new-contract", "--yes"]).1, 4);
}

#[test]
fn both_costs_of_a_status_leave_out_the_rows_that_are_no_rows() {
    for (good, bad, limit) in [(4, 0, "2"), (4, 4, "2"), (4, 9, "3")] {
        let server = chat(&[MARIA; 4]);
        let (out, person) = (out("both-costs"), example("person.schema.json"));
        let rows: String = (0..good)
            .map(|nth| format!("{}\n", json!({"id": nth, "input": format!("Maria {nth}")})))
            .collect();
        let input = temporary("batch-both-costs.jsonl", rows + &"nonsense\n".repeat(bad));
        let run = ["run", &*input, "-c", &person, "-o", &out, "--limit", limit];
        let ran = work(&run, &config(&server));
        assert_eq!(server.received().len().to_string(), limit, "{}", ran.stderr);
        let numbers = batch(&["status", &out, "--json"]).rows().swap_remove(0);
        let cost = |path: &str| numbers.pointer(path).and_then(Value::as_f64).unwrap();
        let expected = cost("/cost_usd") * 4.0 / limit.parse::<f64>().unwrap();
        for path in ["/expected_cost_usd", "/estimate/expected"] {
            assert!(
                cost(path) > 0.0 && (cost(path) / expected - 1.0).abs() < 1e-6,
                "{path} of {bad}: {numbers}"
            );
        }
    }
}

#[test]
fn limits_of_money_and_failures_stop_the_batch_and_no_provider_leaves_it_open() {
    let (person, input) = (example("person.schema.json"), rows("batch-limits.jsonl", 3));
    let server = chat(&["no", "nothing", "not at all", MARIA, MARIA]);
    let (out_failures, own) = (out("failures"), config(&server));
    let ran = work(&["run", &input, "-c", &person, "-o", &out_failures, "--max-failures", "0"], &own);
    assert_eq!((ran.code, server.received().len()), (1, 3), "{}", ran.stderr);
    assert!(ran.stderr.contains("more than --max-failures allows"), "{}", ran.stderr);
    let ran = work(&["resume", &out_failures, "--max-failures", "50%"], &own);
    assert_eq!((ran.code, server.received().len()), (1, 5), "{}", ran.stderr);

    let server = chat(&[MARIA; 3]);
    let (out_budget, own) = (out("budget"), config(&server));
    let ran = work(&["run", &input, "-c", &person, "-o", &out_budget, "--budget", "0.000001"], &own);
    assert_eq!((ran.code, server.received().len()), (1, 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("--budget USD` goes on with more"), "{}", ran.stderr);
    let ran = work(&["resume", &out_budget, "--budget", "1"], &own);
    assert_eq!((ran.code, server.received().len()), (0, 3), "{}", ran.stderr);

    let server =
        Server::start([Reply::status(401), Reply::status(401), Reply::status(401), of_text(MARIA)]).unwrap();
    let (out_key, own) = (out("key"), config(&server));
    let ran = work(&["run", &input, "-c", &person, "-o", &out_key], &own);
    assert!(matches!(ran.code, 2 | 3), "{}: {}", ran.code, ran.stderr);
    assert!(
        batch(&["status", &out_key]).stdout.contains("0 with a value, 0 rejected, 3 open"),
        "{}",
        ran.stderr
    );
}

#[test]
fn retries_are_kept_for_resume_and_a_flag_replaces_them() {
    let (person, input) = (example("person.schema.json"), rows("batch-retries.jsonl", 3));
    let answers = (0..3).flat_map(|_| [Reply::status(503), of_text(MARIA)]);
    let server = Server::start(answers).unwrap();
    let (out, own) = (out("retries"), config(&server));
    let first = ["run", &*input, "-c", &person, "-o", &out, "--limit", "1", "--retries", "1"];
    let first = [&first[..], &["--retry-delays", "0"]].concat();
    let again = ["resume", &out, "--limit", "1"];
    let without = [&again[..], &["--retries", "0"]].concat();
    // A row whose call fails is called again at once, or, without retries, after the batch has paused.
    for (args, calls, pauses) in [(&first[..], 2, false), (&again, 4, false), (&without, 6, true)] {
        let ran = work(args, &own);
        assert_eq!((ran.code, server.received().len()), (0, calls), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("the batch pauses"), pauses, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn the_status_lists_only_the_evidence_about_the_targets_of_the_batch() {
    let (person, input) = (example("person.schema.json"), rows("batch-evidence.jsonl", 1));
    let server = chat(&[r#"{"b": 1}"#, MARIA]);
    let (out, own) = (out("evidence"), config(&server));
    assert_eq!(work(&["run", &input, "-c", &person, "-o", &out], &own).code, 0);
    let observations = || {
        folder().join(
            "observations-batch-the_status_lists_only_the_evidence_about_the_targets_of_the_batch.jsonl",
        )
    };
    let known = std::fs::read_to_string(observations()).unwrap();
    let line: Value = serde_json::from_str(known.lines().next().unwrap()).unwrap();
    let of = |target: &str| {
        let lines = (0..2).map(|request| {
            let mut line = line.clone();
            (line["target"], line["name"]) = (json!(target), json!(target));
            (line["request"], line["shown"]) =
                (json!(request), json!({"impossible": {"reason": "scripted"}}));
            format!("{line}\n")
        });
        lines.collect::<String>()
    };
    let own = line["target"].as_str().unwrap().to_owned();
    for (lines, expected) in [(of("another"), 0), (of(&own), 1), (of("another") + &of(&own), 1)] {
        std::fs::write(observations(), lines).unwrap();
        let numbers = batch(&["status", &out, "--json"]).rows().swap_remove(0);
        let found = numbers["in_force"].as_array().map_or(0, Vec::len);
        assert_eq!(found, expected, "{numbers}");
        assert_eq!(against_schema("batch-output.json", &numbers), Vec::<String>::new());
        let page = batch(&["status", &out]).stdout;
        assert_eq!(
            page.contains("in force  ") && page.contains("because of 2 requests: scripted"),
            expected == 1,
            "{page}"
        );
    }
}

#[test]
fn a_contract_that_says_nothing_is_refused_unless_any_value_is_wanted_and_a_wrapped_one_unwrapped() {
    let nothing = temporary("batch-nothing.json", "{}");
    let wrapped = r#"{"name": "save", "input_schema": {"type": "object", "required": ["name"]}}"#;
    let wrapped = temporary("batch-wrapped.json", wrapped);
    let (input, server) = (rows("batch-any.jsonl", 2), chat(&[MARIA, "[1]", "{}", MARIA, MARIA]));
    let (out_any, out_wrapped, own) = (out("any"), out("wrapped"), config(&server));
    let run = |contract: &str, out: &str, more: &[&str]| {
        work(&[&["run", &*input, "-c", contract, "-o", out], more].concat(), &own)
    };
    refused(&run(&nothing, &out_any, &[]), 2, "add --any to accept any value");
    assert!(!Path::new(&out_any).exists() && server.received().is_empty());
    // Every engine refuses it without the flag, and takes it with the flag: here no server of Restate listens.
    let (restate, of_restate) =
        (["--engine", "restate", "--ingress", "http://127.0.0.1:9"], out("any-restate"));
    let at_restate = |more: &[&str]| {
        formwork(
            &[&["batch", "run", &*input, "-c", &nothing, "-o", &of_restate], &restate[..], more].concat(),
            "",
        )
    };
    refused(&at_restate(&[]), 2, "add --any to accept any value");
    assert!(!Path::new(&of_restate).exists());
    let ran = at_restate(&["--any"]);
    assert!(ran.code == 3 && !ran.stderr.contains("--any"), "{} {}", ran.code, ran.stderr);
    assert_eq!(run(&nothing, &out_any, &["--any", "--limit", "1"]).code, 0);
    let ran = work(&["resume", &out_any], &own);
    assert_eq!((ran.code, lines(&out_any, "part-").len()), (0, 2), "{}", ran.stderr);
    let ran = run(&wrapped, &out_wrapped, &[]);
    assert!(
        ran.code == 0 && ran.stderr.contains("unwrapped: the schema is the member #/input_schema"),
        "{}",
        ran.stderr
    );
    // The first answer is in the store and satisfies the inner schema, which refuses the second one and an object without `name`.
    assert_eq!(server.received().len(), 4, "{}", ran.stderr);
}

#[test]
fn an_estimate_asks_some_rows_and_keeps_them() {
    let server = chat(&[MARIA; 40]);
    let (input, out, config) = (rows("batch-estimate.jsonl", 20), out("estimate"), config(&server));
    let person = example("person.schema.json");
    let ran = work(&["run", &input, "-c", &person, "-o", &out, "--estimate", "5", "--json"], &config);
    assert_eq!((ran.code, server.received().len()), (0, 5), "{}", ran.stderr);
    let estimate = &ran.rows()[0]["estimate"];
    assert_eq!(
        (&estimate["sampled"], &estimate["rows"], &estimate["unit"]),
        (&json!(5), &json!(20), &json!("usd"))
    );
    let expected = estimate["expected"].as_f64().unwrap();
    assert!((expected - 20.0 * 14e-6).abs() < 1e-9, "{estimate}");
    assert_eq!(work(&["resume", &out], &config).code, 0);
    assert_eq!((server.received().len(), lines(&out, "part-").len()), (20, 20));
}

/// A provider that sends correct completions after a delay.
pub(super) fn slow() -> Provider {
    Provider::start(Faults { wrong: 0, fail: 0, stall: 0, cut: 0 }, Duration::from_millis(20)).unwrap()
}

#[cfg(unix)]
#[test]
fn a_batch_is_paused_and_cancelled_from_outside_and_one_process_works_on_it() {
    let provider = slow();
    let input: String =
        (0..5000).map(|row| format!("{}\n", json!({"id": row, "input": invoice::input(row)}))).collect();
    let input = temporary("batch-pause.jsonl", input);
    let contract = temporary("batch-pause.json", r#"{"type": "object", "required": ["number"]}"#);
    let config = temporary("batch-pause.toml", format!("[providers.p]\n{}", provider.section("m")));
    let out = out("pause");
    let wait_for = |calls: usize| {
        while provider.calls() < calls {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let start = |args: &[&str]| {
        let args = [&["batch"], args, &["--config", &config, "--concurrency", "4"]].concat();
        super::command(&args).spawn().unwrap()
    };
    let ended = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let first = start(&["run", &input, "-c", &contract, "-o", &out]);
    wait_for(10);
    refused(
        &batch(&["resume", &out]),
        2,
        &format!("another process works on the batch in {out} (process {})", first.id()),
    );
    assert_eq!(batch(&["status", &out, "--json"]).rows()[0]["state"], "running");
    assert_eq!(batch(&["pause", &out]).code, 0);
    let (code, message) = ended(first);
    assert!(code == Some(130) && message.contains("error: paused; `formwork batch resume"), "{message}");
    let numbers = batch(&["status", &out, "--json"]).rows().swap_remove(0);
    assert_eq!((&numbers["state"], &numbers["begun"]), (&json!("paused"), &Value::Null));
    // A pause finishes the open calls.
    assert_eq!(numbers["calls"], provider.calls());
    let second = start(&["resume", &out]);
    wait_for(provider.calls() + 10);
    assert_eq!(batch(&["cancel", &out]).code, 0);
    let (code, message) = ended(second);
    assert!(code == Some(130) && message.contains("error: cancelled; `formwork batch retry"), "{message}");
    refused(&batch(&["resume", &out]), 2, "was cancelled: `formwork batch retry");
    let results = lines(&out, "part-").len() as u64;
    let status = batch(&["status", &out, "--json"]).rows().swap_remove(0);
    assert_eq!(status["accepted"], results);
    let ran = batch(&["retry", &out, "--limit", "1"]);
    let says = format!("0 rejected rows are processed again, and {} open rows are processed", status["open"]);
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn kills_lose_nothing_double_nothing_and_repeat_only_what_was_in_flight() {
    let folder = folder().join("chaos");
    drop(std::fs::remove_dir_all(&folder));
    let play = kill::Play {
        rows: 300,
        kills: 3,
        terms: 1,
        concurrency: 16,
        latency: 5,
        full_disk: false,
        clock_back: false,
        faults: Faults { wrong: 300, fail: 5, stall: 2, cut: 5 },
    };
    let seen = kill::play(&play, &folder, env!("CARGO_BIN_EXE_formwork").as_ref()).unwrap();
    assert_eq!((seen.faults(), seen.kills, seen.terms), (Vec::new(), 3, 1), "{seen:?}");
    assert!(seen.found.in_flight.all <= 3 * 20 && seen.seconds > 0.0 && seen.full == 0, "{seen:?}");
    assert!(seen.max_open <= 16 + 16, "{seen:?}");
    assert_eq!(seen.found.accepted + seen.found.rejected, 300, "{seen:?}");
}

#[cfg(unix)]
#[test]
fn kills_between_any_two_steps_of_a_file_lose_nothing_and_submit_nothing_twice() {
    let folder = folder().join("chaos-files");
    drop(std::fs::remove_dir_all(&folder));
    let play = submit::Play {
        rows: 120,
        file_rows: 12,
        kills: 6,
        faults: Faults { wrong: 300, fail: 20, stall: 5, cut: 10 },
        poll: 0.01,
    };
    let seen = submit::play(&play, &folder, env!("CARGO_BIN_EXE_formwork").as_ref()).unwrap();
    assert_eq!(seen.faults(), Vec::<String>::new(), "{seen:?}");
    assert_eq!((seen.kills, seen.terms), ([2, 2, 1], 1), "{seen:?}");
    assert_eq!(seen.found.accepted + seen.found.rejected, 120, "{seen:?}");
    assert!(seen.accepted > 10 && seen.seconds > 0.0, "{seen:?}");
}
