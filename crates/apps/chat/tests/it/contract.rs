use formwork_chat::{AnswerContract, CONTRACT_1_0, CONTRACT_1_1, StructuredAnswer, StructuredAnswerLite};
use formwork_core::{Inline, Schema};
use serde_json::{Value, json};

/// Returns a schema without annotations.
fn bare(mut schema: Value) -> Value {
    fn strip(node: &mut Value, is_schema: bool) {
        match node {
            Value::Object(members) => {
                if is_schema {
                    members.retain(|name, _| !matches!(name.as_str(), "title" | "description" | "$schema"));
                }
                for (name, member) in members.iter_mut() {
                    strip(member, !(is_schema && name == "properties"));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| strip(item, is_schema)),
            _ => {}
        }
    }
    strip(&mut schema, true);
    schema
}

#[test]
fn the_type_says_what_the_schema_of_the_repository_says() {
    let path: std::path::PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "examples", "structured-answer-lite.schema.json"]
            .iter()
            .collect();
    let written: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let derived = Inline::of::<StructuredAnswerLite>();
    assert_eq!(derived.name(), "StructuredAnswerLite");
    assert_eq!(bare(derived.document().clone()), bare(written));
}

#[test]
fn the_contract_is_the_documents_and_says_what_the_type_says() {
    let contract: Value = serde_json::from_str(CONTRACT_1_0).unwrap();
    let schema = bare(Inline::of::<StructuredAnswerLite>().document().clone());
    for (name, part) in schema["properties"].as_object().unwrap() {
        let names: Vec<_> = part["properties"].as_object().unwrap().keys().collect();
        assert_eq!(contract[name].as_object().unwrap().keys().collect::<Vec<_>>(), names, "{name}");
    }
    // The text equals the code block in section 3 of the specification byte for byte.
    assert_eq!((CONTRACT_1_0.len(), CONTRACT_1_0.lines().count()), (351, 18));
    assert!(CONTRACT_1_0.starts_with(
        "{\n  \"task\": {\n    \"type\": \"qa | extraction | classification | summarization | other\",\n"
    ));
}

#[test]
fn version_1_1_is_the_same_with_data() {
    let (old, new): (Value, Value) =
        (serde_json::from_str(CONTRACT_1_0).unwrap(), serde_json::from_str(CONTRACT_1_1).unwrap());
    let mut without = new.clone();
    without["answer"].as_object_mut().unwrap().remove("data");
    without["debug"]["schema_version"] = json!("1.0");
    assert_eq!(without, old);
    assert_eq!(<StructuredAnswer<u8> as AnswerContract>::VERSION, "1.1");
    assert!(StructuredAnswer::<u8>::prompt_text().contains("\"maximum\": 255"));
}
