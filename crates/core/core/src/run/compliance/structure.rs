//! Finds keywords of the sent schema that a value certainly violates.
//!
//! This is not a validator: it checks only the structural keywords that every constrained decoder enforces, and ignores
//! doubtful cases. A false alarm would disable a server's best output mode.

use formwork_json::{JsonPath, Segment, is_same, unescape};
use serde_json::Value;

use crate::keywords::{Role, fits_type, item, keyword, target};
use crate::{Lift, LiftOp, Loss, LossKind, Lowered};

/// A keyword of the sent schema that is violated, with the path in the answer before lifting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrokenKeyword {
    pub(super) path: JsonPath,
    pub(super) keyword: &'static str,
}

const STRUCTURAL: [&str; 9] =
    ["type", "enum", "const", "required", "additionalProperties", "minItems", "maxItems", "anyOf", "oneOf"];

/// Returns whether a violation of this rule can be caused by a structural keyword.
pub(super) fn is_structural(rule: &str) -> bool {
    STRUCTURAL.contains(&rule)
}

/// Returns the first keyword that is certainly violated. `value` is the answer before it is lifted.
pub(super) fn broken_keyword(value: &Value, lowered: &Lowered) -> Option<BrokenKeyword> {
    let schema = lowered.schema.as_ref()?;
    let losses = lowered.losses.iter().filter(|loss| loss.kind != LossKind::Tightened).collect();
    let stays = |op: &LiftOp| {
        matches!(op.lift, Lift::DropNull(_) | Lift::DropAbsent { .. } | Lift::Reorder(_) | Lift::ParseJson)
    };
    let same_places = lowered.lift.iter().all(stays);
    let mut search = Search { schema, losses, same_places, at: Vec::new(), steps: MAX_STEPS };
    search.search(value, schema, 0)
}

/// The maximum number of references and variants that are followed without a step into the value.
const MAX_JUMPS: usize = 32;

/// The maximum number of nodes that are examined; further ones count as valid.
const MAX_STEPS: usize = 10_000;

struct Search<'a> {
    schema: &'a Value,
    /// The losses after which a keyword can be violated although the schema is enforced.
    losses: Vec<&'a Loss>,
    /// Whether lifting moves no values, so that the pointers of losses can be compared with paths.
    same_places: bool,
    at: Vec<At<'a>>,
    steps: usize,
}

