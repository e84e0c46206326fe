//! Measures the cost of a dependency on the core crate: a clean debug build, and the number of crates.

use std::collections::BTreeSet;
use std::fs;

use super::report::{Goal, Row};
use crate::{Failure, workspace};

const PACKAGE: &str = "formwork-core";

/// Settings that restore cargo's default dev profile, which dependents of the core crate have. The profile of this workspace is
/// optimized.
const AS_A_DEPENDENCY: &str = r#"profile.dev.package."*".opt-level=0"#;

/// The clock ticks per second in `/proc`, which are the same on all architectures of Linux.
const TICKS: f64 = 100.0;

pub(super) fn measure() -> Result<Vec<Row>, Failure> {
    let arguments =
        ["tree", "--package", PACKAGE, "--edges", "normal", "--prefix", "none", "--target", "all"];
    let text = workspace::stdout(workspace::cargo().args(arguments).args(["--format", "{p}"]))?;
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let tree: BTreeSet<&str> = names.filter(|name| *name != PACKAGE).collect();
    let what = format!("crates in {PACKAGE}'s tree");
    let mut rows = vec![Row::figure(&what, String::new(), tree.len() as f64, "crates", None)];
    if let Some(seconds) = clean_build()? {
        let what = format!("{PACKAGE}, clean debug build");
        rows.push(Row::figure(&what, "user + system".to_owned(), seconds, "CPU s", Some(Goal::AtMost(30.0))));
    } else {
        eprintln!("CPU time of a build is read from /proc, which this system does not have: left out");
    }
    Ok(rows)
}

/// Returns the CPU seconds of a debug build into an empty folder, or `None` on systems without `/proc`.
fn clean_build() -> Result<Option<f64>, Failure> {
    let Some(before) = cpu_of_children() else { return Ok(None) };
    let folder = workspace::target().join("bench-build");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    let mut build = workspace::cargo();
    build.args(["build", "--quiet", "--package", PACKAGE, "--config", AS_A_DEPENDENCY, "--target-dir"]);
    workspace::stdout(build.arg(&folder))?;
    let after = cpu_of_children();
    fs::remove_dir_all(&folder).map_err(failed)?;
    Ok(after.map(|after| after - before))
}

/// Returns the CPU seconds of all child processes that have ended, including their children.
fn cpu_of_children() -> Option<f64> {
    cutime(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Returns the sum of the fields 16 and 17 of `stat` (proc(5)). The program's name before them, in parentheses, may contain any
/// character.
fn cutime(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 250 50 20 0 1 0";
        assert_eq!(cutime(stat), Some(3.0));
        assert_eq!(cutime(""), None);
    }
}
