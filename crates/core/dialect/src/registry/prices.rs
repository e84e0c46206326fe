//! The prices of the vendors' and hosts' models, from two public tables.

use formwork_core::{LongPrice, Price};

/// One model per line, sorted by name, in US dollars for a million tokens; `cargo xtask registry update` writes it.
const TABLE: &str = include_str!("../../registry/prices.csv");

/// Returns the price of a model at a vendor or host, by the name of its kind: `openai`, `openrouter`, `vertex_ai`.
///
/// A name with a date or `-latest` has the price of the name without it, unless it has its own. A fine-tuned model
/// (`ft:gpt-4o:org::id`) has the price of its base's fine-tunes. `None`: the price is not known.
///
/// ```
/// use formwork_dialect::registry::known_price;
///
/// assert_eq!(known_price("openai", "gpt-4o-2024-11-20"), known_price("openai", "gpt-4o"));
/// assert_eq!(known_price("openrouter", "openai/gpt-4o").unwrap().input, 2_500_000);
/// assert_eq!(known_price("openai", "gpt-4ooo"), None);
/// ```
pub fn known_price(vendor: &str, model: &str) -> Option<Price> {
    let model = model.to_ascii_lowercase();
    let bare = model.strip_prefix("models/").unwrap_or(&model);
    let of_arn = bare.rsplit_once("-profile/").or_else(|| bare.rsplit_once("-model/")).map(|(_, name)| name);
    let name = of_arn.filter(|_| bare.starts_with("arn:")).unwrap_or(bare);
    let found = |name: &str| row(&format!("{vendor}/{name}")).and_then(price);
    if let Some(tuned) = name.strip_prefix("ft:") {
        let base = tuned.split(':').next().unwrap_or_default();
        return found(&format!("ft:{base}")).or_else(|| found(&format!("ft:{}", undated(base)?)));
    }
    found(name).or_else(|| found(undated(name)?)).or_else(|| found(&format!("{}-latest", name)))
}

/// Returns the line of a name.
fn row(name: &str) -> Option<&'static str> {
    TABLE.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(',')))
}

/// Returns a name without its last part, if that is a date or `latest`: `-2024-11-20`, `-20241120`, `@20241120`, `-2411`.
fn undated(name: &str) -> Option<&str> {
    if let Some(name) = name.strip_suffix("-latest") {
        return Some(name);
    }
    [11, 9, 5].into_iter().find_map(|length| {
        let (name, date) = name.split_at_checked(name.len().checked_sub(length)?)?;
        let digits: String = date.chars().filter(char::is_ascii_digit).collect();
        let is_plain = date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'@');
        let month = digits.get(digits.len().checked_sub(if length == 5 { 2 } else { 4 })?..)?.get(..2)?;
        let is_month = ("01"..="12").contains(&month);
        let is_date = date.starts_with(['-', '@']) && matches!(digits.len(), 4 | 8) && is_plain && is_month;
        is_date.then_some(name)
    })
}

/// Reads a line.
fn price(line: &str) -> Option<Price> {
    let mut columns = line.split(',').skip(1).map(|column| column.parse::<f64>().ok());
    let mut next = || columns.next().flatten();
    let micro = |dollars: f64| (dollars * 1e6).round() as u64;
    let mut price = Price::new(micro(next()?), micro(next()?));
    price.cache_read = next().map(micro);
    price.cache_write = next().map(micro);
    price.cache_write_hour = next().map(micro);
    price.batch_percent = next().map(|percent| percent as u8);
    let (above, input, output, cache_read) = (next(), next(), next(), next());
    price.long = above.zip(input).map(|(above, input)| {
        let mut long = LongPrice::default();
        (long.above, long.input) = (above as u64, micro(input));
        long.output = output.map_or(price.output, micro);
        long.cache_read = cache_read.map(micro);
        long
    });
    Some(price)
}

#[cfg(test)]
mod tests {
    use formwork_core::Usage;

    use super::*;

