//! Attempts, temperatures, output modes, and the fields of a score (scenes 000 and 001 of the specification).

use std::sync::Arc;

use formwork_core::{
    Backoff, CallResult, Capabilities, Enforcement, FaultKind, Feedback, Patching, Sampling, Stage,
    Temperature, Usage,
};
use formwork_extract::Backend;
use formwork_oracle::{CrossCheck, Examples, Formula, Oracle, Prompt, ScoreSource};
use formwork_testkit::{FmtSpan, Log, Reply, Scripted};
use serde_json::{Value, json};

use crate::support::{
    Events, against, answer, builder, documents, model, scored, temperatures, wallet, with, wrong,
};

#[tokio::test]
async fn prose_three_times_is_the_fallback_with_the_same_fields() {
    let model = model(["I would say 640.", "About 640.", "640"]);
    let events = Events::default();
    let oracle = builder(&model).with_observer(events.clone()).build().unwrap();
    let fallback = oracle.score(&wallet()).await.unwrap();
    assert_eq!(temperatures(&model.calls()), [Some(0.3), Some(0.2), Some(0.1)]);
    assert_eq!((fallback.source, fallback.attempts), (ScoreSource::Fallback, 3));
    assert_eq!(against(&fallback, &CrossCheck::default()), [""; 0]);

    let ai = scored(&documents(&[answer(610)])).await;
    let keys = |value: Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (fallback, ai) = (serde_json::to_value(&fallback).unwrap(), serde_json::to_value(&ai).unwrap());
    assert_eq!(keys(fallback.clone()), keys(ai));
    assert_eq!(fallback["source"], "fallback");

    let event = &events.of()[0];
    assert_eq!(
        (event.source, event.rejections().count(), event.is_compliant()),
        (Some(ScoreSource::Fallback), 3, false)
    );
    assert_eq!(event.wallet, "0xabc");
    assert_eq!(event.error.as_ref().unwrap().class, formwork_core::ErrorKind::Rejected);
}

