//! Encoded requests.

use formwork_core::{Enforcement, Lowered, Message, ModelSettings, Part, Role, Sampling, Tool};
use formwork_gemini::{Gemini, ThinkingLevel};
use formwork_wire::Wire;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{body, call, enforcing, lowered};

#[test]
fn the_model_and_the_method_are_the_path() {
    let any = enforcing(Enforcement::None, None);
    let streamed = Gemini::new("models/gemini-2.5-flash");
    let vertex = Gemini::new("gemini-2.5-flash").with_vertex("p-1", "europe-west4").with_stream(false);
    let tuned = Gemini::new("tunedModels/mine-7").with_stream(false);
    for (wire, path) in [
        (streamed, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        (
            vertex,
            "/v1/projects/p-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent",
        ),
        (tuned, "/v1beta/tunedModels/mine-7:generateContent"),
    ] {
        let request = wire.encode(&any).unwrap();
        assert_eq!(request.uri(), path);
        // The transport adds the key.
        let headers: Vec<_> = request.headers().keys().map(|name| name.as_str()).collect();
        assert_eq!(headers, ["content-type"]);
    }
    assert!(Gemini::new("no model").encode(&any).is_err());
}

#[test]
fn each_dialect_has_its_members() {
    let schema = json!({"type": "object", "properties": {"n": {"enum": [1, 2]}, "a": {"type": ["string", "null"]}}, "required": ["n", "a"]});
    for (dialect, expected) in [
        (
            "gemini",
            json!({"responseMimeType": "application/json", "responseJsonSchema": {
                "type": "object",
                "properties": {"n": {"type": "integer", "enum": [1, 2]}, "a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["n", "a"],
                "additionalProperties": false,
            }}),
        ),
        (
            "gemini-openapi",
            json!({"responseMimeType": "application/json", "responseSchema": {
                "type": "object",
                "properties": {"n": {"type": "string", "enum": ["1", "2"]}, "a": {"nullable": true, "type": "string"}},
                "propertyOrdering": ["n", "a"],
                "required": ["n", "a"],
            }}),
        ),
        ("json-object", json!({"responseMimeType": "application/json"})),
        ("prompt", Value::Null),
    ] {
        let sent = body(&Gemini::new("m"), &lowered(dialect, &schema));
        assert_eq!(sent["generationConfig"], expected, "{dialect}");
    }
}

#[test]
fn a_tool_is_forced_where_its_arguments_are_the_answer() {
    let schema = json!({"type": "object"});
    let sent = body(&Gemini::new("m"), &enforcing(Enforcement::Tool, Some(schema.clone())));
    assert_eq!(
        sent["tools"],
        json!([{"functionDeclarations": [{"name": "person", "description": "Gives the answer.", "parametersJsonSchema": schema}]}])
    );
    assert_eq!(
        sent["toolConfig"]["functionCallingConfig"],
        json!({"mode": "ANY", "allowedFunctionNames": ["person"]})
    );
    let tool = Tool { name: "look_up".into(), description: "Looks up.".into(), parameters: schema };
    let mut call = enforcing(Enforcement::None, None);
    call.tools.push(tool);
    let sent = body(&Gemini::new("m"), &call);
    assert_eq!(sent["tools"][0]["functionDeclarations"][0]["name"], "look_up");
    assert_eq!(sent.get("toolConfig"), None);
    let sent = body(&Gemini::new("m"), &call.with_required_tool());
    assert_eq!(sent["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
}

#[test]
fn the_dialogue_has_an_instruction_and_two_roles() {
    let image = Part::Image { media_type: "image/png".into(), data: "AA==".into() };
    let called =
        Part::ToolCall { id: "c1".into(), name: "look_up".into(), arguments: json!({"q": "Lisbon"}) };
    let result = |text: &str| Message {
        role: Role::Tool,
        parts: vec![Part::ToolResult { id: "c1".into(), text: text.into() }],
    };
    let thought = Part::Reasoning { text: "hm".into() };
    let messages = vec![
        Message::system("one"),
        Message::system("two"),
        Message { role: Role::User, parts: vec![image] },
        Message::user("what is it?"),
        Message { role: Role::Assistant, parts: vec![thought, called] },
        result("{\"city\": true}"),
        result("plain"),
        Message::assistant("a city"),
        Message::system("late"),
        Message::user(""),
    ];
    let sent = body(&Gemini::new("m"), &call(messages, Lowered::default()));
    assert_eq!(sent["systemInstruction"], json!({"parts": [{"text": "one"}, {"text": "two"}]}));
    let answered = |response: Value| json!({"functionResponse": {"name": "look_up", "response": response}});
    assert_eq!(
        sent["contents"],
        json!([
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"text": "what is it?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look_up", "args": {"q": "Lisbon"}}}]},
            {"role": "user", "parts": [answered(json!({"city": true})), answered(json!({"result": "plain"}))]},
            {"role": "model", "parts": [{"text": "a city"}]},
            {"role": "user", "parts": [{"text": "late"}]},
        ])
    );
}

