//! Encoded requests.

use formwork_anthropic::{Anthropic, DEFAULT_MAX_TOKENS, Mode, Thinking};
use formwork_core::{
    Capabilities, Enforcement, FaultKind, Message, ModelSettings, Original, Part, Role, Sampling, Tool,
};
use formwork_wire::Wire;
use serde_json::{Map, Value, json};

use crate::support::{TOOL, call, schema, sent, shared, with};

fn wire() -> Anthropic {
    Anthropic::new("claude-test")
}

#[test]
fn a_request_is_complete_and_has_no_key() {
    let request = wire().encode(&call(Enforcement::Schema)).unwrap();
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/messages"));
    let headers: Vec<(&str, &str)> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(headers, [("content-type", "application/json"), ("anthropic-version", "2023-06-01")]);
    assert_eq!(
        sent(&wire(), &call(Enforcement::Schema)),
        json!({
            "model": "claude-test",
            "max_tokens": DEFAULT_MAX_TOKENS,
            "system": [{"type": "text", "text": "Answer in JSON.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Maria, 34, moved to Lisbon."}]}],
            "output_config": {"format": {"type": "json_schema", "schema": schema()}},
            "stream": true,
        })
    );
    let plain = sent(&wire().with_cache(false).with_stream(false), &call(Enforcement::None));
    assert_eq!(plain["system"], json!([{"type": "text", "text": "Answer in JSON."}]));
    assert_eq!((&plain["stream"], &plain["output_config"]), (&json!(false), &Value::Null));
}

#[test]
fn every_mode_has_its_place_for_the_schema() {
    let tool = |strict: bool| {
        let mut tool = json!({"name": TOOL, "description": "Gives the answer.", "input_schema": schema()});
        if strict {
            tool["strict"] = json!(true);
        }
        (json!([tool]), json!({"type": "tool", "name": TOOL, "disable_parallel_tool_use": true}))
    };
    for (wire, enforcement, strict) in [
        (wire().with_mode(Mode::Tool), Enforcement::Schema, true),
        (wire().with_mode(Mode::Tool).with_strict(false), Enforcement::Schema, false),
        (wire().with_mode(Mode::Tool), Enforcement::Tool, false),
        (wire(), Enforcement::Tool, false),
    ] {
        // A dialogue that has called the tool already defines it once.
        let called = Part::ToolCall { id: "t".into(), name: TOOL.into(), arguments: json!({}) };
        let called = Message { role: Role::Assistant, parts: vec![called] };
        let again = with(call(enforcement), |call| call.messages.push(called.into()));
        for call in [call(enforcement), again] {
            let body = sent(&wire, &call);
            assert_eq!((body["tools"].clone(), body["tool_choice"].clone()), tool(strict), "{wire:?}");
            assert_eq!(body["output_config"], Value::Null);
        }
    }
    let fault = wire().encode(&call(Enforcement::JsonObject)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unsupported);
    let thinking = wire().with_mode(Mode::Tool).with_thinking(Thinking::Adaptive);
    assert_eq!(thinking.encode(&call(Enforcement::Schema)).unwrap_err().kind, FaultKind::Unsupported);
    assert_eq!(sent(&thinking, &call(Enforcement::None))["thinking"], json!({"type": "adaptive"}));
}

