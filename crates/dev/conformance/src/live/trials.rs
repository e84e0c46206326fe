use std::pin::Pin;
use std::sync::Arc;

use formwork_core::{
    Call, Completion, Delta, Enforcement, Finish, Lowered, Message, Sampling, SharedProvider,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::dialect::ensure;

type Check<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;
type Trial = for<'a> fn(&'a SharedProvider) -> Check<'a>;

/// The names and functions of the tests.
pub(crate) const TRIALS: &[(&str, Trial)] = &[
    ("a_schema_is_kept_to", |provider| Box::pin(schema(provider))),
    ("a_canary_is_sung", |provider| Box::pin(canary(provider))),
    ("an_object_is_an_object", |provider| Box::pin(object(provider))),
    ("cut_off_is_length", |provider| Box::pin(length(provider))),
    ("usage_is_counted", |provider| Box::pin(usage(provider))),
    ("a_seed_repeats_itself", |provider| Box::pin(seed(provider))),
    ("an_answer_may_be_dropped", |provider| Box::pin(dropped(provider))),
    ("a_dialogue_is_taken", |provider| Box::pin(dialogue(provider))),
    ("a_prompt_beyond_the_context_is_not_cut", |provider| Box::pin(context(provider))),
];

fn call(provider: &SharedProvider, schema: Option<Value>, text: &str) -> Call {
    let enforcement = if schema.is_some() { Enforcement::Schema } else { Enforcement::None };
    let promised = provider.capabilities();
    let mut sampling = Sampling::default();
    sampling.temperature = promised.temperature.then_some(0.3);
    sampling.seed = promised.seed.then_some(7);
    let messages = vec![Message::system("You answer with JSON only."), Message::user(text)];
    Call::new(messages, Lowered::new(enforcement, schema)).with_sampling(sampling).with_max_tokens(120)
}

async fn ask(provider: &SharedProvider, call: &Call) -> Result<Completion, String> {
    let answer = provider.call(call).await.map_err(|fault| fault.to_string())?;
    answer.collect().await.map_err(|fault| fault.to_string())
}

fn enforces(provider: &SharedProvider) -> bool {
    provider.capabilities().enforcement == Enforcement::Schema
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "city": {"type": "string", "maxLength": 40},
        },
        "required": ["name", "age", "city"],
        "additionalProperties": false,
    })
}

async fn schema(provider: &SharedProvider) -> Result<(), String> {
    if !enforces(provider) {
        return Ok(());
    }
    let completion =
        ask(provider, &call(provider, Some(person()), "Maria Lindqvist, 34, moved to Lisbon.")).await?;
    let value = parsed(&completion)?;
    let keys: Vec<&str> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let types = value["name"].is_string() && value["age"].is_u64() && value["city"].is_string();
    ensure(keys == ["name", "age", "city"] && types, || format!("the answer violates the schema: {value}"))
}

/// Requests an answer that no unconstrained model gives.
async fn canary(provider: &SharedProvider) -> Result<(), String> {
    if !enforces(provider) {
        return Ok(());
    }
    let schema = json!({
        "type": "object",
        "properties": {"bird": {"type": "string", "enum": ["serinus-7431"]}},
        "required": ["bird"],
        "additionalProperties": false,
    });
    let completion = ask(provider, &call(provider, Some(schema), "Name a fruit.")).await?;
    let value = parsed(&completion)?;
    ensure(value == json!({"bird": "serinus-7431"}), || format!("the schema was ignored: {value}"))
}

async fn object(provider: &SharedProvider) -> Result<(), String> {
    if !provider.capabilities().dialects.iter().any(|name| name == "json-object") {
        return Ok(());
    }
    let lowered = Lowered::new(Enforcement::JsonObject, None);
    let mut request = call(provider, None, "Give a short JSON object with the member \"city\".");
    request.lowered = Arc::new(lowered);
    let completion = ask(provider, &request).await?;
    // A small model may write until the token limit; its answer still begins like an object.
    let begins = completion.text.trim_start().starts_with('{');
    ensure(begins && (completion.finish == Finish::Length || parsed(&completion)?.is_object()), || {
        format!("not an object: {}", completion.text)
    })
}

async fn length(provider: &SharedProvider) -> Result<(), String> {
    let mut request = call(provider, None, "Write a very long story about the sea.");
    request.max_tokens = Some(8);
    let completion = ask(provider, &request).await?;
    ensure(completion.finish == Finish::Length, || format!("{completion:?}"))
}

async fn usage(provider: &SharedProvider) -> Result<(), String> {
    let completion = ask(provider, &call(provider, None, "Say hello.")).await?;
    let used = completion.usage;
    ensure(used.input_tokens > 0 && used.output_tokens > 0 && !used.estimated, || format!("{used:?}"))
}

async fn seed(provider: &SharedProvider) -> Result<(), String> {
    if !provider.capabilities().seed {
        return Ok(());
    }
    let mut request = call(provider, None, "Tell me about a lighthouse.");
    request.sampling.temperature = provider.capabilities().temperature.then_some(1.0);
    request.max_tokens = Some(24);
    // After the first call the server has cached the prompt, which may change the rounding of sums.
    ask(provider, &request).await?;
    let (first, second) = (ask(provider, &request).await?, ask(provider, &request).await?);
    ensure(first.text == second.text, || format!("{:?} and {:?}", first.text, second.text))
}

async fn dropped(provider: &SharedProvider) -> Result<(), String> {
    let mut request = call(provider, None, "Write a very long story about the sea.");
    request.max_tokens = Some(400);
    let mut answer = provider.call(&request).await.map_err(|fault| fault.to_string())?;
    let mut first = answer.next().await;
    while let Some(Ok(Delta::Usage(_))) = first {
        first = answer.next().await;
    }
    drop(answer);
    ensure(matches!(first, Some(Ok(Delta::Text(_) | Delta::Reasoning(_)))), || format!("{first:?}"))?;
    ask(provider, &call(provider, None, "Say hello.")).await.map(|_| ())
}

async fn dialogue(provider: &SharedProvider) -> Result<(), String> {
    let mut request = call(provider, None, "What is 2 + 2?");
    request.messages.push(Arc::new(Message::assistant("five")));
    if provider.capabilities().late_system {
        request.messages.push(Arc::new(Message::system("The last answer was wrong.")));
    }
    request.messages.push(Arc::new(Message::user("Again, please.")));
    ask(provider, &request).await.map(|_| ())
}

/// Tests that a prompt that is too long is rejected or read as a whole, and not cut silently.
async fn context(provider: &SharedProvider) -> Result<(), String> {
    let Some(context_tokens) = provider.capabilities().context_tokens else { return Ok(()) };
    let mut request = call(provider, None, &"word ".repeat(context_tokens as usize + 64));
    request.max_tokens = Some(4);
    match ask(provider, &request).await {
        Err(_) => Ok(()),
        Ok(completion) => ensure(completion.usage.input_tokens > u64::from(context_tokens), || {
            format!("{} tokens of a longer prompt were read: {completion:?}", completion.usage.input_tokens)
        }),
    }
}

fn parsed(completion: &Completion) -> Result<Value, String> {
    serde_json::from_str(&completion.text).map_err(|error| format!("{error} in {completion:?}"))
}
