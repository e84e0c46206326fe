use std::sync::Arc;

use formwork_core::{Message, Part, Role};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, context};

use crate::LocalError;
use crate::error::one_line;
use crate::model::Gguf;
use crate::vocabulary::{Vocabulary, Written};

/// The template of ChatML models whose files have no template of their own.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Private-use characters that replace the text of messages while the template runs.
const OPEN: char = '\u{F5B00}';
const CLOSE: char = '\u{F5B01}';

/// A model's chat template, which writes a dialogue as the tokens that the model was trained on.
///
/// The template runs over placeholders, and the text of messages is inserted after control tokens were recognised. A
/// message that contains `<|im_end|>` therefore holds ten characters of text, and no user can end a turn.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    begin: String,
    end: String,
}

impl Template {
    /// Reads the file's own template, or uses ChatML if the file has none and the model has ChatML's tokens.
    pub(crate) fn read(gguf: &Gguf, vocabulary: &Vocabulary) -> Result<Self, LocalError> {
        let source = match gguf.text("tokenizer.chat_template") {
            Some(source) => source,
            None if vocabulary.has_special("<|im_start|>") => CHATML,
            None => {
                let reason = "the file has no chat template and the model no ChatML tokens: take an instruct or chat model";
                return Err(gguf.error(reason));
            }
        };
        let text =
            |id: Option<u32>| id.and_then(|id| vocabulary.special_text(id)).unwrap_or_default().to_owned();
        let begin = text(gguf.number("tokenizer.ggml.bos_token_id").and_then(|id| u32::try_from(id).ok()));
        let end = text(vocabulary.ends().first().copied());
        Self::new(source, begin, end).map_err(|error| gguf.error(format!("the chat template: {error}")))
    }

    fn new(source: &str, begin: String, end: String) -> Result<Self, String> {
        let mut environment = Environment::new();
        // Hugging Face's tokenizers configure Jinja this way.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| describe(&error))?);
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        // The file is untrusted, so its template must terminate.
        environment.set_fuel(Some(1_000_000));
        environment.add_function("raise_exception", |text: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, text))
        });
        environment.set_unknown_method_callback(python_method);
        environment.add_template_owned("chat", source.to_owned()).map_err(|error| describe(&error))?;
        Ok(Self { environment, begin, end })
    }

    /// Returns whether a system message may follow the first user message.
    pub(crate) fn takes_late_system(&self) -> bool {
        let roles = [Role::System, Role::User, Role::Assistant, Role::System, Role::User];
        self.render(&roles.map(|role| Arc::new(Message::new(role, "x")))).is_ok()
    }

    /// Returns the tokens of a dialogue, up to the start of the model's answer.
    ///
    /// # Errors
    /// A message with the reason why the messages cannot be written.
    pub(crate) fn encode(
        &self,
        messages: &[Arc<Message>],
        vocabulary: &Vocabulary,
    ) -> Result<Vec<u32>, String> {
        let contents = messages.iter().map(|message| content(message)).collect::<Result<Vec<_>, _>>()?;
        let mut tokens = Vec::new();
        // The text of the template and of messages is tokenized together, because tokens may span both.
        let mut plain = String::new();
        for piece in self.render(messages)? {
            match piece {
                Piece::Content(number) => plain.push_str(&contents[number]),
                Piece::Template(text) => {
                    for written in vocabulary.split_special(&text) {
                        match written {
                            Written::Plain(text) => plain.push_str(text),
                            Written::Special(id) => {
                                tokens.extend(vocabulary.encode(&plain)?);
                                plain.clear();
                                tokens.push(id);
                            }
                        }
                    }
                }
            }
        }
        tokens.extend(vocabulary.encode(&plain)?);
        if let Some(begin) = vocabulary.begin()
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }

    /// Returns the dialogue as text of the template and numbers of messages.
    fn render(&self, messages: &[Arc<Message>]) -> Result<Vec<Piece>, String> {
        let stand_ins: Vec<_> = (0..)
            .zip(messages)
            .map(|(number, message): (usize, _)| {
                context! { role => role(message.role), content => format!("{OPEN}{number}{CLOSE}") }
            })
            .collect();
        let values = context! {
            messages => stand_ins,
            add_generation_prompt => true,
            bos_token => self.begin.as_str(),
            eos_token => self.end.as_str(),
        };
        let template = self.environment.get_template("chat").map_err(|error| describe(&error))?;
        let text = template.render(values).map_err(|error| describe(&error))?;
        let pieces = pieces(&text);
        match (0..messages.len()).find(|number| !pieces.contains(&Piece::Content(*number))) {
            Some(lost) => {
                let role = role(messages[lost].role);
                Err(format!("the model's chat template leaves out message {} ({role})", lost + 1))
            }
            None => Ok(pieces),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Template(String),
    /// The text of the message with this number.
    Content(usize),
}

/// Splits rendered text at the placeholders.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (number, part) in text.split(OPEN).enumerate() {
        let stand_in = part.split_once(CLOSE).filter(|_| number > 0);
        let stand_in = stand_in.and_then(|(digits, rest)| Some((digits.parse().ok()?, rest)));
        let rest = match stand_in {
            Some((content, rest)) => {
                pieces.push(Piece::Content(content));
                rest
            }
            None => part,
        };
        if !rest.is_empty() {
            pieces.push(Piece::Template(rest.to_owned()));
        }
    }
    pieces
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Returns the text of a message without other parts.
fn content(message: &Message) -> Result<String, String> {
    if message.role == Role::Tool {
        return Err("a local model takes no tool messages".to_owned());
    }
    let unfit = message.parts.iter().find_map(|part| match part {
        // Models expect dialogues without the reasoning of earlier turns.
        Part::Text { .. } | Part::Reasoning { .. } | Part::Original(_) => None,
        Part::Image { .. } => Some("image"),
        Part::ToolCall { .. } => Some("tool call"),
        Part::ToolResult { .. } => Some("tool result"),
        _ => Some("part of an unknown kind"),
    });
    match unfit {
        Some(kind) => Err(format!("a local model takes text only, and a message holds a {kind}")),
        None => Ok(message.text()),
    }
}

