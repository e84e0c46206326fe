//! Tests that requests contain what the capabilities promise, and nothing else.

use std::sync::Arc;

use formwork_core::{Call, Enforcement, Message, Role, Sampling};

use super::{Shared, call, equal, schema};
use crate::script::Script;
use crate::{SentRequest, ServerAnswer};

/// Returns the contents of the provider's request for this call, and its body.
async fn sent_of(protocol: &Shared, call: &Call) -> Result<(SentRequest, String), String> {
    let script = Script::new(protocol.say(&ServerAnswer::new("{}")));
    let answer = protocol.provider(script.clone()).call(call).await;
    answer.map_err(|fault| fault.to_string())?;
    let requests = script.requests();
    let [request] = requests.as_slice() else {
        return Err(format!("{} requests for one call", requests.len()));
    };
    Ok((protocol.read_request(request), String::from_utf8_lossy(request.body()).into_owned()))
}

pub(super) async fn enforcement(protocol: Shared) -> Result<(), String> {
    let strictest = protocol.provider(Script::new([])).capabilities().enforcement;
    let (found, body) = sent_of(&protocol, &call(Enforcement::None)).await?;
    equal("nothing is enforced", &(found.schema, found.tool, found.json_object), &(None, None, false))?;
    equal("nothing of the schema is sent", &body.contains("zulu"), &false)?;
    if strictest >= Enforcement::JsonObject {
        // A provider that enforces schemas may not support plain objects, and then fails the call.
        if let Ok((found, body)) = sent_of(&protocol, &call(Enforcement::JsonObject)).await {
            equal("a JSON object is requested", &(found.schema, found.json_object), &(None, true))?;
            equal("nothing of the schema is sent", &body.contains("zulu"), &false)?;
        }
    }
    if strictest >= Enforcement::Tool
        && let Ok((found, _)) = sent_of(&protocol, &call(Enforcement::Tool)).await
    {
        equal("the tool's schema", &(found.schema, found.tool), &(None, Some(schema())))?;
    }
    if strictest >= Enforcement::Schema {
        let (found, _) = sent_of(&protocol, &call(Enforcement::Schema)).await?;
        equal("the schema", &(found.schema, found.tool), &(Some(schema()), None))?;
    }
    Ok(())
}

pub(super) async fn order(protocol: Shared) -> Result<(), String> {
    let strictest = protocol.provider(Script::new([])).capabilities().enforcement;
    if strictest < Enforcement::Tool {
        return Ok(());
    }
    let (_, body) = sent_of(&protocol, &call(strictest)).await?;
    // Without quotation marks: some protocols send the schema as text.
    let places: Vec<_> = ["zulu", "alpha", "mike"].iter().map(|name| body.find(name)).collect();
    equal("each property is sent", &places.iter().all(Option::is_some), &true)?;
    equal("in the schema's order", &places.is_sorted(), &true)
}

pub(super) async fn sampling(protocol: Shared) -> Result<(), String> {
    let provider = protocol.provider(Script::new([]));
    let promised = provider.capabilities();
    let full =
        Sampling::default().with_temperature(0.3).with_top_p(0.9).with_seed(42).with_frequency_penalty(0.5);
    let (found, _) =
        sent_of(&protocol, &call(Enforcement::None).with_sampling(full).with_max_tokens(321)).await?;
    equal("temperature", &found.temperature, &promised.temperature.then_some(0.3))?;
    equal("top-p", &found.top_p, &promised.top_p.then_some(0.9))?;
    equal("seed", &found.seed, &promised.seed.then_some(42))?;
    let penalty = promised.frequency_penalty.then_some(0.5);
    equal("frequency penalty", &found.frequency_penalty, &penalty)?;
    equal("max_tokens", &found.max_tokens, &Some(321))?;
    let (found, _) = sent_of(&protocol, &call(Enforcement::None)).await?;
    equal(
        "parameters that were not set",
        &(found.temperature, found.top_p, found.seed, found.frequency_penalty),
        &(None, None, None, None),
    )
}

pub(super) async fn messages(protocol: Shared) -> Result<(), String> {
    let texts = ["govern \u{1F980}", "ask \"it\"", "answer\n", "correct", "ask again"];
    let roles = [Role::System, Role::User, Role::Assistant, Role::System, Role::User];
    let messages = roles.iter().zip(texts).map(|(role, text)| Arc::new(Message::new(*role, text))).collect();
    let mut call = call(Enforcement::None);
    call.messages = messages;
    let (found, _) = sent_of(&protocol, &call).await?;
    let all: String = found.messages.iter().map(|(_, text)| format!("{text}\u{1}")).collect();
    let mut rest = all.as_str();
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            return Err(format!("{text:?} is missing or out of order in {:?}", found.messages));
        };
        rest = after;
    }
    let provider = protocol.provider(Script::new([]));
    if provider.capabilities().late_system {
        let late = found.messages.iter().find(|(_, text)| text == "correct").map(|(role, _)| role.as_str());
        let is_system = matches!(late, Some("system" | "developer"));
        equal("a late system message keeps its role", &is_system, &true)?;
    }
    Ok(())
}
