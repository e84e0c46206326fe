//! The processes of tests with Restate: its server, workers and batches.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::play::files::Files;
use super::play::process::spawned;
use crate::{Failure, bench, workspace};

/// Starts the command `formwork` with files in a folder, beside a server with its ingress at a port.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commands<'a> {
    pub(super) formwork: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) ingress: u16,
}

impl Commands<'_> {
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.formwork);
        command.arg(name).env_remove("FORMWORK_MODEL").env_remove("FORMWORK_CONFIG");
        // A separate cache keeps observations of other tests away.
        command.env("FORMWORK_CACHE", self.folder.join("cache"));
        command
    }

    /// Starts a worker of a pool that Restate reaches at `advertise`, with further arguments.
    pub(super) fn worker(
        &self,
        files: &Files,
        pool: &str,
        listen: SocketAddr,
        advertise: SocketAddr,
        arguments: &[String],
    ) -> Result<Child, Failure> {
        let mut command = self.command("worker");
        command.arg("--listen").arg(listen.to_string());
        command.arg("--register").arg(format!("http://127.0.0.1:{}", self.ingress + 1));
        command.arg("--advertise").arg(format!("http://{advertise}"));
        command.args(["--pool", pool]).arg("--config").arg(&files.config).args(arguments);
        logged(&mut command, &self.folder.join(format!("worker-{}.log", listen.port())))
    }

    /// Starts the process that submits the rows of a batch to a pool, `open` at a time.
    pub(super) fn batch(&self, files: &Files, pool: &str, open: u16) -> Result<Child, Failure> {
        let mut command = self.command("batch");
        command.arg("run").arg(&files.rows).arg("--contract").arg(&files.contract);
        command.arg("--out").arg(&files.out).args(["--engine", "restate", "--json"]);
        command.arg("--store").arg(files.out.join("store.db"));
        command.arg("--ingress").arg(format!("http://127.0.0.1:{}", self.ingress));
        command.args(["--pool", pool, "--concurrency", &open.to_string()]);
        logged(&mut command, &self.folder.join("batch.log"))
    }
}

/// Returns addresses of this machine that nothing listens at.
pub(super) fn free(count: u16) -> Result<Vec<SocketAddr>, Failure> {
    let held: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    Ok(held.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?)
}

/// Starts a process with its output in a file.
fn logged(command: &mut Command, log: &Path) -> Result<Child, Failure> {
    let log = File::options().create(true).append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    spawned(command)
}

/// Returns the first of three free ports of this machine that follow each other.
pub(super) fn three_ports() -> Result<u16, Failure> {
    for _ in 0..100 {
        let first = TcpListener::bind("127.0.0.1:0")?;
        let port = first.local_addr()?.port();
        let is_free =
            |port: Option<u16>| port.is_some_and(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
        if is_free(port.checked_add(1)) && is_free(port.checked_add(2)) {
            return Ok(port);
        }
    }
    Err("there are no three free ports".into())
}

/// Returns the command that runs Restate's server with its files in a folder. It is installed if it is missing.
pub(super) fn server(folder: &Path, ingress: u16) -> Result<Command, Failure> {
    let mut command = workspace::server("restate", ingress)?;
    command.env("RESTATE_BASE_DIR", folder.join("restate"));
    Ok(command)
}

pub(super) fn started_server(command: &mut Command, folder: &Path, ingress: u16) -> Result<Child, Failure> {
    let mut server = logged(command, &folder.join("restate.log"))?;
    let begun = Instant::now();
    while !is_up(ingress) {
        if server.try_wait()?.is_some() || begun.elapsed() > Duration::from_secs(120) {
            _ = server.kill();
            let log = folder.join("restate.log");
            return Err(format!("Restate does not start: see {}", log.display()).into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// Returns whether a server with its ingress at this port is up. Its administration is one port above.
fn is_up(ingress: u16) -> bool {
    let answers = async |port: u16, path| bench::get(&format!("127.0.0.1:{port}"), path).await.is_ok();
    let both = async { answers(ingress + 1, "/version").await && answers(ingress, "/restate/health").await };
    let both = async { tokio::time::timeout(Duration::from_secs(5), both).await.unwrap_or(false) };
    bench::runtime().is_ok_and(|runtime| runtime.block_on(both))
}
