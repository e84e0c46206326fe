//! Lists in place of optional members and unions, so that a schema has no more optional members and unions than a provider takes.
//!
//! A list of at most one item says the same as an optional member and is none, and an object of lists says the same as a union. Both are
//! harder to read for a model, so only as many are written as the limits ask for.

use foldhash::{HashMap, HashSet};
use formwork_core::Lift;

use super::{Reshaper, Siblings, Texts, closed, required};
use crate::depth::reached;
use crate::form::{Alternative, ArrayForm, Form, FormId, Forms, Notes, ObjectForm, Property, Shape, Use};
use crate::place::PlaceId;
use crate::profile::Limits;

/// The forms that are written as lists.
#[derive(Debug, Default)]
pub(super) struct Savings {
    /// The number of optional members of the objects of a form that are lists: the last ones.
    listed: HashMap<FormId, usize>,
    /// The forms whose alternatives are lists.
    chosen: HashSet<FormId>,
}

impl Savings {
    /// Returns the members of an object, within the form `source`, that are written as lists.
    pub(super) fn listed(&self, source: FormId, object: &ObjectForm) -> Vec<String> {
        let count = self.listed.get(&source).copied().unwrap_or_default();
        let optional = object.properties.iter().filter(|property| !property.required);
        let names: Vec<String> = optional.map(|property| property.name.clone()).collect();
        names[names.len().saturating_sub(count)..].to_vec()
    }

    pub(super) fn is_chosen(&self, source: FormId) -> bool {
        self.chosen.contains(&source)
    }

    /// Adds what brings these reshaped forms within the limits, as far as that is possible; returns whether something was added.
    pub(super) fn extend(
        &mut self,
        source: &Forms,
        out: &Forms,
        sources: &[Option<FormId>],
        siblings: &HashMap<FormId, Siblings>,
        texts: &Texts,
        limits: &Limits,
    ) -> bool {
        let count = (self.listed.values().sum::<usize>(), self.chosen.len());
        let reached = reached(out);
        let optional = reached.iter().map(|id| optional_members(&out[*id])).sum::<usize>();
        let unions = reached.iter().map(|id| unions(&out[*id])).sum::<usize>();
        let of_source =
            |id: &FormId| sources.get(id.index()).copied().flatten().filter(|id| !texts.contains(id));
        let reached: HashSet<FormId> = reached.iter().filter_map(of_source).collect();
        self.list(source, &reached, siblings, optional.saturating_sub(limits.optional));
        self.choose(source, &reached, unions.saturating_sub(limits.unions));
        count != (self.listed.values().sum::<usize>(), self.chosen.len())
    }

    /// Turns this number of further optional members into lists, in the objects with the most optional members.
    fn list(
        &mut self,
        source: &Forms,
        reached: &HashSet<FormId>,
        siblings: &HashMap<FormId, Siblings>,
        mut surplus: usize,
    ) {
        // Beside another object, a list could be mistaken for a member that is itself a list.
        let is_alone = |id: &&FormId| siblings.get(id).is_none_or(|siblings| siblings.objects < 2);
        let left = |id: &FormId| {
            let listed = self.listed.get(id).copied().unwrap_or_default();
            (optional_members(&source[*id]).saturating_sub(listed), *id)
        };
        let mut objects: Vec<(usize, FormId)> = reached.iter().filter(is_alone).map(left).collect();
        objects.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        for (left, id) in objects {
            let more = left.min(surplus);
            surplus -= more;
            if more > 0 {
                *self.listed.entry(id).or_default() += more;
            }
        }
    }

    /// Writes this number of further unions as objects of lists, those with the fewest variants first.
    fn choose(&mut self, source: &Forms, reached: &HashSet<FormId>, surplus: usize) {
        // The variants of a union must be distinguishable, and a list of leaves is not.
        let variants = source.ids().filter(|id| source[*id].alternatives.len() > 1 && !self.is_chosen(*id));
        let mut within = HashSet::default();
        for id in variants {
            for alternative in &source[id].alternatives {
                if let Shape::Same(inner) = alternative.shape {
                    within.insert(inner);
                }
            }
        }
        let is_open =
            |id: &&FormId| unions(&source[**id]) > 0 && !within.contains(*id) && !self.is_chosen(**id);
        let mut unions: Vec<FormId> = reached.iter().filter(is_open).copied().collect();
        unions.sort_by_key(|id| (source[*id].alternatives.len(), *id));
        self.chosen.extend(unions.into_iter().take(surplus));
    }
}

