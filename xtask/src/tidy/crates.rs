//! The crates of the workspace and their dependencies, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use super::ways::ways;

/// A crate of the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) manifest: PathBuf,
    /// The dependencies in its manifest, except dev-dependencies.
    pub(super) imports: Vec<Import>,
    /// The files of its examples.
    pub(super) examples: Vec<PathBuf>,
    /// All direct and indirect dependencies with the features of the workspace, each with its path from this crate.
    pub(super) resolved: BTreeMap<String, Vec<String>>,
    /// All direct and indirect dependencies with only the default features.
    pub(super) by_default: BTreeSet<String>,
}

impl Crate {
    /// Returns the folder below `crates/` that it lies in, or `None` outside of `crates/`.
    pub(super) fn folder(&self) -> Option<&str> {
        let (_, inside) = self.manifest.to_str()?.rsplit_once("crates/")?;
        inside.split('/').next()
    }
}

/// A dependency in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) name: String,
    /// Whether the dependency is optional.
    pub(super) optional: bool,
}

/// Returns the members of the workspace by name. `by_default` is empty, because the metadata unites the features of all members.
pub(super) fn from_metadata(metadata: &Value) -> Result<Vec<Crate>, String> {
    let broken = |what: &str| format!("cargo metadata has no `{what}`; is it format version 1?");
    let packages = metadata["packages"].as_array().ok_or_else(|| broken("packages"))?;
    let members = metadata["workspace_members"].as_array().ok_or_else(|| broken("workspace_members"))?;
    let graph = Graph::new(metadata).ok_or_else(|| broken("resolve.nodes"))?;
    let own = packages.iter().filter(|package| members.contains(&package["id"]));
    let mut crates: Vec<Crate> = own
        .map(|package| Crate {
            name: text(&package["name"]),
            manifest: text(&package["manifest_path"]).into(),
            imports: imports(package),
            examples: examples(package),
            resolved: graph.reach(package["id"].as_str().unwrap_or_default()),
            by_default: BTreeSet::new(),
        })
        .collect();
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn imports(package: &Value) -> Vec<Import> {
    let outside_tests = items(&package["dependencies"]).filter(|dependency| dependency["kind"] != "dev");
    outside_tests
        .map(|dependency| Import {
            name: text(&dependency["name"]),
            optional: dependency["optional"] == true,
        })
        .collect()
}

fn examples(package: &Value) -> Vec<PathBuf> {
    let is_example = |target: &&Value| items(&target["kind"]).any(|kind| kind == "example");
    items(&package["targets"]).filter(is_example).map(|target| text(&target["src_path"]).into()).collect()
}

/// Returns the resolved graph without the dependencies of tests and build scripts, which are not part of the program.
struct Graph<'m> {
    names: BTreeMap<&'m str, &'m str>,
    edges: BTreeMap<&'m str, Vec<&'m str>>,
}

impl<'m> Graph<'m> {
    fn new(metadata: &'m Value) -> Option<Self> {
        let nodes = metadata["resolve"]["nodes"].as_array()?;
        let names = items(&metadata["packages"])
            .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)));
        let edges = nodes.iter().filter_map(|node| {
            let normal = items(&node["deps"])
                .filter(|dep| items(&dep["dep_kinds"]).any(|kind| kind["kind"].is_null()));
            Some((node["id"].as_str()?, normal.filter_map(|dep| dep["pkg"].as_str()).collect()))
        });
        Some(Self { names: names.collect(), edges: edges.collect() })
    }

    /// Returns every crate reachable from a crate, with the shortest path.
    fn reach(&self, from: &str) -> BTreeMap<String, Vec<String>> {
        let name = |id: &str| self.names.get(id).copied().unwrap_or(id).to_owned();
        let ways = ways(from, |id| self.edges.get(id).into_iter().flatten().copied());
        let mut ways: Vec<Vec<&str>> = ways.into_values().collect();
        // Of several versions of a crate, the nearest one counts.
        ways.sort_by_key(|way| std::cmp::Reverse(way.len()));
        let ways = ways.iter().map(|way| way.iter().map(|id| name(id)).collect::<Vec<_>>());
        ways.filter_map(|way| Some((way.last()?.clone(), way))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A workspace in which `a` depends on `b` (and on `t` for tests), and `b` on the external crate `x` (and on `y` for its
    /// build script).
    fn metadata() -> Value {
        let edge = |to: &str, kind: Value| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
        let needs = |name: &str, kind: Value, optional: bool| json!({"name": name, "kind": kind, "optional": optional});
        let package = |name: &str, dependencies: Value, targets: Value| {
            json!({"id": format!("id-{name}"), "name": name, "manifest_path": format!("{name}/Cargo.toml"),
                "dependencies": dependencies, "targets": targets})
        };
        json!({
            "packages": [
                package("b", json!([needs("x", json!(null), true), needs("y", json!("build"), false)]), json!([])),
                package("a", json!([needs("b", json!(null), false), needs("t", json!("dev"), false)]),
                    json!([{"kind": ["lib"], "src_path": "a/src/lib.rs"}, {"kind": ["example"], "src_path": "a/examples/e.rs"}])),
                package("x", json!([]), json!([])),
                package("y", json!([]), json!([])),
                package("t", json!([]), json!([])),
            ],
            "workspace_members": ["id-a", "id-b"],
            "resolve": {"nodes": [
                {"id": "id-a", "deps": [edge("id-b", json!(null)), edge("id-t", json!("dev"))]},
                {"id": "id-b", "deps": [edge("id-x", json!(null)), edge("id-y", json!("build"))]},
                {"id": "id-x", "deps": [edge("id-b", json!(null))]},
            ]},
        })
    }

    #[test]
    fn members_come_with_what_they_import_and_reach() {
        let crates = from_metadata(&metadata()).unwrap();
        let names: Vec<_> = crates.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(crates[0].imports, [Import { name: "b".into(), optional: false }]);
        assert_eq!(crates[0].examples, [PathBuf::from("a/examples/e.rs")]);
        let ways: Vec<_> = crates[0].resolved.values().map(|way| way.join(" -> ")).collect();
        assert_eq!(ways, ["a -> b", "a -> b -> x"]);
        assert_eq!(crates[1].imports.iter().filter(|import| import.optional).count(), 1);
    }

    #[test]
    fn other_output_is_one_message() {
        let error = from_metadata(&json!({})).unwrap_err();
        assert!(error.contains("`packages`"), "{error}");
    }
}
