//! Calls and response bodies.

use formwork_core::{Call, Completion, Delta, Enforcement, Fault, LowerRequest, Lowered, Message, Time};
use formwork_dialect::Dialects;
use formwork_gemini::Gemini;
use formwork_wire::http::Response;
use formwork_wire::http::response::Parts;
use formwork_wire::{Deltas, Wire};
use serde_json::Value;

pub(crate) fn call(messages: Vec<Message>, lowered: Lowered) -> Call {
    Call::new(messages, lowered).with_schema_name("person")
}

/// A call with `schema` lowered to `dialect`.
pub(crate) fn lowered(dialect: &str, schema: &Value) -> Call {
    let dialect = Dialects::builtin().get(dialect).unwrap();
    call(vec![Message::user("hi")], dialect.lower(&LowerRequest::new(schema)).unwrap())
}

/// A call with this enforcement and schema.
pub(crate) fn enforcing(enforcement: Enforcement, schema: Option<Value>) -> Call {
    call(vec![Message::user("hi")], Lowered::new(enforcement, schema))
}

/// The body of the request for a call.
pub(crate) fn body(wire: &Gemini, call: &Call) -> Value {
    serde_json::from_slice(wire.encode(call).unwrap().body()).unwrap()
}

pub(crate) fn head(status: u16, media_type: &str) -> Parts {
    let response = Response::builder().status(status).header("content-type", media_type).body(());
    response.unwrap().into_parts().0
}

/// Returns the deltas of a response whose body arrives in `chunks`.
pub(crate) fn decoded(call: &Call, media_type: &str, chunks: &[&[u8]]) -> (Vec<Delta>, Option<Fault>) {
    let mut decoder = Gemini::new("gemini-2.5-flash").decoder(call, &head(200, media_type));
    let mut deltas = Deltas::new();
    for chunk in chunks {
        if let Err(fault) = decoder.push(chunk, &mut deltas) {
            return (deltas.into(), Some(fault));
        }
    }
    let end = decoder.end(&mut deltas);
    (deltas.into(), end.err())
}

/// The completions of a document: sent whole, and as a stream of one event.
pub(crate) fn answers(call: &Call, document: &Value) -> [Completion; 2] {
    let event = format!("data: {document}\n\n");
    [("application/json", document.to_string()), ("text/event-stream", event)].map(|(media_type, body)| {
        let (deltas, fault) = decoded(call, media_type, &[body.as_bytes()]);
        assert_eq!(fault, None, "{document}");
        let mut completion = Completion::new("");
        for delta in deltas {
            completion.push(delta);
        }
        completion
    })
}

/// The fault of an error response.
pub(crate) fn fault(call: &Call, status: u16, body: &Value) -> Fault {
    let wire = Gemini::new("gemini-2.5-flash");
    wire.fault(call, &head(status, "application/json"), body.to_string().as_bytes(), Time(0))
}
