//! Mistakes in descriptors: line, column, caret and expectation.

use std::path::PathBuf;

use formwork_skill::{Skill, SkillError, TemplateType, draft};

use crate::support::*;

fn wrong(text: &str) -> String {
    match Skill::parse("s.yaml", text) {
        Ok(_) => panic!("it is right:\n{text}"),
        Err(SkillError::Document(error)) => format!("{error:#}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_is_wrong_is_reported_with_its_place() {
    let with = |line: &str| format!("{PERSON}{line}\n");
    let last = PERSON.lines().count() + 1;
    for (text, says) in [
        (with("template: x"), format!("s.yaml:{last}:1: there is no `template` here")),
        (
            PERSON.replace("description:", "descripton:"),
            "s.yaml:3:1: there is no `descripton` here: did you mean `description`?".into(),
        ),
        (PERSON.replace("LLM_JSON_GENERATION", "LLM_JSON"), "s.yaml:4:16: ".into()),
        (PERSON.replace("{type: string}", "{type: text}"), "s.yaml:6:19: ".into()),
        (
            PERSON.replace("{{ country }}", "{{ county }}"),
            "s.yaml:10:3: the template uses `county`, which is no input: did you mean `country`?".into(),
        ),
        (PERSON.replace("{{ country }}", "{{ country "), "s.yaml:10:3: the template cannot be read: ".into()),
        (PERSON.replace("type: object", "type: objekt"), "s.yaml:13:5: the schema cannot be used: ".into()),
        (
            PERSON.replace("name: person\n", "name: A person\n"),
            "s.yaml:2:7: Pattern mismatch at $.name".into(),
        ),
        (
            with("handler: x"),
            format!("s.yaml:{last}:10: a handler is called only where there is no `template_type`"),
        ),
        (
            with("retry_once: true"),
            format!("s.yaml:{last}:13: `retry_once` needs LLM_JSON_GENERATION and a rubric"),
        ),
        (with("subject: country"), format!("s.yaml:{last}:10: `subject` is of LLM_REVIEW alone")),
        (with("rubric_file: r.yaml"), format!("s.yaml:{last}:14: there is no folder")),
        (
            with("policy: {temperature: 3}"),
            format!("s.yaml:{last}:23: Number out of range at $.policy.temperature: expected at most 2"),
        ),
        (
            with("policy: {attempt: 3}"),
            format!("s.yaml:{last}:10: there is no `attempt` here: did you mean `attempts`?"),
        ),
        (with("examples: [{county: x}]"), format!("s.yaml:{last}:12: the input `country` is missing")),
        (
            with("rubric: {name: r, criteria: [{id: a, description: b}, {id: a, description: c}]}"),
            format!("s.yaml:{last}:60: the id `a` is used twice"),
        ),
        (with("name: again"), format!("s.yaml:{last}:1: ")),
        (
            PERSON.split("output:").next().unwrap().to_owned(),
            "s.yaml:4:16: LLM_JSON_GENERATION needs `output`, which is missing".into(),
        ),
        (
            format!("{}output: {{}}\n", PERSON.split("output:").next().unwrap()),
            "s.yaml:11:9: expected one of `schema`, `file` and `shape`, found none".into(),
        ),
        (
            format!("{}output: {{shape: '{{\"a\": strng}}'}}\n", PERSON.split("output:").next().unwrap()),
            "s.yaml:11:17: the shape cannot be read: line 1, column 7: there is no type `strng`".into(),
        ),
        (REPLY.replace("subject: reply\n", ""), "s.yaml:2:1: expected `subject`".into()),
        (
            REPLY.replace("subject: reply", "subject: repli"),
            "s.yaml:8:10: there is no input `repli`: did you mean `reply`?".into(),
        ),
        (
            REPLY.split("rubric:").next().unwrap().to_owned(),
            "s.yaml:4:16: LLM_REVIEW needs `rubric` or `rubric_file`, which is missing".into(),
        ),
        (
            "name: x\ndescription: y\ninputs: {a-b: {type: string}}\n".into(),
            "s.yaml:3:15: expected a name of letters, digits and `_`, found `a-b`".into(),
        ),
        (
            "name: x\ndescription: y\ninputs: {a: {type: integer, default: z}}\n".into(),
            "s.yaml:3:38: Type mismatch at $.a: expected integer, found string".into(),
        ),
        ("name: x\ndescription: y\ninputs: [\n".into(), "s.yaml:".into()),
        (
            with(
                "rubric: {name: r, criteria: [{id: a, description: b, pattern: {path: $.nmae, matches: x}}]}",
            ),
            format!("s.yaml:{last}:63: the schema has no `$.nmae`: did you mean `$.name`?"),
        ),
        (
            "name: x\ndescription: y\ntemplate_type: LLM_REVIEW\ninputs: {text: {type: string}}\n\
             rubric: {name: r, criteria: [{id: a, description: b, pattern: {path: $.text, matches: x}}]}\n"
                .into(),
            "s.yaml:5:63: the schema has no `$.text`: nothing can be inside of `$`".into(),
        ),
    ] {
        let error = wrong(&text);
        assert!(error.lines().any(|line| line.starts_with(&says)), "expected {says}\nfound {error}");
        assert!(error.contains('^') && error.len() < 3000, "{error}");
    }
}

#[test]
fn a_template_type_that_is_not_known_says_which_there_are() {
    let error = wrong(&PERSON.replace("LLM_JSON_GENERATION", "LLM_JSON"));
    assert!(error.contains("LLM_JSON_GENERATION") && error.contains("LLM_REVIEW"), "{error}");
}

#[test]
fn a_draft_is_a_skill() {
    for kind in [Some(TemplateType::LlmJsonGeneration), Some(TemplateType::LlmReview), None] {
        let skill =
            Skill::parse("d.yaml", &draft("my-skill", kind)).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!((skill.name(), skill.descriptor().template_type), ("my-skill", kind));
    }
}

/// Creates a folder for this test with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}

#[test]
fn other_files_are_named_by_their_path() {
    let head = PERSON.split("output:").next().unwrap();
    let folder = folder(
        "others",
        &[
            ("a.yaml", &format!("{head}output: {{file: person.schema.json}}\nrubric_file: rubric.toml\n")),
            (
                "b.yaml",
                &format!("{}output: {{file: person.shape}}\n", head.replace("name: person", "name: shaped")),
            ),
            ("person.schema.json", r#"{"type": "object", "required": ["name"]}"#),
            ("person.shape", "{\n  \"name\": string\n}\n"),
            ("rubric.toml", "name = \"r\"\n[[criteria]]\nid = \"a\"\ndescription = \"b\"\n"),
            ("rubric.yaml", "name: r\ncriteria: [{id: a, description: b}]\n"),
            ("notes.txt", "no skill"),
        ],
    );
    let skills = Skill::load_all(&folder).unwrap();
    let names: Vec<_> = skills.iter().map(|skill| skill.name().to_owned()).collect();
    assert_eq!(names, ["person", "shaped"], "a rubric is no skill");
    assert!(skills.iter().all(|skill| skill.output_schema().unwrap()["required"][0] == "name"));
    assert_eq!(skills[0].rubric().unwrap().criteria[0].id, "a");
}

#[test]
fn files_elsewhere_and_files_that_are_wrong_are_refused() {
    let head = PERSON.split("output:").next().unwrap();
    let folder = folder(
        "elsewhere",
        &[("bad.json", "{\"type\": }"), ("bad.shape", "{\"a\": strng}"), ("good.json", "{}")],
    );
    for (output, says) in [
        ("../secret.json", "expected a path below the folder of this file, found `../secret.json`"),
        ("/etc/passwd", "expected a path below the folder"),
        ("none.json", "none.json: "),
        ("bad.json", "s.yaml:11:16: the schema cannot be used: #/type"),
        ("bad.shape", "bad.shape cannot be read: line 1, column 7"),
    ] {
        let path = folder.join("s.yaml");
        std::fs::write(&path, format!("{head}output: {{file: {output}}}\n")).unwrap();
        let error = Skill::load(&path).unwrap_err();
        assert!(format!("{error:#}").contains(says), "{output}: {error:#}");
    }
    std::fs::write(folder.join("s.yaml"), PERSON).unwrap();
    std::fs::write(folder.join("t.yaml"), PERSON).unwrap();
    let error = Skill::load_all(&folder).unwrap_err().to_string();
    assert!(
        error.contains("t.yaml:2:7: the skill `person` is in") && error.contains("s.yaml already"),
        "{error}"
    );
    assert!(matches!(Skill::load(&folder.join("none.yaml")), Err(SkillError::File { .. })));
}

#[test]
fn likely_mistakes_in_schemas_are_warnings_with_their_place() {
    let criteria = "name: r\ncriteria: [{id: a, description: A., schema: {maxLenght: 4}}]\n";
    let folder = folder(
        "lint",
        &[("s.json", "{\"type\": \"string\",\n \"maxLenght\": 4}"), ("r.yaml", criteria), ("any.json", "{}")],
    );
    let warning = |place: &str| format!("{place}: unknown keyword: did you mean `maxLength`?");
    for (line, place) in [
        ("output: {schema: {type: string, maxLenght: 4}}", Some("s.yaml:3:33")),
        ("output: {schema: {properties: {a: {maxLenght: 4}}}}", Some("s.yaml:3:36")),
        ("output: {file: s.json}", Some("s.json:2:2")),
        ("inputs: {a: {type: string, schema: {maxLenght: 4}}}", Some("s.yaml:3:37")),
        (
            "rubric: {name: r, criteria: [{id: a, description: A., schema: {maxLenght: 4}}]}",
            Some("s.yaml:3:64"),
        ),
        ("rubric_file: r.yaml", Some("r.yaml:2:46")),
        ("output: {schema: {}}", None),
        ("output: {file: any.json}", None),
    ] {
        let file = folder.join("s.yaml");
        std::fs::write(&file, format!("name: s\ndescription: x\n{line}\n")).unwrap();
        let skill = Skill::load(&file).unwrap_or_else(|error| panic!("{line}: {error:#}"));
        let found: Vec<_> = skill.warnings().iter().filter_map(|found| found.rsplit('/').next()).collect();
        assert_eq!(found, place.map(warning).into_iter().collect::<Vec<_>>(), "{line}");
    }
}

#[test]
fn a_shape_may_be_a_list_of_fields() {
    let folder = folder("fields", &[("a.shape", "vendor, items: [{name, qty: int}]")]);
    let whole = Skill::parse(
        "s.yaml",
        "name: s\ndescription: x\noutput: {shape: '{vendor: string, items: [{name: string, qty: integer}]}'}\n",
    );
    let whole = whole.unwrap();
    for output in [
        "{shape: 'vendor, items: [{name, qty: int}]'}",
        "{file: a.shape}",
        "{shape: '{vendor, items: [{name, qty: int}]}'}",
    ] {
        let file = folder.join("s.yaml");
        std::fs::write(&file, format!("name: s\ndescription: x\noutput: {output}\n")).unwrap();
        let skill = Skill::load(&file).unwrap_or_else(|error| panic!("{output}: {error:#}"));
        assert_eq!(skill.output_schema(), whole.output_schema(), "{output}");
    }
    // A mistake is that of the form that the text has.
    for (shape, says) in [
        ("vendor, qty: inte", "column 14: there is no type `inte`"),
        ("{vendor, qty: inte}", "column 15: there is no type `inte`"),
    ] {
        let error = wrong(&format!("name: s\ndescription: x\noutput: {{shape: '{shape}'}}\n"));
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn bombs_and_loops_are_refused() {
    let bomb = format!("a: &a [x]\nb: {}\n", "[*a, ".repeat(3000) + &"]".repeat(3000));
    assert!(wrong(&bomb).len() < 1000);
    let mut deep = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        deep.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", ")));
    }
    let began = std::time::Instant::now();
    assert!(wrong(&deep).len() < 1000);
    assert!(began.elapsed().as_secs() < 2);
}
