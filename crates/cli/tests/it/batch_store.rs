//! The store: answers that are paid for are used again.

use serde_json::json;

use super::batch::{MARIA, batch, config, lines, out, rows, work};
use super::config::chat;
use super::{against_schema, example, folder, formwork, refused, temporary};

#[test]
fn the_same_rows_are_paid_for_once_and_only_changed_ones_again() {
    let server = chat(&[MARIA; 9]);
    let (input, person, config) =
        (rows("batch-once.jsonl", 3), example("person.schema.json"), config(&server));
    let (first, second) = (out("once"), out("twice"));
    let store = folder().join("once").join("store.db").display().to_string();
    let run = |out: &str, input: &str, more: &[&str]| {
        let ran = work(&[&["run", input, "-c", &*person, "-o", out], more].concat(), &config);
        (ran.code, server.received().len(), ran.stderr)
    };
    let stored = ["--store", &*store];
    assert_eq!(run(&first, &input, &stored).1, 3);
    let (code, calls, says) = run(&second, &input, &stored);
    assert_eq!((code, calls), (0, 3), "{says}");
    assert!(
        says.contains("3 rows have a valid answer in") && says.contains("0 rows are processed"),
        "{says}"
    );
    assert_eq!(lines(&first, "part-")[1]["value"], lines(&second, "part-")[1]["value"]);
    // Another sample asks anew, and one row is new.
    assert_eq!(run(&out("sample"), &input, &[&stored[..], &["--sample", "1"]].concat()).1, 6);
    let more = temporary(
        "batch-once-more.jsonl",
        "{\"id\": \"new\", \"input\": \"Maria, 34\"}\n{\"id\": 1, \"input\": \"Maria, 34, No. 1\"}\n",
    );
    let (code, _, says) = run(&first, &more, &[]);
    assert!(code == 2 && says.contains("row 1 had the id"), "{says}");
    let (code, calls, says) = run(&first, &more, &["--new-rows"]);
    assert_eq!((code, calls), (0, 7), "{says}");
    assert!(says.contains("1 rows are the same as before, 1 are new"), "{says}");
    assert!(says.contains(&format!("(rows of {more})")), "{says}");
    let ids: Vec<_> = lines(&first, "part-").iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, [json!("new"), json!(1)]);
    let (code, _, says) = run(&first, &more, &["--store", "other.db"]);
    assert!(code == 2 && says.contains("the answers of this batch are in"), "{says}");

    let store = |args: &[&str]| formwork(&[&["store"], args, &["--store", &*store]].concat(), "");
    let shown = store(&["show", "--json"]).rows().swap_remove(0);
    assert_eq!((&shown["batches"], &shown["calls"], &shown["open"]), (&json!(2), &json!(7), &json!(0)));
    assert_eq!(store(&["prune", "--older-than", "90d"]).stdout, "deleted 0 answers\n");
    let file = rusqlite::Connection::open(folder().join("once").join("store.db")).unwrap();
    file.execute_batch("UPDATE answer SET planned = 0").unwrap();
    drop(file);
    let dry = store(&["prune", "--older-than", "90d", "--dry-run"]);
    assert_eq!((dry.code, &*dry.stdout), (0, "would delete 7 answers\n"), "{}", dry.stderr);
    assert_eq!(store(&["prune", "--older-than", "90d"]).stdout, "deleted 7 answers\n");
    refused(&batch(&["export", &second]), 2, "`formwork store prune` deleted them");
}

#[test]
fn extract_uses_and_fills_the_store_that_batches_use() {
    let server = chat(&[MARIA; 9]);
    let (person, config) = (example("person.schema.json"), config(&server));
    let store = folder().join("extract-store.db").display().to_string();
    drop(std::fs::remove_file(&store));
    let extract = |more: &[&str], stdin: &str| {
        let own = ["extract", "-s", &*person, "--config", &*config, "--store", &*store];
        let ran = formwork(&[&own[..], more].concat(), stdin);
        assert_eq!(ran.code, 0, "{more:?}: {}", ran.stderr);
        (server.received().len(), ran)
    };
    let text = "Maria, 34, No. 0";
    let (calls, first) = extract(&["--json", text], "");
    assert_eq!((calls, first.rows()[0]["calls"].as_array().map(Vec::len)), (1, Some(1)));
    // The same question takes no call, and its value has its evidence.
    let (calls, again) = extract(&["--json", text], "");
    let (first, again) = (first.rows().swap_remove(0), again.rows().swap_remove(0));
    assert_eq!((calls, &again["value"], &again["calls"]), (1, &first["value"], &json!([])));
    assert_eq!((&again["evidence"], &again["trust"]), (&first["evidence"], &first["trust"]));
    assert_eq!(against_schema("extract-output.json", &again), Vec::<String>::new());
    assert_eq!(extract(&[text], "").0, 1);
    // Another text, other instructions and another temperature are other questions.
    assert_eq!(extract(&["--system", "People", text], "").0, 2);
    assert_eq!(extract(&["--temperature", "0.9", text], "").0, 3);
    let texts =
        format!("{}\n{}\n", json!({"id": 1, "input": text}), json!({"id": 2, "input": "Maria, 34, No. 1"}));
    let (calls, ran) = extract(&["--jsonl"], &texts);
    assert_eq!((calls, ran.rows().len()), (4, 2), "{}", ran.stderr);
    // A batch finds both, and asks for its third row.
    let (input, out) = (rows("batch-extract.jsonl", 3), out("extract"));
    let ran = work(&["run", &input, "-c", &person, "-o", &out, "--store", &store], &config);
    assert_eq!((ran.code, server.received().len()), (0, 5), "{}", ran.stderr);
    assert_eq!(extract(&["Maria, 34, No. 2"], "").0, 5);
    // A value that violates another schema is not used.
    let other =
        temporary("extract-store.json", json!({"type": "object", "required": ["street"]}).to_string());
    let own =
        ["extract", "-s", &*other, "--config", &*config, "--store", &*store, "--max-attempts", "1", text];
    assert_eq!((formwork(&own, "").code, server.received().len()), (1, 6));
    let refusal = formwork(&["extract", "-s", &person, "--config", &config, "--store", &person, text], "");
    refused(&refusal, 2, "is not a ledger of formwork");
}
