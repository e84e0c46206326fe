use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An operation that maps the values of one node of the lowered schema back to the original schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiftOp {
    /// RFC 6901 JSON Pointer of the node in [`Lowered::schema`](crate::Lowered::schema).
    pub at: String,
    /// The operation on every value of the node.
    pub lift: Lift,
}

/// An operation that maps a value back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lift {
    /// Replaces an object by its one member of this name. A value without the wrapper is left unchanged.
    Unwrap(String),
    /// Removes these members of an object where they are `null`.
    DropNull(Vec<String>),
    /// Removes these members of an object where they are `marker`: for members that may be `null`.
    DropAbsent {
        /// The members.
        names: Vec<String>,
        /// The value that marks an absent member; the schema of the member does not allow it.
        marker: Value,
    },
    /// Turns an array of `{"key", "value"}` into an object.
    PairsToMap,
    /// Parses a string that contains JSON.
    ParseJson,
    /// Assembles a value from the list of its leaves, `{"path", "value"}` each. A leaf is a scalar, or an object or array without
    /// contents. Its path has a string for each member and an integer for each item on the way to it; the path of a scalar that
    /// is the value itself is empty.
    Leaves,
    /// Puts the members of an object into this order.
    Reorder(Vec<String>),
    /// Turns an object into an array: these members in this order up to the first that is absent, then the items of the
    /// member `rest`.
    Tuple {
        /// The members that are items.
        items: Vec<String>,
        /// The member that is an array of further items, if there is one.
        rest: Option<String>,
    },
    /// Moves the members of the object under this name into the object around it, after the inner object is lifted.
    Spread(String),
    /// Renames members from the names that were sent to those of the original schema.
    Rename(Vec<(String, String)>),
    /// These members of an object are lists of at most one item: the item is the member, and a member whose list is empty is
    /// absent. A member that is no list is taken as it is.
    Unlist(Vec<String>),
    /// The members of an object are lists, one for each variant of a union: the one item of all lists is the value. Without
    /// any item the value is `null`, where `null` is a variant.
    Choice {
        /// The members, in the order of the variants.
        names: Vec<String>,
        /// Whether `null` is a variant.
        null: bool,
    },
}

/// A description for people: ``#/properties/nick: a null of `nick` means that it is absent``.
impl fmt::Display for LiftOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |names: &[String]| {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        write!(f, "#{}: ", self.at)?;
        match &self.lift {
            Lift::Unwrap(key) => write!(f, "the answer is the member `{key}`"),
            Lift::DropNull(keys) => write!(f, "where one of these is null it is absent: {}", listed(keys)),
            Lift::DropAbsent { names, marker } => {
                write!(f, "where one of these is {marker} it is absent: {}", listed(names))
            }
            Lift::PairsToMap => f.write_str("the array of `key` and `value` becomes an object"),
            Lift::ParseJson => f.write_str("the string becomes the JSON that it holds"),
            Lift::Leaves => {
                f.write_str("the list of `path` and `value` becomes the value that has these leaves")
            }
            Lift::Reorder(keys) => write!(f, "the members are put into the order {}", listed(keys)),
            Lift::Tuple { items, rest: None } => write!(f, "the members {} become an array", listed(items)),
            Lift::Tuple { items, rest: Some(rest) } => {
                write!(f, "the members {} become an array, followed by the items of `{rest}`", listed(items))
            }
            Lift::Spread(key) => write!(f, "what is in `{key}` becomes members beside it"),
            Lift::Rename(names) => {
                let names: Vec<_> =
                    names.iter().map(|(sent, original)| format!("`{sent}` to `{original}`")).collect();
                write!(f, "members get their names back: {}", names.join(", "))
            }
            Lift::Unlist(names) => {
                write!(f, "these are lists of one item, or empty where they are absent: {}", listed(names))
            }
            Lift::Choice { names, null } => {
                let none = if *null { ", or null where all are empty" } else { "" };
                write!(f, "the answer is the one item of the lists {}{none}", listed(names))
            }
        }
    }
}
