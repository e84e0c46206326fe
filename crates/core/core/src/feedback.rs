use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::group::{Group, grouped};
use crate::{Message, Role, Violation};

/// The message that asks a model to correct its answer: its role, its place and its text.
///
/// The constructors are the messages of the applications in this workspace; change the fields for your own.
///
/// ```
/// use formwork_core::{Feedback, Role, Template};
///
/// let mut feedback = Feedback::standard();
/// feedback.template.after = "\n\nAntworte nur mit dem korrigierten JSON.".to_owned();
/// assert_eq!((feedback.role, feedback.keep_previous), (Role::User, true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[must_use]
pub struct Feedback {
    /// The role of the message.
    pub role: Role,
    /// Whether the rejected answer precedes the message, as the assistant's. Only the last answer is ever included, cut at
    /// [`MAX_PREVIOUS`] bytes.
    pub keep_previous: bool,
    /// Whether the text is appended to the last message instead of being a message of its own.
    pub fold: bool,
    /// The text.
    pub template: Template,
    /// The text after an answer whose values reached an added bound; see [`Feedback::with_unending`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unending: Option<Template>,
}

/// The text of a [`Feedback`], with placeholders.
///
/// In `before` and `after`, `{code}` is replaced by `INVALID_JSON` or `SCHEMA_VALIDATION_FAILED`. `line` is written once
/// for each violation, or for equal violations at neighbouring places (`$.items[0-299].price`); in it, `{path}` is replaced by [`Violation::place`], `{detail}` by [`Violation::detail`] and
/// `{message}` by the violation's `Display` text.
///
/// ```
/// use formwork_core::{Feedback, Template};
///
/// let template =
///     Template::new("These fields are wrong:\n", "{path}: {detail}", "\nReturn the whole object again.");
/// let feedback = Feedback::new(template);
/// # let _ = feedback;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Template {
    /// The text before the list of violations.
    pub before: String,
    /// The text for each violation.
    pub line: String,
    /// The text after the list.
    pub after: String,
    /// Whether equal violations at neighbouring places of a list share a line.
    #[serde(default)]
    pub is_grouped: bool,
}

impl Template {
    /// A text with these parts: the text before the violations, the line of each violation, and the text after them. Equal
    /// violations at neighbouring places share a line.
    pub fn new(before: impl Into<String>, line: impl Into<String>, after: impl Into<String>) -> Self {
        Self { before: before.into(), line: line.into(), after: after.into(), is_grouped: true }
    }

    /// Writes a line for each violation (default: equal violations at neighbouring places share a line).
    #[must_use]
    pub fn with_line_for_each(self) -> Self {
        Self { is_grouped: false, ..self }
    }

    /// Returns the text for these violations. At most [`MAX_BYTES`] bytes of lines are written, then the number of violations
    /// that no line covers, so that its length does not depend on how wrong the answer was, nor on how long the names and
    /// values in it are.
    pub fn render(&self, violations: &[Violation]) -> String {
        self.render_with(violations, 0)
    }

    /// Renders violations of which `left_out` further ones were not kept.
    fn render_with(&self, violations: &[Violation], left_out: usize) -> String {
        let code = match violations {
            // An answer that was cut off is not valid JSON either.
            [only] if matches!(only.rule.as_str(), "json" | "truncated") => "INVALID_JSON",
            _ => "SCHEMA_VALIDATION_FAILED",
        };
        let groups = if self.is_grouped {
            grouped(violations)
        } else {
            violations.iter().map(Group::single).collect()
        };
        let usual = (groups.len() * (self.line.len() + USUAL_LINE)).min(MAX_BYTES);
        let mut out = String::with_capacity(self.before.len() + usual + self.after.len());
        let code = |sign: &str| (sign == "code").then_some(code.into());
        fill(&mut out, &self.before, code);
        let start = out.len();
        let mut written = 0;
        for group in groups {
            let end = out.len();
            if written > 0 {
                out.push('\n');
            }
            fill(&mut out, &self.line, |sign| match sign {
                "path" => Some(group.place().into()),
                "detail" => Some(group.violation.detail().into()),
                "message" => Some(group.violation.message_at(&group.place()).into()),
                _ => None,
            });
            if out.len() - start > MAX_BYTES && written > 0 {
                out.truncate(end);
                break;
            }
            out.truncate(out.floor_char_boundary(start + MAX_BYTES));
            written += group.count;
        }
        let further = violations.len() + left_out - written;
        if further > 0 {
            out.push_str(&format!("\n(and {further} more)"));
        }
        fill(&mut out, &self.after, code);
        out
    }
}

/// The maximum size of a feedback's list of violations, in bytes.
pub const MAX_BYTES: usize = 8192;

/// The maximum size of a previous answer that is sent to the model again, in bytes.
pub const MAX_PREVIOUS: usize = 16 * 1024;

/// The usual length of a violation's message, in bytes.
const USUAL_LINE: usize = 128;

/// Replaces placeholders in one pass: a value that contains a placeholder is inserted verbatim.
fn fill<'v>(out: &mut String, text: &str, value: impl Fn(&str) -> Option<Cow<'v, str>>) {
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        out.push_str(before);
        let sign = from.split_once('}');
        match sign.and_then(|(sign, after)| Some((value(sign)?, after))) {
            Some((value, after)) => {
                out.push_str(&value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = from;
            }
        }
    }
    out.push_str(rest);
}

impl Feedback {
    /// A user's message of this text, below the answer that it is about.
    pub const fn new(template: Template) -> Self {
        Self { role: Role::User, keep_previous: true, fold: false, template, unending: None }
    }

