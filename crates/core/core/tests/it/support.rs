//! A contract with a hand-written validator (the core has no JSON Schema), dialects that lower nothing, and a driver
//! with a virtual clock.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use serde_json::{Value, json};

/// `{"score": 0..=1000, "parts": {"a": 0..=100, "b": 0..=100}, "note": string}`, nothing else, all required.
#[derive(Debug)]
pub(crate) struct Score;

pub(crate) fn schema() -> Value {
    let part = json!({"type": "integer", "minimum": 0, "maximum": 100});
    json!({
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 0, "maximum": 1000},
            "parts": {"type": "object", "properties": {"a": part, "b": part}, "required": ["a", "b"], "additionalProperties": false},
            "note": {"type": "string"},
        },
        "required": ["score", "parts", "note"],
        "additionalProperties": false,
    })
}

fn check(value: &Value, schema: &Value, path: &JsonPath, out: &mut Report) {
    let violation = |rule: &str| Violation::new(path.clone(), rule, Stage::Schema);
    let found = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    if schema["type"] != found {
        return out.push(violation("type").with_expected(schema["type"].as_str().unwrap()).with_found(found));
    }
    if let Some(number) = value.as_f64() {
        for (rule, broken) in [
            ("minimum", number < schema["minimum"].as_f64().unwrap()),
            ("maximum", number > schema["maximum"].as_f64().unwrap()),
        ] {
            if broken {
                out.push(
                    violation(rule).with_expected(schema[rule].to_string()).with_found(value.to_string()),
                );
            }
        }
    }
    if let Value::Object(members) = value {
        for (name, schema) in schema["properties"].as_object().unwrap() {
            match members.get(name) {
                Some(member) => check(member, schema, &path.key(name.as_str()), out),
                None => out.push(Violation::new(path.key(name.as_str()), "required", Stage::Schema)),
            }
        }
        for name in members.keys().filter(|name| schema["properties"].get(name.as_str()).is_none()) {
            out.push(Violation::new(path.key(name.as_str()), "additionalProperties", Stage::Schema));
        }
    }
}

impl Validator for Score {
    fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
        check(value, &schema(), &JsonPath::root(), out);
    }
}

impl Structure for Score {
    fn subschema(&self, path: &JsonPath, _: &Value) -> Option<Value> {
        path.segments().iter().try_fold(schema(), |schema, segment| match segment {
            Segment::Key(name) => schema["properties"].get(name).cloned(),
            Segment::Index(_) => None,
        })
    }
}

/// `score` is `5 * (a + b)`, with a tolerance of 20.
pub(crate) fn sum() -> Rule {
    let term = |path: &str| Term { path: path.parse().unwrap(), weight: 5.0 };
    Rule::WeightedSum {
        target: "$.score".parse().unwrap(),
        terms: vec![term("$.parts.a"), term("$.parts.b")],
        tolerance: 20.0,
    }
}

pub(crate) fn contract() -> Contract {
    Contract::new(Arc::new(Inline::new("score", schema())), Arc::new(Score)).with_rule(sum())
}

