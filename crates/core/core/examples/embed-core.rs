//! Uses this crate alone: steps a run by hand, with its own validator, dialect and answers.
//!
//! `cargo run -p formwork-core --example embed-core`

use std::sync::Arc;

use formwork_core::{
    Completion, Context, Contract, Enforcement, Error, Event, Inline, JsonPath, Lower, LowerRequest, Lowered,
    Plan, Refused, Report, Run, SchemaText, Stage, Step, Structure, Target, Time, Validator, Violation,
    spaced,
};
use serde_json::{Value, json};

fn main() -> Result<(), Error> {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let contract = Contract::new(Arc::new(Inline::new("person", schema)), Arc::new(Adult));
    let target = Target::new("by hand", Default::default()).with_mode(Arc::new(InWords));
    let plan = Plan::new(contract, vec![target]).build()?;

    // A real driver calls a model, sleeps and reads a clock; this one has a list and a counter.
    let mut answers = [r#"{"age": 7}"#, r#"{"age": 34}"#].into_iter();
    let mut now = Time(0);
    let mut run = Run::new(&plan, "Maria Lindqvist, 34, moved to Lisbon.".into());
    loop {
        let event = match run.step(&plan, now)? {
            Step::Call { id, call, .. } => {
                println!("asked: {}", call.messages.last().map(|message| message.text()).unwrap_or_default());
                let text = answers.next().unwrap_or_default();
                println!("answered: {text}");
                Event::answered(id, Completion::new(text))
            }
            Step::Wait { until, .. } => {
                now = until;
                continue;
            }
            Step::Done => break,
            // This plan has neither asynchronous checks nor a fallback.
            _ => Event::Cancelled,
        };
        now = Time(now.0 + 1);
        if let Err(misuse) = run.on(&plan, now, event) {
            println!("the driver is wrong: {misuse}");
            break;
        }
    }
    let outcome = run.finish()?;
    println!("{} after {} calls", outcome.value, outcome.calls.len());
    Ok(())
}

/// The schema of an object whose `age` is at least 18.
#[derive(Debug)]
struct Adult;

impl Validator for Adult {
    fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
        if value["age"].as_u64().is_none_or(|age| age < 18) {
            let path = JsonPath::root().key("age");
            let violation = Violation::new(path, "adult", Stage::Check).with_expected("at least 18");
            out.push(violation.with_found(value["age"].to_string()));
        }
    }
}

impl Structure for Adult {
    fn subschema(&self, _: &JsonPath, _: &Value) -> Option<Value> {
        Some(json!({"type": "integer", "minimum": 18}))
    }
}

/// Writes the schema into the prompt.
#[derive(Debug)]
struct InWords;

impl Lower for InWords {
    fn name(&self) -> &str {
        "in-words"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::None
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        Ok(Lowered::described(SchemaText::JsonSchema(spaced(request.schema))))
    }
}
