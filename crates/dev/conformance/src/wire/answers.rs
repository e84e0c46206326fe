//! Tests that answers are read completely and unchanged.

use formwork_core::{Delta, FaultKind, Finish, Usage};
use futures_util::StreamExt as _;

use super::{Shared, answer, ask, equal, strictest};
use crate::ServerAnswer;
use crate::script::Script;

/// Texts that a careless codec changes.
const TEXTS: &[&str] = &[
    r#"{"zulu": "a", "alpha": 1, "mike": true}"#,
    "{\"zulu\": \"line\\nbreak, \\\"quotes\\\", tab\\t\", \"alpha\": 1e2}",
    "  leading and trailing space \n",
    "é € 🦀 \u{2028} \u{0} data: [DONE]\n\ndata: x",
    "line\r\nline\n\nline",
];

pub(super) async fn verbatim(protocol: Shared) -> Result<(), String> {
    for text in TEXTS {
        for reply in protocol.say(&ServerAnswer::new(*text)) {
            let completion = answer(&protocol, &strictest(&protocol), reply).await?;
            equal("text", &completion.text.as_str(), text)?;
            equal("finish", &completion.finish, &Finish::Stop)?;
        }
    }
    Ok(())
}

pub(super) async fn megabyte(protocol: Shared) -> Result<(), String> {
    let text = format!("{{\"zulu\": \"{}\"}}", "é🦀x ".repeat(128 * 1024));
    for reply in protocol.say(&ServerAnswer::new(&text)) {
        let completion = answer(&protocol, &strictest(&protocol), reply.in_chunks(16_384)).await?;
        equal("length", &completion.text.len(), &text.len())?;
        equal("text", &(completion.text == text), &true)?;
    }
    Ok(())
}

pub(super) async fn chunks(protocol: Shared) -> Result<(), String> {
    for text in TEXTS {
        for reply in protocol.say(&ServerAnswer::new(*text)) {
            for bytes in [1, 2, 3, 7] {
                let completion =
                    answer(&protocol, &strictest(&protocol), reply.clone().in_chunks(bytes)).await?;
                equal("text", &completion.text.as_str(), text)?;
            }
        }
    }
    Ok(())
}

pub(super) async fn length(protocol: Shared) -> Result<(), String> {
    let scripted = ServerAnswer { finish: Finish::Length, ..ServerAnswer::new("{\"zulu\": \"a") };
    let replies = protocol.say(&scripted);
    equal("some form of a cut-off", &replies.is_empty(), &false)?;
    for reply in replies {
        let completion = answer(&protocol, &strictest(&protocol), reply).await?;
        equal("finish", &completion.finish, &Finish::Length)?;
        equal("text", &completion.text, &scripted.text)?;
    }
    Ok(())
}

pub(super) async fn refusal(protocol: Shared) -> Result<(), String> {
    let scripted = ServerAnswer { finish: Finish::Refused, ..ServerAnswer::new("I cannot help with that.") };
    for reply in protocol.say(&scripted) {
        let completion = answer(&protocol, &strictest(&protocol), reply).await?;
        equal("finish", &completion.finish, &Finish::Refused)?;
    }
    Ok(())
}

pub(super) async fn reasoning(protocol: Shared) -> Result<(), String> {
    let scripted =
        ServerAnswer { reasoning: "Let me think {".to_owned(), ..ServerAnswer::new("{\"zulu\": \"a\"}") };
    for reply in protocol.say(&scripted) {
        let completion = answer(&protocol, &strictest(&protocol), reply).await?;
        equal("text", &completion.text, &scripted.text)?;
        equal("reasoning", &completion.reasoning, &scripted.reasoning)?;
    }
    Ok(())
}

pub(super) async fn usage(protocol: Shared) -> Result<(), String> {
    let scripted = ServerAnswer::new("{}");
    for reply in protocol.say(&scripted) {
        let Usage { input_tokens, output_tokens, estimated, .. } =
            answer(&protocol, &strictest(&protocol), reply).await?.usage;
        equal("tokens", &(input_tokens, output_tokens, estimated), &(11, 7, false))?;
    }
    Ok(())
}

/// Tests that the body is read on demand, so that a slow reader slows the server down instead of filling memory.
pub(super) async fn back_pressure(protocol: Shared) -> Result<(), String> {
    for reply in protocol.say(&ServerAnswer::new("x ".repeat(50_000))) {
        let script = Script::new([reply.in_chunks(64)]);
        let provider = protocol.provider(script.clone());
        let call = strictest(&protocol);
        let mut answer = provider.call(&call).await.map_err(|fault| fault.to_string())?;
        equal("chunks read before the first piece is polled", &(script.read() <= 1), &true)?;
        let mut first = answer.next().await;
        while let Some(Ok(Delta::Usage(_))) = first {
            first = answer.next().await;
        }
        let Some(Ok(Delta::Text(text))) = first else {
            return Err("no text comes first".to_owned());
        };
        // A body in one piece is read as a whole; of a stream, as little as one piece needs.
        if text.len() < 50_000 {
            equal("chunks read for the first piece are few", &(script.read() < 100), &true)?;
        }
        let before = script.read();
        drop(answer);
        tokio::task::yield_now().await;
        equal("chunks read after the answer was dropped", &script.read(), &before)?;
    }
    Ok(())
}

/// Tests bodies that are cut within a character, within a line, or before the end mark: the result is a fault, or the
/// complete answer. The fault is transient, because a retry may bring the rest, except for an empty document.
pub(super) async fn cut(protocol: Shared) -> Result<(), String> {
    let scripted = ServerAnswer::new("{\"zulu\": \"é🦀\"}");
    for reply in protocol.say(&scripted) {
        for at in 0..reply.body.len() {
            match ask(&protocol, &strictest(&protocol), reply.clone().cut(at)).await {
                Ok(completion) => {
                    equal(&format!("text of a body cut at byte {at}"), &completion.text, &scripted.text)?;
                    equal(&format!("finish of a body cut at byte {at}"), &completion.finish, &Finish::Stop)?;
                }
                Err(fault) => {
                    let is_begun = at > 0 || reply.is_stream();
                    let kind = if is_begun { FaultKind::Unreachable } else { fault.kind };
                    equal(&format!("fault of a body cut at byte {at}"), &fault.kind, &kind)?;
                }
            }
        }
    }
    Ok(())
}
