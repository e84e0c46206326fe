//! Reads the price files of other projects: models.dev's `api.json`, and LiteLLM's `model_prices_and_context_window.json`.

use formwork_core::Price;
use formwork_dialect::registry::Date;
use serde_json::Value;

/// The facts about a model in a price file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    /// The registry's name of the provider, and the model: `openai/gpt-4o`.
    pub(super) name: String,
    pub(super) price: Option<Price>,
    pub(super) context_tokens: Option<u64>,
    /// The maximum tokens of a prompt. LiteLLM has this number and no context window; it is the window with or without the completion.
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    /// The retirement date, which only LiteLLM has.
    pub(super) retires: Option<Date>,
}

/// The registry's names of providers with the names in the two files. Other hosts of a model are excluded, because their prices
/// differ from the vendor's.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("openai", &["openai"]),
    ("anthropic", &["anthropic"]),
    ("gemini", &["gemini", "google"]),
    ("mistral", &["mistral"]),
    ("xai", &["xai"]),
    ("deepseek", &["deepseek"]),
    ("groq", &["groq"]),
    ("cohere", &["cohere", "cohere_chat"]),
    ("bedrock", &["bedrock_converse", "amazon-bedrock"]),
];

/// Reads the facts in one of the two files. The format is recognized by the contents.
pub(super) fn read(text: &str) -> Result<Vec<Facts>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let all = file.as_object().ok_or("expected an object of models or providers")?;
    let is_models_dev = all.values().any(|entry| entry["models"].is_object());
    let facts: Vec<Facts> = if is_models_dev {
        let providers = all.iter().filter_map(|(name, provider)| Some((own_name(name)?, provider)));
        let models = providers.flat_map(|(own, provider)| {
            let models = provider["models"].as_object().into_iter().flatten();
            models.map(move |(id, model)| models_dev(own, id, model))
        });
        models.collect()
    } else {
        all.iter().filter_map(|(id, model)| litellm(id, model)).collect()
    };
    if facts.is_empty() {
        return Err(
            "no model of a known provider: expected models.dev's or LiteLLM's file of prices".to_owned()
        );
    }
    Ok(facts)
}

fn own_name(name: &str) -> Option<&'static str> {
    PROVIDERS.iter().find(|(_, names)| names.contains(&name)).map(|(own, _)| *own)
}

fn models_dev(provider: &str, id: &str, model: &Value) -> Facts {
    let dollars = |name: &str| model["cost"][name].as_f64();
    Facts {
        name: format!("{provider}/{id}"),
        price: price(dollars("input"), dollars("output")),
        context_tokens: model["limit"]["context"].as_u64(),
        input_tokens: model["limit"]["input"].as_u64(),
        output_tokens: model["limit"]["output"].as_u64(),
        retires: None,
    }
}

fn litellm(id: &str, model: &Value) -> Option<Facts> {
    let provider = own_name(model["litellm_provider"].as_str()?)?;
    if !matches!(model["mode"].as_str(), Some("chat" | "responses")) {
        return None;
    }
    // The name may have the provider as a prefix, and a region or a batch size between prefix and model.
    let bare =
        id.split_once('/').filter(|(prefix, _)| own_name(prefix).is_some()).map_or(id, |(_, rest)| rest);
    let dollars = |name: &str| Some(model[name].as_f64()? * 1e6);
    Some(Facts {
        name: format!("{provider}/{bare}"),
        price: price(dollars("input_cost_per_token"), dollars("output_cost_per_token")),
        context_tokens: None,
        input_tokens: model["max_input_tokens"].as_u64(),
        output_tokens: model["max_output_tokens"].as_u64(),
        retires: model["deprecation_date"].as_str().and_then(|day| day.parse().ok()),
    })
}

/// Returns a price from dollars per million tokens, rounded to a millionth of a dollar.
fn price(input: Option<f64>, output: Option<f64>) -> Option<Price> {
    let micro = |dollars: f64| (0.0..=1e6).contains(&dollars).then(|| (dollars * 1e6).round() as u64);
    Some(Price::new(micro(input?)?, micro(output?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_say_the_same_of_a_model() {
        let dev = r#"{"google": {"models": {"g-1": {"cost": {"input": 0.3, "output": 2.5}, "limit": {"context": 9, "output": 7}}}},
            "elsewhere": {"models": {"g-1": {"cost": {"input": 9, "output": 9}}}}}"#;
        let lite = r#"{"gemini/g-1": {"litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 3e-7,
            "output_cost_per_token": 2.5e-6, "max_input_tokens": 9, "max_output_tokens": 7},
            "vertex_ai/g-1": {"litellm_provider": "vertex_ai", "mode": "chat", "input_cost_per_token": 1},
            "gemini/e-1": {"litellm_provider": "gemini", "mode": "embedding"}}"#;
        let expected = Facts {
            name: "gemini/g-1".to_owned(),
            price: Some(Price::new(300_000, 2_500_000)),
            context_tokens: Some(9),
            input_tokens: None,
            output_tokens: Some(7),
            retires: None,
        };
        assert_eq!(read(dev).unwrap(), std::slice::from_ref(&expected));
        assert_eq!(read(lite).unwrap(), [Facts { context_tokens: None, input_tokens: Some(9), ..expected }]);
        for (text, says) in
            [("[]", "expected an object"), ("{", "not JSON"), ("{}", "no model of a known provider")]
        {
            assert!(read(text).unwrap_err().starts_with(says));
        }
    }
}
