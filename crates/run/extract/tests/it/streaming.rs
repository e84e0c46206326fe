use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{Extractor, Update};
use formwork_testkit::{Reply, Scripted};
use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn a_stream_tells_what_happens() {
    let replies = [
        Reply::pieces([r#"{"na"#, r#"me": "Mar"#, r#"ia", "age": 3"#, "40}"]),
        Reply::from(FaultKind::Overloaded),
        Reply::text(r#"{"age": 34}"#),
    ];
    let model = Arc::new(Scripted::new(replies));
    let mut updates = persons(&model).0.build().unwrap().stream(TEXT);
    let mut texts = Vec::new();
    while let Some(update) = updates.next().await {
        texts.push(match update.unwrap() {
            Update::Started { attempt, ask: Ask::Whole, .. } => format!("{attempt}: whole"),
            Update::Started { attempt, ask: Ask::Patch(paths), .. } => format!("{attempt}: {}", paths[0]),
            Update::Text(text) => text,
            Update::Partial(value) => format!("  {}", value.value()),
            Update::Finished(call) => classes(&[call])[0].to_owned(),
            Update::Asking { attempt, ask: Ask::Patch(paths), wait, .. } => {
                format!("next {attempt}: {} in {wait:?}", paths[0])
            }
            Update::Done(outcome) => format!("done {:?}", outcome.value.age),
            other => panic!("{other:?}"),
        });
    }
    let expected = [
        "1: whole",
        r#"{"na"#,
        r#"  {}"#,
        r#"me": "Mar"#,
        r#"  {"name":"Mar"}"#,
        r#"ia", "age": 3"#,
        r#"  {"name":"Maria"}"#,
        "40}",
        r#"  {"name":"Maria","age":340}"#,
        "invalid",
        "next 2: $.age in 0ns",
        "2: $.age",
        "fault",
        "next 2: $.age in 2s",
        "2: $.age",
        r#"{"age": 34}"#,
        "accepted",
        "done 34",
    ];
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn a_stream_ends_with_the_error() {
    let model = Arc::new(Scripted::new([Reply::from(FaultKind::Auth)]));
    let extractor = persons(&model).0.build().unwrap();
    let error = extractor.stream(TEXT).outcome().await.unwrap_err();
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Unavailable, 1));

    let mut updates = extractor.stream(TEXT);
    while let Some(update) = updates.next().await {
        assert!(!matches!(update, Ok(Update::Done(_))));
    }
    assert!(updates.next().await.is_none());
    assert_eq!(updates.outcome().await.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_stream_continues_only_while_it_is_read_and_stops_when_dropped() {
    let clock = Arc::default();
    let model = Endless::new(&[r#"{"name": ""#], Then::Repeat("x", Arc::clone(&clock)));
    let mut updates = persons(&model).0.build().unwrap().stream(TEXT);
    for _ in 0..6 {
        updates.next().await.unwrap().unwrap();
    }
    assert!(clock.now() <= Time(2), "{:?}", clock.now());
    drop(updates);
    assert!(model.dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn snapshots_are_in_the_original_schema_s_form() {
    /// Asks for `null` where a value is absent.
    #[derive(Debug)]
    struct Nulls;
    impl Lower for Nulls {
        fn name(&self) -> &str {
            "nulls"
        }
        fn enforcement(&self) -> Enforcement {
            Enforcement::Schema
        }
        fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
            let lift = vec![LiftOp { at: String::new(), lift: Lift::DropNull(vec!["nick".to_owned()]) }];
            let schema = Some(request.schema.clone());
            Ok(Lowered::new(Enforcement::Schema, schema).with_lift(lift))
        }
    }
    let model = Arc::new(Scripted::new([Reply::pieces([r#"{"nick": null, "#, r#""name": "Bo"}"#])]));
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "nick": {"type": "string"}}});
    let extractor = formwork_extract::Extractor::for_document("person", schema)
        .with_target(formwork_extract::Backend::from(model).with_mode(Arc::new(Nulls)))
        .build()
        .unwrap();
    let (mut updates, mut partial) = (extractor.stream(TEXT), Vec::new());
    while let Some(update) = updates.next().await {
        if let Update::Partial(value) = update.unwrap() {
            partial.push(value.value().clone());
        }
    }
    assert_eq!(partial, [json!({}), json!({"name": "Bo"})]);
}

#[tokio::test]
async fn snapshots_of_a_long_document_are_few() {
    let pieces: Vec<String> =
        ["[".to_owned()].into_iter().chain((0..20_000).map(|n| format!("{n},"))).collect();
    let model = Arc::new(Scripted::new([Reply::pieces(pieces.into_iter().chain(["0]".to_owned()]))]));
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let extractor = formwork_extract::Extractor::for_document("numbers", schema)
        .with_target(backend(&model))
        .with_deadline(Duration::from_secs(3600))
        .build()
        .unwrap();
    let (mut updates, mut partial, mut last) = (extractor.stream(TEXT), 0, None);
    while let Some(update) = updates.next().await {
        match update.unwrap() {
            Update::Partial(value) => (partial, last) = (partial + 1, Some(value.value().clone())),
            Update::Done(outcome) => assert_eq!(last.take(), Some(outcome.value)),
            _ => {}
        }
    }
    assert!(partial < 3_000, "{partial}");
}

/// Answers in pieces of 20 characters, and returns the number of pieces that were read with the calls of the outcome.
fn pieces_read(first: &str, level: Level, policy: Policy, capabilities: Capabilities) -> (usize, usize) {
    let pieces = |text: &str| -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        characters.chunks(20).map(|piece| piece.iter().collect()).collect()
    };
    let good = r#"{"age": 3, "name": "Ada", "items": []}"#;
    let model = Scripted::new([Reply::pieces(pieces(first)), Reply::pieces(pieces(good))]);
    let model = Arc::new(model.with_capabilities(capabilities));
    let schema = json!({
        "type": "object",
        "properties": {"age": {"type": "integer"}, "name": {"type": "string"}, "items": {"items": {"type": "string"}}},
        "required": ["age", "name"],
        "additionalProperties": false,
    });
    let extractor =
        Extractor::for_document("document", schema).with_target(backend(&model)).with_level(level);
    let extractor = extractor.with_policy(Arc::new(policy)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut updates, mut read, mut calls) = (extractor.stream(TEXT), 0, 0);
        while let Some(update) = updates.next().await {
            match update.unwrap() {
                Update::Text(_) if calls == 1 => read += 1,
                Update::Started { .. } => calls += 1,
                _ => {}
            }
        }
        (read, calls)
    })
}

#[test]
fn an_answer_that_cannot_become_valid_is_stopped_at_its_chunk() {
    let items = vec!["\"an item\""; 250].join(", ");
    let schema = || Capabilities::new(Enforcement::Schema);
    let all = |text: &str| text.len().div_ceil(20);
    let early = format!("{{\"age\": \"three\", \"name\": \"Ada\", \"items\": [{items}]}}");
    let name = format!("{{\"age\": 3, \"name\": \"Ada\", \"items\": [{items}], \"more\": [{items}]}}");
    let late = format!("{{\"age\": 3, \"name\": \"Ada\", \"items\": [{items}, 7, {items}]}}");
    let prose = format!("Here it is: {early}");
    let policy = || Policy::new(3);
    for (text, policy, capabilities, read, what) in [
        (&early, policy(), schema(), 1, "the wrong type is in the first chunk"),
        (
            &name,
            policy(),
            schema(),
            name.find("\"more\"").unwrap().div_ceil(20) + 1,
            "no patch removes a member of the root",
        ),
        (&late, policy(), schema(), all(&late), "a patch costs less than another answer"),
        (
            &late,
            policy().with_patching(Patching::Never),
            schema(),
            late.find("7,").unwrap() / 20 + 1,
            "there are no patches",
        ),
        (&early, policy().with_stop(false), schema(), all(&early), "the policy reads to the end"),
        (&prose, policy(), schema(), all(&prose), "another document may follow prose"),
    ] {
        let (found, calls) = pieces_read(text, Level::Lenient, policy, capabilities);
        assert!(calls >= 2, "{what}");
        assert!(
            found.abs_diff(read) <= usize::from(what.starts_with("no patch")),
            "{what}: {found} of {read}"
        );
    }
}

/// An answer in one piece is paid for, so that stopping it would only lose its tokens and its other violations.
#[test]
fn an_answer_in_one_piece_is_judged_and_one_in_small_pieces_is_stopped_soon() {
    let schema = json!({
        "type": "object",
        "properties": {"age": {"type": "integer"}, "name": {"type": "string"}, "note": {"type": "string"}},
        "required": ["age", "name"],
    });
    let text = json!({"age": "three", "name": {"first": 7}, "note": "a word ".repeat(100)}).to_string();
    let decided = text.find('t').unwrap();
    for (size, finish, violations, most) in [
        (text.len(), Finish::Stop, 2, text.len()),
        (1, Finish::Stopped, 1, decided + 40),
        (3, Finish::Stopped, 1, decided + 40),
        (50, Finish::Stopped, 1, 100),
    ] {
        let pieces = text.as_bytes().chunks(size).map(|piece| String::from_utf8_lossy(piece));
        let model = Scripted::new([Reply::pieces(pieces)]);
        let model = Arc::new(model.with_capabilities(Capabilities::new(Enforcement::Schema)));
        let extractor = Extractor::for_document("document", schema.clone()).with_target(backend(&model));
        let extractor = extractor.with_max_attempts(1).build().unwrap();
        let calls = extractor.extract_blocking(TEXT).unwrap_err().calls().to_vec();
        let call = &calls[0];
        let found = call.verdict.failure().map_or(0, |failure| failure.violations().len());
        assert_eq!((call.finish.clone(), found), (Some(finish), violations), "{size}");
        assert!(call.text.len() <= most, "{size}: {}", call.text);
    }
}

#[test]
fn a_long_run_of_one_or_two_characters_that_the_contract_allows_is_no_runaway() {
    let schema = json!({
        "type": "object",
        "properties": {"line": {"type": "string"}, "counts": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "required": ["line", "counts"],
    });
    for dialect in formwork_dialect::Dialects::builtin().iter() {
        for (run, is_accepted) in [
            ("-".repeat(4_000), true),
            ("A".repeat(20_000), true),
            ("- ".repeat(3_000), true),
            ("\n\n".repeat(2_000), true),
            ("\r\n".repeat(2_000), true),
            ("ä–".repeat(2_000), true),
            ("-".repeat(40_000), false),
            ("ha ".repeat(2_000), false),
        ] {
            let document = json!({"line": run, "counts": {"a": 1}});
            // As a part of the whole document, and as the answer to a patch.
            for wrong in [None, Some(json!({"line": 7, "counts": {"a": 1}}))] {
                let lower: Arc<dyn Lower> = dialect.clone();
                let lowered = lower.lower(&LowerRequest::new(&schema)).unwrap();
                let whole = |value: &serde_json::Value| {
                    formwork_dialect::lower_value(value, &lowered).unwrap_or(value.clone()).to_string()
                };
                let text =
                    wrong.as_ref().map_or_else(|| whole(&document), |_| json!({"line": run}).to_string());
                let pieces = |text: &str| {
                    let (before, after) = text.split_at(text.floor_char_boundary(text.len() / 2));
                    Reply::pieces([before, after])
                };
                let replies = wrong.iter().map(|wrong| Reply::text(whole(wrong))).chain([pieces(&text)]);
                let model = Arc::new(Scripted::new(replies));
                let backend = formwork_extract::Backend::from(Arc::clone(&model)).with_mode(lower);
                let policy = Policy::new(1 + u32::from(wrong.is_some()));
                let extractor = Extractor::for_document("document", schema.clone()).with_target(backend);
                let extractor = extractor.with_policy(Arc::new(policy)).build().unwrap();
                let outcome = extractor.extract_blocking(TEXT);
                let what = format!("{}: {} {wrong:?}", dialect.name(), &text[..text.floor_char_boundary(30)]);
                assert_eq!(outcome.is_ok(), is_accepted, "{what}: {:?}", outcome.err());
            }
        }
    }
}
