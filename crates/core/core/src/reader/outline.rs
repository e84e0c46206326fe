//! A schema as a table of nodes that the reader steps through.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use formwork_json::Kind;
use serde_json::{Value, json};

use super::build::nodes_of;
use super::check::Judge;
use super::node::{ALL, Id, Node, ROOT};
use crate::absence::declared::is_marked;
use crate::coercion::places::Coercions;
use crate::normalise::marked_members;
use crate::{Coercion, Structure, is_old_draft, normalise};

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
    pub(super) judge: Judge,
    /// Whether the contract converts values whose conversion loses nothing.
    pub(super) converts: bool,
    /// The names of members that the contract may add, remove or replace. Members of these names are never decided, wherever they are.
    pub(super) undecided: HashSet<String>,
}

impl Outline {
    /// Compiles a schema. Without a `structure` of the same schema, keywords that only a validator knows (`pattern`, `format`,
    /// `not` and others) are never decided. Members with the name of one that a text [may lack](crate::Absent) are not decided, because
    /// the contract accepts it as `null` or missing in the end.
    pub fn new(schema: &Value, structure: Option<Arc<dyn Structure>>) -> Self {
        let normal = normalise(schema);
        let nodes = nodes_of(schema, &normal);
        let definitions = normal.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
        let old_draft = is_old_draft(schema).then(|| schema["$schema"].clone());
        let old_draft = old_draft.map(|draft| if draft.is_null() { json!(DRAFT_7) } else { draft });
        let judge = Judge { structure, definitions, old_draft };
        let outline = Self { nodes, judge, converts: false, undecided: HashSet::new() };
        outline.without(marked_members(&normal, is_marked).0)
    }

    /// Returns an outline that allows every document.
    pub fn any() -> Self {
        let nodes = vec![Node { kinds: ALL, ..Node::default() }];
        Self { nodes, judge: Judge::default(), converts: false, undecided: HashSet::new() }
    }

    /// Allows the values that a contract converts, drops or replaces. Members with the name of one that it may drop, replace or guess are
    /// not decided.
    pub(crate) fn with_coercions(self, coercions: &Coercions) -> Self {
        match coercions.changed_members() {
            Some(names) => Self { converts: coercions.any(Coercion::converts), ..self }.without(names),
            None => Self::any(),
        }
    }

    /// Leaves the members of these names undecided, and what depends on them.
    pub(crate) fn without(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.undecided.extend(names);
        for node in &mut self.nodes {
            node.is_open = node.members.keys().any(|name| self.undecided.contains(name));
        }
        self
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
        static NONE: LazyLock<Node> = LazyLock::new(|| {
            let (items, additional) = (Some(UNDECIDED), Some(UNDECIDED));
            Node { kinds: ALL, unsure: true, items, additional, ..Node::default() }
        });
        self.nodes.get(id as usize).unwrap_or(&NONE)
    }

    pub(super) fn structure(&self) -> Option<&dyn Structure> {
        self.judge.structure.as_deref()
    }
}

/// The draft of a schema that has keywords of older drafts and no `$schema`.
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// The node of values that are not decided, with everything inside of them.
pub(super) const UNDECIDED: Id = Id::MAX;

/// The maximum number of references and variants that are followed for one value.
const MAX_JUMPS: u32 = 16;

crate::debug_fields!(Outline { nodes.len() });
