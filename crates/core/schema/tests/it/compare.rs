//! Comparing two versions of a schema.

use formwork_schema::{Compatibility, compare};
use serde_json::{Value, json};

/// Returns the schema of an open object with these members, the first of which is required.
fn object(members: Value) -> Value {
    let first: Vec<String> = members.as_object().unwrap().keys().take(1).cloned().collect();
    json!({"type": "object", "properties": members, "required": first})
}

fn closed(members: Value) -> Value {
    let mut schema = object(members);
    schema["additionalProperties"] = json!(false);
    schema
}

fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    schema[keyword] = value;
    schema
}

/// A name, both versions, the verdict, whether old values without other members stay valid, and the changes.
type Case = (&'static str, Value, Value, Compatibility, bool, &'static [&'static str]);

#[test]
fn every_kind_of_change_has_its_verdict() {
    use Compatibility::{Mixed, Narrowed, Unchanged, Widened};
    let (text, whole) = (json!({"type": "string"}), json!({"type": "integer"}));
    let old = json!({"id": whole, "name": text});
    let more = json!({"id": whole, "name": text, "note": text});
    let both_required = |schema: Value| with(schema, "required", json!(["id", "name"]));
    let note_required = |schema: Value| with(schema, "required", json!(["id", "note"]));
    let member = |schema: Value| object(json!({"id": schema}));
    let tree = |value: Value| json!({"type": "object", "properties": {"value": value, "kids": {"type": "array", "items": {"$ref": "#"}}}});
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        ("optional member added, open", object(old.clone()), object(more.clone()), Narrowed, true, &["$.note: added, optional"]),
        ("optional member added, closed", closed(old.clone()), closed(more.clone()), Widened, true, &["$.note: added, optional"]),
        ("required member added, open", object(old.clone()), note_required(object(more.clone())), Narrowed, false, &["$.note: added, required"]),
        ("required member added, closed", closed(old.clone()), note_required(closed(more.clone())), Mixed, false, &["$.note: added, required"]),
        ("optional member removed, open", object(more.clone()), object(old.clone()), Widened, true, &["$.note: removed"]),
        ("optional member removed, closed", closed(more.clone()), closed(old.clone()), Narrowed, false, &["$.note: removed"]),
        ("required member removed, open", note_required(object(more.clone())), object(old.clone()), Widened, true, &["$.note: removed"]),
        ("required member removed, closed", note_required(closed(more)), closed(old.clone()), Mixed, false, &["$.note: removed"]),
        ("member renamed, closed", closed(json!({"id": whole, "a": text})), closed(json!({"id": whole, "b": text})), Mixed, false, &["$.b: added, optional", "$.a: removed"]),
        ("member required", object(old.clone()), both_required(object(old.clone())), Narrowed, false, &["$.name: narrowed"]),
        ("member optional", both_required(object(old.clone())), object(old.clone()), Widened, true, &["$.name: widened"]),
        ("type widened", member(whole.clone()), member(json!({"type": "number"})), Widened, true, &["$.id: widened"]),
        ("type narrowed", member(json!({"type": ["string", "null"]})), member(text.clone()), Narrowed, false, &["$.id: narrowed"]),
        ("type replaced", member(text.clone()), member(whole.clone()), Mixed, false, &["$.id: widened and narrowed"]),
        ("null added", member(text.clone()), member(json!({"anyOf": [text, {"type": "null"}]})), Widened, true, &["$.id: widened"]),
        ("enum value added", member(json!({"enum": ["a", "b"]})), member(json!({"enum": ["a", "b", "c"]})), Widened, true, &["$.id: widened"]),
        ("enum value removed", member(json!({"enum": ["a", "b"]})), member(json!({"enum": ["a"]})), Narrowed, false, &["$.id: narrowed"]),
        ("enum value replaced", member(json!({"enum": ["a", "b"]})), member(json!({"enum": ["a", "c"]})), Mixed, false, &["$.id: widened and narrowed"]),
        ("text to enum", member(text.clone()), member(json!({"type": "string", "enum": ["a"]})), Narrowed, false, &["$.id: narrowed"]),
        ("upper bound raised", member(json!({"type": "integer", "maximum": 5})), member(json!({"type": "integer", "maximum": 6})), Widened, true, &["$.id: widened"]),
        ("upper bound lowered", member(json!({"type": "integer", "maximum": 5})), member(json!({"type": "integer", "maximum": 4})), Narrowed, false, &["$.id: narrowed"]),
        ("bounds moved", member(json!({"type": "integer", "minimum": 1, "maximum": 5})), member(json!({"type": "integer", "minimum": 2, "maximum": 6})), Mixed, false, &["$.id: widened and narrowed"]),
        ("bound in other words", member(json!({"type": "integer", "minimum": 1})), member(json!({"type": "integer", "exclusiveMinimum": 0})), Unchanged, true, &[]),
        ("length added", member(text.clone()), member(json!({"type": "string", "maxLength": 9})), Narrowed, false, &["$.id: narrowed"]),
        ("items widened", member(json!({"type": "array", "items": whole})), member(json!({"type": "array", "items": {"type": ["integer", "null"]}})), Widened, true, &["$.id[*]: widened"]),
        ("more items demanded", member(json!({"type": "array", "items": whole})), member(json!({"type": "array", "items": whole, "minItems": 1})), Narrowed, false, &["$.id: narrowed"]),
        ("description alone", object(old.clone()), object(json!({"id": whole, "name": {"type": "string", "description": "The full name."}})), Unchanged, true, &[]),
        ("a member called description", object(json!({"id": whole, "description": text})), object(json!({"id": whole, "description": whole})), Mixed, false, &["$.description: widened and narrowed"]),
        ("closed", object(old.clone()), closed(old.clone()), Narrowed, true, &["$: narrowed"]),
        ("opened", closed(old.clone()), object(old.clone()), Widened, true, &["$: widened"]),
        ("map of values widened", json!({"additionalProperties": whole}), json!({"additionalProperties": {"type": "number"}}), Widened, true, &["$[*]: widened"]),
        ("recursive, description alone", tree(whole.clone()), with(tree(whole.clone()), "description", json!("A tree.")), Unchanged, true, &[]),
        ("recursive, widened", tree(whole.clone()), tree(json!({"type": "number"})), Widened, true, &["$.value: widened"]),
        ("everything to anything", object(old.clone()), json!(true), Widened, true, &["$: widened"]),
        ("anything to nothing", json!(true), json!(false), Narrowed, false, &["$: narrowed"]),
    ];
    let mut wrong = Vec::new();
    for (name, before, after, verdict, keeps_named, changes) in cases {
        let found = compare(&before, &after);
        let lines: Vec<String> = found.changes.iter().map(ToString::to_string).collect();
        if (found.verdict, found.keeps_named) != (verdict, keeps_named) || lines != changes {
            wrong.push(format!("{name}: {:?} {} {lines:?}", found.verdict, found.keeps_named));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_claimed_where_nothing_is_proved() {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let format = |name: &str| json!({"type": "string", "format": name});
    let cases = [
        (text("^[a-z]{3}$"), text("^[a-z]{2,4}$")),
        // Validators that ignore `format` accept the same values; others do not.
        (format("date"), format("date-time")),
        (json!([]), json!({"type": "string"})),
        (json!({"type": "text"}), json!({"type": "string"})),
    ];
    for (before, after) in cases {
        let found = compare(&before, &after);
        assert!(!found.verdict.keeps_old_values() && !found.keeps_named, "{before}: {found:?}");
    }
}

#[test]
fn a_large_schema_is_compared_keyword_by_keyword() {
    let wide = |extra: Value| {
        let union: Vec<Value> = (0..20)
            .map(|n| json!({"type": "object", "properties": {"k": {"const": n}, "v": extra}, "required": ["k"]}))
            .collect();
        // The product of ten unions that hold together is too large for the canonical form.
        json!({"allOf": (0..10).map(|_| json!({"anyOf": union})).collect::<Vec<_>>()})
    };
    let (narrow, broad) = (wide(json!({"type": "integer"})), wide(json!({"type": ["integer", "null"]})));
    assert_eq!(compare(&narrow, &broad).verdict, Compatibility::Widened);
    assert_eq!(compare(&broad, &narrow).verdict, Compatibility::Narrowed);
}
