//! Intervals, baselines, gates and pages.

use formwork_eval::{Baseline, Comparison, Evaluation, Gate, Profile, Report, RowScore, Rows, page};
use serde_json::json;

/// Returns the report about documents of one leaf, right as often as stated.
fn report(right: usize, all: usize, seed: u64) -> Report {
    let mut evaluation = Evaluation::new(Profile::Default);
    for row in 0..all {
        evaluation
            .add(json!(row), None, &json!({"a": 1}), Some(&json!({"a": i32::from(row < right)})))
            .unwrap();
    }
    evaluation.report(seed)
}

#[test]
fn intervals_contain_the_score_and_depend_on_the_seed_alone() {
    let one = report(30, 40, 7);
    let [low, high] = one.interval.unwrap();
    assert!(low < one.score && one.score < high && high - low < 0.4, "{low} {high}");
    assert_eq!(one, report(30, 40, 7));
    assert_eq!(report(40, 40, 7).interval, Some([1.0, 1.0]));
    let text = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), one);
}

#[test]
fn intervals_of_many_documents_follow_from_sums() {
    // The documents differ in their number of leaves, so the accuracy of the path is a ratio of sums.
    let of = |all: usize| {
        let mut evaluation = Evaluation::new(Profile::Default);
        for row in 0..all {
            let items = vec![1; 1 + row % 3];
            let answer: Vec<i32> = (0..items.len()).map(|item| i32::from((row + item) % 4 != 0)).collect();
            evaluation.add(json!(row), None, &json!({"a": items}), Some(&json!({"a": answer}))).unwrap();
        }
        evaluation.report(1)
    };
    let report = of(20_001);
    assert_eq!((report.resamples, report.rows.len()), (0, 20_001));
    let path = &report.paths[0];
    let intervals =
        [(path.accuracy.unwrap(), path.interval.unwrap()), (report.score, report.interval.unwrap())];
    for (share, [low, high]) in intervals {
        assert!(
            low < share && share < high && high - low < 0.03 && high - low > 0.001,
            "{low} {share} {high}"
        );
    }
    assert_eq!(of(30).resamples, 1000);
}

#[test]
fn a_baseline_is_compared_in_pairs() {
    let rows = |scores: &[f64]| -> Rows {
        scores.iter().enumerate().map(|(id, score)| RowScore { id: id.into(), score: *score }).collect()
    };
    let worse = Baseline::new(&rows(&[1.0; 20]), &rows(&[0.5; 20]), 1).unwrap();
    assert!(worse.is_worse() && worse.probability_better == 0.0 && worse.worse == 20, "{worse:?}");
    let equal = Baseline::new(&rows(&[1.0; 20]), &rows(&[1.0; 19]), 1).unwrap();
    assert!(!equal.is_worse() && equal.probability_better == 0.5 && equal.not_compared == 1, "{equal:?}");
    assert_eq!(Baseline::new(&rows(&[]), &rows(&[1.0]), 1), None);
}

#[test]
fn documents_with_the_same_id_are_compared_once() {
    let rows =
        |ids: &[&str]| -> Rows { ids.iter().map(|id| RowScore { id: json!(id), score: 1.0 }).collect() };
    for (one, other, equal, not_compared) in [
        (&["a"][..], &["a", "a"][..], 1, 1),
        (&["a", "a", "b"], &["a"], 1, 2),
        (&["a", "a"], &["a", "a"], 1, 2),
    ] {
        let baseline = Baseline::new(&rows(one), &rows(other), 1).unwrap();
        assert_eq!((baseline.equal, baseline.not_compared), (equal, not_compared), "{one:?} {other:?}");
    }
}

/// The mean of ten times 0.8 is 0.7999999999999999.
#[test]
fn a_gate_that_is_exactly_met_is_passed() {
    let mut evaluation = Evaluation::new(Profile::Default);
    for row in 0..10 {
        let of = |e: u32| json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": e});
        evaluation.add(json!(row), None, &of(5), Some(&of(9))).unwrap();
    }
    let report = evaluation.report(1);
    assert!(report.score < 0.8, "{}", report.score);
    for (gate, ok) in [("score >= 0.8", true), ("score > 0.8", false), ("score >= 0.8001", false)] {
        assert_eq!(gate.parse::<Gate>().unwrap().check(&report).unwrap().ok, ok, "{gate}");
    }
}

#[test]
fn gates_hold_or_fail_or_name_the_known_paths() {
    let report = report(3, 4, 1);
    for (gate, ok) in
        [("$.a >= 0.75", true), ("$['a'] > 0.75", false), ("$ >= 0.5", true), ("score >= 0.8", false)]
    {
        assert_eq!(gate.parse::<Gate>().unwrap().check(&report).unwrap().ok, ok, "{gate}");
    }
    let error = "$.b >= 0.5".parse::<Gate>().unwrap().check(&report).unwrap_err();
    assert!(error.contains("paths are $.a"), "{error}");
    for wrong in ["", "$.a", "$.a >= x", "$.a >= 2", "total >= 0.5"] {
        assert!(wrong.parse::<Gate>().unwrap_err().contains("write it like"), "{wrong}");
    }
}

#[test]
fn the_page_escapes_values_and_lists_the_worst_document_first() {
    let mut evaluation = Evaluation::new(Profile::Default);
    evaluation.add(json!("good"), None, &json!({"a": 1, "b": 1}), Some(&json!({"a": 1, "b": 2}))).unwrap();
    evaluation.add(json!("bad"), None, &json!({"a": "<script>"}), None).unwrap();
    let page = page(&Comparison::new(vec![evaluation.report(1)], 1), "gold & more");
    assert!(page.contains("gold &amp; more") && page.contains("&lt;script&gt;") && !page.contains("<script"));
    assert!(page.find("<code>bad</code>").unwrap() < page.find("<code>good</code>").unwrap());
}
