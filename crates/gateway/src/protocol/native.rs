//! The model's turns in a target's own protocol, where a request with tools is passed on as it is: which tools are called, in
//! responses that stay as they are.

use formwork::providers::Protocol;
use serde_json::{Value, json};

/// A turn of the model, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) calls: Vec<Called>,
    /// The texts of the answers, with the number of each.
    pub(crate) texts: Vec<(u64, String)>,
    /// Whether the token limit ended it, or the model refused: its calls, if any, are not meant to be carried out.
    pub(crate) is_unfinished: bool,
    /// The numbers of single answers that are unfinished.
    unfinished: Vec<u64>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    /// The position that pieces of a stream have in common.
    key: (u64, u64),
    pub(crate) name: String,
    /// A JSON document, if the model wrote one.
    pub(crate) arguments: String,
}

impl Turn {
    /// Returns the turn of a response that cannot be read.
    pub(crate) fn unread() -> Self {
        Self { is_unfinished: true, ..Self::default() }
    }

    /// Returns the turn of one answer: its text, and the names and arguments of its calls.
    pub(crate) fn of<'c>(
        text: &str,
        calls: impl Iterator<Item = (&'c str, &'c str)>,
        is_whole: bool,
    ) -> Self {
        let called = |(nth, (name, arguments)): (usize, (&str, &str))| Called {
            key: (0, nth as u64),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        Self {
            calls: calls.enumerate().map(called).collect(),
            texts: vec![(0, text.to_owned())],
            is_unfinished: !is_whole,
            unfinished: Vec::new(),
        }
    }

    /// Returns whether there is text in it.
    pub(crate) fn has_text(&self) -> bool {
        self.texts.iter().any(|(_, text)| !text.is_empty())
    }

    /// Returns the numbers of the answers that are finished.
    pub(crate) fn answers(&self) -> impl Iterator<Item = u64> {
        let mut all: Vec<u64> = self.texts.iter().map(|(answer, _)| *answer).collect();
        all.extend(self.calls.iter().map(|call| call.key.0));
        if all.is_empty() && self.unfinished.is_empty() {
            all.push(0);
        }
        all.sort_unstable();
        all.dedup();
        all.retain(|answer| !self.unfinished.contains(answer));
        all.into_iter()
    }

    /// Returns the text of an answer.
    pub(crate) fn text(&self, answer: u64) -> &str {
        self.texts.iter().find(|(number, _)| *number == answer).map_or("", |(_, text)| text)
    }

    /// Reads a whole response.
    pub(crate) fn whole(protocol: Protocol, body: &Value) -> Self {
        let mut turn = Self::default();
        match protocol {
            Protocol::OpenAi => {
                for choice in items(&body["choices"]) {
                    turn.openai(choice, &choice["message"]);
                }
            }
            Protocol::Responses => turn.responses(body),
            Protocol::Anthropic => {
                for (nth, block) in items(&body["content"]).enumerate() {
                    turn.block(nth as u64, block);
                }
                turn.stopped(&body["stop_reason"]);
            }
            _ => turn.ollama(body),
        }
        turn
    }

    /// Reads the next event or line of a stream.
    pub(crate) fn event(&mut self, protocol: Protocol, data: &Value) {
        match protocol {
            Protocol::OpenAi => {
                for choice in items(&data["choices"]) {
                    self.openai(choice, &choice["delta"]);
                }
            }
            Protocol::Responses => self.responses_event(data),
            Protocol::Anthropic => self.anthropic_event(data),
            _ => self.ollama(data),
        }
    }

    fn called(&mut self, key: (u64, u64)) -> &mut Called {
        let nth = self.calls.iter().position(|call| call.key == key).unwrap_or_else(|| {
            self.calls.push(Called { key, name: String::new(), arguments: String::new() });
            self.calls.len() - 1
        });
        &mut self.calls[nth]
    }

    fn openai(&mut self, choice: &Value, message: &Value) {
        let number = choice["index"].as_u64().unwrap_or(0);
        for (nth, call) in items(&message["tool_calls"]).enumerate() {
            if call["type"] == "custom" {
                continue;
            }
            let key = (number, call["index"].as_u64().unwrap_or(nth as u64));
            let called = self.called(key);
            called.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
            called.arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
        self.push_text(number, &message["content"]);
        let is_refused = message["refusal"].as_str().is_some_and(|reason| !reason.is_empty());
        if is_refused || matches!(choice["finish_reason"].as_str(), Some("length" | "content_filter")) {
            self.unfinished.push(number);
        }
    }

    fn responses(&mut self, body: &Value) {
        for (nth, item) in items(&body["output"]).enumerate() {
            self.item(nth as u64, item);
        }
        self.is_unfinished |= body["status"] == "incomplete";
    }

    fn item(&mut self, nth: u64, item: &Value) {
        if item["type"] == "function_call" {
            let called = self.called((0, nth));
            called.name = item["name"].as_str().unwrap_or_default().to_owned();
            called.arguments = item["arguments"].as_str().unwrap_or_default().to_owned();
        }
        let mut text = String::new();
        for part in items(&item["content"]).filter(|_| item["type"] == "message") {
            text.push_str(part["text"].as_str().unwrap_or_default());
            self.is_unfinished |= part["type"] == "refusal";
        }
        // The item repeats the text of the events before it.
        if !text.is_empty() && !self.text(0).ends_with(&text) {
            self.push_text(0, &text.into());
        }
    }

    fn responses_event(&mut self, data: &Value) {
        let nth = data["output_index"].as_u64().unwrap_or(0);
        match data["type"].as_str().unwrap_or_default() {
            "response.output_item.added" | "response.output_item.done" => self.item(nth, &data["item"]),
            "response.function_call_arguments.delta" => {
                let called = self.called((0, nth));
                called.arguments.push_str(data["delta"].as_str().unwrap_or_default());
            }
            "response.output_text.delta" => self.push_text(0, &data["delta"]),
            "response.refusal.delta" | "response.incomplete" => self.is_unfinished = true,
            _ => {}
        }
    }

    fn block(&mut self, nth: u64, block: &Value) {
        if block["type"] == "tool_use" {
            let called = self.called((0, nth));
            called.name = block["name"].as_str().unwrap_or_default().to_owned();
            if items_of(&block["input"]) > 0 {
                called.arguments = block["input"].to_string();
            }
        }
        self.push_text(0, &block["text"]);
    }

    fn anthropic_event(&mut self, data: &Value) {
        let nth = data["index"].as_u64().unwrap_or(0);
        match data["type"].as_str().unwrap_or_default() {
            "content_block_start" => self.block(nth, &data["content_block"]),
            "content_block_delta" => {
                if let Some(piece) = data["delta"]["partial_json"].as_str() {
                    self.called((0, nth)).arguments.push_str(piece);
                }
                self.push_text(0, &data["delta"]["text"]);
            }
            "message_delta" => self.stopped(&data["delta"]["stop_reason"]),
            _ => {}
        }
    }

    fn stopped(&mut self, reason: &Value) {
        self.is_unfinished |= matches!(reason.as_str(), Some("max_tokens" | "refusal"));
    }

    fn ollama(&mut self, data: &Value) {
        for call in items(&data["message"]["tool_calls"]) {
            let key = (0, self.calls.len() as u64);
            let called = self.called(key);
            called.name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
            called.arguments = match &call["function"]["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                arguments => arguments.to_string(),
            };
        }
        self.push_text(0, &data["message"]["content"]);
        self.push_text(0, &data["response"]);
        self.is_unfinished |= data["done_reason"] == "length";
    }

    fn push_text(&mut self, answer: u64, text: &Value) {
        let Some(text) = text.as_str() else { return };
        match self.texts.iter_mut().find(|(number, _)| *number == answer) {
            Some((_, known)) => known.push_str(text),
            None => self.texts.push((answer, text.to_owned())),
        }
    }
}

impl Called {
    /// Returns the number of the answer that it is a part of.
    pub(crate) const fn answer(&self) -> u64 {
        self.key.0
    }
}

/// Replaces the text of an answer in a whole response.
pub(crate) fn set_text(protocol: Protocol, body: &mut Value, answer: u64, text: String) {
    let texts = |parts: &mut Value, kind: &str, text: String| {
        let Some(parts) = parts.as_array_mut() else { return };
        if let Some(first) = parts.iter().position(|part| part["type"] == kind) {
            parts[first]["text"] = text.into();
            let mut nth = 0;
            parts.retain(|part| {
                nth += 1;
                nth <= first + 1 || part["type"] != kind
            });
        }
    };
    match protocol {
        Protocol::OpenAi => {
            let choices = body["choices"].as_array_mut().into_iter().flatten();
            for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == answer) {
                choice["message"]["content"] = text.clone().into();
            }
        }
        Protocol::Responses => {
            let mut items = body["output"].as_array_mut().into_iter().flatten();
            if let Some(item) = items.find(|item| item["type"] == "message") {
                texts(&mut item["content"], "output_text", text);
            }
        }
        Protocol::Anthropic => texts(&mut body["content"], "text", text),
        _ if body["response"].is_string() => body["response"] = text.into(),
        _ => body["message"]["content"] = text.into(),
    }
}

