use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::keywords::part_of;
use formwork_core::{
    Answer, Call, Capabilities, Delta, Enforcement, Fault, FaultKind, Finish, JsonPath, Layer, Lift, LiftOp,
    Lowered, Provider, Rule, Segment, SharedProvider, Usage, escape, lift,
};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

/// Requests a document in stages: first the values that a [`Rule`] reads, then the whole document, with these values as they are and with
/// the range that they leave for the target of the rule.
///
/// No schema says that a score is the weighted sum of five other values, and a tiny model cannot add. In stages the server keeps the
/// score within its range, as a model in this process does. Each stage repeats the messages, which a server with a prompt cache reads
/// once, and the values of the stages before. The tokens of all stages but the last are those of
/// [calls before](formwork_core::Completion::probe) the call.
///
/// The layer is for tiny models on servers that make a grammar of a schema (the dialects `llama-cpp`, `llguidance` and `ollama`). A call
/// has one stage if it has tools, the request of a client or no rule that reads values before its target, if the target is a number
/// other than an integer, or if its schema has alternatives on the way to the target. A document is requested without stages if the
/// server refuses the schema of one, or does not hold the model to it.
///
/// ```
/// use std::sync::Arc;
/// use formwork_core::{Capabilities, Enforcement, Layer, Provider};
/// use formwork_layers::Stages;
///
/// let server = formwork_testkit::Scripted::new(["{}"]).with_capabilities(Capabilities::new(Enforcement::Schema));
/// assert!(Stages.wrap(Arc::new(server)).capabilities().rules);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages;

impl Layer for Stages {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        let mut capabilities = inner.capabilities().clone();
        if capabilities.enforcement != Enforcement::Schema || capabilities.rules {
            return inner;
        }
        capabilities.rules = true;
        Arc::new(InStages { inner, capabilities })
    }
}

#[derive(Debug)]
struct InStages {
    inner: SharedProvider,
    capabilities: Capabilities,
}

#[async_trait]
impl Provider for InStages {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let staged = Staged::of(call);
        let Some(beginning) = staged.next() else { return self.inner.call(call).await };
        // The fault of the first request is one of the call.
        let (usage, next) = match staged.asked(&self.inner, call, &beginning).await {
            Ok(asked) => asked,
            Err(fault) if fault.kind == FaultKind::SchemaRefused => return self.inner.call(call).await,
            Err(fault) => return Err(fault),
        };
        let (inner, call) = (Arc::clone(&self.inner), call.clone());
        // A driver that ends the call knows the tokens of the stages before.
        let rest = stream::unfold(Some(next), move |next| {
            let (inner, call) = (Arc::clone(&inner), call.clone());
            async move {
                let staged = match next? {
                    Next::Stage(staged) => *staged,
                    Next::Answer(answer) => return Some((answer, None)),
                };
                let (usage, next) = match staged.next() {
                    Some(beginning) => match staged.asked(&inner, &call, &beginning).await {
                        Ok(asked) => asked,
                        Err(fault) => return Some((failed(fault), None)),
                    },
                    None => {
                        let answer = match inner.call(&with_schema(&call, staged.schema)).await {
                            Err(fault) if fault.kind == FaultKind::SchemaRefused => inner.call(&call).await,
                            answer => answer,
                        };
                        return Some((answer.unwrap_or_else(failed), None));
                    }
                };
                Some((spent(usage), Some(next)))
            }
        });
        Ok(Answer::new(spent(usage).chain(rest.flatten())))
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        let mut capabilities = self.inner.probe().await?;
        capabilities.rules |= capabilities.enforcement == Enforcement::Schema;
        Ok(capabilities)
    }
}

/// The continuation after a stage.
enum Next {
    Stage(Box<Staged>),
    /// The answer to the call.
    Answer(Answer),
}

