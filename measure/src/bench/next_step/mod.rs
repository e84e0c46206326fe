//! The cost of the next step after an answer that is wrong or cut, over HTTP: the bytes of all requests and of the texts of all answers,
//! as ratios to one perfect call. The model gives what it is asked for.

mod model;
mod server;

use std::process::{Command, Stdio};
use std::sync::Arc;

use formwork_core::{Inline, Policy};
use formwork_extract::Extractor;
use formwork_http::{HttpTransport, Key};
use serde_json::Value;

use super::http::wires::{WIRES, Wire};
use super::oracle::KEY;
use super::report::{Goal, Row};
use crate::{Failure, workspace};
use model::{Damage, invoice, schema, text};
use server::{Counted, Counts};

/// The rows of the table: their names, the damages, of which the dearest counts, and the goals for requests and answers.
const STEPS: [(&str, &[&str], [f64; 2]); 3] = [
    ("9 of 100 items wrong", &["nine"], [2.2, 1.05]),
    ("all 100 items miss one field", &["all"], [2.3, 1.2]),
    ("cut at 10, 50, 90 or 99 %", &["cut10", "cut50", "cut90", "cut99"], [2.2, 1.05]),
];

/// The packages of PyPI that are measured in the same run, by their names in measure/peers/next_step.py.
const PEERS: [&str; 2] = ["instructor", "pydantic-ai"];

pub(super) async fn measure() -> Result<Vec<Row>, Failure> {
    let (address, counted) = server::start().await?;
    let mut rows = Vec::new();
    for wire in &WIRES {
        for stream in [false, true] {
            let name = format!("{}, {}", wire.name, if stream { "streamed" } else { "whole" });
            let key = format!("{}-{stream}", wire.name);
            run(wire, stream, (&address, &counted), &key, None).await?;
            rows.extend(rows_of(&name, &key, &counted, true));
        }
    }
    match peers(&address).await {
        Ok(()) => rows.extend(PEERS.iter().flat_map(|peer| rows_of(peer, peer, &counted, false))),
        Err(why) => rows.push(Row::absent("instructor and Pydantic AI", why, "x")),
    }
    Ok(rows)
}

/// Extracts the invoice once for each damage of the first answer.
async fn run(
    wire: &Wire,
    stream: bool,
    (address, counted): (&str, &Counted),
    key: &str,
    policy: Option<Policy>,
) -> Result<(), Failure> {
    for (damage, _) in Damage::ALL {
        let transport = HttpTransport::new(&format!("{address}/{key}/{damage}{}", wire.base))?;
        let transport = transport.with_key(wire.auth, Key::new("the benchmark", KEY)?)?;
        let contract = formwork_schema::contract_for(Arc::new(Inline::new("invoice", schema())));
        let builder = Extractor::for_contract(contract.map_err(|error| error.message)?);
        let builder = builder.with_target((wire.provider)(transport, stream));
        let builder = match &policy {
            Some(policy) => builder.with_policy(policy.clone()),
            None => builder,
        };
        let extractor: Extractor<Value> = builder.build()?;
        let outcome = extractor
            .extract(text(&invoice()))
            .await
            .map_err(|error| format!("{key}, {damage}: {error:#}"))?;
        if outcome.value != invoice() {
            return Err(format!("{key}, {damage}: the value is another one").into());
        }
        // A server whose client closes the connection generates no more.
        let taken = outcome.calls.iter().map(|call| call.text.len()).sum();
        counted.done(key, damage, Some(taken));
    }
    Ok(())
}

/// Returns the bytes of one kind.
type Bytes = fn(&Counts) -> usize;

/// Returns the rows of one name.
fn rows_of(name: &str, key: &str, counted: &Counted, has_goals: bool) -> Vec<Row> {
    let Some(perfect) = counted.of(key, "perfect") else {
        return vec![Row::absent(name, "there was no perfect call".to_owned(), "x")];
    };
    let rows = STEPS.iter().flat_map(|(step, damages, goals)| {
        let counts: Option<Vec<Counts>> = damages.iter().map(|damage| counted.of(key, damage)).collect();
        let parts: [(&str, Bytes); 2] =
            [("requests", |counts| counts.sent), ("answers", |counts| counts.answered)];
        let goals = goals.map(|goal| has_goals.then_some(Goal::AtMost(goal)));
        parts.into_iter().zip(goals).map(move |((part, bytes), goal)| {
            let what = format!("{name}: {step}: {part}");
            let most = counts.as_ref().and_then(|counts| counts.iter().max_by_key(|counts| bytes(counts)));
            let Some(most) = most else { return Row::absent(&what, "no answer".to_owned(), "x") };
            let from = format!("{} / {} bytes, {} calls", bytes(most), bytes(&perfect), most.calls);
            // Goals have two places.
            let ratio = (bytes(most) as f64 / bytes(&perfect) as f64 * 100.0).round() / 100.0;
            Row::figure(&what, from, ratio, "x", goal)
        })
    });
    rows.collect()
}

/// Runs the peers against the server; the error is the reason why they cannot run.
async fn peers(address: &str) -> Result<(), String> {
    let script = workspace::root().join("measure/peers/next_step.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(address).arg(text(&invoice())).args(Damage::ALL.map(|(damage, _)| damage));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let ended =
        tokio::task::spawn_blocking(move || command.output()).await.map_err(|error| error.to_string())?;
    let output = ended.map_err(|error| format!("python3 does not start: {error}"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(why.lines().last().unwrap_or("python3 failed").chars().take(200).collect()),
    }
}

#[cfg(test)]
mod tests {
    use formwork_core::Patching;

    use super::*;

    fn missed(policy: Option<Policy>) -> usize {
        let runtime = crate::bench::runtime().unwrap();
        runtime.block_on(async {
            let (address, counted) = server::start().await.unwrap();
            run(&WIRES[0], false, (&address, &counted), "a", policy).await.unwrap();
            rows_of("a", "a", &counted, true).iter().filter(|row| row.is_met() == Some(false)).count()
        })
    }

    #[test]
    fn a_run_that_requests_the_whole_again_misses_the_goals_of_answers() {
        assert_eq!(missed(None), 0);
        let whole = Policy::new(3).with_patching(Patching::Never);
        assert!(missed(Some(whole)) >= 3);
    }
}
