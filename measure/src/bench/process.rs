//! The CPU time and the memory of processes, and servers as child processes that report them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, workspace};

/// The resources that a process has used.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Used {
    /// The CPU time in microseconds.
    pub(super) cpu: f64,
    /// The resident memory in bytes.
    pub(super) resident: u64,
    /// The maximum resident memory so far in bytes.
    pub(super) peak: u64,
}

impl Used {
    /// Returns the resources that this process has used.
    pub(super) fn here() -> Result<Self, Failure> {
        Ok(Self { cpu: cpu()?, resident: status("VmRSS:")?, peak: status("VmHWM:")? })
    }
}

/// Returns the CPU time of this process in microseconds.
pub(crate) fn cpu() -> Result<f64, Failure> {
    Ok(crate::cpu::cpu()?.as_secs_f64() * 1e6)
}

/// Returns a field of `/proc/self/status` in bytes. proc(5) gives it in units of 1024 bytes.
fn status(name: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("proc(5) has no such line")?;
    let number = line.split_whitespace().next().ok_or("proc(5) has no number there")?;
    Ok(number.parse::<u64>()? * 1024)
}

/// Returns the command that runs a part of a benchmark in a process of its own.
pub(super) fn part(args: &[&str]) -> Result<Command, Failure> {
    // The name of the call is used and not `current_exe`, which is valgrind itself under valgrind.
    let mut command = Command::new(std::env::args_os().next().ok_or("the program has no name")?);
    command.arg("part").args(args);
    Ok(command)
}

/// Runs a part in a process of its own, and returns its line of JSON.
pub(super) fn measured(args: &[&str]) -> Result<Value, Failure> {
    let text = workspace::stdout(&mut part(args)?)?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?)
}

/// Returns a number of a line of JSON.
pub(super) fn number(line: &Value, pointer: &str) -> Result<f64, Failure> {
    let number = line.pointer(pointer).and_then(Value::as_f64);
    number.ok_or_else(|| format!("no number at `{pointer}` in {line}").into())
}

/// A server's process. Dropping it ends the server.
pub(super) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// `127.0.0.1:1234`
    pub(super) address: String,
}

impl Server {
    /// Starts a server of a benchmark.
    pub(super) fn start(args: &[&str]) -> Result<Self, Failure> {
        Self::of(part(&["serve"])?.args(args))
    }

    /// Starts another program that reports as [`tell`] does.
    pub(super) fn of(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("the server has no input")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("the server has no output")?);
        let mut address = String::new();
        if output.read_line(&mut address)? == 0 {
            return Err(format!("{} ended before it listened", command.get_program().display()).into());
        }
        Ok(Self { child, input, output, address: address.trim().to_owned() })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends the signal for a reload.
    pub(super) fn hang_up(&self) -> Result<(), Failure> {
        let status = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err("the server got no signal".into()) }
    }

    pub(super) fn used(&mut self) -> Result<Used, Failure> {
        self.input.write_all(b"used\n")?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Listens at a free port, and [tells](tell) it.
pub(super) async fn listen() -> Result<tokio::net::TcpListener, Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    tell(listener.local_addr()?);
    Ok(listener)
}

/// Runs the server's side: prints its address, then its used resources for each line of input. It ends with its parent process,
/// at the end of standard input.
pub(super) fn tell(address: std::net::SocketAddr) {
    println!("{address}");
    std::thread::spawn(|| {
        for line in std::io::stdin().lines() {
            let usage = line.map_err(Failure::from).and_then(|_| Ok(serde_json::to_string(&Used::here()?)?));
            match usage {
                Ok(line) => println!("{line}"),
                Err(error) => {
                    eprintln!("{error}");
                    break;
                }
            }
        }
        std::process::exit(0);
    });
}
