//! Checks the dependencies of the crates against the table of layers.

use super::crates::{Crate, Import};
use super::layers::{DEV, GROUPS, Group, Layer, Rule, SHARED};

/// The highest layer that a crate for tests may depend on: the drivers.
const DRIVERS: u8 = 4;

/// Returns the dependencies of these crates that the table forbids.
pub(super) fn check(crates: &[Crate], table: &[Rule]) -> Vec<String> {
    let mut problems = Vec::new();
    let calls_models =
        |member: &&Crate| member.folder() == Some("providers") && !SHARED.contains(&member.name.as_str());
    let vendors: Vec<&str> = crates.iter().filter(calls_models).map(|member| member.name.as_str()).collect();
    for member in crates {
        let name = &member.name;
        let Some(rule) = find(table, name) else {
            problems.push(format!(
                "{name} has no layer: add its line to xtask/src/tidy/layers.rs, or take it out of the workspace"
            ));
            continue;
        };
        problems.extend(misplaced(member, rule));
        let group = group(member);
        for Import { name: imported, .. } in &member.imports {
            if let Some(other) = find(table, imported).filter(|other| !may_import(rule, other)) {
                problems.push(format!(
                    "{name} ({}) imports {imported} ({}): arrows point to lower layers only; move the code that needs it up, or what it needs down",
                    words(rule.layer),
                    words(other.layer),
                ));
            }
            let other = crates.iter().find(|other| other.name == *imported).and_then(self::group);
            if let Some((_, group)) = group.filter(|(_, group)| group.never.contains(&imported.as_str())) {
                problems.push(format!("{name} of {} must never import {imported}", group.folder));
            }
            if let (Some((place, group)), Some((other_place, other))) = (group, other)
                && other_place > place
            {
                problems.push(format!(
                    "{name} of {} imports {imported} of {}: arrows between groups run down only",
                    group.folder, other.folder
                ));
            }
        }
        if let Some(only) = rule.only {
            let foreign = member.imports.iter().filter(|import| !import.optional);
            for import in foreign.filter(|import| !only.contains(&import.name.as_str())) {
                problems.push(format!(
                    "{name} imports {}: it imports {} alone, all else behind a feature",
                    import.name,
                    only.join(", ")
                ));
            }
        }
        let mut never = rule.never.to_vec();
        if group.is_some_and(|(_, group)| !group.vendors || SHARED.contains(&name.as_str())) {
            never.extend(&vendors);
        }
        for forbidden in &never {
            if let Some(way) = member.resolved.get(*forbidden) {
                problems.push(format!("{name} must never reach {forbidden}: {}", way.join(" -> ")));
            }
        }
        for forbidden in never.iter().chain(rule.never_by_default) {
            // Dependencies with the features of the workspace were reported above.
            let is_reported = never.contains(forbidden) && member.resolved.contains_key(*forbidden);
            if member.by_default.contains(*forbidden) && !is_reported {
                problems.push(format!(
                    "{name} must not reach {forbidden} by its default features: see `cargo tree -p {name} -i {forbidden}`"
                ));
            }
        }
    }
    problems
}

/// Returns the place and the group of a crate, or `None` for crates of tests and tools.
fn group(member: &Crate) -> Option<(usize, &'static Group)> {
    GROUPS.iter().enumerate().find(|(_, group)| member.folder() == Some(group.folder))
}

/// Returns an error if the folder of a crate contradicts its row.
fn misplaced(member: &Crate, rule: &Rule) -> Option<String> {
    let folder = member.folder();
    let fits = match rule.layer {
        Layer::Number(number) => {
            group(member).is_some_and(|(_, group)| (group.layers[0]..=group.layers[1]).contains(&number))
        }
        Layer::Dev => folder == Some(DEV),
        Layer::Tool => folder.is_none(),
    };
    let place = folder.map_or_else(|| "outside of crates".to_owned(), |folder| format!("in crates/{folder}"));
    (!fits).then(|| {
        format!(
            "{} lies {place}, and its row says {}: move it, or correct its row in xtask/src/tidy/layers.rs",
            member.name,
            words(rule.layer)
        )
    })
}

