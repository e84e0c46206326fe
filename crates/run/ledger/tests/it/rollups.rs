use std::collections::BTreeMap;

use formwork_core::Time;
use formwork_ledger::{RunDetail, RunQuery, Settings, StoredRun};
use proptest::prelude::*;
use regex::Regex;

use crate::given::{hours, in_file, run};

const HOUR: u64 = 3_600_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rollups_equal_what_the_stored_runs_add_up_to(groups in prop::collection::vec(prop::collection::vec(run(), 0..25), 1..4)) {
        let (_folder, ledger, tool) = in_file(Settings::default());
        for group in groups {
            group.into_iter().for_each(|run| ledger.record(run));
            ledger.flush_blocking().unwrap();
        }
        let stored: Vec<RunDetail> = ledger.runs(&RunQuery { limit: 1000, ..RunQuery::default() }).unwrap().runs
            .into_iter().map(|run| ledger.run(run.id).unwrap().unwrap()).collect();

        let mut runs: BTreeMap<_, [u64; 7]> = BTreeMap::new();
        let mut reasons: BTreeMap<_, u64> = BTreeMap::new();
        let index = Regex::new(r"\[\d+\]").unwrap();
        for RunDetail { run, calls, .. } in &stored {
            let hour = run.started.0 / HOUR * HOUR;
            let contract = run.contract.clone().or(run.digest.clone()).unwrap_or_default();
            let sums = runs.entry((hour, contract.clone(), run.model.clone(), run.outcome.clone())).or_default();
            let more = [1, u64::from(run.calls), run.usage.input_tokens, run.usage.output_tokens,
                run.micro_usd.unwrap_or(0), u64::from(run.micro_usd.is_none()), run.ended.0 - run.started.0];
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            for call in calls.iter().filter(|call| call.class != "accepted") {
                let mut count = |class: &str, path: String| {
                    *reasons.entry((hour, class.to_owned(), path, call.model.clone(), contract.clone())).or_default() += 1;
                };
                if call.violations.is_empty() {
                    count(&call.class, String::new());
                }
                for violation in &call.violations {
                    count(&violation.class, index.replace_all(&violation.path, "[*]").into_owned());
                }
            }
        }
        prop_assert_eq!(hours(&tool), runs);
        let mut kept = tool.prepare("SELECT unixepoch(hour) * 1000, class, path, model, contract, count FROM reasons").unwrap();
        let kept: BTreeMap<_, _> = kept.query_map([], |row| {
            let key = (row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((key, row.get::<_, i64>(5)? as u64))
        }).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&kept, &reasons);
        // The reasons of whole days add up to those of their hours.
        let since = Time(1_795_000_000_000 + 24 * HOUR);
        let mut days: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for ((hour, class, path, model, contract), count) in &reasons {
            let day = hour / (24 * HOUR);
            if day >= since.0 / (24 * HOUR) {
                let sum = days.entry((class, path, model, contract)).or_insert((day * 24 * HOUR, 0));
                *sum = (sum.0.min(day * 24 * HOUR), sum.1 + count);
            }
        }
        let found = ledger.reasons(since, None, usize::MAX).unwrap();
        prop_assert!(found.is_sorted_by(|a, b| a.count >= b.count));
        prop_assert_eq!(found.len(), days.len());
        for row in found {
            prop_assert_eq!(days[&(&row.class, &row.path, &row.model, &row.contract)], (row.hour.0, row.count));
        }

        // The overview has the same runs, and percentiles that differ by 10 % at most.
        let overview = ledger.overview(Time(0)).unwrap();
        for (groups, name) in [
            (&overview.contracts, (|run| run.contract.clone().or(run.digest.clone()).unwrap_or_default()) as fn(&StoredRun) -> String),
            (&overview.models, |run| run.model.clone()),
            (&overview.days, |run| run.started.0.div_euclid(24 * HOUR).to_string()),
        ] {
            let mut expected = BTreeMap::<String, Vec<&StoredRun>>::new();
            stored.iter().for_each(|one| expected.entry(name(&one.run)).or_default().push(&one.run));
            prop_assert_eq!(groups.len(), expected.len());
            for group in groups {
                let key = if group.day.0 > 0 { (group.day.0 / (24 * HOUR)).to_string() } else { group.name.clone() };
                let runs = &expected[&key];
                let called: Vec<_> = runs.iter().filter(|run| !run.cached && run.calls > 0).collect();
                let first = called.iter().filter(|run| run.calls == 1 && run.outcome == "ok").count();
                let failed = runs.iter().filter(|run| run.outcome != "ok" && run.outcome != "fallback").count();
                let sum = |of: fn(&StoredRun) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
                prop_assert_eq!(
                    (group.runs, group.called, group.first_try, group.failed, group.calls),
                    (runs.len() as u64, called.len() as u64, first as u64, failed as u64, sum(|run| run.calls.into()))
                );
                prop_assert_eq!(group.micro_usd, sum(|run| run.micro_usd.unwrap_or(0)));
                prop_assert_eq!(group.unpriced, sum(|run| run.micro_usd.is_none().into()));
                let mut millis: Vec<_> = called.iter().map(|run| run.ended.0 - run.started.0).collect();
                millis.sort_unstable();
                for percent in [50, 95] {
                    let rank = (millis.len() * percent).div_ceil(100).saturating_sub(1);
                    let exact = millis.get(rank).copied().unwrap_or(0) as f64;
                    let found = group.percentile(percent as u64) as f64;
                    prop_assert!((found - exact).abs() <= exact * 0.1 + 1.0, "{} {}", found, exact);
                }
            }
        }
    }
}
