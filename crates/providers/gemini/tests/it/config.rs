//! The configuration section of a model.

use formwork_core::Enforcement;
use formwork_gemini::{Gemini, GeminiConfig};
use formwork_wire::{Auth, Wire};
use serde_json::{Value, json};

fn config(section: Value) -> GeminiConfig {
    serde_json::from_value(section).unwrap()
}

#[test]
fn each_preset_has_its_address_and_its_key() {
    for (section, url, key, auth) in [
        (
            json!({"model": "m"}),
            "https://generativelanguage.googleapis.com",
            Some("GEMINI_API_KEY"),
            Gemini::AUTH,
        ),
        (
            json!({"model": "m", "base_url": "http://127.0.0.1:28440/", "api_key_env": ""}),
            "http://127.0.0.1:28440",
            None,
            Gemini::AUTH,
        ),
        (
            json!({"model": "m", "preset": "vertex", "project": "p", "location": "us-east5"}),
            "https://us-east5-aiplatform.googleapis.com",
            Some("GOOGLE_OAUTH_ACCESS_TOKEN"),
            Auth::BEARER,
        ),
    ] {
        let resolved = config(section).resolve().unwrap();
        assert_eq!((resolved.base_url.as_str(), resolved.api_key_env.as_deref()), (url, key));
        assert_eq!(resolved.auth, auth);
    }
}

#[test]
fn settings_that_cannot_be_called_are_errors() {
    for (section, words) in [
        (json!({"model": " "}), "`model` is empty"),
        (json!({"model": "m", "capabilities": {"late_system": true}}), "`late_system` has no effect"),
        (json!({"model": "a b"}), "`model` contains"),
        (json!({"model": "m?key=1"}), "`model` contains"),
        (json!({"model": "../x"}), "`model` contains"),
        (json!({"model": "m", "preset": "vertex"}), "requires a project"),
        (json!({"model": "m", "preset": "vertex", "project": "p q"}), "`project` contains"),
    ] {
        let error = config(section).resolve().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(serde_json::from_value::<GeminiConfig>(json!({"model": "m", "key": "secret"})).is_err());
}

#[test]
fn the_first_dialect_says_how_much_is_enforced() {
    for (dialects, enforcement) in [
        (json!(["gemini-openapi", "prompt"]), Enforcement::Schema),
        (json!(["json-object"]), Enforcement::JsonObject),
        (json!(["prompt-outline"]), Enforcement::None),
        (json!([]), Enforcement::None),
    ] {
        let section =
            json!({"model": "m", "dialects": dialects, "capabilities": {"seed": false, "output_tokens": 5}});
        let promised = config(section).resolve().unwrap().wire.capabilities().clone();
        assert_eq!((promised.enforcement, promised.seed), (enforcement, false));
        assert_eq!((promised.output_tokens, json!(promised.dialects)), (Some(5), dialects));
    }
}
