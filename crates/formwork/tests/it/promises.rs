//! The registry's facts about a model decide its output modes.

use formwork::config::Config;
use formwork::core::{Capabilities, Enforcement};
use formwork::providers::Providers;

fn capabilities(section: &str) -> Capabilities {
    let text = format!("[providers.it]\nkind = \"openai\"\napi_key_env = \"\"\n{section}");
    let config = Config::from_toml(&text).unwrap();
    let made = Providers::builtin().make(&config.sections()[0]).unwrap();
    made.provider.capabilities().clone()
}

#[test]
fn a_model_with_strict_schemas_is_called_with_one() {
    let gpt = capabilities("model = \"gpt-4o\"");
    assert_eq!(gpt.dialects, ["openai", "json-object", "prompt"]);
    assert!(gpt.temperature && gpt.seed);
    assert_eq!(gpt.output_tokens, Some(16384));
}

#[test]
fn the_responses_api_keeps_the_promises_but_the_seed_and_the_frequency_penalty() {
    let mut chat = capabilities("model = \"gpt-4o\"");
    let responses = capabilities("model = \"gpt-4o\"\napi = \"responses\"");
    assert!(chat.seed && chat.frequency_penalty);
    (chat.seed, chat.frequency_penalty) = (false, false);
    // Of the settings it lacks these two.
    chat.settings.retain(|setting| !["stop", "presence_penalty"].contains(&setting.as_str()));
    assert_eq!(responses, chat);
}

#[test]
fn a_model_without_a_native_mode_is_called_in_the_prompt() {
    let gemini = capabilities("model = \"gemini-1.5-pro\"");
    assert_eq!((gemini.dialects, gemini.temperature), (vec!["prompt".to_owned()], true));
}

#[test]
fn a_model_that_refuses_a_temperature_is_sent_none() {
    assert!(!capabilities("model = \"gpt-5.5\"").temperature);
    assert!(capabilities("model = \"gpt-5.5\"\ncapabilities = { temperature = true }").temperature);
}

#[test]
fn an_unknown_model_is_called_as_its_vendor_expects() {
    let unknown = capabilities("model = \"ours-7b\"");
    assert_eq!((unknown.enforcement, unknown.dialects.len()), (Enforcement::Schema, 3));
}

#[test]
fn a_server_that_enforces_schemas_itself_does_so_for_every_model() {
    let text = "[providers.it]\nkind = \"vllm\"\nmodel = \"gemini-1.5-pro\"\napi_key_env = \"\"\n";
    let made = Providers::builtin().make(&Config::from_toml(text).unwrap().sections()[0]).unwrap();
    assert_eq!(made.provider.capabilities().enforcement, Enforcement::Schema);
}

#[test]
fn what_is_said_wins_over_what_is_known() {
    let supported = capabilities("model = \"gemini-1.5-pro\"\ndialects = [\"json-object\", \"prompt\"]");
    assert_eq!(supported.dialects, ["json-object", "prompt"]);
}

