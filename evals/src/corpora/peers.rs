//! Scores the transforms of other projects on real schemas: `evals/peers/transforms.py` writes them.

use std::collections::{BTreeMap, HashMap};

use formwork_dialect::{Verdict, lint};
use formwork_schema::compile;
use serde_json::Value;

use super::{Args, rows, text};

/// The results of one transform.
#[derive(Default)]
struct Score {
    schemas: usize,
    /// Schemas that the transform failed on.
    failed: usize,
    /// Schemas with a keyword that the provider rejects, by the linter, and schemas that no validator can read.
    rejected: usize,
    valid: usize,
    /// Valid instances that satisfy the transformed schema. These transforms do not map completions back.
    kept: usize,
    invalid: usize,
    refused: usize,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let file = args.peers.as_ref().ok_or("name the output of evals/peers/transforms.py with --peers")?;
    let corpus = rows(&args.folder.join("schemas_maskbench.jsonl"))?;
    let corpus: HashMap<&str, &Value> = corpus.iter().map(|row| (text(row, "id"), row)).collect();
    let mut scores: BTreeMap<(String, String), Score> = BTreeMap::new();
    for row in rows(file)? {
        let Some(original) = corpus.get(text(&row, "id")) else { continue };
        let key = (text(&row, "dialect").to_owned(), text(&row, "peer").to_owned());
        if compile(&original["schema"]).is_ok() {
            scores.entry(key).or_default().add(&row, original);
        }
    }
    for ((dialect, peer), Score { schemas, failed, rejected, valid, kept, invalid, refused }) in scores {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let taken = schemas - failed - rejected;
        println!(
            "{dialect}, {peer}: {taken} of {schemas} schemas can be sent = {:.1} % ({failed} fail, {rejected} are rejected); of \
             these {kept} of {valid} valid instances fit = {:.1} %, {refused} of {invalid} invalid ones are refused = {:.1} %",
            percent(taken, schemas),
            percent(kept, valid),
            percent(refused, invalid),
        );
    }
    Ok(())
}

impl Score {
    fn add(&mut self, row: &Value, original: &Value) {
        self.schemas += 1;
        let Some(schema) = row.get("schema") else {
            self.failed += 1;
            return;
        };
        let rejects = |found: &formwork_dialect::LintFinding| found.verdict == Verdict::Rejected;
        let is_rejected = lint(text(row, "dialect"), schema).iter().any(rejects);
        let (Ok(compiled), false) = (compile(schema), is_rejected) else {
            self.rejected += 1;
            return;
        };
        for instance in original["instances"].as_array().into_iter().flatten() {
            let fits = compiled.is_valid(&instance["data"]);
            if instance["valid"] == true {
                self.valid += 1;
                self.kept += usize::from(fits);
            } else {
                self.invalid += 1;
                self.refused += usize::from(!fits);
            }
        }
    }
}
