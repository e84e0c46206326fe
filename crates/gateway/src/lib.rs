//! An HTTP service that gives clients of OpenAI, Anthropic and Ollama valid JSON from any model.
//!
//! Clients keep their library and change its base URL. A JSON Schema in a request is a contract: every answer is validated,
//! repaired, patched and asked for again until it satisfies the schema, or the client gets an error of its protocol with all
//! violations. Requests without a contract are passed through to targets of the same protocol, and translated for others.
//!
//! | path | protocol |
//! |---|---|
//! | `POST /v1/chat/completions`, `POST /v1/responses`, `POST /v1/embeddings`, `GET /v1/models` | OpenAI |
//! | `POST /v1/messages`, `POST /v1/messages/count_tokens`, `GET /v1/models` | Anthropic |
//! | `POST /api/chat`, `POST /api/generate`, `POST /api/embed`, `GET /api/tags`, `GET /api/ps`, `POST /api/show`, `GET /api/version` | Ollama |
//! | `POST /v1/extract` | its own: a schema or a named contract, rules, targets, every step as an event |
//! | `GET /healthz`, `GET /readyz`, `GET /metrics` | for operators |
//! | `GET /openapi.json` | the OpenAPI document, [`openapi`] |
//!
//! # Map
//! `protocol` translates requests into an `Ask` and replies back, without IO. `engine` carries an `Ask` out. `service` has
//! the routes, streams and limits; `contracts` the compiled and the named contracts; `pass` the requests that are passed through.
//!
//! # What is passed through
//! A request without a contract to a target of the same protocol is sent as it is, but for the name of the model, and so is the
//! response, byte for byte. The same holds for a request with tools, with or without a format of the answer or a named contract: a call
//! passes once its arguments satisfy the schema of the tool, and each answer without a call once it satisfies the format. Text without a
//! format passes as it comes. If something does not hold, the request is sent again with a message that says what is wrong, as often as the retry policy
//! allows; then the client gets the error of its protocol with all violations. In a stream, events are held back until they are certain;
//! in a whole response, a value that stands between other text is taken out of it. What the token limit cut passes as it is.
//!
//! A request with a contract and members that a run does not know (`thinking`, `logprobs`, caching, documents) is a run, and each call
//! for a target of the protocol is the request of the client with the schema in the dialect of the target, with the instructions of the
//! contract and with the corrections. The response is the target's: byte for byte if one call was enough, with another text if a value was
//! corrected, and written anew in a stream and for several answers.
//!
//! # What a request costs
//! The usage of every response is read as it passes. Streams of Chat Completions are asked for it, and it is taken out again if the
//! client did not ask. Usage that is not reported, because the response was cut or the server does not count, is estimated from the texts,
//! seldom too low, and the ledger says that it is estimated. Before a call the request reserves its maximum cost, from the texts of its
//! prompt, its limit of tokens and `n`. While the reservations of open requests are all that a budget lacks, a request waits for them, for
//! [`Limits::budget_wait`]. `x-formwork-budget` and `x-formwork-deadline` hold for every request.
//!
//! Tokens of a request of Anthropic's are counted by the target, or estimated for targets of other protocols, which the header
//! `x-formwork-estimated` says. Embeddings are passed on to targets of their protocol only.
//!
//! # What a translation loses
//! Every member of a request is acted on, refused in the words of the protocol, or named in the response header
//! `x-formwork-ignored` with its place (`stop, messages[].name, options.num_ctx`). Members that say what holds anyway (`n: 1`,
//! `logprobs: false`) are not named. This is what the header can name for a pair of protocols:
//!
//! | from | to | lost |
//! |---|---|---|
//! | Chat Completions | Responses, Anthropic, Ollama, others | `logprobs` of streams, tools and formats, `top_logprobs`, `logit_bias`, `prediction`, `store`, cache keys; the `name` of messages |
//! | Responses | Chat Completions, Anthropic, Ollama, others | reasoning items, `reasoning.summary`, `include` (but log probabilities of whole texts), `top_logprobs`, `truncation: auto`, `max_tool_calls`, `store`, cache keys |
//! | Anthropic | Chat Completions, Responses, Ollama, others | thoughts, `thinking: adaptive`, `cache_control`, `betas`, `container`, `context_management` |
//! | Ollama | Chat Completions, Responses, Anthropic, others | `options` other than `temperature`, `top_p`, `top_k`, `seed`, `num_predict`, `stop` and penalties; `keep_alive`, `think: true`, `logprobs` as above, `truncate`, `shift` |
//! | any | a target without it | `temperature`, `top_p`, `seed`, and the settings that its API does not have (a table for each API: `docs/settings.md`) |
//!
//! | of the response | from | lost |
//! |---|---|---|
//! | Chat Completions, Responses, Anthropic, Ollama | any other | thoughts, alternatives of tokens, annotations and citations, durations |
//!
//! Between protocols, tools are those of the target's API: it may call several at once, beside a text. Every call is judged by the schema
//! of its tool, and a text without a call by the format if there is one. A target without tools (in process) gets one contract instead:
//! it answers with the name of one tool and its arguments, or with text, and earlier calls are told as text. Members that a
//! protocol does not have are refused. Addresses of pictures are never fetched: pictures are sent as data.
//!
//! # Headers
//! | request | |
//! |---|---|
//! | `x-formwork-contract` | the name of a contract of the folder |
//! | `x-formwork-budget` | the most that the request may cost, in US dollars; with `n`, each answer has an equal share |
//! | `x-formwork-deadline` | the most seconds that it may take |
//! | `x-formwork-stream` | `certain` (default): a stream shows the answer once it holds; `eager`: the first completion as it comes, and an error at the end if it does not hold |
//! | `x-formwork-evidence` | `on`: `evidence` (the places of the values in the messages) and `confidence` of each value, in `formwork` of the usage |
//! | `x-formwork-absent` | the members of the schema that the text may lack: `all`, or paths (`$.birth, $.items[*].note`) |
//! | `x-formwork-coerce` | what is done with values that do not fit the schema: `strict`, `ask`, `fix`, `drop`, `default` or `guess`, or a path before it (`$.note=drop`) |
//! | `x-formwork-tags`, `x-formwork-user` | labels of the run in the ledger |
//! | `traceparent`, `tracestate` | the caller's trace: passed on to the target, and a label `trace:…` of the run |
//!
//! Responses have `x-formwork-run`, `x-formwork-ignored` with the members of the request that nothing acts on, and, where they are
//! known before the body, `x-formwork-calls` and `x-formwork-warnings` with what was repaired, dropped, chosen or rounded in the
//! answer (`repaired, rounded at $.total`). The usage has a member `formwork`
//! with the run, the number of calls, the cost, and `not_stated` with the paths of members that are `null` because the text does not
//! state them.

mod access;
mod ask;
mod contracts;
mod document;
mod engine;
mod failover;
mod guard;
mod limits;
mod meter;
mod metrics;
mod names;
mod openapi;
mod options;
mod outages;
mod pass;
mod problem;
mod protocol;
mod record;
mod reply;
mod seen;
mod service;
#[cfg_attr(not(feature = "otlp"), path = "telemetry/absent.rs")]
mod telemetry;
mod tools;
mod trace;
mod vendor;

pub use formwork_serve::{Tls, TlsError};

pub use contracts::{ContractError, NamedContract, read_contract};
pub use limits::Limits;
pub use names::Target;
pub use openapi::openapi;
pub use service::{Gateway, GatewayBuilder};
pub use telemetry::Telemetry;
#[cfg(feature = "otlp")]
pub use telemetry::{TelemetryBuilder, TelemetryError};
