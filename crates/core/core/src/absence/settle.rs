//! Judges answers in which `null`, or nothing, stands for a member that the text does not state.

use std::collections::BTreeSet;

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use crate::rule::SourceIndex;
use crate::warning::MAX_OF_A_KIND;
use crate::{
    Coerced, Coercion, Context, Contract, Judgement, Member, Report, Stage, Violation, Warning, WarningKind,
};

/// A value with its judgement, after [`Contract::settle`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Settled {
    /// The value that was judged.
    pub value: Value,
    /// Its judgement.
    pub judgement: Judgement,
    /// The paths of the optional members that were removed, because they were `null`.
    pub removed: Vec<JsonPath>,
    /// The paths of the missing members that were added as `null`, because the text may lack them.
    pub added: Vec<JsonPath>,
    /// The values that were converted, dropped or replaced, because they did not fit the schema.
    pub coerced: Vec<Coerced>,
    /// The violations before values were [coerced](Self::coerced); empty if none was.
    pub(crate) before: Vec<Violation>,
}

impl Settled {
    /// Returns whether the value is another than the one that was settled.
    pub fn is_changed(&self) -> bool {
        !(self.removed.is_empty() && self.added.is_empty() && self.coerced.is_empty())
    }

    /// Returns the warnings about the value: those of its judgement, then those of the members that were removed and of the values that were
    /// converted, dropped or replaced, at most 20 of each kind and one for the others.
    pub fn warnings(&self) -> Vec<Warning> {
        let removed = self.removed.iter().take(MAX_OF_A_KIND).map(|path| {
            Warning::new(WarningKind::NullAsAbsent, "null in an optional member counts as absent")
                .at(path.clone())
        });
        let coerced = self.coerced.iter().take(MAX_OF_A_KIND).map(Warning::from);
        let more = |kind, count: usize, what: &str| {
            let more = count.saturating_sub(MAX_OF_A_KIND);
            (more > 0).then(|| Warning::new(kind, format!("{more} further {what}")))
        };
        let soft = self.judgement.warnings.iter().cloned().map(Warning::from);
        soft.chain(removed)
            .chain(more(WarningKind::NullAsAbsent, self.removed.len(), "optional members were null"))
            .chain(coerced)
            .chain(more(WarningKind::Coerced, self.coerced.len(), "values were changed to fit the schema"))
            .collect()
    }
}

/// The maximum number of times that a value is changed and judged again: violations inside of a union may become visible only after
/// others are gone.
const MAX_ROUNDS: usize = 4;

/// The maximum number of variants of a union whose missing members are added.
const MAX_VARIANTS: usize = 16;

impl Contract {
    /// Judges a value like [`judge`](Self::judge), except for members without a value and for values that do not fit the schema.
    ///
    /// If a violation is at a `null` whose member the schema names and does not require, the member is removed and the value judged
    /// again. A member that a [text may lack](crate::Absent) and that is missing is added as `null`. A `null` in a list, in a map or in
    /// a required member stays a violation.
    ///
    /// Then values are converted, dropped or replaced where the contract [permits](crate::Coercion) it. The changed document is judged as a
    /// whole.
    pub fn settle(&self, value: Value, cx: &Context<'_>) -> Settled {
        self.settle_text(value, None, cx)
    }

    /// Judges a value like [`settle`](Self::settle). `text` is the JSON text of the value: it has the digits of numbers that become texts.
    /// Without it, only integers become texts.
    pub fn settle_text(&self, value: Value, text: Option<&str>, cx: &Context<'_>) -> Settled {
        self.settle_with(value, text, cx, &SourceIndex::default())
    }

    /// Judges a value like [`settle_text`](Self::settle_text), with an index of the text of `cx` that several values share.
    pub(crate) fn settle_with(
        &self,
        value: Value,
        text: Option<&str>,
        cx: &Context<'_>,
        source: &SourceIndex,
    ) -> Settled {
        let judgement = self.judge_with(&value, cx, source);
        let (removed, added) = (Vec::new(), Vec::new());
        let mut settled =
            Settled { value, judgement, removed, added, coerced: Vec::new(), before: Vec::new() };
        if settled.judgement.violations.iter().any(|violation| self.can_settle(violation, &settled.value)) {
            self.rounds(&mut settled, cx);
            if settled.is_changed() {
                settled.judgement = self.judge_with(&settled.value, cx, source);
            }
        }
        self.coerce(&mut settled, text, cx, source);
        settled
    }

    /// Returns the paths of the members that are `null`, because the text does not state them.
    pub fn not_stated(&self, value: &Value) -> Vec<JsonPath> {
        if !self.declares_absence() {
            return Vec::new();
        }
        let mut paths = Vec::new();
        null_members(value, &JsonPath::root(), &mut paths);
        let member = |path: &JsonPath| self.structure().member(path, value);
        paths.retain(|path| member(path).is_some_and(|member| member.may_be_absent));
        paths
    }