#[test]
fn there_is_always_some_content() {
    let sent = body(&Gemini::new("m"), &call(vec![Message::system("all of it")], Lowered::default()));
    assert_eq!(sent, json!({"contents": [{"role": "user", "parts": [{"text": "all of it"}]}]}));
    for messages in [vec![], vec![Message::user("")]] {
        assert!(Gemini::new("m").encode(&call(messages, Lowered::default())).is_err());
    }
    let misplaced = Message {
        role: Role::System,
        parts: vec![Part::Image { media_type: String::new(), data: String::new() }],
    };
    let fault = Gemini::new("m").encode(&call(vec![misplaced, Message::user("x")], Lowered::default()));
    assert!(fault.unwrap_err().message.contains("a system message cannot contain an image"));
}

#[test]
fn what_a_call_sets_goes_before_the_configuration_and_within_the_promises() {
    let generation = json!({"topK": 3, "stopSequences": ["END"], "maxOutputTokens": 9, "temperature": 2.0});
    let Value::Object(generation) = generation else { panic!("{generation} is no object") };
    let wire = Gemini::new("m")
        .with_generation(generation)
        .with_thinking_budget(0)
        .with_thinking_level(ThinkingLevel::Low)
        .with_thoughts(true);
    let mut promised = wire.capabilities().clone().with_output_tokens(100);
    let sampling = Sampling::default().with_temperature(0.3).with_top_p(0.5).with_seed(7);
    let call = enforcing(Enforcement::None, None).with_sampling(sampling).with_max_tokens(400);
    let thinking = json!({"thinkingBudget": 0, "thinkingLevel": "low", "includeThoughts": true});
    let sent = body(&wire.clone().with_capabilities(promised.clone()), &call);
    assert_eq!(
        sent["generationConfig"],
        json!({"topK": 3, "stopSequences": ["END"], "maxOutputTokens": 100, "temperature": 0.3, "topP": 0.5, "seed": 7, "thinkingConfig": thinking})
    );
    (promised.temperature, promised.top_p, promised.seed) = (false, false, false);
    let sent = body(&Gemini::new("m").with_capabilities(promised), &call);
    assert_eq!(sent["generationConfig"], json!({"maxOutputTokens": 100}));
    assert_eq!(
        body(&Gemini::new("m").with_generation(Map::new()), &enforcing(Enforcement::None, None))
            .get("generationConfig"),
        None
    );
}

proptest! {
    #[test]
    fn seeds_fit_into_32_bits(seed in any::<u64>()) {
        let sampling = Sampling::default().with_seed(seed);
        let call = enforcing(Enforcement::None, None).with_sampling(sampling);
        let sent = body(&Gemini::new("m"), &call)["generationConfig"]["seed"].as_u64().unwrap();
        prop_assert!(i32::try_from(sent).is_ok());
        prop_assert!(seed > i32::MAX as u64 || sent == seed);
    }
}

#[test]
fn an_effort_is_a_level_from_gemini_3_on_and_a_budget_before() {
    let budget = |tokens: u32| json!({"thinkingBudget": tokens});
    let level = |level: &str| json!({"thinkingLevel": level});
    for (model, effort, expected) in [
        ("gemini-2.0-flash", "low", budget(1024)),
        ("gemini-2.5-flash", "none", budget(0)),
        ("gemini-2.5-pro", "minimal", budget(1024)),
        ("gemini-2.5-pro", "low", budget(1024)),
        ("models/gemini-2.5-pro", "medium", budget(8192)),
        ("gemini-2.5-flash-lite", "high", budget(24_576)),
        ("gemini-3-pro-preview", "none", budget(0)),
        ("gemini-3.5-flash", "minimal", level("minimal")),
        ("gemini-3.5-flash", "high", level("high")),
        ("gemini-flash-latest", "low", level("low")),
        // No model has it.
        ("gemini-2.5-pro", "xhigh", Value::Null),
        ("gemini-3.5-flash", "xhigh", Value::Null),
    ] {
        let settings: ModelSettings = serde_json::from_value(json!({"effort": effort, "top_k": 3})).unwrap();
        for wire in [Gemini::new(model), Gemini::new(model).with_vertex("p-1", "global")] {
            let wire = wire.with_settings(&settings);
            let sent = body(&wire, &enforcing(Enforcement::None, None));
            let thinking = &sent["generationConfig"]["thinkingConfig"];
            assert_eq!(
                (thinking, &sent["generationConfig"]["topK"]),
                (&expected, &json!(3)),
                "{model} {effort}"
            );
            let is_ignored = wire.capabilities().ignored_settings == [format!("effort = {effort:?}")];
            assert_eq!(is_ignored, expected.is_null(), "{model} {effort}");
        }
    }
}
