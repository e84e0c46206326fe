//! Turns of a model, judged: the arguments of every call against the schema of its tool, each answer without a call against the format.

use formwork_core::{Context, JsonPath, Part, Role, Stage, Usage, Violation, Warning, precision};
use formwork_extract::Extractor;
use formwork_json::{EditKind, Level, read};
use formwork_ledger::RunRecord;
use serde_json::{Value, json};

use super::job::Job;
use crate::ask::Want;
use crate::contracts::Spec;
use crate::engine::{Bounds, identifier};
use crate::problem::{Kind, Problem};
use crate::protocol::turn::{Called, Turn};
use crate::record::Made;

/// The maximum number of bytes of a call's arguments that are repeated to the model.
const MAX_SHOWN: usize = 4 << 10;

/// The contracts of a turn.
#[derive(Default)]
pub(super) struct Judge {
    tools: Vec<(String, Extractor<Value>)>,
    /// The names of tools whose arguments have no schema.
    pub(super) others: Vec<String>,
    /// The contract of a text.
    format: Option<Extractor<Value>>,
    pub(super) is_required: bool,
    /// The text that the turn is about, for rules.
    source: String,
}

/// A value that was found in a text, and what was changed in it.
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) warnings: Vec<Warning>,
}

/// The reason why a turn does not hold.
pub(super) struct Wrong {
    /// The correction, for the model.
    pub(super) message: String,
    pub(super) violations: Vec<Violation>,
}

/// Returns the number of calls that had an answer.
fn answers(made: &[Made]) -> usize {
    made.iter().filter(|made| !made.has_failed()).count()
}

impl Judge {
    /// Compiles the contracts of a request.
    ///
    /// # Errors
    /// [`Problem`] of a schema that cannot be used.
    pub(super) async fn of(job: &Job) -> Result<Self, Problem> {
        let (tools, is_required, format) = match job.ask.want.clone() {
            Want::Tools { tools, required, format } => (tools, required, format),
            Want::Call(tool) => (vec![tool], true, None),
            Want::Json { name, schema } => (Vec::new(), false, Some((name, schema))),
            Want::Text => return Ok(Self::default()),
        };
        // Texts that the model reads, and not its own: an answer after a call is about the result of the tool.
        let source = job.ask.messages.iter().filter(|message| message.role != Role::Assistant);
        let source = source.flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::Text { text } | Part::ToolResult { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let source = source.collect::<Vec<_>>().join("\n\n");
        let mut judge = Self { is_required, source, ..Self::default() };
        let tools = tools.into_iter().map(|tool| (tool.name, tool.parameters, true));
        let format = format.map(|(name, schema)| (name, schema, false));
        for (name, schema, is_tool) in tools.chain(format) {
            let named = job.named.as_ref().filter(|_| !is_tool).cloned();
            let mut spec = named.unwrap_or_else(|| Spec::new(name.clone(), schema));
            if !is_tool {
                spec.mark(job.options.absent.as_ref(), job.options.coerce.as_ref());
            }
            let ready =
                job.shared.engine.ready(&spec, &job.targets, Default::default(), Bounds::default()).await?;
            match is_tool {
                true => judge.tools.push((name, ready.extractor)),
                false => judge.format = Some(ready.extractor),
            }
        }
        Ok(judge)
    }

    /// Adds the named contract of a job to its request: its instructions, its examples and its schema, as the first target has it.
    pub(super) fn introduce(&self, job: &Job, body: &mut Value) {
        let Some(named) = &job.named else { return };
        let enforced = self.format.as_ref().and_then(|format| format.plan().enforced(0));
        if let Some(schema) = enforced {
            (job.protocol.set_format)(body, &identifier(&named.name), schema);
        }
        let more = enforced.is_none().then(|| instruction(named.schema.value()));
        if let Some(text) = job.instructions(more) {
            (job.protocol.add_instructions)(body, &text);
        }
        job.protocol.add_examples(body, &named.examples);
    }

    /// Returns a run with the name and the digest of the format, and with warnings about its answer.
    pub(super) fn noted(&self, want: &Want, run: RunRecord, warnings: Vec<Warning>) -> RunRecord {
        let name = match want {
            Want::Json { name, .. } | Want::Tools { format: Some((name, _)), .. } => Some(name.clone()),
            _ => None,
        };
        let digest = self.format.as_ref().map(|format| format.plan().schema_digest().to_owned());
        RunRecord { warnings, ..run.with_contract(name, digest) }
    }

    /// Returns whether the name is that of a tool whose arguments are judged.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|(known, _)| known == name)
    }