    fn rounds(&self, settled: &mut Settled, cx: &Context<'_>) {
        let mut tried = BTreeSet::new();
        let mut found = self.schema_violations(&settled.value, cx);
        for _ in 0..MAX_ROUNDS {
            let alternatives = self.alternatives(&settled.value, &found, &tried);
            if alternatives.is_empty() {
                return;
            }
            tried.extend(alternatives.iter().flatten().map(|change| change.path.clone()));
            for mut changes in alternatives {
                let mut next = changed(&settled.value, &changes);
                let mut after = self.schema_violations(&next, cx);
                // A condition of the schema may require a member that is optional otherwise.
                let is_missing = |change: &Change| {
                    change.is_removal
                        && after.iter().any(|other| other.rule == "required" && other.path == change.path)
                };
                let count = changes.len();
                changes.retain(|change| !is_missing(change));
                if changes.len() < count {
                    next = changed(&settled.value, &changes);
                    after = self.schema_violations(&next, cx);
                }
                if after.len() < found.len() {
                    (settled.value, found) = (next, after);
                    for Change { path, is_removal } in changes {
                        if is_removal { &mut settled.removed } else { &mut settled.added }.push(path);
                    }
                    break;
                }
            }
        }
    }

    /// Returns every violation of the schema, without a limit.
    pub(crate) fn schema_violations(&self, value: &Value, cx: &Context<'_>) -> Vec<Violation> {
        let mut report = Report::uncapped();
        self.structure().validate(value, cx, &mut report);
        report.into_violations()
    }

    /// Returns whether a violation may be about a member without a value.
    fn can_settle(&self, violation: &Violation, value: &Value) -> bool {
        violation.stage == Stage::Schema
            && match violation.rule.as_str() {
                "required" => self.declares_absence(),
                _ => is_union(violation) || violation.path.get(value).is_some_and(Value::is_null),
            }
    }

    /// Returns the members without a value that explain violations, as alternatives: those at the violations, or, if there are none,
    /// those inside of values that fit no variant of a union, and with them those that one variant has and the value lacks.
    fn alternatives(
        &self,
        value: &Value,
        found: &[Violation],
        tried: &BTreeSet<JsonPath>,
    ) -> Vec<Vec<Change>> {
        let direct = |violation: &Violation| {
            let is_removal = violation.path.get(value).is_some_and(Value::is_null);
            let is_due = is_removal || violation.rule == "required";
            (is_due && !tried.contains(&violation.path)).then(|| violation.path.clone())
        };
        let paths: BTreeSet<JsonPath> = found.iter().filter_map(direct).collect();
        let changes = self.allowed(paths, value, |_| true);
        if !changes.is_empty() {
            return vec![changes];
        }
        let (mut inside, mut lacking) = (Vec::new(), Vec::new());
        for Violation { path, .. } in found.iter().filter(|violation| is_union(violation)) {
            if let Some(within) = path.get(value) {
                null_members(within, path, &mut inside);
            }
            if self.declares_absence() {
                let variants = self.structure().lacking(path, value).into_iter().take(MAX_VARIANTS);
                lacking.extend(variants.map(|names| names.into_iter().map(|name| path.key(name)).collect()));
            }
        }
        let untried = |paths: Vec<JsonPath>| paths.into_iter().filter(|path| !tried.contains(path)).collect();
        let nulls = self.allowed(untried(inside), value, |member| !member.allows_null);
        let mut alternatives = vec![nulls.clone()];
        for paths in lacking {
            let missing = self.allowed(untried(paths), value, |_| true);
            if !missing.is_empty() {
                alternatives.push([nulls.clone(), missing].concat());
            }
        }
        alternatives.retain(|changes| !changes.is_empty());
        alternatives
    }

    /// Returns the changes at these paths that the schema allows, of members that satisfy a condition.
    fn allowed(
        &self,
        paths: BTreeSet<JsonPath>,
        value: &Value,
        condition: impl Fn(&Member) -> bool,
    ) -> Vec<Change> {
        let coercions = self.coercions();
        let has_strict = coercions.any(|one| one == Coercion::Strict);
        let change = |path: JsonPath| {
            let member = self.structure().member(&path, value).filter(&condition)?;
            let is_removal = path.get(value).is_some();
            let is_allowed = if is_removal { !member.is_required } else { member.may_be_absent };
            let is_allowed = is_allowed && !(has_strict && coercions.at(&path) == Coercion::Strict);
            is_allowed.then_some(Change { path, is_removal })
        };
        paths.into_iter().filter_map(change).collect()
    }
}

/// A member that is removed, or added as `null`.
#[derive(Clone)]
struct Change {
    path: JsonPath,
    is_removal: bool,
}

fn changed(value: &Value, changes: &[Change]) -> Value {
    let mut value = value.clone();
    for Change { path, is_removal } in changes {
        let Some(Segment::Key(name)) = path.last() else { continue };
        let around = path.parent().and_then(|parent| parent.get_mut(&mut value)?.as_object_mut());
        let Some(members) = around else { continue };
        if *is_removal {
            members.shift_remove(name);
        } else {
            members.insert(name.clone(), Value::Null);
        }
    }
    value
}

/// Adds the paths of all members of objects that are `null`.
fn null_members(value: &Value, path: &JsonPath, out: &mut Vec<JsonPath>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| match member {
            Value::Null => out.push(path.key(name.as_str())),
            Value::Object(_) | Value::Array(_) => null_members(member, &path.key(name.as_str()), out),
            _ => {}
        }),
        Value::Array(items) => {
            let inner = items.iter().enumerate().filter(|(_, item)| item.is_object() || item.is_array());
            inner.for_each(|(index, item)| null_members(item, &path.index(index), out));
        }
        _ => {}
    }
}

/// Returns whether a violation of the schema is about a member that is missing, or about `null`.
pub(crate) fn is_unstated(violation: &Violation) -> bool {
    violation.stage == Stage::Schema && (violation.rule == "required" || violation.found == "null")
}

fn is_union(violation: &Violation) -> bool {
    matches!(violation.rule.as_str(), "anyOf" | "oneOf")
}