    #[test]
    fn every_line_is_a_price_and_names_are_sorted() {
        let mut before = "";
        for line in TABLE.lines().skip(1) {
            let name = line.split(',').next().unwrap();
            assert!(name > before, "{name} after {before}");
            before = name;
            let price = price(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(line.split(',').count(), 12, "{line}");
            assert!(price.output < 2_000_000_000, "{line}");
            assert!(price.long.is_none_or(|long| long.above >= 32_000 && long.input > 0), "{line}");
            assert!(price.cache_read.unwrap_or_default() <= price.input, "{line}");
            let (vendor, model) = name.split_once('/').unwrap();
            assert!(known_price(vendor, model).is_some(), "{line}");
        }
    }

    #[test]
    fn names_have_the_price_of_their_model_or_none() {
        for (vendor, model, like) in [
            ("openai", "GPT-4o-2024-11-20", "gpt-4o"),
            ("openai", "ft:gpt-4o-2024-08-06:acme::abc", "ft:gpt-4o-2024-08-06"),
            ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("anthropic", "claude-sonnet-4-5-latest", "claude-sonnet-4-5"),
            ("gemini", "models/gemini-2.5-pro", "gemini-2.5-pro"),
            ("vertex_ai", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            (
                "bedrock",
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-pro-v1:0",
                "us.amazon.nova-pro-v1:0",
            ),
        ] {
            let price = known_price(vendor, model);
            assert!(price.is_some() && price == known_price(vendor, like), "{vendor} {model}: {price:?}");
        }
        for (vendor, model) in [
            ("openai", "gpt-4o-2024"),
            ("openai", "gpt"),
            ("openai", ""),
            ("openai", "ft:mine:acme::abc"),
            ("vllm", "gpt-4o"),
            ("openai", "-2024-11-20"),
            ("openai", "é-2024-11-20"),
        ] {
            assert_eq!(known_price(vendor, model), None, "{vendor} {model}");
        }
    }

    /// The arithmetic is by hand, in millionths of a dollar, with the prices of the rows in dollars for a million tokens.
    #[test]
    fn recorded_usages_cost_what_arithmetic_says() {
        let usage = Usage::new;
        for (vendor, model, usage, micro_usd) in [
            // 2.5 and 10.
            ("openai", "gpt-4o", usage(1_000, 100), 2_500 + 1_000),
            // 1.25 from the cache.
            (
                "openai",
                "gpt-4o",
                usage(10_000, 100).with_cached(8_000),
                2_000 * 5 / 2 + 8_000 * 5 / 4 + 1_000,
            ),
            // 3, 15; reads 0.3, writes 3.75 and 6.
            ("anthropic", "claude-sonnet-4-5", usage(2_000, 500), 6_000 + 7_500),
            (
                "anthropic",
                "claude-sonnet-4-5",
                usage(12_000, 500).with_written(10_000, 0),
                6_000 + 37_500 + 7_500,
            ),
            ("anthropic", "claude-sonnet-4-5", usage(12_000, 500).with_cached(10_000), 6_000 + 3_000 + 7_500),
            (
                "anthropic",
                "claude-sonnet-4-5",
                usage(12_000, 500).with_written(0, 10_000),
                6_000 + 60_000 + 7_500,
            ),
            (
                "anthropic",
                "claude-sonnet-4-5",
                usage(12_000, 0).with_cached(4_000).with_written(3_000, 2_000),
                3_000 * 3 + 1_200 + 3_000 * 15 / 4 + 12_000,
            ),
            // The service of FINDINGS J3: 150,000 tokens of a prompt, of which all but 20 were read.
            ("anthropic", "claude-sonnet-4-5", usage(150_000, 10).with_cached(149_980), 60 + 44_994 + 150),
            // Above 200,000 tokens of prompt: 6, 22.5, 0.6 for the whole call; writes in proportion, 7.5.
            ("anthropic", "claude-sonnet-4-5", usage(200_000, 100), 600_000 + 1_500),
            ("anthropic", "claude-sonnet-4-5", usage(200_001, 100), 1_200_006 + 2_250),
            ("anthropic", "claude-sonnet-4-5", usage(300_000, 0).with_cached(250_000), 300_000 + 150_000),
            ("anthropic", "claude-sonnet-4-5", usage(300_000, 0).with_written(300_000, 0), 2_250_000),
            // 1.25, 10, 0.125; above 200,000: 2.5, 15, 0.25.
            ("gemini", "gemini-2.5-pro", usage(100_000, 1_000).with_reasoning(900), 125_000 + 10_000),
            (
                "gemini",
                "gemini-2.5-pro",
                usage(400_000, 1_000).with_cached(200_000),
                500_000 + 50_000 + 15_000,
            ),
            // More cached tokens than tokens is a mistake of a server.
            ("openai", "gpt-4o", usage(1_000, 0).with_cached(9_000), 1_250),
            // The cost of the server has precedence.
            ("openrouter", "openai/gpt-4o", usage(1_000, 100).with_dollars(Some(0.001_25)), 1_250),
            ("openrouter", "openai/gpt-4o", usage(1_000, 100).with_dollars(Some(-1.0)), 3_500),
        ] {
            let price = known_price(vendor, model).unwrap();
            assert_eq!(price.of(usage).micro_usd, Some(micro_usd), "{vendor} {model} {usage:?}");
            // A reservation is never exceeded.
            if usage.micro_usd.is_none() {
                let most = price.at_most(Usage::new(usage.input_tokens, usage.output_tokens));
                assert!(most.micro_usd >= Some(micro_usd), "{usage:?}");
            }
        }
        let batch = known_price("openai", "gpt-4o").unwrap().in_batch();
        assert_eq!(batch.of(Usage::new(1_000, 100)).micro_usd, Some(1_750));
    }
}
