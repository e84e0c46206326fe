//! Patches: the paths that a patch can correct, its schema and its message.

use formwork_json::{JsonPath, Segment};
use serde_json::{Map, Value, json};

use super::Run;
use crate::feedback::cut_bytes;
use crate::plan::Mode;
use crate::{LowerRequest, Lowered, MAX_PATH, Plan, Rule, Target, spaced};

impl Run {
    /// Returns the paths that a patch could correct; none if a violation can only be corrected by a whole answer.
    pub(super) fn patchable(&self, plan: &Plan) -> Vec<JsonPath> {
        let Some(draft) = self.drafts.current() else { return Vec::new() };
        let mut paths: Vec<JsonPath> = Vec::new();
        for violation in self.drafts.violations(&self.ledger) {
            let whole_object = matches!(
                violation.rule.as_str(),
                "additionalProperties" | "unevaluatedProperties" | "propertyNames"
            );
            let path = if whole_object { violation.path.parent() } else { Some(violation.path.clone()) };
            let path = path.filter(|path| {
                !path.is_root() && plan.contract.structure().subschema(path, &draft.value).is_some()
            });
            // A model invented such a long name, and a patch would repeat it in its schema and message.
            let path = path.filter(|path| label(path).len() <= MAX_PATH);
            let Some(path) = path else { return Vec::new() };
            let reachable = path.get(&draft.value).is_some()
                || path.parent().is_some_and(|parent| parent.get(&draft.value).is_some_and(Value::is_object));
            if !reachable {
                return Vec::new();
            }
            if !paths.iter().any(|outer| path.is_within(outer)) {
                paths.retain(|inner| !inner.is_within(&path));
                paths.push(path);
            }
        }
        if paths.len() > MAX_PATCHED { Vec::new() } else { paths }
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
        let schema = self.patch_schema(plan, paths);
        let is_empty = |schema: &Value| {
            let (low, high) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
            low.zip(high).is_some_and(|(low, high)| low > high)
                || schema["enum"].as_array().is_some_and(Vec::is_empty)
        };
        if let Some((name, _)) =
            schema["properties"].as_object().into_iter().flatten().find(|(_, schema)| is_empty(schema))
        {
            return Err(format!("no value of `{name}` satisfies the rules together with the other values"));
        }
        let max_tokens = self.request.max_tokens.or(target.capabilities.default_max_tokens);
        let request = LowerRequest::new(&schema)
            .with_tighten(self.position.tighten(plan))
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

    /// Returns the schema of an object with one member for each path, each with the schema of its value, narrowed by the
    /// rules.
    fn patch_schema(&self, plan: &Plan, paths: &[JsonPath]) -> Value {
        let Some(draft) = self.drafts.current() else { return json!({}) };
        let (mut properties, mut defs) = (Map::new(), Map::new());
        for path in paths {
            let Some(mut schema) = plan.contract.structure().subschema(path, &draft.value) else { continue };
            if let Some(Value::Object(own)) = schema.as_object_mut().and_then(|schema| schema.remove("$defs"))
            {
                defs.extend(own);
            }
            for rule in plan.contract.rules().filter_map(|rule| rule.at(path)) {
                let known = !rule.inputs().iter().any(|input| paths.iter().any(|path| input.is_within(path)));
                if let Some((_, narrowing)) = rule.narrow(&draft.value).filter(|_| known) {
                    Rule::tighten(&mut schema, &narrowing);
                }
            }
            properties.insert(label(path), schema);
        }
        let required: Vec<&String> = properties.keys().collect();
        let mut schema = json!({"type": "object", "required": required, "additionalProperties": false});
        schema["properties"] = Value::Object(properties);
        if !defs.is_empty() {
            schema["$defs"] = Value::Object(defs);
        }
        schema
    }

    /// Returns the message of a patch: each path with its value and violations. Its length depends on the paths, not on the
    /// document.
    pub(super) fn patch_words(&self, paths: &[JsonPath]) -> String {
        let mut words = "Your answer is right except for some values. Give these anew:\n".to_owned();
        for path in paths {
            let now = self.drafts.current().and_then(|draft| path.get(&draft.value)).map(spaced);
            let now = now.map_or("missing".to_owned(), |now| format!("now {}", cut_bytes(&now, MAX_SHOWN)));
            words.push_str(&format!("- \"{}\" ({now})", label(path)));
            let about = self
                .drafts
                .violations(&self.ledger)
                .iter()
                .filter(|violation| violation.path.is_within(path));
            for (n, violation) in about.take(MAX_REASONS).enumerate() {
                words.push_str(if n == 0 { ": " } else { "; " });
                words.push_str(&violation.detail());
            }
            words.push('\n');
        }
        words.push_str("Answer with one JSON object that has exactly these keys.");
        words
    }
}

/// The maximum number of values of one patch: for more, a whole answer is cheaper.
const MAX_PATCHED: usize = 8;

/// Returns the property name for `path` in a patch schema, for example `items[0].price` for `$.items[0].price`.
pub(super) fn label(path: &JsonPath) -> String {
    let text = path.to_string();
    match path.segments().first() {
        Some(Segment::Key(_)) if text.starts_with("$.") => text.chars().skip(2).collect(),
        _ => text.chars().skip(1).collect(),
    }
}

/// The maximum length of a value in the message of a patch, in bytes.
const MAX_SHOWN: usize = 300;

/// The maximum number of violations of one value in the message of a patch.
const MAX_REASONS: usize = 4;
