//! Patches: the paths that a patch can correct, its schema and its message.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use formwork_json::{JsonPath, PathPattern};
use serde_json::{Map, Value, json};

use super::Run;
use super::places::{Place, Places, label, others};
use crate::feedback::cut_bytes;
use crate::plan::Mode;
use crate::{LowerRequest, Lowered, MAX_PATH, Plan, Report, Rule, Target, Violation, spaced};

impl Run {
    /// Returns the paths that a patch could correct; none if a violation can only be corrected by a whole answer.
    pub(super) fn patchable(&self, plan: &Plan) -> Vec<JsonPath> {
        let Some(draft) = self.drafts.current() else { return Vec::new() };
        if !draft.rest.is_empty() {
            let is_last = self.drafts.is_rejected(draft);
            return if is_last && plan.policy.resumes() { draft.rest.clone() } else { Vec::new() };
        }
        wrong_values(plan, &draft.value, &self.wrong(plan)).unwrap_or_default()
    }

    /// Returns the violations of the draft, those that the ledger leaves out included.
    fn wrong(&self, plan: &Plan) -> Cow<'_, [Violation]> {
        let found = self.drafts.violations(&self.ledger);
        let Some(draft) = self.drafts.current().filter(|_| found.len() >= Report::CAP) else {
            return found.into();
        };
        let mut all = Report::uncapped();
        plan.contract.structure().validate(&draft.value, &self.context(), &mut all);
        let known: HashSet<_> = found.iter().map(|found| (&found.path, &found.rule)).collect();
        let more = all.into_violations().into_iter();
        let more = more.filter(|violation| !known.contains(&(&violation.path, &violation.rule)));
        found.iter().cloned().chain(more).collect()
    }

    /// Returns the lowered schema of a patch.
    ///
    /// # Errors
    /// The reason why these values cannot be requested alone: no value satisfies the rules, or the dialect cannot express
    /// the schema.
    pub(super) fn patch(
        &self,
        plan: &Plan,
        target: &Target,
        mode: &Mode,
        paths: &[JsonPath],
    ) -> Result<Lowered, String> {
        let schema = self.patch_schema(plan, paths)?;
        let max_tokens = self.request.max_tokens.or(target.capabilities.default_max_tokens);
        let is_rest = self.drafts.current().is_some_and(|draft| !draft.rest.is_empty());
        // The rest of an answer that the token limit cut off is no sign of a model that runs away.
        let tighten = if is_rest { target.tighten } else { self.position.tighten(plan) };
        let request = LowerRequest::new(&schema)
            .with_tighten(tighten)
            .with_max_tokens(max_tokens)
            .with_at_least(self.position.at_least());
        mode.lower.lower(&request).map_err(|refused| refused.to_string())
    }

    /// Returns whether these values can be requested alone.
    pub(super) fn can_patch(&self, plan: &Plan, paths: &[JsonPath]) -> bool {
        self.position
            .target_of(plan)
            .zip(self.position.mode_of(plan))
            .is_some_and(|(target, mode)| self.patch(plan, target, mode, paths).is_ok())
    }

    /// Returns the schema of an object with one member for each [place](Places) of a patch, each with the schema of its value,
    /// narrowed by the rules.
    fn patch_schema(&self, plan: &Plan, paths: &[JsonPath]) -> Result<Value, String> {
        let Some(draft) = self.drafts.current() else { return Ok(json!({})) };
        let structure = plan.contract.structure();
        let (mut defs, mut members) = (Map::new(), Members::default());
        let places = Places::new(paths, &draft.value);
        for place in places.iter() {
            let path = place.path;
            let around = path.parent().unwrap_or_default();
            let known = around.get(&draft.value).and_then(Value::as_object).filter(|_| place.is_rest);
            let schema = match known {
                Some(known) => further(structure.subschema(&around, &draft.value), known),
                None => structure.subschema(path, &draft.value),
            };
            let Some(mut schema) = schema else { continue };
            if let Some(Value::Object(own)) = schema.as_object_mut().and_then(|schema| schema.remove("$defs"))
            {
                defs.extend(own);
            }
            let mut has_value = true;
            for rule in plan.contract.rules().filter_map(|rule| rule.at(path)) {
                let known = !rule.inputs().iter().any(|input| paths.iter().any(|path| input.is_within(path)));
                if let Some((_, narrowing)) = rule.narrow(&draft.value).filter(|_| known) {
                    has_value &= Rule::tighten(&mut schema, &narrowing);
                }
            }
            if !has_value {
                let name = place.name();
                return Err(format!(
                    "no value of `{name}` satisfies the rules together with the other values"
                ));
            }
            if place.is_rest && known.is_none() {
                schema = json!({"type": "array", "items": schema});
                if let Some(max) = max_items(plan, &around, &draft.value) {
                    let count = around.get(&draft.value).and_then(Value::as_array).map_or(0, Vec::len);
                    schema["maxItems"] = max.saturating_sub(count).into();
                }
            }
            let is_absent = !place.is_rest && path.get(&draft.value).is_none();
            let is_optional =
                is_absent && structure.member(path, &draft.value).is_some_and(|member| !member.is_required);
            members.add(place.keys(), schema, !is_optional);
        }
        let mut schema = members.into_schema(&mut defs);
        if !defs.is_empty() {
            schema["$defs"] = Value::Object(defs);
        }
        Ok(schema)
    }

    /// Returns the rules `grounded` that hold for the values of a patch, at their places in its answer.
    pub(super) fn grounded_in_patch(&self, plan: &Plan, paths: &[JsonPath]) -> Vec<Rule> {
        let Some(draft) = self.drafts.current() else { return Vec::new() };
        let places = Places::new(paths, &draft.value);
        let rules = plan.contract.rules().filter_map(|rule| match rule {
            Rule::Grounded { target, min_length } => Some((target, *min_length)),
            _ => None,
        });
        let of = |(target, min_length): (&PathPattern, Option<usize>)| {
            let covered =
                |path: &JsonPath| target.steps().len() <= path.segments().len() && target.touches(path);
            let covered = places.iter().filter(move |place| covered(place.path));
            let rule = |place: &Place<'_>| Rule::Grounded { target: place.in_answer().into(), min_length };
            covered.map(rule).collect::<Vec<_>>()
        };
        rules.flat_map(of).collect()
    }

    /// Returns the message of a patch: each path with its value and violations, and the end of each list that goes on. Its length
    /// depends on the paths, not on the document, and is limited.
    pub(super) fn patch_words(&self, plan: &Plan, paths: &[JsonPath]) -> String {
        let Some(draft) = self.drafts.current() else { return String::new() };
        let about = if draft.rest.is_empty() { &*self.wrong(plan) } else { &draft.wrong };
        let mut words = match draft.rest.is_empty() {
            true => "Your answer is right except for some values. Give these anew:\n".to_owned(),
            false => "Your answer has no end. What is there stays. Give only these values, and nothing that you gave:\n".to_owned(),
        };
        let places = Places::new(paths, &draft.value);
        let mut left = MAX_WORDS;
        for group in places.groups() {
            let start = words.len();
            match group {
                [place] if place.is_rest => {
                    let (name, list) = (place.name(), place.path.parent().unwrap_or_default());
                    let shown = |text: String| cut_bytes(&text, MAX_SHOWN);
                    _ = match list.get(&draft.value) {
                        Some(Value::Object(map)) => {
                            let after = map.keys().next_back().map(|name| Value::from(name.as_str()));
                            let after = after.map_or_else(String::new, |name| shown(name.to_string()));
                            writeln!(
                                words,
                                "- \"{name}\": an object with the members after {after}; {{}} if there are none"
                            )
                        }
                        list => {
                            let last = list.and_then(|list| list.as_array()?.last());
                            let after = match last {
                                Some(last) => format!("after {}", shown(spaced(last))),
                                None => "of this list".to_owned(),
                            };
                            writeln!(
                                words,
                                "- \"{name}\": the items {after}, in their order; [] if there are none"
                            )
                        }
                    };
                }
                [place] if place.index.is_none() => {
                    _ = writeln!(
                        words,
                        "- \"{}\" ({}",
                        place.name(),
                        state(place.path, &draft.value, about, ")")
                    );
                }
                group => self.group_words(&mut words, group, &draft.value, about),
            }
            if words.len() - start > left {
                words.truncate(words.floor_char_boundary(start + left));
                words.push_str("…\n");
            }
            left = left.saturating_sub(words.len() - start);
        }
        words.push_str("Answer with one JSON object that has exactly these keys.");
        words
    }

    /// Writes the values of a group, with one line for neighbours of which the same is said.
    fn group_words(
        &self,
        words: &mut String,
        group: &[super::places::Place<'_>],
        document: &Value,
        about: &[Violation],
    ) {
        let Some(first) = group.first() else { return };
        let keys = match first.by_tens {
            true => {
                "every ten positions in the list, from \"0\", each an object with one key for the last digit (position 12 is {\"10\": {\"2\": …}})"
            }
            false => "each position in the list, from 0",
        };
        _ = writeln!(words, "- \"{}\", an object with one key for {keys}:", first.name());
        let mut lines: Vec<(usize, usize, String)> = Vec::new();
        for place in group {
            let index = place.index.unwrap_or_default();
            let said = state(place.path, document, about, "");
            match lines.last_mut() {
                Some((_, last, text)) if *last + 1 == index && *text == said => *last = index,
                _ => lines.push((index, index, said)),
            }
        }
        for (from, to, said) in lines {
            let range = if from == to { from.to_string() } else { format!("{from} to {to}") };
            _ = writeln!(words, "  {range}: {said}");
        }
    }
}

