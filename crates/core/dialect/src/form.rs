//! Forms: a schema without references, `allOf` and overlapping keywords.
//!
//! Every dialect is written from forms, which have one notation for each of the many equivalent ones of JSON Schema. A
//! form is a list of alternatives. Forms refer to each other by index, so that definitions stay shared, and recursive
//! ones stay recursive.

use formwork_core::Lift;
use serde_json::{Number, Value};

use crate::place::{PlaceId, Places};

/// The index of a form in its [`Forms`].
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FormId(u32);

/// The forms of one schema.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    forms: Vec<Form>,
    pub(crate) root: FormId,
    pub(crate) places: Places,
}

impl Forms {
    /// Creates an empty list of forms, for the same document as `places`.
    pub(crate) fn new(places: Places) -> Self {
        Self { forms: Vec::new(), root: FormId(0), places }
    }

    /// Adds a form.
    pub(crate) fn add(&mut self, form: Form) -> FormId {
        let id = FormId(u32::try_from(self.forms.len()).unwrap_or(u32::MAX));
        self.forms.push(form);
        id
    }

    /// Adds a form of one alternative without annotations.
    pub(crate) fn add_shape(&mut self, shape: Shape) -> FormId {
        self.add(Form::of(shape))
    }

    /// Adds an empty form that [`Forms::set`] fills later, so that forms inside of it can refer to it.
    pub(crate) fn reserve(&mut self) -> FormId {
        self.add(Form::default())
    }

    pub(crate) fn set(&mut self, id: FormId, form: Form) {
        if let Some(place) = self.forms.get_mut(id.index()) {
            *place = form;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.forms.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FormId> + use<> {
        (0..self.forms.len() as u32).map(FormId)
    }

    pub(crate) fn get_mut(&mut self, id: FormId) -> &mut Form {
        &mut self.forms[id.index()]
    }

    /// Returns a form and the forms among its alternatives, and among theirs.
    pub(crate) fn same(&self, id: FormId) -> Vec<FormId> {
        let mut same = vec![id];
        let mut next = 0;
        while let Some(id) = same.get(next).copied() {
            next += 1;
            for alternative in &self[id].alternatives {
                if let Shape::Same(inner) = alternative.shape
                    && !same.contains(&inner)
                {
                    same.push(inner);
                }
            }
        }
        same
    }

    /// Returns every alternative of a form, including those of forms among its alternatives.
    pub(crate) fn alternatives(&self, id: FormId) -> impl Iterator<Item = &Alternative> {
        let all = self.same(id).into_iter().flat_map(|id| &self[id].alternatives);
        all.filter(|alternative| !matches!(alternative.shape, Shape::Same(_)))
    }

    /// Returns whether one of the alternatives of a form satisfies a condition.
    pub(crate) fn any(&self, id: FormId, condition: impl Fn(&Alternative) -> bool) -> bool {
        self.alternatives(id).any(condition)
    }

    /// Returns whether `null` is a value of this form.
    pub(crate) fn allows_null(&self, id: FormId) -> bool {
        self.any(id, |alternative| match &alternative.shape {
            Shape::Null | Shape::Any => true,
            Shape::Literals(literals) => literals.values.iter().any(|literal| literal.value.is_null()),
            _ => false,
        })
    }
}

impl FormId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::ops::Index<FormId> for Forms {
    type Output = Form;

    fn index(&self, id: FormId) -> &Form {
        &self.forms[id.index()]
    }
}

/// The values that a schema allows, as alternatives.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Form {
    pub(crate) alternatives: Vec<Alternative>,
    /// The annotations of the schema itself; [`Use`] has those of the place of use.
    pub(crate) notes: Notes,
    /// The name of the definition in the original schema.
    pub(crate) name: Option<String>,
}

impl Form {
    pub(crate) fn of(shape: Shape) -> Self {
        Self { alternatives: vec![Alternative::of(shape)], ..Self::default() }
    }
}

/// One alternative of the values that a form allows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alternative {
    pub(crate) shape: Shape,
    /// The annotations of the branch of `anyOf` or `oneOf`.
    pub(crate) notes: Notes,
    /// Whether the schema only allows it because it does not constrain the type.
    pub(crate) is_unsaid: bool,
    /// The operations that lift a value of the lowered form, in this order.
    pub(crate) lifts: Vec<Lift>,
}

impl Alternative {
    pub(crate) const fn of(shape: Shape) -> Self {
        Self { shape, notes: Notes::NONE, is_unsaid: false, lifts: Vec::new() }
    }

    #[must_use]
    pub(crate) fn with_lifts(self, lifts: Vec<Lift>) -> Self {
        Self { lifts, ..self }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// Any value.
    Any,
    /// The values of another form.
    Same(FormId),
    /// One of these values.
    Literals(Literals),
    Null,
    Boolean,
    Number(NumberForm),
    String(StringForm),
    Array(ArrayForm),
    Object(ObjectForm),
}

impl Shape {
    /// Calls `each` for the forms directly inside.
    pub(crate) fn each_inner(&self, mut each: impl FnMut(FormId)) {
        match self {
            Self::Same(form) => each(*form),
            Self::Array(array) => {
                array.prefix.iter().chain(&array.items).for_each(|item| each(item.form));
            }
            Self::Object(object) => {
                object.properties.iter().for_each(|property| each(property.value.form));
                object.extras.iter().for_each(|extra| each(extra.value.form));
            }
            _ => {}
        }
    }

