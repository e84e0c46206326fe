use proptest::prelude::*;
use serde_json::json;

use super::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["messages", "tools", "format", "schema", "parameters", "stream_options"])
            .prop_map(str::to_owned),
        ".{0,6}",
    ]
}

proptest! {
    #[test]
    fn a_document_is_its_text_with_another_model(
        members in prop::collection::vec((name(), value()), 0..8),
        at in 0_usize..8,
        given in ".{0,8}",
        set in ".{0,8}",
        repeats in any::<bool>(),
    ) {
        let pairs: Vec<(String, Value)> = {
            let mut pairs = members;
            pairs.insert(at.min(pairs.len()), ("model".to_owned(), given.clone().into()));
            if repeats {
                pairs.push(pairs[0].clone());
            }
            pairs
        };
        let written: Vec<String> =
            pairs.iter().map(|(name, value)| format!(" {} :\n{value} ", json!(name))).collect();
        let text = format!("{{{}}}", written.join(","));
        let whole: Value = serde_json::from_str(&text).unwrap();
        let document = Document::read(&text).unwrap();
        for (name, value) in whole.as_object().unwrap() {
            prop_assert_eq!(&document.get([name]).unwrap().value().unwrap(), value);
            prop_assert!(name == FORMAT || document.word([name]) == value.as_str());
            let is_empty = value.is_null() || *value == json!([]) || *value == json!("");
            prop_assert_eq!(document.is_empty([name]), is_empty);
            for (inner, value) in value.as_object().into_iter().flatten().filter(|_| name != FORMAT) {
                prop_assert_eq!(&document.get([name, inner]).unwrap().value().unwrap(), value);
                prop_assert_eq!(document.word([name, inner, "x"]), None);
            }
        }
        prop_assert!(document.is_empty(["missing", "member"]));
        let mut changed = whole.clone();
        changed["model"] = set.clone().into();
        let sent = document.with_model(&set, false).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), changed.clone());
        // Only the name changes; even the white space stays.
        if pairs.len() == whole.as_object().unwrap().len() {
            let same = document.with_model(&given, false).unwrap();
            prop_assert_eq!(&same[..], text.as_bytes());
        }
        let mut asking = changed;
        if !asking["stream_options"].is_object() {
            asking["stream_options"] = json!({});
        }
        asking["stream_options"]["include_usage"] = true.into();
        let sent = document.with_model(&set, true).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), asking);
    }
}

#[test]
fn the_extent_counts_texts_and_not_the_bytes_of_pictures() {
    let extent = |body: Value| Document::read(&body.to_string()).unwrap().extent();
    let picture = format!("data:image/png;base64,{}", "A".repeat(1_000_000));
    let part = |url: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {"url": url}},
        ]}]})
    };
    for url in [picture.as_str(), "https://example.org/a.png"] {
        assert_eq!(extent(part(url)), Extent { bytes: 5, tokens: 1_604, ..Extent::default() });
    }
    let schema = json!({"tools": [{"parameters": {"type": "object"}}], "prompt": "Hello"});
    assert_eq!(extent(schema), Extent { bytes: 22, ..Extent::default() });
}

