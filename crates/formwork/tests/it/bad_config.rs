use formwork::config::Config;
use formwork::providers::Providers;

/// Returns the first error about a configuration.
fn message(text: &str) -> String {
    match Config::from_toml(text) {
        Err(error) => error.to_string(),
        Ok(config) => {
            let local = config.sections().iter().find(|section| section.common.kind == "local");
            let local = local.and_then(|section| formwork::providers::local_settings(section).err());
            local.unwrap_or_else(|| Providers::builtin().backends(&config).unwrap_err()).to_string()
        }
    }
}

#[test]
fn each_mistake_is_one_line_with_its_place() {
    for (text, says) in [
        ("", "the configuration: no provider is configured: add one, such as [providers.primary]"),
        ("[providers.a", "the configuration:1:13: "),
        ("providers = 3", "the configuration:1:13: `providers` is a table of tables"),
        ("[providers]\na = 3", "the configuration:2:5: `providers.a` is a table"),
        ("[providers.a]\nmodel = \"x\"", "missing field `kind`"),
        ("[providers.a]\nkind = 3", "the configuration:2:8: invalid type: integer `3`, expected a string"),
        (
            "[providers.a]\nkind = \"opnai\"\nmodel = \"x\"",
            "the configuration:1:1: provider `a`: no provider kind `opnai`: did you mean `openai`? this build has local, ",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nnum_ctxt = 1",
            "the configuration:4:1: there is no `num_ctxt` here: did you mean `num_ctx`?",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nconcurency = 1",
            "the configuration:4:1: there is no `concurency` here: did you mean `concurrency`?",
        ),
        (
            "target = [\"a\"]\n[providers.a]\nkind = \"local\"",
            "the configuration:1:1: there is no `target` here: did you mean `targets`?",
        ),
        (
            "targets = [\"primry\"]\n[providers.primary]\nkind = \"local\"",
            "the configuration:1:12: there is no provider `primry`: did you mean `primary`?",
        ),
        ("targets = []\n[providers.a]\nkind = \"local\"", "`targets` is empty"),
        ("weights = [1, 2]\n[providers.a]\nkind = \"local\"", "one number per target: 1 targets, 2 weights"),
        ("weights = [0]\n[providers.a]\nkind = \"local\"", "has only zeros"),
        ("weights = [1]\norder = \"in-order\"\n[providers.a]\nkind = \"local\"", "exclude each other"),
        ("targets = [\"a\", \"a\"]\n[providers.a]\nkind = \"local\"", "`targets` names `a` twice"),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nmax_retries = 1",
            "the configuration:4:1: there is no `max_retries` here: the setting is called `retries`",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nmodel = \"x\"\napiBase = \"http://h\"",
            "there is no `apiBase` here: the setting is called `base_url`",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nconcurrency = 0",
            "the configuration:4:15: expected a number from 1",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nbase_url = \"http://${HOST}:1\"",
            "the configuration:4:12: `${HOST}` is not expanded in this file",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\napi_key_env = \"PATH\"\nheaders = { AUTHORIZATION = \"Basic x\" }",
            "the header `AUTHORIZATION` would replace that of the API key",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nheaders = { x-a = \"1\" }\nsecret_headers = { X-A = \"PATH\" }",
            "the header `X-A` is set twice",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\napi_key_file = \"k\"\napi_key_command = [\"c\"]",
            "`api_key_command` and `api_key_file` exclude each other",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\napi_key_header = \"a b\"",
            "the configuration:4:18: \"a b\" is not the name of a header",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nclient_key_file = \"k.pem\"",
            "`client_key_file` needs `client_cert_file`",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nclient_cert_file = \"/no/such.pem\"",
            "/no/such.pem: ",
        ),
        #[cfg(not(feature = "aws"))]
        (
            "[providers.a]\nkind = \"bedrock\"\nmodel = \"x\"\ncredentials = \"aws\"",
            "this build has no `credentials = \"aws\"`: build it with `--features aws`",
        ),
        (
            "[redaction]\npatterns = ['a+', '[']",
            "the configuration:2:12: `[` is not a regular expression: unclosed ",
        ),
        ("[redaction]\npatterns = ['a*']", "the configuration:2:12: `a*` matches the empty text"),
        ("[redaction]\npattern = ['a']", "there is no `pattern` here: did you mean `patterns`?"),
        ("redaction = [['a']]", "`redaction` is a table"),
        ("[providers.a]\nkind = \"local\"\nthreads = 4", "the model in this process has no such setting"),
        (
            "[providers.a]\nkind = \"openai\"\nmodel = \"x\"\nextra = { text = { verbosity = \"low\", format = {} } }",
            "the configuration:4:39: provider `a`: Formwork writes `text.format` itself: `modes` selects",
        ),
        (
            "[providers.a]\nkind = \"gemini\"\nmodel = \"x\"\ngeneration = { responseSchema = {} }",
            "the configuration:4:16: provider `a`: Formwork writes `responseSchema` itself",
        ),
        (
            "[providers.a]\nkind = \"groq\"\nmodel = \"x\"\nextra.stream = true",
            "the configuration:4:7: provider `a`: Formwork writes `stream` itself: `stream` of the section",
        ),
        ("order = \"random\"\n[providers.a]\nkind = \"local\"", "the configuration:1:9: "),
        (
            "[providers.a]\nkind = \"local\"\n[lists.l]\ntargets = [\"b\"]",
            "the configuration:4:12: there is no provider `b`",
        ),
        ("[providers.a]\nkind = \"local\"\n[lists.l]\ntargets = []", "the list `l`: `targets` is empty"),
        ("[providers.a]\nkind = \"local\"\n[lists.a]\ntargets = [\"a\"]", "names a provider and a list"),
        ("[providers.a]\nkind = \"local\"\n[aliases]\na = \"a\"", "names an alias and a provider or list"),
        (
            "[providers.main]\nkind = \"local\"\n[aliases]\nfast = \"mian\"",
            "no model with its kind such as `openai/gpt-5.4-mini`: did you mean `main`?",
        ),
        ("[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nrpm = 0", "the configuration:4:7: "),
        ("[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nproxy = \"socks://h\"", "the proxy's address"),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nca_file = \"no-such.pem\"",
            "`ca_file` no-such.pem: ",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nsecret_headers = { x-a = \"FORMWORK_NO_SUCH\" }",
            "`FORMWORK_NO_SUCH` is not set: it has to hold the value of the header `x-a`",
        ),
        ("[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\napi_key_command = []", "needs a program"),
        ("[providers.a]\nkind = \"ollama\"", "missing field `model`"),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\ntimeout_seconds = -1",
            "the configuration:4:19: expected a number of seconds from 0.001 to 86400, found -1",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nmodes = [\"esperanto\"]",
            "there is no dialect `esperanto`; there are openai, ",
        ),
        (
            "[providers.a]\nkind = \"openai\"\nmodel = \"x\"\napi_key_env = \"FORMWORK_NO_SUCH_KEY\"",
            "the environment variable `FORMWORK_NO_SUCH_KEY` is not set",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nbase_url = \"ftp://h\"",
            "the configuration:1:1: provider `a`: ",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\ncassette = \"no-such-file.json\"",
            "the cassette no-such-file.json: ",
        ),
    ] {
        let message = message(text);
        assert!(message.contains(says), "{text}\n{message}\n{says}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn each_wrong_threshold_is_one_line_with_its_place() {
    for (line, says) in [
        ("prose_request = 5", "the configuration:5:1: "),
        ("prose_requests = -1", "the configuration:5:18: "),
        ("trial_seconds = \"10 min\"", "the configuration:5:17: "),
        ("outage_seconds = 1.5", "the configuration:5:18: "),
    ] {
        let text = format!("[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\n[health]\n{line}");
        let error = message(&text);
        assert!(error.starts_with(says), "{line}: {error}");
    }
    let text = "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\n[health]\nprose_requests = 7";
    assert_eq!(Config::from_toml(text).unwrap().health().prose_requests, 7);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::find(Some("no-such-file.toml".as_ref())).unwrap_err().to_string();
    assert!(error.starts_with("no-such-file.toml: "), "{error}");
}

/// A member of the configuration's schema, with values that it must refuse.
struct Member {
    path: Vec<String>,
    wrong: Vec<serde_json::Value>,
}

/// Returns the schema behind references and alternatives with `null`.
fn resolved<'s>(whole: &'s serde_json::Value, schema: &'s serde_json::Value) -> &'s serde_json::Value {
    if let Some(target) = schema["$ref"].as_str() {
        return resolved(whole, whole.pointer(target.trim_start_matches('#')).unwrap());
    }
    match schema["anyOf"].as_array() {
        Some(choices) if choices.iter().any(|choice| choice["type"] == "null") => {
            resolved(whole, choices.iter().find(|choice| choice["type"] != "null").unwrap())
        }
        _ => schema,
    }
}

/// Adds the members of an object's schema, and those of their objects, with values of wrong types and out of range.
fn members(whole: &serde_json::Value, schema: &serde_json::Value, path: &[String], out: &mut Vec<Member>) {
    use serde_json::{Value, json};

    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path: Vec<String> = path.iter().chain([name]).cloned().collect();
        let shared = &whole["$defs"]["Common"]["properties"][name];
        let member = resolved(whole, if member == &Value::Bool(true) { shared } else { member });
        let mut wrong: Vec<Value> = [
            json!(true),
            json!(7),
            json!(-1),
            json!("no-such-value"),
            json!([]),
            json!([[]]),
            json!([1, 2]),
            json!({"no-such": {}}),
        ]
        .into();
        // An integer above every range that the schema or its format names.
        wrong.extend(member["maximum"].as_f64().map(|maximum| json!(maximum + 1.0)));
        wrong.extend(member["minimum"].as_f64().map(|minimum| json!(minimum - 1.0)));
        wrong.extend(
            member["format"].as_str().filter(|format| *format == "uint32").map(|_| json!(4_294_967_296_u64)),
        );
        let alone = json!({"allOf": [member], "$defs": whole["$defs"]});
        let validator = jsonschema::validator_for(&alone).unwrap();
        wrong.retain(|value| !validator.is_valid(value));
        out.push(Member { path: path.clone(), wrong });
        members(whole, member, &path, out);
        // Tables whose names the user chooses, such as `[lists.fast]`.
        let of_each = resolved(whole, &member["additionalProperties"]);
        let path: Vec<String> = path.iter().cloned().chain(["each".to_owned()]).collect();
        members(whole, of_each, &path, out);
    }
}

/// Returns a value as TOML.
fn toml_of(value: &serde_json::Value) -> String {
    use serde_json::Value;

    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name} = {}", toml_of(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

#[test]
fn no_setting_is_accepted_with_a_misspelt_name_a_wrong_type_or_a_number_out_of_range() {
    use serde_json::{Value, json};

    let schema = formwork::config::schema(&Providers::builtin());
    let mut all = Vec::new();
    let sections = schema.pointer("/properties/providers/additionalProperties/oneOf").unwrap();
    let tops = schema["properties"].as_object().unwrap().keys().filter(|name| *name != "providers");
    for name in tops {
        let mut found = Vec::new();
        let top = json!({"properties": {name: schema["properties"][name]}});
        members(&schema, &top, &[], &mut found);
        all.extend(found.into_iter().map(|member| (Value::Null, member)));
    }
    for section in sections.as_array().unwrap() {
        let section = resolved(&schema, section);
        let kind = &section["properties"]["kind"];
        let kind = kind["enum"].get(0).unwrap_or(&kind["const"]).clone();
        let mut found = Vec::new();
        members(&schema, section, &[], &mut found);
        found.retain(|member| member.path[0] != "kind");
        all.extend(found.into_iter().map(|member| (kind.clone(), member)));
    }
    let (mut refused, mut silent) = (0, Vec::new());
    for (kind, member) in &all {
        let mut misspelt = member.path.clone();
        misspelt.last_mut().unwrap().push_str("_x");
        let wrong = member.wrong.iter().map(|value| (&member.path, value)).chain([(&misspelt, &Value::Null)]);
        for (path, value) in wrong {
            let value = if value.is_null() { &json!(1) } else { value };
            let value =
                path[1..].iter().rev().fold(value.clone(), |value, name| json!({name.as_str(): value}));
            let setting = format!("{} = {}\n", path[0], toml_of(&value));
            let text = match kind {
                Value::Null => format!("{setting}[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\n"),
                kind => {
                    let model = if path[0] == "model" { "" } else { "model = \"m\"\n" };
                    let url = if path[0] == "base_url" { "" } else { "base_url = \"http://127.0.0.1:1\"\n" };
                    let key = if path[0] == "api_key_env" { "" } else { "api_key_env = \"\"\n" };
                    let own = if kind == "local" { String::new() } else { format!("{model}{url}{key}") };
                    format!("[providers.a]\nkind = {kind}\n{own}{setting}")
                }
            };
            let made = Config::from_toml(&text).and_then(|config| match kind == "local" {
                true => formwork::providers::local_settings(config.section("a")?).map(|_| ()),
                false => Providers::builtin().backends(&config).map(|_| ()),
            });
            match made {
                Ok(()) => silent.push(setting),
                Err(error) => {
                    assert!(!error.to_string().contains('\n'), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(silent.is_empty(), "{} of {}: {silent:#?}", silent.len(), silent.len() + refused);
    assert!(all.len() > 150 && refused > 900, "{} {refused}", all.len());
}

#[test]
fn a_kind_whose_feature_is_off_names_the_feature() {
    let error = formwork::providers::Providers::none().kind("anthropic").map(drop).unwrap_err();
    assert_eq!(
        error,
        "no provider kind `anthropic`: it needs the feature `anthropic` of the crate `formwork`; this build has "
    );
}
