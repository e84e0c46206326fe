//! A schema as a table of nodes that the reader steps through.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use formwork_json::{Kind, is_same};
use serde_json::{Map, Value, json};

use crate::absence::declared::declares_absence;
use crate::coercion::places::Coercions;
use crate::keywords::{definition_name, find, target};
use crate::{Coercion, Context, Report, Structure, is_old_draft, normalise};

/// A schema in the form that a [`Reader`](crate::Reader) walks: compiled once, and shared by all readers of the schema.
///
/// ```
/// use formwork_core::{Level, Outline, Outlook, Reader};
///
/// let outline = Outline::new(&serde_json::json!({"properties": {"age": {"type": "integer"}}}), None);
/// let mut reader = Reader::new(Level::Clean);
/// assert!(matches!(reader.push(&outline, "{\"age\": \"34", |_| {}), Outlook::Impossible { at: 8, .. }));
/// ```
pub struct Outline {
    nodes: Vec<Node>,
    structure: Option<Arc<dyn Structure>>,
    /// `$defs` of the normalised schema.
    definitions: Map<String, Value>,
    /// The `$schema` of a draft that has other formats than the latest one.
    old_draft: Option<Value>,
    /// Whether the contract converts values whose conversion loses nothing.
    pub(super) converts: bool,
}

/// The index of a node.
pub(super) type Id = u32;

/// The node of the schema itself.
pub(super) const ROOT: Id = 0;

/// The requirements of one schema on one value, without the schemas that it includes.
#[derive(Default)]
pub(super) struct Node {
    /// The allowed kinds, as a set of bits.
    kinds: u8,
    /// Whether numbers have to be integers.
    pub(super) integer: bool,
    /// The values of `enum` and `const`.
    pub(super) values: Option<Values>,
    pub(super) limits: Vec<(Limit, f64)>,
    pub(super) members: HashMap<String, Member>,
    /// The names in `required`, by their number in [`Member::required`].
    pub(super) required: Vec<String>,
    pub(super) patterns: Vec<(Check, Id)>,
    pub(super) additional: Option<Id>,
    pub(super) names: Option<Check>,
    pub(super) prefix: Vec<Id>,
    pub(super) items: Option<Id>,
    /// The schemas of `$ref` and `allOf`.
    pub(super) all: Vec<Id>,
    /// The schemas of `anyOf` and `oneOf`, and whether exactly one has to fit.
    pub(super) unions: Vec<(bool, Vec<Id>)>,
    /// The keywords that the validator judges when the value ends, each with the kinds that it concerns.
    pub(super) checks: Vec<(u8, Check)>,
    /// Whether a keyword cannot be judged before the whole document is.
    pub(super) unsure: bool,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Member {
    pub(super) schema: Option<Id>,
    pub(super) required: Option<u32>,
}

/// The keywords with a number that the reader decides itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

const LIMITS: [(&str, Limit); 10] = [
    ("minimum", Limit::Minimum),
    ("maximum", Limit::Maximum),
    ("exclusiveMinimum", Limit::ExclusiveMinimum),
    ("exclusiveMaximum", Limit::ExclusiveMaximum),
    ("minLength", Limit::MinLength),
    ("maxLength", Limit::MaxLength),
    ("minItems", Limit::MinItems),
    ("maxItems", Limit::MaxItems),
    ("minProperties", Limit::MinProperties),
    ("maxProperties", Limit::MaxProperties),
];

impl Limit {
    pub(super) const fn is_exclusive(self) -> bool {
        matches!(self, Self::ExclusiveMinimum | Self::ExclusiveMaximum)
    }

    pub(super) fn keyword(self) -> &'static str {
        LIMITS.iter().find(|(_, limit)| *limit == self).map_or("", |(keyword, _)| keyword)
    }
}

/// The values of `enum` or `const`.
pub(super) struct Values {
    /// The texts, sorted.
    texts: Vec<String>,
    others: Vec<Value>,
}

impl Values {
    fn new(values: &[Value]) -> Self {
        let mut texts: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        texts.sort_unstable();
        Self { texts, others: values.iter().filter(|value| !value.is_string()).cloned().collect() }
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match value.as_str() {
            Some(text) => self.texts.binary_search_by(|one| one.as_str().cmp(text)).is_ok(),
            None => self.others.iter().any(|one| is_same(one, value)),
        }
    }

