//! A provider that only prompts.

use std::sync::Arc;

use formwork_core::{
    Call, Capabilities, Enforcement, FaultKind, Layer, Lowered, Message, Provider, Sampling, SchemaText,
    SharedProvider,
};
use formwork_prompt::{Prompt, PromptLayer};
use formwork_testkit::{Reply, Scripted};
use serde_json::json;

fn call(lowered: Lowered) -> Call {
    Call::new(vec![Message::user("Maria, 34")], lowered)
        .with_schema_name("Person")
        .with_sampling(Sampling::default().with_temperature(0.3))
        .with_max_tokens(100)
}

fn native() -> Arc<Scripted> {
    let capabilities = Capabilities::new(Enforcement::Schema)
        .with_dialect("openai")
        .with_temperature()
        .with_rules()
        .with_context_tokens(8192);
    Arc::new(
        Scripted::new([Reply::text(r#"{"age": 34}"#)]).with_name("native").with_capabilities(capabilities),
    )
}

#[tokio::test]
async fn only_what_enforces_is_taken_back() {
    let described = Prompt::new(native());
    let expected = Capabilities::new(Enforcement::None)
        .with_dialect("prompt")
        .with_temperature()
        .with_context_tokens(8192);
    assert_eq!((described.name(), described.capabilities()), ("native", &expected));
    assert_eq!(described.probe().await.unwrap(), expected);
}

#[tokio::test]
async fn a_call_in_its_dialect_goes_through_as_it_is() {
    let native = native();
    let described = Prompt::new(native.clone());
    let prompt_schema = Some(SchemaText::JsonSchema("{}".to_owned()));
    let call = call(Lowered::default().with_prompt_schema(prompt_schema));
    let answer = described.call(&call).await.unwrap().collect().await.unwrap();
    assert_eq!(answer.text, r#"{"age": 34}"#);
    assert_eq!(native.calls(), [call]);
}

#[tokio::test]
async fn nothing_is_enforced_if_the_prompt_tells_it_anyway() {
    let native = native();
    let described = Prompt::new(native.clone());
    let lowered = Lowered::new(Enforcement::Schema, json!({"type": "object"}))
        .with_prompt_schema(Some(SchemaText::JsonSchema("{}".to_owned())));
    described.call(&call(lowered)).await.unwrap().collect().await.unwrap();
    let sent = native.calls().remove(0);
    assert_eq!((sent.enforcement(), sent.schema()), (Enforcement::None, None));
    assert_eq!((sent.max_tokens, sent.sampling.temperature), (Some(100), Some(0.3)));
}

#[tokio::test]
async fn a_schema_that_is_nowhere_is_refused() {
    let native = native();
    let described = Prompt::new(native.clone());
    let lowered = Lowered::new(Enforcement::Schema, json!({}));
    let fault = described.call(&call(lowered)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::SchemaRefused);
    assert!(fault.message.contains("`prompt`"), "{fault}");
    assert!(native.calls().is_empty());
}

#[tokio::test]
async fn faults_go_through() {
    let described = Prompt::new(Arc::new(Scripted::new([FaultKind::RateLimited])));
    assert_eq!(described.call(&call(Lowered::default())).await.unwrap_err().kind, FaultKind::RateLimited);
}

#[test]
fn the_layer_wraps_and_its_dialects_exist() {
    for (layer, dialect) in [(PromptLayer::new(), "prompt"), (PromptLayer::outline(), "prompt-outline")] {
        let wrapped: SharedProvider = layer.wrap(native());
        assert_eq!(wrapped.capabilities().dialects, [dialect]);
        let modes = formwork_dialect::modes(wrapped.capabilities());
        assert_eq!(modes.iter().map(|mode| mode.name()).collect::<Vec<_>>(), [dialect]);
    }
}
