//! `formwork oracle serve` and `report`: a score requested over a socket is in the ledger's report.

use std::process::Command;

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::serve::{Serving, send};
use super::{command, folder, formwork, refused, temporary};

const WALLET: &str = r#"{"as_of": "2026-11-01", "summary": {"transactions": 40, "failed": 2, "first": "2025-11-01",
    "last": "2026-10-22", "active_days": 20, "counterparties": 9}, "expected": {"min": 500, "max": 700}}"#;

const KEY: &str = "correct-horse-battery";

/// A simulated server of Ollama's generate API: first a score that contradicts its breakdown, then valid ones.
fn ollama() -> Server {
    let reply = |score: u32| {
        let breakdown =
            json!({"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40});
        let answer = json!({
            "score": score, "scoreBreakdown": breakdown, "reasoning": "Two years of steady use.",
            "risk_factors": [], "strengths": ["age"],
        });
        let body = json!({
            "model": "m", "response": answer.to_string(), "done": true, "done_reason": "stop",
            "prompt_eval_count": 700, "eval_count": 120,
        });
        Reply::json(body.to_string())
    };
    Server::start([reply(900), reply(610), reply(612)]).unwrap()
}

fn start(config: &str, ledger: &str) -> Serving {
    let args = ["oracle", "serve", "--listen", "127.0.0.1:0", "--config", config, "--ledger", ledger];
    let mut command =
        command(&[&args[..], &["--api-key-env", "ORACLE_TEST_KEY", "--max-body", "2000"]].concat());
    Serving::of(command.env("ORACLE_TEST_KEY", KEY))
}

fn score(serving: &Serving, key: &str, body: &str) -> (u16, Value) {
    let request = format!(
        "POST /v1/score HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n\
         authorization: Bearer {key}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, body) = send(&serving.address, &request).unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

fn config(server: &Server) -> String {
    let text = format!(
        "[providers.primary]\nkind = \"ollama\"\nmodel = \"m\"\nstream = false\nbase_url = \"{}\"\n",
        server.url()
    );
    temporary(&format!("oracle-serve-{}.toml", server.address().port()), text)
}

#[test]
fn scores_requested_over_http_are_in_the_report() {
    let server = ollama();
    let ledger = folder().join("serve.jsonl").display().to_string();
    let mut serving = start(&config(&server), &ledger);
    let (status, scored) = score(&serving, KEY, WALLET);
    assert_eq!(
        (status, &scored["score"], &scored["source"], &scored["attempts"]),
        (200, &json!(610), &json!("ai"), &json!(2))
    );
    assert_eq!(score(&serving, KEY, WALLET).0, 200);
    assert_eq!(score(&serving, "wrong-horse-battery", WALLET).0, 401);
    assert_eq!(score(&serving, KEY, &" ".repeat(2_001)).0, 413);
    assert_eq!(score(&serving, KEY, "{").0, 400);
    let request =
        format!("GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-api-key: {KEY}\r\n\r\n");
    let (status, page) = send(&serving.address, &request).unwrap();
    assert_eq!(status, 200);
    assert!(page.contains("formwork_oracle_cross_checks_total{result=\"failed\"} 1\n"), "{page}");
    #[cfg(unix)]
    {
        let id = serving.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(serving.child.wait().unwrap().code(), Some(0), "ended in order");
    }
    drop(serving);

    let mut lines = std::fs::read_to_string(&ledger).unwrap();
    assert_eq!(lines.lines().count(), 2);
    lines.push_str("{\"request_id\": \"torn\n");
    std::fs::write(&ledger, lines).unwrap();
    let page = folder().join("report.html").display().to_string();
    assert_eq!(formwork(&["oracle", "report", &ledger], "").code, 1, "a missed target");
    let ran = formwork(&["oracle", "report", &ledger, "--allow-missed", "--html", &page], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("schema compliance without retries      > 95 %     50.0 %        2  missed\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("rejected: invalid at $.score, 1 times\n"), "{}", ran.stdout);
    let of_model = ran.stdout.lines().find(|line| line.starts_with("  the model")).unwrap();
    assert_eq!(of_model.split_whitespace().nth(2), Some("2"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  counting, the fallback"), "{}", ran.stdout);
    assert!(ran.stderr.contains("serve.jsonl: line 3 is skipped: "), "{}", ran.stderr);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>Scores in serve.jsonl</title>") && page.matches("<svg").count() == 4);
    let ran = formwork(&["oracle", "report", "-", "--json"], std::fs::read(&ledger).unwrap());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["scores"], &report["attempts"]), (&json!(2), &json!({"1": 1, "2": 1})));
}

#[test]
fn an_empty_ledger_meets_nothing() {
    let ran = formwork(&["oracle", "report", "-"], "");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("there are no scores, so nothing was measured"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("met"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_served_is_said_before_anything_is_loaded() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&formwork(&["oracle", "serve", "--listen", &address], ""), 2, "cannot listen at 127.0.0.1:");
    let ran = formwork(&["oracle", "serve", "--api-key-env", "FORMWORK_NO_SUCH_KEY"], "");
    refused(&ran, 2, "FORMWORK_NO_SUCH_KEY is not set");
    let mut short = command(&["oracle", "serve", "--api-key-env", "ORACLE_TEST_KEY"]);
    short.env("ORACLE_TEST_KEY", "short");
    let ran = super::run(short, "");
    refused(&ran, 2, "ORACLE_TEST_KEY holds no key");
    assert!(!ran.stderr.contains("short:"), "{}", ran.stderr);
    refused(&formwork(&["oracle", "report", "no/such.jsonl"], ""), 2, "no/such.jsonl");
}
