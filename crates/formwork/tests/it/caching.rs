//! Prompt caching by the vendor's rules: what re-asks read from the cache, and what the marks cost.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use formwork::core::{
    Answer, Call, Capabilities, Completion, Fault, Inline, ModelSettings, Patching, Policy, Price, Provider,
    Usage,
};
use formwork::wire::Wire;
use formwork::{Backend, Extractor};
use formwork_anthropic::Anthropic;
use formwork_dialect::registry::known_price;
use serde_json::{Value, json};

/// A vendor that caches prompts like Anthropic: prefixes that end at a mark, at most four marks, at least 1,024 tokens, a token for
/// four bytes. The tools and the output format are in front of the messages, so that another format is another prefix.
#[derive(Debug)]
struct Vendor {
    wire: Anthropic,
    kept: Mutex<HashSet<String>>,
    usages: Mutex<Vec<Usage>>,
    /// The numbers of the texts whose first three answers are wrong.
    wrong: fn(usize) -> usize,
    asked: Mutex<std::collections::HashMap<String, usize>>,
}

impl Vendor {
    fn usage(&self, body: &Value) -> Usage {
        let mut prefix = format!("{}{}", body["tools"], body["output_config"]);
        let (mut ends, mut all) = (Vec::new(), String::new());
        let turns = body["messages"].as_array().unwrap().iter().map(|turn| &turn["content"]);
        for block in [&body["system"]].into_iter().chain(turns).filter_map(Value::as_array).flatten() {
            let mut plain = block.clone();
            let mark = plain.as_object_mut().unwrap().remove("cache_control");
            prefix += &plain.to_string();
            all = prefix.clone();
            ends.extend(mark.filter(|mark| !mark.is_null()).map(|_| prefix.clone()));
        }
        assert!(ends.len() <= 4, "the API refuses more than four marks");
        let tokens = |text: &str| text.len() as u64 / 4;
        ends.retain(|end| tokens(end) >= 1_024);
        let mut kept = self.kept.lock().unwrap();
        let read =
            ends.iter().filter(|end| kept.contains(*end)).map(|end| tokens(end)).max().unwrap_or_default();
        let written = ends.iter().map(|end| tokens(end)).max().unwrap_or_default().saturating_sub(read);
        kept.extend(ends);
        Usage::new(tokens(&all), 10).with_cached(read).with_written(written, 0)
    }
}

#[async_trait]
impl Provider for Vendor {
    fn name(&self) -> &str {
        "vendor"
    }

    fn capabilities(&self) -> &Capabilities {
        self.wire.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let request = self.wire.encode(call)?;
        let usage = self.usage(&serde_json::from_slice(request.body()).unwrap());
        self.usages.lock().unwrap().push(usage);
        let text = call.messages[call.task_messages - 1].text();
        let number = text.split(' ').next().unwrap().parse().unwrap();
        let mut asked = self.asked.lock().unwrap();
        let asked = asked.entry(text).or_default();
        *asked += 1;
        let age = if *asked <= (self.wrong)(number) { json!(200) } else { json!(34) };
        Ok(Completion::new(json!({"age": age}).to_string()).with_usage(usage).into())
    }
}

/// Extracts texts of 45 kB one after another; returns the usages of all calls.
async fn extracted(prompt_cache: Option<&str>, texts: usize, wrong: fn(usize) -> usize) -> Vec<Usage> {
    let settings: ModelSettings =
        serde_json::from_value(prompt_cache.map_or(json!({}), |value| json!({"prompt_cache": value})))
            .unwrap();
    let vendor = Arc::new(Vendor {
        wire: Anthropic::new("claude-sonnet-4-6").with_settings(&settings),
        kept: Mutex::default(),
        usages: Mutex::default(),
        wrong,
        asked: Mutex::default(),
    });
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer", "maximum": 120}}, "required": ["age"],
        "additionalProperties": false});
    let policy = Policy::new(4).with_patching(Patching::Never).with_stop_on_repeat(false);
    let extractor = Extractor::for_schema(Arc::new(Inline::new("person", schema)))
        .with_target(Backend::from(Arc::clone(&vendor)))
        .with_policy(policy)
        .with_system("Extract the person. ".repeat(300))
        .build()
        .unwrap();
    for number in 0..texts {
        extractor.extract(format!("{number} {}", "Maria is 34. ".repeat(3_460))).await.unwrap();
    }
    vendor.usages.lock().unwrap().clone()
}

fn cost(usages: &[Usage], price: Price) -> u64 {
    usages.iter().map(|usage| price.of(*usage).micro_usd.unwrap()).sum()
}

/// Returns the usages without the cache.
fn plain(usages: &[Usage]) -> Vec<Usage> {
    usages.iter().map(|usage| Usage::new(usage.input_tokens, usage.output_tokens)).collect()
}

#[tokio::test]
async fn three_re_asks_read_their_text_from_the_cache() {
    let usages = extracted(Some("on"), 1, |_| 3).await;
    assert_eq!(usages.len(), 4);
    let first = usages[0].input_tokens;
    let repeated: u64 = first * 3;
    let read: u64 = usages[1..].iter().map(|usage| usage.cached_tokens).sum();
    assert!(
        first > 11_000 && read * 100 >= repeated * 95,
        "{read} of {repeated} tokens were read: {usages:?}"
    );
    // Without the setting the text is written at the first re-ask, and with the cache off never.
    let usual = extracted(None, 1, |_| 3).await;
    let written = |usages: &[Usage]| usages.iter().map(|usage| usage.written_tokens).collect::<Vec<_>>();
    assert!(written(&usual)[0] < 2_000 && written(&usual)[1] > 10_000, "{usual:?}");
    assert!(usual[2].cached_tokens > 11_000 && usual[3].cached_tokens > 11_000, "{usual:?}");
    let off = extracted(Some("off"), 1, |_| 3).await;
    assert!(off.iter().all(|usage| usage.cached_tokens + usage.written_tokens == 0), "{off:?}");
}

#[tokio::test]
async fn marks_cost_no_more_than_none_where_few_texts_are_asked_again() {
    let price = known_price("anthropic", "claude-sonnet-4-6").unwrap();
    for (name, wrong) in [
        ("three re-asks of 5 %", (|number| if number % 20 == 7 { 3 } else { 0 }) as fn(usize) -> usize),
        ("one re-ask of 5 %", |number| usize::from(number % 20 == 7)),
        ("none", |_| 0),
    ] {
        let usages = extracted(None, 40, wrong).await;
        let (marked, unmarked) = (cost(&usages, price), cost(&plain(&usages), price));
        println!(
            "{name}: {marked} of {unmarked} millionths of a dollar ({:.3})",
            marked as f64 / unmarked as f64
        );
        assert!(marked <= unmarked, "{name}: {marked} with marks, {unmarked} without");
    }
}

#[tokio::test]
async fn a_contract_that_is_often_asked_again_is_marked_from_the_first_call_on() {
    // Every second text is asked again: after eight runs the share is known.
    let usages = extracted(None, 12, |number| number % 2).await;
    // The calls of a text that was the first of its run, by the tokens that were written.
    let last = &usages[usages.len() - 2..];
    assert!(last[0].written_tokens > 10_000 && last[1].cached_tokens > 11_000, "{last:?}");
    assert!(usages[0].written_tokens < 2_000, "{usages:?}");
    // One of twenty is not enough.
    let usages = extracted(None, 30, |number| usize::from(number % 20 == 7)).await;
    assert!(usages.last().unwrap().written_tokens < 2_000, "{usages:?}");
}
