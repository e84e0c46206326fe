use formwork_core::{ErrorKind, Time};
use formwork_ledger::{
    Error, Feedback, KeyId, Ledger, NewKey, Prune, RecordId, RunOutcome, RunQuery, RunRecord, Settings,
    StoredRun,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::given::{NOW, hours, in_file, ledger, retried, run, with_bodies};

fn all(ledger: &Ledger, query: RunQuery) -> Vec<StoredRun> {
    ledger.runs(&query).unwrap().runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pages_together_have_every_run_once_and_newest_first(runs in prop::collection::vec(run(), 0..60), limit in 1_usize..20, scan in 0_usize..25) {
        let ledger = ledger();
        let mut ids: Vec<_> = runs.iter().map(|run| run.id).collect();
        runs.into_iter().for_each(|run| ledger.record(run));
        ledger.flush_blocking().unwrap();
        let mut found = Vec::new();
        let mut before = None;
        loop {
            let page = ledger.runs(&RunQuery { limit, scan, before, ..RunQuery::default() }).unwrap();
            prop_assert!(page.runs.len() <= limit && (scan == 0 || page.runs.len() <= scan));
            found.extend(page.runs.iter().map(|run| run.id));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        ids.reverse();
        prop_assert_eq!(&found, &ids);

        let mut lines = Vec::new();
        let count = ledger.export(&RunQuery { limit, ..RunQuery::default() }, &mut lines).unwrap();
        let exported: Vec<Value> = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap()).collect();
        prop_assert_eq!(count as usize, ids.len());
        let exported: Vec<RecordId> = exported.iter().map(|run| run["id"].as_str().unwrap().parse().unwrap()).collect();
        prop_assert_eq!(exported, ids);
    }

    #[test]
    fn each_filter_keeps_what_agrees_and_nothing_else(runs in prop::collection::vec(run(), 1..40), pick in any::<prop::sample::Index>()) {
        let ledger = ledger();
        let sample = runs[pick.index(runs.len())].clone();
        for run in &runs {
            ledger.record(run.clone());
        }
        ledger.flush_blocking().unwrap();
        let none = || RunQuery { limit: 1000, ..RunQuery::default() };
        let class = sample.calls.iter().flat_map(|call| &call.violations).next().map(|one| (one.class.clone(), one.path.clone()));
        let has = |run: &RunRecord, class: &str, path: &str| run.calls.iter().flat_map(|call| &call.violations)
            .any(|one| one.class == class && one.path == path);
        type Agrees<'a> = Box<dyn Fn(&RunRecord) -> bool + 'a>;
        let (sample, class) = (&sample, &class);
        let mut cases: Vec<(RunQuery, Agrees<'_>)> = vec![
            (RunQuery { outcome: Some(sample.outcome), ..none() }, Box::new(|run| run.outcome == sample.outcome)),
            (RunQuery { model: Some(sample.model.clone()), ..none() }, Box::new(|run| run.model == sample.model)),
            (RunQuery { since: Some(sample.started), ..none() }, Box::new(|run| run.started >= sample.started)),
            (RunQuery { until: Some(sample.started), ..none() }, Box::new(|run| run.started < sample.started)),
            (RunQuery { retried: true, ..none() }, Box::new(|run| run.calls.len() > 1)),
        ];
        if let Some(user) = &sample.user {
            cases.push((RunQuery { user: Some(user.clone()), ..none() }, Box::new(|run| run.user == sample.user)));
        }
        // An empty name finds the runs without a contract.
        for contract in [sample.contract.clone().unwrap_or_default(), String::new()] {
            let query = RunQuery { contract: Some(contract.clone()), ..none() };
            cases.push((query, Box::new(move |run| run.contract.as_ref().or(run.digest.as_ref()).map_or("", |name| name) == contract
                || run.digest.as_ref() == Some(&contract))));
        }
        cases.push((RunQuery { digest: sample.digest.clone(), ..none() },
            Box::new(|run| sample.digest.is_none() || run.digest == sample.digest)));
        cases.push((RunQuery { key: Some(KeyId::NONE), ..none() }, Box::new(|run| run.key.is_none())));
        if let Some(tag) = sample.tags.first() {
            cases.push((RunQuery { tag: Some(tag.clone()), ..none() }, Box::new(move |run| run.tags.contains(tag))));
        }
        if let Some((class, path)) = class {
            cases.push((RunQuery { class: Some(class.clone()), path: Some(path.clone()), ..none() },
                Box::new(move |run| has(run, class, path))));
            // The call that has the violation, and no other of the same run.
            let call = sample.calls.iter().find(|call| call.violations.iter().any(|one| (&one.class, &one.path) == (class, path))).unwrap();
            let of = |called: &str, run: &RunRecord| run.calls.iter().filter(|call| call.model == called).flat_map(|call| &call.violations)
                .any(|one| (&one.class, &one.path) == (class, path));
            for called in [call.model.clone(), "no such model".to_owned()] {
                cases.push((RunQuery { class: Some(class.clone()), path: Some(path.clone()), called: Some(called.clone()), ..none() },
                    Box::new(move |run| of(&called, run))));
            }
        }
        if let Some(call) = sample.calls.first() {
            let called = |run: &RunRecord| run.calls.iter().any(|other| other.model == call.model);
            cases.push((RunQuery { called: Some(call.model.clone()), ..none() }, Box::new(called)));
            let failed = |run: &RunRecord| run.calls.iter().any(|other| other.model == call.model
                && (other.class == call.class || other.violations.iter().any(|one| one.class == call.class)));
            cases.push((RunQuery { class: Some(call.class.to_string()), called: Some(call.model.clone()), ..none() }, Box::new(failed)));
        }
        for (query, agrees) in cases {
            let mut expected: Vec<_> = runs.iter().filter(|run| agrees(run)).map(|run| run.id).collect();
            expected.reverse();
            let found: Vec<_> = all(&ledger, query.clone()).iter().map(|run| run.id).collect();
            prop_assert_eq!(found, expected, "{:?}", query);
        }
    }
}

#[test]
fn a_run_comes_back_as_it_was_recorded() {
    let ledger = Ledger::in_memory(with_bodies()).unwrap();
    let (key, _) = ledger.add_key(NewKey::new("alice"), NOW).unwrap();
    let run = retried(NOW)
        .with_key(Some(key.id))
        .with_contract(Some("order".to_owned()), Some("sha256:1".to_owned()))
        .with_labels(Some("u1".to_owned()), vec!["nightly".to_owned(), "größe, \"x\"".to_owned()]);
    ledger.record(run.clone());
    assert_eq!(ledger.run(run.id).unwrap(), None, "nothing is there before its group is written");
    ledger.flush_blocking().unwrap();
    let stored = ledger.run(run.id).unwrap().unwrap();
    assert_eq!((&stored.calls, &stored.request), (&run.calls, &run.request));
    let listed = stored.run;
    assert_eq!((listed.key_name.as_deref(), listed.calls, listed.usage), (Some("alice"), 2, run.usage));
    assert_eq!((&listed.tags, listed.contract, listed.digest), (&run.tags, run.contract, run.digest));
    assert_eq!(listed.outcome, "ok");
    assert_eq!(ledger.run(RecordId::next()).unwrap(), None);
}

/// Readers differ in which of two members with the same name they take.
#[test]
fn no_member_of_a_run_in_json_is_there_twice() {
    let ledger = Ledger::in_memory(with_bodies()).unwrap();
    let run = retried(NOW);
    ledger.record(run.clone());
    ledger.flush_blocking().unwrap();
    let mut exported = Vec::new();
    ledger.export(&RunQuery::default(), &mut exported).unwrap();
    let detail = serde_json::to_string(&ledger.run(run.id).unwrap().unwrap()).unwrap();
    assert_eq!(String::from_utf8(exported).unwrap(), format!("{detail}\n"));
    let listed = serde_json::to_string(&all(&ledger, RunQuery::default())[0]).unwrap();
    for text in [&detail, &listed] {
        // A tree has each member once, in its order.
        assert_eq!(serde_json::from_str::<Value>(text).unwrap().to_string(), **text);
    }
    let calls = |text: &str| serde_json::from_str::<Value>(text).unwrap()["calls"].take();
    assert_eq!((calls(&detail).as_array().unwrap().len(), calls(&listed)), (2, 2.into()));
}

#[test]
fn paths_are_found_with_and_without_their_index_and_texts_in_any_case() {
    let ledger = ledger();
    let mut run = retried(NOW);
    (run.outcome, run.message) =
        (RunOutcome::Failed(ErrorKind::Rejected), Some("No valid Answer".to_owned()));
    ledger.record(run);
    ledger.flush_blocking().unwrap();
    let of = |class: Option<&str>, path: Option<&str>, text: Option<&str>| {
        let [class, path, text] = [class, path, text].map(|text| text.map(str::to_owned));
        all(&ledger, RunQuery { class, path, text, ..RunQuery::default() }).len()
    };
    for (class, path, text, found) in [
        (None, Some("$.items[*].price"), None, 1),
        (None, Some("$.items[3].price"), None, 1),
        (None, Some("$.items[4].price"), None, 0),
        (Some("type"), Some("$.items[*].price"), None, 1),
        (Some("minimum"), Some("$.items[*].price"), None, 0),
        (Some("invalid"), None, None, 1),
        (Some("type"), None, Some("valid answer"), 1),
        (None, None, Some("%"), 0),
        (None, None, Some("' OR 1=1 --"), 0),
        (None, None, Some("SMOL"), 1),
    ] {
        assert_eq!(of(class, path, text), found, "{class:?} {path:?} {text:?}");
    }
}

#[test]
fn feedback_is_kept_and_an_unknown_run_is_said() {
    let ledger = ledger();
    let run = retried(NOW);
    let id = run.id;
    ledger.record(run);
    ledger.feedback(id, Feedback::Bad).unwrap();
    ledger.feedback(id, Feedback::Good).unwrap();
    assert_eq!(ledger.run(id).unwrap().unwrap().run.feedback.as_deref(), Some("good"));
    let good = |feedback| all(&ledger, RunQuery { feedback: Some(feedback), ..RunQuery::default() }).len();
    assert_eq!((good(Feedback::Good), good(Feedback::Bad)), (1, 0));
    let other = RecordId::next();
    assert_eq!(ledger.feedback(other, Feedback::Good), Err(Error::NoSuchRun(other)));
}

#[test]
fn pruning_takes_what_is_older_and_nothing_else() {
    for count in [0_u64, 1, 999, 1000, 2500] {
        let (_folder, ledger, tool) = in_file(Settings { bodies: true, ..Settings::default() });
        let (key, _) = ledger.add_key(NewKey::new("k"), NOW).unwrap();
        ledger.reserve_blocking(key.id, 50, None, NOW).unwrap().settle_blocking(40).unwrap();
        let open = ledger.reserve_blocking(key.id, 7, None, NOW).unwrap();
        for nth in 0..count {
            ledger.record(retried(Time(NOW.0 + nth * 10)));
        }
        ledger.flush_blocking().unwrap();
        // The runs end 1.2 s after they began.
        let middle = Time(NOW.0 + count / 2 * 10 + 1200);
        let before = hours(&tool);
        let bodies = Prune { bodies: Some(middle), ..Prune::default() };
        assert_eq!(ledger.prune(bodies).unwrap().bodies, count / 2);
        assert_eq!(ledger.prune(bodies).unwrap().bodies, 0);
        let pruned = ledger.prune(Prune { runs: Some(middle), ..Prune::default() }).unwrap();
        assert_eq!((pruned.runs, pruned.rollups), (count / 2, 0));
        let mut left = Vec::new();
        ledger.export(&RunQuery::default(), &mut left).unwrap();
        let left: Vec<Value> = left
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(left.len() as u64, count - count / 2);
        for run in &left {
            assert!(run["ended"].as_u64().unwrap() >= middle.0);
            assert_eq!(run["calls"].as_array().unwrap().len(), 2);
            assert!(run["request"].is_string());
        }
        assert_eq!(hours(&tool), before, "rollups outlive their runs");
        let far = Time(NOW.0 + 100 * 3_600_000);
        ledger.prune(Prune { rollups: Some(far), runs: Some(far), ..Prune::default() }).unwrap();
        let reasons: u32 = tool.query_row("SELECT count(*) FROM reasons", [], |row| row.get(0)).unwrap();
        assert!(hours(&tool).is_empty() && reasons == 0);
        let key = &ledger.keys().unwrap()[0];
        assert_eq!((key.spent, key.held), (40, 7), "spending stays what it was");
        open.settle_blocking(3).unwrap();
        let key = &ledger.keys().unwrap()[0];
        assert_eq!((key.spent, key.held), (43, 0), "an open reservation is not pruned");
    }
}
