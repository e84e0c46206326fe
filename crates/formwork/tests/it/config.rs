use formwork::config::{Config, schema};
use formwork::providers::{Kind, Providers};
use serde_json::{Value, json};

#[test]
fn targets_are_called_in_the_order_of_the_file_by_default() {
    let text = "[providers.zulu]\nkind = \"ollama\"\nmodel = \"a\"\n[providers.alpha]\nkind = \"ollama\"\nmodel = \"b\"";
    assert_eq!(Config::from_toml(text).unwrap().targets(), ["zulu", "alpha"]);
    let text = format!("targets = [\"alpha\"]\n{text}");
    let config = Config::from_toml(&text).unwrap();
    assert_eq!(config.targets(), ["alpha"]);
    assert_eq!(config.sections().len(), 2);
}

#[test]
fn every_preset_is_a_kind() {
    let providers = Providers::builtin();
    for name in ["anthropic", "openai", "ollama", "local", "groq", "llama-server", "azure"] {
        assert!(providers.kind(name).is_ok(), "{name}");
    }
}

#[test]
fn a_section_is_made_with_all_that_it_says() {
    let text = r#"
        [defaults]
        max_attempts = 2
        timeout_seconds = 30

        [providers.server]
        kind = "llama-server"
        model = "smollm2"
        base_url = "http://127.0.0.1:1/v1"
        concurrency = 4
        timeout_seconds = 10
        modes = ["llama-cpp", "prompt"]
        price = { input = 0.15, output = 0.60 }
    "#;
    let config = Config::from_toml(text).unwrap();
    assert_eq!(config.defaults().max_attempts, Some(2));
    assert_eq!(Providers::builtin().backends(&config).unwrap().len(), 1);
}

#[test]
fn the_schema_for_editors_takes_what_is_taken() {
    let schema = schema(&Providers::builtin());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let ollama = json!({"kind": "ollama", "model": "qwen3:8b", "num_ctx": 8192, "concurrency": 2});
    let groq =
        json!({"kind": "groq", "model": "gpt-oss-20b", "strict": true, "price": {"input": 1, "output": 2}});
    let whole = |section: &Value| json!({"targets": ["a"], "providers": {"a": section}});
    // Two kinds have APIs of the same name with different values.
    let responses = json!({"kind": "openai", "model": "gpt-4o", "api": "responses"});
    let generate = json!({"kind": "ollama", "model": "qwen3:8b", "api": "generate"});
    for section in [&ollama, &groq, &responses, &generate, &json!({"kind": "local"})] {
        assert!(validator.is_valid(&whole(section)), "{section}");
        let text = toml_of(section);
        assert!(Config::from_toml(&text).is_ok(), "{text}");
    }
    for section in [
        json!({"kind": "ollama"}),
        json!({"kind": "ollama", "model": "x", "api": "responses"}),
        json!({"kind": "openai", "model": "x", "api": "generate"}),
        json!({"kind": "opnai", "model": "x"}),
        json!({"kind": "ollama", "model": "x", "modle": "y"}),
        json!({"kind": "local", "num_ctx": 1}),
    ] {
        assert!(!validator.is_valid(&whole(&section)), "{section}");
    }
}

#[test]
fn the_schema_for_editors_has_no_examples_in_rust() {
    let schema = schema(&Providers::builtin());
    assert!(
        schema.pointer("/$defs/Price/description").is_some(),
        "the type has an example in its documentation"
    );
    assert!(!schema.to_string().contains("```"));
}

#[test]
fn definitions_of_two_kinds_that_share_a_name_are_both_kept() {
    let kind = |name: &str, values: &[&str]| {
        // `Outer` is the same text in both, and means something else in each.
        let own = json!({
            "properties": {"level": {"$ref": "#/$defs/Outer"}},
            "$defs": {"Outer": {"$ref": "#/$defs/Level"}, "Level": {"enum": values}},
        });
        Kind::new(name, "A kind of our own", own, |section| Err(section.error("it is never made")))
    };
    let takes = |validator: &jsonschema::Validator, kind: &str, level: &str| {
        validator.is_valid(&json!({"providers": {"a": {"kind": kind, "level": level}}}))
    };
    let kinds =
        [kind("one", &["low", "high"]), kind("ot/h~er", &["0", "1"]), kind("third", &["low", "high"])];
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
        let with = |providers: Providers, at: usize| providers.with(kinds[at].clone());
        let schema = schema(&order.into_iter().fold(Providers::builtin(), with));
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (kind, level, is_valid) in [
            ("one", "low", true),
            ("one", "1", false),
            ("ot/h~er", "1", true),
            ("ot/h~er", "low", false),
            ("third", "high", true),
            ("third", "0", false),
        ] {
            assert_eq!(takes(&validator, kind, level), is_valid, "{order:?} {kind} {level}");
        }
    }
}

/// One provider as TOML: JSON's values are values of TOML as well, tables apart.
fn toml_of(section: &Value) -> String {
    let inline = |value: &Value| match value {
        Value::Object(members) => {
            let members: Vec<_> = members.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("{{ {} }}", members.join(", "))
        }
        value => value.to_string(),
    };
    let members = section.as_object().unwrap().iter();
    let lines: Vec<_> = members.map(|(name, value)| format!("{name} = {}", inline(value))).collect();
    format!("[providers.a]\n{}\n", lines.join("\n"))
}
