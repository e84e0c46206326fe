//! Servers as child processes that report their CPU time and memory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The resources that a process has used.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Used {
    /// The CPU time in microseconds.
    pub(crate) cpu: f64,
    /// The resident memory in bytes.
    pub(crate) resident: u64,
    /// The maximum resident memory so far in bytes.
    pub(crate) peak: u64,
}

/// A server's process. Dropping it ends the server.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// `127.0.0.1:1234`
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Result<Self, Failure> {
        Self::of(Command::new(std::env::current_exe()?).args(arguments))
    }

    /// Starts another program that reports as [`tell`] does.
    pub(crate) fn of(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("the server has no input")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("the server has no output")?);
        let mut address = String::new();
        if output.read_line(&mut address)? == 0 {
            return Err(format!("{} ended before it listened", command.get_program().display()).into());
        }
        Ok(Self { child, input, output, address: address.trim().to_owned() })
    }

    pub(crate) fn used(&mut self) -> Result<Used, Failure> {
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

/// Runs the server's side: prints its address, then its used resources for each line of input. It ends with its parent process,
/// at the end of standard input.
pub(crate) fn tell(address: std::net::SocketAddr) {
    println!("{address}");
    std::thread::spawn(|| {
        for line in std::io::stdin().lines() {
            let usage = line.map_err(Failure::from).and_then(|_| Ok(serde_json::to_string(&used()?)?));
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

fn used() -> Result<Used, Failure> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3;
    Ok(Used { cpu, resident: status("VmRSS:")?, peak: status("VmHWM:")? })
}

/// Returns a field of `/proc/self/status` in bytes. proc(5) gives it in units of 1024 bytes.
fn status(name: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("proc(5) has no such line")?;
    let number = line.split_whitespace().next().ok_or("proc(5) has no number there")?;
    Ok(number.parse::<u64>()? * 1024)
}
