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
fn retries_and_their_delays_have_ranges() {
    for (setting, reason) in [
        ("retries = 101", Some("a number of retries from 0 to 100")),
        ("retries = 0", None),
        ("retry_delays = []", Some("`retries = 0` turns retries off")),
        ("retry_delays = [-1]", Some("seconds from 0 to 86400")),
        ("retry_delays = [0, 2.5]", None),
    ] {
        let provider = "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\n";
        for text in [format!("{provider}{setting}"), format!("[defaults]\n{setting}\n{provider}")] {
            let error = Config::from_toml(&text).err().map(|error| error.to_string());
            match reason {
                Some(reason) => {
                    assert!(error.as_ref().is_some_and(|error| error.contains(reason)), "{text}: {error:?}")
                }
                None => assert_eq!(error, None, "{text}"),
            }
        }
    }
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
fn the_schema_for_editors_takes_what_the_schema_of_each_kind_takes() {
    let providers = Providers::builtin();
    let whole = schema(&providers);
    let whole = jsonschema::validator_for(&whole).unwrap();
    let section = |kind: &Kind, model: bool, member: &str, value: &Value| {
        let mut section = json!({"kind": kind.name()});
        if model {
            section["model"] = json!("m");
        }
        section[member] = value.clone();
        json!({"providers": {"a": section}})
    };
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(2),
        json!(0.5),
        json!(1e30),
        json!(""),
        json!("x"),
        json!("30s"),
        json!("chat"),
        json!("generate"),
        json!("responses"),
        json!("high"),
        json!("developer"),
        json!("bounded"),
        json!("tool"),
        json!("converse"),
        json!("vertex"),
        json!([]),
        json!(["openai"]),
        json!([1]),
        json!({}),
        json!({"x": "y"}),
        json!({"x": 1}),
        json!({"input": 1, "output": 2}),
        json!({"type": "enabled", "budget_tokens": 1024}),
    ];
    let common = schemars::schema_for!(formwork::config::Common).to_value();
    let (mut compared, mut accepted) = (0, 0);
    for kind in providers.kinds() {
        let own = kind.schema();
        let model = own["required"].as_array().is_some_and(|names| names.contains(&json!("model")));
        let members = own["properties"].as_object().into_iter().flatten().map(|(name, _)| (name, &own));
        let shared = common["properties"].as_object().unwrap().keys().filter(|name| *name != "kind");
        for (name, document) in shared.map(|name| (name, &common)).chain(members) {
            // The member alone, with the definitions of its document.
            let alone = json!({"$ref": format!("#/properties/{name}"), "properties": document["properties"], "$defs": document.get("$defs").cloned().unwrap_or(json!({}))});
            let alone = jsonschema::validator_for(&alone).unwrap();
            for value in &values {
                let is_taken = whole.is_valid(&section(kind, model, name, value));
                // TOML has no null.
                let expected = !value.is_null() && alone.is_valid(value);
                assert_eq!(is_taken, expected, "{}: {name} = {value}", kind.name());
                compared += 1;
                accepted += usize::from(is_taken);
            }
            let misspelt = format!("{name}x");
            for value in [&values[0], &values[8]] {
                let is_taken = whole.is_valid(&section(kind, model, &misspelt, value));
                assert!(!is_taken, "{}: {misspelt}", kind.name());
            }
        }
        for name in own["required"].as_array().into_iter().flatten() {
            assert!(!whole.is_valid(&json!({"providers": {"a": {"kind": kind.name()}}})), "without {name}");
        }
        assert!(!whole.is_valid(&json!({"providers": {"a": {"kind": format!("{}x", kind.name())}}})));
    }
    assert!(compared > 10_000 && accepted > 2000, "{compared} {accepted}");
}

#[test]
fn the_schema_for_editors_repeats_nothing_and_describes_every_setting() {
    let schema = schema(&Providers::builtin());
    // `cargo xtask schema` leaves out the formats of numbers, which say nothing to an editor.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/formwork.toml.json");
    let size = std::fs::metadata(file).unwrap().len();
    assert!(size <= 60_000, "{size} bytes");
    let followed = |value: &Value| match value["$ref"].as_str() {
        Some(target) => schema.pointer(target.trim_start_matches('#')).unwrap().clone(),
        None => value.clone(),
    };
    let sections = schema.pointer("/properties/providers/additionalProperties/oneOf").unwrap();
    let sections: Vec<Value> = sections.as_array().unwrap().iter().map(followed).collect();
    for section in &sections {
        let shared = schema["$defs"]["Common"]["properties"].as_object().unwrap();
        for (name, property) in section["properties"].as_object().unwrap().iter().chain(shared) {
            assert!(followed(property)["description"].is_string(), "{}: {name}", section["title"]);
        }
    }
    // An editor shows what each preset is.
    let presets = sections.iter().map(|section| &section["properties"]["kind"]);
    let presets: Vec<&Value> = presets.filter(|kind| kind["enum"].is_array()).collect();
    assert_eq!(presets.len(), 1, "the presets of one API share a section");
    let about = presets[0]["description"].as_str().unwrap();
    assert!(presets[0]["enum"].as_array().unwrap().len() > 10 && about.contains("Responses"), "{about}");
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
