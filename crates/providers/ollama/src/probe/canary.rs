//! A call that shows whether decoding is constrained: an unconstrained model never writes the required text.

use formwork_core::{Call, Delta, End, Enforcement, Fault, FaultKind, Lowered, Message, Sampling, Usage};
use formwork_wire::{Deltas, Transport, Wire, quoted};
use serde_json::json;

use super::ANSWER_BYTES;
use crate::Ollama;

/// The token limit for a model that does not reason first.
pub(super) const TOKENS: u32 = 16;

/// The token limit for a model that may reason first: enough for a short reasoning, and a bound on an endless one.
pub(super) const THOUGHTFUL_TOKENS: u32 = 512;

/// The only completion that the schema allows, without white space.
const SAID: &str = r#"{"fw":"q7"}"#;

/// The minimum length of a truncated completion in bytes: white space may use up the tokens.
const BEGUN: usize = r#"{"fw":"#.len();

/// The conclusion from a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CanaryResult {
    /// Decoding was constrained.
    Kept,
    /// Decoding was not constrained, or the server refused the request, with the reason.
    Broken(String),
    /// The completion has no text.
    Silent,
}

/// Makes a call whose prompt asks for a text that the constraint excludes.
pub(super) async fn tried(
    wire: &Ollama,
    transport: &dyn Transport,
    enforcement: Enforcement,
    tokens: u32,
    usage: &mut Usage,
) -> Result<CanaryResult, Fault> {
    match answered(wire, transport, &call(enforcement, tokens), usage).await {
        Ok(text) => Ok(judged(enforcement, &text)),
        Err(fault) if fault.kind == FaultKind::SchemaRefused => Ok(CanaryResult::Broken(fault.message)),
        Err(fault) => Err(fault),
    }
}

fn call(enforcement: Enforcement, tokens: u32) -> Call {
    let schema = json!({
        "type": "object",
        "properties": {"fw": {"type": "string", "const": "q7"}},
        "required": ["fw"],
        "additionalProperties": false,
    });
    let lowered = Lowered::new(enforcement, (enforcement == Enforcement::Schema).then_some(schema));
    Call::new(vec![Message::user("Say hello.")], lowered)
        .with_schema_name("canary")
        .with_sampling(Sampling::default().with_temperature(0.0))
        .with_max_tokens(tokens)
}

/// Returns the text of the completion.
async fn answered(
    wire: &Ollama,
    transport: &dyn Transport,
    call: &Call,
    usage: &mut Usage,
) -> Result<String, Fault> {
    let sent = transport.send(wire.encode(call)?, None).await;
    let (head, body) = sent.map_err(|fault| wire.transport_fault(call, fault))?.into_parts();
    if !head.status.is_success() {
        let body = body.beginning(ANSWER_BYTES).await;
        return Err(wire.fault(call, &head, &body, transport.now()));
    }
    let body = body.collect(ANSWER_BYTES).await?;
    let mut decoder = wire.decoder(call, &head);
    let mut deltas = Deltas::new();
    decoder.push(&body, &mut deltas)?;
    if !matches!(deltas.back(), Some(Delta::End(_))) {
        decoder.end(&mut deltas)?;
    }
    let mut text = String::new();
    for delta in deltas {
        match delta {
            Delta::Text(more) => text.push_str(&more),
            Delta::End(End { usage: spent, .. }) => *usage = usage.plus(spent),
            _ => {}
        }
    }
    Ok(text)
}

fn judged(enforcement: Enforcement, text: &str) -> CanaryResult {
    if text.is_empty() {
        return CanaryResult::Silent;
    }
    let dense: String = text.split_whitespace().collect();
    let kept = match enforcement {
        Enforcement::Schema => dense.len() >= BEGUN && SAID.starts_with(&dense),
        // Some constrained models emit white space up to the token limit. Unconstrained models do not.
        _ => dense.is_empty() || dense.starts_with('{'),
    };
    if kept {
        CanaryResult::Kept
    } else {
        CanaryResult::Broken(format!("the completion was not constrained: {}", quoted(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_schema_allows_shows_that_it_is_enforced() {
        for text in [r#"{"fw":"q7"}"#, "{ \"fw\": \"q7\" }", "{\n  \"fw\": \"q", "{\"fw\":"] {
            assert_eq!(judged(Enforcement::Schema, text), CanaryResult::Kept, "{text}");
        }
        for text in
            ["Hello!", "{}", "{\"greeting\": \"hello\"}", "{\"fw\": \"hello\"}", " ", "```json\n{\"fw\""]
        {
            assert!(matches!(judged(Enforcement::Schema, text), CanaryResult::Broken(_)), "{text}");
        }
        assert_eq!(judged(Enforcement::Schema, ""), CanaryResult::Silent);
    }

    #[test]
    fn any_object_shows_that_json_is_enforced() {
        for text in ["{}", " {\"hello\": ", "\n\n\n"] {
            assert_eq!(judged(Enforcement::JsonObject, text), CanaryResult::Kept, "{text:?}");
        }
        assert!(matches!(judged(Enforcement::JsonObject, "Hello!"), CanaryResult::Broken(_)));
    }
}