#[test]
fn rows_of_a_file_go_before_what_is_known() {
    let folder = std::env::temp_dir().join(format!("formwork-promises-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let row = "[[model]]\nmatch = \"ours-*\"\nfamily = \"Ours\"\nprovider = \"openai\"\nnative = \"object\"\n\
               source = \"we run it\"\nchecked = \"2026-11-21\"\n";
    let config = "registry = \"models.toml\"\n[providers.it]\nkind = \"openai\"\nmodel = \"ours-7b\"\napi_key_env = \"\"\n";
    std::fs::write(folder.join("models.toml"), row).unwrap();
    std::fs::write(folder.join("formwork.toml"), config).unwrap();
    let load = || Config::load(&folder.join("formwork.toml"));
    let made = Providers::builtin().make(&load().unwrap().sections()[0]).unwrap();
    assert_eq!(made.provider.capabilities().dialects, ["json-object", "prompt"]);
    // The context of a model of Ollama's holds until a probe finds it; a setting replaces it.
    let of_ollama = row.replace("openai", "ollama").replace("ours-*", "ollama/ours-*");
    std::fs::write(folder.join("models.toml"), format!("{of_ollama}context_tokens = 40000\n")).unwrap();
    for (more, context) in [("", Some(40_000)), ("num_ctx = 2048\n", Some(2_048)), ("model = \"x\"\n", None)]
    {
        let section = format!("registry = \"models.toml\"\n[providers.it]\nkind = \"ollama\"\n{more}");
        let model = if more.contains("model") { "" } else { "model = \"ours-7b\"\n" };
        std::fs::write(folder.join("ollama.toml"), section + model).unwrap();
        let config = Config::load(&folder.join("ollama.toml")).unwrap();
        let made = Providers::builtin().make(&config.sections()[0]).unwrap();
        assert_eq!(made.provider.capabilities().context_tokens, context, "{more}");
    }
    std::fs::write(folder.join("models.toml"), row.replace("native", "natve")).unwrap();
    let error = load().unwrap_err().to_string();
    assert!(error.contains("formwork.toml:1:12: the registry") && error.contains("natve"), "{error}");
    std::fs::remove_file(folder.join("models.toml")).unwrap();
    assert!(load().unwrap_err().to_string().contains("models.toml"), "a file that is not there");
}

#[test]
fn an_unknown_dialect_is_refused_with_the_nearest_name_or_all_names() {
    for (name, expected) in [
        ("opnai", "no dialect `opnai`: did you mean `openai`?"),
        ("esperanto", "no dialect `esperanto`; there are openai,"),
    ] {
        let section = "[providers.it]\nkind = \"openai\"\nmodel = \"x\"\napi_key_env = \"\"";
        let config = Config::from_toml(&format!("{section}\ndialects = [\"{name}\"]")).unwrap();
        let error = Providers::builtin().make(&config.sections()[0]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_gemini_model_is_called_as_the_registry_knows_it() {
    let capabilities = |section: &str| {
        let text = format!("[providers.it]\nkind = \"gemini\"\napi_key_env = \"\"\n{section}");
        let made = Providers::builtin().make(&Config::from_toml(&text).unwrap().sections()[0]).unwrap();
        made.provider.capabilities().clone()
    };
    let flash = capabilities("model = \"gemini-2.5-flash\"");
    assert_eq!(flash.dialects, ["gemini", "gemini-openapi", "json-object", "prompt"]);
    assert_eq!((flash.temperature, flash.seed, flash.output_tokens), (true, true, Some(65536)));
    assert!(!capabilities("model = \"gemini-3.8-flash\"").temperature);
    let image = capabilities("model = \"gemini-2.5-flash-image\"");
    assert_eq!((image.dialects, image.enforcement), (vec!["prompt".to_owned()], Enforcement::None));
    // A model with an unknown name behind a proxy gets all modes.
    assert_eq!(capabilities("model = \"smollm2\"\nbase_url = \"http://127.0.0.1:1\"").dialects.len(), 4);
    let supported = capabilities(
        "model = \"gemini-3.8-flash\"\ndialects = [\"gemini-openapi\"]\ncapabilities = { temperature = true }",
    );
    assert_eq!((supported.dialects, supported.temperature), (vec!["gemini-openapi".to_owned()], true));
}

#[cfg(feature = "anthropic")]
mod anthropic {
    use formwork::config::ConfigError;
    use formwork::providers::Made;

    use super::*;

    fn made(section: &str) -> Result<Made, ConfigError> {
        let text = format!("[providers.it]\nkind = \"anthropic\"\napi_key_env = \"\"\n{section}");
        Providers::builtin().make(&Config::from_toml(&text).unwrap().sections()[0])
    }

    fn promises(section: &str) -> Capabilities {
        made(section).unwrap().provider.capabilities().clone()
    }

    #[test]
    fn a_row_says_what_a_claude_model_takes() {
        for (model, temperature, output, context) in [
            ("claude-sonnet-4-6", true, Some(128_000), Some(1_000_000)),
            ("claude-haiku-4-5-20251001", true, Some(64_000), Some(200_000)),
            ("claude-opus-4-8", false, Some(128_000), Some(1_000_000)),
            ("claude-to-come", false, None, None),
        ] {
            let found = promises(&format!("model = \"{model}\""));
            assert_eq!(found.dialects, ["anthropic", "prompt"], "{model}");
            assert_eq!(found.enforcement, Enforcement::Schema);
            assert_eq!((found.temperature, found.top_p, found.seed), (temperature, false, false), "{model}");
            assert_eq!((found.output_tokens, found.context_tokens), (output, context), "{model}");
            assert!(!found.late_system);
        }
        assert!(promises("model = \"claude-to-come\"\ntemperature = true").temperature);
        assert!(!promises("model = \"claude-sonnet-4-6\"\ntemperature = false").temperature);
        assert!(!promises("model = \"claude-sonnet-4-6\"\nthinking = { budget_tokens = 2048 }").temperature);
        assert_eq!(promises("model = \"claude-sonnet-4-6\"\nmax_tokens = 900").default_max_tokens, Some(900));
    }

    #[test]
    fn a_model_that_refuses_forced_tools_is_not_called_with_one() {
        assert_eq!(promises("model = \"claude-opus-4-8\"\nmode = \"tool\"").enforcement, Enforcement::Schema);
        let requires = |model: &str| promises(&format!("model = \"{model}\"")).required_tools;
        assert_eq!(
            ["claude-opus-4-8", "claude-to-come", "claude-fable-5"].map(requires),
            [true, true, false]
        );
        let error = made("model = \"claude-fable-5\"\nmode = \"tool\"").unwrap_err().to_string();
        assert!(error.contains("cannot be forced") && error.contains("provider `it`"), "{error}");
        let error =
            made("model = \"claude-opus-4-6\"\nmode = \"tool\"\nthinking = \"adaptive\"").unwrap_err();
        assert!(error.to_string().contains("remove `mode"), "{error}");
    }

    #[test]
    fn a_price_holds_at_the_vendor_alone() {
        let address = |section: &str| made(section).unwrap().address;
        assert_eq!(address("model = \"m\""), None);
        assert_eq!(address("model = \"m\"\nbase_url = \"https://api.anthropic.com/v1/\""), None);
        let elsewhere = address("model = \"m\"\nbase_url = \"http://localhost:1/v1\"");
        assert_eq!(elsewhere.as_deref(), Some("http://localhost:1"));
    }
}
