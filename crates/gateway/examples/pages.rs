//! The pages for admins over a ledger with a few hundred runs, for a browser; `cargo xtask pages` drives one through them.
//!
//! `cargo run -p formwork-gateway --example pages -- FOLDER` prints the address, the key of an admin, and the ids of two runs.

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::{ErrorKind, Time, Usage};
use formwork_extract::Backend;
use formwork_gateway::{Gateway, Target};
use formwork_ledger::{
    KeyRole, Ledger, NewKey, RunOutcome, RunRecord, Settings, StoredCall, ViolationRecord,
};
use formwork_testkit::Scripted;

const SCHEMA: &str = r#"{"type": "object", "required": ["vendor", "items"], "properties": {
  "vendor": {"type": "string"},
  "items": {"type": "array", "items": {"type": "object", "required": ["name", "price"], "properties": {
    "name": {"type": "string"}, "price": {"type": "number", "minimum": 0}}}}}}"#;

const REQUEST: &str = r#"{"model": "main", "messages": [
  {"role": "user", "content": "ACME GmbH, invoice 17: two bolts at 0.50, one saw at 19.90"}]}"#;

const HOSTILE: &str = "<script>window.hacked = 1</script>\"'><img src=x onerror=\"window.hacked = 2\">";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64)
}

/// A run that was patched: its first answer has a text for a price.
fn patched(started: u64) -> RunRecord {
    let mut run = RunRecord::new("/v1/chat/completions", Time(started))
        .with_contract(Some("invoice".to_owned()), Some("9f86d081884c7d65".to_owned()))
        .with_labels(Some("maria".to_owned()), vec!["nightly".to_owned()])
        .with_request(Some(REQUEST.to_owned()));
    run.ended = Time(started + 2_400);
    (run.target, run.model, run.micro_usd) = ("main".to_owned(), "gpt-5-mini".to_owned(), Some(870));
    let mut first = StoredCall::new("main", "gpt-5-mini", Time(started + 20), Time(started + 900));
    first.class = "invalid".into();
    first.answer = Some(r#"{"vendor": "ACME GmbH", "items": [{"name": "bolt", "price": 0.50}, {"name": "saw", "price": "about 20"}]}"#.to_owned());
    let [class, path, message] = ["type", "$.items[1].price", "expected a number"].map(str::to_owned);
    first.violations.push(ViolationRecord { class, path, message });
    (first.usage, first.micro_usd) = (Usage::new(310, 60), Some(590));
    let mut second = StoredCall::new("main", "gpt-5-mini", Time(started + 1_500), Time(started + 2_380));
    second.patched = vec!["$.items[1].price".to_owned()];
    second.answer = Some(r#"{"items[1].price": 19.90}"#.to_owned());
    (second.usage, second.micro_usd) = (Usage::new(150, 12), Some(280));
    second.finish = Some("stop".to_owned());
    run.calls = vec![first, second];
    run
}

fn hostile(started: u64) -> RunRecord {
    let text = || HOSTILE.to_owned();
    let mut run = RunRecord::new(HOSTILE, Time(started))
        .with_contract(Some(text()), None)
        .with_labels(Some(text()), vec![text()])
        .with_request(Some(text()));
    (run.target, run.model, run.message) = (text(), text(), Some(text()));
    let mut call = StoredCall::new(HOSTILE, HOSTILE, Time(started), Time(started + 9));
    call.class = "invalid".into();
    call.answer = Some(format!("{{\"a\": \"{}\"}}", HOSTILE.replace('"', "\\\"")));
    call.violations.push(ViolationRecord { class: text(), path: "$.a".to_owned(), message: text() });
    run.calls.push(call);
    run
}

fn fill(ledger: &Ledger) -> Result<(), formwork_ledger::Error> {
    let now = now();
    for nth in 0..400_u64 {
        let started = now - nth * 5_400_000;
        let contract = ["invoice", "person", "ticket"].into_iter().cycle().nth(nth as usize % 7);
        let mut run = match nth % 9 {
            0 => patched(started),
            _ => {
                RunRecord::new("/v1/extract", Time(started)).with_contract(contract.map(str::to_owned), None)
            }
        };
        if nth % 9 != 0 {
            run.ended = Time(started + 300 + nth * 37 % 2_000);
            (run.target, run.model) = ("main".to_owned(), format!("model-{}", nth % 3));
            run.micro_usd = (nth % 20 != 0).then_some(nth % 700);
            run.calls.push(StoredCall::new("main", run.model.clone(), run.started, run.ended));
        }
        if nth % 31 == 0 {
            run.outcome = RunOutcome::Failed(ErrorKind::Rejected);
        }
        ledger.record(run);
    }
    ledger.flush_blocking()
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name an empty folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder.join("contracts"))?;
    std::fs::write(folder.join("contracts/invoice.json"), SCHEMA)?;
    let ledger = Ledger::open(folder.join("runs.db"), Settings { bodies: true, ..Settings::default() })?;
    let admin = NewKey { role: KeyRole::Admin, ..NewKey::new("root") };
    let (_, secret) = ledger.add_key(admin, Time(now()))?;
    fill(&ledger)?;
    let (patched, hostile) = (patched(now()), hostile(now()));
    let ids = (patched.id, hostile.id);
    ledger.record(patched);
    ledger.record(hostile);
    ledger.flush_blocking()?;
    let answers = [r#"{"vendor": "ACME GmbH", "items": [{"name": "bolt"}]}"#, r#"{"items[0].price": 0.5}"#];
    let model = Scripted::new(answers.into_iter().cycle().take(100));
    let target = Target::new(Backend::from(Arc::new(model)).with_name("main"), None, "scripted");
    let gateway = Gateway::builder()
        .with_target(target)
        .with_contracts(folder.join("contracts"))
        .with_ledger(ledger)
        .with_bodies()
        .build();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{} {} {} {}", listener.local_addr()?, secret.reveal(), ids.0, ids.1);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(gateway.serve(listener, std::future::pending()))?;
    Ok(())
}
