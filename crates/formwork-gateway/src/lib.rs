//! An HTTP service that gives clients of OpenAI, Anthropic and Ollama valid JSON from any model.
//!
//! Clients keep their library and change its base URL. A JSON Schema in a request is a contract: every answer is validated,
//! repaired, patched and asked for again until it satisfies the schema, or the client gets an error of its protocol with all
//! violations. Requests without a contract are passed through to targets of the same protocol, and translated for others.
//!
//! | path | protocol |
//! |---|---|
//! | `POST /v1/chat/completions`, `POST /v1/responses`, `POST /v1/embeddings`, `GET /v1/models` | OpenAI |
//! | `POST /v1/messages`, `GET /v1/models` | Anthropic |
//! | `POST /api/chat`, `POST /api/generate`, `GET /api/tags`, `POST /api/show`, `GET /api/version` | Ollama |
//! | `POST /v1/extract` | its own: a schema or a named contract, rules, targets, every step as an event |
//! | `GET /healthz`, `GET /readyz`, `GET /metrics` | for operators |
//!
//! # Map
//! `protocol` translates requests into an `Ask` and replies back, without IO. `engine` carries an `Ask` out. `service` has
//! the routes, streams and limits; `contracts` the compiled and the named contracts; `pass` what is passed through.
//!
//! # What a translation loses
//! | from | to | lost |
//! |---|---|---|
//! | OpenAI | Anthropic, Ollama, in process | `logprobs`, `logit_bias`, penalties, `stop`, `service_tier`, `prediction`, audio |
//! | Anthropic | OpenAI, Ollama, in process | thoughts, `top_k`, `stop_sequences`, `cache_control` |
//! | Ollama | OpenAI, Anthropic | `options` other than `temperature`, `top_p`, `seed`, `num_predict`; `keep_alive`, `think`, durations |
//! | any | a contract | `top_p` and the above: the retry policy decides how tokens are chosen |

mod access;
mod ask;
mod contracts;
mod engine;
mod guard;
mod limits;
mod meter;
mod metrics;
mod names;
mod options;
mod pass;
mod problem;
mod protocol;
mod record;
mod reply;
mod service;
mod tools;

pub use contracts::{ContractError, NamedContract, read_contract};
pub use limits::Limits;
pub use names::Target;
pub use service::{Gateway, GatewayBuilder};
