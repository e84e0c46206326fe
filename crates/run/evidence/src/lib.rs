//! Comparison of values, for now.

mod align;
mod compare;
mod date;
mod decimal;
mod text;

pub use align::{assign, greedy};
pub use compare::{Compare, KEYWORD, subschema};
pub use text::plain;
