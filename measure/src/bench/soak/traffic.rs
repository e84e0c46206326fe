//! A long run with every kind of failure. It counts lost, crossed and wrongly charged responses, and the growth of memory.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use formwork_core::Time;
use formwork_ledger::{Ledger, NewKey, Settings};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::Failure;
use crate::bench::client::{Connection, post};
use crate::bench::gateway::ours;
use crate::bench::gateway::played::TOKENS;
use crate::bench::process::Server;

/// The behaviour that a request provokes, and the status that its client must receive. `None`: the client disconnects before.
const ACTS: [(&str, bool, bool, Option<u16>); 11] = [
    // The columns are: act, contract, stream, expected status.
    ("right", false, false, Some(200)),
    ("right", true, false, Some(200)),
    ("right", false, true, Some(200)),
    ("mend", true, false, Some(200)),
    ("mend", true, true, Some(200)),
    ("fail", true, false, Some(502)),
    ("fail", false, false, Some(502)),
    ("stall", true, false, Some(504)),
    ("cut", false, true, Some(200)),
    ("leave", false, true, None),
    ("slow", false, true, Some(200)),
];

/// The time for which a slow reader does not read its response.
const SLOW: Duration = Duration::from_secs(3);

/// The time between two reloads of the configuration.
const RELOAD: u64 = 20;

/// The time before a kill in which the runs of answers may not be written yet: a group waits for 200 ms. Their spending is.
const GROUP: Duration = Duration::from_millis(500);

/// The acts with complete responses, whose cost is known exactly.
const EXACT: [&str; 3] = ["right", "mend", "fail"];

#[derive(Default)]
struct Counts {
    /// The number of expected results for each act.
    right: BTreeMap<&'static str, u64>,
    /// Missing responses, and responses that belong to another client.
    wrong: Vec<String>,
    crossed: u64,
    /// The number of requests whose process was killed.
    killed: u64,
    /// The runs of the answers, and when these came.
    runs: Vec<(String, Instant)>,
}

/// The result of a soak.
#[derive(Debug, Serialize)]
pub(super) struct Soaked {
    requests: u64,
    right: BTreeMap<&'static str, u64>,
    pub(super) lost: usize,
    pub(super) crossed: u64,
    /// The kinds of lost answers.
    why: BTreeMap<String, u64>,
    pub(super) memory: Memory,
    pub(super) spent: u64,
    pub(super) held: u64,
    pub(super) paid: u64,
    /// The amount that was reserved by killed processes.
    uncertain: u64,
    kills: u32,
    reloads: u32,
    /// Requests without an answer, because their process was killed.
    killed: u64,
    /// The number of answers whose run is in the ledger, of those whose run is not, and of the latter those of the last moment before a
    /// kill.
    recorded: usize,
    pub(super) unrecorded: usize,
    unrecorded_at_kills: usize,
}

impl Soaked {
    /// Returns whether the spending in the ledger is the server's count, apart from the amounts that are uncertain.
    pub(super) const fn is_paid(&self) -> bool {
        self.spent <= self.paid && self.paid <= self.spent + self.uncertain
    }
}

/// The resident memory of the gateway in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    before: u64,
    after: u64,
}

impl Memory {
    /// Returns the memory at the end as a multiple of that after the warm-up.
    pub(super) fn growth(&self) -> f64 {
        self.after as f64 / self.before as f64
    }
}

