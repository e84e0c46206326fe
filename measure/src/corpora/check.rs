//! Scores validation on real schemas with labelled instances, and on the official test suites.

use formwork_schema::compile;
use serde_json::Value;

use super::{Args, Scores, rows, text};

pub(super) fn run(args: &Args) -> Result<(), String> {
    for (file, draft) in [
        ("schemas_maskbench", None),
        ("schemas_schemastore", None),
        ("schemas_testsuite_draft2020-12", None),
        ("schemas_testsuite_draft7", Some("http://json-schema.org/draft-07/schema#")),
    ] {
        let mut scores = Scores::default();
        let (mut unusable, mut foreign) = (0, 0);
        for mut row in rows(&args.folder.join(format!("{file}.jsonl")))? {
            if row["needs_remotes"] == true {
                foreign += 1;
                continue;
            }
            if let (Some(draft), Value::Object(schema)) = (draft, &mut row["schema"]) {
                schema.entry("$schema").or_insert_with(|| draft.into());
            }
            let optional = row["optional"] == true;
            let compiled = compile(&row["schema"]);
            if let Err(error) = &compiled {
                unusable += 1;
                if args.prints(file) {
                    println!("{}: {error}", text(&row, "id"));
                }
            }
            for instance in row["instances"].as_array().into_iter().flatten() {
                let right = compiled
                    .as_ref()
                    .is_ok_and(|schema| schema.is_valid(&instance["data"]) == (instance["valid"] == true));
                scores.add(if optional { "optional" } else { "verdicts" }, right);
                if !right && compiled.is_ok() && args.prints(file) {
                    println!(
                        "{} {}: labelled {}, {}",
                        text(&row, "id"),
                        text(&row, "description"),
                        instance["valid"],
                        instance["note"]
                    );
                }
            }
        }
        scores.print(&format!(
            "{file}: {unusable} schemas not usable, {foreign} left out for their remote documents"
        ));
    }
    Ok(())
}