fn find<'t>(table: &'t [Rule], name: &str) -> Option<&'t Rule> {
    table.iter().find(|rule| rule.name == name)
}

fn may_import(rule: &Rule, other: &Rule) -> bool {
    match (rule.layer, other.layer) {
        (_, Layer::Tool) => false,
        (Layer::Tool, _) => true,
        (above, Layer::Dev) => above == Layer::Dev && rule.beside.contains(&other.name),
        (Layer::Dev, Layer::Number(number)) => number <= DRIVERS,
        (Layer::Number(above), Layer::Number(below)) => {
            below < above || below == above && rule.beside.contains(&other.name)
        }
    }
}

fn words(layer: Layer) -> String {
    match layer {
        Layer::Number(number) => format!("layer {number}"),
        Layer::Dev => "for tests".to_owned(),
        Layer::Tool => "a chore".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::TABLE;
    use super::*;

    /// A crate in its folder below `crates/`.
    fn member(folder: &str, imports: &[&str]) -> Crate {
        let import = |name: &&str| Import { name: (*name).to_owned(), optional: false };
        let last = folder.rsplit('/').next().unwrap_or(folder);
        let name =
            if matches!(last, "formwork" | "xtask") { last.to_owned() } else { format!("formwork-{last}") };
        let inside = if last == "xtask" { "" } else { "crates/" };
        let manifest = format!("x/{inside}{folder}/Cargo.toml").into();
        Crate { name, manifest, imports: imports.iter().map(import).collect(), ..Crate::default() }
    }

    fn only_problem(member: Crate) -> String {
        let problems = check(&[member], TABLE);
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.into_iter().next().unwrap()
    }

    #[test]
    fn arrows_down_are_fine() {
        let crates = [
            member("core/core", &["formwork-json", "serde"]),
            member("cli", &["formwork", "formwork-local", "formwork-gateway"]),
            member("dev/testkit", &["formwork-core"]),
            member("xtask", &["formwork-cli"]),
        ];
        assert_eq!(check(&crates, TABLE), [""; 0]);
    }

    #[test]
    fn an_arrow_up_fails() {
        let problem = only_problem(member("core/core", &["formwork-schema"]));
        assert!(
            problem.starts_with("formwork-core (layer 1) imports formwork-schema (layer 2)"),
            "{problem}"
        );
    }

    #[test]
    fn an_arrow_to_the_side_fails_unless_the_table_has_it() {
        let problem = only_problem(member("providers/ollama", &["formwork-openai"]));
        assert!(problem.contains("imports formwork-openai"), "{problem}");
        const BESIDE: &[Rule] = &[
            Rule::new("formwork-a", Layer::Number(3)).beside(&["formwork-b"]),
            Rule::new("formwork-b", Layer::Number(3)),
        ];
        assert_eq!(check(&[member("providers/a", &["formwork-b"])], BESIDE), [""; 0]);
        assert_eq!(check(&[member("providers/b", &["formwork-a"])], BESIDE).len(), 1);
    }

    #[test]
    fn a_crate_for_tests_is_not_imported_and_stays_below_the_applications() {
        assert!(only_problem(member("run/extract", &["formwork-testkit"])).contains("(for tests)"));
        assert!(
            only_problem(member("dev/testkit", &["formwork-oracle"])).contains("formwork-oracle (layer 6)")
        );
        assert!(only_problem(member("cli", &["xtask"])).contains("xtask (a chore)"));
    }

    #[test]
    fn a_crate_lies_in_the_folder_of_its_row() {
        for (folder, words) in [
            ("run/core", "formwork-core lies in crates/run, and its row says layer 1"),
            ("core/testkit", "formwork-testkit lies in crates/core, and its row says for tests"),
            ("providers/extract", "formwork-extract lies in crates/providers, and its row says layer 4"),
        ] {
            let problem = only_problem(member(folder, &[]));
            assert!(problem.starts_with(words), "{problem}");
        }
        let mut tool = member("cli", &[]);
        tool.name = "xtask".to_owned();
        assert!(only_problem(tool).starts_with("xtask lies in crates/cli, and its row says a chore"));
    }

    #[test]
    fn arrows_between_groups_run_down_only() {
        // The layers alone would allow it.
        let crates = [member("run/batch", &["formwork-review"]), member("apps/review", &[])];
        let problems = check(&crates, TABLE);
        assert_eq!(
            problems,
            ["formwork-batch of run imports formwork-review of apps: arrows between groups run down only"]
        );
    }

    #[test]
    fn a_vendor_is_not_reached_from_below_the_facade_and_a_terminal_not_imported_by_the_gateway() {
        let reaching = |folder: &str, end: &str| {
            let mut member = member(folder, &[]);
            let way = [member.name.as_str(), "x", end].map(str::to_owned).to_vec();
            member.resolved.insert(end.to_owned(), way);
            member
        };
        let openai = || member("providers/openai", &[]);
        for folder in ["core/core", "providers/http", "run/batch", "apps/chat"] {
            let problems = check(&[reaching(folder, "formwork-openai"), openai()], TABLE);
            assert!(
                problems.len() == 1 && problems[0].contains("must never reach formwork-openai"),
                "{problems:?}"
            );
        }
        assert_eq!(check(&[reaching("formwork", "formwork-openai"), openai()], TABLE), [""; 0]);
        for end in ["clap", "indicatif", "annotate-snippets"] {
            assert!(only_problem(member("gateway", &[end])).contains("must never import"));
            assert_eq!(check(&[member("cli", &[end])], TABLE), [""; 0]);
        }
    }

    #[test]
    fn a_crate_without_a_layer_fails() {
        let problem = only_problem(member("core/novelty", &[]));
        assert!(problem.contains("formwork-novelty has no layer: add its line"), "{problem}");
    }

    #[test]
    fn only_counts_what_no_feature_requests() {
        let mut json = member("core/json", &["serde", "regex"]);
        json.imports.push(Import { name: "schemars".to_owned(), optional: true });
        let problem = only_problem(json);
        assert!(problem.starts_with("formwork-json imports regex"), "{problem}");
    }

    #[test]
    fn what_is_never_reached_is_found_over_any_number_of_steps() {
        let mut core = member("core/core", &[]);
        let way = ["formwork-core", "x", "tokio"].map(str::to_owned).to_vec();
        core.resolved.insert("tokio".to_owned(), way);
        core.by_default.insert("tokio".to_owned());
        assert_eq!(only_problem(core), "formwork-core must never reach tokio: formwork-core -> x -> tokio");
        let mut core = member("core/core", &[]);
        core.by_default.insert("reqwest".to_owned());
        assert!(only_problem(core).contains("reqwest by its default features"));
    }

    #[test]
    fn the_facade_may_reach_the_engine_by_a_feature_alone() {
        let mut facade = member("formwork", &[]);
        let way = ["formwork", "formwork-local"].map(str::to_owned).to_vec();
        facade.resolved.insert("formwork-local".to_owned(), way);
        assert_eq!(check(&[facade.clone()], TABLE), [""; 0]);
        facade.by_default.insert("formwork-local".to_owned());
        assert!(only_problem(facade).contains("formwork-local by its default features"));
    }

    #[test]
    fn the_table_names_each_crate_once_and_knows_what_it_names() {
        for rule in TABLE {
            assert_eq!(TABLE.iter().filter(|other| other.name == rule.name).count(), 1, "{}", rule.name);
            for name in rule.beside.iter().chain(rule.never).filter(|name| name.starts_with("formwork")) {
                assert!(find(TABLE, name).is_some(), "{name}");
            }
        }
    }
}
