//! Converts forms that a dialect cannot express to JSON in a string.

use foldhash::{HashMap, HashSet};
use formwork_core::Lift;
use serde_json::{Value, json};

use crate::depth::circles;
use crate::form::{Alternative, Form, FormId, Forms, Literal, Literals, Shape};
use crate::profile::{Any, Enums, Profile, References};

/// Returns the forms that become JSON in a string. An alternative among others is moved to a form of its own first.
pub(super) fn unsayable(forms: &mut Forms, profile: &Profile) -> HashSet<FormId> {
    let mut texts = HashSet::default();
    for id in forms.ids() {
        let mut alternatives = std::mem::take(&mut forms.get_mut(id).alternatives);
        let is_alone = alternatives.len() == 1;
        for alternative in &mut alternatives {
            if !profile.empty_objects {
                list_empty_object(&mut alternative.shape);
            }
            if !is_unsayable(&alternative.shape, profile) {
                continue;
            }
            if is_alone {
                texts.insert(id);
            } else {
                let shape = std::mem::replace(&mut alternative.shape, Shape::Any);
                let own = forms.add_shape(shape);
                alternative.shape = Shape::Same(own);
                texts.insert(own);
            }
        }
        forms.get_mut(id).alternatives = alternatives;
    }
    if profile.references == References::Inlined {
        open_circles(forms, &mut texts);
    }
    texts
}

fn is_unsayable(shape: &Shape, profile: &Profile) -> bool {
    match shape {
        Shape::Any => matches!(profile.any, Any::Text | Any::Leaves),
        Shape::Literals(literals) => {
            let is_string = |literal: &Literal| literal.value.is_string() || literal.value.is_null();
            profile.enums == Enums::Strings && !literals.values.iter().all(is_string)
        }
        _ => false,
    }
}

/// Replaces an object without members by the only value that it allows.
fn list_empty_object(shape: &mut Shape) {
    let Shape::Object(object) = shape else { return };
    if object.properties.is_empty() && (object.extras.is_empty() || object.max == Some(0)) {
        let values = vec![Literal { value: json!({}), description: None }];
        *shape = Shape::Literals(Literals { values, origin: object.origin });
    }
}

/// Replaces recursive uses of a form by JSON in a string.
fn open_circles(forms: &mut Forms, texts: &mut HashSet<FormId>) {
    let mut known = HashMap::default();
    for (from, to) in circles(forms) {
        let text = *known.entry(to).or_insert_with(|| {
            // The outline of the string refers to itself by this name.
            let name = forms[to].name.clone();
            forms.add(Form { name, ..Form::of(Shape::Same(to)) })
        });
        texts.insert(text);
        for alternative in &mut forms.get_mut(from).alternatives {
            alternative.shape.each_inner_mut(|inner| {
                if *inner == to {
                    *inner = text;
                }
            });
        }
    }
}

/// Returns whether a form allows any value.
pub(super) fn is_any(form: &Form) -> bool {
    matches!(form.alternatives.as_slice(), [only] if only.shape == Shape::Any)
}

/// Returns the strings for the values of a form that enumerates all its values; `None` for other forms.
pub(super) fn listed(form: &Form) -> Option<Alternative> {
    let mut values = Vec::new();
    let mut origin = None;
    let plain = |value: Value| Literal { value, description: None };
    for alternative in &form.alternatives {
        match &alternative.shape {
            Shape::Literals(literals) => {
                origin = origin.or(Some(literals.origin));
                values.extend(literals.values.iter().cloned());
            }
            Shape::Null => values.push(plain(Value::Null)),
            Shape::Boolean => values.extend([false, true].map(|value| plain(json!(value)))),
            _ => return None,
        }
    }
    let values = values.into_iter().map(|literal| {
        let value = Value::String(literal.value.to_string());
        Literal { value, ..literal }
    });
    let literals = Literals { values: values.collect(), origin: origin? };
    Some(Alternative::of(Shape::Literals(literals)).with_lifts(vec![Lift::ParseJson]))
}
