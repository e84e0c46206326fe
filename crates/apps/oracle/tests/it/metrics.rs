//! Metrics, and reports on ledgers.

use std::collections::BTreeSet;
use std::time::Duration;

use formwork_core::{Completion, FaultKind};
use formwork_oracle::metrics::Metrics;
use formwork_oracle::report::Report;
use formwork_oracle::wallet::{Band, Wallet};
use formwork_oracle::{CrossCheck, Examples};
use formwork_testkit::Reply;
use serde_json::json;

use crate::support::{Events, answer, builder, model, wallet, with};

fn text(document: &serde_json::Value) -> Reply {
    Reply::text(document.to_string())
}

/// Scene 000 d: 95 are compliant, 4 succeed on the second attempt, 1 is the fallback's.
async fn hundred(metrics: &Metrics, events: &Events) {
    let wrong = || text(&with("/score", 1001));
    let good = || text(&answer(610));
    for run in 0..100 {
        let replies = match run {
            0..95 => vec![good()],
            95..99 => vec![wrong(), good()],
            _ => vec![wrong(), text(&answer(990)), Reply::text("no idea")],
        };
        let oracle = builder(&model(replies)).with_observer(metrics.clone()).with_observer(events.clone());
        let wallet = Wallet { expected: Some(Band { min: 550, max: 650 }), ..wallet() };
        oracle.build().unwrap().score(&wallet).await.unwrap();
    }
}

