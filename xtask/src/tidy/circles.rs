//! Checks for circles of imports between the files of a crate. Items that several files need belong in a file that imports none of them.

use std::collections::{BTreeMap, BTreeSet};

use super::ways::ways;

/// The path of a module. The crate root is the empty path.
type Module = Vec<String>;

/// Returns each circle of files that import each other. `files` are names and texts; only files below `src` count, without
/// their tests.
///
/// An import is a path that begins with `crate::` or `super::` and leads to another file, also over names that the files on its way
/// import or re-export. A name of a module inside of the file that is imported without `crate::`, as `use inner::Y`, does not count.
pub(super) fn check(files: &[(String, String)]) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, File<'_>>> = BTreeMap::new();
    for (name, text) in files {
        if let Some((root, module)) = module(name) {
            let file = File { name, code: code(text), uses: Vec::new() };
            crates.entry(root).or_default().insert(module, file);
        }
    }
    crates.into_values().flat_map(|files| in_crate(&Files::new(files))).collect()
}

fn in_crate(files: &Files<'_>) -> Vec<String> {
    let imports = files.imports();
    let reach = |module| ways(module, |module| imports.get(module).into_iter().flatten().copied());
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    let mut problems = Vec::new();
    for module in imports.keys() {
        let ways = reach(module);
        let Some(circle) = ways.get(module).filter(|_| !seen.contains(module)) else { continue };
        seen.extend(ways.keys().filter(|other| reach(other).contains_key(module)));
        let names: Vec<&str> =
            circle.iter().filter_map(|module| Some(files.files.get(*module)?.name)).collect();
        problems.push(format!(
            "{} import each other in a circle: move what they need of each other into a file that imports none of them",
            names.join(" -> ")
        ));
    }
    problems
}

/// A source file: its code without comments and tests, and the names that it imports, each with its path from the root of the crate.
struct File<'t> {
    name: &'t str,
    code: String,
    uses: Vec<(String, Module)>,
}

/// The source files of a crate.
struct Files<'t> {
    files: BTreeMap<Module, File<'t>>,
}

impl<'t> Files<'t> {
    fn new(files: BTreeMap<Module, File<'t>>) -> Self {
        let mut files = Self { files };
        let uses: Vec<_> = files.files.iter().map(|(module, file)| files.uses(module, &file.code)).collect();
        for (file, uses) in files.files.values_mut().zip(uses) {
            file.uses = uses;
        }
        files
    }

    /// Returns the names that a file imports from its crate.
    fn uses(&self, from: &Module, code: &str) -> Vec<(String, Module)> {
        let mut found = Vec::new();
        for (at, _) in code.match_indices("use ") {
            let (before, after) = code.split_at(at);
            let before = before.rsplit('\n').next().unwrap_or_default().trim_start();
            if before.is_empty() || before.starts_with("pub") {
                tree(after.trim_start_matches("use "), &[], &mut found);
            }
        }
        found.into_iter().filter_map(|(name, path)| Some((name, self.absolute(from, &path)?))).collect()
    }

