//! The skills in `examples/skills` are valid, and so are their examples.

use std::path::PathBuf;

use formwork_skill::{Skill, TemplateType};
use serde_json::{Value, json};

fn skills() -> Vec<Skill> {
    let folder: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "examples", "skills"].iter().collect();
    Skill::load_all(&folder).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn there_are_six_and_more_and_each_can_be_tried() {
    let skills = skills();
    assert!(skills.len() >= 6);
    for skill in &skills {
        assert!(!skill.descriptor().examples.is_empty(), "{}", skill.name());
        assert!(skill.file().ends_with(&format!("{}.yaml", skill.name())), "{}", skill.file());
        for example in &skill.descriptor().examples {
            let inputs = skill.complete(Value::Object(example.clone())).unwrap();
            assert!(skill.descriptor().prompt.is_none() || !skill.render(&inputs).unwrap().1.is_empty());
        }
    }
    let of = |kind| skills.iter().filter(|skill| skill.descriptor().template_type == Some(kind)).count();
    assert!(of(TemplateType::LlmReview) >= 1 && of(TemplateType::LlmJsonGeneration) >= 5);
}

#[test]
fn they_satisfy_the_published_schema() {
    let schema: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "schemas", "skill.json"].iter().collect();
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let schema = formwork_schema::compile(&schema).unwrap();
    for skill in skills() {
        assert!(schema.is_valid(&serde_json::to_value(skill.descriptor()).unwrap()), "{}", skill.name());
    }
    assert!(!schema.is_valid(&json!({"name": "x"})));
}
