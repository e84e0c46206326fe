use formwork_chat::{ChatCode, JsonModeChatClient, StructuredAnswer};
use serde_json::json;

use crate::support::{good, model};

#[derive(Debug, Clone, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
struct City {
    name: String,
    #[schemars(range(min = 0))]
    people: i64,
}

#[test]
fn a_payload_of_ones_own_type() {
    let mut answer = good();
    answer["debug"]["schema_version"] = json!("1.1");
    answer["answer"]["data"] = json!({"name": "Lisbon", "people": -5});
    let wrong = answer.to_string();
    answer["answer"]["data"]["people"] = json!(5.45e5);
    let model = model([wrong.as_str(), &answer.to_string()]);
    let client = JsonModeChatClient::<StructuredAnswer<City>>::typed()
        .with_target(std::sync::Arc::clone(&model))
        .build()
        .unwrap();
    let reply = client.ask_blocking("Which city?").into_result().unwrap();
    assert_eq!(reply.answer.answer.data, City { name: "Lisbon".into(), people: 545_000 });
    let calls = model.calls();
    let system = calls[0].messages[0].text();
    assert!(
        system.contains("\"schema_version\": \"1.1\"")
            && system.contains("The JSON Schema of answer.data:\n{"),
        "{system}"
    );
    let correction = calls[1].messages[3].text();
    assert!(
        correction.contains("- Number out of range at $.answer.data.people: expected at least 0, found -5"),
        "{correction}"
    );
}

#[test]
fn an_answer_of_the_old_version_is_none_of_the_new() {
    let model = model([good().to_string().as_str()]);
    let client = JsonModeChatClient::<StructuredAnswer<City>>::typed().with_target(model).build().unwrap();
    let result = client.ask_blocking("x");
    let failure = result.failure().unwrap();
    let paths: Vec<_> = failure.errors.iter().map(|error| error.path.to_string()).collect();
    assert_eq!(
        (failure.code, paths),
        (ChatCode::SchemaValidationFailed, vec!["$.answer.data".into(), "$.debug.schema_version".into()])
    );
}
