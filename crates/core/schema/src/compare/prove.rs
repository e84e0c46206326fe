//! Proofs that one schema accepts every value of another.

use formwork_core::keywords::find;
use jsonschema::canonical::{self, CanonicalSchema, Containment};
use serde_json::Value;

use super::{sample, structure};
use crate::bounds::is_cheap;

/// The result of an attempt to prove a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// The claim is proved.
    Holds,
    /// A counterexample exists.
    Fails,
    /// Neither is proved.
    Open,
}

/// Returns whether `outer` accepts every value that `inner` accepts. Both are documents without annotations.
pub(super) fn contains(outer: &Value, inner: &Value) -> Proof {
    if outer == inner || structure::contains(outer, inner) {
        return Proof::Holds;
    }
    match by_canonical_form(outer, inner) {
        Proof::Open if sample::refutes(outer, inner) => Proof::Fails,
        proof => proof,
    }
}

fn by_canonical_form(outer: &Value, inner: &Value) -> Proof {
    if !is_cheap(outer) || !is_cheap(inner) {
        return Proof::Open;
    }
    let ignored = canonical_contains(outer, inner, false);
    if !has_format(outer) && !has_format(inner) {
        return ignored;
    }
    // Validators disagree about `format`: a proof has to hold for those that assert it and for those that ignore it.
    match (ignored, canonical_contains(outer, inner, true)) {
        (Proof::Holds, Proof::Holds) => Proof::Holds,
        (Proof::Fails, _) | (_, Proof::Fails) => Proof::Fails,
        _ => Proof::Open,
    }
}

fn canonical_contains(outer: &Value, inner: &Value, assert_formats: bool) -> Proof {
    let canonical = |schema: &Value| -> Option<CanonicalSchema> {
        let options = canonical::options().offline().should_validate_formats(assert_formats);
        options.with_draft(jsonschema::Draft::Draft202012).canonicalize(schema).ok()
    };
    let (Some(outer), Some(inner)) = (canonical(outer), canonical(inner)) else { return Proof::Open };
    match outer.covers(&inner) {
        Ok(Containment::Yes) => Proof::Holds,
        Ok(Containment::No) => Proof::Fails,
        Ok(Containment::Unknown) | Err(_) => Proof::Open,
    }
}

fn has_format(schema: &Value) -> bool {
    find(schema, |part| part.get("format").is_some()).is_some()
}