/// Sends the schema unchanged.
#[derive(Debug)]
pub(crate) struct AsIs(pub(crate) &'static str, pub(crate) Enforcement);

impl Lower for AsIs {
    fn name(&self) -> &str {
        self.0
    }

    fn enforcement(&self) -> Enforcement {
        self.1
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let text = spaced(request.schema);
        let prompt_schema = (self.1 == Enforcement::None).then_some(SchemaText::JsonSchema(text));
        let schema = (self.1 == Enforcement::Schema).then(|| request.schema.clone());
        Ok(Lowered::new(self.1, schema).with_prompt_schema(prompt_schema))
    }
}

pub(crate) fn target(name: &str) -> Target {
    let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_seed();
    Target::new(name, capabilities)
        .with_mode(Arc::new(AsIs("strict", Enforcement::Schema)))
        .with_mode(Arc::new(AsIs("prompt", Enforcement::None)))
}

pub(crate) fn plan(policy: Policy) -> Plan {
    Plan::new(contract(), vec![target("primary")]).with_policy(policy).build().unwrap()
}

pub(crate) const GOOD: &str = r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fine"}"#;
pub(crate) const BAD_SUM: &str = r#"{"score": 600, "parts": {"a": 70, "b": 70}, "note": "fine"}"#;
pub(crate) const BAD_RANGE: &str = r#"{"score": 700, "parts": {"a": 170, "b": 70}, "note": "fine"}"#;

/// The response of the server to one call.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Says(&'static str),
    /// Says this with a token of this probability for each byte.
    Likely(&'static str, f64),
    Ends(&'static str, Finish),
    /// The token limit is reached, and the provider closes the document itself from this byte on.
    Closes(&'static str, usize),
    Fails(FaultKind),
    /// The server answers 400 with these words.
    Refuses(&'static str),
    Limits(u64),
    Denies,
}

impl Reply {
    /// Returns the answer with the maximum usage that the call allows.
    pub(crate) fn event(&self, id: CallId, call: &Call) -> Event {
        let answered = |text: &str, finish| {
            let usage =
                Usage::new(Usage::estimate(call, 0).input_tokens, u64::from(call.max_tokens.unwrap_or(10)));
            let completion = Completion::new(text).with_finish(finish).with_usage(usage);
            Event::answered(id, completion)
        };
        match self {
            Self::Says(text) => answered(text, Finish::Stop),
            Self::Likely(text, probability) => {
                let mut event = answered(text, Finish::Stop);
                if let Event::Answered { completion, .. } = &mut event {
                    completion.log_probs = vec![LogProb::new(1, probability.ln()); text.len()];
                }
                event
            }
            Self::Ends(text, finish) => answered(text, finish.clone()),
            Self::Closes(text, at) => {
                let mut event = answered(text, Finish::Length);
                if let Event::Answered { completion, .. } = &mut event {
                    completion.closed_at = Some(*at);
                }
                event
            }
            Self::Fails(kind) => Event::failed(id, Fault::new(*kind, "scripted"), Usage::default()),
            Self::Refuses(words) => {
                let fault = Fault::new(FaultKind::BadRequest, *words).with_status(400);
                Event::failed(id, fault, Usage::default())
            }
            Self::Limits(seconds) => {
                let fault = Fault::new(FaultKind::RateLimited, "scripted")
                    .with_retry_after(Some(Duration::from_secs(*seconds)));
                Event::failed(id, fault, Usage::default())
            }
            Self::Denies => Event::denied(id, None),
        }
    }
}

/// A driven run, and each of its calls with time and target.
pub(crate) struct Driven {
    pub(crate) run: Run,
    pub(crate) calls: Vec<(Time, usize, Arc<Call>)>,
}

/// Drives a run to its end with the script's replies in order; the last one is repeated.
pub(crate) fn drive(plan: &Plan, input: Input, script: &[Reply]) -> Driven {
    drive_run(plan, Run::new(plan, input), script)
}

/// Drives a run that was created elsewhere.
pub(crate) fn drive_run(plan: &Plan, mut run: Run, script: &[Reply]) -> Driven {
    let (mut now, mut calls) = (Time(1_000), Vec::new());
    loop {
        match run.step(plan, now).unwrap() {
            Step::Wait { until, .. } => now = until,
            Step::Call { id, target, call, .. } => {
                calls.push((now, target, Arc::clone(&call)));
                let reply = script.get(calls.len() - 1).or(script.last()).unwrap();
                now = now.after(Duration::from_millis(1));
                run.on(plan, now, reply.event(id, &call)).unwrap();
            }
            Step::Fallback { id, .. } => {
                let value = Some(json!({"score": 0, "parts": {"a": 0, "b": 0}, "note": "fallback"}));
                run.on(plan, now, Event::supplied(id, value)).unwrap();
            }
            Step::Check { id, .. } => {
                run.on(plan, now, Event::checked(id, vec![], Cost::default())).unwrap();
            }
            _ => return Driven { run, calls },
        }
    }
}

/// Returns the advice to start each target in this output mode.
pub(crate) fn starting_in(modes: &[usize]) -> Advice {
    Advice::new(modes.iter().map(|mode| TargetAdvice::default().with_start_mode(*mode)))
}

/// Returns the advice to skip targets, by their indexes, until a time each.
pub(crate) fn out_of_service(targets: impl IntoIterator<Item = (usize, Time)>) -> Advice {
    let mut advice: [TargetAdvice; 3] = Default::default();
    for (target, until) in targets {
        advice[target] = std::mem::take(&mut advice[target]).with_out_of_service(until);
    }
    Advice::new(advice)
}

pub(crate) fn input() -> Input {
    Input::new(["Score this wallet."])
}

/// Policies that differ in every respect: those of the applications, as they were when this was written. Each application's
/// own tests hold its policy to its document.
pub(crate) fn policies() -> [Policy; 5] {
    [Policy::default(), cooling(), corrective(1), folded(), at_most(0.7)]
}

fn whole(attempts: u32) -> Policy {
    Policy::new(attempts).with_patching(Patching::Never).with_stop_on_repeat(false)
}

/// Three whole attempts that get cooler, and refusals that count as attempts.
pub(crate) fn cooling() -> Policy {
    whole(3).with_temperature(Temperature::Steps(vec![0.3, 0.2, 0.1])).with_ask_after_refusal(true)
}

/// A corrective system message after each answer.
pub(crate) fn corrective(max_retries: u32) -> Policy {
    let template = Template::new("{code}: wrong:\n", "- {message}", "\nReturn only a corrected JSON object.");
    whole(max_retries + 1).with_feedback(Feedback::new(template).with_role(Role::System))
}

/// One prompt that ends in the last errors.
pub(crate) fn folded() -> Policy {
    let template = Template::new("\n\nErrors:\n", "- {message}", "\n\nFix all of them.");
    whole(3).with_feedback(Feedback::new(template).folded())
}

/// Two attempts, the second at 0.2 at most.
pub(crate) fn at_most(temperature: f64) -> Policy {
    let template = Template::new("Errors:\n", "- {path}: {detail}", "\n\nPlease correct the output.");
    whole(2)
        .with_temperature(Temperature::AtMost { first: temperature, then: 0.2 })
        .with_feedback(Feedback::new(template))
}

/// Accepts every document.
#[derive(Debug)]
pub(crate) struct Anything;

impl Validator for Anything {
    fn validate(&self, _: &Value, _: &Context<'_>, _: &mut Report) {}
}

impl Structure for Anything {
    fn subschema(&self, _: &JsonPath, _: &Value) -> Option<Value> {
        Some(json!({}))
    }
}

/// Returns a plan whose contract accepts every document.
pub(crate) fn anything(level: Level) -> Plan {
    let contract = Contract::new(Arc::new(Inline::new("anything", json!({}))), Arc::new(Anything));
    Plan::new(contract, vec![target("primary")]).with_policy(cooling()).with_level(level).build().unwrap()
}

/// Returns a run that starts with this advice.
pub(crate) fn run_with(mut run: Run, advice: Advice) -> Run {
    run.set_advice(advice);
    run
}

/// Returns a run whose delays vary by this seed.
pub(crate) fn jittered(mut run: Run, seed: u64) -> Run {
    run.set_jitter(seed);
    run
}
