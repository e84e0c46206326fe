use serde_json::Value;

use crate::flat::At;

/// Kinds of JSON values. `number` stands for all numbers; `integer` for integral ones alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds {
    pub(crate) null: bool,
    pub(crate) boolean: bool,
    pub(crate) number: bool,
    pub(crate) integer: bool,
    pub(crate) string: bool,
    pub(crate) array: bool,
    pub(crate) object: bool,
}

impl Kinds {
    pub(crate) const ALL: Self = Self {
        null: true,
        boolean: true,
        number: true,
        integer: true,
        string: true,
        array: true,
        object: true,
    };
    const NONE: Self = Self {
        null: false,
        boolean: false,
        number: false,
        integer: false,
        string: false,
        array: false,
        object: false,
    };

    /// What the `type` of a schema allows.
    pub(crate) fn of(node: &Value) -> Self {
        match node.get("type") {
            Some(Value::String(name)) => Self::named([name.as_str()]),
            Some(Value::Array(names)) => Self::named(names.iter().filter_map(Value::as_str)),
            _ => Self::ALL,
        }
    }

    fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut kinds = Self::NONE;
        for name in names {
            match name {
                "null" => kinds.null = true,
                "boolean" => kinds.boolean = true,
                "number" => (kinds.number, kinds.integer) = (true, true),
                "integer" => kinds.integer = true,
                "string" => kinds.string = true,
                "array" => kinds.array = true,
                "object" => kinds.object = true,
                _ => {}
            }
        }
        kinds
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            null: self.null && other.null,
            boolean: self.boolean && other.boolean,
            number: self.number && other.number,
            integer: self.integer && other.integer,
            string: self.string && other.string,
            array: self.array && other.array,
            object: self.object && other.object,
        }
    }

    pub(crate) const fn is_none(self) -> bool {
        !(self.null || self.boolean || self.integer || self.string || self.array || self.object)
    }

    /// The kinds that schemas without `type` speak about: `{"properties": …}` means an object to whoever wrote it.
    pub(crate) fn meant_by(members: &[At<'_>]) -> Self {
        let mut kinds = Self::NONE;
        for (keyword, _) in members.iter().flat_map(At::keywords) {
            match keyword {
                "properties"
                | "required"
                | "additionalProperties"
                | "patternProperties"
                | "minProperties"
                | "maxProperties"
                | "propertyNames" => kinds.object = true,
                "items" | "prefixItems" | "minItems" | "maxItems" | "contains" | "uniqueItems" => {
                    kinds.array = true;
                }
                "minLength" | "maxLength" | "pattern" | "format" => kinds.string = true,
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                    (kinds.number, kinds.integer) = (true, true);
                }
                _ => {}
            }
        }
        if kinds.is_none() { Self::ALL } else { kinds }
    }

    pub(crate) fn admit(self, value: &Value) -> bool {
        match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::Number(number) => {
                self.number || self.integer && number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Value::String(_) => self.string,
            Value::Array(_) => self.array,
            Value::Object(_) => self.object,
        }
    }
}

/// The values that are listed by all of the schemas that list values; `None` if none does.
pub(crate) fn literals(members: &[At<'_>], kinds: Kinds) -> Option<Vec<Value>> {
    let mut common: Option<Vec<Value>> = None;
    for at in members {
        for (keyword, value) in at.keywords() {
            let listed = match (keyword, value) {
                ("const", value) => std::slice::from_ref(value),
                ("enum", Value::Array(values)) => values,
                _ => continue,
            };
            common = Some(match common {
                None => listed.to_vec(),
                Some(values) => values.into_iter().filter(|value| listed.contains(value)).collect(),
            });
        }
    }
    let mut values = common?;
    values.retain(|value| kinds.admit(value) && members.iter().all(|at| admits(at.node, value)));
    let mut seen: Vec<Value> = Vec::with_capacity(values.len().min(64));
    if values.len() <= 1024 {
        for value in values {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        return Some(seen);
    }
    Some(values)
}

/// Whether a value passes what a schema says about plain values.
fn admits(node: &Value, value: &Value) -> bool {
    let negated = node.get("not").is_some_and(|not| {
        not.get("const") == Some(value)
            || not.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(value))
    });
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let fits = match value {
        Value::Number(number) => number.as_f64().is_none_or(|number| {
            bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most)
                && bound("exclusiveMinimum").is_none_or(|least| number > least)
                && bound("exclusiveMaximum").is_none_or(|most| number < most)
        }),
        Value::String(text) => {
            let length = text.chars().count() as f64;
            bound("minLength").is_none_or(|least| length >= least)
                && bound("maxLength").is_none_or(|most| length <= most)
        }
        _ => true,
    };
    fits && !negated
}

/// The kinds that are left after `not` of a type, of `true` and of `{}`.
pub(crate) fn without_negated(mut kinds: Kinds, members: &[At<'_>]) -> Kinds {
    for not in members.iter().filter_map(|at| at.node.get("not")) {
        match not {
            Value::Bool(true) => kinds = Kinds::NONE,
            Value::Object(keywords) if keywords.is_empty() => kinds = Kinds::NONE,
            Value::Object(keywords) if keywords.len() == 1 && keywords.contains_key("type") => {
                let gone = Kinds::of(not);
                kinds = Kinds {
                    null: kinds.null && !gone.null,
                    boolean: kinds.boolean && !gone.boolean,
                    // What is no integer is still a number, which no form says.
                    number: kinds.number && !gone.number,
                    integer: kinds.integer && !gone.number,
                    string: kinds.string && !gone.string,
                    array: kinds.array && !gone.array,
                    object: kinds.object && !gone.object,
                };
            }
            _ => {}
        }
    }
    kinds
}

/// Whether [`without_negated`] says all that a `not` says.
pub(crate) fn is_said_negation(not: &Value) -> bool {
    match not {
        Value::Bool(_) => true,
        Value::Object(keywords) if keywords.is_empty() => true,
        Value::Object(keywords) => {
            keywords.len() == 1
                && keywords.contains_key("type")
                && Kinds::of(not) != Kinds::named(["integer"])
        }
        _ => false,
    }
}

/// Whether a `propertyNames` says only what forms say: a pattern or a list; that names are strings needs no saying.
pub(crate) fn is_said_of_names(names: &Value) -> bool {
    match names {
        Value::Bool(allowed) => *allowed,
        Value::Object(keywords) => keywords.iter().all(|(keyword, value)| {
            matches!(keyword.as_str(), "pattern" | "enum" | "$ref" | "description" | "title")
                || (keyword == "type" && value == "string")
        }),
        _ => false,
    }
}