#[test]
fn tools_of_the_caller_stand_beside_the_schema() {
    let tools = vec![Tool {
        name: "look".into(),
        description: "Looks.".into(),
        parameters: json!({"type": "object"}),
    }];
    let body = sent(&wire(), &with(call(Enforcement::Schema), |call| call.tools = tools));
    let expected = json!([{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]);
    assert_eq!((&body["tools"], &body["tool_choice"]), (&expected, &Value::Null));
}

#[test]
fn a_call_of_a_tool_is_required_unless_the_model_thinks() {
    let parameters = json!({"type": "object"});
    let tools = vec![Tool { name: "look".into(), description: String::new(), parameters }];
    let plain = call(Enforcement::None).with_required_tool();
    assert_eq!(sent(&wire(), &plain)["tool_choice"], Value::Null);
    let required = with(plain, |call| call.tools = tools);
    assert_eq!(sent(&wire(), &required)["tool_choice"], json!({"type": "any"}));
    let thinking = wire().with_thinking(Thinking::Adaptive);
    assert!(wire().capabilities().required_tools && !thinking.capabilities().required_tools);
    assert_eq!(sent(&thinking, &required)["tool_choice"], Value::Null);
    let settings = ModelSettings { reasoning_tokens: Some(2_000), ..ModelSettings::default() };
    let thinking = with(required, |call| call.settings = Some(settings.into()));
    assert_eq!(sent(&wire(), &thinking)["tool_choice"], Value::Null);
}

#[test]
fn an_effort_is_sent_to_models_that_have_it() {
    let all = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    for (model, levels) in [
        ("claude-3-7-sonnet-20250219", &[][..]),
        ("claude-opus-4-20250514", &[]),
        ("claude-opus-4-1", &[]),
        ("claude-sonnet-4-5-20250929", &[]),
        ("claude-haiku-4-5@20251001", &[]),
        ("claude-opus-4-5-20251101", &["low", "medium", "high"]),
        ("claude-sonnet-4-6", &["low", "medium", "high", "max"]),
        ("claude-opus-4-6", &["low", "medium", "high", "max"]),
        ("claude-opus-4-7", &["low", "medium", "high", "xhigh", "max"]),
        ("claude-sonnet-5", &["low", "medium", "high", "xhigh", "max"]),
        ("claude-test", &["low", "medium", "high", "xhigh", "max"]),
        ("kimi-k2", &["low", "medium", "high", "xhigh", "max"]),
    ] {
        for effort in all {
            let settings: ModelSettings =
                serde_json::from_value(json!({"effort": effort, "user": "u"})).unwrap();
            let wire = Anthropic::new(model).with_settings(&settings);
            let body = sent(&wire, &call(Enforcement::None));
            let expected = if levels.contains(&effort) { json!(effort) } else { Value::Null };
            assert_eq!(body["output_config"]["effort"], expected, "{model} {effort}");
            assert_eq!(body["thinking"]["type"] == "disabled", effort == "none", "{model} {effort}");
            let is_taken = effort == "none" || levels.contains(&effort);
            assert_eq!(wire.capabilities().ignored_settings.is_empty(), is_taken, "{model} {effort}");
            assert_eq!(body["metadata"]["user_id"], "u");
        }
    }
}

#[test]
fn parallel_calls_are_a_member_of_every_choice_that_allows_a_call() {
    let tool =
        Tool { name: "look".into(), description: String::new(), parameters: json!({"type": "object"}) };
    let called = Part::ToolCall { id: "1".into(), name: "look".into(), arguments: json!({}) };
    let called = Message { role: Role::Assistant, parts: vec![called] };
    let plain = call(Enforcement::None);
    let offered = with(plain.clone(), |call| call.tools = vec![tool]);
    let required = offered.clone().with_required_tool();
    let ended = with(plain.clone(), |call| call.messages.push(called.into()));
    for parallel in [false, true] {
        let settings = ModelSettings { parallel_tools: Some(parallel), ..ModelSettings::default() };
        let of_configuration = wire().with_settings(&settings);
        for (call, expected) in [
            (&plain, Value::Null),
            (&ended, json!({"type": "none"})),
            (&offered, json!({"type": "auto", "disable_parallel_tool_use": !parallel})),
            (&required, json!({"type": "any", "disable_parallel_tool_use": !parallel})),
            // The document is the input of one call.
            (
                &call(Enforcement::Tool),
                json!({"type": "tool", "name": TOOL, "disable_parallel_tool_use": true}),
            ),
        ] {
            let of_call = with(call.clone(), |call| call.settings = Some(settings.clone().into()));
            for (wire, call) in
                [(&of_configuration, call), (&wire().with_settings(&ModelSettings::default()), &of_call)]
            {
                assert_eq!(sent(wire, call)["tool_choice"], expected, "{parallel}");
            }
        }
    }
}

#[test]
fn the_limit_of_tokens_is_the_first_that_is_known_and_never_above_the_model_s() {
    let known = |output: Option<u32>| {
        let mut capabilities = Capabilities::new(Enforcement::Schema);
        capabilities.output_tokens = output;
        wire().with_capabilities(capabilities)
    };
    for (wire, max_tokens, limit) in [
        (known(None), None, DEFAULT_MAX_TOKENS),
        (known(Some(64_000)), None, 64_000),
        (known(Some(64_000)).with_max_tokens(500), None, 500),
        (known(Some(64_000)).with_max_tokens(500), Some(900), 900),
        (known(Some(64_000)), Some(100_000), 64_000),
        (known(None), Some(100_000), 100_000),
    ] {
        let call = with(call(Enforcement::None), |call| call.max_tokens = max_tokens);
        assert_eq!(sent(&wire, &call)["max_tokens"], limit, "{max_tokens:?} {:?}", wire.capabilities());
    }
}

#[test]
fn thinking_effort_and_sampling_are_sent_where_the_api_takes_them_together() {
    let sampling = Sampling::default().with_temperature(0.3).with_top_p(0.9).with_seed(7);
    let call = with(call(Enforcement::Schema), |call| {
        call.sampling = sampling;
        call.max_tokens = Some(4000);
    });
    let takes_it = || wire().with_capabilities(Capabilities::new(Enforcement::Schema).with_temperature());
    for (wire, temperature, thinking) in [
        (wire(), Value::Null, Value::Null),
        (takes_it(), json!(0.3), Value::Null),
        (takes_it().with_thinking(Thinking::Off), json!(0.3), json!({"type": "disabled"})),
        (takes_it().with_thinking(Thinking::Adaptive), Value::Null, json!({"type": "adaptive"})),
        (
            takes_it().with_thinking(Thinking::Budget { budget_tokens: 3000 }),
            Value::Null,
            json!({"type": "enabled", "budget_tokens": 3000}),
        ),
    ] {
        let body = sent(&wire, &call);
        assert_eq!((&body["temperature"], &body["thinking"]), (&temperature, &thinking));
        assert_eq!((&body["top_p"], &body["seed"]), (&Value::Null, &Value::Null));
    }
    let eats_all = wire().with_thinking(Thinking::Budget { budget_tokens: 4000 });
    let fault = eats_all.encode(&call).unwrap_err();
    assert!(fault.kind == FaultKind::BadRequest && fault.message.contains("4000"), "{fault}");
    let body = sent(&wire().with_effort("low"), &call);
    assert_eq!(body["output_config"]["effort"], "low");
    assert_eq!(body["output_config"]["format"]["type"], "json_schema");
    let extra = Map::from_iter([
        ("metadata".to_owned(), json!({"user_id": "u"})),
        ("stream".to_owned(), json!(false)),
    ]);
    let body = sent(&wire().with_extra(extra), &call);
    assert_eq!((&body["metadata"]["user_id"], &body["stream"]), (&json!("u"), &json!(false)));
}

#[test]
fn a_temperature_above_that_of_the_api_is_not_sent() {
    let takes_it = Capabilities::new(Enforcement::None).with_temperature();
    let limited = wire().with_capabilities(takes_it.clone().with_max_temperature(0.5));
    for (wire, temperature, is_sent) in [
        (wire().with_capabilities(takes_it.clone()), 0.0, true),
        (wire().with_capabilities(takes_it.clone()), 1.0, true),
        (wire().with_capabilities(takes_it), 1.2, false),
        (limited, 0.7, false),
    ] {
        assert_eq!(wire.capabilities().takes_temperature(temperature), is_sent);
        let sampling = Sampling::default().with_temperature(temperature);
        let body = sent(&wire, &with(call(Enforcement::None), |call| call.sampling = sampling));
        assert_eq!(body["temperature"].as_f64(), is_sent.then_some(temperature));
    }
}

/// Roles and texts of the encoded dialogue, system first.
fn dialogue(messages: Vec<Message>) -> Vec<(String, Vec<String>)> {
    let body = sent(&wire(), &with(call(Enforcement::None), |call| call.messages = shared(messages)));
    let texts = |blocks: &Value| -> Vec<String> {
        let blocks = blocks.as_array().into_iter().flatten();
        blocks.map(|block| block["text"].as_str().or(block["type"].as_str()).unwrap().to_owned()).collect()
    };
    let system = Some(("system".to_owned(), texts(&body["system"]))).filter(|(_, texts)| !texts.is_empty());
    let turns = body["messages"].as_array().unwrap().iter();
    let turns = turns.map(|turn| (turn["role"].as_str().unwrap().to_owned(), texts(&turn["content"])));
    system.into_iter().chain(turns).collect()
}

/// Messages and the turns that they are encoded as.
type Case = (&'static [(Role, &'static str)], &'static [(&'static str, &'static [&'static str])]);