/// Returns whether a value has the members that the schema of a stage requires, at any depth.
fn is_held(stage: &Value, known: &Value) -> bool {
    let Some(members) = stage["properties"].as_object() else { return true };
    let mut required = stage["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required.all(|name| known.get(name).is_some())
        && members.iter().all(|(name, part)| known.get(name).is_none_or(|known| is_held(part, known)))
}

fn with_schema(call: &Call, schema: Value) -> Call {
    let (mut call, mut lowered) = (call.clone(), (*call.lowered).clone());
    lowered.schema = Some(schema);
    call.lowered = Arc::new(lowered);
    call
}

/// Returns an answer that consists of the tokens of the calls before it, if there are any.
fn spent(usage: Usage) -> Answer {
    let probe = (usage != Usage::default()).then_some(Ok(Delta::Probe { usage }));
    Answer::new(stream::iter(probe))
}

fn failed(fault: Fault) -> Answer {
    Answer::new(stream::iter([Err(fault)]))
}

/// The dialects of servers that take `const` and the bounds of integers, whatever the model.
const DIALECTS: [&str; 3] = ["llama-cpp", "llguidance", "ollama"];

/// The schema of a document whose values become known in stages.
struct Staged {
    lowered: Lowered,
    schema: Value,
    waiting: Vec<Waiting>,
}

/// A rule that can still narrow the schema, with the paths in the answer of its target and of the values that it reads.
struct Waiting {
    rule: Rule,
    target: JsonPath,
    inputs: Vec<JsonPath>,
}

impl Staged {
    fn of(call: &Call) -> Self {
        let is_staged = call.enforcement() == Enforcement::Schema
            && DIALECTS.contains(&call.lowered.dialect.as_str())
            && call.tools.is_empty()
            && call.client.is_none()
            && call.prefill.is_none();
        let rules = if is_staged { call.rules.as_slice() } else { &[] };
        let mut schema = call.schema().cloned().unwrap_or_default();
        let waiting = rules.iter().filter_map(|rule| {
            let sent = |path: &JsonPath| sent(&call.lowered, path);
            let target = sent(&rule.dependency()?.then)?;
            let inputs = rule.inputs().iter().map(sent).collect::<Option<_>>()?;
            let part = part_of(&mut schema, target.segments())?;
            // llama.cpp's grammar has no bounds for other numbers.
            let is_kept =
                part["type"] == "integer" || matches!(rule, Rule::MemberOf { .. } | Rule::Custom(_));
            is_kept.then_some(())?;
            Some(Waiting { rule: rule.clone(), target, inputs })
        });
        let waiting = waiting.collect();
        Self { lowered: (*call.lowered).clone(), schema, waiting }
    }

    /// Returns the schema of the next stage: that of the document before the first target whose range is not known yet.
    fn next(&self) -> Option<Value> {
        let stages = self.waiting.iter().filter_map(|waiting| {
            let stage = before(&self.schema, waiting.target.segments())?;
            waiting.reads_only(&stage).then_some((stage, &waiting.target))
        });
        // The first of two targets is in the stage of the second.
        let first = stages.reduce(|one, two| if has(&one.0, two.1) { two } else { one });
        first.map(|(stage, _)| stage)
    }

    /// Requests a stage. Returns its tokens and what follows it.
    async fn asked(
        mut self,
        inner: &SharedProvider,
        call: &Call,
        stage: &Value,
    ) -> Result<(Usage, Next), Fault> {
        let part = with_schema(call, stage.clone());
        let completion = inner.call(&part).await?.collect().await?;
        let usage = completion.usage.or_estimate(&part, completion.text.len());
        let usage = completion.probe.as_deref().map_or(usage, |probe| usage.plus(*probe));
        let next = match serde_json::from_str(completion.text.trim()) {
            Ok(known @ Value::Object(_)) if is_held(stage, &known) => {
                self.fix(stage, &known);
                Next::Stage(Box::new(self))
            }
            // The server does not hold the model to the schema.
            _ if completion.finish == Finish::Stop => {
                Next::Answer(inner.call(call).await.unwrap_or_else(failed))
            }
            // The run judges what was cut off or refused, whose tokens are its own.
            _ => return Ok((Usage::default(), Next::Answer(completion.into()))),
        };
        Ok((usage, next))
    }

    /// Fixes the values of a stage, and narrows the targets of the rules that read no others. Each rule narrows once.
    fn fix(&mut self, stage: &Value, known: &Value) {
        fix(&mut self.schema, stage, known);
        let (document, _) = lift(known.clone(), &self.lowered);
        let schema = &mut self.schema;
        self.waiting.retain(|waiting| {
            if !waiting.reads_only(stage) {
                return true;
            }
            if !has(stage, &waiting.target)
                && let Some((_, narrowing)) = waiting.rule.narrow(&document)
                && let Some(part) = part_of(schema, waiting.target.segments())
            {
                let wide = part.clone();
                if !Rule::tighten(part, &narrowing) {
                    *part = wide;
                }
            }
            false
        });
    }
}

impl Waiting {
    /// Returns whether the rule reads only values of a stage.
    fn reads_only(&self, stage: &Value) -> bool {
        self.inputs.iter().all(|input| has(stage, input))
    }
}

/// Returns whether a schema has a part for the value at a path.
fn has(schema: &Value, path: &JsonPath) -> bool {
    part_of(&mut schema.clone(), path.segments()).is_some()
}

/// The maximum number of references to one part of a schema.
const MAX_REFERENCES: usize = 16;

/// Returns the path in the answer of a value of the original document; `None` if lowering moves it to another place.
fn sent(lowered: &Lowered, path: &JsonPath) -> Option<JsonPath> {
    let schema = lowered.schema.as_ref()?;
    let (mut at, mut sent) = (String::new(), JsonPath::root());
    for step in path.segments() {
        // A reference may lead to itself.
        for _ in 0..MAX_REFERENCES {
            let Some(target) = schema.pointer(&at)?.get("$ref").and_then(Value::as_str) else { break };
            target.strip_prefix('#')?.clone_into(&mut at);
        }
        let mut step = step.clone();
        for LiftOp { lift, .. } in lowered.lift.iter().filter(|op| op.at == at) {
            match (lift, &mut step) {
                (Lift::Reorder(_) | Lift::DropNull(_) | Lift::DropAbsent { .. }, _) => {}
                (Lift::Rename(names), Segment::Key(name)) => {
                    if let Some((sent, _)) = names.iter().find(|(_, original)| original == name) {
                        name.clone_from(sent);
                    }
                }
                _ => return None,
            }
        }
        match &step {
            Segment::Key(name) => at.push_str(&format!("/properties/{}", escape(name))),
            Segment::Index(index) => at.push_str(&format!("/prefixItems/{index}")),
        }
        sent.push(step);
    }
    Some(sent)
}

/// Returns the schema of a document that ends before the value at a path; `None` if that is the first value.
fn before(schema: &Value, path: &[Segment]) -> Option<Value> {
    let (Segment::Key(name), rest) = path.split_first()? else { return None };
    let members = schema["properties"].as_object()?;
    let target = members.get(name)?;
    let mut kept: Map<String, Value> = members
        .iter()
        .take_while(|(member, _)| *member != name)
        .map(|(name, part)| (name.clone(), part.clone()))
        .collect();
    if !rest.is_empty()
        && let Some(part) = before(target, rest)
    {
        kept.insert(name.clone(), part);
    }
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    required.retain(|member| member.as_str().is_some_and(|member| kept.contains_key(member)));
    if kept.is_empty() {
        return None;
    }
    let mut stage =
        json!({"type": "object", "properties": kept, "required": required, "additionalProperties": false});
    for keyword in ["$defs", "definitions"] {
        if let Some(definitions) = schema.get(keyword) {
            stage[keyword] = definitions.clone();
        }
    }
    Some(stage)
}

/// Allows only the known values of a stage at its places, and none where it has none.
fn fix(schema: &mut Value, stage: &Value, known: &Value) {
    let Some(asked) = stage["properties"].as_object() else { return };
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(members) = schema["properties"].as_object_mut() else { return };
    let last = asked.keys().next_back();
    for (name, part) in asked {
        match (known.get(name), members.get_mut(name)) {
            // The object around the next target.
            (Some(known), Some(member)) if Some(name) == last && part != member => fix(member, part, known),
            (Some(known), Some(member)) => *member = json!({"const": known}),
            (None, _) => {
                members.shift_remove(name);
                required.retain(|member| member != name);
                continue;
            }
            (Some(_), None) => {}
        }
        if !required.iter().any(|member| member == name) {
            required.push(name.as_str().into());
        }
    }
    schema["required"] = required.into();
}