fn optional_members(form: &Form) -> usize {
    let of = |alternative: &Alternative| match &alternative.shape {
        Shape::Object(object) => object.properties.iter().filter(|property| !property.required).count(),
        _ => 0,
    };
    form.alternatives.iter().map(of).sum()
}

/// Returns the number of unions in the text of a form.
fn unions(form: &Form) -> usize {
    let mixed = form.alternatives.iter().filter(|alternative| match &alternative.shape {
        Shape::Literals(literals) => literals.by_kind().len() > 1,
        _ => false,
    });
    mixed.count() + usize::from(form.alternatives.len() > 1)
}

impl Reshaper<'_> {
    /// Writes a member that may be left out as a list that may be empty.
    pub(super) fn as_list(&mut self, property: &mut Property) {
        property.required = true;
        let notes = std::mem::take(&mut property.value.notes);
        let list = self.list_of(Use::of(property.value.form));
        property.value = Use { form: list, notes };
        property.value.notes.or(Notes::described("A list of one item, empty if it is left out."));
    }

    fn list_of(&mut self, item: Use) -> FormId {
        let list = ArrayForm { items: Some(item), ..ArrayForm::default() };
        self.add(Alternative::of(Shape::Array(list)))
    }

    /// Writes the alternatives of a form as the lists of an object.
    pub(super) fn choice(&mut self, form: Form) -> Form {
        let mut variants: Vec<(String, Alternative)> = Vec::new();
        let mut null = false;
        for alternative in form.alternatives {
            let split = match &alternative.shape {
                Shape::Literals(literals) if alternative.lifts.is_empty() => literals.by_kind(),
                _ => Vec::new(),
            };
            if split.len() < 2 {
                let name = variant(&alternative.shape);
                null |= name == "null";
                variants.push((name.to_owned(), alternative));
                continue;
            }
            for (kind, literals) in split {
                null |= kind == "null";
                let shape = Shape::Literals(literals);
                variants.push((kind.to_owned(), Alternative { shape, ..alternative.clone() }));
            }
        }
        let mut properties: Vec<Property> = Vec::new();
        for (name, variant) in variants.into_iter().filter(|(name, _)| name != "null") {
            let taken = properties.iter().filter(|known| known.name.trim_end_matches('_') == name).count();
            let item = match variant {
                Alternative { shape: Shape::Same(form), notes, .. } => Use { form, notes },
                other => Use::of(self.add(other)),
            };
            let list = Use::of(self.list_of(item));
            properties.push(required(&format!("{name}{}", "_".repeat(taken)), list));
        }
        let names = properties.iter().map(|property| property.name.clone()).collect();
        let object = closed(properties, PlaceId::default());
        let mut notes = form.notes;
        notes.or(Notes::described(if null {
            "One of the lists has one item, or none has for null."
        } else {
            "One of the lists has one item, the others have none."
        }));
        let choice = Alternative::of(Shape::Object(object)).with_lifts(vec![Lift::Choice { names, null }]);
        Form { alternatives: vec![choice], notes, name: form.name }
    }
}

/// The name of a variant: its type.
fn variant(shape: &Shape) -> &'static str {
    match shape {
        Shape::Null => "null",
        Shape::Boolean => "boolean",
        Shape::Number(number) if number.integer => "integer",
        Shape::Number(_) => "number",
        Shape::Array(_) => "array",
        Shape::Object(_) => "object",
        Shape::Literals(literals) => literals.by_kind().first().map_or("value", |(kind, _)| kind),
        Shape::String(_) => "string",
        Shape::Any | Shape::Same(_) => "value",
    }
}
