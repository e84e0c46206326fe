//! From a JSON Schema to the forms that dialects are written from.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use formwork_core::{Loss, LossKind, Refused, normalise_with_origins};
use serde_json::Value;

use crate::flat::{At, Definitions, Entered, Flat, Union};
use crate::form::{Alternative, Form, Literals, Shared};
use crate::kinds::{self, Kinds};
use crate::union;

/// How often a recursive definition is entered on one way through a document, where that is not too large.
const UNROLL: usize = 3;

/// The most forms that a schema is expanded to; then it is unrolled less.
const MAX_FORMS: usize = 50_000;

/// The most alternatives that come from choosing in several unions at once.
const MAX_PRODUCT: usize = 256;

/// How deep documents may become.
const MAX_DEPTH: usize = 64;

/// A schema in forms, with what they cannot say.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) form: Shared,
    pub(crate) losses: BTreeSet<Receipt>,
}

/// A loss that sorts: pointer, keyword, kind.
pub(crate) type Receipt = (String, String, LossKind);

/// The receipt as it is handed out.
pub(crate) fn losses(receipts: BTreeSet<Receipt>) -> Vec<Loss> {
    receipts.into_iter().map(|(pointer, keyword, kind)| Loss { pointer, keyword, kind }).collect()
}

/// Expands a schema.
pub(crate) fn expand(schema: &Value, dialect: &str) -> Result<Expanded, Refused> {
    let refused = |message: &str| Refused {
        dialect: dialect.to_owned(),
        pointer: String::new(),
        message: message.to_owned(),
    };
    let (normal, origins) = normalise_with_origins(schema);
    let mut definitions = Definitions::new(&normal);
    let rounds = if definitions.is_recursive() { UNROLL } else { 1 };
    for unroll in (1..=rounds).rev() {
        definitions.unroll = unroll;
        let mut expander = Expander::new(&definitions, &origins);
        let root = At { node: &normal, pointer: String::new() };
        let form = expander.form(vec![root], &Entered::new(), 0);
        match form {
            _ if expander.forms > MAX_FORMS => {}
            Some(form) => return Ok(Expanded { form, losses: expander.losses }),
            None => return Err(refused("no value satisfies it")),
        }
    }
    Err(refused("it is too large; split it, or ask for its parts one by one"))
}

pub(crate) struct Expander<'a> {
    pub(crate) definitions: &'a Definitions<'a>,
    origins: &'a BTreeMap<String, String>,
    losses: BTreeSet<Receipt>,
    known: BTreeMap<(Vec<String>, Entered<'a>), Option<Shared>>,
    forms: usize,
}

impl<'a> Expander<'a> {
    fn new(definitions: &'a Definitions<'a>, origins: &'a BTreeMap<String, String>) -> Self {
        Self { definitions, origins, losses: BTreeSet::new(), known: BTreeMap::new(), forms: 0 }
    }

