use std::env;

/// The variable that candle reads the number of its threads from, once in a process.
const VARIABLE: &str = "CANDLE_NUM_THREADS";

/// Restarts this program with one thread for matrix products, unless `CANDLE_NUM_THREADS` is set or this is not Unix.
///
/// Call it first in `main`: the program begins anew, in the same process and with the same arguments. It takes about a
/// millisecond. Where it fails, the program goes on as it was started.
///
/// candle takes the number of its threads from the environment alone. Its threads spin while they wait for each other,
/// so that beside other work several of them are 2 to 10 times slower than one. A program may change its own environment
/// only by unsafe code, because other threads may be reading it; a new start needs none.
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
    // Returns only if the program cannot be started.
    let _ = command.args(arguments).env(VARIABLE, "1").exec();
}
