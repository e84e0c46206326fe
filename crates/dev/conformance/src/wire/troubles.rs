//! Tests that bad responses have a class and a message, and that nothing of the answer is lost.

use formwork_core::{Call, Completion, Enforcement, Fault, FaultKind, Finish, Tool, ToolCall};
use serde_json::Value;

use super::{Shared, ask, call, equal, strictest};
use crate::Trouble;

pub(super) async fn all(protocol: Shared) -> Result<(), String> {
    for trouble in Trouble::ALL {
        for reply in protocol.trouble(trouble) {
            let described = super::short(&format!("{reply:?}"));
            let found = ask(&protocol, &call_of(&protocol, trouble), reply).await;
            check(trouble, found).map_err(|wrong| format!("{trouble:?}: {wrong}, for {described}"))?;
        }
    }
    Ok(())
}

/// The responses of a forced tool's trouble are calls of an offered tool, if no tool was forced: each is one whole call, and no text.
pub(super) async fn offered(protocol: Shared) -> Result<(), String> {
    let mut call = call(Enforcement::None);
    let parameters = serde_json::json!({"type": "object"});
    call.tools.push(Tool { name: "answer".to_owned(), description: "Answers.".to_owned(), parameters });
    for trouble in [Trouble::CutToolCall, Trouble::DoubleEncoded] {
        for reply in protocol.trouble(trouble) {
            let described = super::short(&format!("{reply:?}"));
            let found = ask(&protocol, &call, reply).await;
            reported(trouble, &found).map_err(|wrong| format!("{trouble:?}: {wrong}, for {described}"))?;
        }
    }
    Ok(())
}

fn reported(trouble: Trouble, found: &Result<Completion, Fault>) -> Result<(), String> {
    let answer = found.as_ref().map_err(|fault| format!("a fault, {fault}"))?;
    equal("text", &answer.text.as_str(), &"")?;
    equal("calls", &answer.tool_calls.len(), &1)?;
    let finish = if trouble == Trouble::CutToolCall { Finish::Length } else { Finish::ToolCall };
    equal("finish", &answer.finish, &finish)?;
    equal("the call has a name", &answer.tool_calls.iter().all(|call| !call.name.is_empty()), &true)?;
    let has_arguments = |call: &ToolCall| call.arguments.contains("zulu");
    equal("the arguments are kept", &answer.tool_calls.iter().all(has_arguments), &true)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A check that no provider can fail would say nothing.
    #[test]
    fn each_trouble_has_results_that_fail_its_check() {
        let answers = [
            Completion::new("a text that nobody expects"),
            Completion::new("").with_finish(Finish::ToolCall),
            Completion::new("{\"mike\": 1}").with_finish(Finish::Length),
        ];
        for trouble in Trouble::ALL {
            for answer in &answers {
                let is_right = trouble == Trouble::Empty && answer.text.is_empty();
                assert_eq!(check(trouble, Ok(answer.clone())).is_ok(), is_right, "{trouble:?}: {answer:?}");
            }
            let other = Fault::new(FaultKind::BadWire, "no words of the server");
            assert!(check(trouble, Err(other)).is_err(), "{trouble:?}");
        }
        for trouble in [Trouble::CutToolCall, Trouble::DoubleEncoded] {
            assert!(answers.iter().all(|answer| reported(trouble, &Ok(answer.clone())).is_err()));
        }
    }
}
