//! Fields whose values stand in the input (`~`), as rules of a schema.

use formwork_core::{JsonPath, PathPattern, Rule};
use serde_json::Value;

use crate::{Field, Kind, Node};

/// Returns the rule of each marked field, in the order of the fields.
pub(crate) fn rules(root: &Node) -> Vec<Rule> {
    let mut rules = Vec::new();
    walk(&mut root.clone(), "$", &mut |path, field| {
        let target = field.grounded.then(|| path.parse().ok()).flatten();
        rules.extend(target.map(Rule::grounded));
    });
    rules
}

/// Marks the fields that the rules of a schema name. Returns whether a shape expresses all of these rules.
pub(crate) fn mark(root: &mut Node, written: &Value) -> bool {
    let Ok(written) = serde_json::from_value::<Vec<Rule>>(written.clone()) else { return false };
    let is_mark = |rule: &Rule| matches!(rule, Rule::Grounded { min_length: None, .. });
    let named: Vec<String> =
        written.iter().filter(|rule| is_mark(rule)).map(|rule| rule.target().to_string()).collect();
    let mut marked = 0;
    walk(root, "$", &mut |path, field| {
        let canonical = path.parse::<PathPattern>().map(|path| path.to_string());
        field.grounded |= canonical.is_ok_and(|path| named.contains(&path));
        marked += usize::from(field.grounded);
    });
    marked == written.len()
}

/// Calls `visit` for each field with its path, in which `[*]` stands for the items of an array.
fn walk(node: &mut Node, path: &str, visit: &mut dyn FnMut(&str, &mut Field)) {
    match &mut node.kind {
        Kind::Array(item) => walk(item, &format!("{path}[*]"), visit),
        Kind::Object(fields) => {
            for field in fields {
                let step = JsonPath::root().key(field.name.as_str()).to_string();
                let path = format!("{path}{}", step.strip_prefix('$').unwrap_or(&step));
                visit(&path, field);
                walk(&mut field.node, &path, visit);
            }
        }
        _ => {}
    }
}
