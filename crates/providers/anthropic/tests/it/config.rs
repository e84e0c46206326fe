//! The configuration section of a model.

use formwork_anthropic::{AnthropicConfig, DEFAULT_KEY_ENV, Mode, Thinking};
use formwork_wire::Wire;
use serde_json::{Value, json};

fn read(fields: Value) -> Result<AnthropicConfig, String> {
    let mut section = json!({"model": "claude-test"});
    section.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(section).map_err(|error| error.to_string())
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = read(json!({})).unwrap();
    assert_eq!(config, AnthropicConfig::new("claude-test"));
    assert_eq!(
        (config.base_url().as_str(), config.key_env()),
        ("https://api.anthropic.com", Some(DEFAULT_KEY_ENV))
    );
    let wire = config.wire().unwrap();
    let promised = wire.capabilities();
    assert_eq!(promised.dialects, ["anthropic", "prompt"]);
    assert!(!promised.temperature && !promised.top_p && !promised.seed && !promised.late_system);
    assert_eq!((promised.default_max_tokens, promised.output_tokens), (None, None));
    assert_eq!(
        serde_json::from_value::<AnthropicConfig>(serde_json::to_value(&config).unwrap()).unwrap(),
        config
    );
}

#[test]
fn the_address_ends_before_v1() {
    for (given, used) in [
        ("https://api.anthropic.com", "https://api.anthropic.com"),
        ("https://api.anthropic.com/", "https://api.anthropic.com"),
        ("https://proxy.example/anthropic/v1", "https://proxy.example/anthropic"),
        ("https://proxy.example/v1/", "https://proxy.example"),
    ] {
        assert_eq!(read(json!({"base_url": given})).unwrap().base_url(), used);
    }
    for none in [json!(""), json!(null)] {
        assert_eq!(read(json!({"api_key_env": none})).unwrap().key_env(), None);
    }
}

#[test]
fn settings_are_read_as_the_documentation_has_them() {
    for (given, thinking) in [
        (json!("off"), Thinking::Off),
        (json!("adaptive"), Thinking::Adaptive),
        (json!({"budget_tokens": 1024}), Thinking::Budget { budget_tokens: 1024 }),
    ] {
        let config = read(json!({"thinking": given, "temperature": true})).unwrap();
        assert_eq!(config.thinking, Some(thinking));
        assert_eq!(serde_json::to_value(config.thinking).unwrap(), given);
        assert_eq!(config.wire().unwrap().capabilities().temperature, !thinking.is_on());
    }
    let config = read(json!({"mode": "tool", "max_tokens": 700})).unwrap();
    assert_eq!(config.mode, Some(Mode::Tool));
    assert_eq!(config.wire().unwrap().capabilities().default_max_tokens, Some(700));
}

#[test]
fn what_the_api_refuses_is_refused_before_a_call() {
    for (fields, words) in [
        (json!({"model": " "}), "`model` is empty"),
        (json!({"thinking": {"budget_tokens": 100}}), "the minimum is 1024"),
        (json!({"thinking": {"budget_tokens": 2000}, "max_tokens": 2000}), "less than `max_tokens`"),
        (json!({"thinking": "adaptive", "mode": "tool"}), "cannot be forced"),
        (json!({"thinking": "sometimes"}), "thinking is `off`, `adaptive`"),
        (json!({"mode": "json"}), "json"),
        (json!({"budget": 1}), "unknown field"),
    ] {
        let error = read(fields.clone()).and_then(|config| config.wire()).unwrap_err();
        assert!(error.contains(words), "{fields}: {error}");
    }
}

#[test]
fn a_project_chooses_vertex_ai_and_no_name_chooses_another_server() {
    let vertex = |more: Value| {
        let mut config = json!({"model": "claude-sonnet-4-5@20250929", "project": "p-1"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(config).unwrap()
    };
    let plain = vertex(json!({}));
    assert_eq!(plain.base_url(), "https://aiplatform.googleapis.com");
    assert_eq!((plain.key_env(), plain.auth().header), (Some("GOOGLE_OAUTH_ACCESS_TOKEN"), "authorization"));
    let there = vertex(json!({"location": "europe-west1", "api_key_env": "MINE"}));
    assert_eq!(there.base_url(), "https://europe-west1-aiplatform.googleapis.com");
    assert_eq!(there.key_env(), Some("MINE"));
    assert_eq!(vertex(json!({"base_url": "http://localhost:1"})).base_url(), "http://localhost:1");
    for (name, value) in [
        ("location", "h.example/"),
        ("location", ""),
        ("project", "p/../q"),
        ("project", ""),
        ("model", "m:rawPredict?x"),
    ] {
        let error = vertex(json!({name: value})).wire().unwrap_err();
        assert!(error.contains(&format!("`{name}`")), "{error}");
    }
}