/// Returns the outermost places of the values that violations are about; `None` if one of them can only be corrected by a whole
/// answer.
pub(super) fn wrong_values(plan: &Plan, document: &Value, violations: &[Violation]) -> Option<Vec<JsonPath>> {
    let mut paths: Vec<JsonPath> = Vec::new();
    for violation in violations {
        let path = violation.wrong_value().filter(|path| {
            !path.is_root() && plan.contract.structure().subschema(path, document).is_some()
        })?;
        // A model invented such a long name, and a patch would repeat it in its schema and message.
        let is_short = label(&path).len() <= MAX_PATH;
        let is_reachable = path.get(document).is_some()
            || path.parent().is_some_and(|parent| parent.get(document).is_some_and(Value::is_object));
        if !is_short || !is_reachable {
            return None;
        }
        if !paths.iter().any(|outer| path.is_within(outer)) {
            paths.retain(|inner| !inner.is_within(&path));
            paths.push(path);
        }
        if paths.len() > MAX_PATCHED {
            return None;
        }
    }
    Some(paths)
}

/// Returns the maximum number of items of the list at a path; `None` if that is not limited.
pub(super) fn max_items(plan: &Plan, list: &JsonPath, document: &Value) -> Option<usize> {
    let schema = plan.contract.structure().subschema(list, document)?;
    let max = crate::keywords::target(&schema, &schema).unwrap_or(&schema)["maxItems"].as_u64()?;
    usize::try_from(max).ok()
}

