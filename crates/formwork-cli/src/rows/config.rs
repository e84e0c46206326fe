use schemars::JsonSchema;
use serde::Serialize;

/// The output of `formwork config show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigOutput {
    /// The file that was read; null without a file.
    pub file: Option<String>,
    /// Whether the file may run programs (`api_key_command`).
    pub trusted: bool,
    /// The settings of the file and the environment, in the order of the file.
    pub settings: Vec<ConfigSetting>,
    /// The providers that are asked, in order, then the others of the file.
    pub providers: Vec<ConfigProvider>,
}

/// A setting and its source.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigSetting {
    /// Its place, such as `providers.primary.model`.
    pub path: String,
    /// Its value as TOML has it; secrets are hidden.
    pub value: String,
    /// `line 7` of the file, or an environment variable.
    pub source: String,
}

/// A provider as calls would use it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConfigProvider {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The model that is asked; empty if the provider cannot be made.
    pub model: String,
    /// Its address, where it is not the usual one of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The dialects of JSON Schema that it is asked in, the strictest first.
    pub modes: Vec<String>,
    /// The price of a million tokens in US dollars, prompt and answer; left out if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<(f64, f64)>,
    /// Why the provider cannot be made, such as a key that is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
