//! The first target of each run if several targets share the load.

use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{Extractor, Rotation};
use formwork_testkit::Scripted;

use crate::support::*;

fn named(name: &str, rotation: &Rotation, scripted: Scripted) -> formwork_extract::Backend {
    backend(&Arc::new(scripted)).with_name(name).with_rotation(rotation.clone())
}

/// Returns the targets of the attempts of each run.
fn targets_of(extractor: &Extractor<Person>, runs: usize) -> Vec<Vec<String>> {
    let run = || extractor.extract_blocking(TEXT).unwrap();
    let targets = |outcome: Outcome<Person>| outcome.calls.into_iter().map(|one| one.target).collect();
    (0..runs).map(|_| targets(run())).collect()
}

#[test]
fn runs_begin_with_each_target_by_its_weight_and_continue_to_the_others_in_their_order() {
    let rotation = Rotation::weighted(&[2, 1, 0]);
    let right = || Scripted::new(vec![MARIA; 8]);
    let broken = || Scripted::new(vec![TOO_OLD; 8]);
    for (b, second_run) in [(right(), vec!["b"]), (broken(), vec!["b", "c"])] {
        let extractor = Extractor::<Person>::builder()
            .with_target(named("a", &rotation, right()))
            .with_target(named("b", &rotation, b))
            .with_target(named("c", &rotation, right()))
            .with_max_attempts(3)
            .build()
            .unwrap();
        assert_eq!(targets_of(&extractor, 3), [vec!["a"], second_run, vec!["a"]]);
    }
}

#[test]
fn extractors_over_the_same_rotation_share_the_turns_and_one_without_it_begins_with_the_first_target() {
    let rotation = Rotation::even(2);
    let build = |rotation: &Rotation| {
        let target = |name| named(name, rotation, Scripted::new(vec![MARIA; 8]));
        Extractor::<Person>::builder().with_target(target("a")).with_target(target("b")).build().unwrap()
    };
    let (one, other) = (build(&rotation), build(&rotation));
    assert_eq!(
        [targets_of(&one, 1), targets_of(&other, 2), targets_of(&one, 1)].concat(),
        [["a"], ["b"], ["a"], ["b"]]
    );
    let target = |name| backend(&Arc::new(Scripted::new(vec![MARIA; 8]))).with_name(name);
    let fixed = Extractor::<Person>::builder().with_target(target("a")).with_target(target("b"));
    assert_eq!(targets_of(&fixed.build().unwrap(), 3), [["a"], ["a"], ["a"]]);
}
