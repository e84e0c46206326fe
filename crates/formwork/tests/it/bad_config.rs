use formwork::config::Config;
use formwork::providers::Providers;

/// Returns the first error about a configuration.
fn message(text: &str) -> String {
    match Config::from_toml(text) {
        Err(error) => error.to_string(),
        Ok(config) => Providers::builtin().backends(&config).unwrap_err().to_string(),
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
            "no model with its kind such as `openai/gpt-4o-mini`: did you mean `main`?",
        ),
        ("[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nrpm = 0", "the configuration:4:7: "),
        ("[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nproxy = \"socks://h\"", "the proxy's address"),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nca_file = \"no-such.pem\"",
            "`ca_file` no-such.pem: ",
        ),
        (
            "[providers.a]\nkind = \"ollama\"\nmodel = \"x\"\nsecret_headers = { x-a = \"FORMWORK_NO_SUCH\" }",
            "`FORMWORK_NO_SUCH` is not set",
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
