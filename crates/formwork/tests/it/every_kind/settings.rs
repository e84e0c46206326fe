//! The settings of a model in the request of every wire: the table of `docs/settings.md`, and the bodies that
//! `measure/peers/settings.py` compares with those of the vendors' own packages.

use std::collections::BTreeMap;
use std::path::Path;

use formwork::Setup;
use formwork::config::Config;
use formwork::core::{Call, Enforcement, Lowered, Message, ModelSettings, Tool};
use formwork::providers::Providers;
use formwork::wire::Wire;
use formwork_anthropic::Anthropic;
use formwork_bedrock::Bedrock;
use formwork_cohere::Cohere;
use formwork_gemini::Gemini;
use formwork_ollama::Ollama;
use formwork_openai::{Api, OpenAi};
use formwork_testkit::server::{Reply, Server};
use serde_json::{Map, Value, json};

use crate::swap::Person;

/// A value of each setting, in the order of the table.
const VALUES: [(&str, &str); 18] = [
    ("effort", "\"none\""),
    ("effort", "\"minimal\""),
    ("effort", "\"low\""),
    ("effort", "\"xhigh\""),
    ("reasoning_tokens", "2048"),
    ("verbosity", "\"low\""),
    ("service_tier", "\"flex\""),
    ("stop", "[\"END\"]"),
    ("seed", "7"),
    ("top_p", "0.9"),
    ("top_k", "40"),
    ("frequency_penalty", "0.5"),
    ("presence_penalty", "0.5"),
    ("top_logprobs", "3"),
    ("parallel_tools", "false"),
    ("prompt_cache", "\"off\""),
    ("metadata", "{\"job\": \"a\"}"),
    ("user", "\"u-1\""),
];

const WIRES: [&str; 9] = [
    "openai/chat",
    "openai/responses",
    "openai/compatible",
    "anthropic",
    "gemini",
    "vertex",
    "ollama",
    "cohere",
    "bedrock",
];

/// Returns a wire with settings. The models take every parameter of sampling that their API has.
fn wire(name: &str, settings: &ModelSettings) -> Box<dyn Wire> {
    match name {
        "openai/chat" => Box::new(OpenAi::new("gpt-4.1").with_settings(settings, "openai")),
        "openai/compatible" => Box::new(OpenAi::new("m").with_settings(settings, "vllm")),
        "openai/responses" => {
            Box::new(OpenAi::new("gpt-4.1").with_api(Api::Responses).with_settings(settings, "openai"))
        }
        "anthropic" => Box::new(Anthropic::new("claude-opus-4-7").with_settings(settings)),
        "gemini" => Box::new(Gemini::new("gemini-3.5-flash").with_settings(settings)),
        "vertex" => {
            Box::new(Gemini::new("gemini-3.5-flash").with_vertex("p", "global").with_settings(settings))
        }
        "ollama" => Box::new(Ollama::new("m").with_settings(settings)),
        "cohere" => Box::new(Cohere::new("command-a-03-2025").with_settings(settings)),
        _ => Box::new(Bedrock::new("m").with_settings(settings)),
    }
}

/// Returns the body of a call with tools, under these settings.
fn body(name: &str, settings: &ModelSettings) -> Value {
    let mut call = Call::new([Message::user("x")], Lowered::new(Enforcement::None, None));
    let parameters = json!({"type": "object", "properties": {}});
    call.tools.push(Tool { name: "look".into(), description: "Looks.".into(), parameters });
    let call = call.with_sampling(settings.sampling());
    serde_json::from_slice(wire(name, settings).encode(&call).unwrap().body()).unwrap()
}

/// Returns the members of `after` that `before` does not have.
fn added(before: &Value, after: &Value) -> Map<String, Value> {
    let after = after.as_object().unwrap().iter();
    let added = after.filter_map(|(name, value)| match (&before[name], value) {
        (before, value) if before == value => None,
        (Value::Object(_), Value::Object(_)) => Some((name.clone(), added(&before[name], value).into())),
        _ => Some((name.clone(), value.clone())),
    });
    added.collect()
}

/// Writes members as paths: `text.verbosity`.
fn paths(members: &Map<String, Value>, at: &str, out: &mut Vec<String>) {
    for (name, value) in members {
        let path = format!("{at}{name}");
        match value {
            Value::Object(inside) if !matches!(name.as_str(), "metadata" | "labels" | "requestMetadata") => {
                paths(inside, &format!("{path}."), out);
            }
            _ => out.push(format!("`{path}`")),
        }
    }
}

