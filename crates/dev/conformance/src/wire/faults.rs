//! Tests that errors have the class that retry policies decide by.

use std::time::Duration;

use formwork_core::{Enforcement, FaultKind};

use super::{Shared, call, equal, fault, strictest};
use crate::script::{KEY, Script};
use crate::{Reply, ServerAnswer};

pub(super) async fn statuses(protocol: Shared) -> Result<(), String> {
    use FaultKind::{Auth, BadRequest, Overloaded, RateLimited, Timeout, Unsupported};
    for (status, kind) in [
        (400, BadRequest),
        (401, Auth),
        (403, Auth),
        (404, Unsupported),
        (408, Timeout),
        (429, RateLimited),
        (500, Overloaded),
        (502, Overloaded),
        (503, Overloaded),
        (529, Overloaded),
    ] {
        let reply = protocol.error(status, "something is not as it should be");
        let fault = fault(&protocol, &call(Enforcement::None), reply).await?;
        equal(&format!("kind of {status}"), &fault.kind, &kind)?;
        equal("status", &fault.status, &Some(status))?;
        equal("the fault quotes the server's message", &fault.message.contains("as it should be"), &true)?;
        let page = Reply::new(status, "text/html", "<html>proxy</html>");
        let fault = self::fault(&protocol, &call(Enforcement::None), page).await?;
        equal(&format!("status of a page with {status}"), &fault.status, &Some(status))?;
    }
    Ok(())
}

pub(super) async fn retry_after(protocol: Shared) -> Result<(), String> {
    let second = Duration::from_secs(1);
    for (header, wait) in [
        (None, None),
        (Some("7"), Some(7 * second)),
        // The date is an hour and a minute after the response.
        (Some("Sun, 06 Nov 1994 09:50:37 GMT"), Some(3_660 * second)),
        (Some("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO)),
        (Some("whenever"), None),
        (Some("-3"), None),
    ] {
        for status in [429, 503] {
            let reply =
                protocol.error(status, "slow down").with_header("date", "Sun, 06 Nov 1994 08:49:37 GMT");
            let reply = header.iter().fold(reply, |reply, wait| reply.with_header("retry-after", wait));
            let fault = fault(&protocol, &call(Enforcement::None), reply).await?;
            equal(&format!("delay of {header:?}"), &fault.retry_after, &wait)?;
        }
    }
    Ok(())
}

pub(super) async fn schema(protocol: Shared) -> Result<(), String> {
    for (status, words) in protocol.schema_complaints() {
        let refused = fault(&protocol, &strictest(&protocol), protocol.error(status, words)).await?;
        equal(&format!("kind of {status} {words}"), &refused.kind, &FaultKind::SchemaRefused)?;
        // Without a schema in the request, the schema cannot be the reason.
        let other = fault(&protocol, &call(Enforcement::None), protocol.error(status, words)).await?;
        equal("without a schema", &(other.kind == FaultKind::SchemaRefused), &false)?;
    }
    Ok(())
}

pub(super) async fn within(protocol: Shared) -> Result<(), String> {
    for text in ["", "{\"zulu\": "] {
        let Some(reply) = protocol.error_within(text, "CUDA out of memory") else { continue };
        let fault = fault(&protocol, &strictest(&protocol), reply).await?;
        equal("the fault quotes the server's message", &fault.message.contains("CUDA out of memory"), &true)?;
    }
    Ok(())
}

pub(super) async fn bad_wire(protocol: Shared) -> Result<(), String> {
    for (content_type, body) in [
        ("application/json", "[]"),
        ("application/json", "{}"),
        ("application/json", "null"),
        ("application/json", "\u{feff}{}"),
        ("application/json", "<html></html>"),
        ("text/html; charset=utf-8", "<html>Sign in</html>"),
        ("text/plain", "ok"),
        ("text/event-stream", "data: {\n\n"),
        ("text/event-stream", "data: \u{0}\n\n"),
        ("application/x-ndjson", "]\n"),
    ] {
        let fault = fault(&protocol, &strictest(&protocol), Reply::new(200, content_type, body)).await?;
        equal(&format!("kind of {content_type} {body:?}"), &fault.kind, &FaultKind::BadWire)?;
    }
    // A stream without any message was cut off, and so was a document with a beginning alone.
    for (content_type, body) in [
        ("application/json", ""),
        ("application/json", "{"),
        ("text/event-stream", ""),
        ("application/x-ndjson", "\n\n"),
    ] {
        let fault = fault(&protocol, &strictest(&protocol), Reply::new(200, content_type, body)).await?;
        let is_cut = body == "{" || fault.kind.is_transient();
        let expected = if is_cut { FaultKind::Unreachable } else { FaultKind::BadWire };
        equal(&format!("kind of {content_type} {body:?}"), &fault.kind, &expected)?;
    }
    let noise: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    for content_type in ["application/json", "text/event-stream", "application/x-ndjson"] {
        fault(&protocol, &strictest(&protocol), Reply::new(200, content_type, noise.clone())).await?;
        let deep = "[".repeat(200_000);
        fault(&protocol, &strictest(&protocol), Reply::new(200, content_type, format!("data: {deep}\n\n")))
            .await?;
        fault(&protocol, &strictest(&protocol), Reply::new(200, content_type, deep)).await?;
    }
    Ok(())
}

pub(super) async fn keys(protocol: Shared) -> Result<(), String> {
    for status in [400, 401, 500] {
        let reply = protocol.error(status, &format!("the key {KEY} is not known"));
        let fault = fault(&protocol, &strictest(&protocol), reply).await?;
        equal("the key is printed", &format!("{fault:?}{fault}").contains(KEY), &false)?;
    }
    if let Some(reply) = protocol.error_within("{", KEY) {
        let fault = fault(&protocol, &strictest(&protocol), reply).await?;
        equal("the key is printed", &format!("{fault:?}{fault}").contains(KEY), &false)?;
    }
    let script = Script::new(protocol.say(&ServerAnswer::new("{}")));
    let provider = protocol.provider(script);
    equal("the key is printed", &format!("{provider:?}").contains(KEY), &false)
}