#[derive(Debug, Clone, Copy)]
enum At<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Search<'a> {
    fn search(&mut self, value: &'a Value, node: &'a Value, jumps: usize) -> Option<BrokenKeyword> {
        if self.steps == 0 || jumps > MAX_JUMPS || !node.is_object() {
            return None;
        }
        self.steps -= 1;
        let referred = target(self.schema, node);
        if let Some(broken) = referred.and_then(|target| self.search(value, target, jumps + 1)) {
            return Some(broken);
        }
        for part in node["allOf"].as_array().into_iter().flatten() {
            if let Some(broken) = self.search(value, part, jumps + 1) {
                return Some(broken);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(variants) = node[keyword].as_array().filter(|variants| !variants.is_empty()) else {
                continue;
            };
            if variants.iter().all(|variant| self.search(value, variant, jumps + 1).is_some())
                && let Some(broken) = self.broken_keyword(keyword, None)
            {
                return Some(broken);
            }
        }
        self.scalar(value, node).or_else(|| match value {
            Value::Object(_) => self.object(value, node),
            Value::Array(items) => self.array(items, node),
            _ => None,
        })
    }

    fn scalar(&self, value: &Value, node: &Value) -> Option<BrokenKeyword> {
        let broken = [
            ("type", fits_type(node, value) == Some(false)),
            ("const", node.get("const").is_some_and(|constant| !is_same(constant, value))),
            ("enum", node["enum"].as_array().is_some_and(|list| !list.iter().any(|one| is_same(one, value)))),
        ];
        broken
            .into_iter()
            .filter(|(_, is_broken)| *is_broken)
            .find_map(|(keyword, _)| self.broken_keyword(keyword, None))
    }

    fn object(&mut self, value: &'a Value, node: &'a Value) -> Option<BrokenKeyword> {
        let members = value.as_object()?;
        let mut required = node["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = required.find(|name| !members.contains_key(*name));
        if let Some(broken) = missing.and_then(|name| self.broken_keyword("required", Some(name))) {
            return Some(broken);
        }
        // Patterns are not evaluated, so the names that they cover are unknown.
        let rest = node.get("additionalProperties").filter(|_| node.get("patternProperties").is_none());
        for (name, member) in members {
            let inner = match (node["properties"].get(name), rest) {
                (Some(property), _) => property,
                (None, Some(Value::Bool(false))) => {
                    match self.broken_keyword("additionalProperties", Some(name)) {
                        Some(broken) => return Some(broken),
                        None => continue,
                    }
                }
                (None, Some(rest)) => rest,
                (None, None) => continue,
            };
            if let Some(broken) = self.below(At::Name(name), member, inner) {
                return Some(broken);
            }
        }
        None
    }

    fn array(&mut self, items: &'a [Value], node: &'a Value) -> Option<BrokenKeyword> {
        let count = items.len() as u64;
        let broken = [
            ("minItems", node["minItems"].as_u64().is_some_and(|min| count < min)),
            ("maxItems", node["maxItems"].as_u64().is_some_and(|max| count > max)),
        ];
        for (keyword, is_broken) in broken {
            if is_broken && let Some(broken) = self.broken_keyword(keyword, None) {
                return Some(broken);
            }
        }
        for (index, value) in items.iter().enumerate() {
            let Some(inner) = item(node, index) else { break };
            if let Some(broken) = self.below(At::Index(index), value, inner) {
                return Some(broken);
            }
        }
        None
    }

    fn below(&mut self, step: At<'a>, value: &'a Value, node: &'a Value) -> Option<BrokenKeyword> {
        self.at.push(step);
        let broken = self.search(value, node, 0);
        self.at.pop();
        broken
    }

    /// Returns the violated keyword, unless the lowering report lists it as not enforced. `name` is the member in question.
    fn broken_keyword(&self, keyword: &'static str, name: Option<&str>) -> Option<BrokenKeyword> {
        if self.losses.iter().any(|loss| self.excuses(loss, keyword)) {
            return None;
        }
        let steps = self.at.iter().map(|step| match step {
            At::Name(name) => Segment::Key((*name).to_owned()),
            At::Index(index) => Segment::Index(*index),
        });
        let path = steps.chain(name.map(|name| Segment::Key(name.to_owned()))).collect();
        Some(BrokenKeyword { path, keyword })
    }

    /// Returns whether a loss can explain the violation of a keyword at the current path.
    fn excuses(&self, loss: &Loss, keyword: &str) -> bool {
        let reach = match loss.keyword.as_str() {
            // A value that may fit several variants still has to fit one of them.
            "oneOf" if loss.kind == LossKind::Loosened && keyword != "oneOf" => return false,
            own if own == keyword && !INSIDE.contains(&own) => Reach::Here,
            other if leaves_others(other) => return false,
            _ => Reach::Below,
        };
        !self.same_places || may_govern(&loss.pointer, &self.at, reach)
    }
}

/// The keywords that describe members or variants.
const INSIDE: [&str; 3] = ["additionalProperties", "anyOf", "oneOf"];

/// Returns whether all other keywords are still enforced if this one is lost. They may not be if it describes members,
/// items or variants, is a reference, or is unknown.
fn leaves_others(name: &str) -> bool {
    let unsure = [Role::Structure, Role::Reference, Role::Definitions, Role::Identity, Role::OpenApi];
    keyword(name).is_some_and(|known| !unsure.contains(&known.role))
}

/// The part of the document that a loss affects: its place, or everything below it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Here,
    Below,
}

/// Returns whether a pointer into the original schema can describe the value at a path; `true` in doubtful cases.
fn may_govern(pointer: &str, path: &[At<'_>], reach: Reach) -> bool {
    let mut words = pointer.split('/').skip(1);
    let mut path = path.iter();
    while let Some(word) = words.next() {
        let fits = match word {
            "properties" => {
                let name = words.next().map(unescape);
                matches!((path.next(), name), (Some(At::Name(at)), Some(name)) if **at == *name)
            }
            "prefixItems" => {
                let index: Option<usize> = words.next().and_then(|index| index.parse().ok());
                matches!((path.next(), index), (Some(At::Index(at)), Some(index)) if *at == index)
            }
            "anyOf" | "oneOf" | "allOf" => {
                words.next();
                true
            }
            // In old drafts `items` may be a list, and references lead anywhere.
            _ => return true,
        };
        if !fits {
            return false;
        }
    }
    reach == Reach::Below || path.next().is_none()
}