/// Returns the part of a request that says what has to be checked: its tools with schemas, its format and its limits. Members that the
/// service cannot act on, such as documents, are left out; targets of the same protocol take them.
pub(crate) fn reduced(body: &Value) -> Value {
    const KEPT: [&str; 13] = [
        "format",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "model",
        "n",
        "output_config",
        "output_format",
        "response_format",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
    ];

    let mut kept: serde_json::Map<String, Value> =
        KEPT.iter().filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone()))).collect();
    let has_schema = |tool: &&Value| {
        matches!(tool["type"].as_str(), None | Some("function" | "custom"))
            && (tool["function"].is_object()
                || tool["parameters"].is_object()
                || tool["input_schema"].is_object())
    };
    let tools: Vec<Value> = items(&body["tools"]).filter(has_schema).cloned().collect();
    if tools.len() < items(&body["tools"]).count() {
        kept.remove("tool_choice");
    }
    kept.insert("tools".to_owned(), tools.into());
    let message = json!([{"role": "user", "content": "."}]);
    for (name, value) in [("messages", message), ("input", ".".into()), ("prompt", ".".into())] {
        if body.get(name).is_some() {
            kept.insert(name.to_owned(), value);
        }
    }
    kept.into()
}

/// Returns the names of all tools of a request.
pub(crate) fn tool_names(body: &Value) -> impl Iterator<Item = &str> {
    items(&body["tools"]).filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()))
}