#[test]
fn turns_alternate_and_instructions_stand_apart() {
    use Role::{Assistant, System, User};
    let cases: &[Case] = &[
        (&[(System, "a"), (System, "b"), (User, "c")], &[("system", &["a", "b"]), ("user", &["c"])]),
        (&[(User, "a"), (User, "b")], &[("user", &["a", "b"])]),
        (
            &[(User, "a"), (Assistant, "b"), (Assistant, "c"), (User, "d")],
            &[("user", &["a"]), ("assistant", &["b", "c"]), ("user", &["d"])],
        ),
        // A late system message becomes text of the next user turn, or of the last one.
        (
            &[(User, "a"), (Assistant, "b"), (System, "c"), (User, "d")],
            &[("user", &["a"]), ("assistant", &["b"]), ("user", &["c", "d"])],
        ),
        (&[(User, "a"), (System, "b")], &[("user", &["a", "b"])]),
        (
            &[(User, "a"), (Assistant, "b"), (System, "c")],
            &[("user", &["a"]), ("assistant", &["b"]), ("user", &["c"])],
        ),
        // The API requires a user turn and refuses blank texts.
        (&[(System, "a")], &[("user", &["a"])]),
        (&[(User, "a"), (Assistant, " \n"), (User, "b")], &[("user", &["a", "b"])]),
    ];
    for (messages, expected) in cases {
        let messages = messages.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(role, texts)| ((*role).to_owned(), texts.iter().map(|text| (*text).to_owned()).collect()))
            .collect();
        assert_eq!(dialogue(messages), expected);
    }
    let empty = with(call(Enforcement::None), |call| call.messages = shared([Message::user(" ")]));
    assert_eq!(wire().encode(&empty).unwrap_err().kind, FaultKind::BadRequest);
}

