use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Clock, Error, Input, Message, Outcome, Part, Trust};
use formwork_extract::{CancellationToken, Extractor, block_on};
use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use serde_json::Value;

use crate::calls::{self, Done};
use crate::debug::Debug;
use crate::result::History;
use crate::turn::{Turn, Wanted};
use crate::{AnswerContract, ChatCode, ChatResult, ChatTool, StructuredAnswerLite, ToolUse};

/// Returns answers of language models that satisfy a contract: [`StructuredAnswerLite`] 1.0, or [`StructuredAnswer`] 1.1
/// with a payload of your own type.
///
/// Every answer passes four layers: a governing system prompt, JSON mode if the server has it, a strict parser, and a
/// validator. An invalid answer is corrected by a system message, once by default; after that, the result is a structured
/// failure. The client never panics.
///
/// One client serves any number of questions and tasks; clones share everything.
///
/// ```
/// use formwork_chat::JsonModeChatClient;
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// let good = r#"{"task": {"type": "qa", "user_intent": "learn"}, "answer": {"text": "A text format."},
///   "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "m"}}"#;
/// let model = Arc::new(Scripted::new(["```json\n{}\n```", good]));
/// let client = JsonModeChatClient::builder().with_target(Arc::clone(&model)).build()?;
/// let reply = client.ask_blocking("What is JSON?").into_result()?;
/// assert_eq!((reply.answer.answer.text.as_str(), reply.attempts), ("A text format.", 2));
/// let correction = model.calls()[1].messages.last().unwrap().text();
/// assert!(correction.starts_with("INVALID_JSON: "), "{correction}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`StructuredAnswer`]: crate::StructuredAnswer
pub struct JsonModeChatClient<A = StructuredAnswerLite> {
    shared: Arc<Shared<A>>,
}

pub(crate) struct Shared<A> {
    pub(crate) asker: Asker<A>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) debug: Option<Arc<Debug>>,
}

/// The extractor of a client; the one for tools also accepts tool calls as answers.
pub(crate) enum Asker<A> {
    Plain(Extractor<A>),
    Tools(Extractor<Turn<A>>, Toolbox),
}

pub(crate) struct Toolbox {
    pub(crate) tools: Arc<[ChatTool]>,
    /// The maximum number of tool calls for one question.
    pub(crate) most: u32,
}

impl<A: AnswerContract> JsonModeChatClient<A> {
    pub(crate) fn new(shared: Shared<A>) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Asks one question, without a history.
    pub async fn ask(&self, question: impl Into<String> + Send) -> ChatResult<A> {
        let messages = vec![Message::user(question)];
        self.answer(messages, &CancellationToken::new()).await
    }

    /// Asks one question and blocks the thread. Inside an async runtime the result is a failure with
    /// [`ChatCode::Configuration`].
    pub fn ask_blocking(&self, question: impl Into<String> + Send) -> ChatResult<A> {
        match block_on(self.ask(question)) {
            Ok(result) => result,
            Err(error) => ChatResult::Failed(History::default().error(&error)),
        }
    }

    /// Answers the last message of a dialogue. System messages at its start are added below the governing one.
    pub async fn answer(&self, messages: Vec<Message>, cancel: &CancellationToken) -> ChatResult<A> {
        let messages = messages.into_iter().map(Arc::new).collect();
        match &self.shared.asker {
            Asker::Plain(extractor) => {
                let history = History::default();
                match extractor.extraction(dialogue(messages)).with_cancel(cancel.clone()).run().await {
                    Ok(Outcome { value, trust, calls, .. }) => {
                        History { calls, ..history }.reply((value, trust))
                    }
                    Err(error) => ChatResult::Failed(history.error(&error)),
                }
            }
            Asker::Tools(extractor, toolbox) => self.with_tools(extractor, toolbox, messages, cancel).await,
        }
    }

    /// Runs the loop of tool calls until the model answers, within the time limit.
    async fn with_tools(
        &self,
        extractor: &Extractor<Turn<A>>,
        toolbox: &Toolbox,
        messages: Vec<Arc<Message>>,
        cancel: &CancellationToken,
    ) -> ChatResult<A> {
        let mut history = History::default();
        let steps = self.steps(extractor, toolbox, messages, cancel, &mut history);
        let end = match self.shared.timeout {
            None => steps.await,
            Some(timeout) => {
                let clock = self.shared.clock.as_ref();
                let late = clock.sleep_until(clock.now().after(timeout));
                match select(steps.boxed(), late).await {
                    Either::Left((end, _)) => end,
                    Either::Right(_) => {
                        let words = format!("no answer within {timeout:?}, tools included");
                        Err(Stop::Code(ChatCode::Timeout, words))
                    }
                }
            }
        };
        match end {
            Ok(answer) => history.reply(answer),
            Err(Stop::Error(error)) => ChatResult::Failed(history.error(&error)),
            Err(Stop::Code(code, message)) => {
                self.note(&format!("{code}: {message}"));
                ChatResult::Failed(history.failure(code, message, Vec::new()))
            }
        }
    }

