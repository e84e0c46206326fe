//! For any weights, a completion satisfies its schema and is complete.

use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use formwork_core::{Context, FaultKind, Finish, Lift, LiftOp, Report, Rule, Term};
use formwork_local::{Local, LocalOptions, Restraint, Store};
use serde_json::{Value, json};

use crate::budget::shortest;
use crate::calls::{answer, call, drawn, person, tiny};
use crate::tiny::Tiny;

#[tokio::test]
async fn fewer_tokens_than_the_shortest_document_needs_are_refused_before_any() {
    let local = tiny("llama", Restraint::TinyModel);
    let schema = json!({"type": "string", "minLength": 300});
    let fault = answer(&local, &drawn(call(Some(schema), "x"), 1, 20)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadRequest);
    assert!(fault.message.contains("max_tokens 20 is below the shortest document"), "{}", fault.message);
    assert_eq!(local.timing().decode_tokens + local.timing().prompt_tokens, 0);
}

#[tokio::test]
async fn what_cannot_be_enforced_is_refused_by_name() {
    let local = tiny("llama", Restraint::TinyModel);
    let refused = call(Some(json!({"type": "array", "uniqueItems": true})), "x");
    let fault = answer(&local, &refused).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::SchemaRefused);
    assert!(fault.message.contains("uniqueItems"), "{}", fault.message);
    let unsatisfiable = json!({"type": "integer", "minimum": 5, "maximum": 3});
    assert_eq!(
        answer(&local, &call(Some(unsatisfiable), "x")).await.unwrap_err().kind,
        FaultKind::SchemaRefused
    );
}

#[tokio::test]
async fn a_string_gets_a_share_of_the_tokens_and_the_rest_is_the_models() {
    // Random weights hardly ever end a string, so without a share the first one would take all tokens.
    let local = tiny("llama", Restraint::TinyModel);
    for seed in 0..10 {
        let answer = answer(&local, &drawn(call(Some(person()), "x"), seed, 400)).await.unwrap();
        assert_eq!(answer.finish, Finish::Stop, "{}", answer.text);
        let value: Value = serde_json::from_str(&answer.text).unwrap();
        assert!(!value["city"].as_str().unwrap().is_empty());
    }
}

/// Returns a contract with texts and numbers of all kinds, and the rule that all but `kind` and `free` are grounded.
fn invoice() -> (Value, Vec<Rule>) {
    let text = json!({"type": "string"});
    let row = json!({"type": "object", "properties": {"what": text, "price": {"type": "number"}}, "required": ["what"], "additionalProperties": false});
    let schema = json!({
        "type": "object",
        "properties": {
            "name": text,
            "kind": {"enum": ["debit", "credit"]},
            "total": {"type": ["number", "null"]},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": text, "minItems": 1, "maxItems": 3},
            "rows": {"type": "array", "items": row, "maxItems": 2},
            "note": {"anyOf": [text, {"type": "null"}]},
            "due": {"type": "string", "format": "date"},
            "free": {"type": "string", "maxLength": 8},
        },
        "required": ["name", "kind", "total", "tags", "rows", "note", "free"],
        "additionalProperties": false,
    });
    let paths = ["$.name", "$.total", "$.count", "$.tags[*]", "$.rows", "$.note", "$.due"];
    (schema, paths.map(|path| Rule::grounded(path.parse().unwrap())).into())
}

/// Random weights write no word of the source, so that each word here is the constraint's.
#[tokio::test]
async fn grounded_values_stand_in_the_source_whatever_the_model_would_write() {
    let local = tiny("llama", Restraint::TinyModel);
    let (schema, rules) = invoice();
    let (mut strays, mut whole, mut seed) = (0, 0, 0);
    for source in [
        "Maria Lindqvist (34) moved to Lisbon on 5 March 2024, and pays 1,250.00 EUR.",
        "\"C:\\new\"\tO'Neill & Søn: 7 %, -3 or 2.5 million\n\n(2024-01-31)",
        "東京都の会社は2024年3月5日に、１２個で3,500円。",
        "👩\u{200d}👧🏽 e\u{301}te\u{301}? שלום 99! 1/2/2023",
    ] {
        let index = formwork_core::evidence::Index::new(source);
        for is_grounded in [true, true, true, true, true, false] {
            seed += 1;
            let mut request = drawn(call(Some(schema.clone()), "x"), seed, 600);
            if is_grounded {
                (request.rules, request.source) = (rules.clone(), Some(source.into()));
            }
            let answer = answer(&local, &request).await.unwrap();
            assert_eq!(answer.notes, Vec::<String>::new(), "{}", answer.text);
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            assert!(matches!(value["kind"].as_str(), Some("debit" | "credit")), "{}", answer.text);
            let (cx, mut report) = (Context { source, ..Context::EMPTY }, Report::default());
            rules.iter().for_each(|rule| rule.validate(&value, &cx, &mut report));
            if is_grounded && answer.closed_at.is_none() {
                whole += 1;
                assert!(report.is_empty(), "{source:?}: {}: {report:?}", answer.text);
                assert!(index.states(&value["name"], 1), "{}", answer.text);
            } else if !is_grounded {
                strays += usize::from(!report.is_empty());
            }
        }
    }
    assert_eq!(strays, 4, "without the rule, no answer of random weights is grounded");
    assert!(whole >= 10, "{whole} of 20 answers were not closed");
}

