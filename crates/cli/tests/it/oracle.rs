use formwork_testkit::server::{Received, Reply, Server};
use serde_json::{Value, json};

use super::{Ran, against_schema, formwork, refused, temporary};

/// A simulated server of Ollama's generate API with these completions.
pub(super) fn ollama(answers: impl IntoIterator<Item = String>) -> Server {
    Server::start(answers.into_iter().map(|text| generated(&text)).collect::<Vec<_>>()).unwrap()
}

pub(super) fn generated(text: &str) -> Reply {
    let body = json!({
        "model": "m", "response": text, "done": true, "done_reason": "stop",
        "prompt_eval_count": 700, "eval_count": 120,
    });
    Reply::json(body.to_string())
}

/// The response of a server without support for schemas: Ollama before 0.5.
fn too_old() -> Reply {
    let words = "json: cannot unmarshal object into Go struct field GenerateRequest.format of type string";
    Reply::json(json!({ "error": words }).to_string()).with_status(400)
}

pub(super) fn config(name: &str, server: &Server) -> String {
    let text = format!(
        "[providers.primary]\nkind = \"ollama\"\nmodel = \"m\"\nstream = false\nbase_url = \"{}\"\n",
        server.url()
    );
    temporary(name, text)
}

pub(super) fn wallet(name: &str, transactions: u64) -> String {
    let wallet = json!({
        "address": "0xabc", "as_of": "2026-11-01",
        "summary": {
            "transactions": transactions, "failed": 2, "first": "2025-11-01", "last": "2026-10-22", "active_days": 20,
            "counterparties": 9
        },
        "survey": {"experience": "regular"},
        "expected": {"min": 400, "max": 620}
    });
    temporary(name, wallet.to_string())
}

/// A completion whose breakdown sums up to 607.5.
pub(super) fn answer(score: u32) -> String {
    let breakdown =
        json!({"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40});
    json!({
        "score": score, "scoreBreakdown": breakdown, "reasoning": "Two years of steady use.",
        "risk_factors": ["one mixer"], "strengths": ["age"],
    })
    .to_string()
}

fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(|Received { body, .. }| serde_json::from_slice(body).unwrap()).collect()
}

fn temperatures(server: &Server) -> Vec<Value> {
    bodies(server).iter().map(|body| body["options"]["temperature"].clone()).collect()
}

pub(super) fn printed(ran: &Ran) -> Value {
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Standard error without the line about the worth of the score.
fn other_lines(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| !line.contains("; counting gives ")).collect()
}

#[test]
fn prose_three_times_is_the_fallback_with_the_same_fields() {
    let server = ollama(["I would say 640.".to_owned()]);
    let config = config("prose.toml", &server);
    let ran = formwork(&["oracle", "score", "--config", &config, &wallet("prose.json", 40)], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(temperatures(&server), [0.3, 0.2, 0.1]);
    let fallback = printed(&ran);
    assert_eq!((&fallback["source"], &fallback["attempts"]), (&json!("fallback"), &json!(3)));
    assert_eq!(against_schema("ai-score.v1.json", &fallback), [""; 0]);
    assert_eq!(against_schema("score.json", &fallback), [""; 0]);
    let part = |name: &str| fallback["scoreBreakdown"][name].as_f64().unwrap();
    let sum = 2.0 * (part("activity") + part("maturity") + part("diversity"))
        + 2.5 * part("riskBehavior")
        + 1.5 * part("surveyMatch");
    assert!((fallback["score"].as_f64().unwrap() - sum).abs() <= 20.0, "{fallback}");

    let good = ollama([answer(610)]);
    let ran = formwork(
        &["oracle", "score", "--config", &self::config("good.toml", &good), &wallet("good.json", 40)],
        "",
    );
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&printed(&ran)), keys(&fallback));
    assert_eq!((printed(&ran)["source"].as_str(), other_lines(&ran)), (Some("ai"), vec![]));
}

