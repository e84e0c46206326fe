//! A played provider, and the extractor that rows use with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{
    Answer, Call, Capabilities, Completion, Fault, FaultKind, Policy, Price, Provider, SharedProvider, Time,
    Usage,
};
use formwork_extract::{Backend, Extractor, TokioClock};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::restate::entry::MAX_ENTRY;
use crate::restate::message::{PROTOCOL, RowRequest, digest};
use crate::restate::row::Calls;

/// A provider that answers by the number in the text and by how often it was asked, and keeps a record of its calls.
#[derive(Debug, Default)]
pub(super) struct Played {
    capabilities: Capabilities,
    calls: Mutex<HashMap<u64, u32>>,
}

impl Played {
    pub(super) fn calls(&self) -> u32 {
        self.calls.lock().unwrap().values().sum()
    }
}

#[async_trait]
impl Provider for Played {
    fn name(&self) -> &str {
        "played"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let text = call.messages.iter().map(|message| message.text()).collect::<String>();
        let number = text.split("text ").nth(1).unwrap();
        let number: u64 = number.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let nth = {
            let mut calls = self.calls.lock().unwrap();
            let nth = calls.entry(number).or_default();
            *nth += 1;
            *nth
        };
        tokio::time::sleep(Duration::from_millis(20)).await;
        let text = match number % 10 {
            3 | 6 if nth == 1 => format!("{{\"number\": \"{number}\"}}"),
            7 => format!("no, for the {nth}. time"),
            8 => format!("{{\"number\": {number}, \"pad\": \"{}\"}}", "x".repeat(MAX_ENTRY)),
            5 if nth == 1 => return Err(Fault::new(FaultKind::Unreachable, "closed")),
            _ => format!("{{\"number\": {number}}}"),
        };
        let completion = Completion::new(text).with_usage(Usage::new(10, 5));
        Ok(Answer::new(stream::iter(completion.into_deltas().map(Ok).collect::<Vec<_>>())))
    }
}

pub(super) fn contract() -> Value {
    let schema =
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    json!({"schema": schema})
}

pub(super) fn extractor(provider: &Arc<Played>) -> Extractor<Value> {
    let price = Price::new(1_000_000, 1_000_000);
    let backend = Backend::new(Arc::clone(provider) as SharedProvider).with_price(price);
    let mut policy = Policy::default();
    policy.attempts = 3;
    policy.backoff = formwork_core::Backoff::of_seconds(&[5.0]);
    let schema = contract()["schema"].clone();
    Extractor::for_document("answer", schema).with_policy(policy).with_target(backend).build().unwrap()
}

pub(super) fn calls() -> Calls {
    Calls { clock: TokioClock::new(), permits: Arc::new(Semaphore::new(8)), slots: None }
}

pub(super) fn request(number: u64) -> RowRequest {
    let contract = digest(&contract());
    RowRequest {
        protocol: PROTOCOL,
        contract,
        target: None,
        input: format!("text {number}"),
        run: None,
        stored: Time(0),
    }
}
