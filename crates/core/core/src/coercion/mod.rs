//! Values that do not fit their schema and are converted, dropped or replaced instead of being requested again.
//!
//! A contract says at each place what may be done ([`Coercion`](declared::Coercion)): by the policy, by the contract, and by
//! [`KEYWORD`](declared::KEYWORD) in its schema. A document is judged as it is first. Only where an error lies, a conversion is tried, and
//! the converted document is judged as a whole. Each change is a [`Coerced`](change::Coerced) with the original text.

mod apply;
pub(crate) mod change;
mod convert;
pub(crate) mod declared;
mod guess;
mod part;
pub(crate) mod places;
mod replace;
