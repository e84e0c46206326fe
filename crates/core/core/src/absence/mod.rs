//! Members that a text may lack: their marks in a schema, and `null` or nothing in their place in an answer.
//!
//! A member is marked by [`KEYWORD`](declared::KEYWORD) in its schema. [`normalise`](crate::normalise()) makes a marked member required
//! and nullable, and describes that to the model, so validation, every dialect and every prompt treat it alike.

pub(crate) mod declared;
pub(crate) mod mark;
pub(crate) mod mistake;
pub(crate) mod settle;
pub(crate) mod widen;
