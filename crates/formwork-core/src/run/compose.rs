//! The words and the schema of the next call.

use std::sync::Arc;

use formwork_json::JsonPath;
use serde_json::{Map, Value, json};

use super::Run;
use super::draft::label;
use crate::feedback::cut_bytes;
use crate::plan::Rung;
use crate::{
    Ask, Call, Capabilities, Enforcement, Failure, LowerRequest, Lowered, Message, Plan, Role, Rule,
    Sampling, Shown, Target, Tighten, spaced,
};

impl Run {
    /// The next call, and what the policy wanted to send and the target does not take.
    pub(super) fn compose(&self, plan: &Plan) -> Result<(Call, Vec<String>), String> {
        let target = plan.targets.get(self.target).ok_or("the plan has no such target")?;
        let rung = target.rungs.get(self.rung).ok_or("the target has no such dialect")?;
        let (lowered, messages) = match &self.asked {
            Ask::Whole => {
                let mut messages = self.task(plan, rung.whole.shown.as_ref());
                if let Some(feedback) = self.feedback.as_ref().filter(|_| !self.violations().is_empty()) {
                    // An answer that was cut off helps nobody, and fills the context that the next one needs.
                    let previous = if self.was_cut() { "" } else { self.previous.as_str() };
                    feedback.apply(&mut messages, previous, self.violations());
                }
                let limit = self.limit_for(plan, target, &messages);
                (self.bounded_whole(plan, target, rung, limit), messages)
            }
            Ask::Patch(paths) => {
                let lowered = self.patch(plan, target, rung, paths)?;
                let mut messages = self.task(plan, lowered.shown.as_ref());
                messages.push(Message::user(self.patch_words(paths)));
                (Arc::new(lowered), messages)
            }
        };
        let max_tokens = self.limit_for(plan, target, &messages);
        let rules = match &self.asked {
            Ask::Whole if target.capabilities.rules => plan.contract.rules().cloned().collect(),
            _ => Vec::new(),
        };
        let (sampling, skipped) = self.sampling_for(target);
        let call = Call {
            messages,
            schema_name: plan.contract.schema().name().to_owned(),
            lowered,
            rules,
            sampling,
            max_tokens,
            deadline: self.deadline(plan),
            tools: Vec::new(),
        };
        Ok((call, skipped))
    }

    /// Whether the limit of tokens cut the last answer.
    fn was_cut(&self) -> bool {
        self.wrong
            .and_then(|entry| self.ledger.get(entry))
            .and_then(|attempt| attempt.verdict.failure())
            .is_some_and(|failure| matches!(failure, Failure::Truncated { .. }))
    }

    /// The lowered schema of a patch.
    ///
    /// # Errors
    /// Why these values cannot be asked for alone: no value would keep to the rules, or the dialect cannot take the schema.
    fn patch(
        &self,
        plan: &Plan,
        target: &Target,
        rung: &Rung,
        paths: &[JsonPath],
    ) -> Result<Lowered, String> {
        let schema = self.patch_schema(plan, paths);
        let is_empty = |schema: &Value| {
            let (low, high) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
            low.zip(high).is_some_and(|(low, high)| low > high)
                || schema["enum"].as_array().is_some_and(Vec::is_empty)
        };
        if let Some((name, _)) =
            schema["properties"].as_object().into_iter().flatten().find(|(_, schema)| is_empty(schema))
        {
            return Err(format!("no value of `{name}` keeps to the rules beside the other values"));
        }
        let max_tokens = self.max_tokens.or(target.capabilities.default_max_tokens);
        let request = LowerRequest { tighten: self.tighten(plan), max_tokens, ..LowerRequest::new(&schema) };
        rung.lower.lower(&request).map_err(|refused| refused.to_string())
    }

    /// Whether these values can be asked for alone.
    pub(super) fn can_patch(&self, plan: &Plan, paths: &[JsonPath]) -> bool {
        let target = plan.targets.get(self.target);
        let rung = target.and_then(|target| target.rungs.get(self.rung));
        target.zip(rung).is_some_and(|(target, rung)| self.patch(plan, target, rung, paths).is_ok())
    }

    /// The schema of the whole document, bounded to what the limit of tokens holds where that is wanted and possible.
    fn bounded_whole(&self, plan: &Plan, target: &Target, rung: &Rung, limit: Option<u32>) -> Arc<Lowered> {
        let tighten = self.tighten(plan);
        let is_planned =
            tighten == target.tighten && (tighten != Tighten::Bounded || limit == self.planned(plan));
        if is_planned || rung.whole.enforcement != Enforcement::Schema {
            return Arc::clone(&rung.whole);
        }
        let dependencies = if target.capabilities.rules { plan.contract.dependencies() } else { Vec::new() };
        let request = LowerRequest {
            dependencies: &dependencies,
            tighten,
            max_tokens: limit,
            ..LowerRequest::new(plan.contract.schema().document())
        };
        rung.lower.lower(&request).map_or_else(|_| Arc::clone(&rung.whole), Arc::new)
    }

    /// The limit of tokens that the plan's own lowering was made for.
    fn planned(&self, plan: &Plan) -> Option<u32> {
        let default = || plan.targets.get(self.target)?.capabilities.default_max_tokens;
        plan.max_tokens.or_else(default)
    }

