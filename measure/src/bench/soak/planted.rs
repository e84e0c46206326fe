//! Makes mistakes on purpose, so that the bench and the soak are seen to notice them.

use serde_json::{Value, json};

use super::traffic;
use crate::Failure;
use crate::bench::client::Load;
use crate::bench::gateway::plant::VARIABLE;
use crate::bench::gateway::sides::{compare, streams};
use crate::bench::process::{Server, part};
use crate::workspace;

/// The mistakes, and what notices each.
const PLANTS: [(&str, &str); 8] = [
    ("none", ""),
    ("slow", "ratio"),
    ("wrong", "errors"),
    ("cut", "cut"),
    ("lose", "lost"),
    ("cross", "crossed"),
    ("charge", "spending"),
    ("leak", "memory"),
];

/// Makes each mistake in turn, and fails if one of them is not noticed, or anything is noticed without a mistake.
pub(super) fn all() -> Result<Value, Failure> {
    let mut lines = serde_json::Map::new();
    for (name, noticed) in PLANTS {
        let text = workspace::stdout(part(&["planted", noticed])?.env(VARIABLE, name))?;
        let found: Value = serde_json::from_str(&text)?;
        eprintln!("{name}: {found}");
        let is_expected = found == if noticed.is_empty() { json!([]) } else { json!([noticed]) };
        if !is_expected {
            return Err(format!("the mistake `{name}` came to {found}").into());
        }
        lines.insert(name.to_owned(), found);
    }
    Ok(Value::Object(lines))
}

/// Runs a short benchmark or soak test with the planted mistake, and returns the detected problems. Without a mistake all of them are run.
pub(in crate::bench) async fn one(noticed: &str) -> Result<Value, Failure> {
    let mut checks = Vec::new();
    if matches!(noticed, "" | "ratio" | "errors") {
        let load = Load { connections: 8, requests: 400, rounds: 3 };
        let (pair, errors) = compare(|url| Server::start(&["ours", url]), "bare", "plain", load).await?;
        // Well above what the bench measures under any load.
        checks.extend([("ratio", pair.ratio > 6.0), ("errors", errors != 0)]);
    }
    if matches!(noticed, "" | "cut") {
        checks.push(("cut", streams("ours", 8).await?.1 != 0));
    }
    if matches!(noticed, "" | "lost" | "crossed" | "spending" | "memory") {
        let soaked = traffic::soak(0.5, 40, 0).await?;
        checks.extend([
            ("lost", soaked.lost != 0),
            ("crossed", soaked.crossed != 0),
            ("spending", !soaked.is_paid()),
            // The soak's own limit holds for a run of minutes.
            ("memory", soaked.memory.growth() > 1.25),
        ]);
    }
    let found: Vec<&str> =
        checks.into_iter().filter(|(_, is_wrong)| *is_wrong).map(|(what, _)| what).collect();
    Ok(json!(found))
}