/// Adds a message of the user to a request.
pub(crate) fn add_message(protocol: Protocol, body: &mut Value, text: &str) {
    if let (Protocol::Ollama, Some(prompt)) = (protocol, body["prompt"].as_str()) {
        body["prompt"] = format!("{prompt}\n\n{text}").into();
        return;
    }
    let message = json!({"role": "user", "content": text});
    let name = if protocol == Protocol::Responses { "input" } else { "messages" };
    match &mut body[name] {
        Value::Array(messages) => messages.push(message),
        input => {
            let first = json!({"role": "user", "content": input.take()});
            *input = json!([first, message]);
        }
    }
}

/// A body in pieces, split where its events or lines end. The events are the bytes of the body, all of them.
#[derive(Debug, Default)]
pub(crate) struct Events {
    bytes: Vec<u8>,
    /// The number of bytes that were examined.
    seen: usize,
}

impl Events {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next event that is whole, with its end.
    pub(crate) fn next(&mut self, protocol: Protocol) -> Option<Vec<u8>> {
        let ends: &[&[u8]] =
            if protocol == Protocol::Ollama { &[b"\n"] } else { &[b"\n\n", b"\r\n\r\n", b"\r\r"] };
        while let Some(at) =
            self.bytes.get(self.seen..)?.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
        {
            self.seen += at + 1;
            if ends.iter().any(|end| self.bytes[..self.seen].ends_with(end)) {
                let rest = self.bytes.split_off(self.seen);
                self.seen = 0;
                return Some(std::mem::replace(&mut self.bytes, rest));
            }
        }
        self.seen = self.bytes.len();
        None
    }

    /// Takes the next piece of a stream of Chat Completions. Returns the events that are whole, without the one that has the usage
    /// alone.
    pub(crate) fn without_usage(&mut self, piece: &[u8]) -> Vec<u8> {
        self.push(piece);
        let mut kept = Vec::with_capacity(piece.len());
        while let Some(event) = self.next(Protocol::OpenAi) {
            if !is_usage(&event) {
                kept.extend(event);
            }
        }
        kept
    }

    /// Returns whether there are no bytes of an event that is not whole.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes after the last complete event.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns whether an event of Chat Completions has the usage and nothing else.
pub(crate) fn is_usage(event: &[u8]) -> bool {
    const MARK: &[u8] = b"\"usage\"";

    // Most events have no usage, and are not parsed.
    event.windows(MARK.len()).any(|part| part == MARK) && {
        let document = document(event);
        document["usage"].is_object() && document["choices"].as_array().is_some_and(Vec::is_empty)
    }
}

/// Returns the document of an event; `null` for comments, ends of streams and other text.
pub(crate) fn document(event: &[u8]) -> Value {
    let text = String::from_utf8_lossy(event);
    let lines = text.lines().filter_map(|line| match line.strip_prefix("data:") {
        Some(data) => Some(data.trim_start()),
        None => line.starts_with('{').then_some(line),
    });
    serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap_or(Value::Null)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn items_of(object: &Value) -> usize {
    object.as_object().map_or(0, serde_json::Map::len)
}
