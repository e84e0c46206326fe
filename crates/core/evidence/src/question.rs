//! Questions about single values of an answer: for quotes, and for a choice between candidates.

use formwork_json::{JsonPath, Segment};
use serde_json::{Map, Value, json};

use crate::stated::is_stated;
use crate::{Evidence, Merged, Status};

/// The maximum number of values of a question, and the maximum length of a shown value in characters.
const MAX_ASKED: usize = 50;
const MAX_SHOWN: usize = 300;

/// The choice of none of the candidates.
const NONE: &str = "none of these";

/// A question about some values of an answer, for one more call: each value is a member of the object that is requested.
///
/// ```
/// use formwork_evidence::{Index, Question};
/// use serde_json::json;
///
/// let text = "Maria moved to Lisbon last spring.";
/// let mut value = json!({"name": "Maria", "season": "spring of 2024"});
/// let mut evidence = Index::new(text).evidence(&value, None);
/// let question = Question::for_quotes(&value, &evidence).ok_or("every value was found")?;
/// assert_eq!(question.schema()["required"], json!(["season"]));
/// question.quote(&json!({"season": "last spring"}), &Index::new(text), &mut evidence);
/// assert_eq!((evidence[1].spans[0].start, evidence[1].spans[0].end), (22, 33));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    instructions: String,
    schema: Value,
    /// The name, the path and the candidates of each value.
    asked: Vec<(String, JsonPath, Candidates)>,
}

/// The candidates for a value, each with its text in the question.
type Candidates = Vec<(String, Value)>;

impl Question {
    /// Returns the question for verbatim quotes of the values that were not found, the first 50 of them; `None` if there are none.
    /// Booleans are not asked for.
    pub fn for_quotes(value: &Value, evidence: &[Evidence]) -> Option<Self> {
        let mut question = Self::new(
            "Values were read from the text, and the text does not contain them as they are. For each, quote the shortest passage of the \
             text that states it, character by character. Answer null if the text does not state it.",
        );
        let missing = evidence.iter().filter(|it| it.status == Status::NotFound);
        for it in missing {
            let Some(value) =
                it.path.get(value).filter(|value| is_stated(Some(value)) && !value.is_boolean())
            else {
                continue;
            };
            let schema =
                json!({"type": ["string", "null"], "description": format!("The quote for {}", shown(value))});
            question.add(&it.path, schema, Vec::new());
        }
        question.closed()
    }