    /// The limit of tokens for a call: what the plan or the policy says, else the target's default as far as the context
    /// has room for it. Under a limit of money there is always one.
    fn limit_for(&self, plan: &Plan, target: &Target, messages: &[Message]) -> Option<u32> {
        let capabilities = &target.capabilities;
        let paid = || plan.budget.map(|_| capabilities.output_tokens.unwrap_or(MAX_PAID));
        let left = capabilities.context_tokens.map(|context| left(context, messages));
        self.max_tokens.or_else(|| {
            let most = capabilities.default_max_tokens.or_else(paid)?;
            Some(most.min(left.unwrap_or(u32::MAX)))
        })
    }

    /// The most tokens that an answer of this target can have, if that is known.
    pub(super) fn room(&self, target: &Target) -> Option<u32> {
        let Capabilities { output_tokens, context_tokens, .. } = target.capabilities;
        let left = context_tokens.map(|context| left(context, &self.input.messages));
        [output_tokens, left].into_iter().flatten().min()
    }

    /// The task, with the schema in its first system message where the model has to see it.
    fn task(&self, plan: &Plan, shown: Option<&Shown>) -> Vec<Message> {
        let mut messages = self.input.messages.clone();
        if let Some(shown) = shown {
            let kind = match (&self.asked, plan.contract.schema().document()["type"].as_str()) {
                (Ask::Patch(_), _) | (Ask::Whole, Some("object")) => "object",
                (Ask::Whole, Some("array")) => "array",
                (Ask::Whole, _) => "value",
            };
            let words = plan.instruction.words(shown, kind);
            match messages.first_mut().filter(|first| first.role == Role::System) {
                Some(first) => first.push_text(&format!("\n\n{words}")),
                None => messages.insert(0, Message::system(words)),
            }
        }
        messages
    }

    /// The policy's sampling, with the seed of this attempt, without what the target does not take.
    fn sampling_for(&self, target: &Target) -> (Sampling, Vec<String>) {
        let mut sampling = self.sampling;
        // One seed for each answer that is asked for: a call that is repeated asks for the same answer.
        let nth = u64::from(self.attempts) | u64::from(self.patches) << 32;
        sampling.seed = self.input.seed.map(|seed| seed.wrapping_add(nth));
        let mut skipped = Vec::new();
        let capabilities = &target.capabilities;
        if sampling.temperature.is_some() && !capabilities.temperature {
            sampling.temperature = None;
            skipped.push("temperature".to_owned());
        }
        if sampling.top_p.is_some() && !capabilities.top_p {
            sampling.top_p = None;
            skipped.push("top_p".to_owned());
        }
        if sampling.seed.is_some() && !capabilities.seed {
            sampling.seed = None;
            skipped.push("seed".to_owned());
        }
        (sampling, skipped)
    }

    /// An object with one member for each path, each under the schema that governs it, narrowed by the rules.
    fn patch_schema(&self, plan: &Plan, paths: &[JsonPath]) -> Value {
        let Some(draft) = &self.draft else { return json!({}) };
        let (mut properties, mut defs) = (Map::new(), Map::new());
        for path in paths {
            let Some(mut schema) = plan.contract.structure().subschema(path, &draft.value) else { continue };
            if let Some(Value::Object(own)) = schema.as_object_mut().and_then(|schema| schema.remove("$defs"))
            {
                defs.extend(own);
            }
            for rule in plan.contract.rules().filter(|rule| rule.target() == path) {
                let known = !rule.inputs().iter().any(|input| paths.iter().any(|path| input.is_within(path)));
                if let Some((_, narrowing)) = rule.narrow(&draft.value).filter(|_| known) {
                    Rule::tighten(&mut schema, &narrowing);
                }
            }
            properties.insert(label(path), schema);
        }
        let required: Vec<&String> = properties.keys().collect();
        let mut schema = json!({"type": "object", "required": required, "additionalProperties": false});
        schema["properties"] = Value::Object(properties);
        if !defs.is_empty() {
            schema["$defs"] = Value::Object(defs);
        }
        schema
    }

    /// What is wrong where, with the value as it stands. As long as the paths, not as the document.
    fn patch_words(&self, paths: &[JsonPath]) -> String {
        let mut words = "Your answer is right except for some values. Give these anew:\n".to_owned();
        for path in paths {
            let now = self.draft.as_ref().and_then(|draft| path.get(&draft.value)).map(spaced);
            let now = now.map_or("missing".to_owned(), |now| format!("now {}", cut_bytes(&now, MAX_SHOWN)));
            words.push_str(&format!("- \"{}\" ({now})", label(path)));
            let about = self.violations().iter().filter(|violation| violation.path.is_within(path));
            for (n, violation) in about.take(MAX_REASONS).enumerate() {
                words.push_str(if n == 0 { ": " } else { "; " });
                words.push_str(&violation.detail());
            }
            words.push('\n');
        }
        words.push_str("Answer with one JSON object that has exactly these keys.");
        words
    }
}

/// The limit of tokens under a limit of money, where neither the caller nor the model's row says one.
const MAX_PAID: u32 = 8192;

/// The fewest tokens that are left for an answer: what a prompt comes to is an estimate.
const MIN_LEFT: u32 = 256;

/// What a prompt leaves of a context: three bytes count as a token, which is more tokens than most texts have.
fn left(context: u32, messages: &[Message]) -> u32 {
    let bytes: usize = messages.iter().flat_map(Message::texts).map(str::len).sum();
    let prompt = u32::try_from(bytes.div_ceil(3)).unwrap_or(u32::MAX);
    context.saturating_sub(prompt).max(MIN_LEFT)
}

/// The most bytes of a value that a patch shows.
const MAX_SHOWN: usize = 300;

/// The most reasons that a patch gives for one value.
const MAX_REASONS: usize = 4;
