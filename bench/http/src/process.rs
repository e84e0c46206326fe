//! CPU time and memory of this process, and the server as a child process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// Returns the CPU time of this process in microseconds.
pub(crate) fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident() -> Result<u64, Failure> {
    status("VmRSS:")
}

/// Returns the maximum resident memory of this process so far in bytes.
pub(crate) fn peak() -> Result<u64, Failure> {
    status("VmHWM:")
}

/// Returns a field of `/proc/self/status` in bytes. proc(5) gives it in units of 1024 bytes.
fn status(name: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("proc(5) has no such line")?;
    let number = line.split_whitespace().next().ok_or("proc(5) has no number there")?;
    Ok(number.parse::<u64>()? * 1024)
}

/// The server's process. Dropping it ends the server.
pub(crate) struct Server {
    child: Child,
    /// `http://127.0.0.1:1234`
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Result<Self, Failure> {
        // The name of the call is used and not `current_exe`, which is valgrind itself under valgrind.
        let program = std::env::args_os().next().ok_or("the program has no name")?;
        let mut command = Command::new(program);
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        let out = child.stdout.take().ok_or("the server has no output")?;
        BufReader::new(out).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// Sends a GET request to the server and returns the body.
    pub(crate) async fn ask(&self, path: &str) -> Result<String, Failure> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(client.get(format!("{}{path}", self.address)).send().await?.text().await?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
