//! Judges whose answers depend on the prompt, and agents on a virtual clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Clock, Completion, Enforcement, Fault, Provider, Time};
use formwork_extract::{Backend, TokioClock};
use formwork_review::Agent;
use formwork_testkit::VirtualClock;
use serde_json::{Value, json};

type Script = Box<dyn Fn(&Call, usize) -> String + Send + Sync>;

/// The end of an answer whose values the provider ended early.
pub(crate) const RESTRAINED: &str = " (restrained)";

/// A model whose answers a function computes from the call.
pub(crate) struct Says {
    capabilities: Capabilities,
    calls: Mutex<Vec<Call>>,
    answer: Script,
}

impl Says {
    /// The function gets the call, and the number of earlier calls.
    pub(crate) fn new(answer: impl Fn(&Call, usize) -> String + Send + Sync + 'static) -> Arc<Self> {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_dialect("openai")
            .with_temperature()
            .with_seed()
            .with_late_system();
        Arc::new(Self { capabilities, calls: Mutex::default(), answer: Box::new(answer) })
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
}

impl std::fmt::Debug for Says {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Says")
    }
}

#[async_trait]
impl Provider for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let nth = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(call.clone());
            calls.len() - 1
        };
        let answer = (self.answer)(call, nth);
        let mut completion = Completion::new(answer.trim_end_matches(RESTRAINED));
        completion.restrained = answer.ends_with(RESTRAINED);
        Ok(completion.into())
    }
}

/// An agent of this provider, on a virtual clock.
pub(crate) fn agent(provider: Arc<impl Provider + 'static>) -> (Agent, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    (Agent::new([Backend::from(provider)]).with_clock(clock.clone()), clock)
}

/// Returns the text of a call's last message.
pub(crate) fn last(call: &Call) -> String {
    call.messages.last().unwrap().text()
}

/// Returns a judge's answer.
pub(crate) fn verdict(verdict: &str, confidence: u8) -> String {
    json!({"reasoning": "Because of what is there.", "verdict": verdict, "confidence": confidence})
        .to_string()
}

/// Returns a response of Chat Completions with this text.
pub(crate) fn completion(text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 5}})
        .to_string()
}

pub(crate) fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name", "age"],
        "additionalProperties": false,
    })
}

/// The real clock, except that waits before the agent's deadline are skipped and recorded. A real connection takes real
/// time, so a fully virtual clock would end it at its first wait.
#[derive(Debug)]
pub(crate) struct Hurried {
    clock: TokioClock,
    began: Time,
    waits: Mutex<Vec<Duration>>,
}

impl Hurried {
    pub(crate) fn new() -> Self {
        let clock = TokioClock::new();
        Self { began: clock.now(), clock, waits: Mutex::default() }
    }

    /// Returns all waits so far in seconds.
    pub(crate) fn waits(&self) -> Vec<u64> {
        self.waits.lock().unwrap().iter().map(|wait| wait.as_millis().div_ceil(1000) as u64).collect()
    }
}

#[async_trait]
impl Clock for Hurried {
    fn now(&self) -> Time {
        let skipped: Duration = self.waits.lock().unwrap().iter().sum();
        self.clock.now().after(skipped)
    }

    async fn sleep_until(&self, until: Time) {
        if until >= self.began.after(Agent::TIME_LIMIT) {
            std::future::pending::<()>().await;
        }
        let wait = until.since(self.now());
        self.waits.lock().unwrap().push(wait);
    }
}
