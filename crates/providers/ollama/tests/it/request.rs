//! Encoded requests.

use formwork_core::{Call, Enforcement, FaultKind, Message, ModelSettings, Part, Role, Sampling, Tool};
use formwork_ollama::Ollama;
use formwork_wire::Wire;
use serde_json::{Value, json};

use crate::support::{body, call, enforcing, person, with_schema};

fn refusal(wire: &Ollama, call: &Call) -> (FaultKind, String) {
    let fault = wire.encode(call).unwrap_err();
    (fault.kind, fault.message)
}

#[test]
fn a_schema_is_the_format_and_nothing_is_cut() {
    let request = Ollama::new("qwen3:8b").encode(&with_schema(person())).unwrap();
    assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("POST", "/api/chat"));
    assert_eq!(request.headers()["content-type"], "application/json");
    let sent: Value = serde_json::from_slice(request.body()).unwrap();
    let expected = json!({
        "model": "qwen3:8b",
        "messages": [{"role": "user", "content": "Maria, 34, moved to Lisbon."}],
        "stream": true,
        "format": person(),
        "options": {"num_ctx": 4096},
        "truncate": false,
        "shift": false,
    });
    assert_eq!(sent, expected);
}

#[test]
fn the_bytes_keep_the_order_of_the_properties() {
    for wire in [Ollama::new("m"), Ollama::new("m").with_generate()] {
        let request = wire.encode(&with_schema(person())).unwrap();
        let text = String::from_utf8(request.body().to_vec()).unwrap();
        let places = ["\"reasoning\":{", "\"age\":{", "\"city\":{"].map(|key| text.find(key).unwrap());
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains(r#""required":["reasoning","age","city"]"#), "{text}");
    }
}

#[test]
fn json_and_nothing_are_the_other_formats() {
    assert_eq!(body(&Ollama::new("m"), &enforcing(Enforcement::JsonObject))["format"], "json");
    assert_eq!(body(&Ollama::new("m"), &enforcing(Enforcement::None)).get("format"), None);
    assert_eq!(refusal(&Ollama::new("m"), &enforcing(Enforcement::Tool)).0, FaultKind::Unsupported);
    assert_eq!(refusal(&Ollama::new("m"), &enforcing(Enforcement::Schema)).0, FaultKind::BadRequest);
}

#[test]
fn the_sampling_is_in_the_options_and_goes_before_the_configurations() {
    let extra = json!({"top_k": 20, "temperature": 1.0, "stop": ["\n\n"]});
    let wire = Ollama::new("m").with_options(extra.as_object().unwrap().clone());
    let mut call = enforcing(Enforcement::None);
    assert_eq!(body(&wire, &call)["options"]["temperature"], 1.0);
    call.sampling = Sampling::default().with_temperature(0.3).with_top_p(0.9).with_seed(7);
    call.max_tokens = Some(400);
    let expected = json!({"top_k": 20, "temperature": 0.3, "stop": ["\n\n"], "top_p": 0.9, "seed": 7,
        "num_predict": 400, "num_ctx": 4096});
    assert_eq!(body(&wire, &call)["options"], expected);
    call.sampling.seed = Some(u64::MAX);
    assert!(body(&wire, &call)["options"]["seed"].as_u64().unwrap() <= i32::MAX as u64);
}

#[test]
fn the_context_holds_the_prompt_unless_it_is_set() {
    let long = |wire: &Ollama, bytes: usize| {
        let call = call(vec![Message::user("a".repeat(bytes))], Default::default());
        body(wire, &call)["options"]["num_ctx"].as_u64().unwrap()
    };
    let wire = Ollama::new("m");
    assert_eq!([1, 3000, 10_000, 24_000].map(|bytes| long(&wire, bytes)), [4096, 4096, 8192, 16_384]);
    assert_eq!(long(&wire.clone().with_num_ctx(6000), 24_000), 6000);
    // No more is requested than the model has, or than large models have.
    assert_eq!([24_000, 1_900_000].map(|bytes| long(&wire, bytes)), [16_384, 131_072]);
    assert_eq!(
        [24_000, 1_900_000].map(|bytes| long(&wire.clone().with_context_tokens(9000), bytes)),
        [9000; 2]
    );
    let options = |value: Value| value.as_object().unwrap().clone();
    assert_eq!(long(&wire.clone().with_options(options(json!({"num_ctx": 5000}))), 24_000), 5000);
    // A token limit in the configuration counts like one of the call.
    assert_eq!(long(&wire.with_options(options(json!({"num_predict": 10_000}))), 1), 16_384);
}

#[test]
fn settings_are_sent_only_if_they_are_set() {
    let call = enforcing(Enforcement::None);
    let plain = body(&Ollama::new("m"), &call);
    assert!(plain.get("think").is_none() && plain.get("keep_alive").is_none());
    let wire = Ollama::new("m").with_think(false).with_keep_alive("5m").with_stream(false);
    let sent = body(&wire, &call);
    assert_eq!(
        [&sent["think"], &sent["keep_alive"], &sent["stream"]],
        [&json!(false), &json!("5m"), &json!(false)]
    );
    let wire = Ollama::new("m").with_think("low").with_keep_alive(-1);
    let sent = body(&wire, &call);
    assert_eq!([&sent["think"], &sent["keep_alive"]], [&json!("low"), &json!(-1)]);
}

#[test]
fn every_kind_of_message_is_reported_in_chat() {
    let parts = |role, parts| Message { role, parts };
    let image = Part::Image { media_type: "image/png".into(), data: "aGk=".into() };
    let messages = vec![
        Message::system("Be brief."),
        parts(Role::User, vec![Part::Text { text: "What is this?".into() }, image]),
        parts(
            Role::Assistant,
            vec![
                Part::Reasoning { text: "hm".into() },
                Part::ToolCall { id: "1".into(), name: "look".into(), arguments: json!({"at": "it"}) },
            ],
        ),
        parts(Role::Tool, vec![Part::ToolResult { id: "1".into(), text: "a cat".into() }]),
        Message::assistant("A cat."),
        Message::system("Answer in JSON."),
    ];
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is this?", "images": ["aGk="]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": "it"}}}]},
        {"role": "tool", "content": "a cat", "tool_name": "look"},
        {"role": "assistant", "content": "A cat."},
        {"role": "system", "content": "Answer in JSON."},
    ]);
    assert_eq!(body(&Ollama::new("m"), &call(messages, Default::default()))["messages"], expected);
}