/// Returns the schema of an object with the members that a map lacks, given the schema of the map and its members.
fn further(schema: Option<Value>, known: &Map<String, Value>) -> Option<Value> {
    let schema = schema?;
    let mut map = others(crate::keywords::target(&schema, &schema).unwrap_or(&schema))?;
    if let Some(named) = map.get_mut("properties").and_then(Value::as_object_mut) {
        named.retain(|name, _| !known.contains_key(name));
    }
    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_none_or(|name| !known.contains_key(name)));
    }
    if let Some(max) = map.get("maxProperties").and_then(Value::as_u64) {
        map["maxProperties"] = max.saturating_sub(known.len() as u64).into();
    }
    if let (None, Some(defs)) = (map.get("$defs"), schema.get("$defs")) {
        map["$defs"] = defs.clone();
    }
    Some(map)
}

/// Returns the value at a path and its violations, with `end` after the value.
fn state(path: &JsonPath, document: &Value, violations: &[Violation], end: &str) -> String {
    let now = path.get(document).map(spaced);
    let mut text = now.map_or("missing".to_owned(), |now| format!("now {}", cut_bytes(&now, MAX_SHOWN)));
    text.push_str(end);
    let about = violations.iter().filter(|violation| violation.path.is_within(path));
    for (n, violation) in about.take(MAX_REASONS).enumerate() {
        text.push_str(if n == 0 { ": " } else { "; " });
        text.push_str(&violation.detail());
    }
    text
}

/// The members of a patch schema.
#[derive(Default)]
struct Members {
    /// The name of each member, its schemas by position for groups, and whether they are required.
    members: Vec<(String, Member)>,
    places: HashMap<String, usize>,
}

enum Member {
    One { schema: Value, is_required: bool },
    Each(Vec<Position>),
}

