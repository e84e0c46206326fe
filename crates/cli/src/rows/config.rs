pub use formwork::config::Setting as ConfigSetting;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `formwork config show --json`.
///
/// ```
/// use formwork_cli::rows::ConfigOutput;
/// use serde_json::json;
///
/// let output = ConfigOutput { file: None, trusted: false, settings: Vec::new(), providers: Vec::new() };
/// assert_eq!(serde_json::to_value(output)?, json!({"file": null, "trusted": false, "settings": [], "providers": []}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigOutput {
    /// The configuration file; null if there is none.
    pub file: Option<String>,
    /// Whether the file may run programs (`api_key_command`).
    pub trusted: bool,
    /// The settings of the file and the environment, in the order of the file.
    pub settings: Vec<ConfigSetting>,
    /// The providers in the order of their calls, then the other providers of the file.
    pub providers: Vec<ConfigProvider>,
}

/// A provider with its effective settings.
///
/// ```json
/// {"name": "primary", "kind": "ollama", "model": "qwen3:8b", "modes": ["ollama", "json-object", "prompt"]}
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ConfigProvider {
    /// The name in the configuration.
    pub name: String,
    /// The kind of provider.
    pub kind: String,
    /// The model; empty if the provider cannot be created.
    pub model: String,
    /// The address of the server; absent for a model in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The output modes, the strictest first.
    pub modes: Vec<String>,
    /// The source of the output modes in words: a setting, a row of the registry, or the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes_source: Option<String>,
    /// The price of a million tokens in US dollars, for prompts and answers; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<(f64, f64)>,
    /// The source of the price in words: a setting, a row of the registry, the table of prices, or the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_source: Option<String>,
    /// The reason why the provider cannot be created, such as a missing API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
