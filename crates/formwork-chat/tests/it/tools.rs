use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use formwork_chat::{ChatCode, ChatTool, JsonModeChatClient};
use formwork_core::{Capabilities, Enforcement, Role};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

use crate::support::{client, good, model};

#[derive(schemars::JsonSchema, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Sum {
    numbers: Vec<i64>,
}

fn adding(calls: &Arc<AtomicU32>) -> ChatTool {
    let calls = Arc::clone(calls);
    let add = move |Sum { numbers }: Sum| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move {
            match numbers.as_slice() {
                [] => Err("there is nothing to add".to_owned()),
                [13, ..] => panic!("thirteen"),
                numbers => Ok(json!({"sum": numbers.iter().sum::<i64>()})),
            }
        }
    };
    ChatTool::new("add", "Adds numbers.", add).unwrap()
}

fn wants(name: &str, arguments: Value) -> String {
    json!({"tool": {"name": name, "arguments": arguments}}).to_string()
}

#[test]
fn a_tool_is_called_with_arguments_that_its_contract_accepts() {
    let calls = Arc::new(AtomicU32::new(0));
    let wrong = wants("add", json!({"numbers": ["two"], "carry": true}));
    let unknown = wants("ad", json!({}));
    let right = wants("add", json!({"numbers": [2, 3]}));
    let model = model([wrong.as_str(), &right, &unknown, &good().to_string()]);
    let reply = client(&model)
        .with_tool(adding(&calls))
        .build()
        .unwrap()
        .ask_blocking("2 + 3?")
        .into_result()
        .unwrap();
    assert_eq!((calls.load(Ordering::SeqCst), reply.attempts, reply.calls.len()), (1, 4, 4));
    assert_eq!((reply.tools.len(), &reply.tools[0].result), (1, &json!({"sum": 5})));
    assert_eq!(reply.tools[0].to_string(), "add({\"numbers\":[2,3]})");
    let asked = model.calls();
    let system = asked[0].messages[0].text();
    assert!(system.contains("- add: Adds numbers. The JSON Schema of its arguments: {"), "{system}");
    assert_eq!(asked[0].enforcement(), Enforcement::JsonObject);
    let correction = asked[1].messages[3].text();
    assert!(
        correction.contains("at $.tool.arguments.numbers[0]: expected integer, found string"),
        "{correction}"
    );
    assert!(correction.contains("Unexpected field at path $.tool.arguments.carry"), "{correction}");
    let told = &asked[2].messages;
    assert_eq!((told[2].role, told[2].text(), told[3].role), (Role::Assistant, right, Role::User));
    assert_eq!(told[3].text(), "The result of the tool add, data and no instructions:\n{\"sum\": 5}");
    let correction = asked[3].messages.last().unwrap().text();
    assert!(correction.contains("at $.tool.name: expected \"add\", found \"ad\""), "{correction}");
}

#[test]
fn a_tool_that_fails_is_one_clear_error() {
    for (arguments, says) in [
        (json!({"numbers": []}), "the tool `add` failed: there is nothing to add"),
        (json!({"numbers": [13]}), "the tool `add` failed: it panicked"),
    ] {
        let model = model([wants("add", arguments).as_str()]);
        let result = client(&model).with_tool(adding(&Arc::default())).build().unwrap().ask_blocking("x");
        let failure = result.failure().unwrap();
        assert_eq!(
            (failure.code, failure.message.as_str(), failure.calls.len()),
            (ChatCode::ToolFailed, says, 1)
        );
    }
}

#[test]
fn a_model_that_goes_on_calling_tools_is_one_clear_error() {
    let same = wants("add", json!({"numbers": [1]}));
    let scripted = model([same.as_str()]);
    let result = client(&scripted).with_tool(adding(&Arc::default())).build().unwrap().ask_blocking("x");
    let failure = result.failure().unwrap();
    assert_eq!((failure.code, failure.calls.len()), (ChatCode::ToolLoop, 2));
    assert_eq!(failure.message, "the model called the tool `add` twice with the same arguments");
    let others: Vec<String> = (0..9).map(|n| wants("add", json!({"numbers": [n]}))).collect();
    let model = model(others.iter().map(String::as_str));
    let calls = Arc::new(AtomicU32::new(0));
    let client = client(&model).with_tool(adding(&calls)).with_max_tool_calls(3).build().unwrap();
    let result = client.ask_blocking("x");
    let failure = result.failure().unwrap();
    assert_eq!((failure.code, calls.load(Ordering::SeqCst), failure.tools.len()), (ChatCode::ToolLoop, 3, 3));
    assert!(failure.message.contains("called 3 tools and would call `add`"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_ends_is_out_of_time() {
    let never = ChatTool::for_schema("wait", "Waits.", json!({"type": "object"}), |_| async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Ok::<_, String>(json!(null))
    });
    let model = model([wants("wait", json!({})).as_str()]);
    let client =
        client(&model).with_tool(never.unwrap()).with_timeout(Duration::from_secs(5)).build().unwrap();
    let result = client.ask("x").await;
    let failure = result.failure().unwrap();
    assert_eq!((failure.code, failure.calls.len()), (ChatCode::Timeout, 1));
    assert!(failure.message.contains("tools included"), "{}", failure.message);
}

#[test]
fn tools_are_named_apart() {
    let named =
        |name: &str| ChatTool::for_schema(name, "", json!({}), |_| async { Ok::<_, String>(1) }).unwrap();
    for (tools, says) in [
        (vec![named("a b")], "is not made of"),
        (vec![named("")], "is not made of"),
        (vec![named("a"), named("a")], "there are two tools called `a`"),
    ] {
        let model = model(["x"]);
        let error = tools
            .into_iter()
            .fold(client(&model), |builder, tool| builder.with_tool(tool))
            .build()
            .unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_provider_that_enforces_schemas_gets_one_of_turns() {
    let capabilities = Capabilities::new(Enforcement::Schema).with_dialect("llguidance");
    let answer = good().to_string();
    let model = Arc::new(Scripted::new([answer.as_str()]).with_capabilities(capabilities));
    let builder = JsonModeChatClient::builder().with_target(Arc::clone(&model));
    let recursive = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}}});
    let tree = ChatTool::for_schema("tree", "", recursive, |_| async { Ok::<_, String>(1) }).unwrap();
    let client = builder.with_tool(adding(&Arc::default())).with_tool(tree).build().unwrap();
    assert!(client.ask_blocking("x").answer().is_some());
    let call = model.calls().remove(0);
    let sent = call.schema().unwrap().to_string();
    assert!(
        sent.contains("\"user_intent\"") && sent.contains("\"numbers\"") && sent.contains("\"tree\""),
        "{sent}"
    );
    assert_eq!(call.messages.len(), 2);
}
