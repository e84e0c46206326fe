//! `formwork batch run --mode provider-batch`: rows in files for the batch API of a provider.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::batch::{MARIA, batch, config, lines, out, rows};
use super::{example, temporary};

/// A simulated server of OpenAI's Batch API: each batch is done at once, with these completions for its rows in each round.
fn batches(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut file, mut round) = (String::new(), 0);
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {
                let line = head.lines().last().unwrap_or_default().to_lowercase();
                length =
                    line.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let reply = match head.split(' ').nth(1).unwrap() {
                "/v1/files" => {
                    file = body.split("\r\n\r\n").nth(2).unwrap().split("\r\n--").next().unwrap().to_owned();
                    r#"{"id": "file-1"}"#.to_owned()
                }
                "/v1/batches" => {
                    round += 1;
                    r#"{"id": "batch-1"}"#.to_owned()
                }
                "/v1/batches/batch-1" => r#"{"status": "completed", "output_file_id": "out-1"}"#.to_owned(),
                "/v1/files/out-1/content" => {
                    let answered = file.lines().map(|line| {
                        let line: Value = serde_json::from_str(line).unwrap();
                        let choice = json!({"message": {"role": "assistant", "content": answers[round - 1]}, "finish_reason": "stop"});
                        let usage = json!({"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000});
                        let body = json!({"choices": [choice], "usage": usage});
                        format!("{}\n", json!({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}}))
                    });
                    answered.collect()
                }
                path => panic!("{path}"),
            };
            let reply = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{reply}",
                reply.len()
            );
            stream.get_mut().write_all(reply.as_bytes()).unwrap();
        }
    });
    url
}

fn openai(name: &str, url: &str) -> String {
    let price = "price = { input = 1.0, output = 1.0 }";
    let text = format!(
        "[providers.primary]\nkind = \"openai\"\nmodel = \"gpt-4o-mini\"\nbase_url = \"{url}/v1\"\napi_key_env = \"\"\n{price}\n"
    );
    temporary(name, text)
}

#[test]
fn a_batch_api_answers_in_rounds_at_half_the_price_and_the_mode_is_kept() {
    let url = batches(&[r#"{"name": "Maria", "age": "no", "city": "Lisbon"}"#, r#"{"age": 34}"#, MARIA]);
    let (rows, out, config) =
        (rows("batch-provider.jsonl", 3), out("provider"), openai("batch-provider.toml", &url));
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
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let numbers = &ran.rows()[0];
    // Four calls of 2,000 tokens, at half of 1 US dollar for a million.
    assert_eq!(
        (&numbers["accepted"], &numbers["calls"], &numbers["cost_usd"]),
        (&json!(2), &json!(4), &json!(0.004))
    );
    let ran = batch(&["resume", &out, "--json"]);
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
