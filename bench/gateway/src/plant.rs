//! Mistakes that are made on purpose, so that the bench and the soak are seen to notice them.
//!
//! A mistake is named by an environment variable, which all processes of a run inherit.

use serde_json::{Value, json};

use crate::process::Server;
use crate::{Failure, compare, soak, streams};

const VARIABLE: &str = "GATEWAY_SIDE_PLANT";

/// Returns whether this mistake is made.
pub(crate) fn is_planted(name: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|planted| planted == name)
}

/// Burns CPU in the gateway's process (`slow`), or takes memory that is never given back (`leak`).
pub(crate) fn start() {
    if is_planted("slow") {
        // So many threads that the service waits for its CPU as well, however busy the machine is.
        for _ in 0..32 {
            std::thread::spawn(|| {
                loop {
                    std::hint::spin_loop();
                }
            });
        }
    }
    if is_planted("leak") {
        std::thread::spawn(|| {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                kept.push(vec![1; 256 << 10]);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
    }
}

/// The mistakes, and what notices each.
const PLANTS: [(&str, &str); 7] = [
    ("slow", "ratio"),
    ("wrong", "errors"),
    ("cut", "cut"),
    ("lose", "lost"),
    ("cross", "crossed"),
    ("charge", "spending"),
    ("leak", "memory"),
];

/// Makes each mistake in turn, and fails if one of them is not noticed, or anything is noticed without a mistake.
pub(crate) async fn all() -> Result<Value, Failure> {
    let mut lines = serde_json::Map::new();
    let program = std::env::current_exe()?;
    for (name, noticed) in [("none", "")].into_iter().chain(PLANTS) {
        let mut child = std::process::Command::new(&program);
        let output = child.args(["planted", noticed]).env(VARIABLE, name).output()?;
        let found: Value = serde_json::from_slice(&output.stdout)?;
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
pub(crate) async fn one(noticed: &str) -> Result<Value, Failure> {
    let mut found = Vec::new();
    let mut note = |what: &str, is_wrong: bool| {
        if is_wrong {
            found.push(what.to_owned());
        }
    };
    if matches!(noticed, "" | "ratio" | "errors") {
        let line = compare(|url| Server::start(&["serve", "ours", url]), "plain", 8, 400, 3).await?;
        let number = |name: &str| line[name].as_f64().unwrap_or(f64::NAN);
        // Well above what the bench measures under any load.
        note("ratio", number("ratio") > 6.0);
        note("errors", number("errors") != 0.0);
    }
    if matches!(noticed, "" | "cut") {
        let line = streams(8).await?;
        note("cut", line["ours"]["cut"].as_u64() != Some(0));
    }
    if matches!(noticed, "" | "lost" | "crossed" | "spending" | "memory") {
        let line = soak::soak(0.5, 40).await?;
        let number = |pointer: &str| line.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        note("lost", number("/lost") != 0.0);
        note("crossed", number("/crossed") != 0.0);
        note("spending", number("/spent") != number("/paid"));
        // The soak's own limit holds for a run of minutes.
        note("memory", number("/memory/after") > 1.25 * number("/memory/before"));
    }
    Ok(json!(found))
}