#[tokio::test]
async fn a_source_without_numbers_leaves_null_or_no_member_or_else_a_free_value_with_a_note() {
    let local = tiny("llama", Restraint::TinyModel);
    let rule = || vec![Rule::grounded("$".parse().unwrap())];
    for (total, required, is_free) in [
        (json!({"type": "number"}), json!([]), false),
        (json!({"type": ["number", "null"]}), json!(["total"]), false),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!(["total"]), false),
        (json!({"type": "array", "items": {"type": "number"}}), json!(["total"]), false),
        (json!({"type": "number"}), json!(["total"]), true),
        (json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}), json!(["total"]), true),
    ] {
        let schema = json!({"type": "object", "properties": {"total": total}, "required": required, "additionalProperties": false});
        for seed in 0..4 {
            let mut request = drawn(call(Some(schema.clone()), "x"), seed, 200);
            (request.rules, request.source) = (rule(), Some("no digits here".into()));
            let answer = answer(&local, &request).await.unwrap();
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            let has_number = value["total"].is_number() || value["total"][0].is_number();
            assert_eq!(
                (has_number, answer.notes.len()),
                (is_free, usize::from(is_free)),
                "{schema}: {}",
                answer.text
            );
            assert!(answer.notes.iter().all(|note| note.starts_with("$.total")), "{:?}", answer.notes);
        }
    }
}

#[tokio::test]
async fn a_grounded_value_is_one_of_the_source_that_the_schema_accepts() {
    let local = tiny("llama", Restraint::TinyModel);
    for (member, source, expected) in [
        (json!({"type": "integer"}), "Quantity of apples 12.5 kg, boxes 3", json!(3)),
        (json!({"type": "integer", "maximum": 10}), "3 boxes of 12 kg", json!(3)),
        (json!({"anyOf": [{"$ref": "#/$defs/m"}]}), "3 boxes of 12 kg", json!(12)),
    ] {
        let schema = json!({"$defs": {"m": {"type": "number", "multipleOf": 4}}, "type": "object", "properties": {"v": member},
            "required": ["v"], "additionalProperties": false});
        for seed in 0..4 {
            let mut request = drawn(call(Some(schema.clone()), "x"), seed, 200);
            (request.rules, request.source) =
                (vec![Rule::grounded("$".parse().unwrap())], Some(source.into()));
            let answer = answer(&local, &request).await.unwrap();
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            assert_eq!((&value["v"], answer.notes.len()), (&expected, 0), "{source}: {:?}", answer.notes);
        }
    }
    // The rule alone checks a text with a pattern, and a note says so.
    let schema = json!({"type": "object", "properties": {"v": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]$"}},
        "required": ["v"], "additionalProperties": false});
    let mut request = drawn(call(Some(schema), "x"), 0, 200);
    (request.rules, request.source) =
        (vec![Rule::grounded("$".parse().unwrap())], Some("XY-2 for 7 EUR".into()));
    let answer = answer(&local, &request).await.unwrap();
    assert!(answer.notes.len() == 1 && answer.notes[0].starts_with("$.v was not"), "{:?}", answer.notes);
}

#[tokio::test]
async fn a_short_answer_is_closed_at_the_end_of_a_word_of_the_source() {
    const SOURCE: &str = "Donaudampfschifffahrtsgesellschaft Rechtsschutzversicherungsgesellschaften";
    let local = tiny("llama", Restraint::TinyModel);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false});
    let mut closed = 0;
    for seed in 0..6 {
        for room in [16, 40, 64, 90] {
            let mut request = drawn(call(Some(schema.clone()), "x"), seed, room);
            (request.rules, request.source) =
                (vec![Rule::grounded("$".parse().unwrap())], Some(SOURCE.into()));
            let answer = answer(&local, &request).await.unwrap();
            assert!(answer.usage.output_tokens <= u64::from(room));
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            let name = value["name"].as_str().unwrap();
            closed += usize::from(answer.closed_at.is_some());
            assert!(
                name.is_empty() || SOURCE.split(' ').any(|word| word == name) || name == SOURCE,
                "{room}: {name}"
            );
        }
    }
    assert!(closed > 0, "no answer was closed");
}

type Notices = std::sync::Mutex<Vec<String>>;

/// Records notices.
struct Recorder(Arc<Notices>);

impl formwork_local::Progress for Recorder {
    fn report(&self, _: &str, _: u64, _: u64) {}

