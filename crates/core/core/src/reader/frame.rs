//! The schemas that one open value is compared with.

use std::collections::{HashMap, HashSet};

use formwork_json::{JsonPath, Kind, Segment};
use serde::{Deserialize, Serialize};

use super::node::Id;
use super::outline::Outline;

/// An open value: the nodes of the schema that describe it, and what follows for the schema around them if one rejects it.
///
/// A node describes a value at most once, however many ways of the schema lead to it, so the work for a value is limited by the
/// size of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) evals: Vec<Eval>,
    /// The dependents of evaluations, as linked lists.
    links: Vec<Link>,
    groups: Vec<Group>,
    /// The name of the current member.
    pub(super) key: Option<String>,
    /// The number of items or members that have begun.
    pub(super) count: usize,
    /// The number of members whose `null` stands for an absent member.
    pub(super) absent: usize,
    /// Whether there is such a member in the value or inside of it, or a value that may be converted.
    pub(super) has_absent: bool,
    /// The nodes that may take the value only after it is converted, each with the evaluation of the container that depends on it.
    #[serde(default)]
    pub(super) converted: Vec<(Id, Option<u32>)>,
    /// Whether the value, or one inside of it, may have to be converted.
    #[serde(default)]
    pub(super) is_soft: bool,
}

/// The evaluation of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Eval {
    pub(super) node: Id,
    /// Whether the value can still satisfy the node.
    pub(super) alive: bool,
    /// Whether a keyword was not decided.
    pub(super) unsure: bool,
    /// The required members so far, as bits.
    seen: Vec<u64>,
    /// The first of its links.
    link: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Link {
    to: Dependent,
    next: Option<u32>,
}

/// The dependent of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Dependent {
    /// The document.
    Document,
    /// The evaluation of this index of the container.
    Outer(u32),
    /// The evaluation of this index of the same value, which includes it.
    Whole(u32),
    /// The union of this index, of which it is a branch.
    Branch(u32),
}

/// A union that has to have a branch which accepts the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    owner: u32,
    /// The number of branches that can still accept the value.
    live: u32,
    /// Whether exactly one branch has to accept it.
    one: bool,
}

/// The reason why an evaluation fails: the keyword, and the path below the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) keyword: &'static str,
    pub(super) expected: String,
    pub(super) below: Option<Segment>,
    /// The number of containers around the value, once the reason has left it.
    pub(super) depth: Option<usize>,
}

impl Reason {
    pub(super) fn new(keyword: &'static str) -> Self {
        Self { keyword, expected: String::new(), below: None, depth: None }
    }

    pub(super) fn expected(self, expected: impl ToString) -> Self {
        Self { expected: expected.to_string(), ..self }
    }

    pub(super) fn below(self, name: &str) -> Self {
        Self { below: Some(Segment::Key(name.to_owned())), ..self }
    }
}

impl Eval {
    pub(super) fn see(&mut self, number: u32) {
        let (word, bit) = (number as usize / 64, number % 64);
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if let Some(word) = self.seen.get_mut(word) {
            *word |= 1 << bit;
        }
    }

