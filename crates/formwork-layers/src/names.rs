//! Names of OpenTelemetry's semantic conventions for generative AI, as spans here carry them.
//!
//! From open-telemetry/semantic-conventions, commit 7b0c0fe1e (status: development), the last one before they moved to a
//! repository of their own. They are here because the crate of the conventions marks all of them as moved.

/// The version of the conventions.
pub const VERSION: &str = "7b0c0fe1e";

/// `chat`.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// `openai`, `anthropic`, `gcp.gemini`, `gcp.vertex_ai`; a server's own name otherwise.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The model that was asked.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// As it was asked.
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
/// As it was asked.
pub const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
/// As it was asked.
pub const REQUEST_SEED: &str = "gen_ai.request.seed";
/// The most tokens that the answer may have.
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// `json`.
pub const OUTPUT_TYPE: &str = "gen_ai.output.type";
/// The model that answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Why it stopped.
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Tokens of the prompt.
pub const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens of the answer.
pub const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// The class of the fault.
pub const ERROR_TYPE: &str = "error.type";
