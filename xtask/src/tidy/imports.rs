//! Checks the dependencies of the crates against the table of layers.

use super::crates::{Crate, Import};
use super::layers::{Layer, Rule};

/// The highest layer that a crate for tests may depend on: the drivers.
const DRIVERS: u8 = 4;

/// Returns the dependencies of these crates that the table forbids.
pub(super) fn check(crates: &[Crate], table: &[Rule]) -> Vec<String> {
    let mut problems = Vec::new();
    for member in crates {
        let name = &member.name;
        let Some(rule) = find(table, name) else {
            problems.push(format!(
                "{name} has no layer: add its line to xtask/src/tidy/layers.rs, or take it out of the workspace"
            ));
            continue;
        };
        for Import { name: imported, .. } in &member.imports {
            if let Some(other) = find(table, imported).filter(|other| !may_import(rule, other)) {
                problems.push(format!(
                    "{name} ({}) imports {imported} ({}): arrows point to lower layers only; move the code that needs it up, or what it needs down",
                    words(rule.layer),
                    words(other.layer),
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
        for forbidden in rule.never {
            if let Some(way) = member.resolved.get(*forbidden) {
                problems.push(format!("{name} must never reach {forbidden}: {}", way.join(" -> ")));
            }
        }
        for forbidden in rule.never.iter().chain(rule.never_by_default) {
            // Dependencies with the features of the workspace were reported above.
            let is_reported = rule.never.contains(forbidden) && member.resolved.contains_key(*forbidden);
            if member.by_default.contains(*forbidden) && !is_reported {
                problems.push(format!(
                    "{name} must not reach {forbidden} by its default features: see `cargo tree -p {name} -i {forbidden}`"
                ));
            }
        }
    }
    problems
}

fn find<'t>(table: &'t [Rule], name: &str) -> Option<&'t Rule> {
    table.iter().find(|rule| rule.name == name)
}

fn may_import(rule: &Rule, other: &Rule) -> bool {
    match (rule.layer, other.layer) {
        (_, Layer::Tool) => false,
        (Layer::Tool, _) => true,
        (_, Layer::Dev) => false,
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

    fn member(name: &str, imports: &[&str]) -> Crate {
        let import = |name: &&str| Import { name: (*name).to_owned(), optional: false };
        Crate { name: name.to_owned(), imports: imports.iter().map(import).collect(), ..Crate::default() }
    }

    fn only_problem(member: Crate) -> String {
        let problems = check(&[member], TABLE);
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.into_iter().next().unwrap()
    }

    #[test]
    fn arrows_down_are_fine() {
        let crates = [
            member("formwork-core", &["formwork-json", "serde"]),
            member("formwork-cli", &["formwork", "formwork-local", "formwork-gateway"]),
            member("formwork-testkit", &["formwork-core"]),
            member("xtask", &["formwork-cli"]),
        ];
        assert_eq!(check(&crates, TABLE), [""; 0]);
    }

    #[test]
    fn an_arrow_up_fails() {
        let problem = only_problem(member("formwork-core", &["formwork-schema"]));
        assert!(
            problem.starts_with("formwork-core (layer 1) imports formwork-schema (layer 2)"),
            "{problem}"
        );
    }

    #[test]
    fn an_arrow_to_the_side_fails_unless_the_table_has_it() {
        let problem = only_problem(member("formwork-ollama", &["formwork-openai"]));
        assert!(problem.contains("imports formwork-openai"), "{problem}");
        const BESIDE: &[Rule] =
            &[Rule::new("a", Layer::Number(3)).beside(&["b"]), Rule::new("b", Layer::Number(3))];
        assert_eq!(check(&[member("a", &["b"])], BESIDE), [""; 0]);
        assert_eq!(check(&[member("b", &["a"])], BESIDE).len(), 1);
    }

    #[test]
    fn a_crate_for_tests_is_not_imported_and_stays_below_the_applications() {
        assert!(only_problem(member("formwork-extract", &["formwork-testkit"])).contains("(for tests)"));
        assert!(
            only_problem(member("formwork-testkit", &["formwork-oracle"]))
                .contains("formwork-oracle (layer 6)")
        );
        assert!(only_problem(member("formwork-cli", &["xtask"])).contains("xtask (a chore)"));
    }

    #[test]
    fn a_crate_without_a_layer_fails() {
        let problem = only_problem(member("formwork-novelty", &[]));
        assert!(problem.contains("formwork-novelty has no layer: add its line"), "{problem}");
    }

    #[test]
    fn only_counts_what_no_feature_requests() {
        let mut json = member("formwork-json", &["serde", "regex"]);
        json.imports.push(Import { name: "schemars".to_owned(), optional: true });
        let problem = only_problem(json);
        assert!(problem.starts_with("formwork-json imports regex"), "{problem}");
    }

    #[test]
    fn what_is_never_reached_is_found_over_any_number_of_steps() {
        let mut core = member("formwork-core", &[]);
        let way = ["formwork-core", "x", "tokio"].map(str::to_owned).to_vec();
        core.resolved.insert("tokio".to_owned(), way);
        core.by_default.insert("tokio".to_owned());
        assert_eq!(only_problem(core), "formwork-core must never reach tokio: formwork-core -> x -> tokio");
        let mut core = member("formwork-core", &[]);
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
