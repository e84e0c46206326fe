//! What this process has used up, and the server beside it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// Microseconds of CPU that this process has used.
pub(crate) fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Bytes of this process in memory.
pub(crate) fn resident() -> Result<u64, Failure> {
    status("VmRSS:")
}

/// The most bytes that it ever had.
pub(crate) fn peak() -> Result<u64, Failure> {
    status("VmHWM:")
}

/// proc(5): in units of 1024 bytes.
fn status(name: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("proc(5) has no such line")?;
    let number = line.split_whitespace().next().ok_or("proc(5) has no number there")?;
    Ok(number.parse::<u64>()? * 1024)
}

/// The server, as long as it is kept.
pub(crate) struct Server {
    child: Child,
    /// `http://127.0.0.1:1234`
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Result<Self, Failure> {
        // As it was called, not `current_exe`: under valgrind that is valgrind.
        let program = std::env::args_os().next().ok_or("the program has no name")?;
        let mut command = Command::new(program);
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        let out = child.stdout.take().ok_or("the server has no output")?;
        BufReader::new(out).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// Asks the server itself something.
    pub(crate) async fn ask(&self, path: &str) -> Result<String, Failure> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(client.get(format!("{}{path}", self.address)).send().await?.text().await?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already, or it ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
