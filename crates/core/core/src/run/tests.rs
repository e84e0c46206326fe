use serde_json::json;

use super::*;
use crate::{
    Capabilities, Completion, Contract, Cost, Enforcement, Failure, Inline, JsonPath, Lower, LowerRequest,
    Lowered, Patching, Policy, Refused, Report, Rule, Stage, Structure, Target, Validator, Violation,
};

/// Accepts `{"fits": true}`.
struct OnlyTrue;

impl Validator for OnlyTrue {
    fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
        if value["fits"] != true {
            out.push(Violation::new(JsonPath::root().key("fits"), "const", Stage::Schema));
        }
    }
}

impl Structure for OnlyTrue {
    fn subschema(&self, _: &JsonPath, _: &Value) -> Option<Value> {
        None
    }
}

#[derive(Debug)]
struct Nothing;

impl Lower for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::None
    }

    fn lower(&self, _: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        Ok(Lowered::new(Enforcement::None, None))
    }
}

/// Answers the open call.
fn answer(run: &mut Run, plan: &Plan, text: &str) {
    let Ok(Step::Call { id, .. }) = run.step(plan, Time(1)) else { panic!("{:?}", run.state) };
    run.on(plan, Time(2), Event::answered(id, Completion::new(text))).unwrap();
}

#[test]
fn the_text_and_the_value_of_an_answer_are_shared() {
    let contract = Contract::new(Arc::new(Inline::new("answer", json!({}))), Arc::new(OnlyTrue));
    let target = Target::new("model", Capabilities::new(Enforcement::None)).with_mode(Arc::new(Nothing));
    let policy = Policy::new(3).with_patching(Patching::Never);
    let plan = Plan::new(contract, vec![target]).with_policy(policy).with_async_checks().build().unwrap();
    let mut run = Run::new(&plan, "Does it fit?".into());

    let wrong = r#"{"fits": false}"#;
    answer(&mut run, &plan, wrong);
    let draft = run.drafts.current().unwrap();
    let text = Arc::clone(&run.ledger[0].text);
    assert_eq!(&*text, wrong);
    assert!(Arc::ptr_eq(&text, &draft.text) && Arc::ptr_eq(&text, run.drafts.previous()));

    // A document with text around it is a text of its own.
    answer(&mut run, &plan, "No: {\"fits\":false}");
    let draft = run.drafts.current().unwrap();
    assert_eq!((&*run.ledger[1].text, &*draft.text), ("No: {\"fits\":false}", "{\"fits\":false}"));
    assert!(Arc::ptr_eq(&run.ledger[1].text, run.drafts.previous()));

    answer(&mut run, &plan, r#"{"fits": true}"#);
    let Ok(Step::Check { id, candidate }) = run.step(&plan, Time(3)) else { panic!("{:?}", run.state) };
    let draft = run.drafts.current().unwrap();
    assert!(Arc::ptr_eq(&candidate, &draft.value) && Arc::ptr_eq(&draft.text, &run.ledger[2].text));
    drop(candidate);
    run.on(&plan, Time(4), Event::checked(id, Vec::new(), Cost::default())).unwrap();

    let written = serde_json::to_value(&run.ledger[0]).unwrap();
    assert_eq!(written["text"], wrong);
    let outcome = run.finish().unwrap();
    assert!(Arc::ptr_eq(&outcome.calls[0].text, &text));
    assert_eq!(outcome.value, json!({"fits": true}));
}

#[test]
fn the_label_of_a_path_is_the_path_without_its_root() {
    for path in ["$.a", "$.items[0].price", "$[2].a", "$[\"a b\"].c"] {
        let path: JsonPath = path.parse().unwrap();
        let label = places::label(&path);
        let dot = if path.to_string().starts_with("$.") { "$." } else { "$" };
        assert_eq!(format!("{dot}{label}"), path.to_string());
    }
}

/// The index of the text is built once for a run: the stream and each answer are judged by the one that the run has, which is another
/// text's here.
#[test]
fn the_stream_and_all_answers_are_judged_by_one_index_of_the_text() {
    let contract = Contract::new(Arc::new(Inline::new("answer", json!({}))), Arc::new(OnlyTrue));
    let contract = contract.with_rule(Rule::grounded("$.animals".parse().unwrap()));
    let target = Target::new("model", Capabilities::new(Enforcement::None)).with_mode(Arc::new(Nothing));
    let plan = Plan::new(contract, vec![target]).with_policy(Policy::new(3)).build().unwrap();
    let text = r#"{"fits": true, "animals": ["zebra", "horse", "lion"]}"#;
    for (indexed, is_prefilled) in [("A zebra and a lion", true), ("A horse", false)] {
        let mut run = Run::new(&plan, "A horse".into());
        if is_prefilled {
            run.source.get(indexed);
        }
        let Ok(Step::Call { call, .. }) = run.step(&plan, Time(1)) else { panic!("{:?}", run.state) };
        let mut follower = run.share_index(Follower::with_progress(&plan, &call, &Ask::Whole));
        follower.push(text);
        let items = follower.progress(&plan, &run.context()).items;
        let expected: Vec<_> =
            ["zebra", "horse", "lion"].into_iter().filter(|animal| indexed.contains(animal)).collect();
        assert_eq!(items.iter().map(|item| &item.value).collect::<Vec<_>>(), expected);
        for _ in 0..2 {
            answer(&mut run, &plan, text);
            let Some(Failure::Invalid { violations, .. }) = run.failure() else { panic!("{:?}", run.state) };
            assert_eq!(violations.len(), 3 - expected.len());
        }
    }
}
