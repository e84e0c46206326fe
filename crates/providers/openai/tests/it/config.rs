//! The configuration section of a model.

use formwork_core::{Enforcement, ErrorKind};
use formwork_openai::{AZURE, OpenAiConfig, Resolved, presets};
use formwork_wire::{Auth, Wire};

use crate::support::{call, sent};

fn resolved(text: &str) -> Resolved {
    toml::from_str::<OpenAiConfig>(text).unwrap().resolve().unwrap()
}

fn error(text: &str) -> String {
    let error = toml::from_str::<OpenAiConfig>(text).unwrap().resolve().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn a_model_is_enough() {
    let resolved = resolved(r#"model = "gpt-4.1""#);
    assert_eq!(resolved.base_url, "https://api.openai.com/v1");
    assert_eq!((resolved.api_key_env.as_deref(), resolved.auth), (Some("OPENAI_API_KEY"), Auth::BEARER));
    let capabilities = resolved.wire.capabilities();
    assert_eq!(capabilities.dialects, ["openai", "json-object", "prompt"]);
    assert_eq!((capabilities.enforcement, capabilities.temperature), (Enforcement::Schema, true));
}

#[test]
fn fields_win_over_the_preset() {
    let resolved = resolved(
        r#"
        model = "x"
        preset = "openrouter"
        base_url = "http://localhost:9/v1/"
        api_key_env = ""
        dialects = ["json-object", "prompt"]
        stream = false
        max_tokens_field = "max_completion_tokens"
        headers = { x-title = "t" }
        extra = { top_k = 5 }
        capabilities = { temperature = false, output_tokens = 7 }
        "#,
    );
    assert_eq!((resolved.base_url.as_str(), resolved.api_key_env), ("http://localhost:9/v1", None));
    assert_eq!(resolved.headers["x-title"], "t");
    let mut call = call(Enforcement::JsonObject);
    call.sampling.temperature = Some(0.1);
    call.max_tokens = Some(100);
    let body = sent(&resolved.wire, &call);
    assert_eq!((body["max_completion_tokens"].as_u64(), body["stream"].as_bool()), (Some(7), Some(false)));
    assert_eq!((body["top_k"].as_u64(), body.get("temperature")), (Some(5), None));
    assert_eq!(body["provider"]["require_parameters"], true);
    assert_eq!(resolved.wire.capabilities().enforcement, Enforcement::JsonObject);
}

#[test]
fn null_is_no_key() {
    let config: OpenAiConfig = serde_json::from_str(r#"{"model": "m", "api_key_env": null}"#).unwrap();
    assert_eq!(config.resolve().unwrap().api_key_env, None);
    let written = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<OpenAiConfig>(&written).unwrap(), config);
}

#[test]
fn azure() {
    let text = r#"
        model = "deployment"
        preset = "azure"
        base_url = "https://r.openai.azure.com/openai/deployments/deployment"
        api_version = "2024-10-21"
    "#;
    let resolved = resolved(text);
    assert_eq!((resolved.auth, resolved.auth.header), (AZURE, "api-key"));
    let uri = resolved.wire.encode(&call(Enforcement::None)).unwrap().uri().to_string();
    assert_eq!(uri, "/chat/completions?api-version=2024-10-21");
}

#[test]
fn mistakes_are_reported() {
    assert!(error(r#"model = "m""preset = "gorq""#.replace("\"\"", "\"\n").as_str()).contains("groq"));
    assert!(error("model = \"m\"\npreset = \"azure\"").contains("base_url"));
    assert!(error("model = \" \"").contains("`model`"));
    assert!(error("model = \"m\"\napi_version = \"1 & 2\"").contains("api_version"));
    let unknown = toml::from_str::<OpenAiConfig>("model = \"m\"\ntemperatur = 1").unwrap_err().to_string();
    assert!(unknown.contains("temperatur"), "{unknown}");
}

#[test]
fn every_preset_makes_a_provider() {
    for preset in presets() {
        let config = OpenAiConfig {
            preset: Some(preset.name.clone()),
            base_url: preset.base_url.clone().or(Some("https://example.com".to_owned())),
            ..OpenAiConfig::new("m")
        };
        let resolved = config.resolve().unwrap();
        assert_eq!(resolved.name, preset.name);
        for name in &resolved.wire.capabilities().dialects {
            assert!(formwork_dialect::dialect(name).is_some(), "{}: {name}", preset.name);
        }
        resolved.wire.encode(&call(resolved.wire.capabilities().enforcement)).unwrap();
    }
}

#[test]
fn the_schema_of_a_configuration_has_words_for_every_field() {
    let schema = serde_json::to_value(schemars::schema_for!(OpenAiConfig)).unwrap();
    for (name, field) in schema["properties"].as_object().unwrap() {
        assert!(field["description"].is_string(), "{name}");
    }
    assert_eq!(
        (&schema["required"], &schema["additionalProperties"]),
        (&serde_json::json!(["model"]), &false.into())
    );
}