    /// Returns whether a text is one of the values in other case or with other spaces.
    pub(super) fn has_respelled(&self, text: &str) -> bool {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
        };
        let text = plain(text);
        let mut others = self.others.iter().filter(|one| one.is_number() || one.is_boolean());
        self.texts.iter().any(|one| plain(one) == text) || others.any(|one| *one.to_string() == text)
    }

    /// Returns whether a text can become one of the values.
    pub(super) fn begins(&self, text: &str) -> bool {
        let from = self.texts.partition_point(|one| one.as_str() < text);
        self.texts.get(from).is_some_and(|one| one.starts_with(text))
    }
}

/// Keywords that the validator judges, compiled at their first use.
pub(super) struct Check {
    pub(super) keyword: &'static str,
    schema: Value,
    compiled: OnceLock<Option<Arc<dyn Structure>>>,
}

impl Check {
    fn new(keyword: &'static str, schema: Value) -> Self {
        Self { keyword, schema, compiled: OnceLock::new() }
    }

    /// Returns whether a value satisfies the keywords; `None` if no validator is known, or it does not take them alone.
    pub(super) fn accepts(&self, outline: &Outline, value: &Value) -> Option<bool> {
        let compile = || outline.structure.as_ref()?.compiled(&self.alone(outline)?);
        let structure = self.compiled.get_or_init(compile).as_ref()?;
        let mut report = Report::default();
        structure.validate(value, &Context::EMPTY, &mut report);
        Some(report.is_empty())
    }

    /// Returns the keywords as a schema of its own, with the definitions that they refer to. `None` if they mean something else
    /// alone: older drafts do not have the same formats.
    fn alone(&self, outline: &Outline) -> Option<Value> {
        let mut schema = self.schema.clone();
        let (mut needed, mut open, mut has_format) = (Map::new(), vec![&self.schema], false);
        while let Some(next) = open.pop() {
            find(next, |node| {
                has_format |= node.get("format").is_some();
                if let Some(name) = definition_name(node)
                    && let Some(definition) = outline.definitions.get(name)
                    && needed.insert(name.to_owned(), definition.clone()).is_none()
                {
                    open.push(definition);
                }
                false
            });
        }
        if let Some(draft) = outline.old_draft.as_ref().filter(|_| has_format) {
            if self.keyword != "format" {
                return None;
            }
            schema["$schema"] = draft.clone();
        }
        if let Value::Object(keywords) = &mut schema
            && !needed.is_empty()
        {
            keywords.insert("$defs".to_owned(), Value::Object(needed));
        }
        Some(schema)
    }
}

/// Returns the bit of a kind.
pub(super) const fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Object => 1,
        Kind::Array => 2,
        Kind::String => 4,
        Kind::Number => 8,
        Kind::True => 16,
        Kind::False => 32,
        Kind::Null => 64,
    }
}

/// Returns the type of a kind in JSON Schema.
pub(super) const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Number => "number",
        Kind::True | Kind::False => "boolean",
        Kind::Null => "null",
    }
}

const ALL: u8 = 127;

fn bits_of_type(name: &str) -> u8 {
    match name {
        "object" => bit(Kind::Object),
        "array" => bit(Kind::Array),
        "string" => bit(Kind::String),
        "number" | "integer" => bit(Kind::Number),
        "boolean" => bit(Kind::True) | bit(Kind::False),
        "null" => bit(Kind::Null),
        _ => ALL,
    }
}

fn bits_of_value(value: &Value) -> u8 {
    match value {
        Value::Object(_) => bit(Kind::Object),
        Value::Array(_) => bit(Kind::Array),
        Value::String(_) => bit(Kind::String),
        Value::Number(_) => bit(Kind::Number),
        Value::Bool(true) => bit(Kind::True),
        Value::Bool(false) => bit(Kind::False),
        Value::Null => bit(Kind::Null),
    }
}

impl Node {
    /// Returns whether the schema allows values of this kind.
    pub(super) const fn allows(&self, kind: Kind) -> bool {
        self.kinds & bit(kind) != 0
    }