    async fn steps(
        &self,
        extractor: &Extractor<Turn<A>>,
        toolbox: &Toolbox,
        mut messages: Vec<Arc<Message>>,
        cancel: &CancellationToken,
        history: &mut History,
    ) -> Result<(A, Trust), Stop> {
        loop {
            let extraction = extractor.extraction(dialogue(messages.clone())).with_cancel(cancel.clone());
            let Outcome { value, trust, calls, .. } = extraction.run().await.map_err(Stop::Error)?;
            history.calls.extend(calls);
            let calls = match value {
                Turn::Answer(answer) => return Ok((answer, trust)),
                Turn::Tools(calls) => calls,
            };
            if let Some(message) = looped(&calls, &history.tools, toolbox.most) {
                return Err(Stop::Code(ChatCode::ToolLoop, message));
            }
            let (before, mut done) = (history.tools.len(), Vec::new());
            for call in calls {
                let Wanted { name, arguments } = &call;
                if is_reached(toolbox.most, history.tools.len()) {
                    let most = toolbox.most;
                    let warning = format!(
                        "the limit of {most} tool calls is reached: `{name}` was not called with {}",
                        cut(&arguments.to_string(), 100)
                    );
                    self.note(&warning);
                    history.warnings.push(warning);
                    let result = format!("not called, because the limit of {most} tool calls is reached");
                    done.push(Done { call, result });
                    continue;
                }
                let result = self.call_tool(toolbox, &call, cancel).await?;
                history.tools.push(ToolUse {
                    name: name.clone(),
                    arguments: arguments.clone(),
                    result: result.clone(),
                });
                let result = cut(&formwork_core::spaced(&result), MAX_RESULT);
                done.push(Done { call, result });
            }
            let original = history.calls.last().and_then(|call| call.original.as_deref());
            messages.extend(calls::messages(before, done, original).map(Arc::new));
        }
    }

    /// Calls a tool, whose arguments are valid.
    async fn call_tool(
        &self,
        toolbox: &Toolbox,
        call: &Wanted,
        cancel: &CancellationToken,
    ) -> Result<Value, Stop> {
        let Wanted { name, arguments } = call;
        let Some(tool) = toolbox.tools.iter().find(|tool| tool.name() == name) else {
            return Err(Stop::Code(ChatCode::ToolFailed, format!("there is no tool `{name}`")));
        };
        self.note(&format!("calling the tool {name}"));
        match select(tool.call(arguments.clone()).boxed(), cancel.cancelled().boxed()).await {
            Either::Left((Ok(result), _)) => Ok(result),
            Either::Left((Err(error), _)) => {
                let message = format!("the tool `{name}` failed: {}", cut(&error, 300));
                Err(Stop::Code(ChatCode::ToolFailed, message))
            }
            Either::Right(_) => {
                Err(Stop::Code(ChatCode::Cancelled, format!("cancelled in the tool `{name}`")))
            }
        }
    }

    fn note(&self, line: &str) {
        if let Some(debug) = &self.shared.debug {
            debug.line(line);
        }
    }
}

/// The maximum size of a tool's result in the prompt, in bytes.
const MAX_RESULT: usize = 16 * 1024;

/// The end of a dialogue with tools.
enum Stop {
    Error(Error),
    Code(ChatCode, String),
}

/// Returns the reason to stop calling tools: the maximum is reached, or the model repeats the calls of its last turn.
fn looped(calls: &[Wanted], before: &[ToolUse], most: u32) -> Option<String> {
    let names = calls.iter().map(|call| format!("`{}`", call.name)).collect::<Vec<_>>().join(", ");
    let last = before.len().checked_sub(calls.len()).and_then(|from| before.get(from..));
    let is_same =
        |(last, call): (&ToolUse, &Wanted)| last.name == call.name && last.arguments == call.arguments;
    if last.is_some_and(|last| last.iter().zip(calls).all(is_same)) {
        return Some(format!("the model called the tool {names} twice with the same arguments"));
    }
    let called = before.len();
    is_reached(most, called)
        .then(|| format!("the model called {called} tools and would call {names} instead of answering"))
}

fn is_reached(most: u32, called: usize) -> bool {
    u32::try_from(called).unwrap_or(u32::MAX) >= most
}

/// Returns the first `most` bytes of a text, without a partial character.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

impl<A> Clone for JsonModeChatClient<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A> fmt::Debug for JsonModeChatClient<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonModeChatClient").field("timeout", &self.shared.timeout).finish_non_exhaustive()
    }
}

/// Returns the input of a dialogue. Its source is the whole dialogue, because the last question may refer to earlier
/// messages.
fn dialogue(messages: Vec<Arc<Message>>) -> Input {
    let texts = messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::Text { text } | Part::ToolResult { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let source = texts.collect::<Vec<_>>().join("\n");
    Input { messages, ..Input::from(source) }
}
