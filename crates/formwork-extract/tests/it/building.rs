use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{Extractor, ExtractorBuilder};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

use crate::support::*;

fn model() -> Arc<Scripted> {
    Arc::new(Scripted::new([MARIA]))
}

fn refused(
    builder: ExtractorBuilder<impl serde::de::DeserializeOwned + Send + 'static>,
) -> (ErrorKind, String) {
    let error = builder.build().unwrap_err();
    (error.kind(), error.message().to_owned())
}

#[tokio::test]
async fn examples_are_turns_before_the_input() {
    let model = model();
    let ada = Person { name: "Ada".to_owned(), age: 36 };
    let extractor = persons(&model)
        .0
        .with_system("Extract.")
        .with_example("Ada, 36.", &ada)
        .with_example("Bo, 7.", json!({"name": "Bo", "age": 7}))
        .build()
        .unwrap();
    extractor.extract(vec![Message::system("In English."), Message::user(TEXT)]).await.unwrap();
    let expected = [
        Message::system("Extract.\n\nIn English."),
        Message::user("Ada, 36."),
        Message::assistant(r#"{"name": "Ada", "age": 36}"#),
        Message::user("Bo, 7."),
        Message::assistant(r#"{"name": "Bo", "age": 7}"#),
        Message::user(TEXT),
    ];
    assert_eq!(model.calls()[0].messages, expected);
}

#[test]
fn an_example_that_breaks_the_contract_is_named_with_its_path() {
    let builder = || persons(&model()).0.with_example("Bo, 7.", json!({"name": "Bo", "age": 7}));
    let (kind, message) = refused(builder().with_example("Cy", json!({"name": "Cy", "age": "old"})));
    assert_eq!(kind, ErrorKind::Config);
    assert_eq!(message, "example 2: Type mismatch at $.age: expected integer, found string");
    // A check that is added after the example counts too, and each example is judged beside its own text.
    let (_, message) =
        refused(builder().check("$.age", "adult", |person| {
            if person.age >= 18 { Ok(()) } else { Err("at least 18".into()) }
        }));
    assert!(message.starts_with("example 1: adult at $.age"), "{message}");
    let (_, message) = refused(
        builder()
            .with_example("somebody", json!(maria()))
            .with_rule(Rule::Quoted { target: "$.name".parse().unwrap() }),
    );
    assert!(message.starts_with("example 2: quoted at $.name"), "{message}");
}

#[test]
fn what_cannot_work_is_refused_when_it_is_built() {
    let (kind, message) = refused(Extractor::<Person>::builder());
    assert_eq!((kind, message.as_str()), (ErrorKind::Config, "there is no target to ask"));

    let schema = json!({"properties": {"a": {"type": "strin"}}});
    let (kind, message) = refused(Extractor::for_document("bad", schema).with_target(backend(&model())));
    assert_eq!(kind, ErrorKind::Schema);
    assert!(message.starts_with("#/properties/a/type"), "{message}");

    let (kind, message) = refused(persons(&model()).0.check("age", "even", |_| Ok(())));
    assert_eq!(kind, ErrorKind::Config);
    assert!(message.contains("`age`"), "{message}");

    let custom = persons(&model()).0.with_retry_policy(Policy::chat(1)).with_max_attempts(2);
    assert_eq!(refused(custom).0, ErrorKind::Config);
}

#[tokio::test]
async fn settings_reach_the_call() {
    let model = Arc::new(Scripted::new(["no"]));
    let builder = persons(&model).0.with_temperature(0.3).with_max_attempts(2).with_max_tokens(99);
    assert_eq!(builder.build().unwrap().extract(TEXT).await.unwrap_err().attempts().len(), 2);
    let calls = model.calls();
    assert!(calls.iter().all(|call| call.sampling.temperature == Some(0.3)));
    assert_eq!(calls[0].max_tokens, Some(99));

    let builder = persons(&model).0.with_retry_policy(Policy::chat(3));
    assert_eq!(builder.build().unwrap().extract(TEXT).await.unwrap_err().attempts().len(), 4);
}

#[test]
fn extractors_are_shared() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Extractor<Person>>();
    shared::<Extractor<Value>>();
    fn sent<T: Send + 'static>(_: T) {}
    let extractor = persons(&model()).0.build().unwrap();
    sent(extractor.extraction(TEXT).run());
    sent(extractor.stream(TEXT));
    sent(extractor.extract_all([TEXT], 1));
}