    /// Returns the question for the values on which answers differ, with the candidates and "none of these", the first 50 of them;
    /// `None` if there are none. Candidates that are longer than 300 characters are not asked for.
    ///
    /// ```
    /// use formwork_evidence::{Question, merge};
    /// use serde_json::json;
    ///
    /// let mut merged = merge(&[&json!({"total": 12}), &json!({"total": 21})], None);
    /// let question = Question::for_disputed(&merged).ok_or("no value is disputed")?;
    /// assert_eq!(question.schema()["properties"]["total"]["enum"], json!(["12", "21", "none of these"]));
    /// assert_eq!(question.decide(&json!({"total": "21"}), &mut merged), 1);
    /// assert_eq!((merged.value, merged.disputed), (json!({"total": 21}), vec![]));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn for_disputed(merged: &Merged) -> Option<Self> {
        let mut question = Self::new(
            "Several readers of the text gave different values. For each, choose the one that the text states. \"null\" means that the text \
             states no value.",
        );
        for disputed in &merged.disputed {
            let mut candidates = Candidates::new();
            for candidate in &disputed.candidates {
                let label = label(candidate);
                if candidates.iter().all(|(known, _)| *known != label) {
                    candidates.push((label, candidate.clone()));
                }
            }
            // Whether an item belongs to its list is no choice between values.
            let chosen = disputed.path.get(&merged.value).unwrap_or(&Value::Null);
            let is_item = matches!(disputed.path.segments().last(), Some(Segment::Index(_)))
                && disputed.candidates.contains(&Value::Null)
                || disputed.candidates.first() != Some(chosen);
            let is_short = candidates.iter().all(|(label, _)| label.chars().count() <= MAX_SHOWN);
            let labels = candidates.iter().map(|(label, _)| label.as_str()).chain([NONE]);
            let mut schema = json!({"type": "string", "enum": labels.collect::<Vec<_>>()});
            // The path of an item says nothing about the text.
            let path = disputed.path.segments();
            let item = path.iter().rposition(|step| matches!(step, Segment::Index(_)));
            let item =
                item.and_then(|at| path.get(..=at)?.iter().cloned().collect::<JsonPath>().get(&merged.value));
            if let Some(item) = item.filter(|item| item.is_object()) {
                schema["description"] = format!("Of the item that was read as {}", shown(item)).into();
            }
            if is_short && candidates.len() > 1 && !is_item {
                question.add(&disputed.path, schema, candidates);
            }
        }
        question.closed()
    }

    /// Returns the instructions for the model.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// Returns the JSON Schema of the answer.
    pub const fn schema(&self) -> &Value {
        &self.schema
    }

    /// Adds the places of quotes to evidence: a value whose quote stands in the input is [`Status::Quoted`]. Returns how many are.
    pub fn quote(&self, answer: &Value, index: &crate::Index<'_>, evidence: &mut [Evidence]) -> usize {
        let mut count = 0;
        for (name, path, _) in &self.asked {
            let Some(quote) = answer.get(name).filter(|quote| quote.is_string()) else { continue };
            let found = index.evidence(quote, None).into_iter().find(|it| it.status != Status::NotFound);
            let leaf = evidence.iter_mut().find(|it| it.path == *path && it.status == Status::NotFound);
            if let (Some(found), Some(leaf)) = (found, leaf) {
                (leaf.status, leaf.spans) = (Status::Quoted, found.spans);
                count += 1;
            }
        }
        count
    }

    /// Takes over the chosen candidates into a merged value, which are disputed no more. Returns how many were chosen.
    pub fn decide(&self, answer: &Value, merged: &mut Merged) -> usize {
        let mut count = 0;
        for (name, path, candidates) in &self.asked {
            let chosen = answer.get(name).and_then(Value::as_str);
            let Some((_, chosen)) = candidates.iter().find(|(label, _)| Some(label.as_str()) == chosen)
            else {
                continue;
            };
            // The merged value is a candidate as it was before the choices inside of it.
            let is_kept = candidates.first().is_some_and(|(_, merged)| merged == chosen);
            let is_set = match path.get_mut(&mut merged.value) {
                Some(place) => {
                    if !is_kept {
                        *place = chosen.clone();
                    }
                    true
                }
                // No value won, and has no member.
                None => set(&mut merged.value, path, chosen),
            };
            if is_set {
                merged.disputed.retain(|it| it.path != *path && (is_kept || !it.path.is_within(path)));
                count += 1;
            }
        }
        count
    }

    fn new(instructions: &str) -> Self {
        Self { instructions: instructions.to_owned(), schema: Value::Null, asked: Vec::new() }
    }

    fn add(&mut self, path: &JsonPath, schema: Value, candidates: Candidates) {
        if self.asked.len() >= MAX_ASKED {
            return;
        }
        let name = path.to_string();
        let name = match name.strip_prefix("$.") {
            Some(name) => name.to_owned(),
            None => name,
        };
        if let Value::Null = self.schema {
            self.schema =
                json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
        }
        if let Some(members) = self.schema.get_mut("properties").and_then(Value::as_object_mut) {
            members.insert(name.clone(), schema);
        }
        if let Some(required) = self.schema.get_mut("required").and_then(Value::as_array_mut) {
            required.push(name.as_str().into());
        }
        self.asked.push((name, path.clone(), candidates));
    }

    fn closed(self) -> Option<Self> {
        (!self.asked.is_empty()).then_some(self)
    }
}

/// Inserts a member into the object around it; returns whether there is one.
fn set(document: &mut Value, path: &JsonPath, value: &Value) -> bool {
    let (Some(parent), Some(Segment::Key(name))) = (path.parent(), path.last()) else {
        return false;
    };
    let object: Option<&mut Map<String, Value>> = parent.get_mut(document).and_then(Value::as_object_mut);
    object.map(|object| object.insert(name.clone(), value.clone())).is_some()
}

/// Returns a candidate as a text: a text as it is, and other values as JSON.
fn label(candidate: &Value) -> String {
    candidate.as_str().map_or_else(|| candidate.to_string(), str::to_owned)
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(MAX_SHOWN).collect()
}
