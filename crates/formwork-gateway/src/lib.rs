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
//!
//! Several tools, or a choice that is left to the model, are one contract as well: the model answers with the name of a tool and
//! its arguments, or with text. So a response has one call at most, whatever the target, and earlier calls are told as text.
//! Members that a protocol does not have are refused; those that have no counterpart in a target are ignored. Addresses of pictures
//! are never fetched: pictures are sent as data.
//!
//! # Headers
//! | request | |
//! |---|---|
//! | `x-formwork-contract` | the name of a contract of the folder |
//! | `x-formwork-budget` | the most that the request may cost, in US dollars |
//! | `x-formwork-deadline` | the most seconds that it may take |
//! | `x-formwork-stream` | `certain` (default): a stream shows the answer once it holds; `eager`: the first completion as it comes, and an error at the end if it does not hold |
//! | `x-formwork-tags`, `x-formwork-user` | labels of the run in the ledger |
//!
//! Responses have `x-formwork-run`, and `x-formwork-attempts` where it is known before the body. The usage has a member `formwork`
//! with the run, the number of calls and the cost.

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