    /// Calls `each` for the forms directly inside, which it may replace.
    pub(crate) fn each_inner_mut(&mut self, mut each: impl FnMut(&mut FormId)) {
        match self {
            Self::Same(form) => each(form),
            Self::Array(array) => {
                array.prefix.iter_mut().chain(&mut array.items).for_each(|item| each(&mut item.form));
            }
            Self::Object(object) => {
                object.properties.iter_mut().for_each(|property| each(&mut property.value.form));
                object.extras.iter_mut().for_each(|extra| each(&mut extra.value.form));
            }
            _ => {}
        }
    }
}

/// A form at its place of use, with the annotations of that place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Use {
    pub(crate) form: FormId,
    pub(crate) notes: Notes,
}

impl Use {
    pub(crate) const fn of(form: FormId) -> Self {
        Self { form, notes: Notes::NONE }
    }
}

/// The annotations of a schema, which describe it to a model and constrain nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Notes(Option<Box<Annotations>>);

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Annotations {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Value>,
    pub(crate) examples: Vec<Value>,
}

impl Notes {
    pub(crate) const NONE: Self = Self(None);

    /// Returns the annotations of a schema.
    pub(crate) fn of(node: &Value) -> Self {
        let text = |keyword: &str| node.get(keyword).and_then(Value::as_str).map(str::to_owned);
        let examples = node.get("examples").and_then(Value::as_array).cloned();
        let annotations = Annotations {
            title: text("title"),
            description: text("description"),
            default: node.get("default").cloned(),
            examples: examples.or_else(|| Some(vec![node.get("example")?.clone()])).unwrap_or_default(),
        };
        if annotations == Annotations::default() { Self(None) } else { Self(Some(Box::new(annotations))) }
    }

    /// Returns annotations that only have a description.
    pub(crate) fn described(text: &str) -> Self {
        Self(Some(Box::new(Annotations { description: Some(text.to_owned()), ..Annotations::default() })))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn get(&self) -> Option<&Annotations> {
        self.0.as_deref()
    }

    pub(crate) fn description(&self) -> Option<&str> {
        self.0.as_ref()?.description.as_deref()
    }

    /// Adds the annotations of `other` that are absent here.
    pub(crate) fn or(&mut self, other: Self) {
        let (Some(mine), Some(other)) = (&mut self.0, other.0.as_deref()) else {
            if self.0.is_none() {
                *self = other;
            }
            return;
        };
        mine.title = mine.title.take().or_else(|| other.title.clone());
        mine.default = mine.default.take().or_else(|| other.default.clone());
        if mine.examples.is_empty() {
            mine.examples.clone_from(&other.examples);
        }
        match (&mut mine.description, &other.description) {
            (Some(mine), Some(other)) if !mine.contains(other.as_str()) => {
                mine.push(' ');
                mine.push_str(other);
            }
            (none @ None, Some(other)) => *none = Some(other.clone()),
            _ => {}
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Literals {
    pub(crate) values: Vec<Literal>,
    pub(crate) origin: PlaceId,
}

impl Literals {
    /// Returns the values without their descriptions.
    pub(crate) fn values(&self) -> Vec<&Value> {
        self.values.iter().map(|literal| &literal.value).collect()
    }

    /// Returns the values by their types.
    pub(crate) fn by_kind(&self) -> Vec<(&'static str, Self)> {
        let mut kinds: Vec<(&'static str, Self)> = Vec::new();
        for literal in &self.values {
            let kind = kind_of(&literal.value);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, all)) => all.values.push(literal.clone()),
                None => kinds.push((kind, Self { values: vec![literal.clone()], origin: self.origin })),
            }
        }
        kinds
    }
}

/// The name of a value's type in JSON Schema.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// An enumerated value, with the description of the branch that only allows this value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Literal {
    pub(crate) value: Value,
    pub(crate) description: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NumberForm {
    pub(crate) integer: bool,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) origin: PlaceId,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) at: Number,
    pub(crate) exclusive: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StringForm {
    /// The minimum number of characters.
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// The patterns, which all match somewhere in the string.
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) format: Option<String>,
    pub(crate) origin: PlaceId,
    pub(crate) role: Role,
    /// The outline of the JSON that the string holds.
    pub(crate) holds: Option<String>,
    /// Whether `max` was added by tightening.
    pub(crate) is_bounded: bool,
}

/// The purpose of a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Text,
    /// The name of a member.
    Name,
    /// JSON in a string.
    Json,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    /// The pattern in the schema's syntax (ECMA-262).
    pub(crate) source: String,
    /// The pattern in the syntax of `regex-syntax`.
    pub(crate) translated: String,
    /// Whether it only matches whole strings.
    pub(crate) is_anchored: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ArrayForm {
    pub(crate) prefix: Vec<Use>,
    /// The items after the prefix; `None` if there are none.
    pub(crate) items: Option<Use>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// Whether `max` was added by tightening.
    pub(crate) is_bounded: bool,
    pub(crate) origin: PlaceId,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ObjectForm {
    pub(crate) properties: Vec<Property>,
    /// The members with other names.
    pub(crate) extras: Vec<Extra>,
    /// Whether members with other names are allowed only because the schema does not decide about them.
    pub(crate) is_unsaid: bool,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// Whether `max` was added by tightening.
    pub(crate) is_bounded: bool,
    pub(crate) origin: PlaceId,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) value: Use,
    pub(crate) required: bool,
}

/// Members whose names the schema does not enumerate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extra {
    /// The pattern of the names; `None` for all names without another matching pattern.
    pub(crate) pattern: Option<Pattern>,
    /// Whether these are the members that no keyword covers, by a pattern or otherwise.
    pub(crate) is_rest: bool,
    pub(crate) value: Use,
}
