//! A batch on Restate whose workers, server, connections and submitting process die.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::balancer::Balancer;
use super::commands::{Commands, free, server, started_server, three_ports};
use super::play::answers::Faults;
use super::play::checker::Found;
use super::play::files::Files;
use super::play::invoice;
use super::play::process::{killed, signal};
use super::play::provider::Provider;
use super::table::{Played, Table};
use crate::Failure;

/// The settings of a chaos test.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Play {
    /// Number of rows of the batch
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rows: u64,
    /// Number of workers behind one address
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    workers: u16,
    /// Maximum number of concurrent calls of each worker
    #[arg(long, default_value_t = 32)]
    concurrency: usize,
    /// Maximum number of rows in progress, by default that of a batch
    #[arg(long, default_value_t = 256)]
    open: u16,
    /// Number of times that a worker is killed
    #[arg(long, default_value_t = 10)]
    worker_kills: u32,
    /// Number of times that Restate's server is killed
    #[arg(long, default_value_t = 3)]
    server_kills: u32,
    /// Number of times that the process that submits the rows is killed
    #[arg(long, default_value_t = 2)]
    submitter_kills: u32,
    /// Number of times that a worker, and as often the process that submits the rows, gets SIGTERM
    #[arg(long, default_value_t = 2)]
    terms: u32,
    /// Number of times that the connections between Restate and the workers are cut
    #[arg(long, default_value_t = 2)]
    cuts: u32,
    /// Number of times that a worker is stopped for two seconds
    #[arg(long, default_value_t = 1)]
    pauses: u32,
    /// The pace of the target: calls per second over all workers [default: none]
    #[arg(long)]
    calls_per_second: Option<f64>,
    /// Milliseconds that an answer takes
    #[arg(long, default_value_t = 20)]
    latency: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Worker,
    Server,
    Submitter,
    WorkerTerm,
    SubmitterTerm,
    Cut,
    Pause,
}

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::Worker => "kill -9 of a worker",
            Self::Server => "kill -9 of the server",
            Self::Submitter => "kill -9 of the submitter",
            Self::WorkerTerm => "SIGTERM of a worker",
            Self::SubmitterTerm => "SIGTERM of the submitter",
            Self::Cut => "cut connections",
            Self::Pause => "a stopped worker",
        }
    }
}

impl Play {
    /// Returns the faults in the order in which they are played, each kind spread over the whole play.
    fn faults(&self) -> Vec<Fault> {
        let kinds = [
            (Fault::Worker, self.worker_kills),
            (Fault::Server, self.server_kills),
            (Fault::Submitter, self.submitter_kills),
            (Fault::WorkerTerm, self.terms),
            (Fault::SubmitterTerm, self.terms),
            (Fault::Cut, self.cuts),
            (Fault::Pause, self.pauses),
        ];
        let mut faults: Vec<(f64, Fault)> = Vec::new();
        for (kind, times) in kinds {
            faults.extend((0..times).map(|nth| ((f64::from(nth) + 0.5) / f64::from(times), kind)));
        }
        faults.sort_by(|a, b| a.0.total_cmp(&b.0));
        faults.into_iter().map(|(_, fault)| fault).collect()
    }

    /// Returns the maximum number of calls that a fault interrupts.
    fn interrupts(&self, fault: Fault) -> usize {
        match fault {
            Fault::Worker | Fault::WorkerTerm => self.concurrency,
            Fault::Server | Fault::Cut => self.concurrency * usize::from(self.workers),
            Fault::Submitter | Fault::SubmitterTerm | Fault::Pause => 0,
        }
    }
}

/// The time for which a worker is stopped. It is longer than the time limit of a call.
const PAUSE: Duration = Duration::from_secs(2);

/// The pool of the workers.
const POOL: &str = "chaos";

/// The longest time of a play.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The processes of a play, which end with it.
struct Processes<'a> {
    play: &'a Play,
    files: &'a Files,
    commands: Commands<'a>,
    restate: Command,
    listen: Vec<SocketAddr>,
    balancer: Balancer,
    server: Child,
    workers: Vec<Child>,
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        for child in self.workers.iter_mut().chain([&mut self.server]) {
            _ = killed(child);
        }
    }
}

impl<'a> Processes<'a> {
    fn start(
        play: &'a Play,
        folder: &'a Path,
        files: &'a Files,
        formwork: &'a Path,
    ) -> Result<Self, Failure> {
        let ingress = three_ports()?;
        let mut restate = server(folder, ingress)?;
        let server = started_server(&mut restate, folder, ingress)?;
        // The server has its ports now, so that no worker gets one of them.
        let listen = free(play.workers)?;
        let balancer = Balancer::start(listen.clone())?;
        let mut processes = Self {
            play,
            files,
            commands: Commands { formwork, folder, ingress },
            restate,
            listen,
            balancer,
            server,
            workers: Vec::new(),
        };
        for nth in 0..usize::from(play.workers) {
            let worker = processes.worker(nth)?;
            processes.workers.push(worker);
        }
        Ok(processes)
    }

    fn worker(&self, nth: usize) -> Result<Child, Failure> {
        let listen = *self.listen.get(nth).ok_or("no such worker")?;
        let mut arguments = vec!["--concurrency".to_owned(), self.play.concurrency.to_string()];
        if let Some(pace) = self.play.calls_per_second {
            arguments.extend(["--calls-per-second".to_owned(), pace.to_string()]);
        }
        self.commands.worker(self.files, POOL, listen, self.balancer.address, &arguments)
    }

    fn batch(&self) -> Result<Child, Failure> {
        self.commands.batch(self.files, POOL, self.play.open)
    }

