//! The pure core of Formwork: typed, schema-valid, cross-checked JSON out of any language model.
//!
//! The crate makes every decision of a request and performs no effect: no IO, no clock, no randomness.
//!
//! - A [`Contract`] defines an acceptable answer: a [`Schema`], a Rust type, [`Rule`]s and [`Validator`]s.
//! - A [`Provider`] turns a [`Call`] into an [`Answer`], or fails with a [`Fault`].
//! - A [`Violation`] is one defect of an answer: data, never an `Err`.
//! - A [`RetryPolicy`] decides what is requested after an answer that was not accepted; [`Policy`] is the policy to start
//!   with.
//! - [`keywords`] lists the keywords of JSON Schema and walks over a schema.
//! - [`Health`] counts the [`Evidence`] of calls about their targets, and gives each run an [`Advice`].
//! - A [`Plan`] holds the fixed parts of a request, and a [`Run`] is the state machine that a driver steps through.
//! - An [`Outcome`] is an accepted value with its history; an [`Error`] is the history of a run without one.
//!
//! Drivers, JSON Schema validation, dialects and providers live in the other crates of the family.
//! `examples/embed-core.rs` drives a run with this crate alone.

mod about;
mod absence;
mod accepts;
mod answer;
mod calibration;
mod call;
mod capabilities;
mod client_request;
mod coercion;
mod confidence;
mod contract;
mod cost;
mod debug_fields;
mod decode;
mod equal;
mod error;
mod fault;
mod feedback;
mod finding;
mod fit;
mod found;
mod group;
mod health;
mod instruction;
mod judgement;

mod ledger;
mod lift;
mod log_prob;
mod lower;
mod lower_value;
mod message;
mod nearest;
mod normalise;
mod observation;
mod original;
mod outcome;
mod overrides;
mod plan;
mod policy;
mod precision;
mod provider;
mod rate_limit;
mod reader;
mod report;
mod root;
mod rule;
mod run;
mod sampling;
mod schema;
mod secret;
mod setters;
mod settings;
mod text;
mod time;
mod trust;
mod usage;
mod validator;
mod violation;
mod warning;
mod watch;

pub use absence::declared::{Absent, KEYWORD as ABSENT, declares_absence, is_marked, is_wrapped};
pub use absence::mistake::{absence_mistake, without_marks};
pub use absence::settle::Settled;
pub use answer::{Answer, Completion, Delta, End, Finish, ToolCall};
pub use calibration::{Calibration, Calibrations};
pub use call::Call;
pub use capabilities::{Capabilities, Enforcement};
pub use client_request::ClientRequest;
pub use coercion::change::Coerced;
pub use coercion::declared::{Coerce, Coercion, KEYWORD as COERCE, coercion_mistake, declares_coercion};
pub use confidence::Confidence;
pub use contract::Contract;
pub use cost::{Cost, LongPrice, Price};
pub use decode::decode;
pub use error::{Best, Error, ErrorKind};
pub use fault::{Connection, Fault, FaultKind};
pub use feedback::{Feedback, MAX_BYTES, MAX_PREVIOUS, Template};
pub use finding::LintFinding;
pub use fit::Fit;
pub use formwork_evidence as evidence;
pub use formwork_json::{
    Edit, EditKind, JsonPath, Level, PathError, PathPattern, PatternStep, Rounded, Segment, Span, escape,
    unescape,
};
pub use formwork_keywords as keywords;
pub use health::{
    Advice, Evidence, Health, Restriction, RestrictionKind, Shown, Size, TargetAdvice, Thresholds,
};
pub use instruction::Instruction;
pub use judgement::Judgement;
pub use ledger::{CallRecord, CallResult, Failure, Origin, Provenance, Source, is_answered, is_compliant};
pub use lift::lift;
pub use lift::op::{Lift, LiftOp};
pub use log_prob::LogProb;
pub use lower::{
    AddedBound, Dependency, Loss, LossKind, Lower, LowerRequest, Lowered, Refused, SchemaText, Tighten,
};
pub use lower_value::lower_value;
pub use message::{Message, Part, Role, Tool};
pub use nearest::{advised, misspelled, nearest};
pub use normalise::{is_old_draft, normalise, normalise_with_origins};
pub use observation::{Observation, ObservationKind, SamplingParameter};
pub use original::Original;
pub use outcome::Outcome;
pub use overrides::Overrides;
pub use plan::{Plan, PlanBuilder, PlanOptions, Target};
pub use policy::{
    Ask, Backoff, Decision, Estimates, Patching, Policy, Reask, Retries, RetryContext, RetryPolicy,
    Temperature,
};
pub use precision::precision;
pub use provider::{Clock, Layer, Provider, SharedProvider};
pub use rate_limit::{Counted, RateLimit};
pub use reader::{Ended, Follower, Item, Outline, Outlook, Progress, Reader, Snapshot, Validity};
pub use report::Report;
pub use rule::{Custom, CustomRule, RULES, Rule, Rules, Term};
pub use run::{CallId, Event, External, Input, MAX_CALLS, Misuse, Run, Step, values_of_patch};
pub use sampling::Sampling;
pub use schema::{Inline, Schema};
pub use secret::{is_secret_name, looks_like_key};
pub use settings::{Effort, ModelSettings, PromptCache, ServiceTier, Verbosity, within};
pub use text::spaced;
pub use time::Time;
pub use trust::{History, Leaves, Trust};
pub use usage::Usage;
pub use validator::{Context, Member, Structure, Validator};
pub use violation::{MAX_EXPECTED, MAX_FOUND, MAX_NAME, MAX_PATH, Severity, Stage, Violation, cut};
pub use warning::{Warning, WarningKind};
pub use watch::Watch;
