//! The cost of 40 usages with caches, lifetimes and long prompts, beside arithmetic by hand; `measure/peers/prices.py` compares them
//! with `genai-prices`.

use std::path::Path;

use formwork_core::Usage;
use formwork_dialect::registry::known_price;
use serde_json::{Value, json};

/// Vendor, model, the tokens of a call (input with those read from the cache and written to it, read, written, written for an
/// hour, output), and the products by hand: tokens and dollars for a million of them.
type Row = (&'static str, &'static str, [u64; 5], &'static [(u64, f64)]);

#[rustfmt::skip]
const ROWS: [Row; 40] = [
    ("anthropic", "claude-sonnet-4-5", [1000, 0, 0, 0, 200], &[(1000, 3.0), (200, 15.0)]),
    ("anthropic", "claude-sonnet-4-5", [50000, 48000, 0, 0, 500], &[(2000, 3.0), (48000, 0.3), (500, 15.0)]),
    ("anthropic", "claude-sonnet-4-5", [50000, 0, 48000, 0, 500], &[(2000, 3.0), (48000, 3.75), (500, 15.0)]),
    ("anthropic", "claude-sonnet-4-5", [50000, 0, 48000, 48000, 500], &[(2000, 3.0), (48000, 6.0), (500, 15.0)]),
    ("anthropic", "claude-sonnet-4-5", [60000, 30000, 20000, 5000, 777], &[(10000, 3.0), (30000, 0.3), (15000, 3.75), (5000, 6.0), (777, 15.0)]),
    ("anthropic", "claude-sonnet-4-5", [300000, 100000, 0, 0, 1000], &[(200000, 6.0), (100000, 0.6), (1000, 22.5)]),
    ("anthropic", "claude-sonnet-4-5", [300000, 0, 100000, 0, 1000], &[(200000, 6.0), (100000, 7.5), (1000, 22.5)]),
    ("anthropic", "claude-sonnet-4-5", [300000, 0, 100000, 100000, 1000], &[(200000, 6.0), (100000, 12.0), (1000, 22.5)]),
    ("anthropic", "claude-sonnet-4-5-20250929", [200000, 0, 0, 0, 1000], &[(200000, 3.0), (1000, 15.0)]),
    ("anthropic", "claude-opus-4-6", [150123, 150000, 0, 0, 20], &[(123, 5.0), (150000, 0.5), (20, 25.0)]),
    ("anthropic", "claude-opus-5", [10000, 0, 9000, 9000, 1000], &[(1000, 5.0), (9000, 10.0), (1000, 25.0)]),
    ("anthropic", "claude-haiku-4-5", [4096, 2048, 1024, 0, 64], &[(1024, 1.0), (2048, 0.1), (1024, 1.25), (64, 5.0)]),
    ("anthropic", "claude-haiku-5-5", [100001, 0, 0, 0, 100], &[(100001, 0.5), (100, 2.5)]),
    ("anthropic", "claude-haiku-5-5", [100000, 50000, 0, 0, 100], &[(50000, 0.1), (50000, 0.01), (100, 0.5)]),
    ("openai", "gpt-4o", [1200, 1024, 0, 0, 300], &[(176, 2.5), (1024, 1.25), (300, 10.0)]),
    ("openai", "gpt-4o-2024-11-20", [1200, 0, 0, 0, 300], &[(1200, 2.5), (300, 10.0)]),
    ("openai", "gpt-4o-mini", [7, 0, 0, 0, 1], &[(7, 0.15), (1, 0.6)]),
    ("openai", "gpt-4.1", [90000, 80000, 0, 0, 1000], &[(10000, 2.0), (80000, 0.5), (1000, 8.0)]),
    ("openai", "o3", [3000, 2000, 0, 0, 4000], &[(1000, 2.0), (2000, 0.5), (4000, 8.0)]),
    ("openai", "gpt-5", [20000, 16384, 0, 0, 2500], &[(3616, 1.25), (16384, 0.125), (2500, 10.0)]),
    ("openai", "gpt-5-mini", [20000, 16384, 0, 0, 2500], &[(3616, 0.25), (16384, 0.025), (2500, 2.0)]),
    ("openai", "gpt-5.4", [272000, 0, 0, 0, 1000], &[(272000, 2.5), (1000, 15.0)]),
    ("openai", "gpt-5.4", [272001, 200000, 0, 0, 1000], &[(72001, 5.0), (200000, 0.5), (1000, 22.5)]),
    ("openai", "gpt-5.6", [40000, 20000, 10000, 0, 1500], &[(10000, 4.0), (20000, 0.4), (10000, 5.0), (1500, 20.0)]),
    ("openai", "gpt-5.6", [300000, 100000, 50000, 0, 1500], &[(150000, 8.0), (100000, 0.8), (50000, 10.0), (1500, 30.0)]),
    ("openai", "gpt-6-sol", [5000, 4000, 0, 0, 900], &[(1000, 2.0), (4000, 0.2), (900, 10.0)]),
    ("gemini", "gemini-2.5-flash", [10000, 8000, 0, 0, 700], &[(2000, 0.3), (8000, 0.03), (700, 2.5)]),
    ("gemini", "gemini-2.5-pro", [200000, 100000, 0, 0, 700], &[(100000, 1.25), (100000, 0.125), (700, 10.0)]),
    ("gemini", "gemini-2.5-pro", [200001, 100000, 0, 0, 700], &[(100001, 2.5), (100000, 0.25), (700, 15.0)]),
    ("gemini", "gemini-3-pro-preview", [250000, 0, 0, 0, 5000], &[(250000, 4.0), (5000, 18.0)]),
    ("gemini", "gemini-3.5-flash", [1234, 0, 0, 0, 567], &[(1234, 1.5), (567, 9.0)]),
    ("xai", "grok-4-fast-reasoning", [9000, 3000, 0, 0, 800], &[(6000, 0.2), (3000, 0.05), (800, 0.5)]),
    ("groq", "openai/gpt-oss-120b", [6000, 2000, 0, 0, 500], &[(4000, 0.15), (2000, 0.075), (500, 0.6)]),
    ("groq", "openai/gpt-oss-20b", [3, 0, 0, 0, 1], &[(3, 0.075), (1, 0.3)]),
    ("cohere", "command-a-03-2025", [2000, 0, 0, 0, 400], &[(2000, 2.5), (400, 10.0)]),
    ("deepseek", "deepseek-chat", [64000, 60000, 0, 0, 2000], &[(4000, 0.28), (60000, 0.028), (2000, 0.42)]),
    ("deepseek", "deepseek-r1", [1000, 0, 0, 0, 1000], &[(1000, 0.55), (1000, 2.19)]),
    ("mistral", "mistral-large-latest", [8000, 0, 0, 0, 1000], &[(8000, 0.5), (1000, 1.5)]),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", [20000, 10000, 5000, 5000, 1000], &[(5000, 3.3), (10000, 0.33), (5000, 6.6), (1000, 16.5)]),
    ("openrouter", "anthropic/claude-sonnet-4.5", [250000, 200000, 10000, 0, 1000], &[(40000, 6.0), (200000, 0.6), (10000, 7.5), (1000, 22.5)]),
];

#[test]
fn the_cost_of_each_usage_is_that_by_hand() {
    let mut all = Vec::new();
    for (vendor, model, [input, cached, written, hour, output], products) in ROWS {
        let price = known_price(vendor, model).unwrap_or_else(|| panic!("{vendor}/{model}"));
        let usage = Usage::new(input, output).with_cached(cached).with_written(written - hour, hour);
        let cost = price.of(usage).micro_usd.unwrap();
        // In billionths of a dollar, so that the products are whole numbers: no price has more digits.
        let by_hand: u64 =
            products.iter().map(|(tokens, dollars)| tokens * (dollars * 1e4).round() as u64).sum();
        assert_eq!(cost, by_hand.div_ceil(10_000), "{vendor}/{model} {usage:?}");
        let tokens =
            json!({"input": input, "cached": cached, "written": written, "hour": hour, "output": output});
        all.push(json!({"vendor": vendor, "model": model, "usage": tokens, "micro_usd": cost}));
    }
    let lines: Vec<String> = all.iter().map(Value::to_string).collect();
    let (expected, path) = (
        format!("[\n{}\n]\n", lines.join(",\n")),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../measure/peers/prices.json"),
    );
    if std::env::var_os("FORMWORK_WRITE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "measure/peers/prices.json is outdated: run this test once with FORMWORK_WRITE=1"
    );
}
