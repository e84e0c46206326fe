//! Composes the messages and the schema of the next call.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::Run;
use super::closed::is_incomplete;
use super::sampling::take;
use crate::feedback::cut_bytes;
use crate::plan::Mode;
use crate::root::opening;
use crate::{
    Ask, Call, ClientRequest, Enforcement, Estimates, Failure, Finish, JsonPath, LowerRequest, Lowered,
    MAX_PREVIOUS, Message, Plan, Role, Rule, Sampling, SamplingParameter, Stage, Target, Tighten, Violation,
    spaced,
};

impl Run {
    /// Returns the next call, and the sampling parameters of the policy that the target does not support.
    pub(super) fn compose(&self, plan: &Plan) -> Result<(Call, Vec<String>), String> {
        let target = self.position.target_of(plan).ok_or("the plan has no such target")?;
        let mode = self.position.mode_of(plan).ok_or("the target has no such dialect")?;
        let is_unending = self.request.ask == Ask::Whole && self.is_unending(target);
        let (task_messages, client);
        let (lowered, messages) = match &self.request.ask {
            Ask::Whole => {
                let mut messages = with_instruction(&self.input.messages, mode.instruction.as_ref());
                client = self.client(mode.instruction.as_ref());
                task_messages = messages.len();
                let failure = self.drafts.failure(&self.ledger);
                if let Some(feedback) = self.request.feedback.as_deref()
                    && self.request.prefix.is_none()
                    && let Some(failure) = failure.filter(|failure| !failure.violations().is_empty())
                {
                    let (mut found, left_out) = (failure.violations().to_vec(), failure.left_out());
                    let mut previous = Arc::clone(self.drafts.previous());
                    if let Some(wrapper) = mode.whole.wrapper() {
                        place_in(wrapper, &mut found);
                        // After a patch it is the text of the document, which this mode has in a member.
                        if self.drafts.current().is_some_and(|draft| draft.text == previous) {
                            previous = format!("{{{}: {previous}}}", Value::from(wrapper)).into();
                        }
                    }
                    let previous = &*previous;
                    if is_unending {
                        feedback.apply_unending(&mut messages, &found);
                    } else if self.was_cut() {
                        // A long answer that was cut off, and the paths of all its open values, would fill the context that
                        // the next answer needs. All other violations are included.
                        let mut is_said = false;
                        found.retain(|found| !is_incomplete(found) || !std::mem::replace(&mut is_said, true));
                        feedback.apply(&mut messages, &cut_bytes(previous, MAX_CUT), &found, left_out);
                    } else {
                        feedback.apply(&mut messages, previous, &found, left_out);
                    }
                }
                let limit = self.limit_for(plan, target, &messages);
                (self.bounded_whole(plan, target, mode, limit), messages)
            }
            Ask::Patch(paths) => {
                let lowered = self.patch(plan, target, mode, paths)?;
                let instruction = lowered
                    .prompt_schema
                    .as_ref()
                    .map(|prompt_schema| plan.options.instruction.message(prompt_schema, "object"))
                    .map(Arc::new);
                let mut messages = with_instruction(&self.input.messages, instruction.as_ref());
                client = self.client(instruction.as_ref());
                task_messages = messages.len();
                messages.extend(self.patched());
                messages.push(Arc::new(Message::user(self.patch_words(plan, paths))));
                (Arc::new(lowered), messages)
            }
        };
        let max_tokens = self.limit_for(plan, target, &messages);
        let rules = match &self.request.ask {
            _ if !target.capabilities.rules => Vec::new(),
            Ask::Whole => plan.contract.rules().cloned().collect(),
            Ask::Patch(paths) => self.grounded_in_patch(plan, paths),
        };
        let is_grounded = rules.iter().any(|rule| matches!(rule, Rule::Grounded { .. }));
        let source = is_grounded.then(|| self.input.source.as_str().into());
        let (mut sampling, skipped) = self.sampling_for(target);
        if is_unending {
            self.penalise_repetition(target, &mut sampling);
        }
        let is_prompt = lowered.enforcement == Enforcement::None && target.capabilities.prefill;
        let prefill = match (&self.request.ask, &self.request.prefix) {
            _ if !is_prompt => None,
            (Ask::Whole, Some(prefix)) => Some(Cow::Owned(prefix.to_string())),
            (Ask::Whole, None) => opening(plan.contract.schema().document()).map(Cow::Borrowed),
            (Ask::Patch(_), _) => Some(Cow::Borrowed("{")),
        };
        let call = Call {
            messages,
            schema_name: plan.contract.schema().name().to_owned(),
            lowered,
            rules,
            source,
            sampling,
            max_tokens,
            deadline: self.deadline(plan),
            tools: Vec::new(),
            requires_tool: false,
            settings: self.input.settings.clone(),
            prefill,
            task_messages,
            is_repeated: self.counters.attempts > 0 || self.expects_reask,
            ends_loops: target.tighten == Tighten::Bounded,
            client,
        };
        Ok((call, skipped))
    }

