//! The cost limit of every command that calls a model.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::config::{of, of_text};
use super::exits::commands;
use super::{Ran, example, formwork, temporary};

const MARIA: &str = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#;

/// A price of one dollar per million tokens.
const PRICE: &str = "price = { input = 1.0, output = 1.0 }\n";

fn config(name: &str, server: &Server, before: &str, price: &str) -> String {
    temporary(
        &format!("money-{name}-{}.toml", server.address().port()),
        format!("{before}{}{price}", of(server)),
    )
}

fn ran_with(command: &[String], config: &str, more: &[&str]) -> Ran {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    formwork(&[&command[..], &["--config", config, "--timeout", "5"], more].concat(), "Maria, 34")
}

/// Every command that calls a model, including those with a fallback and those that measure.
fn all_commands() -> Vec<Vec<String>> {
    let wallet = json!({"summary": {"transactions": 3, "active_days": 1, "first": "2025-11-01", "last": "2025-11-01"}, "as_of": "2026-01-01"});
    let wallet = temporary("money-wallet.json", wallet.to_string());
    let skills = example("skills");
    let of = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect();
    let more = [
        of(&["oracle", "score", &wallet]),
        of(&["skill", "report", "ticket", "--dir", &skills, "--runs", "1"]),
    ];
    commands().iter().cloned().chain(more).collect()
}

#[test]
fn a_limit_without_a_price_is_an_error_before_any_call() {
    for command in all_commands() {
        let server = Server::start([of_text("{}")]).unwrap();
        let plain = config("plain", &server, "", "");
        let limited = config("limited", &server, "[defaults]\nmax_cost_usd = 0.05\n", "");
        for (config, more) in [(&plain, &["--max-cost", "0.05"][..]), (&limited, &[])] {
            let ran = ran_with(&command, config, more);
            assert_eq!((ran.code, server.received().len()), (2, 0), "{command:?}: {}", ran.stderr);
            for says in ["the price of `m`", "`primary`", "price = { input = 0.15, output = 0.6 }"] {
                assert!(ran.stderr.contains(says), "{command:?}: {}", ran.stderr);
            }
        }
    }
}

#[test]
fn a_call_that_may_cost_more_than_is_left_is_not_made_and_both_numbers_are_reported() {
    for command in commands() {
        let server = Server::start([of_text("{}")]).unwrap();
        let priced = config("priced", &server, "", PRICE);
        let limited = config("priced-limited", &server, "[defaults]\nmax_cost_usd = 0.000001\n", PRICE);
        for (config, more) in [(&priced, &["--max-cost", "0.000001"][..]), (&limited, &[])] {
            let ran = ran_with(command, config, more);
            assert_eq!((ran.code, server.received().len()), (1, 0), "{command:?}: {}", ran.stderr);
            let printed = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                printed.contains("the budget does not allow another call: it needs at least $0.0"),
                "{printed}"
            );
            assert!(printed.contains("$0.000001 is left"), "{printed}");
        }
    }
}

#[test]
fn all_rows_of_a_run_share_one_limit() {
    let message = json!({"role": "assistant", "content": MARIA});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 1000});
    let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
    let rows: String = (0..20).map(|n| format!("{}\n", json!({"id": n, "input": "Maria, 34"}))).collect();
    let person = example("person.schema.json");
    for (limit, concurrency) in [(8_000, "1"), (8_000, "4"), (12_000, "20")] {
        let server = Server::start([Reply::json(body.to_string())]).unwrap();
        let config = config(&format!("rows-{limit}-{concurrency}"), &server, "", PRICE);
        let dollars = format!("{}", f64::from(limit) / 1e6);
        let args = ["extract", "--jsonl", "-s", &person, "--config", &config, "--max-tokens", "1000"];
        let more = ["--max-cost", &dollars, "--concurrency", concurrency];
        let ran = formwork(&[&args[..], &more].concat(), &rows);
        let (good, bad): (Vec<Value>, Vec<Value>) = ran.rows().into_iter().partition(|row| row["ok"] == true);
        assert_eq!((ran.code, good.len() + bad.len()), (1, 20), "{}", ran.stderr);
        assert_eq!(good.len(), server.received().len());
        assert!(!good.is_empty() && good.len() * 1009 <= limit as usize, "{limit}: {}", good.len());
        assert!(bad.iter().all(|row| row["error"]["class"] == "budget"), "{bad:?}");
    }
}

