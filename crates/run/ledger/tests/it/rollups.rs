use std::collections::BTreeMap;

use formwork_core::Time;
use formwork_ledger::{HourlyReason, RunDetail, RunQuery};
use proptest::prelude::*;
use regex::Regex;

use crate::given::{ledger, run};

const HOUR: u64 = 3_600_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rollups_equal_what_the_stored_runs_add_up_to(groups in prop::collection::vec(prop::collection::vec(run(), 0..25), 1..4)) {
        let ledger = ledger();
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
        let kept: BTreeMap<_, _> = ledger.hourly_runs(None, None).unwrap().into_iter().map(|row| (
            (row.hour.0, row.contract, row.model, row.outcome),
            [row.runs, row.calls, row.input_tokens, row.output_tokens, row.micro_usd, row.unpriced, row.millis],
        )).collect();
        prop_assert_eq!(kept, runs);
        let flat = |row: HourlyReason| ((row.hour.0, row.class, row.path, row.model, row.contract), row.count);
        let kept: BTreeMap<_, _> = ledger.hourly_reasons(None, None).unwrap().into_iter().map(flat).collect();
        prop_assert_eq!(&kept, &reasons);

        // A window includes exactly the hours that overlap it.
        let (since, until) = (Time(1_795_000_000_000 + 20 * HOUR), Time(1_795_000_000_000 + 30 * HOUR));
        let window: BTreeMap<_, _> = ledger.hourly_reasons(Some(since), Some(until)).unwrap().into_iter().map(flat).collect();
        reasons.retain(|(hour, ..), _| hour + HOUR > since.0 && *hour < until.0);
        prop_assert_eq!(window, reasons);
    }
}