    /// Requests the rest of an answer as a continuation of its text instead of by a patch, if the model of the target continues a
    /// text, and if that is not estimated to cost more.
    pub(super) fn prefer_continuation(&mut self, plan: &Plan) {
        let had_prefix = self.request.prefix.take().is_some();
        let draft = self.drafts.current().filter(|draft| self.drafts.is_rejected(draft));
        let Some(draft) = draft.filter(|draft| !draft.rest.is_empty()) else { return };
        if had_prefix {
            // The target may be another one than that of the last call.
            self.request.ask = Ask::Patch(draft.rest.clone());
        }
        let continues = |target: &Target| target.capabilities.prefill;
        let takes_text =
            |mode: &Mode| mode.whole.enforcement == Enforcement::None && mode.whole.lift.is_empty();
        let can = self.position.target_of(plan).is_some_and(continues)
            && self.position.mode_of(plan).is_some_and(takes_text)
            && draft.wrong.is_empty();
        let prefix = draft.prefix.clone().filter(|_| can && self.request.ask != Ask::Whole);
        let Some(prefix) = prefix else { return };
        let mut there = self.clone();
        (there.request.ask, there.request.prefix) = (Ask::Whole, Some(prefix));
        let (own, patch) =
            (there.estimate(plan, &Ask::Whole, None), self.estimate(plan, &self.request.ask, None));
        if !Estimates::is_cheaper(patch, own) {
            self.request = there.request;
        }
    }

    /// Returns the answer that a patch is about, where the dialogue has another turn of the model, which would be taken for it.
    fn patched(&self) -> Option<Arc<Message>> {
        let draft = self.drafts.current()?;
        self.input.messages.iter().find(|message| message.role == Role::Assistant)?;
        Some(Arc::new(Message::assistant(cut_bytes(&spaced(&draft.value), MAX_PREVIOUS))))
    }

    /// Returns whether the token limit cut the last answer off.
    fn was_cut(&self) -> bool {
        matches!(self.drafts.failure(&self.ledger), Some(Failure::Truncated { .. }))
    }

    /// Returns whether nothing is wrong with the last document of a model that is known to run away but values that are full
    /// at an added bound: the model ended the answer itself.
    fn is_unending(&self, target: &Target) -> bool {
        let wrong = self.drafts.wrong(&self.ledger);
        let ended = wrong.is_some_and(|call| call.finish == Some(Finish::Stop));
        target.tighten == Tighten::Bounded
            && ended
            && self.was_cut()
            && self.drafts.violations(&self.ledger).iter().all(is_incomplete)
    }

    /// Adds a penalty for what was written before, greater with each attempt: a model that never ends a list writes the same
    /// items again at any temperature. Where the policy sets one, or the target takes none, nothing changes.
    fn penalise_repetition(&self, target: &Target, sampling: &mut Sampling) {
        let parameter = SamplingParameter::FrequencyPenalty;
        if target.capabilities.frequency_penalty && !self.position.leaves_out(parameter) {
            let penalty = PENALTY * f64::from(self.counters.attempts);
            sampling.frequency_penalty.get_or_insert(penalty.min(MAX_PENALTY));
        }
    }

    /// Returns the schema of the whole document, bounded to the token limit if that is wanted and possible.
    fn bounded_whole(&self, plan: &Plan, target: &Target, mode: &Mode, limit: Option<u32>) -> Arc<Lowered> {
        let tighten = self.position.tighten(plan);
        let is_planned =
            tighten == target.tighten && (tighten != Tighten::Bounded || limit == self.planned(plan));
        if is_planned || mode.whole.enforcement != Enforcement::Schema {
            return Arc::clone(&mode.whole);
        }
        let dependencies = if target.capabilities.rules { plan.contract.dependencies() } else { Vec::new() };
        let request = LowerRequest {
            dependencies: &dependencies,
            tighten,
            max_tokens: limit,
            at_least: self.position.at_least(),
            ..LowerRequest::new(plan.contract.schema().document())
        };
        mode.lower.lower(&request).map_or_else(|_| Arc::clone(&mode.whole), Arc::new)
    }

