//! The dialect of Cohere's structured outputs.
//!
//! Sources: the vendor's page on structured outputs (2026-11): the root is an object, every object has a required member,
//! and neither `allOf`, `oneOf` and `not` nor bounds of numbers, lengths of strings and lists are supported. No probe was run
//! against the vendor.

use crate::azure::AZURE;
use crate::profile::Profile;

/// Cohere's `json_object` with a schema. All members are required, so that every object has one.
pub(crate) const COHERE: Profile = Profile {
    name: "cohere",
    about: "structured outputs of Cohere",
    refers_to_root: false,
    empty_objects: false,
    formats: &["date-time", "time", "date", "uuid"],
    limits: None,
    ..AZURE
};
