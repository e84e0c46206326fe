use formwork_core::keywords::part_of;
use formwork_core::{JsonPath, Level, Outline, Reader, Rule};
use serde_json::Value;

use super::utf8::Utf8;

/// Narrows the schema by rules as soon as their inputs are written: the rest of the document gets the tighter schema.
#[derive(Debug)]
pub(crate) struct Narrowing {
    schema: Value,
    waiting: Vec<Waiting>,
    text: Utf8,
    reader: Reader,
    outline: Outline,
}

/// A rule, and its inputs that are not written yet.
#[derive(Debug)]
struct Waiting {
    rule: Rule,
    inputs: Vec<JsonPath>,
}

impl Narrowing {
    /// Returns the narrowing for a document of this schema; `None` if no rule ever narrows.
    pub(crate) fn new(schema: &Value, rules: &[Rule]) -> Option<Self> {
        let waiting: Vec<Waiting> = rules
            .iter()
            .map(|rule| Waiting { rule: rule.clone(), inputs: rule.inputs() })
            .filter(|waiting| !waiting.inputs.is_empty())
            .collect();
        let (text, reader, outline) = (Utf8::default(), Reader::new(Level::Clean), Outline::any());
        (!waiting.is_empty()).then(|| Self { schema: schema.clone(), waiting, text, reader, outline })
    }

    /// Returns the number of rules that have not narrowed yet.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Reads bytes of the document.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = &mut self.waiting;
        self.reader.push(&self.outline, &self.text.push(bytes), |ended| {
            let path = ended.path();
            waiting.iter_mut().for_each(|waiting| waiting.inputs.retain(|input| *input != path));
        });
    }

    /// Returns the schema with the ranges of all rules whose inputs were completed since the last call; `None` without
    /// such rules. Each rule narrows once.
    pub(crate) fn due(&mut self) -> Option<&Value> {
        if self.waiting.iter().all(|waiting| !waiting.inputs.is_empty()) {
            return None;
        }
        let known = self.reader.snapshot()?;
        let mut narrowed = false;
        self.waiting.retain(|waiting| {
            if !waiting.inputs.is_empty() {
                return true;
            }
            if let Some((path, narrowing)) = waiting.rule.narrow(&known)
                && let Some(part) = part_of(&mut self.schema, path.segments())
            {
                let wide = part.clone();
                if Rule::tighten(part, &narrowing) {
                    narrowed = true;
                } else {
                    // The answer is judged by the rule.
                    *part = wide;
                }
            }
            false
        });
        narrowed.then_some(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use formwork_core::Term;
    use serde_json::json;

    fn sum() -> Rule {
        let term = |path: &str, weight| Term { path: path.parse().unwrap(), weight };
        Rule::WeightedSum {
            target: "$.score".parse().unwrap(),
            terms: vec![term("$.parts.a", 2.0), term("$.parts.b", 2.5)],
            tolerance: 1.0,
        }
    }

    #[test]
    fn a_rule_narrows_once_its_inputs_are_written() {
        let schema = json!({
            "type": "object",
            "properties": {"parts": {"type": "object"}, "score": {"$ref": "#/$defs/n"}, "other": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"type": "integer", "minimum": 0, "maximum": 32}},
        });
        let mut narrowing = Narrowing::new(&schema, &[sum()]).unwrap();
        for piece in [r#"{"parts": {"a": 1"#, r#"2, "b": 3"#] {
            narrowing.push(piece.as_bytes());
            assert!(narrowing.due().is_none(), "{piece}: the last number may go on");
        }
        narrowing.push(b"}");
        let narrowed = narrowing.due().unwrap();
        assert_eq!(
            narrowed["properties"]["score"],
            json!({"type": "integer", "minimum": 31, "maximum": 32}),
            "24 + 7.5 within 1, and what the schema says itself"
        );
        assert_eq!(narrowed["properties"]["other"], json!({"$ref": "#/$defs/n"}));
        narrowing.push(br#", "score""#);
        assert!(narrowing.due().is_none());
    }

    /// The answer is written all the same, and the rule judges it.
    #[test]
    fn a_range_that_leaves_no_value_narrows_nothing() {
        for (bound, is_narrowed) in [("maximum", true), ("exclusiveMaximum", false)] {
            let schema = json!({"properties": {"parts": {}, "score": {"type": "integer", (bound): 31}}});
            let mut narrowing = Narrowing::new(&schema, &[sum()]).unwrap();
            narrowing.push(br#"{"parts": {"a": 12, "b": 3}"#);
            assert_eq!(narrowing.due().is_some(), is_narrowed, "{bound}");
        }
    }

    #[test]
    fn what_has_no_one_schema_is_left_alone() {
        for score in
            [json!({"anyOf": [{"type": "integer"}]}), json!({"$ref": "#/properties/score"}), json!(true)]
        {
            let mut narrowing = Narrowing::new(&json!({"properties": {"score": score}}), &[sum()]).unwrap();
            narrowing.push(br#"{"parts": {"a": 1, "b": 3}"#);
            assert!(narrowing.due().is_none(), "{score}");
        }
        assert!(Narrowing::new(&json!({}), &[Rule::grounded(JsonPath::root().into())]).is_none());
    }
}
