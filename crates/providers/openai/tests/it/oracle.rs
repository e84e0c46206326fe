//! Compares the requests of Chat Completions with those of the types of `async-openai`, feature by feature, and reads the same
//! responses with both.

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionNamedToolChoice,
    ChatCompletionRequestAssistantMessage, ChatCompletionRequestDeveloperMessage,
    ChatCompletionRequestMessage as TheirMessage, ChatCompletionRequestMessageContentPartImage,
    ChatCompletionRequestMessageContentPartText, ChatCompletionRequestSystemMessage,
    ChatCompletionRequestToolMessage, ChatCompletionRequestUserMessage,
    ChatCompletionRequestUserMessageContent, ChatCompletionRequestUserMessageContentPart as TheirPart,
    ChatCompletionStreamOptions, ChatCompletionTool, ChatCompletionToolChoiceOption, ChatCompletionTools,
    CreateChatCompletionRequest, CreateChatCompletionResponse, CreateChatCompletionStreamResponse,
    FinishReason, FunctionCall, FunctionName, FunctionObject, ImageUrl, ReasoningEffort, ResponseFormat,
    ResponseFormatJsonSchema, ServiceTier, StopConfiguration, Verbosity,
};
use formwork_core::{Enforcement, Finish, Message, ModelSettings, Part, Role, Sampling, Tool};
use formwork_openai::{MaxTokensField, OpenAi, SystemRole};
use serde_json::{Value, json};

use crate::support::{JSON, STREAM, call, decode, delta, ends, schema, sent, shared, stream};

fn system() -> TheirMessage {
    ChatCompletionRequestSystemMessage::from("Answer in JSON.").into()
}

fn user(text: &str) -> TheirMessage {
    ChatCompletionRequestUserMessage::from(text).into()
}

/// Returns the request of their types for the usual messages, streamed like ours.
fn theirs() -> CreateChatCompletionRequest {
    CreateChatCompletionRequest {
        model: "m".to_owned(),
        messages: vec![system(), user("Maria, 34, moved to Lisbon.")],
        stream: Some(true),
        stream_options: Some(ChatCompletionStreamOptions { include_usage: Some(true), ..Default::default() }),
        ..Default::default()
    }
}

fn function(name: &str, description: Option<&str>, strict: Option<bool>) -> ChatCompletionTools {
    let (name, description) = (name.to_owned(), description.map(str::to_owned));
    let function = FunctionObject { name, description, parameters: Some(schema()), strict };
    ChatCompletionTools::Function(ChatCompletionTool { function })
}

fn with_settings(settings: Value) -> OpenAi {
    let settings: ModelSettings = serde_json::from_value(settings).unwrap();
    OpenAi::new("m").with_settings(&settings, "openai")
}