    /// Returns the path from the root of the crate, or `None` if it leads out of the crate.
    fn absolute(&self, from: &Module, path: &[String]) -> Option<Module> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&[][..], path.get(1..)?),
            "self" => (from.as_slice(), path.get(1..)?),
            "super" => (from.get(..from.len().checked_sub(ups)?)?, path.get(ups..)?),
            name => (from.as_slice(), Some(path).filter(|_| self.files.contains_key(&inside(from, name)))?),
        };
        Some([base, rest].concat())
    }

    /// Returns the file that a path from the root of the crate leads to.
    fn resolved(&self, path: &[String], depth: u32) -> Module {
        let mut at = Module::new();
        for (place, name) in path.iter().enumerate() {
            let module = inside(&at, name);
            if self.files.keys().any(|known| known.starts_with(&module)) {
                at = module;
                continue;
            }
            let uses = self.files.get(&at).map(|file| file.uses.as_slice()).unwrap_or_default();
            let named = uses.iter().find(|(known, _)| known == name).map(|(_, to)| (to.clone(), place + 1));
            let mut globs = uses.iter().filter(|(known, to)| known == "*" && self.defines(to, name));
            let next = named.or_else(|| globs.next().map(|(_, to)| (to.clone(), place)));
            match next.filter(|_| depth > 0) {
                Some((to, rest)) => {
                    return self.resolved(&[&to, path.get(rest..).unwrap_or_default()].concat(), depth - 1);
                }
                None => break,
            }
        }
        at
    }

    /// Returns whether a file declares an item of this name.
    fn defines(&self, module: &Module, name: &str) -> bool {
        let code = self.files.get(module).map(|file| file.code.as_str()).unwrap_or_default();
        ["fn", "struct", "enum", "trait", "type", "const", "static"].iter().any(|kind| {
            code.split(&format!("{kind} {name}"))
                .skip(1)
                .any(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    }

    /// Returns the files that each file imports. The root of a crate has no part in circles: it exports what others define.
    fn imports(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let of = |module: &Module, file: &File<'_>| {
            let paths = paths(&file.code).into_iter().filter_map(|path| self.absolute(module, &path));
            let files = paths.filter_map(|path| Some(self.files.get_key_value(&self.resolved(&path, 8))?.0));
            files.filter(|other| *other != module && !other.is_empty() && !module.is_empty()).collect()
        };
        self.files.iter().map(|(module, file)| (module, of(module, file))).collect()
    }
}

fn inside(module: &Module, name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
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
fn paths(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let (before, rest) = code.split_at(at);
            if !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                tree(rest, &[], &mut found);
            }
        }
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// Reads the paths of an import from the beginning of a text, each with its name here, and returns what follows.
fn tree<'t>(text: &'t str, outer: &[String], found: &mut Vec<(String, Module)>) -> &'t str {
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
        if let Some(after) = rest.strip_prefix('*') {
            found.push(("*".to_owned(), path));
            return after;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name != "self" || path.is_empty() {
            path.push(name.to_owned());
        }
        match after.strip_prefix("::") {
            Some(inner) if !name.is_empty() => rest = inner,
            _ => {
                let alias = after.trim_start().strip_prefix("as ").map(|alias| {
                    alias.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
                });
                let name = alias.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
                found.push((name, path));
                return after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let owned = files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), (*text).to_owned()));
        check(&owned.collect::<Vec<_>>())
    }

    fn circle(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| format!("crates/a/src/{name}")).collect();
        format!(
            "{} import each other in a circle: move what they need of each other into a file that imports none of them",
            names.join(" -> ")
        )
    }

    #[test]
    fn two_files_that_import_each_other_fail_however_they_say_it() {
        for (one, other) in [
            ("use crate::y::Y;", "use crate::x::X;"),
            ("use super::y;", "use super::x::{self, X};"),
            ("use crate::{Y, Z};", "use super::X;"),
            ("use crate::W;", "use super::X;"),
            ("use crate::{\n    std, y::{inner::Y},\n};", "fn f() -> crate::x::X {}"),
        ] {
            let found = problems(&[
                ("x.rs", one),
                ("y.rs", other),
                ("lib.rs", "mod x;\nmod y;\npub use x::X;\npub use y::{Y, inner::Z as W};"),
            ]);
            assert_eq!(found, [circle(&["x.rs", "y.rs", "x.rs"])], "{one} {other}");
            if one.contains('Z') || one.contains('W') {
                continue; // only the root of a crate exports these names
            }
            let deeper = |text: &str| text.replace("crate::", "crate::m::");
            assert_eq!(problems(&[("m/x.rs", &deeper(one)), ("m/y.rs", &deeper(other))]).len(), 1, "{one}");
        }
    }

    #[test]
    fn a_circle_of_any_length_fails_also_over_names_that_other_modules_hand_on() {
        let three =
            [("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::z::Z;"), ("z.rs", "use crate::x::X;")];
        assert_eq!(problems(&three), [circle(&["x.rs", "y.rs", "z.rs", "x.rs"])]);
        assert_eq!(problems(&three[..2]), [""; 0]);
        for handed_on in ["pub(crate) use inner::Y;", "use inner::Y;", "pub use inner::*;"] {
            let found = problems(&[
                ("x.rs", "use crate::m::Y;"),
                ("m/mod.rs", &format!("mod inner;\n{handed_on}\n")),
                ("m/inner.rs", "use crate::z::Z;\npub struct Y;"),
                ("z.rs", "use crate::x::X;"),
            ]);
            assert_eq!(found, [circle(&["m/inner.rs", "z.rs", "x.rs", "m/inner.rs"])], "{handed_on}");
        }
    }

    #[test]
    fn a_module_and_one_inside_of_it_fail_if_each_imports_the_other() {
        let inner = "use super::X;";
        for outer in
            ["mod y;\nuse crate::x::y::Y;\npub struct X;", "mod y;\npub use crate::x::y::Y;\npub struct X;"]
        {
            assert_eq!(problems(&[("x.rs", outer), ("x/y.rs", inner), ("lib.rs", "")]).len(), 1, "{outer}");
        }
        let passes = [("x.rs", "mod y;\npub use y::Y;"), ("x/y.rs", "use super::z::Z;"), ("x/z.rs", "")];
        assert_eq!(problems(&passes), [""; 0]);
    }

    #[test]
    fn one_direction_tests_and_comments_pass() {
        for (name, one, other) in [
            ("y.rs", "use crate::y::Y;", "use crate::z::X;"),
            (
                "y.rs",
                "use crate::y::Y;",
                "// see crate::x::X\n#[cfg(test)]\nmod tests {\n    use crate::x::X;\n}\n",
            ),
            ("y/tests.rs", "use crate::y::tests::Y;", "use crate::x::X;"),
        ] {
            assert_eq!(problems(&[("x.rs", one), (name, other), ("z.rs", "")]), [""; 0], "{one} {other}");
        }
    }
}
