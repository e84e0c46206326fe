//! The answers of the simulated providers, right and wrong ones.

use serde_json::{Map, Value, json};

use super::invoice;
use crate::mixed::{STEP, mixed};

/// The provider's reaction to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// The correct answer.
    Right,
    /// The correct answer with text before and after it.
    Around,
    /// An answer without JSON.
    Prose,
    /// The total is not the sum of the lines.
    Sum,
    /// A line in the middle is missing.
    Missing,
    /// A value of a line has the wrong type.
    Type,
    /// The token limit ends the answer in the middle.
    Short,
    /// Status 503.
    Fail,
    /// No response.
    Stall,
    /// Half of the correct response, and then a closed connection.
    Cut,
}

/// The number of each fault per 1,000 calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    /// Wrong answers of all kinds together.
    pub(crate) wrong: u64,
    pub(crate) fail: u64,
    pub(crate) stall: u64,
    pub(crate) cut: u64,
}

impl Faults {
    /// The faults of the simulated providers: 30 % wrong answers, 2 % failed calls.
    pub(crate) const USUAL: Self = Self { wrong: 300, fail: 10, stall: 3, cut: 7 };

    /// Returns the reaction to the nth call of a row. It is the same in every run.
    pub(crate) fn act(&self, row: u64, nth: usize) -> Act {
        let z = mixed((row << 8 | nth as u64).wrapping_mul(STEP));
        let mut left = z % 1000;
        let wrong = [Act::Prose, Act::Sum, Act::Missing, Act::Type, Act::Short][(z / 1000 % 5) as usize];
        for (share, act) in
            [(self.wrong, wrong), (self.fail, Act::Fail), (self.stall, Act::Stall), (self.cut, Act::Cut)]
        {
            if left < share {
                return act;
            }
            left -= share;
        }
        if (z / 1000).is_multiple_of(8) { Act::Around } else { Act::Right }
    }
}

/// The text of an answer, and the reason why it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) finish: &'static str,
    /// Whether its document, or its part of the document, is the correct one.
    pub(crate) is_right: bool,
}

impl Answer {
    /// Returns the answer to the nth call of a row, whose request has this body of the Chat Completions API.
    pub(crate) fn of(act: Act, row: u64, nth: usize, request: &Value) -> Self {
        let mut document = invoice::right(row);
        let middle = document["lines"].as_array().map_or(0, Vec::len) / 2;
        match act {
            Act::Sum => {
                document["total"] = json!(document["total"].as_u64().unwrap_or_default() + 1 + nth as u64)
            }
            Act::Missing => drop(document["lines"].as_array_mut().map(|lines| lines.remove(middle))),
            Act::Type => document["lines"][middle]["amount"] = json!(format!("amount {nth}")),
            _ => {}
        }
        let mut right = invoice::right(row);
        if let Some(paths) = patched(request) {
            (document, right) = (parts(&document, &paths), parts(&right, &paths));
        }
        let is_right =
            document == right && !matches!(act, Act::Prose | Act::Short | Act::Fail | Act::Stall | Act::Cut);
        let mut text = document.to_string();
        match act {
            Act::Around => {
                text =
                    format!("Here is document {nth} as JSON:\n```json\n{text}\n```\nI hope {{this}} helps.")
            }
            Act::Prose => text = format!("I am not sure about R-{row}, in any of its {nth} parts."),
            Act::Short => text.truncate(text.floor_char_boundary(text.len() / 2)),
            _ => {}
        }
        Self { text, finish: if act == Act::Short { "length" } else { "stop" }, is_right }
    }

    /// Returns the response of the Chat Completions API.
    pub(crate) fn response(&self) -> Value {
        json!({
            "choices": [{
                "index": 0, "message": {"role": "assistant", "content": self.text}, "finish_reason": self.finish,
            }],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        })
    }
}

/// Returns an object with the values at these paths.
fn parts(document: &Value, paths: &[String]) -> Value {
    let value = |path: &String| invoice::at(document, path).cloned().unwrap_or_default();
    Value::Object(paths.iter().map(|path| (path.clone(), value(path))).collect::<Map<_, _>>())
}

/// Returns the paths of the values that a request asks for alone; `None` for the whole document.
fn patched(request: &Value) -> Option<Vec<String>> {
    let last = request["messages"].as_array()?.last()?;
    let text = last["content"].as_str().or_else(|| last["content"][0]["text"].as_str())?;
    let list = text.strip_prefix("Your answer is right except for some values.")?;
    let path = |line: &str| Some(line.strip_prefix("- \"")?.split_once('"')?.0.to_owned());
    Some(list.lines().filter_map(path).collect())
}