    /// Returns whether a text without a call holds as it comes.
    pub(super) const fn takes_any_text(&self) -> bool {
        !self.is_required && self.format.is_none()
    }

    fn context(&self) -> Context<'_> {
        Context { source: &self.source, ..Context::EMPTY }
    }

    /// Returns the correction with which a request is sent again, within a limit of money.
    ///
    /// # Errors
    /// The problem of a turn that does not hold after the calls that were made, if the attempts or the money are used up.
    pub(super) fn again(
        &self,
        job: &Job,
        made: &[Made],
        wrong: Wrong,
        limit: Option<u64>,
    ) -> Result<String, Problem> {
        let engine = &job.shared.engine;
        if answers(made) >= engine.attempts() as usize {
            return Err(self.problem(wrong, made));
        }
        if let Some(limit) = limit {
            let price = engine.targets(&job.targets).next().and_then(|target| target.backend.price());
            let cost = |usage: Usage| price.and_then(|price| price.of(usage).micro_usd).unwrap_or(0);
            let spent: u64 = made.iter().map(|made| cost(made.usage)).sum();
            let next = made.iter().map(|made| cost(made.usage)).max().unwrap_or(0);
            if spent.saturating_add(next) > limit {
                let message = format!("the budget does not allow another call; {}", wrong.message);
                return Err(Problem { kind: Kind::OutOfBudget, message, ..self.problem(wrong, made) });
            }
        }
        Ok(wrong.message)
    }

    /// Returns the values that were found in texts of a turn that holds, with the numbers of their answers. Text that has to satisfy a
    /// schema is read at this level.
    ///
    /// # Errors
    /// Why the turn does not hold.
    pub(super) fn judged(&self, turn: &Turn, level: Level) -> Result<Vec<(u64, Found)>, Wrong> {
        let mut found = Vec::new();
        if turn.is_unfinished {
            return Ok(found);
        }
        // The turn itself does not become a part of the dialogue.
        let mut message = String::from("Your last turn was not accepted, and is left out here.");
        let (mut all, mut uncalled, mut is_text) = (Vec::new(), None, false);
        let mut add = |what: String, violations: Vec<Violation>| {
            if !violations.is_empty() {
                message.push_str(&what);
                for violation in &violations {
                    message.push_str(&format!("\n- {violation}"));
                }
                all.extend(violations);
            }
        };
        for answer in turn.answers() {
            let mut calls = turn.calls.iter().filter(|call| call.answer == answer).peekable();
            if calls.peek().is_none() {
                uncalled = uncalled.or(self.is_required.then(|| turn.text(answer)));
                match self.text(turn.text(answer), level) {
                    Some(Err(violations)) => {
                        is_text = true;
                        add(format!("\nYou answered {}:", shown(turn.text(answer))), violations);
                    }
                    Some(Ok(value)) => found.extend(value.map(|value| (answer, value))),
                    None => {}
                }
            }
            for call in calls {
                let what =
                    format!("\nYou called `{}` with the arguments {}:", call.name, shown(&call.arguments));
                add(what, self.violations(call));
            }
        }
        if all.is_empty() {
            let Some(text) = uncalled.map(shown) else { return Ok(found) };
            message.push_str(&format!(
                "\nYou called no tool, and answered: {text}\nAnswer the same request again with a call of a tool."
            ));
            return Err(Wrong { message, violations: Vec::new() });
        }
        message.push_str("\nAnswer the same request again, so that ");
        message.push_str(match is_text {
            true => "it is a JSON document that satisfies the schema.",
            false => "the arguments satisfy the schema of the tool.",
        });
        Err(Wrong { message, violations: all })
    }

    /// Reads and judges a text that has to satisfy a schema; `None` if it does not have to. Returns the value if it is written otherwise
    /// than the text. At [`Level::Strict`] it never is.
    fn text(&self, text: &str, level: Level) -> Option<Result<Option<Found>, Vec<Violation>>> {
        let format = self.format.as_ref().filter(|_| !self.is_required)?;
        let contract = format.plan().contract();
        let documents = match read(text, level) {
            Ok(reading) => reading.into_candidates(),
            Err(error) => {
                let broken = Violation::new(JsonPath::root(), "json", Stage::Read);
                return Some(Err(vec![
                    broken.with_expected("a JSON document").with_found(error.to_string()),
                ]));
            }
        };
        let mut first = None;
        let mut convertible = Vec::new();
        for document in documents {
            let (inexact, mut warnings) = precision(&document.rounded);
            let mut judged = contract.judge(&document.value, &self.context());
            if inexact.is_empty() && judged.is_accepted() {
                // A name that is there twice is JSON, too: the text stays.
                let is_same = document.all_edits().iter().all(|edit| edit.kind == EditKind::DuplicateKey);
                warnings.extend(std::mem::take(&mut judged.warnings).into_iter().map(Warning::from));
                return Some(Ok((!is_same).then_some(Found { value: document.value, warnings })));
            }
            if level != Level::Strict && inexact.is_empty() {
                convertible.push((document.value, warnings));
            }
            first.get_or_insert(inexact.into_iter().chain(judged.violations).collect());
        }
        // A document that satisfies the contract as it is comes before one that does after a change.
        for (value, mut warnings) in convertible {
            let settled = contract.settle(value, &self.context());
            if settled.judgement.is_accepted() {
                warnings.extend(settled.warnings());
                return Some(Ok(Some(Found { value: settled.value, warnings })));
            }
        }
        first.map(Err)
    }

    /// Returns the value of a turn without calls whose text does not hold as it is.
    pub(super) fn found(&self, turn: &Turn) -> Option<Found> {
        let mut answers = turn.answers();
        let (Some(answer), None, true) = (answers.next(), answers.next(), turn.calls.is_empty()) else {
            return None;
        };
        self.text(turn.text(answer), Level::Clean)?.ok()?
    }

    fn violations(&self, call: &Called) -> Vec<Violation> {
        if self.others.contains(&call.name) {
            return Vec::new();
        }
        let Some((_, tool)) = self.tools.iter().find(|(name, _)| *name == call.name) else {
            let names: Vec<_> = self.tools.iter().map(|(name, _)| name.as_str()).collect();
            let unknown = Violation::new(JsonPath::root(), "tool", Stage::Schema);
            return vec![
                unknown
                    .with_expected(format!("one of the tools {}", names.join(", ")))
                    .with_found(&call.name),
            ];
        };
        let (value, rounded) = match call.arguments.trim() {
            "" => (json!({}), Vec::new()),
            text => match read(text, Level::Strict).map(|reading| reading.into_candidates().swap_remove(0)) {
                Ok(document) => (document.value, document.rounded),
                Err(error) => {
                    let broken = Violation::new(JsonPath::root(), "json", Stage::Read);
                    return vec![broken.with_expected("a JSON object").with_found(error.to_string())];
                }
            },
        };
        let judged = tool.plan().contract().judge(&value, &self.context()).violations;
        precision(&rounded).0.into_iter().chain(judged).collect()
    }

    /// Returns the problem of a turn that does not hold after these calls.
    pub(super) fn problem(&self, wrong: Wrong, made: &[Made]) -> Problem {
        let (attempts, calls) = (answers(made), made.len());
        let message = match wrong.violations.first() {
            Some(violation) if self.format.is_some() => {
                format!("no answer was valid after {attempts} attempts: {violation}")
            }
            Some(violation) => format!("no call of a tool was valid after {attempts} attempts: {violation}"),
            None => format!("no tool was called in {attempts} attempts"),
        };
        Problem { violations: wrong.violations, calls, ..Problem::new(Kind::Unmendable, message) }
    }
}

/// Returns the instruction for a document beside tools.
pub(super) fn instruction(schema: &Value) -> String {
    format!(
        "If you call no tool, answer with a JSON document that satisfies this JSON Schema, and with nothing else:\n{schema}"
    )
}

/// Returns the beginning of a text of the model, as it is repeated to it.
fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHOWN)).unwrap_or(text)
}
