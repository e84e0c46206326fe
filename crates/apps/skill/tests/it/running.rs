use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Completion, ErrorKind, FaultKind, Time};
use formwork_skill::*;
use formwork_testkit::{Reply, Scripted, VirtualClock};
use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn json_is_generated_as_the_file_says() {
    let (runner, model) = runner(&[PERSON], [YOUNG]);
    let outcome = runner.execute("person", json!({"country": "Portugal", "job": "baker"})).await.unwrap();
    assert_eq!(outcome.output, json!({"name": "Maria", "age": 20}));
    assert_eq!(outcome.template_type, Some(TemplateType::LlmJsonGeneration));
    assert!(outcome.validation_micros > 0 && outcome.review.is_none());
    let call = &model.calls()[0];
    let texts: Vec<_> = call.messages.iter().map(|message| message.text()).collect();
    assert!(texts[0].starts_with("You make up people."), "{texts:?}");
    assert_eq!(texts.last().unwrap().trim(), "Make up a person of Portugal who is a baker.");
    assert_eq!((call.schema_name.as_str(), call.sampling.temperature), ("output_schema", Some(0.7)));
}

#[tokio::test]
async fn a_wrong_answer_is_requested_once_more() {
    let (right_then, model) = runner(&[PERSON], ["no JSON", YOUNG]);
    let outcome = right_then.execute("person", json!({"country": "Portugal"})).await.unwrap();
    assert_eq!((outcome.generation.unwrap().retries(), model.calls().len()), (1, 2));
    assert_eq!(model.calls()[1].sampling.temperature, Some(0.2));
    let (never, model) = runner(&[PERSON], ["no JSON"]);
    let error = never.execute("person", json!({"country": "Portugal"})).await.unwrap_err();
    assert_eq!((error.kind(), model.calls().len()), (Some(ErrorKind::Rejected), 2));
}

#[tokio::test]
async fn a_failing_review_generates_once_more_only_on_request() {
    let (once, model) = runner(&[&reviewed(true)], [OLD, YOUNG]);
    let outcome = once.execute("person", json!({"country": "Portugal"})).await.unwrap();
    assert_eq!((outcome.output["age"].as_u64(), model.calls().len()), (Some(20), 2));
    assert!(outcome.generation.unwrap().retried && outcome.review.unwrap().pass);
    let critique = model.calls()[1].messages.last().unwrap().text();
    assert!(
        critique.contains("young: The person is at most 30.") && critique.contains("Take somebody younger."),
        "{critique}"
    );

    let (never, model) = runner(&[&reviewed(false)], [OLD, YOUNG]);
    let outcome = never.execute("person", json!({"country": "Portugal"})).await.unwrap();
    assert_eq!((outcome.output["age"].as_u64(), model.calls().len()), (Some(90), 1));
    assert!(!outcome.generation.unwrap().retried && !outcome.review.unwrap().pass);
}