    /// The feedback of the ready policy: the answer, then a user message with its violations.
    pub fn standard() -> Self {
        Self::new(Template::new(
            "That answer does not fit. What is wrong with it:\n",
            "- {message}",
            "\n\nAnswer again with the corrected JSON document only.",
        ))
        .with_unending(Template::new(
            "Your last answer was cut off, because these values did not end:\n",
            "- {path}",
            "\n\nAnswer again, and give in these places only what the task says.",
        ))
    }

    crate::setters! {
        /// Sets the text after an answer whose values reached a bound that was added because the target is
        /// known to run away, [`Tighten::Bounded`](crate::Tighten::Bounded) (default of
        /// [`Feedback::standard`]: a list of the paths; of [`Feedback::new`]: the template of all other answers). The answer
        /// itself is left out, because a model that repeats itself goes on doing so when it reads its own text.
        pub fn with_unending(Some(unending): Template);
        /// Sets the role of the message (default: [`Role::User`]).
        pub const fn with_role(role: Role);
    }

    /// Appends the text to the last message, without the answer that it is about (default: a message of its own below the
    /// answer). The prompt stays one message.
    pub const fn folded(mut self) -> Self {
        self.keep_previous = false;
        self.fold = true;
        self
    }

    /// Appends the feedback to the dialogue; `left_out` is the number of further violations that were not kept.
    pub(crate) fn apply(
        &self,
        messages: &mut Vec<Arc<Message>>,
        previous: &str,
        violations: &[Violation],
        left_out: usize,
    ) {
        if self.keep_previous && !previous.is_empty() {
            messages.push(Arc::new(Message::assistant(cut_bytes(previous, MAX_PREVIOUS))));
        }
        self.say(messages, &self.template.render_with(violations, left_out));
    }

    /// Appends the text of [`with_unending`](Self::with_unending) to the dialogue.
    pub(crate) fn apply_unending(&self, messages: &mut Vec<Arc<Message>>, violations: &[Violation]) {
        self.say(messages, &self.unending.as_ref().unwrap_or(&self.template).render(violations));
    }

    fn say(&self, messages: &mut Vec<Arc<Message>>, text: &str) {
        match messages.last_mut().filter(|_| self.fold) {
            Some(last) => Arc::make_mut(last).push_text(text),
            None => messages.push(Arc::new(Message::new(self.role, text))),
        }
    }
}

/// Cuts a text after at most `max` bytes, at a character boundary, and marks the cut with an ellipsis.
pub(crate) fn cut_bytes(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JsonPath, Stage};

    fn violation(found: &str) -> Violation {
        let path = JsonPath::root().key("a");
        Violation::new(path, "type", Stage::Schema).with_expected("string").with_found(found)
    }

    #[test]
    fn the_last_answer_stands_before_a_message_and_not_before_a_folded_text() {
        let apply = |feedback: Feedback| {
            let mut messages = vec![Arc::new(Message::user("task"))];
            feedback.apply(&mut messages, "{}", &[violation("number")], 0);
            messages
        };
        let template = Template::new("Errors: ", "{path}: {detail}", ".");
        let text = "Errors: $.a: expected string, found number.";
        for role in [Role::User, Role::System] {
            let expected = [Message::user("task"), Message::assistant("{}"), Message::new(role, text)];
            assert_eq!(apply(Feedback::new(template.clone()).with_role(role)), expected.map(Arc::new));
        }
        let folded = Message::user(format!("task{text}"));
        assert_eq!(apply(Feedback::new(template).folded()), [Arc::new(folded)]);
    }

    #[test]
    fn what_is_no_json_and_what_was_cut_off_have_the_same_code() {
        let code = |rule: &str| {
            let template = Template::new("{code}", "", "");
            template.render(&[Violation::new(JsonPath::root(), rule, Stage::Read)])
        };
        assert_eq!(
            [code("json"), code("truncated"), code("type")],
            ["INVALID_JSON", "INVALID_JSON", "SCHEMA_VALIDATION_FAILED"]
        );
    }

    #[test]
    fn a_found_value_is_data_and_not_a_sign() {
        let text = Feedback::standard().template.render(&[violation("{path} {code} {")]);
        assert!(text.contains("found {path} {code} {"), "{text}");
    }

    #[test]
    fn the_list_is_capped_in_lines_and_bytes() {
        let many: Vec<_> = (0..100).map(|_| violation(&"x".repeat(500))).collect();
        let text = Feedback::standard().template.render(&many);
        assert!(text.len() < MAX_BYTES + 400, "{}", text.len());
        // Every violation is in a line or counted.
        let listed = text.lines().filter(|line| line.starts_with("- ")).count();
        assert!(listed < 100 && text.contains(&format!("\n(and {} more)", 100 - listed)), "{text}");
    }

    #[test]
    fn three_hundred_equal_errors_are_one_line_unless_each_has_its_own() {
        let at = |n| Violation { path: format!("$.items[{n}].price").parse().unwrap(), ..violation("text") };
        let many: Vec<_> = (0..300).map(at).collect();
        let template = Template::new("", "- {path}: {detail}", "");
        let line = "- $.items[0-299].price: expected string, found text";
        assert_eq!(template.render(&many), line);
        let each = template.with_line_for_each().render(&many);
        let listed = each.lines().filter(|line| line.starts_with("- ")).count();
        assert!(listed > 100 && each.ends_with(&format!("\n(and {} more)", 300 - listed)), "{each}");
        // Violations that a report leaves out are counted, too, whether or not all others are in lines.
        let template = Template::new("", "- {path}: {detail}", "");
        assert_eq!(template.render_with(&many, 88), format!("{line}\n(and 88 more)"));
        let each = template.with_line_for_each().render_with(&many, 88);
        assert!(each.ends_with(&format!("\n(and {} more)", 388 - listed)), "{each}");
    }
}