/// The schema of one position of a group.
struct Position {
    /// The names of its member and of the members around it, outermost first.
    keys: Vec<String>,
    schema: Value,
    is_required: bool,
}

impl Position {
    /// Returns the name of the member around that of the position.
    fn around(&self) -> Option<&str> {
        match self.keys.as_slice() {
            [around, _] => Some(around),
            _ => None,
        }
    }

    /// Returns the member of the position.
    fn member(&self) -> (String, Value, bool) {
        (self.keys.last().cloned().unwrap_or_default(), self.schema.clone(), self.is_required)
    }
}

impl Members {
    fn add(&mut self, (name, keys): (String, Vec<String>), schema: Value, is_required: bool) {
        if keys.is_empty() {
            return self.members.push((name, Member::One { schema, is_required }));
        }
        let at = *self.places.entry(name.clone()).or_insert_with(|| {
            self.members.push((name, Member::Each(Vec::new())));
            self.members.len() - 1
        });
        if let Some((_, Member::Each(positions))) = self.members.get_mut(at) {
            positions.push(Position { keys, schema, is_required });
        }
    }

    /// Returns the schema of the object. A schema that a group repeats gets a definition if that is shorter.
    fn into_schema(self, defs: &mut Map<String, Value>) -> Value {
        let members = self.members.into_iter().map(|(name, member)| match member {
            Member::One { schema, is_required } => (name, schema, is_required),
            Member::Each(mut positions) => {
                let mut shared = Shared { named: Vec::new(), defs };
                if positions.len() > 2 {
                    positions.iter_mut().for_each(|position| shared.refer(&mut position.schema));
                }
                let members =
                    positions.chunk_by(|one, other| one.around().is_some() && one.around() == other.around());
                let members = members.map(|positions| {
                    let mut inner = positions.iter().map(Position::member);
                    match positions.first().and_then(Position::around) {
                        Some(around) => {
                            let mut schema = object(inner.collect());
                            shared.refer(&mut schema);
                            (around.to_owned(), schema, true)
                        }
                        None => inner.next().unwrap_or_default(),
                    }
                });
                (name, object(members.collect()), true)
            }
        });
        let members: Vec<_> = members.collect();
        object(members)
    }
}

/// The definitions of schemas that a group repeats.
struct Shared<'d> {
    named: Vec<(Value, Value)>,
    defs: &'d mut Map<String, Value>,
}

impl Shared<'_> {
    /// Replaces a schema by a reference to its definition, if that is shorter.
    fn refer(&mut self, schema: &mut Value) {
        if schema.to_string().len() <= REFERENCE {
            return;
        }
        if let Some((_, reference)) = self.named.iter().find(|(known, _)| known == schema) {
            *schema = reference.clone();
            return;
        }
        let name = (1..).map(|nth| format!("v{nth}")).find(|name| !self.defs.contains_key(name));
        let name = name.unwrap_or_default();
        let reference = json!({"$ref": format!("#/$defs/{name}")});
        let schema = std::mem::replace(schema, reference.clone());
        self.defs.insert(name, schema.clone());
        self.named.push((schema, reference));
    }
}

/// Returns the schema of an object with these members and no others.
fn object(members: Vec<(String, Value, bool)>) -> Value {
    let required: Vec<Value> = members
        .iter()
        .filter(|(.., is_required)| *is_required)
        .map(|(name, ..)| name.as_str().into())
        .collect();
    let properties: Map<String, Value> =
        members.into_iter().map(|(name, schema, _)| (name, schema)).collect();
    let mut schema = json!({"type": "object", "required": required, "additionalProperties": false});
    schema["properties"] = Value::Object(properties);
    schema
}

/// The maximum number of values of one patch. Splicing costs the length of the document for each of them.
pub(super) const MAX_PATCHED: usize = 1_000;

/// The number of bytes of a reference to a definition: a schema that is no longer is repeated instead.
const REFERENCE: usize = r##"{"$ref":"#/$defs/v1"}"##.len();

/// The maximum length of the places in the message of a patch, in bytes.
const MAX_WORDS: usize = 8 * 1024;

/// The maximum length of a value in the message of a patch, in bytes.
const MAX_SHOWN: usize = 300;

/// The maximum number of violations of one value in the message of a patch.
const MAX_REASONS: usize = 4;