/// Runs the soak.
pub(super) async fn soak(minutes: f64, rate: u32, kills: u32) -> Result<Soaked, Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("runs.db");
    let [exact, other] = keys(&file)?;
    let exactly = Server::start(&["played"])?;
    let upstream = Server::start(&["played"])?;
    let urls = format!("{},{}", exactly.url(), upstream.url());
    let mut server = Server::start(&["soak", &urls, &file.display().to_string()])?;
    let local = LocalSet::new();
    let counts: Rc<RefCell<Counts>> = Rc::default();
    let number = (minutes * 60.0 * f64::from(rate)) as u64;
    // Memory counts from after the first tenth (or minute), when connections, compiled contracts and the allocator's arenas exist.
    let warm = (number / 10).min(u64::from(rate) * 60);
    let mut samples: Vec<u64> = Vec::new();
    let (mut uncertain, mut reloads, mut from) = (0, 0, 0);
    let mut ends: Vec<Instant> = Vec::new();
    let epoch: Rc<Cell<usize>> = Rc::default();
    let every = number / u64::from(kills + 1);
    local
        .run_until(async {
            let start = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for nth in 0..number {
                let due = start + Duration::from_secs(1) * u32::try_from(nth)? / rate;
                tokio::time::sleep_until(due.into()).await;
                let (act, contract, stream, status) = ACTS[(nth % ACTS.len() as u64) as usize];
                let is_exact = EXACT.contains(&act);
                let key = if is_exact { exact.clone() } else { other.clone() };
                let model = if is_exact { "exact" } else { "other" };
                let planned = Planned { act, contract, stream, status, model, id: format!("Q{nth}Q") };
                let (counts, address) = (Rc::clone(&counts), server.address.clone());
                let (present, began) = (Rc::clone(&epoch), epoch.get());
                tasks.spawn_local(async move {
                    let seen = ask(&address, &key, &planned).await;
                    let mut counts = counts.borrow_mut();
                    let is_whole = present.get() == began;
                    match seen {
                        Ok((is_own, run)) => {
                            counts.runs.extend(run.filter(|_| is_whole).map(|run| (run, Instant::now())));
                            match is_own {
                                true => *counts.right.entry(planned.act).or_default() += 1,
                                false => counts.crossed += 1,
                            }
                        }
                        Err(_) if !is_whole => counts.killed += 1,
                        Err(error) => counts.wrong.push(format!("{}: {error}", planned.act)),
                    }
                });
                while tasks.try_join_next().is_some() {}
                if nth % (u64::from(rate) * RELOAD) == u64::from(rate) * 5 {
                    server.hang_up()?;
                    reloads += 1;
                }
                if nth > 0 && nth % every.max(1) == 0 && ends.len() < kills as usize {
                    // No request goes on meanwhile: this thread sends all of them.
                    drop(server);
                    ends.push(Instant::now());
                    epoch.set(epoch.get() + 1);
                    let ledger = Ledger::open(&file, Settings::default())?;
                    uncertain += ledger.key("exact")?.held;
                    ledger.release_ended()?;
                    drop(ledger);
                    server = Server::start(&["soak", &urls, &file.display().to_string()])?;
                    samples.clear();
                    from = nth;
                }
                if nth >= from + warm && nth % (u64::from(rate) * 5) == 0 {
                    samples.push(server.used()?.resident);
                }
            }
            while tasks.join_next().await.is_some() {}
            Ok::<_, Failure>(())
        })
        .await?;
    let before = samples.iter().take(3).copied().max().unwrap_or(1);
    let after = samples.iter().rev().take(3).copied().max().unwrap_or(1);
    // The calls of clients that disconnected are settled in the background.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let paid = paid(&exactly.address).await?;
    let ledger = Ledger::open(&file, Settings::default())?;
    let key = ledger.key("exact")?;
    let each = TOKENS.0 + 2 * TOKENS.1;
    let counts = counts.take();
    let mut why: BTreeMap<String, u64> = BTreeMap::new();
    for wrong in &counts.wrong {
        *why.entry(wrong[..wrong.floor_char_boundary(90)].to_owned()).or_default() += 1;
    }
    let (mut recorded, mut unrecorded, mut unrecorded_at_kills) = (0, 0, 0);
    for (run, at) in &counts.runs {
        let is_at_kill = ends.iter().any(|end| *at <= *end + GROUP && *end <= *at + GROUP);
        match ledger.run(run.parse()?)? {
            Some(_) => recorded += 1,
            None if is_at_kill => unrecorded_at_kills += 1,
            None => unrecorded += 1,
        }
    }
    Ok(Soaked {
        requests: number,
        right: counts.right,
        lost: counts.wrong.len(),
        crossed: counts.crossed,
        why,
        memory: Memory { before, after },
        spent: key.spent,
        held: key.held,
        paid: paid * each,
        uncertain,
        kills,
        reloads,
        killed: counts.killed,
        recorded,
        unrecorded,
        unrecorded_at_kills,
    })
}

