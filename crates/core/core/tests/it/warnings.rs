//! The warnings of an outcome name whatever was done to an accepted value.

use formwork_core::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::*;

/// Returns the kinds of the warnings of one answer, which has to be accepted.
fn warned(policy: Policy, level: Level, completion: Completion) -> Vec<WarningKind> {
    let plan = Plan::new(contract(), vec![target("primary")]).with_policy(policy).with_level(level);
    let plan = plan.build().unwrap();
    let mut run = Run::new(&plan, input());
    let Ok(Step::Call { id, .. }) = run.step(&plan, Time(0)) else { panic!() };
    let completion = completion.with_usage(Usage::new(30, 20));
    run.on(&plan, Time(1), Event::answered(id, completion)).unwrap();
    run.finish().unwrap().warnings.iter().map(|warning| warning.kind).collect()
}

fn score(score: u32) -> String {
    json!({"score": score, "parts": {"a": 70, "b": 70}, "note": "fits"}).to_string()
}

#[test]
fn each_thing_that_was_done_to_an_answer_is_one_kind_of_warning() {
    use WarningKind::*;
    let good = score(700);
    let says = |text: &str| Completion::new(text);
    let (mut restrained, mut noted) = (says(&good), says(&good));
    restrained.restrained = true;
    noted.notes.push("The cache was full.".to_owned());
    for (completion, expected) in [
        (says(&good), vec![]),
        // What surrounds a document is no part of it.
        (says(&format!("Here you are:\n```json\n{good}\n```\nAs in [1] and {{braces}}.")), vec![]),
        (says(&format!("<think>[{good}]</think>{good}")), vec![]),
        (says(&format!("{good}\n{}", score(710))), vec![Documents]),
        (says(&format!("```json\n{good}\n```\n```json\n{}\n```", score(1_710))), vec![Documents]),
        (says(&good.replace("\"fits\"", "\"fits\", \"note\": \"again\"")), vec![DuplicateKey]),
        (says(&good.replace("\"fits\"", "\"fits\",")), vec![Repaired]),
        (says(&good.replace("\"fits\"", "'fits'")), vec![Repaired]),
        (says(&good.replace("\"fits\"", "'fits', note: 'again',")), vec![DuplicateKey, Repaired]),
        (restrained, vec![Restrained]),
        (noted, vec![Note]),
    ] {
        let text = completion.text.clone();
        assert_eq!(warned(Policy::new(1), Level::Lenient, completion), expected, "{text}");
    }
}

#[test]
fn an_answer_that_was_cut_is_accepted_by_an_opt_in_alone_and_with_a_warning() {
    let good = score(700);
    let cut = good.trim_end_matches('}');
    for finish in [Finish::Stop, Finish::Length, Finish::other("eos")] {
        let completion = Completion::new(cut).with_finish(finish);
        let accepting = warned(Policy::new(1).with_incomplete(true), Level::Clean, completion.clone());
        assert_eq!(accepting, [WarningKind::Incomplete]);
        for policy in policies() {
            let plan = plan(policy);
            let reply = Reply::Ends(cut.to_owned().leak(), completion.finish.clone());
            assert!(drive(&plan, input(), &[reply]).run.finish().is_err());
        }
    }
    // The opt-in does not accept a value that breaks the contract.
    let plan = plan(Policy::new(1).with_incomplete(true));
    assert!(drive(&plan, input(), &[Reply::Ends(r#"{"score": 700"#, Finish::Length)]).run.finish().is_err());
}

#[test]
fn warnings_of_reading_a_draft_survive_its_patches() {
    let doubled: &str = r#"{"score": 1700, "parts": {"a": 70, "b": 70}, "note": "x", "note": "y"}"#;
    let plan = plan(Policy::new(2).with_patching(Patching::Attempt));
    let outcome = drive(&plan, input(), &[Reply::Says(doubled), Reply::Says(r#"{"score": 700}"#)]);
    let outcome = outcome.run.finish().unwrap();
    assert_eq!(
        outcome.warnings.iter().map(|warning| warning.kind).collect::<Vec<_>>(),
        [WarningKind::DuplicateKey]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn braces_in_prose_never_win_over_a_document(
        before in "[a-z .]{0,20}",
        aside in "\\{[a-z]{1,8}( [a-z]{1,8}){0,2}\\}",
        after in "[a-z .]{0,20}",
        fenced: bool,
    ) {
        // Everything satisfies this contract.
        let plan = anything(Level::Lenient);
        let document = r#"{"name": "Maria"}"#;
        let document = if fenced { format!("```json\n{document}\n```") } else { document.to_owned() };
        let text = format!("{before}\n{document}\n{after} {aside} {after}");
        let outcome = drive(&plan, input(), &[Reply::Says(text.clone().leak())]).run.finish().unwrap();
        prop_assert_eq!(outcome.value, json!({"name": "Maria"}), "{}", text);
    }

    #[test]
    fn the_number_of_warnings_is_bounded(times in 1usize..200) {
        let doubled = "\"note\": \"x\", ".repeat(times);
        let text = score(700).replace("\"note\"", &format!("{doubled}\"note\""));
        let warnings = warned(Policy::new(1), Level::Clean, Completion::new(text));
        prop_assert_eq!(warnings.len(), times.min(20));
    }
}