#[tokio::test]
async fn a_score_out_of_range_is_requested_again_and_never_clamped() {
    let log = Log::default();
    let model = documents(&[answer(1001), {
        let mut high = answer(640);
        high["scoreBreakdown"]["surveyMatch"] = 60.into();
        high
    }]);
    let scored = {
        let _guard = log.listen(FmtSpan::NONE);
        let oracle = builder(&model).build().unwrap();
        oracle.request(&wallet()).with_id("request-7").run().await.unwrap()
    };
    assert_eq!((scored.answer.score, scored.source, scored.attempts), (640, ScoreSource::Ai, 2));
    assert_eq!(wrong(&scored.event.calls[0]), [("maximum".to_owned(), "$.score".to_owned())]);
    let log = log.text();
    let line = log.lines().find(|line| line.contains("rejected")).unwrap();
    for word in [
        "attempt 1/3 at 0.3 rejected",
        "$.score: maximum: expected at most 1000",
        "request-7",
        "temperature=0.3",
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(!line.contains("1001"), "what was found stays out of logs: {line}");
    assert_eq!(log.lines().filter(|line| line.contains("WARN")).count(), 1, "{log}");
}

#[tokio::test]
async fn a_line_of_the_log_has_the_number_of_all_violations() {
    let log = Log::default();
    let model = documents(&[
        {
            let mut wrong = answer(610);
            wrong["risk_factors"] = json!(vec![1; 600]);
            wrong
        },
        answer(610),
    ]);
    let guard = log.listen(FmtSpan::NONE);
    builder(&model).build().unwrap().score(&wallet()).await.unwrap();
    drop(guard);
    let log = log.text();
    let line = log.lines().find(|line| line.contains("rejected")).unwrap();
    assert!(line.contains("total=600") && line.contains("; and 88 more"), "{line}");
    let correction = model.calls()[1].messages.last().unwrap().text();
    assert!(
        correction.contains("$.risk_factors[0-511]: ") && correction.contains("(and 88 more)"),
        "{correction}"
    );
}

#[tokio::test]
async fn a_way_of_asking_that_is_refused_uses_no_attempt() {
    let capabilities = Capabilities::new(Enforcement::Schema)
        .with_dialect("ollama")
        .with_dialect("json-object")
        .with_temperature()
        .with_seed();
    let log = Log::default();
    let model = Arc::new(
        Scripted::new([
            Reply::from(FaultKind::SchemaRefused),
            Reply::from(FaultKind::SchemaRefused),
            Reply::text("no"),
            Reply::text("no"),
            Reply::text(answer(610).to_string()),
        ])
        .with_capabilities(capabilities),
    );
    let scored = {
        let _guard = log.listen(FmtSpan::NONE);
        scored(&model).await
    };
    let calls = model.calls();
    let requested: Vec<_> =
        calls.iter().map(|call| (call.enforcement(), call.sampling.temperature.unwrap())).collect();
    assert_eq!(
        requested,
        [
            (Enforcement::Schema, 0.3),
            (Enforcement::JsonObject, 0.3),
            (Enforcement::None, 0.3),
            (Enforcement::None, 0.2),
            (Enforcement::None, 0.1)
        ]
    );
    assert!(!calls[0].messages[0].text().contains("\"maxLength\""), "the first is held to the schema");
    assert!(calls[1].messages[0].text().contains("maxLength"), "the second reads it");
    assert_eq!((scored.source, scored.attempts, scored.event.step_downs()), (ScoreSource::Ai, 3, 2));
    let log = log.text();
    assert_eq!(log.matches("refused the schema").count(), 1, "{log}");
}

#[tokio::test]
async fn schema_then_sum_then_schema_is_the_fallback_with_the_stage_of_each() {
    let short = with("/reasoning", "short");
    let model = documents(&[short.clone(), answer(900), short]);
    let scored = scored(&model).await;
    assert_eq!((model.calls().len(), scored.source), (3, ScoreSource::Fallback));
    let stages: Vec<_> = scored.event.rejections().map(|rejection| rejection.stage().unwrap()).collect();
    assert_eq!(stages, [Stage::Schema, Stage::Check, Stage::Schema]);
    let reasons: Vec<_> = scored.event.rejections().flat_map(|rejection| rejection.reasons()).collect();
    let reason = |path: &str| ("invalid", path.to_owned());
    assert_eq!(reasons, [reason("$.reasoning"), reason("$.score"), reason("$.reasoning")]);
    let checks = scored.event.cross_checks();
    assert_eq!((checks.passed, checks.failed), (0, 1));
}

#[tokio::test]
async fn the_sums_tolerance_is_inclusive_on_the_unrounded_sum() {
    for (score, accepted) in [(588, true), (627, true), (587, false), (628, false)] {
        let model = documents(&[answer(score), answer(610)]);
        let scored = scored(&model).await;
        let expected = if accepted { (score, 1) } else { (610, 2) };
        assert_eq!((scored.answer.score, scored.attempts), expected);
        if !accepted {
            assert_eq!(temperatures(&model.calls()), [Some(0.3), Some(0.2)]);
            assert_eq!(wrong(&scored.event.calls[0]), [("weightedSum".to_owned(), "$.score".to_owned())]);
            let feedback = model.calls()[1].messages.last().unwrap().text();
            assert!(feedback.contains("$.score: expected from 587.5 to 627.5"), "{feedback}");
        }
    }
    let literal = CrossCheck { formula: Formula::Literal, ..CrossCheck::default() };
    let model = documents(&[answer(605), answer(60)]);
    let scored = builder(&model).with_cross_check(literal).build().unwrap().score(&wallet()).await.unwrap();
    assert_eq!((scored.answer.score, scored.attempts), (60, 2));
}

#[tokio::test]
async fn a_hundred_scores_count_as_they_were() {
    let good = || Reply::text(answer(610).to_string());
    let bad = || Reply::text(answer(900).to_string());
    let events = Events::default();
    let mut script: Vec<Reply> = (0..95).map(|_| good()).collect();
    (0..4).for_each(|_| script.extend([bad(), good()]));
    script.extend([bad(), bad(), bad()]);
    let model = model(script);
    let oracle = builder(&model).with_observer(events.clone()).build().unwrap();
    for _ in 0..100 {
        oracle.score(&wallet()).await.unwrap();
    }
    let events = events.of();
    let count =
        |of: fn(&formwork_oracle::ScoreEvent) -> bool| events.iter().filter(|event| of(event)).count();
    assert_eq!(count(|event| event.is_compliant()), 95);
    assert_eq!(count(|event| event.is_retried()), 5);
    assert_eq!(count(|event| event.is_fallback()), 1);
    assert_eq!(events.iter().map(|event| event.rejections().count()).sum::<usize>(), 7);
    let row = serde_json::to_string(&events[99]).unwrap();
    assert_eq!(serde_json::from_str::<formwork_oracle::ScoreEvent>(&row).unwrap(), events[99]);
}

#[tokio::test]
async fn an_answer_that_had_to_be_edited_counts_but_is_not_compliant() {
    let fenced = format!("Here it is:\n```json\n{}\n```", answer(610));
    let scored = scored(&model([fenced.as_str()])).await;
    assert_eq!((scored.source, scored.attempts), (ScoreSource::Ai, 1));
    assert!(!scored.event.is_compliant() && !scored.event.is_retried());
    assert_eq!(scored.event.calls[0].verdict, CallResult::Accepted);
}

#[tokio::test]
async fn the_seed_is_of_the_wallet_the_prompt_and_the_attempt() {
    let seeds = async |oracle: fn(&Arc<Scripted>) -> Oracle, wallet| {
        let model = documents(&[answer(900), answer(610)]);
        oracle(&model).score(&wallet).await.unwrap();
        model.calls().iter().map(|call| call.sampling.seed.unwrap()).collect::<Vec<_>>()
    };
    let plain = |model: &Arc<Scripted>| builder(model).build().unwrap();
    let second =
        |model: &Arc<Scripted>| builder(model).with_prompt(Prompt::builtin("v2").unwrap()).build().unwrap();
    let first = seeds(plain, wallet()).await;
    assert_eq!(first[1], first[0].wrapping_add(1));
    assert_eq!(first, seeds(plain, wallet()).await);
    assert_ne!(first, seeds(second, wallet()).await);
    let mut other = wallet();
    other.summary.transactions += 1;
    assert_ne!(first, seeds(plain, other).await);
}

#[tokio::test]
async fn the_same_wallet_twice_is_the_same_bytes() {
    let model = documents(&[answer(610)]);
    let oracle = builder(&model).build().unwrap();
    let bytes = async || serde_json::to_vec(&oracle.score(&wallet()).await.unwrap()).unwrap();
    assert_eq!(bytes().await, bytes().await);
}

#[tokio::test]
async fn what_comes_before_the_wallet_is_the_same_for_all() {
    let check = CrossCheck::default();
    let set = json!([{"wallet": {"transactions": []}, "answer": answer(610)}]).to_string();
    let examples = Examples::from_json("few.json", set.as_bytes(), &check).unwrap();
    let model = documents(&[answer(610)]);
    let oracle = builder(&model).with_examples(examples).build().unwrap();
    let mut other = wallet();
    other.summary.transactions = 41;
    oracle.score(&wallet()).await.unwrap();
    oracle.score(&other).await.unwrap();
    let calls = model.calls();
    assert_eq!(calls[0].messages[0], calls[1].messages[0]);
    assert_eq!((calls[0].messages.len(), calls[1].messages.len()), (2, 2));
    assert_ne!(calls[0].messages[1], calls[1].messages[1]);
    let system = calls[0].messages[0].text();
    assert!(system.contains("Example 1:\nScore this wallet.\ntransactions: 0"), "{system}");
    assert!(!calls[0].messages[1].text().contains("0xabc"), "the model is not told the address");
}

#[tokio::test]
async fn the_breakdown_is_generated_first_with_and_without_rules() {
    let capabilities =
        Capabilities::new(Enforcement::Schema).with_dialect("llguidance").with_rules().with_temperature();
    let model = Arc::new(Scripted::new([answer(610).to_string().as_str()]).with_capabilities(capabilities));
    let check = CrossCheck::default();
    let set = json!([{"wallet": {"transactions": []}, "answer": answer(610)}]).to_string();
    let examples = Examples::from_json("few.json", set.as_bytes(), &check).unwrap();
    builder(&model).with_examples(examples.clone()).build().unwrap().score(&wallet()).await.unwrap();
    let call = &model.calls()[0];
    let names: Vec<_> = call.schema().unwrap()["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["scoreBreakdown", "score", "reasoning", "risk_factors", "strengths"]);
    assert_eq!(call.rules, [check.rule()]);
    let system = call.messages[0].text();
    assert!(system.contains("Answer:\n{\"scoreBreakdown\": "), "{system}");

    for dialect in ["openai", "ollama", "llama-cpp"] {
        let capabilities = Capabilities::new(Enforcement::Schema).with_dialect(dialect).with_temperature();
        let plain = Scripted::new([answer(610).to_string().as_str()]).with_capabilities(capabilities);
        let plain = Arc::new(plain);
        let oracle = builder(&plain).with_examples(examples.clone()).build().unwrap();
        oracle.score(&wallet()).await.unwrap();
        let call = &plain.calls()[0];
        let sent = call.schema().unwrap()["properties"].as_object().unwrap();
        assert_eq!(sent.keys().next().unwrap(), "scoreBreakdown", "{dialect}");
        assert!(call.messages[0].text().contains("Answer:\n{\"scoreBreakdown\": "));
    }
}

#[tokio::test]
async fn a_temperature_that_is_not_taken_is_omitted_and_the_skip_is_reported() {
    let log = Log::default();
    let model = Arc::new(Scripted::new(["no"]).with_capabilities(Capabilities::new(Enforcement::JsonObject)));
    let scored = {
        let _guard = log.listen(FmtSpan::NONE);
        scored(&model).await
    };
    assert!(model.calls().iter().all(|call| call.sampling == Sampling::default()));
    assert_eq!((model.calls().len(), scored.source), (3, ScoreSource::Fallback));
    assert!(scored.event.calls[0].skipped.contains(&"temperature".to_owned()));
    let log = log.text();
    assert!(log.contains("the target does not take temperature, seed: left out"), "{log}");
}

#[tokio::test]
async fn attempts_are_of_all_targets_together() {
    let down = Arc::new(Scripted::new([Reply::from(FaultKind::Auth)]).with_name("down"));
    let up = documents(&[answer(900), answer(900), answer(900)]);
    let oracle = Oracle::builder()
        .with_target(Backend::from(Arc::clone(&down)))
        .with_target(Arc::clone(&up))
        .build()
        .unwrap();
    let scored = oracle.score(&wallet()).await.unwrap();
    assert_eq!((down.calls().len(), up.calls().len(), scored.source), (1, 3, ScoreSource::Fallback));
    assert_eq!(scored.event.model, "scripted");
    assert_eq!(scored.event.faults().count(), 1);
}

#[tokio::test]
async fn a_patch_stays_within_its_attempt_and_has_the_range() {
    let model = model([answer(900).to_string().as_str(), r#"{"score": 612}"#]);
    let oracle = builder(&model).with_patches(1).build().unwrap();
    let scored = oracle.score(&wallet()).await.unwrap();
    assert_eq!((scored.answer.score, scored.attempts, scored.source), (612, 1, ScoreSource::Ai));
    assert_eq!(temperatures(&model.calls()), [Some(0.3), Some(0.3)]);
    let patch = model.calls()[1].clone();
    let requested = patch.schema().map(|schema| schema["properties"]["score"].clone());
    let words = patch.messages.last().unwrap().text();
    assert!(
        requested.is_some_and(|requested| requested["minimum"] == 588 && requested["maximum"] == 627)
            || words.contains("627.5"),
        "{words}"
    );
    assert!(scored.event.is_retried() && !scored.event.is_compliant());
}

#[tokio::test]
async fn what_the_model_calls_itself_and_used_up_is_reported() {
    let completion = formwork_core::Completion::new(answer(610).to_string())
        .with_usage(Usage::new(700, 120))
        .with_model(Some("qwen3:8b".to_owned()));
    let model = model([Reply::completion(completion)]);
    let scored = scored(&model).await;
    assert_eq!((scored.model.as_str(), scored.usage.output_tokens), ("qwen3:8b", 120));
    assert_eq!((scored.prompt.name.as_str(), scored.prompt.hash.len()), ("v1", 64));
}

#[test]
fn the_policy_is_the_document_s() {
    let policy = formwork_oracle::policy();
    assert_eq!((policy.attempts, policy.patching), (3, Patching::Never));
    assert_eq!(policy.temperature, Temperature::Steps(vec![0.3, 0.2, 0.1]));
    assert_eq!((policy.backoff, &*policy.feedback), (Backoff::exponential(), &Feedback::standard()));
    assert!(!policy.accept_incomplete && policy.ask_after_refusal && !policy.stop_on_repeat && !policy.stop);
}

/// Finding O7: the terms of the sum are written before the sum, over every provider.
#[tokio::test]
async fn the_breakdown_is_asked_for_before_the_score() {
    let model = documents(&[answer(610)]);
    scored(&model).await;
    let prompt: String = model.calls()[0].messages.iter().map(|message| message.text()).collect();
    let (breakdown, score) = (prompt.find("\"scoreBreakdown\""), prompt.find("\"score\""));
    assert!(breakdown.is_some() && breakdown < score, "{prompt}");
    let contract = formwork_oracle::contract(&CrossCheck::default()).unwrap();
    let document = contract.schema().document();
    assert_eq!(document["properties"].as_object().unwrap().keys().next().unwrap(), "scoreBreakdown");
    assert_eq!(*document, *formwork_oracle::AI_RESPONSE_SCHEMA, "the same but for the order");
    let exported: Vec<&String> =
        formwork_oracle::AI_RESPONSE_SCHEMA["properties"].as_object().unwrap().keys().collect();
    assert_eq!(exported[..2], ["score", "scoreBreakdown"]);
}
