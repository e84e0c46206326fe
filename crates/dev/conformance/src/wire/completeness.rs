//! Tests that an answer is complete if the model ended its document, and never for any other reason.

use std::sync::Arc;

use formwork_core::{
    Capabilities, Completion, Enforcement, Event, Finish, Inline, Input, Plan, Run, Step, Target, Time,
};
use formwork_dialect::JsonObject;
use serde_json::json;

use super::{Shared, answer, equal, strictest};
use crate::ServerAnswer;

/// Documents with the roots that answers have.
const DOCUMENTS: &[&str] =
    &[r#"{"zulu": "a}", "alpha": [1, {"b": null}], "mike": 12}"#, r#"[{"zulu": "é]"}, {"zulu": "b"}, 7]"#];

/// Returns reasons to stop that say nothing about the document; the last two are unknown to every codec.
fn reasons() -> [Finish; 4] {
    [Finish::Stop, Finish::Length, Finish::other("a_reason_to_come"), Finish::other("A_REASON_TO_COME")]
}

pub(super) async fn reasons_are_kept(protocol: Shared) -> Result<(), String> {
    for finish in reasons() {
        for reply in protocol.say(&ServerAnswer { finish: finish.clone(), ..ServerAnswer::new("{}") }) {
            let completion = answer(&protocol, &strictest(&protocol), reply).await?;
            equal("finish", &completion.finish, &finish)?;
        }
    }
    Ok(())
}

pub(super) async fn roots_end_answers(protocol: Shared) -> Result<(), String> {
    let plan = plan()?;
    for (document, finish) in DOCUMENTS.iter().flat_map(|document| reasons().map(|finish| (document, finish)))
    {
        let cuts = document.char_indices().map(|(at, _)| at).skip(1);
        for end in cuts.chain([document.len()]) {
            let text = document.get(..end).unwrap_or_default();
            for reply in protocol.say(&ServerAnswer { finish: finish.clone(), ..ServerAnswer::new(text) }) {
                let completion = answer(&protocol, &strictest(&protocol), reply).await?;
                let what = format!("whether `{text}` with the reason `{}` is accepted", finish.name());
                equal(&what, &is_accepted(&plan, completion)?, &(end == document.len()))?;
            }
        }
    }
    Ok(())
}

/// Returns a plan that accepts every complete document.
fn plan() -> Result<Plan, String> {
    let schema = json!({"type": ["object", "array"]});
    let contract = formwork_schema::contract_for(Arc::new(Inline::new("anything", schema)))
        .map_err(|error| error.to_string())?;
    let target = Target::new("wire", Capabilities::new(Enforcement::None)).with_mode(Arc::new(JsonObject));
    Plan::new(contract, vec![target]).build().map_err(|error| error.to_string())
}

fn is_accepted(plan: &Plan, completion: Completion) -> Result<bool, String> {
    let mut run = Run::new(plan, Input::from("What is it?"));
    let Ok(Step::Call { id, .. }) = run.step(plan, Time(0)) else { return Err("no call".to_owned()) };
    run.on(plan, Time(1), Event::answered(id, completion)).map_err(|misuse| misuse.to_string())?;
    Ok(run.ledger().iter().all(|call| call.verdict.failure().is_none()))
}
