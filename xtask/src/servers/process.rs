//! Processes that outlive this one. Each is started in its own process group, found again by a file, and stopped as a group.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Place, place};

/// The environment variable that marks processes started here. The process with a recorded number may be a different one by now,
/// and then it does not have the mark.
const MARK: &str = "FORMWORK_SERVER_OF";

/// The time for a server to stop after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running server that was started here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Running {
    name: String,
    /// The process group, which has the number of its leading process.
    pub(super) group: u32,
    /// The base URL at the start of the server.
    pub(super) url: String,
}

/// Starts a server in its own process group, with its output in its log.
pub(super) fn start(place: &Place, name: &str, url: &str, mut command: Command) -> Result<Child, String> {
    let path = place.log(name);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let log = File::create(&path).map_err(failed)?;
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
    command.env(MARK, place.folder());
    // A process group is not affected by Ctrl-C in the terminal, and one signal reaches the server and its children. Killing only
    // the server would leave the children running.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
    let noted = place::write(&place.pid(name), &format!("{}\n{url}\n", child.id()));
    if let Err(why) = noted {
        // Without the file, a later command could not find the server.
        let _ = child.kill().and_then(|()| child.wait().map(drop));
        return Err(why);
    }
    Ok(child)
}

impl Running {
    /// Returns the server of this name, if it was started here and runs.
    pub(super) fn find(place: &Place, name: &str) -> Option<Self> {
        let text = fs::read_to_string(place.pid(name)).ok()?;
        Self::read(name, &text).filter(|running| running.is_alive(place))
    }

    fn read(name: &str, text: &str) -> Option<Self> {
        let (group, url) = text.trim_end().split_once('\n')?;
        // A signal to group 0 goes to this process, and a signal to group 1 to every process.
        let group = group.parse().ok().filter(|group| *group > 1)?;
        Some(Self { name: name.to_owned(), group, url: url.to_owned() })
    }

    /// Returns whether a process of the group runs that was started here.
    fn is_alive(&self, place: &Place) -> bool {
        let processes = Path::new("/proc");
        if processes.join("self/stat").exists() {
            members(processes, self.group).any(|process| is_marked(&process, place.folder()))
        } else {
            self.signal("0")
        }
    }

    /// Stops the whole group, first with SIGTERM, then with SIGKILL.
    pub(super) fn stop(&self, place: &Place) -> Result<(), String> {
        for signal in ["TERM", "KILL"] {
            self.signal(signal);
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE {
                if !self.is_alive(place) {
                    place.forget(&self.name);
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Err(format!("cannot stop {}: process group {} is still there", self.name, self.group))
    }

    /// Sends a signal to the group. Returns whether the group existed.
    fn signal(&self, signal: &str) -> bool {
        // The shell's built-in `kill` is used, because small systems do not have the program.
        let mut shell = Command::new("sh");
        shell.args(["-c", "kill -s \"$0\" -- \"-$1\"", signal]).arg(self.group.to_string());
        shell.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

/// Returns the `/proc` folders of the processes of a group.
fn members(processes: &Path, group: u32) -> impl Iterator<Item = std::path::PathBuf> {
    let entries = fs::read_dir(processes).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(move |process| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        group_of(&stat) == Some(group)
    })
}

/// Returns the process group in a `stat` file of Linux.
fn group_of(stat: &str) -> Option<u32> {
    // The second field is the program's name in parentheses, which may contain spaces and parentheses.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(2)?.parse().ok()
}

/// Returns whether a process has our mark. A zombie process has no environment any more.
fn is_marked(process: &Path, folder: &Path) -> bool {
    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_encoded_bytes()].concat();
    let environment = fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_is_a_group_and_a_url() {
        let running = Running::read("x", "42\nhttp://127.0.0.1:1\n").unwrap();
        assert_eq!((running.group, running.url.as_str()), (42, "http://127.0.0.1:1"));
        for text in ["", "42", "0\nhttp://a:1", "1\nhttp://a:1", "-5\nhttp://a:1", "x\nhttp://a:1"] {
            assert_eq!(Running::read("x", text), None, "{text}");
        }
    }

    #[test]
    fn a_group_is_read_behind_any_name() {
        assert_eq!(group_of("10 (a) b (c)) S 1 77 77 0 -1"), Some(77));
        assert_eq!(group_of("10 (a"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_server_is_found_again_and_stopped_with_its_children() {
        let folder = std::env::temp_dir().join(format!("formwork-servers-{}", std::process::id()));
        let place = Place::at(folder.clone()).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo started; wait"]);
        let mut child = start(&place, "x", "http://127.0.0.1:1", shell).unwrap();
        // A process that is about to become its program has no environment for a moment, and with it no mark.
        let found = || {
            let begun = Instant::now();
            loop {
                match Running::find(&place, "x") {
                    Some(running) => return running,
                    None if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
                    None => panic!("the server is not found"),
                }
            }
        };
        assert_eq!(found().group, child.id());
        let begun = Instant::now();
        while place.tail_of_log("x").is_empty() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        found().stop(&place).unwrap();
        assert_eq!(Running::find(&place, "x"), None);
        assert!(!place.pid("x").exists());
        // A process of another user with the recorded number does not have the mark.
        place::write(&place.pid("x"), &format!("{}\nhttp://127.0.0.1:1\n", std::process::id())).unwrap();
        assert_eq!(Running::find(&place, "x"), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
