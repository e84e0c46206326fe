//! Lifting loses nothing: every leaf of an answer is in the lifted value, or a violation names it.

use formwork_core::{Lift, LowerRequest, Lowered, Violation, lift};
use formwork_testkit::any_schema;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use crate::laws::all;
use crate::model::sample;

/// An answer with leaves that occur nowhere else.
struct Marked<'l> {
    rng: TestRng,
    /// The names that the operations of lifting know, and others.
    names: Vec<&'l str>,
    /// The leaves, each with the name of the member that holds it or one of the lists around it.
    leaves: Vec<(String, String)>,
}

impl<'l> Marked<'l> {
    fn new(lowered: &'l Lowered, rng: TestRng) -> Self {
        let mut names = vec!["key", "value", "note", "_0", "_9"];
        for op in &lowered.lift {
            match &op.lift {
                Lift::Unwrap(name) | Lift::Spread(name) => names.push(name),
                Lift::Rename(renamed) => {
                    names.extend(renamed.iter().flat_map(|(sent, original)| [sent.as_str(), original]));
                }
                Lift::Tuple { items, rest } => names.extend(items.iter().chain(rest).map(String::as_str)),
                Lift::Unlist(more)
                | Lift::Choice { names: more, .. }
                | Lift::Reorder(more)
                | Lift::DropNull(more) => {
                    names.extend(more.iter().map(String::as_str));
                }
                _ => {}
            }
        }
        Self { rng, names, leaves: Vec::new() }
    }

    fn draws(&mut self, one_in: u32) -> bool {
        self.rng.next_u32() % one_in == 0
    }

    fn leaf(&mut self, name: &str) -> Value {
        let text = format!("leaf {:03}", self.leaves.len());
        self.leaves.push((text.clone(), name.to_owned()));
        json!(text)
    }

    /// Replaces leaves, adds members and repeats items, at random.
    fn mark(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    self.mark(member, name);
                }
                if self.draws(3) {
                    let name = self.names[self.rng.next_u32() as usize % self.names.len()];
                    if !members.contains_key(name) {
                        let leaf = self.leaf(name);
                        let is_list = self.draws(3);
                        members.insert(name.to_owned(), if is_list { json!([leaf]) } else { leaf });
                    }
                }
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.mark(item, name));
                if self.draws(4) {
                    let leaf = self.leaf(name);
                    items.push(leaf);
                }
            }
            leaf if self.draws(2) => *leaf = self.leaf(name),
            _ => {}
        }
    }
}

/// Returns whether a violation names a member, by its path or by what was found.
fn names(violation: &Violation, name: &str) -> bool {
    violation.found.contains(name) || violation.path.to_string().contains(name)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_leaf_of_an_answer_is_lifted_or_named_by_a_violation(schema in any_schema(), seed in any::<[u8; 32]>()) {
        for dialect in all() {
            let Ok(lowered) = dialect.lower(&LowerRequest::new(&schema)) else { continue };
            let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
            let sent = lowered.schema.as_ref().unwrap();
            let Ok(mut answer) = sample(sent, |below| rng.next_u32() as usize % below) else { continue };
            let mut marked = Marked::new(&lowered, rng);
            marked.mark(&mut answer, "");
            let (lifted, violations) = lift(answer.clone(), &lowered);
            let text = lifted.to_string();
            for (leaf, name) in marked.leaves {
                prop_assert!(
                    text.contains(&leaf) || violations.iter().any(|violation| names(violation, &name)),
                    "{leaf} of {name} in {answer} by {}: {text} {violations:?}", dialect.name(),
                );
            }
        }
    }

    /// Otherwise lifting would take a value for an absent member.
    #[test]
    fn no_marker_of_an_absent_member_is_a_value_of_the_member(schema in any_schema()) {
        for dialect in all() {
            let Ok(lowered) = dialect.lower(&LowerRequest::new(&schema)) else { continue };
            let sent = lowered.schema.as_ref().unwrap();
            for op in &lowered.lift {
                let (names, marker) = match &op.lift {
                    Lift::DropNull(names) => (names, &Value::Null),
                    Lift::DropAbsent { names, marker } => (names, marker),
                    _ => continue,
                };
                for name in names {
                    let member = &sent.pointer(&op.at).unwrap()["properties"][name];
                    let takes = takers(sent, member, marker);
                    prop_assert_eq!(takes, 1, "{} of {} in {} for {}", marker, name, sent, schema);
                }
            }
        }
    }
}

/// Returns the number of alternatives of a schema that take a value.
fn takers(sent: &Value, part: &Value, value: &Value) -> usize {
    if let Some(variants) = part["anyOf"].as_array() {
        return variants.iter().map(|variant| takers(sent, variant, value)).sum();
    }
    let definitions = sent.get("$defs").cloned().unwrap_or_else(|| json!({}));
    let document = json!({"$defs": definitions, "allOf": [part]});
    usize::from(formwork_schema::compile(&document).unwrap().is_valid(value))
}
