//! Checks tracked files for forbidden sizes, paths and contents.

/// The maximum size of a tracked file in bytes.
const MAX_BYTES: usize = 500_000;

/// The maximum size of a screenshot in bytes.
const MAX_PICTURE: usize = 60_000;

/// The beginnings of machine-specific paths. They are split so that this file does not contain them.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Use", "rs/")];

/// The hosts of package registries. Many machines use a mirror, so nothing may rely on these names.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("proxy.gol", "ang.org"),
    concat!("repo.maven.ap", "ache.org"),
    concat!("deb.deb", "ian.org"),
];

/// Returns the errors of a tracked file.
pub(super) fn check(name: &str, bytes: &[u8]) -> Vec<String> {
    let mut problems = Vec::new();
    if bytes.len() > MAX_BYTES {
        problems.push(format!(
            "{name} has {} bytes: a tracked file has at most {MAX_BYTES}; make it or fetch it when it is needed",
            bytes.len()
        ));
    }
    if name.starts_with("docs/images/") && name.ends_with(".png") && bytes.starts_with(b"\x89PNG\r\n") {
        if bytes.len() > MAX_PICTURE {
            problems
                .push(format!("{name} has {} bytes: a screenshot has at most {MAX_PICTURE}", bytes.len()));
        }
        return problems;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        _ => {
            problems.push(format!("{name} is no text: binaries are made or fetched when they are needed"));
            return problems;
        }
    };
    for (number, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", number + 1);
        if let Some(path) = MACHINE_PATHS.iter().find(|path| has_path(line, path)) {
            problems.push(format!(
                "{place} has a path of one machine ({path}…): name it from the workspace's root"
            ));
        }
        // Lock files contain registry addresses, which cargo writes.
        let host = REGISTRY_HOSTS
            .iter()
            .find(|host| line.contains(**host))
            .filter(|_| !name.ends_with("Cargo.lock"));
        if let Some(host) = host {
            problems.push(format!("{place} names the registry host {host}: name the package, not the host"));
        }
    }
    problems
}

/// Returns whether a line contains an absolute path with this beginning, which excludes `./work/` and `example.com/home/`.
fn has_path(line: &str, start: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | ')' | '*');
    line.match_indices(start)
        .any(|(at, _)| !line.get(..at).and_then(|before| before.chars().next_back()).is_some_and(continues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        check("a.md", text.as_bytes())
    }

    #[test]
    fn ordinary_text_passes() {
        let text = "see ./work/a, example.com/home/b, ../shared and https://example.com/\n";
        assert_eq!(problems(text), [""; 0]);
    }

    #[test]
    fn a_path_of_one_machine_fails_with_its_line() {
        for start in MACHINE_PATHS {
            let found = problems(&format!("fine\nopen(\"{start}ada/x\")\n"));
            assert!(found.len() == 1 && found[0].starts_with("a.md:2 has a path"), "{found:?}");
        }
    }

    #[test]
    fn a_registry_host_fails_but_in_cargos_own_file() {
        for host in REGISTRY_HOSTS {
            let text = format!("from https://{host}/x\n");
            assert!(problems(&text)[0].contains("registry host"), "{host}");
            assert_eq!(check("Cargo.lock", text.as_bytes()), [""; 0]);
        }
    }

    #[test]
    fn a_binary_or_a_large_file_fails() {
        assert!(check("a.bin", &[0, 1, 2])[0].contains("is no text"));
        assert!(check("a.bin", &[0xff])[0].contains("is no text"));
        assert!(problems(&"x".repeat(MAX_BYTES + 1))[0].contains("has 500001 bytes"));
    }

    #[test]
    fn a_screenshot_has_its_folder_and_a_limit() {
        let picture = |length: usize| [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![0; length]].concat();
        assert_eq!(check("docs/images/a.png", &picture(9)), [""; 0]);
        for (name, bytes) in [
            ("docs/images/a.png", picture(MAX_PICTURE)),
            ("docs/images/a.png", vec![0; 9]),
            ("docs/a.png", picture(9)),
            ("docs/images/a.bin", picture(9)),
        ] {
            assert_eq!(check(name, &bytes).len(), 1, "{name}");
        }
    }
}