#[test]
fn the_table_of_settings_is_that_of_every_wire() {
    let mut bodies: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
    let mut table = format!("| setting | {} |\n|{}\n", WIRES.join(" | "), "---|".repeat(WIRES.len() + 1));
    for (setting, value) in VALUES {
        let settings: ModelSettings = serde_json::from_str(&format!("{{\"{setting}\": {value}}}")).unwrap();
        let mut row = format!("| `{setting}`: `{value}` |");
        for name in WIRES {
            let before = body(name, &ModelSettings::default());
            let added = added(&before, &body(name, &settings));
            let ignored = wire(name, &settings).capabilities().ignored_settings.clone();
            let mut cell = Vec::new();
            paths(&added, "", &mut cell);
            // Each setting is sent, or reported, or what the wire does anyway.
            assert!(added.is_empty() || ignored.is_empty(), "{name} {setting}: {added:?} {ignored:?}");
            row += &match (cell.as_slice(), ignored.as_slice()) {
                ([], []) => " (nothing to send) |".to_owned(),
                ([], _) => " - |".to_owned(),
                (cell, _) => format!(" {} |", cell.join(", ")),
            };
            if !added.is_empty() {
                bodies.entry(name).or_default().insert(format!("{setting}={value}"), added.into());
            }
        }
        table += &row;
        table.push('\n');
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bodies = format!("{}\n", serde_json::to_string_pretty(&bodies).unwrap());
    let page = std::fs::read_to_string(root.join("docs/settings.md")).unwrap();
    let (text, _) = page.split_once("| setting |").unwrap();
    for (file, expected) in
        [("docs/settings.md", format!("{text}{table}")), ("measure/peers/settings.json", bodies)]
    {
        let path = root.join(file);
        if std::env::var_os("FORMWORK_WRITE").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{file} is outdated: run this test once with FORMWORK_WRITE=1");
    }
}

#[test]
fn settings_add_what_a_call_lacks_and_replace_nothing() {
    let settings: ModelSettings =
        serde_json::from_value(json!({"parallel_tools": false, "seed": 7})).unwrap();
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let call = Call::new([Message::user("x")], Lowered::new(Enforcement::Tool, schema));
    let body = |call: &Call| -> Value {
        let wire = Anthropic::new("claude-sonnet-4-6").with_settings(&settings);
        serde_json::from_slice(wire.encode(call).unwrap().body()).unwrap()
    };
    // A forced tool stays forced.
    let expected = json!({"type": "tool", "name": "answer", "disable_parallel_tool_use": true});
    assert_eq!(body(&call)["tool_choice"], expected);
    // Servers refuse settings of tools in a request without tools.
    let plain = Call::new([Message::user("x")], Lowered::new(Enforcement::None, None));
    assert_eq!(body(&plain)["tool_choice"], Value::Null);
    // The parameters of sampling are those of the call.
    let wire = OpenAi::new("gpt-4.1").with_settings(&settings, "openai");
    let body: Value = serde_json::from_slice(wire.encode(&plain).unwrap().body()).unwrap();
    assert_eq!((body["seed"].clone(), body["parallel_tool_calls"].clone()), (Value::Null, Value::Null));
}

#[tokio::test]
async fn a_setting_that_a_target_does_not_take_is_a_warning_and_the_defaults_hold_for_all() {
    let body = r#"{"message": {"role": "assistant", "content": [{"type": "text", "text": "{\"name\": \"Maria\", \"age\": 34}"}]},
        "finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 9, "output_tokens": 3}}}"#;
    let server = Server::start([Reply::json(body)]).unwrap();
    let text = format!(
        "[defaults.settings]\ntop_k = 3\nseed = 11\nverbosity = \"low\"\n[providers.a]\nkind = \"cohere\"\nmodel = \"m\"\n\
         api_key_env = \"\"\nbase_url = \"{}\"\nsettings = {{ top_k = 4, top_p = 0.5, effort = \"high\" }}",
        server.url()
    );
    let setup = Setup::open(&Config::from_toml(&text).unwrap(), &Providers::builtin()).await.unwrap();
    let outcome = setup.extractor::<Person>().build().unwrap().extract("Maria is 34.").await.unwrap();
    let warnings: Vec<_> = outcome.warnings.iter().map(ToString::to_string).collect();
    let ignored =
        |setting| format!("ignored_setting: `a` does not take the setting `{setting}`, which was not sent");
    assert_eq!(warnings, [ignored("effort = \"high\""), ignored("verbosity")]);
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert_eq!([&sent["k"], &sent["p"], &sent["seed"]], [&json!(4), &json!(0.5), &json!(11)]);
}