#[tokio::test]
async fn a_judge_has_room_where_the_answer_has_little() {
    let text = format!(
        "{PERSON}policy: {{max_tokens: 20}}\nrubric: {{name: r, criteria: [{{id: nice, description: It is a nice person.}}]}}\n"
    );
    let (runner, model) =
        runner(&[&text], [YOUNG, r#"{"reasoning": "So.", "verdict": "pass", "confidence": 90}"#]);
    let outcome = runner.execute("person", json!({"country": "Portugal"})).await.unwrap();
    assert!(outcome.review.unwrap().pass);
    let limits: Vec<_> = model.calls().iter().map(|call| call.max_tokens).collect();
    assert_eq!(limits, [Some(20), Some(LlmReviewService::MAX_TOKENS)]);
}

#[tokio::test]
async fn an_input_is_reviewed() {
    let judge = [r#"{"reasoning": "Rude.", "verdict": "fail", "confidence": 90}"#];
    let (runner, model) = runner(&[REPLY], judge);
    let outcome = runner.execute("review-reply", json!({"reply": "No."})).await.unwrap();
    let review = outcome.review.unwrap();
    assert_eq!((review.pass, review.issues.len(), review.indeterminate.len()), (false, 1, 1));
    assert_eq!(outcome.output["pass"], false);
    let prompt = model.calls()[0].messages.last().unwrap().text();
    assert!(prompt.contains("Answer the customer.") && prompt.contains("---\nNo.\n---"), "{prompt}");

    let with = json!({"reply": "No.", "price_list": [3]});
    let review = runner.execute("review-reply", with).await.unwrap().review.unwrap();
    assert_eq!((review.issues.len(), review.indeterminate.len()), (2, 0), "the data is there now");
}

#[tokio::test]
async fn a_skill_whose_judge_cannot_be_reached_does_not_pass() {
    for retry_once in [false, true] {
        let text = reviewed(retry_once) + "    - {id: kind, description: The person is kind.}\n";
        for person in [YOUNG, OLD] {
            let (runner, _) = runner(&[&text], [Reply::from(person), FaultKind::Auth.into()]);
            let outcome = runner.execute("person", json!({"country": "Portugal"})).await.unwrap();
            let review = outcome.review.clone().unwrap();
            assert!(!outcome.passes(false) && !review.pass && !outcome.generation.unwrap().retried);
            assert_eq!(review.error.unwrap().kind, ErrorKind::Unavailable);
            assert_eq!(review.issues.len(), usize::from(person == OLD), "the age needs no judge");
        }
    }
    let (runner, _) = runner(&[REPLY], [Reply::from(FaultKind::Auth)]);
    let outcome = runner.execute("review-reply", json!({"reply": "No."})).await.unwrap();
    assert!(
        !outcome.passes(false) && outcome.output["pass"] == false && outcome.review.unwrap().error.is_some()
    );
}

#[tokio::test]
async fn what_is_not_right_is_reported_before_a_model_is_called() {
    let missing_provider = PERSON.replace("system:", "provider: fast\nsystem:");
    let nothing: [&str; 0] = [];
    let (runner, model) =
        runner(&[PERSON, &missing_provider.replace("name: person", "name: other")], nothing);
    for (skill, inputs, says) in [
        ("persom", json!({}), "there is no skill `persom`: did you mean `person`?"),
        ("person", json!({}), "skill `person`: the input `country` is missing"),
        ("person", json!({"country": 7}), "Type mismatch at $.country: expected string, found number"),
        ("person", json!({"country": "x", "jobb": "y"}), "there is no input `jobb`: did you mean `job`?"),
        ("person", json!("x"), "the inputs are a JSON object"),
        ("other", json!({"country": "x"}), "s.yaml:8:11: there is no provider `fast`"),
    ] {
        let error = runner.execute(skill, inputs).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    assert!(model.calls().is_empty());
}

#[tokio::test]
async fn all_that_a_skill_does_shares_its_time() {
    // Of two delays of 35 seconds only one fits into a minute.
    let busy = || {
        let fault = formwork_core::Fault::new(FaultKind::Overloaded, "busy");
        Reply::fault(fault.with_retry_after(Some(std::time::Duration::from_secs(35))))
    };
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let model = Arc::new(Scripted::new([busy(), OLD.into(), busy(), YOUNG.into()]));
    let mine = clock.clone();
    let runner = SkillRunnerService::new(NamedBackends::new([model.clone().into()]))
        .with_skill(skill(&reviewed(true)))
        .with_agent(move |agent| agent.with_clock(mine.clone()));
    let outcome = runner.execute("person", json!({"country": "Portugal"})).await.unwrap();
    assert_eq!(clock.waits().len(), 1);
    let generation = outcome.generation.unwrap();
    assert!(generation.retried && generation.error.is_some(), "the second wait would end after the minute");
    assert_eq!((outcome.output["age"].as_u64(), model.calls().len()), (Some(90), 3));
}

#[tokio::test]
async fn the_policy_of_the_file_counts() {
    let text = format!(
        "{PERSON}policy: {{attempts: 3, temperature: 0.5, retry_temperature: 0.1, max_tokens: 77, backoff_seconds: [1]}}\n"
    );
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let model =
        Arc::new(Scripted::new([Reply::from(FaultKind::Overloaded), "a".into(), "b".into(), YOUNG.into()]));
    let mine = clock.clone();
    let runner = SkillRunnerService::new(NamedBackends::new([model.clone().into()]))
        .with_skill(skill(&text))
        .with_agent(move |agent| agent.with_clock(mine.clone()).with_seed(5));
    runner.execute("person", json!({"country": "x"})).await.unwrap();
    let prompt: Vec<_> =
        model.calls().iter().map(|call| (call.sampling.temperature, call.max_tokens)).collect();
    assert_eq!(
        prompt,
        [(Some(0.5), Some(77)), (Some(0.5), Some(77)), (Some(0.1), Some(77)), (Some(0.1), Some(77))]
    );
    assert_eq!(clock.waits(), [std::time::Duration::from_secs(1)]);
    assert_eq!(model.calls()[0].sampling.seed, Some(5));
}

/// Returns the nominal durations of these runs.
const SOON: Duration = Duration::from_secs(2);

#[tokio::test]
async fn the_targets_are_measured() {
    let mut tally = Tally::default();
    let (generating, _) = runner(&[PERSON], ["no JSON", YOUNG, YOUNG, YOUNG, "no", "no", YOUNG]);
    for _ in 0..4 {
        tally.add("a", SOON, &generating.execute("person", json!({"country": "x"})).await);
    }
    let votes = ["pass", "pass", "fail", "pass"].map(|verdict| Reply::from(vote(verdict).as_str()));
    let (reviewing, _) = runner(&[REPLY], votes);
    for _ in 0..4 {
        tally.add("a", SOON, &reviewing.execute("review-reply", json!({"reply": "No."})).await);
    }
    let report = tally.report();
    let rows: Vec<_> =
        report.targets.iter().map(|row| (row.metric.as_str(), row.target.as_str(), row.n, row.met)).collect();
    assert_eq!(
        rows,
        [
            ("Schema compliance", ">98%", 4, Some(false)),
            ("Retry frequency", "<5%", 4, Some(false)),
            ("Review consistency", ">95%", 4, Some(false)),
            ("Schema validation latency", "<100ms", 4, Some(false)),
            ("Total skill execution", "<60s", 8, Some(false)),
            ("Outputs that pass", ">95%", 0, None),
        ]
    );
    let measured: Vec<_> = report.targets.iter().filter_map(|row| row.measured).collect();
    // Two of four generations were valid at first, two were requested again. One of the model's four verdicts differs;
    // the other criterion needs no model.
    assert_eq!(measured[..3], [50.0, 50.0, 75.0]);
    assert_eq!((report.runs, report.failed, report.unavailable, report.unreviewed), (8, 1, 0, 0));
}

fn vote(verdict: &str) -> String {
    format!(r#"{{"reasoning": "So.", "verdict": "{verdict}", "confidence": 90}}"#)
}

/// A generation that is valid at first, and a review: no misses.
async fn without_a_miss() -> Tally {
    let mut tally = Tally::default();
    let (generating, _) = runner(&[&reviewed(false)], [YOUNG]);
    let (reviewing, _) = runner(&[REPLY], [Reply::from(vote("pass").as_str())]);
    for _ in 0..40 {
        tally.add("a", SOON, &generating.execute("person", json!({"country": "x"})).await);
        tally.add("a", SOON, &reviewing.execute("review-reply", json!({"reply": "No."})).await);
    }
    assert!(tally.report().targets.iter().all(|target| target.met == Some(true)));
    tally
}

#[tokio::test]
async fn no_target_is_met_by_a_run_that_is_omitted() {
    let missed = |tally: &Tally| -> Vec<String> {
        let targets = tally.report().targets;
        targets.into_iter().filter(|row| row.met == Some(false)).map(|row| row.metric).collect()
    };
    let late = Duration::from_secs(60);
    // A run without an output counts as a failure, whatever its reason is.
    for reply in [Reply::from("no"), FaultKind::Auth.into(), FaultKind::Timeout.into(), Reply::refusal("no")]
    {
        let mut tally = without_a_miss().await;
        let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
        let (failing, _) = runner(&[PERSON], [reply]);
        let failing = failing.with_agent(move |agent| agent.with_clock(clock.clone()));
        tally.add("b", SOON, &failing.execute("person", json!({"country": "x"})).await);
        let found = missed(&tally);
        assert!(found.contains(&"Schema compliance".to_owned()), "{found:?}");
        assert!(found.contains(&"Total skill execution".to_owned()), "{found:?}");
    }
    // Four runs without an output among 40 are enough for every row that generations have.
    let mut tally = without_a_miss().await;
    let (failing, _) = runner(&[&reviewed(false)], [FaultKind::Auth]);
    for _ in 0..4 {
        tally.add("b", SOON, &failing.execute("person", json!({"country": "x"})).await);
    }
    let rows = [
        "Schema compliance",
        "Retry frequency",
        "Schema validation latency",
        "Total skill execution",
        "Outputs that pass",
    ];
    assert_eq!(missed(&tally), rows);
    let mut tally = without_a_miss().await;
    let (slow, _) = runner(&[PERSON], [YOUNG]);
    tally.add("b", late, &slow.execute("person", json!({"country": "x"})).await);
    assert_eq!(missed(&tally), ["Total skill execution"]);

    // A judge without answers is not consistent, although all of its runs are alike.
    for judge in [Reply::from("garbage"), FaultKind::Auth.into(), Reply::refusal("no")] {
        let mut tally = without_a_miss().await;
        let (reviewing, _) = runner(&[REPLY], [judge]);
        for _ in 0..5 {
            tally.add("b", SOON, &reviewing.execute("review-reply", json!({"reply": "No."})).await);
        }
        let report = tally.report();
        assert_eq!(missed(&tally), ["Review consistency", "Total skill execution"]);
        assert_eq!((report.targets[2].n, report.unreviewed), (45, 5));
    }
}

#[tokio::test]
async fn runs_without_any_answer_are_misses_of_every_row_of_generations() {
    let fault = |kind: FaultKind| Reply::from(kind);
    // The replies of each run (the last one repeats), and whether no provider answered.
    for (skill, inputs, replies, unavailable) in [
        (PERSON, json!({"country": "x"}), vec![fault(FaultKind::Auth)], 1),
        (PERSON, json!({"country": "x"}), vec![fault(FaultKind::Timeout)], 1),
        (PERSON, json!({"country": "x"}), vec![Reply::from("no"), fault(FaultKind::Timeout)], 1),
        (PERSON, json!({"country": "x"}), vec![Reply::from("no")], 0),
        (PERSON, json!({"country": "x"}), vec![Reply::refusal("no")], 0),
        (REPLY, json!({"reply": "No."}), vec![fault(FaultKind::Auth)], 1),
        (REPLY, json!({"reply": "No."}), vec![Reply::from("garbage")], 0),
    ] {
        let mut tally = Tally::default();
        let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
        let (runner, _) = runner(&[skill], replies.clone());
        let runner = runner.with_agent(move |agent| agent.with_clock(clock.clone()));
        let name = if skill == PERSON { "person" } else { "review-reply" };
        tally.add("a", SOON, &runner.execute(name, inputs).await);
        let report = tally.report();
        assert_eq!((report.runs, report.failed + report.unreviewed), (1, 1), "{replies:?}");
        assert_eq!(report.unavailable, unavailable, "{replies:?}");
        let [compliance, retries, ..] = &report.targets[..] else { panic!("{report:?}") };
        let generations = usize::from(skill == PERSON);
        assert_eq!((compliance.n, retries.n), (generations, generations), "{replies:?}");
        let missed = (skill == PERSON).then_some(false);
        assert_eq!((compliance.met, retries.met), (missed, missed), "{replies:?}");
    }
}

#[tokio::test]
async fn a_repaired_or_restrained_answer_does_not_comply() {
    let restrained = {
        let mut completion = Completion::new(YOUNG);
        completion.restrained = true;
        Reply::completion(completion)
    };
    for (reply, compliant) in
        [(Reply::from(YOUNG), 100.0), (Reply::text(format!("Here: {YOUNG}")), 0.0), (restrained, 0.0)]
    {
        let mut tally = Tally::default();
        let (runner, _) = runner(&[PERSON], [reply]);
        tally.add("a", SOON, &runner.execute("person", json!({"country": "x"})).await);
        let report = tally.report();
        assert_eq!((report.failed, report.targets[0].measured), (0, Some(compliant)));
        assert_eq!(report.is_missed(), compliant < 100.0);
    }
    assert!(Tally::default().report().is_missed(), "nothing is met by nothing");
}

#[tokio::test]
async fn the_skills_own_rubric_is_a_row() {
    let person = reviewed(false)
        .replace("      schema: {properties: {age: {maximum: 30}}}\n      fix: Take somebody younger.\n", "");
    let sure = |verdict: &str| vote(verdict);
    let unsure = || vote("fail").replace("90", "49");
    for (votes, n, measured, met) in [
        (vec![sure("pass")], 4, Some(100.0), Some(true)),
        (vec![sure("fail")], 4, Some(0.0), Some(false)),
        (vec![sure("pass"), sure("pass"), sure("pass"), sure("fail")], 4, Some(75.0), Some(false)),
        (vec![sure("pass"), unsure(), unsure(), unsure()], 4, Some(25.0), Some(false)),
        (vec![unsure()], 4, Some(0.0), Some(false)),
    ] {
        let mut tally = Tally::default();
        for nth in 0..4 {
            let (runner, _) = runner(&[&person], [YOUNG, votes[nth.min(votes.len() - 1)].as_str()]);
            tally.add("a", SOON, &runner.execute("person", json!({"country": "x"})).await);
        }
        let report = tally.report();
        let row = &report.targets[5];
        assert_eq!((row.n, row.measured, row.met), (n, measured, met), "{votes:?}");
        let undecided = votes.iter().filter(|vote| **vote == unsure()).count() * 4 / votes.len();
        assert!(row.measurement.contains(&format!("({undecided} undecided)")), "{}", row.measurement);
        let is_said = report.remarks == ["the rubric decided none of 4 outputs"];
        assert_eq!(is_said, undecided == 4, "{:?}", report.remarks);
    }
    // Without any output the skill shows that there is a rubric.
    for (skill, met) in [(skill(&person), Some(false)), (skill(PERSON), None)] {
        let mut tally = Tally::default();
        tally.name_skill(&skill);
        let (runner, _) = runner(&[if met.is_some() { &person } else { PERSON }], [FaultKind::Auth]);
        for _ in 0..3 {
            tally.add("a", SOON, &runner.execute("person", json!({"country": "x"})).await);
        }
        let row = &tally.report().targets[5];
        assert_eq!((row.n, row.met), (if met.is_some() { 3 } else { 0 }, met));
    }
}

#[tokio::test]
async fn a_judge_that_decides_nothing_or_always_the_same_is_said() {
    let unsure = vote("fail").replace("90", "49");
    for (votes, met, says) in [
        (vec![unsure.clone()], Some(false), "the judge decided none of 4 criteria"),
        (vec![vote("pass")], Some(true), "the judge said `pass` 4 times of 4"),
        (vec![vote("fail")], Some(true), "the judge said `fail` 4 times of 4"),
        (vec![vote("pass"), vote("pass"), vote("fail"), vote("fail")], Some(true), ""),
    ] {
        let mut tally = Tally::default();
        for nth in 0..4 {
            let (runner, _) = runner(&[REPLY], [votes[nth.min(votes.len() - 1)].as_str()]);
            let case = if nth < 2 { "a" } else { "b" };
            tally.add(case, SOON, &runner.execute("review-reply", json!({"reply": "No."})).await);
        }
        let report = tally.report();
        assert_eq!(report.targets[2].met, met, "{votes:?}");
        assert_eq!(report.remarks.is_empty(), says.is_empty(), "{:?}", report.remarks);
        assert!(report.remarks.iter().all(|remark| remark.starts_with(says)), "{:?}", report.remarks);
    }
}

#[test]
fn a_report_names_models_and_versions_of_skills() {
    let mut tally = Tally::default();
    tally.name_model("qwen3:8b");
    let (one, other) = (skill(PERSON), skill(&PERSON.replace("make up people", "invent people")));
    tally.name_skill(&one);
    tally.name_skill(&one);
    let report = tally.report();
    assert_eq!(report.models.into_iter().collect::<Vec<_>>(), ["qwen3:8b"]);
    assert_eq!(report.skills.into_iter().collect::<Vec<_>>(), [format!("person {}", one.version())]);
    assert!(one.version() != other.version() && one.version().len() == 12);
}