/// Implements the methods of Python's strings and dicts that published chat templates use.
fn python_method(_: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let unknown = || Error::new(ErrorKind::UnknownMethod, format!("{} has no method {method}", value.kind()));
    if let (None, "items" | "keys" | "values" | "get") = (value.as_str(), method) {
        return match (method, args) {
            ("get", [key, rest @ ..]) => {
                let found = value.get_item(key)?;
                Ok(if found.is_undefined() { rest.first().cloned().unwrap_or_default() } else { found })
            }
            ("keys", []) => Ok(value.try_iter()?.collect()),
            (_, []) => {
                let entries = value.try_iter()?.map(|key| {
                    let found = value.get_item(&key)?;
                    Ok(if method == "items" { Value::from(vec![key, found]) } else { found })
                });
                Ok(Value::from(entries.collect::<Result<Vec<_>, Error>>()?))
            }
            _ => Err(unknown()),
        };
    }
    let text = value.as_str().ok_or_else(unknown)?;
    let arguments: Vec<&str> = args.iter().filter_map(|value| value.as_str()).collect();
    match (method, arguments.as_slice()) {
        ("strip", []) => Ok(text.trim().into()),
        ("lstrip", []) => Ok(text.trim_start().into()),
        ("rstrip", []) => Ok(text.trim_end().into()),
        ("strip", [set]) => Ok(text.trim_matches(|c| set.contains(c)).into()),
        ("lstrip", [set]) => Ok(text.trim_start_matches(|c| set.contains(c)).into()),
        ("rstrip", [set]) => Ok(text.trim_end_matches(|c| set.contains(c)).into()),
        ("startswith", [prefix]) => Ok(text.starts_with(prefix).into()),
        ("endswith", [suffix]) => Ok(text.ends_with(suffix).into()),
        ("split", [at]) if !at.is_empty() => Ok(text.split(at).collect()),
        ("replace", [from, to]) => Ok(text.replace(from, to).into()),
        ("upper", []) => Ok(text.to_uppercase().into()),
        ("lower", []) => Ok(text.to_lowercase().into()),
        _ => Err(unknown()),
    }
}

/// Returns the message of a template's own error, or of an error in the template, on one line.
fn describe(error: &Error) -> String {
    match error.detail() {
        Some(detail) if error.kind() == ErrorKind::InvalidOperation => {
            format!("the model's chat template refuses: {}", one_line(detail))
        }
        _ => format!("the model's chat template cannot be used: {}", one_line(&error.to_string())),
    }
}