#[test]
fn input_that_a_server_adds_is_found_and_pictures_and_tools_of_the_client_are_none() {
    let said = |part: Value| json!({"model": "m", "messages": [{"role": "user", "content": [part]}]});
    let with = |name: &str, value: Value| {
        let mut body = json!({"model": "m", "input": "Hi"});
        body[name] = value;
        body
    };
    let picture = |source: Value| said(json!({"type": "image", "source": source}));
    let document = |source: Value| said(json!({"type": "document", "source": source}));
    let tool =
        |kind: &str| with("tools", json!([{"type": "function", "name": "f"}, {"type": kind, "name": "t"}]));
    for (body, hidden) in [
        (with("previous_response_id", json!("r")), Some("previous_response_id")),
        (with("previous_response_id", Value::Null), None),
        (with("conversation", json!({"id": "c"})), Some("conversation")),
        (with("prompt", json!({"id": "p"})), Some("prompt")),
        (with("prompt", json!("Hi")), None),
        (with("mcp_servers", json!([{"type": "url", "url": "u"}])), Some("mcp_servers")),
        (with("mcp_servers", json!([])), None),
        (with("web_search_options", json!({})), Some("web_search_options")),
        (with("plugins", json!([{"id": "web"}])), Some("plugins")),
        (with("metadata", json!({"file_id": "f", "previous_response_id": "r"})), None),
        (with("input", json!([{"type": "item_reference", "id": "i"}])), Some("item_reference")),
        (said(json!({"type": "file", "file": {"file_id": "f"}})), Some("file_id")),
        (said(json!({"type": "file", "file": {"file_data": "JVBER", "filename": "f"}})), None),
        (said(json!({"type": "input_file", "file_id": "f"})), Some("file_id")),
        (said(json!({"type": "input_file", "file_url": "u"})), Some("file_url")),
        (document(json!({"type": "file", "file_id": "f"})), Some("file_id")),
        (document(json!({"type": "url", "url": "u"})), Some("source.url")),
        (document(json!({"type": "text", "data": "Hi"})), None),
        (document(json!({"type": "content", "content": [{"type": "text", "text": "Hi"}]})), None),
        (json!({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}), Some("audio.id")),
        (with("audio", json!({"voice": "v", "format": "wav"})), None),
        // A picture has a highest number of tokens, wherever it is.
        (picture(json!({"type": "file", "file_id": "f"})), None),
        (picture(json!({"type": "url", "url": "u"})), None),
        (said(json!({"type": "input_image", "file_id": "f"})), None),
        (tool("web_search"), Some("tools")),
        (tool("web_search_20250305"), Some("tools")),
        (tool("file_search"), Some("tools")),
        (tool("mcp"), Some("tools")),
        (tool("of tomorrow"), Some("tools")),
        (tool("custom"), None),
        (tool("bash_20250124"), None),
        (tool("text_editor_20250728"), None),
        (tool("apply_patch"), None),
        (json!({"tools": [{"name": "f", "input_schema": {"type": "web_search", "file_id": "f"}}]}), None),
    ] {
        let text = body.to_string();
        assert_eq!(Document::read(&text).unwrap().extent().hidden(), hidden, "{text}");
    }
    let tokens = |body: Value| Document::read(&body.to_string()).unwrap().extent().tokens;
    for source in [json!({"type": "file", "file_id": "f"}), json!({"type": "url", "url": "u"})] {
        assert_eq!(tokens(picture(source.clone())), 1_604, "{source}");
    }
    assert_eq!(tokens(said(json!({"type": "input_image", "file_id": "f"}))), 1_604);
    // Prompts of tokens.
    assert_eq!((tokens(with("input", json!([5, 6, 7]))), tokens(with("context", json!([5, 6])))), (3, 2));
    for (control, is_cached) in [(json!({"type": "ephemeral"}), true), (Value::Null, false)] {
        let body = said(json!({"type": "text", "text": "Hi", "cache_control": control}));
        assert_eq!(Document::read(&body.to_string()).unwrap().extent().is_cached(), is_cached, "{body}");
    }
}

#[test]
fn text_that_is_no_object_or_too_deep_is_refused() {
    let deep = format!("{}1{}", "[".repeat(500_000), "]".repeat(500_000));
    for text in ["", "[]", "5", "{", "{\"a\": 1", "{\"a\": 1}x", "{\"messages\": [}", "{\"model\": tru}"] {
        assert!(Document::read(text).is_err(), "{text}");
    }
    assert!(Document::read(&format!("{{\"messages\": {deep}}}")).is_err());
    // A schema is an error where it is read.
    let text = format!("{{\"tools\": [{{\"parameters\": {deep}}}]}}");
    let document = Document::read(&text).unwrap();
    assert!(document.get(["tools"]).unwrap().value().is_err());
    // Brackets in strings do not nest.
    let text = json!({"prompt": "[".repeat(5_000)}).to_string();
    assert_eq!(Document::read(&text).unwrap().word(["prompt"]), Some("[".repeat(5_000).as_str()));
}

#[test]
fn only_schemas_stay_unread_and_texts_are_borrowed() {
    let text = r#"{"model": "m", "format": {"type": "object"}, "tools": [{"function": {"parameters": {"a": 1}}}],
        "text": {"format": {"schema": {"b": 2}, "name": "n\u006f"}}}"#;
    let document = Document::read(text).unwrap();
    assert_eq!(document.get(["format"]), Some(&Node::Unread(r#"{"type": "object"}"#)));
    assert_eq!(document.get(["text", "format", "schema"]), Some(&Node::Unread(r#"{"b": 2}"#)));
    assert!(matches!(document.get(["model"]), Some(Node::Text(Cow::Borrowed("m")))));
    assert_eq!(document.word(["text", "format", "name"]), Some("no"));
    assert!(!document.is_empty(["tools"]) && document.is_empty(["missing", "member"]));
}

#[test]
fn a_value_takes_four_words() {
    assert!(size_of::<Node<'_>>() <= 4 * size_of::<usize>(), "{}", size_of::<Node<'_>>());
}