    /// Returns the token limit for which the plan lowered the schema.
    fn planned(&self, plan: &Plan) -> Option<u32> {
        let default = || self.position.target_of(plan)?.capabilities.default_max_tokens;
        plan.options.max_tokens.or_else(default)
    }

    /// Returns the request of the client, with the instruction before its dialogue.
    fn client(&self, instruction: Option<&Arc<Message>>) -> Option<Arc<ClientRequest>> {
        let client = self.input.client.as_ref()?;
        let before = with_instruction(&client.before, instruction);
        Some(Arc::new(ClientRequest { before, ..ClientRequest::clone(client) }))
    }

    /// Returns the policy's sampling parameters with the seed of this attempt, limited to those that the target supports,
    /// and the names of the others.
    fn sampling_for(&self, target: &Target) -> (Sampling, Vec<String>) {
        let (mut sampling, usual) = (self.request.sampling, target.sampling);
        let own = self.input.settings.as_ref().map(|settings| settings.sampling()).unwrap_or_default();
        // Each requested answer has a seed of its own; a repeated call requests the same answer.
        let nth = u64::from(self.counters.attempts) | u64::from(self.counters.patches) << 32;
        sampling.seed = self.input.seed.or(own.seed).or(usual.seed).map(|seed| seed.wrapping_add(nth));
        sampling.top_p = sampling.top_p.or(own.top_p).or(usual.top_p);
        let penalty = own.frequency_penalty.or(usual.frequency_penalty);
        sampling.frequency_penalty = sampling.frequency_penalty.or(penalty);
        let mut skipped = Vec::new();
        let capabilities = &target.capabilities;
        let takes_temperature = sampling.temperature.is_none_or(|it| capabilities.takes_temperature(it));
        for (parameter, is_taken) in [
            (SamplingParameter::Temperature, takes_temperature),
            (SamplingParameter::TopP, capabilities.top_p),
            (SamplingParameter::Seed, capabilities.seed),
            (SamplingParameter::FrequencyPenalty, capabilities.frequency_penalty),
        ] {
            let is_left_out = !is_taken || self.position.leaves_out(parameter);
            if is_left_out && take(&mut sampling, parameter) {
                skipped.push(parameter.name().to_owned());
            }
        }
        (sampling, skipped)
    }
}

/// Gives violations of the document their places in an answer that holds the document in a member.
fn place_in(wrapper: &str, violations: &mut [Violation]) {
    // A text that is not JSON has no member.
    let placed = violations.iter_mut().filter(|one| one.stage != Stage::Read || !one.path.is_root());
    placed.for_each(|one| one.path = JsonPath::root().key(wrapper).join(one.path.segments()));
}

/// Returns these messages, with the instruction at the end of the system message or as a system message.
fn with_instruction(given: &[Arc<Message>], instruction: Option<&Arc<Message>>) -> Vec<Arc<Message>> {
    // A re-ask adds up to two messages.
    let mut messages = Vec::with_capacity(given.len() + 3);
    let Some(instruction) = instruction else {
        messages.extend_from_slice(given);
        return messages;
    };
    match given.split_first().filter(|(first, _)| first.role == Role::System) {
        Some((first, rest)) => {
            let mut first = Message::clone(first);
            first.push_text("\n\n");
            instruction.texts().for_each(|text| first.push_text(text));
            messages.push(Arc::new(first));
            messages.extend_from_slice(rest);
        }
        None => {
            messages.push(Arc::clone(instruction));
            messages.extend_from_slice(given);
        }
    }
    messages
}

/// The maximum number of bytes that a re-ask quotes of an answer that was cut off.
const MAX_CUT: usize = 200;

/// The frequency penalty for each attempt so far after an answer without an end. SmolLM2 ends most lists at 0.5 and all at 1.
const PENALTY: f64 = 0.5;

/// The greatest frequency penalty that OpenAI's API accepts.
const MAX_PENALTY: f64 = 2.0;
