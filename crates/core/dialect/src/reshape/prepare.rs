//! Passes over all forms before they are reshaped.

use super::Texts;
use super::texts::is_any;
use crate::form::{
    Alternative, ArrayForm, Extra, Form, FormId, Forms, Notes, NumberForm, ObjectForm, Shape, StringForm, Use,
};
use foldhash::{HashMap, HashSet};

/// Adds the forms in which an encoded value would have another value of its kind as an alternative, because answers could not
/// be told apart: a plain string beside JSON in a string, a list of objects with a `path` beside a list of leaves.
pub(super) fn spread_texts(forms: &Forms, texts: &mut Texts) {
    let is_string = |alternative: &Alternative| match &alternative.shape {
        Shape::String(_) | Shape::Any => true,
        Shape::Literals(literals) => literals.values.iter().any(|literal| literal.value.is_string()),
        _ => false,
    };
    let has_path = |alternative: &Alternative| match &alternative.shape {
        Shape::Object(object) => object.properties.iter().any(|property| property.name == "path"),
        Shape::Literals(literals) => literals.values.iter().any(|literal| literal.value.is_object()),
        _ => false,
    };
    let is_list = |alternative: &Alternative| match &alternative.shape {
        Shape::Array(array) => array.items.iter().any(|items| forms.any(items.form, has_path)),
        _ => false,
    };
    spread(forms, &mut texts.json, is_string);
    spread(forms, &mut texts.leaves, is_list);
    texts.leaves.retain(|id| !texts.json.contains(id));
}

fn spread(forms: &Forms, texts: &mut HashSet<FormId>, is_string: impl Fn(&Alternative) -> bool) {
    if texts.is_empty() {
        return;
    }
    loop {
        let mut spread = Vec::new();
        for id in forms.ids().filter(|id| !texts.contains(id)) {
            let (mut has_text, mut has_string) = (false, false);
            let mut groups: HashMap<&str, Vec<FormId>> = HashMap::default();
            for alternative in &forms[id].alternatives {
                match &alternative.shape {
                    Shape::Same(inner) if leads_to(forms, *inner, texts) => has_text = true,
                    Shape::Same(inner) => has_string |= forms.any(*inner, &is_string),
                    _ => has_string |= is_string(alternative),
                }
            }
            if has_text && has_string {
                spread.push(id);
                continue;
            }
            for alternative in forms.alternatives(id) {
                match &alternative.shape {
                    Shape::Object(object) => {
                        for property in &object.properties {
                            groups.entry(&property.name).or_default().push(property.value.form);
                        }
                        groups
                            .entry("")
                            .or_default()
                            .extend(object.extras.iter().map(|extra| extra.value.form));
                    }
                    Shape::Array(array) => {
                        groups.entry("").or_default().extend(array.items.iter().map(|items| items.form))
                    }
                    _ => {}
                }
            }
            let is_text = |form: &&FormId| leads_to(forms, **form, texts);
            for group in groups.values().filter(|group| group.iter().any(|form| is_text(&form))) {
                let others = group.iter().filter(|form| !is_text(form));
                spread.extend(others.filter(|form| forms.any(**form, &is_string)));
            }
        }
        if spread.is_empty() {
            return;
        }
        texts.extend(spread);
    }
}

/// Returns whether a form, or a form among its alternatives, is one of these.
fn leads_to(forms: &Forms, id: FormId, these: &HashSet<FormId>) -> bool {
    forms.same(id).iter().any(|id| these.contains(id))
}

/// Replaces "any value" by a union of all types, for dialects without a notation for it. With bounds, objects and
/// arrays hold scalars only.
pub(super) fn spell_any(forms: &mut Forms, is_bounded: bool) {
    let all: Vec<FormId> = forms.ids().filter(|id| is_any(&forms[*id])).collect();
    if all.is_empty() {
        return;
    }
    let plain = [
        Shape::String(StringForm::default()),
        Shape::Number(NumberForm::default()),
        Shape::Boolean,
        Shape::Null,
    ];
    let plain = || plain.iter().cloned().map(Alternative::of);
    let any = forms.reserve();
    let inner = if is_bounded {
        forms.add(Form {
            alternatives: plain().collect(),
            notes: Notes::NONE,
            name: Some("scalar".to_owned()),
        })
    } else {
        any
    };
    let value = || Use::of(inner);
    let containers = [
        Shape::Array(ArrayForm { items: Some(value()), ..ArrayForm::default() }),
        Shape::Object(ObjectForm {
            extras: vec![Extra { pattern: None, is_rest: true, value: value() }],
            ..ObjectForm::default()
        }),
    ];
    let alternatives = plain().chain(containers.into_iter().map(Alternative::of)).collect();
    forms.set(any, Form { alternatives, notes: Notes::NONE, name: Some("any".to_owned()) });
    for id in all {
        for alternative in &mut forms.get_mut(id).alternatives {
            alternative.shape = Shape::Same(any);
        }
    }
}
