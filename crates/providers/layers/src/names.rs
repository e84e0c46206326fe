//! The attribute names of OpenTelemetry's semantic conventions for generative AI that spans of this crate use.
//!
//! From open-telemetry/semantic-conventions, commit 7b0c0fe1e (status: development), the last one before they moved to a
//! repository of their own. They are defined here because the crate of the conventions marks all of them as moved.

/// The commit of the conventions.
pub const VERSION: &str = "7b0c0fe1e";

/// The operation: always `chat`.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The provider: `openai`, `anthropic`, `gcp.gemini`, `gcp.vertex_ai`, or a server's own name.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The requested model.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The requested temperature.
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
/// The requested nucleus threshold.
pub const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
/// The requested seed.
pub const REQUEST_SEED: &str = "gen_ai.request.seed";
/// The maximum number of tokens of the answer.
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// The type of the output: always `json`.
pub const OUTPUT_TYPE: &str = "gen_ai.output.type";
/// The model that answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The reason why the model stopped.
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// The tokens of the prompt.
pub const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// The tokens of the answer.
pub const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// The class of the fault, if the call failed.
pub const ERROR_TYPE: &str = "error.type";
