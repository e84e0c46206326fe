//! Tests that bad responses have a class and a message, and that nothing of the answer is lost.

use formwork_core::{Call, Completion, Enforcement, Fault, FaultKind, Finish};
use serde_json::Value;

use super::{Shared, ask, call, equal, strictest};
use crate::Trouble;

pub(super) async fn all(protocol: Shared) -> Result<(), String> {
    for trouble in Trouble::ALL {
        for reply in protocol.trouble(trouble) {
            let shown = super::short(&format!("{reply:?}"));
            let found = ask(&protocol, &call_of(&protocol, trouble), reply).await;
            check(trouble, found).map_err(|wrong| format!("{trouble:?}: {wrong}, for {shown}"))?;
        }
    }
    Ok(())
}

fn call_of(protocol: &Shared, trouble: Trouble) -> Call {
    match trouble {
        Trouble::CutToolCall | Trouble::DoubleEncoded => call(Enforcement::Tool),
        _ => strictest(protocol),
    }
}

fn check(trouble: Trouble, found: Result<Completion, Fault>) -> Result<(), String> {
    let fault = |kind: Option<FaultKind>| match &found {
        Ok(completion) => Err(format!("an answer, {completion:?}")),
        Err(fault) => {
            equal("kind", &fault.kind, &kind.unwrap_or(fault.kind))?;
            equal("lines of the message", &fault.message.lines().count(), &1)?;
            equal("the message quotes the server", &fault.message.contains(trouble.text()), &true)
        }
    };
    let answer = || found.as_ref().map_err(|fault| format!("a fault, {fault}"));
    match trouble {
        Trouble::WrongKey => fault(Some(FaultKind::Auth)),
        Trouble::NoCredit => fault(Some(FaultKind::NoCredit)),
        Trouble::UnknownModel => fault(Some(FaultKind::Unsupported)),
        Trouble::Overloaded => fault(Some(FaultKind::Overloaded)),
        Trouble::ErrorWithin => fault(None),
        Trouble::SafetyBlock => {
            let finish = &answer()?.finish;
            equal("ended by a filter", &matches!(finish, Finish::Filtered | Finish::Refused), &true)
        }
        Trouble::CutToolCall => {
            let answer = answer()?;
            equal("finish", &answer.finish, &Finish::Length)?;
            // A response in one piece has the arguments as an object, which the vendor closed.
            equal("the arguments are kept", &answer.text.starts_with("{\"zulu\":"), &true)
        }
        Trouble::OnlyReasoning => {
            let answer = answer()?;
            equal("finish", &answer.finish, &Finish::Length)?;
            equal("text", &answer.text.as_str(), &"")?;
            equal("reasoning", &answer.reasoning.as_str(), &trouble.text())
        }
        Trouble::Empty => equal("text", &answer()?.text.trim(), &""),
        Trouble::DoubleEncoded => {
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            let value = read(&answer()?.text);
            let value = value.as_str().map_or_else(|| value.clone(), read);
            equal("the arguments", &value, &serde_json::json!({"zulu": "a", "alpha": 1, "mike": true}))
        }
    }
}
