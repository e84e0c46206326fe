//! The words and the schema of the next call.

use std::sync::Arc;

use formwork_json::JsonPath;
use serde_json::{Map, Value, json};

use super::Run;
use super::draft::label;
use crate::feedback::cut_bytes;
use crate::{Ask, Call, LowerRequest, Message, Plan, Role, Rule, Sampling, Shown, Target, spaced};

impl Run {
    /// The next call, and what the policy wanted to send and the target does not take.
    pub(super) fn compose(&self, plan: &Plan) -> Result<(Call, Vec<String>), String> {
        let target = plan.targets.get(self.target).ok_or("the plan has no such target")?;
        let rung = target.rungs.get(self.rung).ok_or("the target has no such dialect")?;
        let (lowered, messages) = match &self.asked {
            Ask::Whole => {
                let mut messages = self.task(plan, rung.whole.shown.as_ref());
                if let Some(feedback) = self.feedback.as_ref().filter(|_| !self.violations().is_empty()) {
                    feedback.apply(&mut messages, &self.previous, self.violations());
                }
                (Arc::clone(&rung.whole), messages)
            }
            Ask::Patch(paths) => {
                let schema = self.patch_schema(plan, paths);
                let request = LowerRequest { max_tokens: self.max_tokens, ..LowerRequest::new(&schema) };
                let lowered = rung.lower.lower(&request).map_err(|refused| refused.to_string())?;
                let mut messages = self.task(plan, lowered.shown.as_ref());
                messages.push(Message::user(self.patch_words(paths)));
                (Arc::new(lowered), messages)
            }
        };
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
            max_tokens: self.max_tokens,
            deadline: self.deadline(plan),
            tools: Vec::new(),
        };
        Ok((call, skipped))
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

/// The most bytes of a value that a patch shows.
const MAX_SHOWN: usize = 300;

/// The most reasons that a patch gives for one value.
const MAX_REASONS: usize = 4;