    fn notice(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

#[tokio::test]
async fn slow_types_are_converted_once_and_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut tiny = Tiny::new("llama");
    tiny.dtype = GgmlDType::Q4_1;
    let path = tiny.write(folder.path());
    let options = || LocalOptions::new().with_model(path.to_str().unwrap());
    let request = drawn(call(Some(person()), "x"), 3, 60);
    let mut texts = Vec::new();
    for _ in 0..2 {
        let local = Local::open(options().with_store(Store::at(folder.path().join("cache")))).unwrap();
        texts.push(answer(&local, &request).await.unwrap().text);
    }
    let kept =
        std::fs::read_dir(folder.path().join("cache/q8_0")).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = kept.filter(|path| path.extension().is_some_and(|end| end == "gguf")).collect();
    assert_eq!(kept.len(), 1);
    // A damaged file is created again: a byte of a tensor, the header, the end.
    let whole = std::fs::read(&kept[0]).unwrap();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for damaged in [changed(whole.len() - 40), changed(2), whole[..whole.len() / 2].to_vec()] {
        std::fs::write(&kept[0], damaged).unwrap();
        let notices = Arc::new(Notices::default());
        let heard = Recorder(Arc::clone(&notices));
        let options = options().with_store(Store::at(folder.path().join("cache")).with_progress(heard));
        let local = Local::open(options).unwrap();
        assert_eq!(answer(&local, &request).await.unwrap().text, texts[0]);
        let log = notices.lock().unwrap().join("\n");
        assert!(log.ends_with("is damaged: it is made anew"), "{log}");
        // The order of tensors is not stable, so the bytes may differ.
        assert_eq!(std::fs::read(&kept[0]).unwrap().len(), whole.len());
        let again = Arc::new(Notices::default());
        let heard = Recorder(Arc::clone(&again));
        Local::open(
            LocalOptions::new()
                .with_model(path.to_str().unwrap())
                .with_store(Store::at(folder.path().join("cache")).with_progress(heard)),
        )
        .unwrap();
        assert!(again.lock().unwrap().is_empty());
    }
    // Without a cache folder, loading works without the cache.
    let local = Local::open(options().with_store(Store::at(path.join("cache")))).unwrap();
    texts.push(answer(&local, &request).await.unwrap().text);
    assert_eq!((&texts[0], &texts[0]), (&texts[1], &texts[2]));
}

#[tokio::test]
async fn a_rule_is_kept_while_decoding() {
    let part = json!({"type": "integer", "minimum": 0, "maximum": 100});
    let schema = json!({
        "type": "object",
        "properties": {
            "parts": {
                "type": "object", "properties": {"a": part, "b": part}, "required": ["a", "b"],
                "additionalProperties": false,
            },
            "score": {"type": "integer", "minimum": 0, "maximum": 1000},
            "note": {"type": "string", "maxLength": 20},
        },
        "required": ["parts", "score", "note"],
        "additionalProperties": false,
    });
    let term = |path: &str, weight| Term { path: path.parse().unwrap(), weight };
    let rule = Rule::WeightedSum {
        target: "$.score".parse().unwrap(),
        terms: vec![term("$.parts.a", 7.5), term("$.parts.b", 2.5)],
        tolerance: 3.0,
    };
    let local = tiny("llama", Restraint::TinyModel);
    let answer_with = |seed, room, rules: Vec<Rule>| {
        let mut request = drawn(call(Some(schema.clone()), "x"), seed, room);
        request.rules = rules;
        // The original schema has the score first.
        let order = Lift::Reorder(["score", "parts", "note"].map(str::to_owned).into());
        Arc::make_mut(&mut request.lowered).lift = vec![LiftOp { at: String::new(), lift: order }];
        request
    };
    let mut broken = 0;
    for seed in 0..40 {
        for kept in [true, false] {
            let request = answer_with(seed, 200, kept.then(|| rule.clone()).into_iter().collect());
            let answer = answer(&local, &request).await.unwrap();
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            let mut report = Report::default();
            rule.validate(&value, &Context::EMPTY, &mut report);
            if kept {
                assert!(report.is_empty(), "seed {seed}: {}", answer.text);
                assert_eq!(answer.closed_at, None, "{}", answer.text);
            } else {
                broken += usize::from(!report.is_empty());
            }
        }
    }
    assert!(broken > 20, "a model of random weights broke the rule {broken} of 40 times without it");

    // A small budget does not break the rule, unless the answer reports that it was completed.
    let least = shortest(&local, &schema).await + 8;
    let short = answer(&local, &answer_with(0, least - 1, vec![rule.clone()])).await.unwrap_err();
    assert!(short.message.contains(&format!("({least} tokens)")), "{}", short.message);
    let mut whole = 0;
    for seed in 0..20 {
        for room in least..least + 12 {
            let answer = answer(&local, &answer_with(seed, room, vec![rule.clone()])).await.unwrap();
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            let mut report = Report::default();
            rule.validate(&value, &Context::EMPTY, &mut report);
            let closed = answer.closed_at.map(|at| answer.text[..at].contains("\"score\": "));
            // A score that was completed without the model is requested again.
            assert!(report.is_empty() || closed == Some(false), "seed {seed}, room {room}: {}", answer.text);
            whole += usize::from(closed.is_none());
        }
    }
    assert!(whole > 20, "{whole} of 240 were not closed");
}
