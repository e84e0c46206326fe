//! Checks for import cycles between two files of a crate. Items that both need belong in a third file.

use std::collections::{BTreeMap, BTreeSet};

/// The path of a module. The crate root is the empty path.
type Module = Vec<String>;

/// Returns each pair of files that import each other. `files` are names and texts; only files below `src` count, without
/// their tests.
///
/// An import is a path that begins with `crate::` or `super::` and leads to another file. A module and a module inside it are not a
/// pair. A name that the crate root re-exports from a module leads to that module.
pub(super) fn check(files: &[(String, String)]) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, (&str, &str)>> = BTreeMap::new();
    for (name, text) in files {
        if let Some((root, module)) = module(name) {
            crates.entry(root).or_default().insert(module, (name, text));
        }
    }
    let mut problems = Vec::new();
    for modules in crates.values() {
        let exports = exports(modules);
        let imports: BTreeMap<&Module, BTreeSet<&Module>> = modules
            .iter()
            .map(|(module, (_, text))| {
                let paths = paths(code(text)).into_iter();
                (module, paths.filter_map(|path| leads_to(module, &path, modules, &exports)).collect())
            })
            .collect();
        for (one, imported) in &imports {
            for other in imported.iter().filter(|other| one < *other && imports[**other].contains(one)) {
                let apart = !one.starts_with(other) && !other.starts_with(one);
                if let (true, Some((one, _)), Some((other, _))) =
                    (apart, modules.get(*one), modules.get(*other))
                {
                    problems.push(format!(
                        "{one} and {other} import each other: move what both need into a file that imports neither"
                    ));
                }
            }
        }
    }
    problems
}

/// Returns the crate's folder and the module of a source file, or `None` for other files and for test files.
fn module(name: &str) -> Option<(&str, Module)> {
    let (root, file) = name.split_once("src/")?;
    let mut module: Module = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    match module.last()?.as_str() {
        "tests" => return None,
        "mod" | "lib" | "main" => drop(module.pop()),
        _ => {}
    }
    Some((root, module))
}

/// Returns the text before the tests, without comments.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .fold(String::new(), |out, line| out + line + "\n")
}

/// Returns all paths that begin with `crate` or `super`. Each path in braces counts separately.
fn paths(code: String) -> Vec<Module> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let (before, rest) = code.split_at(at);
            if !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                tree(rest, &[], &mut found);
            }
        }
    }
    found
}

/// Reads the paths of an import from the beginning of a text, and returns what follows.
fn tree<'t>(text: &'t str, outer: &[String], found: &mut Vec<Module>) -> &'t str {
    let mut path = outer.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut list) = rest.strip_prefix('{') {
            while !list.is_empty() && !list.starts_with('}') {
                list = tree(list, &path, found);
                list =
                    list.trim_start_matches(|c| !matches!(c, ',' | '}')).trim_start_matches([',', ' ', '\n']);
            }
            return list.strip_prefix('}').unwrap_or(list);
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        path.push(name.to_owned());
        match after.strip_prefix("::") {
            Some(inner) if !name.is_empty() => rest = inner,
            _ => {
                found.push(path);
                return after;
            }
        }
    }
}

/// Returns the names that a crate root re-exports from its modules, with the path of each.
fn exports(modules: &BTreeMap<Module, (&str, &str)>) -> BTreeMap<String, Module> {
    let root = modules.get(&Module::new()).map(|(_, text)| code(text)).unwrap_or_default();
    let mut found = Vec::new();
    for line in root.split("pub use ").skip(1) {
        tree(line.trim_start_matches("self::"), &[], &mut found);
    }
    found
        .into_iter()
        .filter_map(|path| Some((path.last()?.clone(), path)))
        .filter(|(_, path)| path.len() > 1)
        .collect()
}

/// Returns the module of the other file that a path leads to, or `None` for the file itself and for the crate root.
fn leads_to<'m>(
    from: &Module,
    path: &[String],
    modules: &'m BTreeMap<Module, (&str, &str)>,
    exports: &BTreeMap<String, Module>,
) -> Option<&'m Module> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let base = if ups == 0 { &[] } else { from.get(..from.len().checked_sub(ups)?)? };
    let mut whole: Module = base.iter().chain(path.iter().skip(ups.max(1))).cloned().collect();
    if let Some(path) = whole.first().and_then(|name| exports.get(name)) {
        whole = path.iter().chain(whole.iter().skip(1)).cloned().collect();
    }
    let (to, _) = (1..=whole.len()).rev().find_map(|length| modules.get_key_value(whole.get(..length)?))?;
    (to != from).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let owned = files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), (*text).to_owned()));
        check(&owned.collect::<Vec<_>>())
    }

    #[test]
    fn two_files_that_import_each_other_fail_however_they_say_it() {
        for (one, other) in [
            ("use crate::y::Y;", "use crate::x::X;"),
            ("use super::y;", "use super::x::{self, X};"),
            ("use crate::{Y, Z};", "use super::X;"),
            ("use crate::{\n    std, y::{inner::Y},\n};", "fn f() -> crate::x::X {}"),
        ] {
            let found = problems(&[
                ("x.rs", one),
                ("y.rs", other),
                ("lib.rs", "mod x;\nmod y;\npub use x::X;\npub use y::{Y, inner::Z as W};"),
            ]);
            assert_eq!(
                found,
                [
                    "crates/a/src/x.rs and crates/a/src/y.rs import each other: move what both need into a file that imports neither"
                ],
                "{one} {other}"
            );
            if one.contains('Z') {
                continue; // only the root of a crate exports these names
            }
            let deeper = |text: &str| text.replace("crate::", "crate::m::");
            assert_eq!(problems(&[("m/x.rs", &deeper(one)), ("m/y.rs", &deeper(other))]).len(), 1, "{one}");
        }
    }

    #[test]
    fn one_direction_tests_comments_and_modules_inside_of_each_other_pass() {
        for (name, one, other) in [
            ("y.rs", "use crate::y::Y;", "use crate::z::X;"),
            (
                "y.rs",
                "use crate::y::Y;",
                "// see crate::x::X\n#[cfg(test)]\nmod tests {\n    use crate::x::X;\n}\n",
            ),
            ("x/y.rs", "use self::y::Y; use crate::x::y::Z;", "use super::X;"),
            ("y/tests.rs", "use crate::y::tests::Y;", "use crate::x::X;"),
        ] {
            assert_eq!(problems(&[("x.rs", one), (name, other), ("z.rs", "")]), [""; 0], "{one} {other}");
        }
    }
}