/// Finding B4: a model that follows the form and judges nothing is reported, whatever targets it meets.
#[tokio::test(start_paused = true)]
async fn a_report_says_that_a_model_is_worse_than_counting_and_copies() {
    let few = r#"[{"wallet": {"transactions": []}, "answer": {"score": 100, "scoreBreakdown": {"activity": 0, "maturity": 0,
        "diversity": 0, "riskBehavior": 40, "surveyMatch": 0}, "reasoning": "A wallet that never did anything at all.",
        "risk_factors": [], "strengths": []}}]"#;
    let examples = Examples::from_json("few.json", few.as_bytes(), &CrossCheck::default()).unwrap();
    let events = Events::default();
    for (middle, transactions) in [(100, 10), (300, 300), (500, 600)] {
        // The same score for all, with the example's reasoning and without risks.
        let mut noise = with("/reasoning", "A wallet that never did anything at all.");
        noise["risk_factors"] = json!([" "]);
        let oracle =
            builder(&model([text(&noise)])).with_examples(examples.clone()).with_observer(events.clone());
        let mut wallet = Wallet { expected: Some(Band { min: middle - 50, max: middle + 50 }), ..wallet() };
        wallet.summary.transactions = transactions;
        let scored = oracle.build().unwrap().score(&wallet).await.unwrap();
        assert_eq!((scored.event.copied, scored.event.counted.is_some()), (Some(1), true));
    }
    let report = Report::of(events.of());
    let expected = report.expected.unwrap();
    assert!(report.targets.iter().all(|target| target.is_met == Some(true)), "the form is perfect");
    assert!(expected.is_model_worse() && expected.model.unwrap().correlation.is_none());
    assert!(expected.fallback.unwrap().correlation.unwrap() > 0.9, "{expected:?}");
    assert_eq!((report.model_scores, report.copied_reasonings, report.blank_entries), (3, 3, 3));
    for text in [report.to_string(), report.html("t")] {
        assert!(text.contains("further off than counting is") && text.contains("3 of 3"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_scores_are_counted_as_the_document_counts_them() {
    let (metrics, events) = (Metrics::new(), Events::default());
    hundred(&metrics, &events).await;
    let rates = metrics.rates();
    assert_eq!(rates.schema_compliance, Some(0.95));
    assert_eq!(rates.retry, Some(0.05));
    assert_eq!(rates.fallback, Some(0.01));
    assert_eq!(rates.validation_failures, 7);
    assert_eq!((rates.cross_checks, rates.cross_check_pass), (100, Some(0.99)));

    let page = metrics.render();
    for line in [
        "formwork_oracle_scores_total{source=\"ai\"} 99",
        "formwork_oracle_scores_total{source=\"fallback\"} 1",
        "formwork_oracle_scores_total{source=\"none\"} 0",
        "formwork_oracle_first_try_compliant_total 95",
        "formwork_oracle_retried_total 5",
        "formwork_oracle_validation_failures_total 7",
        "formwork_oracle_rejections_total{class=\"invalid\",path=\"$.score\"} 6",
        "formwork_oracle_rejections_total{class=\"not_json\",path=\"$\"} 1",
        "formwork_oracle_cross_checks_total{result=\"failed\"} 1",
        "formwork_oracle_schema_compliance_ratio 0.95",
        "formwork_oracle_retry_ratio 0.05",
        "formwork_oracle_fallback_ratio 0.01",
        "formwork_oracle_cross_check_pass_ratio 0.99",
        "formwork_oracle_attempts_bucket{le=\"1.0\"} 95",
        "formwork_oracle_attempts_bucket{le=\"2.0\"} 99",
        "formwork_oracle_attempts_bucket{le=\"+Inf\"} 100",
        "formwork_oracle_duration_seconds_count{source=\"fallback\"} 1",
    ] {
        assert!(page.lines().any(|other| other == line), "{line} is not in\n{page}");
    }
    let calls = "gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name=\"chat\",";
    assert!(page.contains(calls) && page.contains("} 106\n"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_page_is_what_prometheus_reads() {
    let metrics = Metrics::new();
    hundred(&metrics, &Events::default()).await;
    metrics.request("POST", "/v1/score", "200", Duration::from_millis(3));
    let page = metrics.render();
    let mut families = BTreeSet::new();
    let mut series = BTreeSet::new();
    let mut family = String::new();
    // OpenMetrics ends a page with this line, and the name of a family of counters has no `_total`.
    let page = page.strip_suffix("# EOF\n").unwrap();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(families.insert(name.to_owned()), "{name} is there twice");
            family = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| !help.is_empty()), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(&family), "{line} is not of {family}");
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            assert!(series.insert(name.to_owned()), "{name} is there twice");
        }
    }
    assert!(page.ends_with('\n') && families.len() >= 14);
    assert!(series.contains(
        "http_server_request_duration_seconds_bucket{le=\"0.005\",http_request_method=\"POST\",\
         http_route=\"/v1/score\",http_response_status_code=\"200\"}"
    ));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_a_miss_of_every_ratio() {
    let metrics = Metrics::new();
    let oracle =
        builder(&model([Reply::from(FaultKind::Auth)])).with_observer(metrics.clone()).build().unwrap();
    oracle.score(&wallet()).await.unwrap();
    let rates = metrics.rates();
    assert_eq!((rates.fallback, rates.retry, rates.validation_failures), (Some(1.0), Some(1.0), 0));
    assert_eq!(
        (rates.schema_compliance, rates.cross_check_pass),
        (Some(0.0), Some(0.0)),
        "no answer is no compliant one"
    );
    let page = metrics.render();
    assert!(page.contains("formwork_oracle_faults_total{kind=\"not authorised\"} 1"), "{page}");
    assert!(page.contains("formwork_oracle_retried_total 0"), "{page}");
    let page = Metrics::new().render();
    assert!(!page.contains("cross_check_pass_ratio"), "a share of nothing is left out");
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_no_compliance_and_each_refusal_has_its_class() {
    let metrics = Metrics::new();
    for reply in [
        Reply::text(format!("Here it is: {}", answer(610))),
        Reply::refusal("I cannot judge people."),
        Reply::truncated("{\"score\": 6"),
    ] {
        let oracle =
            builder(&model([reply, text(&answer(610))])).with_observer(metrics.clone()).build().unwrap();
        oracle.score(&wallet()).await.unwrap();
    }
    assert_eq!(metrics.rates().schema_compliance, Some(0.0));
    let page = metrics.render();
    assert!(page.contains("formwork_oracle_rejections_total{class=\"truncated\""), "{page}");
    assert!(page.contains("formwork_oracle_rejections_total{class=\"refused\",path=\"$\"} 1"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_report_holds_the_measured_against_the_document() {
    let events = Events::default();
    hundred(&Metrics::new(), &events).await;
    let report = Report::of(events.of());
    let met: Vec<(&str, Option<bool>)> =
        report.targets.iter().map(|target| (target.measured_text.as_str(), target.is_met)).collect();
    assert_eq!(
        met,
        [
            ("95.0 %", Some(false)),
            ("5.0 %", Some(false)),
            ("1.0 %", Some(false)),
            ("99.0 %", Some(true)),
            ("0.00 s", Some(true))
        ]
    );
    let table = report.to_string();
    assert!(
        table.contains("schema compliance without retries      > 95 %     95.0 %      100  missed\n"),
        "{table}"
    );
    assert!(table.contains("attempts: 95 with 1, 4 with 2, 1 with 3\n"), "{table}");
    assert!(table.contains("rejected: invalid at $.score, 6 times\n"), "{table}");
    assert!(
        table.contains("  the model                                99         10       99  -\n"),
        "{table}"
    );
    assert!(
        table.contains("  counting, the fallback                    0        283       99  -\n"),
        "{table}"
    );
    assert!(!table.contains("copied") && !table.contains("further off"), "{table}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rates"]["validation_failures"], 7);
    assert_eq!(json["attempts"], json!({"1": 95, "2": 4, "3": 1}));
}

#[tokio::test(start_paused = true)]
async fn the_page_needs_nothing_and_runs_nothing() {
    let events = Events::default();
    hundred(&Metrics::new(), &events).await;
    let mut events = events.of();
    events[0].model = "<script>alert(1)</script>".to_owned();
    events[1].prompt.name = "\"><img src=x onerror=alert(1)>".to_owned();
    let page = Report::of(events).html("<b>200 wallets</b> & more");
    for mark in ["<script", "<img", "<b>", "http://", "https://", "url(", "@import", "NaN", "inf"] {
        assert!(!page.contains(mark), "{mark} is in the page");
    }
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<circle").count(), 100);
    assert!(page.contains("<title>&lt;b&gt;200 wallets&lt;/b&gt; &amp; more</title>"));
    assert!(page.contains("95.0 %") && page.contains(">missed<"));
    let empty = Report::of([]).html("nothing");
    assert!(!empty.contains("NaN") && empty.contains("There are no scores."));
}

/// Returns the metrics of a report that are not met by `planted` scores among 25 good ones.
async fn missed(planted: impl Fn() -> Vec<Reply>, of: usize, good: usize) -> Vec<String> {
    let events = Events::default();
    for run in 0..of + good {
        let replies = if run < of { planted() } else { vec![text(&answer(610))] };
        let oracle = builder(&model(replies)).with_observer(events.clone()).build().unwrap();
        oracle.score(&wallet()).await.unwrap();
    }
    let report = Report::of(events.of());
    assert_eq!(report.is_missed(), report.targets.iter().any(|target| target.is_met != Some(true)));
    assert!(report.targets.iter().all(|target| target.n > 0), "{report}");
    report.targets.into_iter().filter(|row| row.is_met != Some(true)).map(|row| row.metric).collect()
}

const ROWS: [&str; 5] = [
    "schema compliance without retries",
    "scores with a retry or no answer",
    "scores that no model gave",
    "cross-checks that pass",
    "latency, p95",
];

/// Finding O2: no row is met because a run is left out of it, and every row can be missed.
#[tokio::test(start_paused = true)]
async fn every_row_of_the_report_can_be_missed() {
    let restrained = || {
        let mut completion = Completion::new(answer(610).to_string());
        completion.restrained = true;
        vec![Reply::completion(completion)]
    };
    let [compliance, retry, fallback, check, latency] = ROWS;
    assert_eq!(missed(Vec::new, 0, 40).await, [""; 0]);
    // Answers that were repaired, or ended or capped by the engine, are accepted and do not comply.
    assert_eq!(missed(|| vec![Reply::text(format!("Here: {}", answer(610)))], 2, 30).await, [compliance]);
    assert_eq!(missed(restrained, 2, 30).await, [compliance]);
    assert_eq!(missed(|| vec![Reply::text("{}"), text(&answer(610))], 2, 30).await, [compliance, retry]);
    // One answer in prose on each attempt: the check was never reached.
    assert_eq!(missed(|| vec![Reply::text("prose")], 9, 1).await, ROWS[..4]);
    assert_eq!(missed(|| vec![text(&answer(100)), text(&answer(610))], 1, 40).await, [check]);
    assert_eq!(missed(|| vec![Reply::text("prose")], 1, 40).await, [fallback, check]);
    let slow = || {
        vec![
            Reply::from(FaultKind::Overloaded),
            Reply::from(FaultKind::Overloaded),
            Reply::from(FaultKind::Overloaded),
            text(&answer(610)),
        ]
    };
    assert_eq!(missed(slow, 3, 30).await, [latency]);
    // A server that is down is no fast server.
    assert_eq!(missed(|| vec![Reply::from(FaultKind::Auth)], 10, 0).await, ROWS);
    assert_eq!(missed(|| vec![Reply::from(FaultKind::Auth)], 3, 30).await, ROWS);
}

#[tokio::test(start_paused = true)]
async fn a_report_names_the_model_the_prompt_and_what_had_no_answer() {
    let events = Events::default();
    for reply in [Reply::from(FaultKind::Auth), text(&answer(610))] {
        let oracle = builder(&model([reply])).with_observer(events.clone()).build().unwrap();
        oracle.score(&wallet()).await.unwrap();
    }
    let report = Report::of(events.of());
    let (model, prompt) = (report.models.keys().next().unwrap(), report.prompts.keys().next().unwrap());
    let table = report.to_string();
    for line in [
        format!("model: {model}, 2 of 2 scores\n"),
        format!("prompt: {prompt}, 2 of 2 scores\n"),
        "without an answer of a model: 1 of 2 scores, a miss of every target\n".to_owned(),
        "history of the answers: ".to_owned(),
        " by the fallback\n".to_owned(),
    ] {
        assert!(table.contains(&line), "{line}\n{table}");
    }
    assert!(Report::of([]).is_missed(), "nothing is met by nothing");
}
