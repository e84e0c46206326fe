//! Every failure is data.

use std::sync::Arc;
use std::time::Duration;

use formwork_chat::ChatCode;
use formwork_core::{
    Backoff, Cost, Fault, FaultKind, JsonPath, Message, Patching, Role, Stage, Temperature, Violation,
};
use formwork_extract::CancellationToken;
use formwork_testkit::server::{Reply as ServerReply, Server};
use formwork_testkit::{Reply, VirtualClock};

use crate::support::{client, client_of, good, model};

#[test]
fn faults_of_the_transport_have_codes() {
    for (kind, code, calls) in [
        (FaultKind::RateLimited, ChatCode::RateLimited, 4),
        (FaultKind::Overloaded, ChatCode::Unavailable, 4),
        (FaultKind::Timeout, ChatCode::Timeout, 4),
        (FaultKind::Unreachable, ChatCode::Unavailable, 4),
        (FaultKind::Auth, ChatCode::AuthenticationFailed, 1),
        (FaultKind::NoCredit, ChatCode::NoCredit, 1),
        (FaultKind::BadRequest, ChatCode::BadRequest, 1),
    ] {
        let (model, clock) = (model([kind]), Arc::new(VirtualClock::default()));
        let client = client(&model).with_clock(clock.clone()).build().unwrap();
        let result = client.ask_blocking("x");
        let failure = result.failure().unwrap();
        assert_eq!(
            (failure.code, model.calls().len(), failure.attempts),
            (code, calls, 0),
            "{kind:?}: {failure}"
        );
        assert!(failure.errors.is_empty() && !failure.message.is_empty(), "{failure}");
        let waits: Vec<u64> = clock.waits().iter().map(Duration::as_secs).collect();
        assert_eq!(waits, if calls == 4 { vec![2, 4, 8] } else { vec![] });
    }
}

#[test]
fn the_servers_own_wait_wins() {
    let busy =
        Fault::new(FaultKind::RateLimited, "slow down").with_retry_after(Some(Duration::from_secs(30)));
    let (model, clock) =
        (model([Reply::fault(busy), Reply::text(good().to_string())]), Arc::new(VirtualClock::default()));
    let client = client(&model).with_clock(clock.clone()).build().unwrap();
    assert!(client.ask_blocking("x").answer().is_some());
    assert_eq!(clock.waits(), [Duration::from_secs(30)]);
}

/// The example's words may answer a question that refers to earlier messages.
#[tokio::test]
async fn a_later_question_may_be_about_the_examples_subject() {
    let mut same = good();
    same["answer"]["text"] = "A person who builds violins is called a luthier.".into();
    let scripted = model([Reply::text(same.to_string())]);
    let mut conversation = client(&scripted).with_copies_rejected().build().unwrap().conversation();
    for question in ["Who builds violins?", "Say that again."] {
        assert!(conversation.ask(question).await.answer().is_some(), "{question}");
    }
}

/// A very small model copies the contract verbatim.
#[test]
fn the_contracts_own_words_are_no_answer() {
    let with = |text: &str, intent: &str| {
        let mut copied = good();
        copied["answer"]["text"] = text.into();
        copied["task"]["user_intent"] = intent.into();
        copied
    };
    let example = "A person who builds violins is called a luthier.";
    let more = format!("{example} The wood is maple.");
    let copies = [with("string", "string"), with(example, "learn"), with(&more, "learn")];
    for (by_schema, copied) in
        [false, true].iter().flat_map(|by_schema| copies.iter().map(move |copied| (*by_schema, copied)))
    {
        let model = model([Reply::text(copied.to_string()), Reply::text(good().to_string())]);
        let builder = client(&model).with_copies_rejected();
        let builder = if by_schema { builder.with_schema_validation() } else { builder };
        let result = builder.build().unwrap().ask_blocking("What is JSON?");
        assert_eq!(result.answer().unwrap().answer.text, "A text format for data.");
        let correction = model.calls()[1].messages.last().unwrap().text();
        assert!(
            correction.contains("$.answer.text") && correction.contains("an answer to the question"),
            "{correction}"
        );
    }
    // The contract's word in any second place shows that the first one is copied.
    let mut twice = with("string", "learn");
    twice["debug"]["model"] = "string".into();
    let scripted = model([Reply::text(twice.to_string()), Reply::text(good().to_string())]);
    client(&scripted).with_copies_rejected().build().unwrap().ask_blocking("What is JSON?");
    assert_eq!(scripted.calls().len(), 2);
    // The contract of the document has no such rule, so it is off by default.
    for copied in copies.iter().chain([&twice]) {
        let scripted = model([Reply::text(copied.to_string())]);
        let result = client(&scripted).build().unwrap().ask_blocking("What is JSON?");
        assert!(result.answer().is_some() && scripted.calls().len() == 1, "{copied}");
    }
    // The same words may answer another question.
    for (question, text, intent) in [
        ("Tell me who makes a violin.", example, "learn"),
        ("What is a luthier?", example, "learn"),
        ("What type has \"a\" in JSON? One word.", "string", "learn the type of a value"),
        ("What do I tie a parcel with? One word.", "string", "tie a parcel"),
    ] {
        let scripted = model([Reply::text(with(text, intent).to_string())]);
        let client = client(&scripted).with_copies_rejected().build().unwrap();
        assert!(client.ask_blocking(question).answer().is_some(), "{question}");
    }
    // A text that merely contains the word is an answer.
    let mut good = good();
    good["answer"]["text"] = "A string is a text.".into();
    let scripted = model([Reply::text(good.to_string())]);
    assert!(client(&scripted).build().unwrap().ask_blocking("What is a string?").answer().is_some());
    assert_eq!(scripted.calls().len(), 1);
}