    /// Returns the names of the allowed types.
    pub(super) fn types(&self) -> String {
        let kinds = [Kind::Object, Kind::Array, Kind::String, Kind::Number, Kind::True, Kind::Null];
        let names = kinds.into_iter().filter(|kind| self.allows(*kind)).map(|kind| match kind {
            Kind::Number if self.integer => "integer",
            kind => name_of(kind),
        });
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Returns whether the schema allows no value at all.
    pub(super) const fn is_never(&self) -> bool {
        self.kinds == 0
    }

    pub(super) fn limit(&self, limit: Limit) -> Option<f64> {
        self.limits.iter().find(|(one, _)| *one == limit).map(|(_, number)| *number)
    }

    /// Returns whether a string may be wrong before it ends.
    pub(super) fn tracks_text(&self) -> bool {
        self.values.is_some() || self.limit(Limit::MaxLength).is_some()
    }
}

impl Outline {
    /// Compiles a schema. Without a `structure` of the same schema, keywords that only a validator knows (`pattern`, `format`,
    /// `not` and others) are never decided. A schema with members that a text [may lack](crate::Absent) allows every document, because
    /// the contract accepts them as `null` or missing in the end.
    pub fn new(schema: &Value, structure: Option<Arc<dyn Structure>>) -> Self {
        if declares_absence(schema) {
            return Self::any();
        }
        let normal = normalise(schema);
        let mut build = Build {
            root: &normal,
            is_old: is_old_draft(schema),
            unknown: unknown_keywords(schema),
            known: HashMap::new(),
            nodes: Vec::new(),
            open: Vec::new(),
        };
        build.id(&normal);
        while let Some((id, part)) = build.open.pop() {
            let node = build.node(part);
            if let Some(place) = build.nodes.get_mut(id as usize) {
                *place = node;
            }
        }
        let nodes = build.nodes;
        let definitions = normal.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
        let old_draft = is_old_draft(schema).then(|| schema["$schema"].clone());
        let old_draft = old_draft.map(|draft| if draft.is_null() { json!(DRAFT_7) } else { draft });
        Self { nodes, structure, definitions, old_draft, converts: false }
    }

    /// Returns an outline that allows every document.
    pub fn any() -> Self {
        Self {
            nodes: vec![Node { kinds: ALL, ..Node::default() }],
            structure: None,
            definitions: Map::new(),
            old_draft: None,
            converts: false,
        }
    }

    /// Allows the values that a contract converts, drops or replaces. Where it may drop, replace or guess, every document is allowed.
    pub(crate) fn with_coercions(self, coercions: &Coercions) -> Self {
        let changes = |one| matches!(one, Coercion::Drop | Coercion::Default | Coercion::Guess);
        if coercions.any(changes) {
            return Self::any();
        }
        Self { converts: coercions.any(Coercion::converts), ..self }
    }

    /// Returns whether a value of this kind may be converted to another kind that a node takes.
    pub(super) fn may_convert(&self, id: Id, kind: Kind) -> bool {
        let to: &[Kind] = match kind {
            Kind::String => &[Kind::Number, Kind::True, Kind::False, Kind::Array, Kind::Object],
            Kind::Number | Kind::True | Kind::False => &[Kind::String, Kind::Array],
            Kind::Object => &[Kind::Array],
            Kind::Array | Kind::Null => &[],
        };
        self.converts && self.rejects(id, kind, 0) && to.iter().any(|to| self.takes(id, *to, 0))
    }

    /// Returns whether a node, or one that it includes, allows no value of this kind.
    fn rejects(&self, id: Id, kind: Kind, jumps: u32) -> bool {
        let node = self.node(id);
        let mut included = node.all.iter().chain(node.unions.iter().flat_map(|(_, branches)| branches));
        !node.allows(kind) || included.any(|id| jumps >= MAX_JUMPS || self.rejects(*id, kind, jumps + 1))
    }

    /// Returns whether a text may be converted to a value of another kind that a node takes, or is one that it may take.
    pub(super) fn may_convert_text(&self, id: Id, text: &str) -> bool {
        let (text, takes) = (text.trim(), |kind| self.takes(id, kind, 0));
        takes(Kind::String)
            || takes(Kind::Array)
            || takes(Kind::Object) && text.starts_with('{')
            || takes(Kind::True) && text.eq_ignore_ascii_case("true")
            || takes(Kind::False) && text.eq_ignore_ascii_case("false")
            || takes(Kind::Number) && serde_json::from_str::<serde_json::Number>(text).is_ok()
    }

