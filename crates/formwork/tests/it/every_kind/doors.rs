//! A kind of provider is registered only if the crate of its codec runs the contract of providers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use formwork::config::Config;
use formwork::providers::{Kind, Made, Providers};
use formwork_testkit::Scripted;
use serde_json::json;

/// Returns the kinds whose codec no crate tests with `formwork-conformance`.
fn untested(providers: &Providers) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers");
    let crates =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("tests/conformance.rs"));
    let tests: Vec<String> = crates.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let calls = ["formwork_conformance::provider(", "Suite::new().live("];
    let is_tested = |kind: &&Kind| {
        let runs = |test: &&String| calls.iter().any(|call| test.contains(call));
        let runs_batches = |test: &&String| !kind.has_batch() || test.contains(".batches(");
        let codec = format!("{}::", codec(kind, providers));
        tests.iter().filter(runs).filter(runs_batches).any(|test| test.contains(&codec))
    };
    let kinds = providers.kinds().filter(|kind| !is_tested(kind));
    kinds.map(|kind| kind.name().to_owned()).collect()
}

/// Returns the type of a kind's codec, by a provider that the kind creates.
fn codec(kind: &Kind, providers: &Providers) -> String {
    let values = [("model", "m"), ("base_url", "http://localhost:1"), ("api_key_env", "")];
    let fields = kind.schema()["properties"].clone();
    let lines = values.iter().filter(|(name, _)| fields[name].is_object());
    let lines: String = lines.map(|(name, value)| format!("{name} = {value:?}\n")).collect();
    let config = Config::from_toml(&format!("[providers.a]\nkind = {:?}\n{lines}", kind.name())).unwrap();
    match providers.make(config.section("a").unwrap()) {
        Ok(made) => {
            let provider = format!("{:?}", made.provider);
            let codec = provider.split_once("wire: ").map_or(provider.as_str(), |(_, codec)| codec);
            codec.split([' ', '(']).next().unwrap_or_default().to_owned()
        }
        // This kind loads its model, or needs a feature.
        Err(_) if kind.name() == "local" => "Local".to_owned(),
        Err(error) => panic!("{}: {error}", kind.name()),
    }
}

#[test]
fn every_registered_kind_runs_the_contract_of_providers() {
    assert_eq!(untested(&Providers::builtin()), Vec::<String>::new());
    let alien = Kind::new("alien", "a kind whose codec nobody tests", json!({}), |_| {
        Ok(Made::new(Arc::new(Scripted::new(["{}"])), "alien", "a-1"))
    });
    assert_eq!(untested(&Providers::builtin().with(alien)), ["alien"]);
}

#[test]
fn the_access_of_a_kind_names_the_key_that_its_sections_need() {
    let providers = Providers::builtin();
    let accesses = || providers.kinds().filter_map(|kind| Some((kind, kind.access()?)));
    for (kind, access) in accesses().filter(|(_, access)| !access.has_key()) {
        let model = access.example.as_deref().unwrap_or("m");
        // Azure has no address that is the same for all customers.
        let address = if kind.name() == "azure" { "base_url = \"https://a.example\"" } else { "" };
        let text = format!("[providers.a]\nkind = {:?}\nmodel = {model:?}\n{address}", kind.name());
        let error = providers.make(Config::from_toml(&text).unwrap().section("a").unwrap()).unwrap_err();
        let expected = format!("the environment variable `{}` is not set", access.key_env);
        assert!(error.lacks_key() && error.message.contains(&expected), "{}: {error}", kind.name());
    }
    let hosts = accesses().filter(|(_, access)| access.is_host).map(|(kind, _)| kind.name());
    assert!(hosts.eq(["cerebras", "fireworks", "groq", "openrouter", "together"]));
    assert_eq!(accesses().filter(|(_, access)| access.example.is_some()).count(), 12);
}
