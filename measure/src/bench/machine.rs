//! Measures a whole run without IO: three attempts with the oracle's policy, of which the first two are invalid.

use std::sync::Arc;

use formwork_core::{
    Capabilities, Completion, Context, Contract, Enforcement, Event, Input, Level, Lower, LowerRequest,
    Lowered, Outcome, Plan, Refused, Run, SchemaText, Step, Target, Time, spaced,
};
use serde_json::Value;

use super::judging::contract;
use super::measure::pair;
use super::oracle::{FIVE_WRONG, ONE_WRONG, VALID};
use super::report::{Goal, Row};
use crate::Failure;

/// The completions, in order.
const SCRIPT: [&str; 3] = [FIVE_WRONG, ONE_WRONG, VALID];

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let contract = contract()?;
    let plan = plan(&contract)?;
    match run(&plan) {
        Some(outcome) if outcome.calls.len() == SCRIPT.len() => {}
        other => {
            return Err(format!("the scripted run did not take {} calls: {other:?}", SCRIPT.len()).into());
        }
    }
    let pair = pair(|| run(&plan), || judgements(&contract)).await;
    Ok(vec![Row::ratio("three-attempt run / its three judgements", &pair, Some(Goal::AtMost(2.0)))])
}

fn plan(contract: &Contract) -> Result<Plan, String> {
    let capabilities = Capabilities::new(Enforcement::None).with_temperature();
    let target = Target::new("scripted", capabilities).with_mode(Arc::new(Prompt));
    let plan = Plan::new(contract.clone(), vec![target]).with_policy(formwork_oracle::policy()).build();
    plan.map_err(|error| error.to_string())
}

/// Executes the run, from its input to its outcome.
fn run(plan: &Plan) -> Option<Outcome<Value>> {
    let mut run = Run::new(plan, Input::new(["Score this wallet."]));
    let mut script = SCRIPT.iter();
    let mut now = Time(1_000);
    loop {
        match run.step(plan, now).ok()? {
            Step::Call { id, .. } => {
                now = Time(now.0 + 1);
                let completion = Completion::new(*script.next()?);
                run.on(plan, now, Event::answered(id, completion)).ok()?;
            }
            Step::Done => return run.finish().ok(),
            _ => return None,
        }
    }
}

/// Does the work that every retry loop needs: parses and validates the three completions.
fn judgements(contract: &Contract) -> [usize; 3] {
    SCRIPT.map(|text| {
        let Ok(reading) = formwork_json::read(text, Level::Clean) else { return 0 };
        let judged =
            reading.candidates().iter().map(|candidate| contract.judge(&candidate.value, &Context::EMPTY));
        judged.map(|judgement| judgement.violations.len()).sum()
    })
}

/// A lowering that describes the schema in the prompt and enforces nothing.
#[derive(Debug)]
struct Prompt;

impl Lower for Prompt {
    fn name(&self) -> &str {
        "prompt"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::None
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        Ok(Lowered::described(SchemaText::JsonSchema(spaced(request.schema))))
    }
}