/// Each feature of our requests: the schema in its three modes, the messages with images, tools, their calls and results, sampling,
/// token limits, streaming, and the settings.
#[test]
#[expect(deprecated, reason = "the seed and the older token limit are")]
fn each_feature_of_a_request_means_the_same() {
    let (base, none) = (OpenAi::new("m"), || call(Enforcement::None));
    let json_schema = |strict| ResponseFormatJsonSchema {
        description: None,
        name: "Person".to_owned(),
        schema: schema(),
        strict: Some(strict),
    };
    let format = |format| CreateChatCompletionRequest { response_format: Some(format), ..theirs() };
    // Numbers that 32-bit floats hold exactly, as `async-openai` has them.
    let (mut sampled, mut limited) = (none(), none());
    sampled.sampling =
        Sampling::default().with_temperature(0.25).with_top_p(0.5).with_seed(7).with_frequency_penalty(0.5);
    limited.max_tokens = Some(400);

    let mut dialogue = none();
    let part = |role, parts| Message { role, parts };
    let text = |text: &str| Part::Text { text: text.to_owned() };
    let image = Part::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let (id, name) = ("c1".to_owned(), "look".to_owned());
    let called = Part::ToolCall { id: id.clone(), name: name.clone(), arguments: json!({"at": "Lisbon"}) };
    let result = Part::ToolResult { id: id.clone(), text: "sunny".to_owned() };
    dialogue.messages = shared([
        Message::system("Answer in JSON."),
        part(Role::User, vec![text("what"), image]),
        part(Role::Assistant, vec![text("I look."), called]),
        part(Role::Tool, vec![result]),
        Message::assistant("Done."),
    ]);
    dialogue.tools =
        vec![Tool { name: name.clone(), description: "Looks.".to_owned(), parameters: schema() }];
    let image = ImageUrl::from("data:image/png;base64,AAAA");
    let seen = ChatCompletionRequestUserMessageContent::Array(vec![
        TheirPart::Text(ChatCompletionRequestMessageContentPartText::from("what")),
        TheirPart::ImageUrl(ChatCompletionRequestMessageContentPartImage::from(image)),
    ]);
    let arguments = r#"{"at":"Lisbon"}"#.to_owned();
    let their_call =
        ChatCompletionMessageToolCall { id: id.clone(), function: FunctionCall { name, arguments } };
    let calling = ChatCompletionRequestAssistantMessage {
        tool_calls: Some(vec![ChatCompletionMessageToolCalls::Function(their_call)]),
        ..ChatCompletionRequestAssistantMessage::from("I look.")
    };
    let of_tool = ChatCompletionRequestToolMessage { content: "sunny".into(), tool_call_id: id };
    let their_dialogue = CreateChatCompletionRequest {
        messages: vec![
            ChatCompletionRequestDeveloperMessage::from("Answer in JSON.").into(),
            ChatCompletionRequestUserMessage::from(seen).into(),
            calling.into(),
            of_tool.into(),
            ChatCompletionRequestAssistantMessage::from("Done.").into(),
        ],
        tools: Some(vec![function("look", Some("Looks."), None)]),
        ..theirs()
    };
    let forced = ChatCompletionNamedToolChoice { function: FunctionName { name: "Person".to_owned() } };

    for (feature, ours, theirs) in [
        ("nothing", sent(&base, &none()), theirs()),
        (
            "schema",
            sent(&base, &call(Enforcement::Schema)),
            format(ResponseFormat::JsonSchema { json_schema: json_schema(true) }),
        ),
        (
            "schema, not strict",
            sent(&base.clone().with_strict(false), &call(Enforcement::Schema)),
            format(ResponseFormat::JsonSchema { json_schema: json_schema(false) }),
        ),
        ("object", sent(&base, &call(Enforcement::JsonObject)), format(ResponseFormat::JsonObject)),
        (
            "forced tool",
            sent(&base, &call(Enforcement::Tool)),
            CreateChatCompletionRequest {
                tools: Some(vec![function("Person", Some("Gives the answer."), Some(true))]),
                tool_choice: Some(ChatCompletionToolChoiceOption::Function(forced)),
                parallel_tool_calls: Some(false),
                ..theirs()
            },
        ),
        ("dialogue", sent(&base.clone().with_system_role(SystemRole::Developer), &dialogue), their_dialogue),
        (
            "sampling",
            sent(&base, &sampled),
            CreateChatCompletionRequest {
                temperature: Some(0.25),
                top_p: Some(0.5),
                seed: Some(7),
                frequency_penalty: Some(0.5),
                ..theirs()
            },
        ),
        (
            "limit",
            sent(&base, &limited),
            CreateChatCompletionRequest { max_completion_tokens: Some(400), ..theirs() },
        ),
        (
            "older limit",
            sent(&base.clone().with_max_tokens_field(MaxTokensField::MaxTokens), &limited),
            CreateChatCompletionRequest { max_tokens: Some(400), ..theirs() },
        ),
        (
            "not streamed",
            sent(&base.clone().with_stream(false), &none()),
            CreateChatCompletionRequest { stream: Some(false), stream_options: None, ..theirs() },
        ),
        (
            "settings",
            sent(
                &with_settings(
                    json!({"effort": "low", "verbosity": "high", "service_tier": "flex", "stop": ["END"],
                    "presence_penalty": 0.5, "top_logprobs": 3, "metadata": {"job": "a"}}),
                ),
                &none(),
            ),
            CreateChatCompletionRequest {
                reasoning_effort: Some(ReasoningEffort::Low),
                verbosity: Some(Verbosity::High),
                service_tier: Some(ServiceTier::Flex),
                stop: Some(StopConfiguration::StringArray(vec!["END".to_owned()])),
                presence_penalty: Some(0.5),
                logprobs: Some(true),
                top_logprobs: Some(3),
                metadata: Some(serde_json::from_value(json!({"job": "a"})).unwrap()),
                ..theirs()
            },
        ),
    ] {
        assert_eq!(ours, serde_json::to_value(&theirs).unwrap(), "{feature}");
        // Their types read our text without loss.
        let read: CreateChatCompletionRequest = serde_json::from_value(ours).unwrap();
        assert_eq!(read, theirs, "{feature}");
    }
}