    /// Returns the outline of a document that is the member `name` of an object. Other documents stay undecided.
    #[must_use]
    pub fn wrapped(schema: &Value, structure: Option<Arc<dyn Structure>>, name: &str) -> Self {
        let mut outline = Self::new(&json!({"properties": {name: {}}}), None);
        let mut inner = Self::new(schema, structure);
        let offset = outline.nodes.len() as Id;
        let shift = |id: &mut Id| *id += offset;
        for mut node in std::mem::take(&mut inner.nodes) {
            node.members.values_mut().filter_map(|member| member.schema.as_mut()).for_each(shift);
            node.patterns.iter_mut().for_each(|(_, id)| shift(id));
            node.additional.iter_mut().chain(&mut node.items).for_each(shift);
            node.prefix.iter_mut().chain(&mut node.all).for_each(shift);
            node.unions.iter_mut().flat_map(|(_, ids)| ids).for_each(shift);
            outline.nodes.push(node);
        }
        if let Some(member) = outline.nodes.first_mut().and_then(|root| root.members.get_mut(name)) {
            member.schema = Some(offset);
        }
        Self { nodes: outline.nodes, ..inner }
    }

    /// Returns whether a document may be a string, number or literal.
    pub(super) fn takes_scalars(&self) -> bool {
        [Kind::String, Kind::Number, Kind::True, Kind::False, Kind::Null]
            .into_iter()
            .any(|kind| self.takes(ROOT, kind, 0))
    }

    /// Returns whether a value of this kind can satisfy a node, judged by the kinds that it and what it includes allow.
    pub(super) fn takes(&self, id: Id, kind: Kind, jumps: u32) -> bool {
        let node = self.node(id);
        let inner = |id: &Id| jumps >= MAX_JUMPS || self.takes(*id, kind, jumps + 1);
        node.allows(kind)
            && node.all.iter().all(inner)
            && node.unions.iter().all(|(_, branches)| branches.iter().any(inner))
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        static NONE: LazyLock<Node> = LazyLock::new(|| Node { kinds: ALL, unsure: true, ..Node::default() });
        self.nodes.get(id as usize).unwrap_or(&NONE)
    }

    pub(super) fn structure(&self) -> Option<&dyn Structure> {
        self.structure.as_deref()
    }
}

/// The draft of a schema that has keywords of older drafts and no `$schema`.
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// The maximum number of references and variants that are followed for one value.
const MAX_JUMPS: u32 = 16;

impl fmt::Debug for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outline").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}

struct Build<'s> {
    root: &'s Value,
    is_old: bool,
    /// The keywords that the draft of the schema does not have.
    unknown: Vec<&'static str>,
    /// The nodes by the addresses of their schemas.
    known: HashMap<*const Value, Id>,
    nodes: Vec<Node>,
    /// Schemas whose nodes are not written yet.
    open: Vec<(Id, &'s Value)>,
}

/// Groups of keywords that the validator judges together when the value ends: the keywords, and the types that they concern.
const CHECKED: [(&[&str], &[&str]); 9] = [
    (&["pattern"], &["string"]),
    (&["format"], &["string"]),
    (&["multipleOf"], &["number"]),
    (&["uniqueItems"], &["array"]),
    (&["contains", "minContains", "maxContains"], &["array"]),
    (&["dependentRequired"], &["object"]),
    (&["dependentSchemas"], &["object"]),
    (&["not"], &[]),
    (&["if", "then", "else"], &[]),
];

/// Returns the keywords that validators ignore in the draft of a schema. Of those that normalising writes for older keywords, the
/// originals cannot be told from the translations, so both are left to the validator.
fn unknown_keywords(schema: &Value) -> Vec<&'static str> {
    const TRANSLATED: [&str; 3] = ["prefixItems", "dependentRequired", "dependentSchemas"];
    const LATER: [&str; 4] = ["unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains"];

    let draft = schema["$schema"].as_str().unwrap_or_default();
    let is_of = |names: &[&str]| names.iter().any(|name| draft.contains(name));
    let mut unknown = Vec::new();
    if is_of(&["draft-03", "draft-04"]) {
        unknown.extend(["const", "contains", "propertyNames", "if"]);
    } else if is_of(&["draft-06"]) {
        unknown.push("if");
    }
    if is_old_draft(schema) {
        unknown.extend(LATER);
    }
    if is_old_draft(schema) || is_of(&["2019-09"]) {
        let has = |keyword: &&&str| find(schema, |node| node.get(**keyword).is_some()).is_some();
        unknown.extend(TRANSLATED.iter().filter(has));
    }
    unknown
}

