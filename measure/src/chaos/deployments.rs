//! Old and new workers beside each other at one Restate server, and a second batch with a changed contract.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::commands::{Commands, free, server, started_server, three_ports};
use super::play::answers::Faults;
use super::play::checker::Found;
use super::play::files::Files;
use super::play::invoice;
use super::play::process::killed;
use super::play::provider::Provider;
use super::table::{Played, Table};
use crate::Failure;

/// The settings of the test.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Play {
    /// Number of rows of each of the two batches
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    rows: u64,
    /// Give the old and the new workers pools of their own, with a batch each, which begin together: no row may reach the other pool
    #[arg(long)]
    pools: bool,
    /// Milliseconds that an answer takes
    #[arg(long, default_value_t = 200)]
    latency: u64,
}

/// Processes that end with the test.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            _ = killed(child);
        }
    }
}

/// The longest time of the test.
const PATIENCE: Duration = Duration::from_secs(900);

/// Starts a batch with old workers, new workers at another address in the middle of it, and then a batch with another contract.
pub(super) fn play(play: &Play, folder: &Path, formwork: &Path) -> Result<Played, Failure> {
    let provider = Provider::start(Faults::USUAL, Duration::from_millis(play.latency))?;
    let (first, second) = (0..play.rows, play.rows..2 * play.rows);
    let mut changed = invoice::contract();
    changed["description"] = "An invoice as of the new workers.".into();
    let old =
        Files::write(&folder.join("old"), first.clone(), &invoice::contract(), &provider.section("old"))?;
    let new = Files::write(&folder.join("new"), second.clone(), &changed, &provider.section("new"))?;
    let commands = Commands { formwork, folder, ingress: three_ports()? };
    let mut server = server(folder, commands.ingress)?;
    let mut children = Children(vec![started_server(&mut server, folder, commands.ingress)?]);
    let addresses: Vec<SocketAddr> = free(2)?;
    let started = Instant::now();
    let pools = if play.pools { ["old", "new"] } else { ["chaos"; 2] };
    children.0.push(commands.worker(&old, pools[0], addresses[0], addresses[0], &[])?);
    if play.pools {
        children.0.push(commands.worker(&new, pools[1], addresses[1], addresses[1], &[])?);
    }
    // A worker needs time to register itself.
    thread::sleep(Duration::from_secs(2));
    let mut batches = vec![commands.batch(&old, pools[0], 96)?];
    if !play.pools {
        while provider.calls() < play.rows as usize / 4 {
            if let Some(status) = batches[0].try_wait()? {
                let log = folder.join("batch.log");
                return Err(format!("the batch ended with {status}: see {}", log.display()).into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        children.0.push(commands.worker(&new, pools[1], addresses[1], addresses[1], &[])?);
        thread::sleep(Duration::from_secs(1));
    }
    batches.push(commands.batch(&new, pools[1], 96)?);
    for batch in &mut batches {
        while batch.try_wait()?.is_none() {
            if started.elapsed() > PATIENCE {
                _ = batch.kill();
                return Err("the test takes too long".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    drop(children);
    let record = provider.record();
    // The rows that the old workers alone called for, and the new ones, and both.
    let mut rows = [0; 3];
    for row in record.rows() {
        let is_old = |of: bool| record.of(row).iter().any(|call| (call.model == 'd') == of);
        rows[if is_old(true) && is_old(false) { 2 } else { usize::from(is_old(false)) }] += 1;
    }
    let calls = || record.rows().flat_map(|row| record.of(row));
    let first_new = calls().filter(|call| call.model == 'w').map(|call| call.began).min();
    let late =
        calls().filter(|call| call.model == 'd' && first_new.is_some_and(|new| call.began > new)).count();
    let reached = |rows: &std::ops::Range<u64>, model| {
        rows.clone().filter(|row| record.of(*row).iter().any(|call| call.model == model)).count()
    };
    let strayed = if play.pools { reached(&first, 'w') + reached(&second, 'd') } else { 0 };
    let (mut tables, mut wrong) = (Vec::new(), Vec::new());
    for (name, files, numbers) in [("old", &old, first), ("new", &new, second)] {
        let found = Found::of(files, numbers, &record)?;
        let [old, new, both] = rows;
        let table = Table::default().with("contract", name).with("rows", play.rows);
        let table = table.with("rows of old workers, new workers, both", format!("{old}, {new}, {both}"));
        let table = table.with("calls of old workers beside new ones", late);
        let table = if play.pools { table.with("rows in the wrong pool", strayed) } else { table };
        tables.push(table.with_found(&found, seconds).to_string());
        wrong.extend(found.faults());
    }
    if rows[0] == 0 || rows[1] == 0 || late == 0 {
        wrong.push("old and new workers did not work beside each other".to_owned());
    }
    if strayed > 0 {
        wrong.push(format!("{strayed} rows reached workers of another pool"));
    }
    Ok((tables.join("\n\n"), wrong))
}