fn keys(file: &Path) -> Result<[String; 2], Failure> {
    let ledger = Ledger::open(file, Settings::default())?;
    let passed = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Time(u64::try_from(passed.as_millis())?);
    let add = |name: &str| -> Result<String, Failure> {
        let mut key = NewKey::new(name);
        key.budget = Some(1_000_000_000_000);
        Ok(ledger.add_key(key, now)?.1.reveal().to_owned())
    };
    Ok([add("exact")?, add("other")?])
}

/// The gateway of the soak.
pub(in crate::bench) async fn serve(urls: &str, file: &str) -> Result<(), Failure> {
    let (exact, other) = urls.split_once(',').ok_or("two URLs are needed")?;
    let section = |name: &str, url: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai\"\nmodel = \"m-1\"\nbase_url = \"{url}\"\nstream = false\napi_key_env = \"\"\nprice = {{ input = 1.0, output = 2.0 }}\n"
        )
    };
    let config = section("exact", exact) + &section("other", other);
    let ledger = Ledger::open(file, Settings::default())?;
    ours::start(&config, |builder| builder.with_ledger(ledger.clone())).await
}

struct Planned {
    act: &'static str,
    contract: bool,
    stream: bool,
    status: Option<u16>,
    model: &'static str,
    id: String,
}

/// Returns a request of Chat Completions with a key and a deadline in seconds.
fn request(body: &Value, key: &str, deadline: u32) -> Vec<u8> {
    let headers = format!("authorization: Bearer {key}\r\nx-formwork-deadline: {deadline}\r\n");
    post("/v1/chat/completions", &headers, &body.to_string())
}

/// Sends a request. Returns whether the answer is the client's own, and its run.
async fn ask(address: &str, key: &str, planned: &Planned) -> Result<(bool, Option<String>), Failure> {
    let kind = if planned.contract { "contract" } else { "text" };
    let mut body = json!({
        "model": planned.model, "max_tokens": 200, "stream": planned.stream,
        "messages": [{"role": "user", "content": format!("act={};id={};kind={kind};", planned.act, planned.id)}],
    });
    if planned.contract {
        let schema = json!({
            "type": "object", "properties": {"id": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["id", "age"], "additionalProperties": false,
        });
        body["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema}});
    }
    let deadline = if planned.act == "stall" { 1 } else { 60 };
    let request = request(&body, key, deadline);
    let mut connection = Connection::open(address).await?;
    let Some(status) = planned.status else {
        connection.send(&request).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        return Ok((true, None));
    };
    connection.send(&request).await?;
    if planned.act == "slow" {
        tokio::time::sleep(SLOW).await;
    }
    let whole = connection.whole(b"");
    let (seen, text) =
        tokio::time::timeout(Duration::from_secs(90), whole).await.map_err(|_| "no answer in 90 s")??;
    if seen != status {
        return Err(format!("status {seen}, not {status}: {text}").into());
    }
    let run = Some(connection.header("x-formwork-run").ok_or("a response without its run")?);
    if status != 200 || planned.act == "cut" {
        return Ok((true, run));
    }
    // Run identifiers contain no upper-case letters.
    let ids: Vec<&str> = text
        .split('Q')
        .filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    if ids.is_empty() {
        return Err(format!("no answer: {text}").into());
    }
    Ok((ids.iter().all(|id| *id == planned.id.trim_matches('Q')), run))
}

/// Requests the number of billed completions from the simulated server.
async fn paid(address: &str) -> Result<u64, Failure> {
    let body = json!({"messages": [{"role": "user", "content": "act=count;id=0;"}]});
    let (_, text) = Connection::open(address).await?.whole(&request(&body, "", 60)).await?;
    let counted: Value = serde_json::from_str(&text)?;
    counted["paid"].as_u64().ok_or_else(|| "no number".into())
}