#[test]
fn the_oracles_prompt_is_the_prompt_of_generate() {
    let mut call = with_schema(person());
    call.messages.insert(0, Message::system("You score wallets.").into());
    let request = Ollama::new("m").with_generate().encode(&call).unwrap();
    assert_eq!(request.uri(), "/api/generate");
    let sent: Value = serde_json::from_slice(request.body()).unwrap();
    assert_eq!([&sent["system"], &sent["prompt"]], ["You score wallets.", "Maria, 34, moved to Lisbon."]);
    assert_eq!((&sent["format"], sent.get("messages")), (&person(), None));
}

#[test]
fn a_dialogue_is_written_out_for_generate() {
    let wire = Ollama::new("m").with_generate();
    let prompt = |messages: Vec<Message>| body(&wire, &call(messages, Default::default()))["prompt"].clone();
    let dialogue =
        vec![Message::user("Hi."), Message::assistant("{"), Message::system("No."), Message::user("Again.")];
    assert_eq!(prompt(dialogue), "User: Hi.\n\nAssistant: {\n\nSystem: No.\n\nUser: Again.\n\nAssistant:");
    assert_eq!(prompt(vec![Message::user("Hi."), Message::assistant("{")]), "User: Hi.\n\nAssistant: {");
    assert!(!wire.capabilities().late_system && Ollama::new("m").capabilities().late_system);
    let tool =
        Message { role: Role::Tool, parts: vec![Part::ToolResult { id: "1".into(), text: "x".into() }] };
    assert_eq!(refusal(&wire, &call(vec![tool], Default::default())).0, FaultKind::Unsupported);
}

#[test]
fn what_cannot_be_said_is_a_fault_before_anything_is_sent() {
    let tool = Tool { name: "look".into(), description: String::new(), parameters: json!({}) };
    for (wire, enforcement) in
        [(Ollama::new("m"), Enforcement::JsonObject), (Ollama::new("m").with_generate(), Enforcement::None)]
    {
        let mut tools = enforcing(enforcement);
        tools.tools.push(tool.clone());
        assert_eq!(refusal(&wire, &tools).0, FaultKind::Unsupported);
    }
    let mut tools = enforcing(Enforcement::None);
    tools.tools.push(tool);
    let function = json!({"name": "look", "description": "", "parameters": {}});
    assert_eq!(body(&Ollama::new("m"), &tools)["tools"], json!([{"type": "function", "function": function}]));
    assert_eq!(refusal(&Ollama::new("m"), &call(Vec::new(), Default::default())).0, FaultKind::BadRequest);
}

#[test]
fn schemas_that_ollama_ignores_or_dies_of_are_not_sent() {
    for schema in [json!({}), json!(true), json!("json")] {
        assert_eq!(refusal(&Ollama::new("m"), &with_schema(schema)).0, FaultKind::SchemaRefused);
    }
    let deadly = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)a$"}}});
    let (kind, message) = refusal(&Ollama::new("m"), &with_schema(deadly));
    assert_eq!(kind, FaultKind::SchemaRefused);
    assert!(message.contains("^(?=a)a$"), "{message}");
}

#[test]
fn an_effort_is_a_level_for_gpt_oss_and_a_switch_for_all_other_models() {
    for (model, effort, expected) in [
        ("gpt-oss:20b", "none", json!(false)),
        ("gpt-oss:20b", "low", json!("low")),
        ("hf.co/unsloth/gpt-oss-20b-GGUF:F16", "high", json!("high")),
        ("qwen3:8b", "none", json!(false)),
        ("qwen3:8b", "low", json!(true)),
        ("qwen3:8b", "medium", json!(true)),
        ("deepseek-r1", "high", json!(true)),
    ] {
        let settings: ModelSettings = serde_json::from_value(json!({"effort": effort, "top_k": 3})).unwrap();
        let wire = Ollama::new(model).with_settings(&settings);
        let sent = body(&wire, &enforcing(Enforcement::None));
        assert_eq!((&sent["think"], &sent["options"]["top_k"]), (&expected, &json!(3)), "{model} {effort}");
        assert_eq!(wire.capabilities().ignored_settings, [""; 0], "{model} {effort}");
    }
}