#[test]
fn images_and_tools_are_blocks_and_thoughts_are_left_out() {
    let part = |role: Role, parts: Vec<Part>| Message { role, parts };
    let image = Part::Image { media_type: "image/png".into(), data: "AAAA".into() };
    let text = |text: &str| Part::Text { text: text.into() };
    let called = Part::ToolCall { id: "t1".into(), name: "look".into(), arguments: json!({"at": 1}) };
    let result = Part::ToolResult { id: "t1".into(), text: "a dog".into() };
    let messages = vec![
        part(Role::User, vec![text("see"), image.clone()]),
        part(Role::Assistant, vec![Part::Reasoning { text: "hm".into() }, called.clone()]),
        part(Role::Tool, vec![text("beside"), result]),
        Message::system("late"),
    ];
    let body = sent(&wire(), &with(call(Enforcement::None), |call| call.messages = shared(messages)));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a dog"},
                {"type": "text", "text": "beside"},
                {"type": "text", "text": "late"},
            ]},
        ])
    );
    // The server refuses calls and results without tools.
    let known = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    assert_eq!((&body["tools"], &body["tool_choice"]), (&known, &json!({"type": "none"})));
    for (role, misplaced) in [(Role::Assistant, image), (Role::User, called)] {
        let call =
            with(call(Enforcement::None), |call| call.messages = shared([part(role, vec![misplaced])]));
        assert_eq!(wire().encode(&call).unwrap_err().kind, FaultKind::BadRequest);
    }
}

#[test]
fn a_call_and_its_result_have_one_valid_identifier() {
    let ids = ["functions.f:0", "a.b", "a:b", "a_b", "toolu_01-x", ""];
    let part = |role: Role, parts: Vec<Part>| Message { role, parts };
    let called = |id: &str| Part::ToolCall { id: id.into(), name: "look".into(), arguments: json!({}) };
    let result = |id: &str| Part::ToolResult { id: id.into(), text: "a dog".into() };
    let results = part(Role::Tool, ids.map(result).to_vec());
    // The turn as another server with this API sent it has the same identifiers.
    let original = ids.map(|id| json!({"type": "tool_use", "id": id, "name": "look", "input": {}}));
    let original = Part::Original(Original::new("anthropic", json!(original), ids));
    for turn in [ids.map(called).to_vec(), vec![original]] {
        let messages = [Message::user("look"), part(Role::Assistant, turn), results.clone()];
        let body = sent(&wire(), &with(call(Enforcement::None), |call| call.messages = shared(messages)));
        let all = |turn: usize, member: &str| -> Vec<String> {
            let blocks = body["messages"][turn]["content"].as_array().unwrap().iter();
            blocks.map(|block| block[member].as_str().unwrap().to_owned()).collect()
        };
        let mut written = all(1, "id");
        assert_eq!(written, all(2, "tool_use_id"));
        assert_eq!(written[3..5], ids[3..5], "valid identifiers stay");
        let is_safe = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
        assert!(written.iter().all(|id| !id.is_empty() && id.bytes().all(is_safe)), "{written:?}");
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), ids.len(), "{written:?}");
    }
}
