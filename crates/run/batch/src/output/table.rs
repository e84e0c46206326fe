//! The columns of a table, with the types of their cells.

use std::collections::HashMap;

use super::cells::{Cell, Group};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// No cell has a value.
    Null,
    Bool,
    Int,
    Float,
    Text,
    /// Lists, objects, or values of several types.
    Json,
}

impl Type {
    fn of(json: &str) -> Self {
        match json.bytes().next() {
            Some(b'n') | None => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            Some(b'"') => Self::Text,
            Some(b'[' | b'{') => Self::Json,
            _ if is_integer(json) => Self::Int,
            _ => Self::Float,
        }
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (same, other) if same == other => same,
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (Self::Int, Self::Float) | (Self::Float, Self::Int) => Self::Float,
            _ => Self::Json,
        }
    }
}

/// Returns whether a number of JSON is written without fraction and exponent.
pub(super) fn is_integer(json: &str) -> bool {
    !json.contains(['.', 'e', 'E'])
}

/// The columns of a table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) names: Vec<String>,
    pub(super) types: Vec<Type>,
    positions: HashMap<String, usize>,
}

impl Table {
    /// Returns the texts of the cells of a row as JSON, in the order of the columns.
    pub(super) fn line(&self, cells: Vec<Cell>) -> Vec<Option<String>> {
        let mut line: Vec<Option<String>> = vec![None; self.names.len()];
        for Cell { column, json, .. } in cells {
            if let Some(cell) = self.positions.get(&column).and_then(|nth| line.get_mut(*nth)) {
                *cell = Some(json).filter(|json| json != "null");
            }
        }
        line
    }
}

/// The columns that were found so far, with their groups, in the order in which they were found.
#[derive(Debug, Default)]
pub(super) struct Found(HashMap<String, (Group, usize, Type)>);

impl Found {
    pub(super) fn add(&mut self, row: Vec<Cell>) {
        for Cell { group, column, json } in row {
            let (next, kind) = (self.0.len(), Type::of(&json));
            let entry = self.0.entry(column).or_insert((group, next, kind));
            entry.2 = entry.2.with(kind);
        }
    }

    pub(super) fn table(self) -> Table {
        // An object that is null in some rows is no column beside those of its members.
        let is_object = |name: &str| self.0.keys().any(|other| other.starts_with(&format!("{name}.")));
        let mut columns: Vec<_> =
            self.0.iter().filter(|(name, (_, _, kind))| *kind != Type::Null || !is_object(name)).collect();
        columns.sort_by_key(|(_, (group, nth, _))| (*group, *nth));
        let mut table = Table::default();
        for (nth, (name, (_, _, kind))) in columns.into_iter().enumerate() {
            table.positions.insert(name.clone(), nth);
            table.names.push(name.clone());
            table.types.push(*kind);
        }
        table
    }
}
