//! Tests on the wire, in which this crate plays the server.

mod answers;
mod completeness;
mod faults;
mod requests;
mod troubles;

use std::pin::Pin;
use std::sync::Arc;

use formwork_core::{Call, Completion, Enforcement, Fault, Lowered, Message};
use serde_json::{Value, json};

use crate::script::Script;
use crate::{Protocol, Reply};

type Shared = Arc<dyn Protocol>;
type Check = Pin<Box<dyn Future<Output = Result<(), String>>>>;
type Trial = fn(Shared) -> Check;

/// The names and functions of the tests.
pub(crate) const TRIALS: &[(&str, Trial)] = &[
    ("answer_is_verbatim", |protocol| Box::pin(answers::verbatim(protocol))),
    ("answer_of_a_megabyte", |protocol| Box::pin(answers::megabyte(protocol))),
    ("chunks_end_anywhere", |protocol| Box::pin(answers::chunks(protocol))),
    ("cut_off_is_length", |protocol| Box::pin(answers::length(protocol))),
    ("unknown_reasons_to_stop_are_kept", |protocol| Box::pin(completeness::reasons_are_kept(protocol))),
    ("only_a_root_that_ended_is_complete", |protocol| Box::pin(completeness::roots_end_answers(protocol))),
    ("refusal_is_not_an_answer", |protocol| Box::pin(answers::refusal(protocol))),
    ("reasoning_is_not_text", |protocol| Box::pin(answers::reasoning(protocol))),
    ("usage_is_counted", |protocol| Box::pin(answers::usage(protocol))),
    ("nothing_is_read_ahead", |protocol| Box::pin(answers::back_pressure(protocol))),
    ("a_body_cut_anywhere_is_no_answer", |protocol| Box::pin(answers::cut(protocol))),
    ("statuses_are_classes", |protocol| Box::pin(faults::statuses(protocol))),
    ("retry_after_is_kept", |protocol| Box::pin(faults::retry_after(protocol))),
    ("schema_complaints_are_schema_refused", |protocol| Box::pin(faults::schema(protocol))),
    ("an_error_within_is_a_fault", |protocol| Box::pin(faults::within(protocol))),
    ("what_is_not_the_protocol_is_bad_wire", |protocol| Box::pin(faults::bad_wire(protocol))),
    ("troubles_are_classified_and_nothing_is_lost", |protocol| Box::pin(troubles::all(protocol))),
    ("calls_of_offered_tools_are_reported", |protocol| Box::pin(troubles::offered(protocol))),
    ("keys_are_never_told", |protocol| Box::pin(faults::keys(protocol))),
    ("declared_enforcement_is_sent", |protocol| Box::pin(requests::enforcement(protocol))),
    ("property_order_is_kept", |protocol| Box::pin(requests::order(protocol))),
    ("promised_sampling_is_sent", |protocol| Box::pin(requests::sampling(protocol))),
    ("every_message_is_sent", |protocol| Box::pin(requests::messages(protocol))),
];

/// Returns a schema whose members are not in alphabetical order.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"zulu": {"type": "string"}, "alpha": {"type": "integer"}, "mike": {"type": "boolean"}},
        "required": ["zulu", "alpha", "mike"],
        "additionalProperties": false,
    })
}

fn call(enforcement: Enforcement) -> Call {
    let sent = matches!(enforcement, Enforcement::Schema | Enforcement::Tool).then(schema);
    let messages = vec![Message::system("You answer in JSON."), Message::user("What is it?")];
    Call::new(messages, Lowered::new(enforcement, sent)).with_schema_name("thing")
}

/// Returns the completion of one call with this response.
async fn ask(protocol: &Shared, call: &Call, reply: Reply) -> Result<Completion, Fault> {
    protocol.provider(Script::new([reply])).call(call).await?.collect().await
}

/// Returns the completion of one call with this response; an error if the call fails.
async fn answer(protocol: &Shared, call: &Call, reply: Reply) -> Result<Completion, String> {
    let described = format!("{reply:?}");
    ask(protocol, call, reply).await.map_err(|fault| format!("{fault} for {}", short(&described)))
}

/// Returns the fault of one call with this response; an error if the call succeeds.
async fn fault(protocol: &Shared, call: &Call, reply: Reply) -> Result<Fault, String> {
    let described = format!("{reply:?}");
    match ask(protocol, call, reply).await {
        Ok(completion) => Err(format!("an answer, {completion:?}, for {}", short(&described))),
        Err(fault) => Ok(fault),
    }
}

/// Returns a call with the strictest enforcement that the provider promises.
fn strictest(protocol: &Shared) -> Call {
    call(protocol.provider(Script::new([])).capabilities().enforcement)
}

pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
    Err(format!("{what}: found {}, expected {}", short(&found), short(&expected)))
}

pub(crate) fn short(text: &str) -> String {
    text.chars().take(400).collect()
}