#[test]
fn a_refusal_and_an_answer_that_was_cut_off() {
    let refused = client(&model([Reply::refusal("no")])).build().unwrap().ask_blocking("x");
    assert_eq!(refused.failure().unwrap().code, ChatCode::Refused);
    let scripted = model([Reply::truncated("{\"task\": {")]);
    let cut = client(&scripted).with_max_tokens(5).build().unwrap().ask_blocking("x");
    assert_eq!((cut.failure().unwrap().code, cut.failure().unwrap().attempts), (ChatCode::InvalidJson, 2));
    assert!(scripted.calls()[1].messages[3].text().starts_with("INVALID_JSON"));
    assert_eq!(scripted.calls()[1].max_tokens, Some(10));
}

#[test]
fn limits_of_time_and_money_and_a_cancel() {
    let none = Cost { tokens: 1, micro_usd: None };
    let result = client(&model(["x"])).with_budget(none).build().unwrap().ask_blocking("x");
    assert_eq!(result.failure().unwrap().code, ChatCode::BudgetExceeded);
    let (overloaded, clock) = (model([FaultKind::Overloaded]), Arc::new(VirtualClock::default()));
    let limited = client(&overloaded).with_timeout(Duration::from_secs(1)).with_clock(clock);
    let code = limited.build().unwrap().ask_blocking("x").failure().unwrap().code;
    // No delay fits into a second, so the last failure is the reason.
    assert_eq!(code, ChatCode::Unavailable);
    let server = Server::start([ServerReply::silent()]).unwrap();
    let silent =
        client_of(&server).with_timeout(Duration::from_millis(300)).build().unwrap().ask_blocking("x");
    assert_eq!(silent.failure().unwrap().code, ChatCode::Timeout);
    let client = client(&model(["x"])).build().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = formwork_extract::block_on(client.answer(vec![Message::user("x")], &cancel)).unwrap();
    assert_eq!(result.failure().unwrap().code, ChatCode::Cancelled);
}

#[tokio::test]
async fn blocking_inside_of_a_runtime_is_a_failure_and_no_panic() {
    let client = client(&model(["x"])).build().unwrap();
    assert_eq!(client.ask_blocking("x").failure().unwrap().code, ChatCode::Configuration);
}

#[test]
fn policies_are_configurable() {
    let model = model(["no", "no", good().to_string().as_str()]);
    let policy = formwork_chat::policy(2)
        .with_temperature(Temperature::Steps(vec![0.8, 0.4]))
        .with_backoff(Backoff::none());
    let client = client(&model).with_policy(policy).with_seed(7).build().unwrap();
    assert_eq!(client.ask_blocking("x").into_result().unwrap().attempts, 3);
    let temperatures: Vec<_> = model.calls().iter().map(|call| call.sampling.temperature.unwrap()).collect();
    assert_eq!(temperatures, [0.8, 0.4, 0.4]);
    assert_eq!(model.calls()[0].sampling.seed, Some(7));
    // Only the last answer is in the prompt.
    assert_eq!(model.calls()[2].messages.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_their_turn() {
    let model = model([good().to_string().as_str()]);
    let client = client(&model).with_rate_limit(2, Duration::from_secs(60)).build().unwrap();
    let start = tokio::time::Instant::now();
    for _ in 0..3 {
        assert!(client.ask("x").await.answer().is_some());
    }
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[test]
fn codes_are_written_as_the_documents_have_them() {
    for code in [
        ChatCode::InvalidJson,
        ChatCode::SchemaValidationFailed,
        ChatCode::ToolFailed,
        ChatCode::Configuration,
    ] {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert_eq!(code.to_string(), code.as_str());
    }
}

#[test]
fn the_policy_is_the_document_s() {
    for retries in [0, 1, 3] {
        let policy = formwork_chat::policy(retries);
        assert_eq!((policy.attempts, policy.patching), (retries + 1, Patching::Never));
        assert_eq!((policy.temperature, policy.backoff), (Temperature::Own, Backoff::exponential()));
        assert!(!policy.accept_incomplete && !policy.ask_after_refusal && !policy.stop_on_repeat);
        assert_eq!((policy.feedback.role, policy.feedback.keep_previous), (Role::System, true));
        let wrong = [
            Violation::new(JsonPath::root().key("answer"), "required", Stage::Schema),
            Violation::new(JsonPath::root().key("version"), "required", Stage::Schema),
        ];
        assert_eq!(
            policy.feedback.template.render(&wrong),
            "SCHEMA_VALIDATION_FAILED: the previous answer breaks the contract:\n\
             - Missing required field at path $.answer\n- Missing required field at path $.version\n\
             Return only a corrected JSON object."
        );
        let prose = [Violation::new(JsonPath::root(), "json", Stage::Read)];
        assert!(policy.feedback.template.render(&prose).starts_with("INVALID_JSON: "));
    }
}