#[test]
fn a_score_out_of_range_is_requested_again_and_never_clamped() {
    let right = answer(640).replace("\"surveyMatch\":40", "\"surveyMatch\":60");
    let server = ollama([answer(1001), right]);
    let config = config("clamp.toml", &server);
    let ran = formwork(&["oracle", "score", "--config", &config, &wallet("clamp.json", 40)], "");
    assert_eq!((ran.code, &printed(&ran)["score"]), (0, &json!(640)), "{}", ran.stderr);
    assert_eq!(server.received().len(), 2);
    let line = ran.stderr.lines().find(|line| line.contains("rejected")).unwrap();
    for word in ["attempt 1/3", "at 0.3", "$.score: maximum: expected at most 1000", "request_id="] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn a_server_that_is_too_old_gets_a_request_for_json_and_loses_no_attempt() {
    let mut replies = vec![too_old()];
    replies.extend([answer(900), answer(900), answer(610)].iter().map(|text| generated(text)));
    let server = Server::start(replies).unwrap();
    let config = config("old.toml", &server);
    let ran = formwork(&["oracle", "score", "--config", &config, &wallet("old.json", 40)], "");
    assert_eq!((ran.code, &printed(&ran)["attempts"]), (0, &json!(3)), "{}", ran.stderr);
    let bodies = bodies(&server);
    assert!(bodies[0]["format"].is_object());
    assert!(bodies[1..].iter().all(|body| body["format"] == "json"), "{bodies:?}");
    assert_eq!(temperatures(&server), [0.3, 0.3, 0.2, 0.1]);
    assert!(bodies[1]["system"].as_str().unwrap().contains("\"maxLength\": 500"), "{}", bodies[1]["system"]);
    assert_eq!(ran.stderr.matches("refused the schema").count(), 1, "{}", ran.stderr);
    assert_eq!(other_lines(&ran).len(), 3, "one warning, and two answers that were rejected: {}", ran.stderr);
}

#[test]
fn the_schema_goes_over_the_generate_api() {
    let server = ollama([answer(610)]);
    let config = config("body.toml", &server);
    let ran = formwork(&["oracle", "score", "--config", &config, &wallet("body.json", 40)], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let received = server.received();
    assert_eq!((received.len(), received[0].path.as_str()), (1, "/api/generate"));
    let body = &bodies(&server)[0];
    let format = &body["format"];
    let mut required: Vec<_> =
        format["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    required.sort_unstable();
    assert_eq!(required, ["reasoning", "risk_factors", "score", "scoreBreakdown", "strengths"]);
    let properties = &format["properties"];
    let breakdown = &properties["scoreBreakdown"];
    assert_eq!(breakdown["required"].as_array().unwrap().len(), 5);
    let bounds = |schema: &Value| (schema["minimum"].as_u64(), schema["maximum"].as_u64());
    assert_eq!(bounds(&properties["score"]), (Some(0), Some(1000)));
    for name in ["activity", "maturity", "diversity", "riskBehavior", "surveyMatch"] {
        assert_eq!(bounds(&breakdown["properties"][name]), (Some(0), Some(100)), "{name}");
    }
    assert_eq!(properties["reasoning"]["minLength"], 10);
    assert_eq!(properties["reasoning"]["maxLength"], 500, "{properties}");
    let prompt = body["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("Score this wallet.\n") && prompt.contains("transactions: 40"), "{prompt}");
    assert!(!prompt.contains("0xabc"), "{prompt}");
}

#[test]
fn the_score_of_a_tiny_model_is_requested_in_the_range_of_its_breakdown() {
    let score: Value = serde_json::from_str(&answer(610)).unwrap();
    // Ollama sorts the members by their names.
    let breakdown = json!({"a_scoreBreakdown": score["scoreBreakdown"]});
    let server = ollama([breakdown.to_string(), answer(610)]);
    let text = std::fs::read_to_string(config("tiny.toml", &server)).unwrap();
    let config = temporary("tiny.toml", text.replace("\"m\"", "\"smollm2:135m\""));
    let ran = formwork(&["oracle", "score", "--json", "--config", &config, &wallet("tiny.json", 40)], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let history = printed(&ran);
    assert_eq!((&history["source"], &history["usage"]["output_tokens"]), (&json!("ai"), &json!(240)));
    let verdicts: Vec<_> =
        history["calls"].as_array().unwrap().iter().map(|call| &call["verdict"]["result"]).collect();
    assert_eq!(verdicts, ["probe", "accepted"]);
    assert_eq!(temperatures(&server), [0.3, 0.3]);
    let bodies = bodies(&server);
    assert_eq!(bodies[0]["format"]["required"], json!(["a_scoreBreakdown"]));
    assert_eq!(bodies[0]["prompt"], bodies[1]["prompt"], "the server reads the prompt once");
    let properties = &bodies[1]["format"]["properties"];
    assert_eq!(properties["a_scoreBreakdown"], json!({"const": score["scoreBreakdown"]}));
    assert_eq!(properties["b_score"], json!({"type": "integer", "minimum": 588, "maximum": 627}));
}

#[test]
fn a_tiny_model_with_a_price_or_without_the_setting_is_asked_once() {
    for setting in ["price = { input = 1.0, output = 1.0 }\n", "tighten = \"closed\"\n"] {
        let server = ollama([answer(610)]);
        let text = std::fs::read_to_string(config("tiny-priced.toml", &server)).unwrap() + setting;
        let config = temporary("tiny-priced.toml", text.replace("\"m\"", "\"smollm2:135m\""));
        let ran = formwork(&["oracle", "score", "--config", &config, &wallet("tiny-priced.json", 40)], "");
        assert_eq!((ran.code, server.received().len()), (0, 1), "{setting}: {}", ran.stderr);
    }
}

#[test]
fn the_seed_is_the_wallets_and_the_attempts() {
    let seeds = |name: &str, wallet: &str, more: &[&str]| {
        let server = ollama([answer(900), answer(610)]);
        let config = config(name, &server);
        let ran = formwork(&[&["oracle", "score", "--config", &config, wallet], more].concat(), "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        bodies(&server).iter().map(|body| body["options"]["seed"].clone()).collect::<Vec<_>>()
    };
    let one = wallet("seed.json", 40);
    let first = seeds("seed1.toml", &one, &[]);
    assert_ne!(first[0], first[1]);
    assert_eq!(first, seeds("seed2.toml", &one, &[]));
    assert_ne!(first, seeds("seed3.toml", &one, &["--prompt", "v2"]));
    assert_ne!(first, seeds("seed4.toml", &wallet("seed-other.json", 41), &[]));
}

#[test]
fn the_history_of_a_score_is_one_object() {
    let server = ollama(["prose".to_owned(), answer(610)]);
    let config = config("history.toml", &server);
    let ran = formwork(&["oracle", "score", "--json", "--config", &config, &wallet("history.json", 40)], "");
    let event = printed(&ran);
    assert_eq!((ran.code, against_schema("score-event.json", &event)), (0, vec![]), "{event}");
    assert_eq!(event["calls"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&event["wallet"], &event["source"], &event["model"]),
        (&json!("0xabc"), &json!("ai"), &json!("m"))
    );
    assert_eq!(event["usage"]["output_tokens"], 240);
    assert_eq!(event["prompt"]["name"], "v1");
}

#[test]
fn a_batch_answers_every_wallet_in_order() {
    let server = ollama([answer(610)]);
    let config = config("batch.toml", &server);
    let one: Value = serde_json::from_slice(&std::fs::read(wallet("batch.json", 40)).unwrap()).unwrap();
    let rows = format!("{one}\n\n{{\"summary\": {{\"transactions\": -5}}}}\n{one}\n");
    let ledger = super::folder().join("batch.ledger.jsonl").display().to_string();
    let ran = formwork(
        &["oracle", "batch", "--config", &config, "--concurrency", "3", "--ledger", &ledger, "-"],
        rows,
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let kept = std::fs::read_to_string(&ledger).unwrap();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kept.len(), 2, "a wallet that cannot be read was not scored");
    assert_eq!(against_schema("score-event.json", &kept[0]), [""; 0]);
    let rows = ran.rows();
    let results: Vec<_> = rows.iter().map(|row| (row["id"].as_str().unwrap(), row["ok"] == true)).collect();
    let expected = [("standard input:1", true), ("standard input:3", false), ("standard input:4", true)];
    assert_eq!(results, expected);
    for row in &rows {
        assert_eq!(against_schema("oracle-output.json", row), [""; 0], "{row}");
    }
    let message = rows[1]["error"]["message"].as_str().unwrap();
    assert!(message.contains("$.summary.transactions: -5 is negative"), "{message}");
    assert_eq!(rows[0]["score"]["score"], 610);
}

#[test]
fn two_versions_are_compared_on_the_same_wallets() {
    let folder = super::folder().join("compared");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["b.json", "a.json"] {
        std::fs::copy(wallet("compared.json", 40), folder.join(name)).unwrap();
    }
    let folder = folder.display().to_string();
    let answers = || [answer(610), answer(620), answer(610), answer(900), answer(625)];
    let mine = temporary("mine.md", "Score the wallet: {formula}");
    let run = |name: &str, more: &[&str]| {
        let server = ollama(answers());
        let config = config(name, &server);
        formwork(&[&["oracle", "compare", "--config", &config, "v1", &mine, &folder], more].concat(), "")
    };
    let ran = run("compare1.toml", &["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let compared = printed(&ran);
    assert_eq!(against_schema("oracle-compare-output.json", &compared), [""; 0]);
    let ids: Vec<_> =
        compared["wallets"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert!(ids[0].ends_with("a.json") && ids[1].ends_with("b.json"), "{ids:?}");
    assert_eq!(compared["wallets"][1]["second"], json!({"score": 625, "source": "ai"}));
    assert_eq!((&compared["first"]["compliant"], &compared["second"]["compliant"]), (&json!(2), &json!(1)));
    assert_eq!((&compared["first"]["in_band"], &compared["second"]["in_band"]), (&json!(2), &json!(1)));
    assert_eq!(compared["mean_difference"], 12.5);
    assert_ne!(compared["first"]["prompt"]["hash"], compared["second"]["prompt"]["hash"]);

    let ran = run("compare2.toml", &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("wallet") && lines[0].contains("v1 ") && lines[0].contains("mine "),
        "{}",
        lines[0]
    );
    assert!(lines[1].ends_with("+10") && lines[2].ends_with("+15"), "{}", ran.stdout);
    assert!(
        lines.iter().any(|line| line.starts_with("valid at first try")
            && line.contains("2/2")
            && line.contains("1/2"))
    );
}

#[test]
fn what_cannot_be_used_is_reported_before_any_model_is_called() {
    let server = ollama([answer(610)]);
    let config = config("unused.toml", &server);
    let good = wallet("unused.json", 40);
    let score = |more: &[&str]| formwork(&[&["oracle", "score", "--config", &config], more].concat(), "");
    let bad = temporary("bad.json", "{\"summary\": {\"transactions\": \"many\"}}");
    refused(&score(&[&bad]), 2, "$.summary.transactions");
    refused(&score(&["no-such.json"]), 2, "no-such.json");
    refused(
        &score(&[&good, "--prompt", "v9"]),
        2,
        "there is no prompt `v9`: name a file, or one of v1, v2, v3",
    );
    let examples = temporary(
        "few.json",
        format!("[\n{{\"wallet\": {{\"transactions\": []}}, \"answer\": {}}}]", answer(900)),
    );
    refused(
        &score(&[&good, "--examples", &examples]),
        2,
        "$[0].answer.score: weightedSum: expected from 587.5",
    );
    let same = temporary("same.md", include_str!("../../../apps/oracle/prompts/v1.md"));
    let ran = formwork(&["oracle", "compare", "--config", &config, "v1", &same, &good], "");
    refused(&ran, 2, "there is nothing to compare");
    assert!(server.received().is_empty());
    let prose = ollama(["prose".to_owned()]);
    let strict = self::config("strict.toml", &prose);
    let ran = formwork(&["oracle", "score", "--config", &strict, "--no-fallback", &good], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.lines().last().unwrap().contains("not_json") || ran.stderr.contains("no valid answer")
    );
}

/// `cargo xtask schema --ajv` checks that Ajv has the same verdicts on the same documents.
#[test]
fn twenty_documents_are_judged_as_they_should_be() {
    let documents: Vec<Value> =
        serde_json::from_str(include_str!("../../../apps/oracle/tests/documents.json")).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/ai-score.v1.json")).unwrap();
    let rows: Vec<String> = documents
        .iter()
        .map(|row| json!({"id": row["why"], "schema": schema, "data": row["document"]}).to_string())
        .collect();
    let ran = formwork(&["check", "--jsonl", "--allow-failures", "-"], rows.join("\n"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let verdicts: Vec<_> = ran.rows().iter().map(|row| (row["id"].clone(), row["valid"].clone())).collect();
    let right: Vec<_> = documents.iter().map(|row| (row["why"].clone(), row["valid"].clone())).collect();
    assert_eq!((verdicts.len(), verdicts), (20, right));
}

#[test]
fn the_literal_formula_is_a_setting() {
    let server = ollama([answer(605), answer(60)]);
    let config = config("literal.toml", &server);
    let ran = formwork(
        &["oracle", "score", "--config", &config, "--formula", "literal", &wallet("literal.json", 40)],
        "",
    );
    assert_eq!((ran.code, &printed(&ran)["score"]), (0, &json!(60)), "{}", ran.stderr);
    assert_eq!(temperatures(&server), [0.3, 0.2]);
}

/// An in-process model with random weights.
#[cfg(feature = "local")]
mod in_process {
    use std::sync::LazyLock;

    use candle_core::quantized::gguf_file;
    use serde_json::Value;

    use super::{formwork, printed, wallet};
    use crate::tiny::Tiny;

    /// The model's tokens are bytes, so the instructions need a longer context than in other tests.
    static TINY: LazyLock<String> = LazyLock::new(|| {
        let folder = super::super::folder().join("tiny-oracle");
        std::fs::create_dir_all(&folder).unwrap();
        let tiny = Tiny::new("llama").with("llama.context_length", gguf_file::Value::U32(8192));
        tiny.write(&folder).display().to_string()
    });

    #[test]
    fn the_same_wallet_twice_is_the_same_bytes_and_the_sum_is_right_at_first_try() {
        let score = |transactions: u64| {
            let wallet = wallet(&format!("same-{transactions}.json"), transactions);
            let ran = formwork(&["oracle", "score", "--model", &TINY, "--max-tokens", "900", &wallet], "");
            assert_eq!((ran.code, super::other_lines(&ran)), (0, vec![]), "{}", ran.stderr);
            let scored = printed(&ran);
            assert_eq!(
                (scored["source"].as_str(), scored["attempts"].as_u64()),
                (Some("ai"), Some(1)),
                "{scored}"
            );
            let part = |name: &str| scored["scoreBreakdown"][name].as_f64().unwrap();
            let sum = 2.0 * (part("activity") + part("maturity") + part("diversity"))
                + 2.5 * part("riskBehavior")
                + 1.5 * part("surveyMatch");
            assert!((scored["score"].as_f64().unwrap() - sum).abs() <= 20.0, "{scored}");
            ran.stdout
        };
        let first = score(40);
        assert_eq!(first, score(40));
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap()["scoreBreakdown"].clone();
        assert_ne!(value(&first), value(&score(41)), "another wallet, another seed");
    }
}

/// Finding B4.
#[test]
fn an_explorers_export_is_imported_and_scored_in_every_way() {
    let csv = "\"Transaction Hash\",\"UnixTimestamp\",\"From\",\"To\",\"Value_IN(ETH)\",\"Value_OUT(ETH)\",\"Mood\",\"Method\"\n\
               \"0x1\",\"1704067200\",\"0xaa\",\"0xbb\",\"0\",\"2\",\"good\",\"Swap\"\n\
               \"0x2\",\"1704067300\",\"0xcc\",\"0xaa\",\"1\",\"0\",\"bad\",\"Transfer\"\n";
    let txlist = json!({"status": "1", "message": "OK", "result": [
        {"timeStamp": "1704067200", "from": "0xaa", "to": "0xbb", "value": "2000000000000000000", "functionName": "swap()"},
        {"timeStamp": "1704067300", "from": "0xcc", "to": "0xaa", "value": "1000000000000000000", "functionName": ""},
    ]})
    .to_string();
    let folder = super::folder().join("exports");
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (csv_file, json_file) = (at("a.csv", csv), at("b.json", &txlist));
    let mut wallets = Vec::new();
    for (file, stdin) in [(&*csv_file, ""), (&*json_file, ""), ("-", csv), ("-", &*txlist)] {
        let ran = formwork(&["oracle", "import", file, "--usd-per-coin", "100"], stdin);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let is_csv = file.ends_with("csv") || stdin == csv;
        assert_eq!(ran.stderr.contains("columns that are not used: \"Mood\""), is_csv, "{}", ran.stderr);
        let wallet: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&wallet["address"], &wallet["summary"]["volume_usd"]), (&json!("0xaa"), &json!(300)));
        assert_eq!(against_schema("wallet.json", &wallet), [""; 0]);
        wallets.push(wallet);
    }
    wallets.dedup();
    assert_eq!(wallets.len(), 1);
    // Transactions whose method is unknown are counted.
    let unknown = txlist.replace("swap()", "0x12345678()");
    let ran = formwork(&["oracle", "import", "-", "--usd-per-coin", "100"], &unknown);
    let note = "the methods of 1 of 2 transactions are unknown, so they count as `contract`";
    assert!(ran.code == 0 && ran.stderr.contains(note), "{}", ran.stderr);
    let imported = at("c.json", &wallets[0].to_string());

    let server = ollama([answer(610)]);
    let config = config("exports.toml", &server);
    for (file, note) in
        [(&csv_file, "counts as 0 dollars"), (&json_file, "counts as 0 dollars"), (&imported, "")]
    {
        let ran = formwork(&["oracle", "score", "--config", &config, file], "");
        assert_eq!((ran.code, &printed(&ran)["score"]), (0, &json!(610)), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(note) && (!note.is_empty() || other_lines(&ran).is_empty()),
            "{}",
            ran.stderr
        );
    }
    let ran = formwork(&["oracle", "batch", "--config", &config, &folder.display().to_string()], "");
    assert_eq!((ran.code, ran.rows().len()), (0, 3), "{}", ran.stderr);
    let import = |more: &[&str]| formwork(&[&["oracle", "import", &json_file], more].concat(), "");
    let ran = import(&["--usd-per-coin=-1"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("a price is a number of US dollars from 0"),
        "{}",
        ran.stderr
    );
    refused(&import(&["--address", "0x a", "--usd-per-coin", "1"]), 2, "no address");
    let bad = at("bad.json", r#"{"status":"0","message":"NOTOK","result":"Invalid API Key"}"#);
    refused(
        &formwork(&["oracle", "import", &bad], ""),
        2,
        "the explorer answered NOTOK: \"Invalid API Key\"",
    );
}

/// A score of the fallback is a run of the fallback, with the reason why no model gave the score.
#[test]
fn a_fallback_is_found_in_the_ledger_of_runs() {
    let ledger = super::folder().join("oracle-fallback.db");
    for ending in ["db", "db-wal", "db-shm"] {
        _ = std::fs::remove_file(ledger.with_extension(ending));
    }
    let ledger = ledger.display().to_string();
    for (name, server) in [("prose", ollama(["prose".to_owned()])), ("good", ollama([answer(610)]))] {
        let config = config(&format!("ledger-{name}.toml"), &server);
        let wallet = wallet(&format!("ledger-{name}.json"), 40);
        let ran = formwork(&["oracle", "batch", &wallet, "--config", &config, "--ledger", &ledger], "");
        let row = ran.rows().remove(0);
        assert_eq!(against_schema("oracle-output.json", &row), [""; 0], "{row}");
        let trust = &row["trust"];
        let history = if name == "prose" { &trust["other"]["fallback"]["count"] } else { &trust["free"] };
        assert!(history.is_u64() && *history == trust["leaves"], "{row}");
    }
    let list = |filter: &[&str]| {
        formwork(&[&["runs", "list", "--json", "--ledger", &ledger], filter].concat(), "").rows()
    };
    assert_eq!(list(&[]).len(), 2);
    let fallback = list(&["--outcome", "fallback"]);
    assert_eq!(fallback.len(), 1, "{fallback:?}");
    assert_eq!(list(&["--unsure"]), fallback);
    let id = fallback[0]["id"].as_str().unwrap();
    let shown = printed(&formwork(&["runs", "show", id, "--json", "--ledger", &ledger], ""));
    assert_eq!(shown["message"], "Not JSON at $", "{shown}");
    assert!(shown["trust"]["other"]["fallback"].is_object(), "{shown}");
}

/// A ledger of runs is another file than the log of scores, and many damaged lines are few lines of warnings.
#[test]
fn a_report_says_what_the_file_is() {
    let database = temporary("oracle-runs.db", "SQLite format 3\0 and more");
    let ran = formwork(&["oracle", "report", &database], "");
    assert!(ran.code == 2 && ran.stderr.contains("is a ledger of runs"), "{}", ran.stderr);
    let lines = temporary("oracle-lines.jsonl", "{}\n".repeat(30));
    let ran = formwork(&["oracle", "report", &lines], "");
    assert!(
        ran.stderr.lines().count() < 10 && ran.stderr.contains("25 further lines are skipped"),
        "{}",
        ran.stderr
    );
}