#[test]
fn the_command_then_the_provider_then_the_defaults_set_the_retries_of_a_failed_call() {
    for (defaults, provider, flags, calls) in [
        ("retry_delays = [0]", "", &[][..], 4),
        ("retries = 0", "", &[], 1),
        ("retries = 0", "retries = 2\nretry_delays = [0]", &[], 3),
        ("retry_delays = [0]", "retries = 2", &[], 3),
        ("", "", &["--retries", "0"], 1),
        ("retries = 5", "retries = 5", &["--retries", "1", "--retry-delays", "0"], 2),
        ("retries = 5\nretry_delays = [60]", "", &["--retry-delays", "0.01,0"], 6),
    ] {
        let server = Server::start([Reply::status(429)]).unwrap();
        let settings = (format!("[defaults]\n{defaults}\n"), format!("{provider}\n"));
        let config = config(&format!("retries-{calls}"), &server, &settings.0, &settings.1);
        let args = ["extract", "-s", "name, age: int", "--config", &config, "--max-attempts", "1"];
        let started = std::time::Instant::now();
        let ran = formwork(&[&args[..], flags].concat(), "Maria, 34");
        assert_eq!(
            (ran.code, server.received().len()),
            (3, calls),
            "{defaults}, {provider}, {flags:?}: {}",
            ran.stderr
        );
        assert!(started.elapsed().as_secs() < 10, "{defaults}, {provider}, {flags:?}");
    }
}

#[test]
fn rows_that_are_worked_on_at_once_all_succeed_under_a_budget_of_45_times_their_cost() {
    let server = Server::start([of_text(MARIA)]).unwrap();
    let rows: String = (0..40).map(|n| format!("{}\n", json!({"id": n, "input": "Maria, 34"}))).collect();
    // A row costs 14 millionths of a dollar; a reservation costs more than all rows.
    for limit in [45 * 40 * 14, 40 * 14 + 5_000] {
        let config = config(&format!("wait-{limit}"), &server, "", PRICE);
        let dollars = format!("{}", f64::from(limit) / 1e6);
        let person = example("person.schema.json");
        let args = ["extract", "--jsonl", "-s", &person, "--config", &config, "--concurrency", "8"];
        let ran = formwork(&[&args[..], &["--max-cost", &dollars]].concat(), &rows);
        let good = ran.rows().into_iter().filter(|row| row["ok"] == true).count();
        assert_eq!((ran.code, good), (0, 40), "{limit}: {}", ran.stderr);
    }
}

#[test]
fn a_limit_that_is_none_is_refused_with_its_range() {
    let server = Server::start([of_text("{}")]).unwrap();
    for limit in ["-1", "1000001", "NaN", "cheap"] {
        let command = ["extract".to_owned(), "-s".to_owned(), "name, age: int".to_owned()];
        let ran = ran_with(&command, &config("none", &server, "", PRICE), &[&format!("--max-cost={limit}")]);
        assert_eq!(
            (ran.code, ran.stderr.contains("from 0 to 1000000")),
            (2, true),
            "{limit}: {}",
            ran.stderr
        );
        if limit != "cheap" {
            let limit = limit.to_lowercase();
            let file = config("none-file", &server, &format!("[defaults]\nmax_cost_usd = {limit}\n"), PRICE);
            let ran = ran_with(&command, &file, &[]);
            assert_eq!(
                (ran.code, ran.stderr.contains("from 0 to 1000000")),
                (2, true),
                "{limit}: {}",
                ran.stderr
            );
        }
    }
}