impl<'s> Build<'s> {
    fn id(&mut self, schema: &'s Value) -> Id {
        let next = self.nodes.len() as Id;
        *self.known.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.nodes.push(Node::default());
            self.open.push((next, schema));
            next
        })
    }

    fn node(&mut self, schema: &'s Value) -> Node {
        let Value::Object(keywords) = schema else {
            let kinds = if schema == &Value::Bool(false) { 0 } else { ALL };
            return Node { kinds, ..Node::default() };
        };
        let mut node = Node { kinds: ALL, ..Node::default() };
        for (keyword, value) in keywords {
            if self.unknown.contains(&keyword.as_str()) {
                continue;
            }
            match (keyword.as_str(), value) {
                ("type", Value::String(_) | Value::Array(_)) => {
                    let names = || value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                    let named = |name: &str| names().iter().any(|one| one == name);
                    let kinds = names().iter().filter_map(Value::as_str).map(bits_of_type);
                    node.kinds &= kinds.fold(0, |all, kind| all | kind);
                    node.integer = named("integer") && !named("number");
                }
                ("enum", Value::Array(values)) => {
                    node.kinds &= values.iter().map(bits_of_value).fold(0, |all, kind| all | kind);
                    let both = |known: Option<Values>| match known {
                        Some(known) => {
                            values.iter().filter(|one| known.contains(one)).cloned().collect::<Vec<_>>()
                        }
                        None => values.clone(),
                    };
                    node.values = Some(Values::new(&both(node.values.take())));
                }
                ("const", value) => {
                    node.kinds &= bits_of_value(value);
                    let both = node.values.take().is_none_or(|known| known.contains(value));
                    node.values = Some(Values::new(if both { std::slice::from_ref(value) } else { &[] }));
                }
                ("$ref", _) => match target(self.root, schema) {
                    Some(target) => node.all.push(self.id(target)),
                    None => node.unsure = true,
                },
                ("allOf", Value::Array(parts)) => node.all.extend(parts.iter().map(|part| self.id(part))),
                ("anyOf" | "oneOf", Value::Array(variants)) => {
                    let ids = variants.iter().map(|variant| self.id(variant)).collect();
                    node.unions.push((keyword == "oneOf", ids));
                }
                ("properties", Value::Object(members)) => {
                    for (name, member) in members {
                        node.members.entry(name.clone()).or_default().schema = Some(self.id(member));
                    }
                }
                ("required", Value::Array(names)) => {
                    for name in names.iter().filter_map(Value::as_str) {
                        let member = node.members.entry(name.to_owned()).or_default();
                        if member.required.is_none() {
                            member.required = Some(node.required.len() as u32);
                            node.required.push(name.to_owned());
                        }
                    }
                }
                ("patternProperties", Value::Object(patterns)) => {
                    for (pattern, part) in patterns {
                        let check = Check::new("patternProperties", json!({"pattern": pattern}));
                        node.patterns.push((check, self.id(part)));
                    }
                }
                ("additionalProperties", rest) => node.additional = Some(self.id(rest)),
                ("propertyNames", names) => node.names = Some(Check::new("propertyNames", names.clone())),
                ("prefixItems", Value::Array(items)) => {
                    node.prefix.extend(items.iter().map(|item| self.id(item)));
                }
                ("items", Value::Array(items)) => {
                    node.prefix.extend(items.iter().map(|item| self.id(item)));
                }
                ("items", items) => node.items = Some(self.id(items)),
                ("unevaluatedProperties" | "unevaluatedItems", _) => {
                    node.checks.push((ALL, Check::new("unevaluatedProperties", schema.clone())));
                }
                ("$dynamicRef" | "$recursiveRef", _) => node.unsure = true,
                // Older drafts judge encoded text.
                ("contentEncoding" | "contentMediaType", _) => node.unsure |= self.is_old,
                (keyword, value) => {
                    if let Some((_, limit)) = LIMITS.iter().find(|(name, _)| *name == keyword) {
                        match value.as_f64() {
                            Some(number) => node.limits.push((*limit, number)),
                            None => node.unsure = true,
                        }
                    }
                    if let Some((group, types)) = CHECKED.iter().find(|(group, _)| group[0] == keyword) {
                        let named = group
                            .iter()
                            .filter_map(|name| Some(((*name).to_owned(), keywords.get(*name)?.clone())));
                        let check = Check::new(group[0], Value::Object(named.collect()));
                        let kinds =
                            types.iter().map(|name| bits_of_type(name)).reduce(|all, kind| all | kind);
                        node.checks.push((kinds.unwrap_or(ALL), check));
                    }
                }
            }
        }
        node
    }
}
