//! Schema files in a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use formwork::golden::{Error, FileChangeKind, Folder, Report};
use formwork::schema::Compatibility;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(JsonSchema, Serialize, Deserialize)]
struct Ticket {
    title: String,
    #[serde(default)]
    labels: Vec<String>,
    priority: Option<u8>,
}

/// A folder for each test, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("formwork-golden-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        Self(place)
    }

    fn folder(&self) -> Folder {
        Folder::new(&self.0)
            .typed::<Ticket>("ticket")
            .lowered("openai")
            .written::<Ticket>("written-ticket")
            .with_command("cargo xtask schema")
    }

    fn edit(&self, file: &str, edit: impl Fn(&mut Value)) {
        let path = self.0.join(file);
        let mut document = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        edit(&mut document);
        fs::write(path, format!("{document:#}\n")).unwrap();
    }

    /// Returns the name and content of every file in the folder.
    fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let Ok(entries) = fs::read_dir(&self.0) else { return BTreeMap::new() };
        entries
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().is_file())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn outdated(folder: Folder) -> Report {
    match folder.check() {
        Err(Error::Outdated(report)) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_passes_and_is_not_written_again() {
    let place = Place::new("write");
    let written = place.folder().write().unwrap();
    assert_eq!(written.files, ["ticket.json", "ticket.openai.json", "written-ticket.json"]);
    place.folder().check().unwrap();
    place.folder().check_or_write().unwrap();
    assert!(place.folder().write().unwrap().files.is_empty());
    let path = place.0.join("ticket.json");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace('\n', "\r\n")).unwrap();
    place.folder().check().unwrap();
}

#[test]
fn the_files_are_the_type_as_read_and_written_and_the_schema_as_sent() {
    let files = Place::new("files").folder().files().unwrap();
    let document = |name: &str| -> Value { serde_json::from_str(&files[name]).unwrap() };
    assert_eq!(document("ticket.json")["required"], json!(["title"]));
    assert_eq!(document("written-ticket.json")["required"], json!(["title", "labels", "priority"]));
    assert_eq!(document("ticket.json")["properties"]["priority"].get("format"), None, "uint8 is no format");
    let sent = document("ticket.openai.json");
    assert_eq!(sent["additionalProperties"], false);
    assert_eq!(sent["required"], json!(["title", "labels", "priority"]));
    for text in files.values() {
        let document: Value = serde_json::from_str(text).unwrap();
        assert_eq!(document["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(text.ends_with("}\n"), "{text}");
    }
}

#[test]
fn a_check_names_missing_altered_and_stale_files_and_writes_nothing() {
    let place = Place::new("check");
    place.folder().write().unwrap();
    fs::remove_file(place.0.join("written-ticket.json")).unwrap();
    fs::write(place.0.join("old.json"), "{}\n").unwrap();
    fs::write(place.0.join("README.md"), "Schemas.\n").unwrap();
    fs::create_dir(place.0.join("drafts")).unwrap();
    place.edit("ticket.json", |schema| schema["properties"]["priority"]["maximum"] = json!(300));
    place.edit("ticket.openai.json", |schema| schema["title"] = json!("Another"));
    let before = place.snapshot();
    let report = outdated(place.folder());
    assert_eq!(place.snapshot(), before, "a check writes nothing");

    let names: Vec<_> = report.files().iter().map(|change| change.file.as_str()).collect();
    assert_eq!(names, ["ticket.json", "ticket.openai.json", "written-ticket.json", "old.json"]);
    let text = report.to_string();
    let folder = place.0.display().to_string();
    for expected in [
        &format!("--- a/{}/ticket.json", folder.trim_start_matches('/')),
        "-      \"maximum\": 300",
        "+      \"maximum\": 255",
        "-  \"title\": \"Another\"",
        "ticket.json: narrowed: breaks readers of old values",
        "    $.priority: narrowed",
        "ticket.openai.json: the schema that is sent in the dialect `openai` changed",
        "written-ticket.json: added",
        "old.json: removed: no type owns the file; delete it",
        "run `cargo xtask schema`",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("README.md") && !text.contains("drafts"), "{text}");

    let written = place.folder().write().unwrap();
    assert_eq!(written.files, ["ticket.json", "ticket.openai.json", "written-ticket.json"]);
    assert_eq!(written.stale, ["old.json"], "nothing is deleted");
    let text = outdated(place.folder()).to_string();
    assert!(!text.contains("cargo xtask schema"), "no command helps: {text}");
}

#[test]
fn a_check_of_a_folder_that_does_not_exist_creates_none() {
    let place = Place::new("none");
    let report = outdated(place.folder());
    assert!(report.files().iter().all(|change| change.kind == FileChangeKind::Added));
    assert!(!Path::new(&place.0).exists());
}

#[test]
fn each_change_says_whether_it_breaks_readers() {
    type Edit = fn(&mut Value);
    // The edit restores the schema from before the type changed.
    let cases: [(&str, Edit, Compatibility, bool, &str); 6] = [
        (
            "added",
            |old| drop(old["properties"].as_object_mut().unwrap().shift_remove("priority")),
            Compatibility::Narrowed,
            true,
            "$.priority: added, optional",
        ),
        (
            "required",
            |old| drop(old.as_object_mut().unwrap().shift_remove("required")),
            Compatibility::Narrowed,
            false,
            "$.title: narrowed",
        ),
        (
            "removed",
            |old| old["properties"]["gone"] = json!({"type": "string"}),
            Compatibility::Widened,
            true,
            "$.gone: removed",
        ),
        (
            "widened",
            |old| old["properties"]["priority"]["maximum"] = json!(9),
            Compatibility::Widened,
            true,
            "$.priority: widened",
        ),
        (
            "narrowed",
            |old| old["properties"]["title"]["type"] = json!(["string", "null"]),
            Compatibility::Narrowed,
            false,
            "$.title: narrowed",
        ),
        (
            "described",
            |old| old["properties"]["title"]["description"] = json!("Short."),
            Compatibility::Unchanged,
            true,
            "the same values are valid",
        ),
    ];
    for (name, edit, verdict, keeps_named, line) in cases {
        let place = Place::new(name);
        place.folder().write().unwrap();
        place.edit("ticket.json", edit);
        let report = outdated(place.folder());
        let FileChangeKind::Altered(comparison) = &report.files()[0].kind else { panic!("{name}: {report}") };
        assert_eq!((comparison.verdict, comparison.keeps_named), (verdict, keeps_named), "{name}: {report}");
        assert_eq!(report.keeps_old_values(), verdict.keeps_old_values(), "{name}");
        assert!(report.summary().contains(line), "{name}: {report}");
    }
}

#[test]
fn a_file_that_is_no_schema_is_replaced_and_nothing_is_claimed() {
    let place = Place::new("broken");
    place.folder().write().unwrap();
    fs::write(place.0.join("ticket.json"), "<<<<<<< ours\n").unwrap();
    let report = outdated(place.folder());
    assert!(
        !report.keeps_old_values() && report.to_string().contains("ticket.json: cannot be told"),
        "{report}"
    );
    assert_eq!(place.folder().write().unwrap().files, ["ticket.json"]);
}

#[test]
fn mistakes_in_the_list_are_errors_before_anything_is_written() {
    let place = Place::new("mistakes");
    let empty = || Folder::new(&place.0);
    let ticket = || empty().typed::<Ticket>("ticket");
    for (folder, expected) in [
        (empty().lowered("openai"), "add a schema first"),
        (ticket().lowered("opnai"), "there is no dialect `opnai`: did you mean `openai`?"),
        (ticket().lowered("prompt"), "`prompt` sends no schema"),
        (ticket().written::<Ticket>("ticket"), "two schemas have the file ticket.json"),
        (empty().document("no", json!(false)).lowered("openai"), "no.openai.json cannot be made"),
    ] {
        let error = folder.write().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        // A test that unwraps the error prints it readably.
        assert_eq!(format!("{error:?}"), error.to_string());
    }
    assert!(!place.0.exists());
}
