use std::env;

/// The environment variable with candle's number of threads, which candle reads once.
const VARIABLE: &str = "CANDLE_NUM_THREADS";

/// Restarts this program with one thread for matrix products, unless `CANDLE_NUM_THREADS` is set or the system is not
/// Unix.
///
/// Call it first in `main`. The program starts again in the same process, with the same arguments, within about a
/// millisecond. If that fails, the program continues unchanged.
///
/// candle takes its number of threads from the environment only. Its threads spin while they wait, so beside other work
/// several threads are 2 to 10 times slower than one. A program can change its own environment only by unsafe code,
/// because other threads may be reading it; a restart needs none.
///
/// ```no_run
/// formwork_local::settle_threads();
/// // Matrix products run on one thread from here on.
/// ```
pub fn settle_threads() {
    #[cfg(unix)]
    if env::var_os(VARIABLE).is_none() {
        restart();
    }
}

#[cfg(unix)]
fn restart() {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // `exec` returns only if the program cannot be started.
    let _ = command.args(arguments).env(VARIABLE, "1").exec();
}
