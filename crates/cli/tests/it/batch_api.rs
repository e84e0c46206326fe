//! `formwork batch run --mode provider-batch`: rows in files for the batch API of a provider.

use std::sync::Arc;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::batch::{MARIA, batch, config, lines, out, rows};
use super::chaos::answers::{Act, Answer};
use super::chaos::batches::Batches;
use super::chaos::invoice;
use super::{example, temporary};

fn openai(name: &str, url: &str) -> String {
    let price = "price = { input = 1.0, output = 1.0 }";
    let text = format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"gpt-4o-mini\"\nbase_url = \"{url}/v1\"\napi_key_env = \"\"\n{price}\n"
    );
    temporary(name, text)
}

#[test]
fn a_batch_api_answers_in_rounds_at_half_the_price_and_the_mode_is_kept() {
    let reply = |row, nth, _: &Value| {
        let text = match (row, nth) {
            (2, _) => MARIA,
            (_, 0) => r#"{"name": "Maria", "age": "no", "city": "Lisbon"}"#,
            _ => r#"{"age": 34}"#,
        };
        (Act::Right, Answer { text: text.to_owned(), finish: "stop", is_right: true })
    };
    let server = Batches::start(Arc::new(reply), Vec::new()).unwrap();
    let row = |row| format!("{}\n", json!({"id": row, "input": invoice::input(row)}));
    let rows = temporary("batch-provider.jsonl", (0..3).map(row).collect::<String>());
    let (out, config) =
        (out("provider"), openai("batch-provider.toml", &format!("http://{}", server.address())));
    let person = example("person.schema.json");
    let ran = batch(&[
        "run",
        &rows,
        "--contract",
        &person,
        "--out",
        &out,
        "--config",
        &config,
        "--mode",
        "provider-batch",
        "--limit",
        "2",
        "--poll",
        "0.01",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let numbers = &ran.rows()[0];
    // Four calls of 120 tokens, at half of 1 US dollar for a million.
    assert_eq!(
        (&numbers["accepted"], &numbers["calls"], &numbers["cost_usd"]),
        (&json!(2), &json!(4), &json!(0.00024))
    );
    let ran = batch(&["resume", &out, "--poll", "0.01", "--json"]);
    assert_eq!((ran.code, &ran.rows()[0]["calls"]), (0, &json!(5)), "{}", ran.stderr);
    assert_eq!(lines(&out, "part-").len(), 3);
}

#[test]
fn a_batch_api_that_is_missing_or_refuses_is_one_message() {
    let server = Server::start([]).unwrap();
    let (rows, person) = (rows("batch-refused.jsonl", 2), example("person.schema.json"));
    let (one, other) = (out("no-api"), out("refused"));
    let run = |out: &str, config: &str| {
        batch(&[
            "run",
            &rows,
            "--contract",
            &person,
            "--out",
            out,
            "--config",
            config,
            "--mode",
            "provider-batch",
        ])
    };
    let ran = run(&one, &config(&server));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`primary` (kind `llama-server`) has no batch API"), "{}", ran.stderr);
    assert_eq!(server.received().len(), 0);

    let refusal = r#"{"error": {"message": "Incorrect API key provided: sk-1"}}"#;
    let server = Server::start([Reply::json(refusal).with_status(401)]).unwrap();
    let ran = run(&other, &openai("batch-refused.toml", &server.url()));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("Incorrect API key provided"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("the batch API of `primary` failed").count(), 1, "{}", ran.stderr);
    assert_eq!(server.received().len(), 1);
}