    /// Starts workers again that have ended: killed ones, and those that found no server.
    fn mend(&mut self) -> Result<(), Failure> {
        for nth in 0..self.workers.len() {
            let ended = self.workers.get_mut(nth).map(Child::try_wait).transpose()?.flatten();
            if ended.is_some() {
                let worker = self.worker(nth)?;
                if let Some(place) = self.workers.get_mut(nth) {
                    *place = worker;
                }
            }
        }
        Ok(())
    }

    fn restart_server(&mut self) -> Result<(), Failure> {
        self.server = started_server(&mut self.restate, self.commands.folder, self.commands.ingress)?;
        Ok(())
    }

    /// Interrupts calls. When it returns, no worker makes a call any more without knowing of the interruption.
    fn fault(&mut self, fault: Fault, nth: usize) -> Result<(), Failure> {
        let place = nth % self.workers.len().max(1);
        match (fault, self.workers.get_mut(place)) {
            (Fault::Worker, Some(worker)) => killed(worker)?,
            (Fault::WorkerTerm, Some(worker)) => {
                signal("TERM", worker)?;
                worker.wait()?;
            }
            (Fault::Pause, Some(worker)) => {
                signal("STOP", worker)?;
                thread::sleep(PAUSE);
                signal("CONT", worker)?;
            }
            (Fault::Server, _) => {
                killed(&mut self.server)?;
                self.balancer.cut()?;
            }
            (Fault::Cut, _) => self.balancer.cut()?,
            _ => {}
        }
        Ok(())
    }
}

/// Plays it.
pub(super) fn play(play: &Play, folder: &Path, formwork: &Path) -> Result<Played, Failure> {
    fs::create_dir_all(folder)?;
    let latency = Duration::from_millis(play.latency);
    let provider = Provider::start(Faults::USUAL, latency)?;
    let files = Files::write(folder, 0..play.rows, &invoice::contract(), &provider.section("m"))?;
    let mut processes = Processes::start(play, folder, &files, formwork)?;
    // The first worker needs time to register itself.
    thread::sleep(Duration::from_secs(2));
    let started = Instant::now();
    worked(play, &provider, &mut processes, started)?;
    let seconds = started.elapsed().as_secs_f64();
    drop(processes);
    let mut record = provider.record();
    if play.pauses > 0 {
        record.stopped(long_faults(&files.out, PAUSE)?);
    }
    let mut found = Found::of(&files, 0..play.rows, &record)?;
    let (known, uncertain) = files.counted()?;
    found.counts = vec![[known, found.calls, uncertain]];
    // An execution whose row Restate gave to another worker can end its call long after a kill. The store has that call as uncertain.
    found.max_repeated = found.max_repeated.max(uncertain);
    let pace = play.calls_per_second.map_or_else(|| "none".to_owned(), |calls| format!("{calls}/s"));
    let table = Table::default()
        .with("rows", play.rows)
        .with("workers", play.workers)
        .with(
            "kills of workers, server, submitter",
            format!("{}, {}, {}", play.worker_kills, play.server_kills, play.submitter_kills),
        )
        .with("SIGTERM of workers, submitter", format!("{0}, {0}", play.terms))
        .with("cuts, pauses", format!("{}, {}", play.cuts, play.pauses))
        .with("pace", pace)
        .with_found(&found, seconds)
        .with("most open", provider.max_open())
        .with("rows/s", format!("{:.0}", play.rows as f64 / seconds));
    Ok((table.to_string(), found.faults()))
}

/// Plays the faults until the batch ends.
fn worked(
    play: &Play,
    provider: &Provider,
    processes: &mut Processes<'_>,
    started: Instant,
) -> Result<(), Failure> {
    let faults = play.faults();
    let step = play.rows as usize * 14 / 10 / (faults.len() + 1);
    let mut next = 0;
    let mut batch = processes.batch()?;
    let mut is_draining = false;
    loop {
        if let Some(status) = batch.try_wait()? {
            return match status.code() {
                Some(0 | 1) => Ok(()),
                Some(130) if is_draining => {
                    (batch, is_draining) = (processes.batch()?, false);
                    continue;
                }
                code => {
                    let log = processes.commands.folder.join("batch.log");
                    Err(format!("the batch ended with {code:?}: see {}", log.display()).into())
                }
            };
        }
        if started.elapsed() > PATIENCE {
            _ = batch.kill();
            return Err("the play takes too long".into());
        }
        processes.mend()?;
        if let Some(fault) = faults.get(next)
            && provider.calls() >= step * (next + 1) + (next * 37) % 50
        {
            if *fault == Fault::SubmitterTerm {
                signal("TERM", &batch)?;
                is_draining = true;
            } else if *fault == Fault::Submitter {
                is_draining = false;
                killed(&mut batch)?;
                batch = processes.batch()?;
            } else {
                provider.kill(fault.name(), play.interrupts(*fault), || processes.fault(*fault, next))?;
                if *fault == Fault::Server {
                    processes.restart_server()?;
                }
            }
            next += 1;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of calls without a response of each row that lasted at least this long, by the own record of the batch in this
/// folder.
fn long_faults(out: &Path, time: Duration) -> Result<HashMap<u64, usize>, Failure> {
    let file = rusqlite::Connection::open(out.join("store.db"))?;
    let mut rows = file.prepare(
        "SELECT row, COUNT(*) FROM answer WHERE verdict = 'fault' AND ended - planned >= ? GROUP BY row",
    )?;
    let found = rows.query_map([time.as_millis() as i64], |row| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs() as usize))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