    /// What satisfies all of these schemas; `None` if nothing does.
    pub(crate) fn form(
        &mut self,
        schemas: Vec<At<'a>>,
        entered: &Entered<'a>,
        depth: usize,
    ) -> Option<Shared> {
        let key = (schemas.iter().map(|at| at.pointer.clone()).collect(), entered.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        self.forms += 1;
        if depth > MAX_DEPTH || self.forms > MAX_FORMS {
            return None;
        }
        let form = self.expand(schemas, entered, depth).map(Rc::new);
        self.known.insert(key, form.clone());
        form
    }

    fn expand(&mut self, schemas: Vec<At<'a>>, entered: &Entered<'a>, depth: usize) -> Option<Form> {
        let mut flat = Flat { entered: entered.clone(), ..Flat::default() };
        for at in schemas {
            if !self.definitions.flatten(at, &mut flat) {
                return None;
            }
        }
        let description =
            flat.members.iter().find_map(|at| at.node["description"].as_str()).map(str::to_owned);
        self.bound_unions(&mut flat.unions);
        let mut alternatives = Vec::new();
        self.choose(flat, depth, &mut alternatives);
        if let Some(any) = alternatives.iter().position(|one| matches!(one, Alternative::Any(_))) {
            alternatives = vec![alternatives.swap_remove(any)];
        }
        union::merge(&mut alternatives);
        (!alternatives.is_empty()).then_some(Form { alternatives, description })
    }

    /// Leaves out unions whose combinations would be too many.
    fn bound_unions(&mut self, unions: &mut Vec<Union<'a>>) {
        let mut product = 1_usize;
        let mut first = true;
        let mut dropped = Vec::new();
        unions.retain(|union| {
            let next = product.saturating_mul(union.branches.len());
            let keep = first || next <= MAX_PRODUCT;
            if keep {
                product = next;
            } else {
                dropped.extend(union.branches.first().map(|branch| (branch.pointer.clone(), union.keyword)));
            }
            first = false;
            keep
        });
        for (pointer, keyword) in dropped {
            let at = pointer.rsplit_once(&format!("/{keyword}")).map_or("", |(at, _)| at).to_owned();
            self.lose(&at, keyword, LossKind::Unenforced);
        }
    }

    /// Takes each branch of each union in turn.
    fn choose(&mut self, mut flat: Flat<'a>, depth: usize, out: &mut Vec<Alternative>) {
        if flat.unions.is_empty() {
            out.extend(self.alternatives(&flat, depth));
            return;
        }
        let union = flat.unions.remove(0);
        if union.keyword == "oneOf" && !union::are_disjoint(self.definitions, &union.branches) {
            let at = union.branches.first().and_then(|first| first.pointer.rsplit_once("/oneOf"));
            self.lose(at.map_or("", |(at, _)| at), "oneOf", LossKind::Loosened);
        }
        for branch in union.branches {
            let mut chosen = flat.clone();
            if self.definitions.flatten(branch, &mut chosen) {
                self.choose(chosen, depth, out);
            }
        }
    }

    /// What satisfies schemas without unions.
    fn alternatives(&mut self, flat: &Flat<'a>, depth: usize) -> Vec<Alternative> {
        let members = &flat.members;
        self.note_unsaid(members);
        let kinds = members.iter().fold(Kinds::ALL, |kinds, at| kinds.and(Kinds::of(at.node)));
        let kinds = kinds::without_negated(kinds, members);
        if let Some(literals) = kinds::literals(members, kinds) {
            let listed = |at: &&At<'a>| at.node.get("enum").or(at.node.get("const")).is_some();
            let origin = members.iter().find(listed).map(|at| self.origin(&at.pointer)).unwrap_or_default();
            let literals = Literals { values: literals, origin };
            return if literals.values.is_empty() {
                Vec::new()
            } else {
                vec![Alternative::Literals(literals)]
            };
        }
        let meant = if kinds == Kinds::ALL { Kinds::meant_by(members) } else { kinds };
        if meant == Kinds::ALL {
            let origin = members.first().map(|at| self.origin(&at.pointer)).unwrap_or_default();
            return vec![Alternative::Any(origin)];
        }
        if meant != kinds {
            self.lose_each(members, "type", LossKind::Tightened);
        }
        let mut out = Vec::new();
        if meant.object {
            out.extend(self.object(flat, depth).map(Alternative::Object));
        }
        if meant.array {
            out.extend(self.array(flat, depth).map(Alternative::Array));
        }
        if meant.string {
            out.extend(self.string(members).map(Alternative::String));
        }
        if meant.number || meant.integer {
            out.extend(self.number(members, !meant.number).map(Alternative::Number));
        }
        if meant.boolean {
            out.push(Alternative::Boolean);
        }
        if meant.null {
            out.push(Alternative::Null);
        }
        out
    }

    /// Notes the keywords that no form says.
    fn note_unsaid(&mut self, members: &[At<'a>]) {
        for at in members {
            for (keyword, value) in at.keywords() {
                let unsaid = match keyword {
                    "contains" | "minContains" | "maxContains" | "if" | "dependentRequired"
                    | "dependentSchemas" => true,
                    "uniqueItems" => value == &Value::Bool(true),
                    "unevaluatedProperties" | "unevaluatedItems" => !value.is_boolean(),
                    "propertyNames" => !kinds::is_said_of_names(value),
                    "not" => !kinds::is_said_negation(value),
                    "$ref" => self.definitions.target(at.node).is_none(),
                    _ => false,
                };
                if unsaid {
                    self.lose(&at.pointer, keyword, LossKind::Unenforced);
                }
            }
        }
    }

    pub(crate) fn lose_each(&mut self, members: &[At<'a>], keyword: &str, kind: LossKind) {
        for at in members.iter().take(1) {
            self.lose(&at.pointer, keyword, kind);
        }
    }

    pub(crate) fn lose(&mut self, pointer: &str, keyword: &str, kind: LossKind) {
        self.losses.insert((self.origin(pointer), keyword.to_owned(), kind));
    }

    /// The place in the original schema of a place in the normalised one.
    pub(crate) fn origin(&self, pointer: &str) -> String {
        let Some(rest) = pointer.strip_prefix("/$defs/") else { return pointer.to_owned() };
        let (name, rest) =
            rest.split_once('/').map_or((rest, String::new()), |(name, rest)| (name, format!("/{rest}")));
        match self.origins.get(name) {
            Some(origin) => format!("{origin}{rest}"),
            None => pointer.to_owned(),
        }
    }
}
