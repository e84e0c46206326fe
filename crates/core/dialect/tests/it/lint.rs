//! The linter's findings against the reactions of the engines.

use formwork_dialect::{Reaction, lint};
use serde_json::{Value, json};

use crate::model::matcher;
use crate::probes::{Probe, probes};

/// Measured, but not a property of the schema: the notation of integers.
const NOT_IN_THE_SCHEMA: [&str; 1] = ["integer as 1.0"];

#[test]
fn what_llama_cpp_was_measured_to_misread_is_found() {
    let mut wrong = Vec::new();
    for Probe { name, schema, measured, .. } in probes() {
        let findings = lint("llama-cpp", &schema);
        let measured = &measured["llama.cpp"];
        let has = |verdict| findings.iter().any(|finding| finding.verdict == verdict);
        let agrees = match measured.split(' ').next().unwrap() {
            "REJECT" => has(Reaction::Rejected),
            "FORBIDS-VALID" => has(Reaction::Forbids) || name.starts_with("property order"),
            "ignored" => has(Reaction::Ignored) || has(Reaction::Forbids),
            _ => !has(Reaction::Rejected),
        };
        if !agrees && !NOT_IN_THE_SCHEMA.contains(&name.as_str()) {
            wrong.push(format!("{name}: {measured}, but {findings:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_xgrammar_and_vllm_were_measured_to_misread_is_found() {
    let mut wrong = Vec::new();
    for Probe { name, schema, measured, .. } in probes() {
        let findings = lint("xgrammar", &schema);
        let has = |verdict| findings.iter().any(|finding| finding.verdict == verdict);
        let [engine, server] = ["xgrammar", "vllm-xgr"].map(|who| measured[who].split(' ').next().unwrap());
        let agrees = match (engine, server) {
            ("FORBIDS-VALID", _) => has(Reaction::Forbids),
            ("REJECT", _) | (_, "REJECT") => !findings.is_empty(),
            ("ignored", _) => !findings.is_empty(),
            _ => !has(Reaction::Rejected),
        };
        if !agrees && !NOT_IN_THE_SCHEMA.contains(&name.as_str()) {
            wrong.push(format!("{name}: {engine}, {server}, but {findings:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_strict_modes_of_other_vendors_name_what_they_refuse() {
    let string = |keyword: &str, value: Value| {
        let mut schema = json!({"type": "string"});
        schema[keyword] = value;
        schema
    };
    let all = [
        ("pattern", string("pattern", json!("^a$"))),
        ("maxLength", string("maxLength", json!(4))),
        ("maxItems", json!({"type": "array", "items": {"type": "null"}, "maxItems": 3})),
        ("multipleOf", json!({"type": "integer", "multipleOf": 2})),
        ("minimum", json!({"type": "integer", "minimum": 2})),
        ("oneOf", json!({"oneOf": [{"type": "null"}, {"type": "string"}]})),
        (
            "additionalProperties",
            json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}),
        ),
        ("$ref", json!({"type": "array", "items": {"$ref": "#"}})),
        ("format", string("format", json!("iri"))),
        ("prefixItems", json!({"type": "array", "prefixItems": [{"type": "null"}]})),
    ];
    for (dialect, taken) in [
        ("azure", vec!["$ref", "prefixItems"]),
        ("groq", vec!["$ref", "prefixItems"]),
        ("cohere", vec!["$ref", "prefixItems"]),
        ("mistral", vec!["$ref"]),
        ("xai", vec![]),
        ("xgrammar", vec!["pattern", "maxItems", "minimum", "$ref", "prefixItems"]),
    ] {
        let is_taken = |keyword: &str, schema: &Value| {
            !lint(dialect, schema).iter().any(|finding| finding.keyword.as_deref() == Some(keyword))
        };
        let found = all.iter().filter(|(keyword, schema)| is_taken(keyword, schema));
        let found: Vec<&str> = found.map(|(keyword, _)| *keyword).collect();
        assert_eq!(found, taken, "{dialect}");
    }
    let wide: serde_json::Map<_, _> = (0..101).map(|n| (format!("p{n}"), json!({"type": "null"}))).collect();
    let required: Vec<&String> = wide.keys().collect();
    let wide =
        json!({"type": "object", "required": required, "properties": wide, "additionalProperties": false});
    let words: Vec<String> = lint("azure", &wide).into_iter().map(|finding| finding.words).collect();
    assert_eq!(words, ["101 properties, and 100 are taken"]);
    assert_eq!(lint("groq", &wide), []);
}

#[test]
fn what_llguidance_refuses_is_found_and_nothing_else() {
    let mut wrong = Vec::new();
    for Probe { name, schema, .. } in probes() {
        let rejected =
            lint("llguidance", &schema).iter().any(|finding| finding.verdict == Reaction::Rejected);
        // The lint does not check whether variants overlap.
        if name == "oneOf overlapping" {
            continue;
        }
        if let Err(error) = matcher(&schema) {
            if !rejected {
                wrong.push(format!("{name}: {error}, and nothing was found"));
            }
        } else if rejected {
            wrong.push(format!("{name}: taken, but {:?}", lint("llguidance", &schema)));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn look_around_kills_ollama() {
    let schema = json!({"type": "string", "pattern": "^(?=a)a$"});
    let verdicts =
        |dialect: &str| lint(dialect, &schema).iter().map(|found| found.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts("llama-cpp"), [Reaction::Ignored]);
    assert_eq!(verdicts("ollama"), [Reaction::Ignored, Reaction::Rejected]);
    assert!(matcher(&json!({"type": "array", "items": {}, "unevaluatedItems": false})).is_err());
}

#[test]
fn openai_s_findings_point_at_what_is_wrong() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"oneOf": [{"type": "null"}, {"type": "object"}]}},
        "required": ["a"],
    });
    let found: Vec<_> = lint("openai", &schema)
        .into_iter()
        .map(|finding| (finding.pointer, finding.keyword.unwrap_or_default()))
        .collect();
    let expected = [
        ("", "required"),
        ("", "additionalProperties"),
        ("/properties/a", "maxLength"),
        ("/properties/b", "oneOf"),
        ("/properties/b/oneOf/1", "additionalProperties"),
    ];
    assert_eq!(found, expected.map(|(pointer, keyword)| (pointer.to_owned(), keyword.to_owned())));
}

#[test]
fn anthropic_s_findings_name_what_the_provider_refuses() {
    let refused = [
        (json!({"oneOf": [{"type": "null"}]}), "oneOf"),
        (json!({"type": "object", "properties": {}}), "additionalProperties"),
        (json!({"type": "object", "additionalProperties": {"type": "integer"}}), "additionalProperties"),
        (json!({"type": "integer", "minimum": 0}), "minimum"),
        (json!({"type": "number", "multipleOf": 0.5}), "multipleOf"),
        (json!({"type": "string", "maxLength": 5}), "maxLength"),
        (json!({"type": "string", "format": "iri"}), "format"),
        (json!({"type": "array", "items": {"type": "null"}, "minItems": 2}), "minItems"),
        (json!({"type": "array", "items": {"type": "null"}, "maxItems": 1}), "maxItems"),
        (json!({"type": "array", "prefixItems": [{"type": "null"}]}), "prefixItems"),
        (json!({"enum": ["a", {"b": 1}]}), "enum"),
        (json!({"$ref": "#"}), "$ref"),
        (json!({"$ref": "https://example.org/x.json"}), "$ref"),
        (
            json!({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}}),
            "$defs",
        ),
    ];
    for (schema, keyword) in refused {
        let found: Vec<_> =
            lint("anthropic", &schema).into_iter().filter_map(|finding| finding.keyword).collect();
        assert_eq!(found, [keyword], "{schema}");
    }
    let taken = [
        json!({"type": "array", "items": {"type": ["string", "null"]}, "minItems": 1}),
        json!({"type": "string", "format": "date-time"}),
        json!({"enum": ["a", 1, true, null]}),
        json!({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"type": "null"}}, "$ref": "#/$defs/a"}),
    ];
    for schema in taken {
        assert_eq!(lint("anthropic", &schema), [], "{schema}");
    }
    for (pattern, is_taken) in [
        ("^[A-Z]{2}\\d+$", true),
        ("^(a|b)[^x|]?\\.\\w*$", true),
        ("^[a-f0-9]{64}$", true),
        ("^$", true),
        ("[A-Z]{2}", false),
        ("^a|b$", false),
        ("^(?=a)a$", false),
        ("^(?:a)$", false),
        ("^a\\b$", false),
        ("^(a)\\1$", false),
        ("^\\p{L}$", false),
        ("^a{1,1000}$", false),
        ("^é$", false),
        ("^a\\$", false),
        ("^[a$", false),
    ] {
        let findings = lint("anthropic", &json!({"type": "string", "pattern": pattern}));
        assert_eq!(findings.is_empty(), is_taken, "{pattern}: {findings:?}");
    }
}

#[test]
fn dialects_that_enforce_nothing_find_nothing() {
    for name in ["prompt", "prompt-outline", "json-object", "esperanto"] {
        assert_eq!(lint(name, &json!({"not": {}, "uniqueItems": true})), []);
    }
}
