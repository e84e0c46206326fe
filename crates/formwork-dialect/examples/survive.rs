use formwork_core::{LowerRequest, lift};
use formwork_dialect::{dialect, lower_value};
use serde_json::Value;
use std::io::BufRead;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let file = &args[1];
    let only: Option<&String> = args.get(2);
    let verbose = args.get(3).and_then(|n| n.parse::<usize>().ok()).unwrap_or(3);
    let rows: Vec<Value> = std::io::BufReader::new(std::fs::File::open(file).unwrap())
        .lines()
        .map(|l| serde_json::from_str(&l.unwrap()).unwrap())
        .collect();
    for name in ["openai", "llama-cpp", "ollama", "llguidance"] {
        if only.is_some_and(|o| o != name && o != "all") {
            continue;
        }
        let d = dialect(name).unwrap();
        let (mut n, mut ok, mut pruned, mut refused, mut bad) = (0, 0, 0, 0, 0);
        let mut times = Vec::new();
        let mut ratios = Vec::new();
        let mut shown = 0;
        let mut lintbad = 0;
        for row in &rows {
            let schema = &row["schema"];
            if formwork_schema::compile(schema).is_err() {
                continue;
            }
            let start = Instant::now();
            let lowered = d.lower(&LowerRequest::new(schema));
            let t = start.elapsed();
            times.push((t, row["id"].as_str().unwrap_or_default().to_owned(), schema.to_string().len()));
            let lowered = match lowered {
                Ok(l) => l,
                Err(e) => {
                    refused += 1;
                    if shown < verbose {
                        shown += 1;
                        println!("REFUSED {} {e}", row["id"]);
                    }
                    continue;
                }
            };
            let sent = lowered.schema.as_ref().unwrap();
            ratios.push((
                sent.to_string().len() as f64 / schema.to_string().len() as f64,
                row["id"].as_str().unwrap_or_default().to_owned(),
                sent.to_string().len(),
            ));
            let findings = formwork_dialect::lint(name, sent);
            if !findings.is_empty() {
                lintbad += 1;
                if shown < verbose {
                    shown += 1;
                    println!("LINT {} {}", row["id"], findings[0]);
                }
            }
            let compiled = match formwork_schema::compile(sent) {
                Ok(c) => c,
                Err(e) => {
                    bad += 1;
                    if shown < verbose {
                        shown += 1;
                        println!("BAD {} {e}", row["id"]);
                    }
                    continue;
                }
            };
            for i in row["instances"].as_array().into_iter().flatten() {
                if i["valid"] != true {
                    continue;
                }
                n += 1;
                let data = &i["data"];
                let low = lower_value(data, &lowered);
                let fine = match &low {
                    Some(low) if compiled.is_valid(low) => {
                        let (back, p) = lift(low.clone(), &lowered);
                        if p.is_empty() && same(&back, data) {
                            ok += 1;
                            true
                        } else if p.is_empty() {
                            pruned += 1;
                            true
                        } else {
                            false
                        }
                    }
                    _ => false,
                };
                if !fine && shown < verbose {
                    shown += 1;
                    println!(
                        "LOST {} {}\n   data {}\n   low {:?}\n   schema {}\n   sent {}",
                        row["id"],
                        name,
                        cut(&data.to_string()),
                        low.as_ref().map(|l| cut(&l.to_string())),
                        cut(&schema.to_string()),
                        cut(&sent.to_string())
                    );
                }
            }
        }
        times.sort();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        println!(
            "{name}: {ok}+{pruned} of {n} = {:.2} %, refused {refused} of {}, bad {bad}, lint {lintbad}; time median {:?} max {:?}; ratio median {:.2} p99 {:.2} max {:?}",
            100.0 * (ok + pruned) as f64 / n as f64,
            rows.len(),
            times[times.len() / 2].0,
            &times[times.len() - 3..],
            ratios[ratios.len() / 2].0,
            ratios[ratios.len() * 99 / 100].0,
            &ratios[ratios.len() - 4..]
        );
    }
}
fn cut(s: &str) -> String {
    s.chars().take(std::env::var("CUT").ok().and_then(|c| c.parse().ok()).unwrap_or(1200)).collect()
}
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