/// A response and a stream of the API, read by their types and by ours: text, refusal, calls, finish reason, usage and model are
/// the same.
#[test]
fn both_read_the_same_of_a_response_and_of_its_stream() {
    let usage = json!({"prompt_tokens": 31, "completion_tokens": 9, "total_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 4}});
    let looks = json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    for (message, reason) in [
        (json!({"content": "{\"age\": 34}"}), "stop"),
        (json!({"content": "{\"age\""}), "length"),
        (json!({"content": null, "refusal": "No."}), "stop"),
        (json!({"content": "", "tool_calls": looks}), "tool_calls"),
        (json!({"content": ""}), "content_filter"),
    ] {
        let mut whole = message.clone();
        whole["role"] = json!("assistant");
        let document = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-test-2026",
            "choices": [{"index": 0, "message": whole, "finish_reason": reason}], "usage": usage});
        let chunk = |mut chunk: Value| {
            let more =
                json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test-2026"});
            more.as_object().unwrap().iter().for_each(|(name, value)| chunk[name] = value.clone());
            chunk
        };
        let chunks = [delta(message), ends(reason), json!({"choices": [], "usage": usage})].map(chunk);

        let theirs: CreateChatCompletionResponse = serde_json::from_value(document.clone()).unwrap();
        let (choice, counts) = (&theirs.choices[0], theirs.usage.as_ref().unwrap());
        let said = choice.message.content.as_deref().unwrap_or_default();
        let text = choice.message.refusal.as_deref().unwrap_or(said);
        let called: Vec<_> = choice.message.tool_calls.iter().flatten().collect();
        let finish = match (choice.finish_reason.unwrap(), &choice.message.refusal) {
            (_, Some(_)) => Finish::Refused,
            (FinishReason::Stop, _) => Finish::Stop,
            (FinishReason::Length, _) => Finish::Length,
            (FinishReason::ContentFilter, _) => Finish::Filtered,
            (FinishReason::ToolCalls | FinishReason::FunctionCall, _) => Finish::ToolCall,
        };
        let streamed: Vec<CreateChatCompletionStreamResponse> =
            chunks.iter().map(|chunk| serde_json::from_value(chunk.clone()).unwrap()).collect();
        assert_eq!(streamed[2].usage.as_ref(), Some(counts));

        for (media_type, body) in [(JSON, document.to_string()), (STREAM, stream(&chunks))] {
            let ours = decode(&call(Enforcement::None), media_type, &body).unwrap();
            assert_eq!((ours.text.as_str(), &ours.finish), (text, &finish), "{body}");
            assert_eq!(ours.model.as_deref(), Some(theirs.model.as_str()));
            let cached = counts.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
            let thought =
                counts.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
            let read = [
                ours.usage.input_tokens,
                ours.usage.output_tokens,
                ours.usage.cached_tokens,
                ours.usage.reasoning_tokens,
            ];
            let expected =
                [counts.prompt_tokens, counts.completion_tokens, cached.unwrap(), thought.unwrap()];
            assert_eq!(read, expected.map(u64::from));
            assert_eq!(ours.tool_calls.len(), called.len(), "{body}");
            for (ours, theirs) in ours.tool_calls.iter().zip(&called) {
                let ChatCompletionMessageToolCalls::Function(theirs) = theirs else { panic!() };
                let expected =
                    (theirs.id.as_str(), theirs.function.name.as_str(), theirs.function.arguments.as_str());
                assert_eq!((ours.id.as_str(), ours.name.as_str(), ours.arguments.as_str()), expected);
            }
        }
    }
}