    pub(super) fn has_seen(&self, number: usize) -> bool {
        self.seen.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// The evaluations of one value that are known so far, by their nodes; a list as long as it is short.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<Id, u32>);

impl Frame {
    pub(super) fn new(kind: Kind, start: usize) -> Self {
        Self {
            kind,
            start,
            evals: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
            key: None,
            count: 0,
            absent: 0,
            has_absent: false,
            converted: Vec::new(),
            is_soft: false,
        }
    }

    /// Makes a frame that was used before ready for another value.
    pub(super) fn reset(&mut self, kind: Kind, start: usize) {
        (self.kind, self.start, self.count) = (kind, start, 0);
        (self.absent, self.has_absent, self.is_soft) = (0, false, false);
        self.converted.clear();
        self.evals.clear();
        self.links.clear();
        self.groups.clear();
        self.key = None;
    }

    /// Sets the name of the current member.
    pub(super) fn name(&mut self, name: &str) {
        let key = self.key.get_or_insert_default();
        key.clear();
        key.push_str(name);
    }

    /// Returns the step from the value to the part that is open in it.
    pub(super) fn segment(&self) -> Segment {
        match &self.key {
            Some(key) => Segment::Key(key.clone()),
            None => Segment::Index(self.count.saturating_sub(1)),
        }
    }

    /// Adds the evaluation of a node and of everything that it includes.
    pub(super) fn add(&mut self, outline: &Outline, known: &mut Known, node: Id, to: Dependent) {
        let (mut first, mut open) = (Some((node, to)), Vec::new());
        while let Some((id, to)) = first.take().or_else(|| open.pop()) {
            let next = self.evals.len() as u32;
            let found = if next < FEW {
                self.evals.iter().position(|eval| eval.node == id).map(|at| at as u32)
            } else {
                if known.0.is_empty() {
                    known.0.extend(self.evals.iter().zip(0..).map(|(eval, at)| (eval.node, at)));
                }
                known.0.get(&id).copied()
            };
            let link = self.links.len() as u32;
            let at = found.unwrap_or(next);
            self.links.push(Link { to, next: self.evals.get(at as usize).and_then(|eval| eval.link) });
            if let Some(eval) = self.evals.get_mut(at as usize) {
                eval.link = Some(link);
                continue;
            }
            let part = outline.node(id);
            self.evals.push(Eval {
                node: id,
                alive: true,
                unsure: part.unsure,
                seen: Vec::new(),
                link: Some(link),
            });
            if next >= FEW {
                known.0.insert(id, next);
            }
            open.extend(part.all.iter().map(|inner| (*inner, Dependent::Whole(next))));
            for (one, branches) in &part.unions {
                let group = self.groups.len() as u32;
                // A branch that allows no value of this kind is left out.
                let fitting = branches.iter().filter(|branch| outline.node(**branch).allows(self.kind));
                let before = open.len();
                open.extend(fitting.map(|branch| (*branch, Dependent::Branch(group))));
                self.groups.push(Group { owner: next, live: (open.len() - before) as u32, one: *one });
            }
        }
    }

    /// Adds the evaluation of a node, or, if the value may be converted for it, the node alone.
    pub(super) fn take(&mut self, outline: &Outline, known: &mut Known, node: Id, outer: Option<u32>) {
        if outline.may_convert(node, self.kind) {
            self.converted.push((node, outer));
            (self.is_soft, self.has_absent) = (true, true);
        } else {
            self.add(outline, known, node, outer.map_or(Dependent::Document, Dependent::Outer));
        }
    }

    /// Returns unions without any branch for the kind of the value.
    pub(super) fn empty_unions(&self) -> Vec<(usize, &'static str)> {
        let empty = self.groups.iter().filter(|group| group.live == 0);
        empty.map(|group| (group.owner as usize, union(*group))).collect()
    }

    /// Ends an evaluation without success, and all that depend on it in this value. Returns the dependents outside of the value, each
    /// with the reason.
    pub(super) fn fail(&mut self, eval: usize, reason: Reason) -> Vec<(Dependent, Reason)> {
        let (mut outside, mut open) = (Vec::new(), vec![(eval, reason)]);
        while let Some((at, reason)) = open.pop() {
            let Some(eval) = self.evals.get_mut(at).filter(|eval| eval.alive) else { continue };
            eval.alive = false;
            let mut next = eval.link;
            while let Some(link) = next.and_then(|link| self.links.get(link as usize)) {
                next = link.next;
                match link.to {
                    Dependent::Whole(whole) => open.push((whole as usize, reason.clone())),
                    Dependent::Branch(group) => {
                        if let Some(group) = self.groups.get_mut(group as usize) {
                            group.live -= 1;
                            if group.live == 0 {
                                open.push((group.owner as usize, Reason::new(union(*group))));
                            }
                        }
                    }
                    to => outside.push((to, reason.clone())),
                }
            }
        }
        outside
    }

    /// Passes on what is not decided inside of the value, and returns the `oneOf`s of which two branches accept it.
    pub(super) fn settle(&mut self) -> Vec<usize> {
        if self.groups.is_empty() && !self.evals.iter().any(|eval| eval.unsure) {
            return Vec::new();
        }
        loop {
            // For each union, the number of branches that accept the value, and of those that may.
            let mut fits = vec![(0u32, 0u32); self.groups.len()];
            let mut unsure = Vec::new();
            for eval in self.evals.iter().filter(|eval| eval.alive) {
                let mut next = eval.link;
                while let Some(link) = next.and_then(|link| self.links.get(link as usize)) {
                    next = link.next;
                    match link.to {
                        Dependent::Whole(whole) if eval.unsure => unsure.push(whole),
                        Dependent::Branch(group) => {
                            if let Some((sure, maybe)) = fits.get_mut(group as usize) {
                                *if eval.unsure { maybe } else { sure } += 1;
                            }
                        }
                        _ => {}
                    }
                }
            }
            let mut twice = Vec::new();
            for (group, (sure, maybe)) in self.groups.iter().zip(fits) {
                match (group.one, sure, maybe) {
                    (true, 2.., _) => twice.push(group.owner as usize),
                    (true, _, 1..) | (false, 0, 1..) => unsure.push(group.owner),
                    _ => {}
                }
            }
            let mut changed = false;
            for owner in unsure {
                if let Some(eval) = self.evals.get_mut(owner as usize).filter(|eval| !eval.unsure) {
                    (eval.unsure, changed) = (true, true);
                }
            }
            if !changed {
                twice.retain(|owner| self.evals.get(*owner).is_some_and(|eval| eval.alive));
                // A union around another one is decided after it.
                let around: HashSet<usize> = twice.iter().flat_map(|owner| self.around(*owner)).collect();
                twice.retain(|owner| !around.contains(owner));
                return twice;
            }
        }
    }

    /// Returns the evaluations of the same value that depend on this one.
    fn around(&self, eval: usize) -> HashSet<usize> {
        let (mut found, mut open) = (HashSet::new(), vec![eval]);
        while let Some(eval) = open.pop().and_then(|at| self.evals.get(at)) {
            let mut next = eval.link;
            while let Some(link) = next.and_then(|link| self.links.get(link as usize)) {
                next = link.next;
                let owner = match link.to {
                    Dependent::Whole(whole) => Some(whole),
                    Dependent::Branch(group) => self.groups.get(group as usize).map(|group| group.owner),
                    _ => None,
                };
                open.extend(owner.map(|owner| owner as usize).filter(|owner| found.insert(*owner)));
            }
        }
        found
    }

    /// Returns the evaluations of the container that depend on undecided evaluations of this value.
    pub(super) fn undecided(&self) -> impl Iterator<Item = Dependent> {
        self.evals.iter().filter(|eval| eval.alive && eval.unsure).flat_map(|eval| {
            let first = eval.link.and_then(|link| self.links.get(link as usize));
            let links =
                std::iter::successors(first, |link| self.links.get(link.next? as usize)).map(|link| link.to);
            links.filter(|to| matches!(to, Dependent::Outer(_) | Dependent::Document))
        })
    }
}

/// The number of evaluations up to which they are searched one by one.
const FEW: u32 = 8;

const fn union(group: Group) -> &'static str {
    if group.one { "oneOf" } else { "anyOf" }
}

/// Returns the path of the part that is open in the innermost of these values.
pub(super) fn path_of(frames: &[Frame]) -> JsonPath {
    frames.iter().map(Frame::segment).collect()
}
