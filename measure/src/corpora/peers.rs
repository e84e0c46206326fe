//! Scores the transforms of other projects on real schemas: `measure/peers/transforms.py` writes them. These transforms do not map
//! completions back, so a valid instance survives if it satisfies the transformed schema.

use std::collections::{BTreeMap, HashMap};

use formwork_schema::compile;
use serde_json::Value;

use super::{Args, Transformed, percent, rows, text};

pub(super) fn run(args: &Args) -> Result<(), String> {
    let file = args.peers.as_ref().ok_or("name the output of measure/peers/transforms.py with --peers")?;
    let corpus = rows(&args.folder.join("schemas_maskbench.jsonl"))?;
    let corpus: HashMap<&str, &Value> = corpus.iter().map(|row| (text(row, "id"), row)).collect();
    let mut scores: BTreeMap<(String, String), Transformed> = BTreeMap::new();
    for row in rows(file)? {
        let original = corpus.get(text(&row, "id")).filter(|original| compile(&original["schema"]).is_ok());
        let Some(original) = original else { continue };
        let key = (text(&row, "dialect").to_owned(), text(&row, "peer").to_owned());
        let score = scores.entry(key).or_default();
        let Some(compiled) = score.schema(text(&row, "dialect"), row.get("schema")) else { continue };
        for instance in original["instances"].as_array().into_iter().flatten() {
            score.instance(instance["valid"] == true, compiled.is_valid(&instance["data"]));
        }
    }
    for ((dialect, peer), score) in scores {
        let Transformed { schemas, failed, rejected, valid, kept, invalid, refused } = score;
        println!(
            "{dialect}, {peer}: {} of {schemas} schemas can be sent = {:.1} % ({failed} fail, {rejected} are rejected); of \
             these {kept} of {valid} valid instances fit = {:.1} %, {refused} of {invalid} invalid ones are refused = {:.1} %",
            score.sent(),
            percent(score.sent(), schemas),
            percent(kept, valid),
            percent(refused, invalid),
        );
    }
    Ok(())
}
