//! Counts the runs, verdicts and preferences of one judge, compares them with their targets, and with those of another judge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::{Delta, Error, Outcome, Trust, is_compliant};
use formwork_extract::{Observer, RunId, Started};
use formwork_review::{Comparison, Preferred, Verdict};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::judges::Draws;
use super::share;

/// The runs of a judge, which an agent reports.
#[derive(Debug, Default)]
struct Runs {
    all: usize,
    compliant: usize,
    /// Runs with more than one attempt, or without an answer.
    retried: usize,
    calls: usize,
    models: BTreeSet<String>,
    /// The prompts, each with the start of the SHA-256 of its fixed texts.
    prompts: BTreeSet<String>,
    trust: Trust,
}

/// An observer of the runs of a judge.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch(Arc<Mutex<Runs>>);

impl Watch {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        let [system, user] = started.call.messages.as_slice() else { return };
        let question = user.text();
        let mut hash = Sha256::new();
        hash.update(system.text());
        hash.update(question.lines().last().unwrap_or_default());
        let kind = if question.starts_with("Criterion: ") { "verdict" } else { "pair" };
        let hash = format!("{:x}", hash.finalize());
        self.runs().prompts.insert(format!("{kind} {}", hash.get(..12).unwrap_or(&hash)));
    }

    fn delta(&self, _: RunId, delta: &Delta) {
        if let Delta::End(end) = delta {
            self.runs().models.extend(end.model.clone());
        }
    }

    fn done(&self, _: RunId, result: &Result<Outcome<Value>, Error>) {
        let mut runs = self.runs();
        let calls = match result {
            Ok(outcome) => {
                runs.trust.add(&outcome.trust);
                outcome.calls.as_slice()
            }
            Err(error) => error.calls(),
        };
        runs.all += 1;
        runs.calls += calls.len();
        runs.compliant += usize::from(is_compliant(calls));
        runs.retried += usize::from(result.is_err() || calls.iter().any(|call| call.attempt > 1));
    }
}

/// The verdicts about one criterion of one text, and the right one. `None` is a judge without an answer.
#[derive(Debug, Default, Clone)]
pub(super) struct Verdicts {
    pub(super) holds: bool,
    pub(super) given: Vec<Option<Verdict>>,
}

impl Verdicts {
    fn of(&self, verdict: Verdict) -> usize {
        self.given.iter().filter(|given| **given == Some(verdict)).count()
    }

    fn right(&self) -> usize {
        self.of(if self.holds { Verdict::Pass } else { Verdict::Fail })
    }

    /// Returns the number of occurrences of the more frequent decision. A judge that decides nothing is not consistent.
    fn same(&self) -> usize {
        self.of(Verdict::Pass).max(self.of(Verdict::Fail))
    }

    /// Returns the share of right verdicts, from 0 to 1.
    fn share(&self) -> f64 {
        self.right() as f64 / self.given.len().max(1) as f64
    }
}

/// Everything about one judge.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) judge: String,
    pub(super) watch: Watch,
    pub(super) verdicts: BTreeMap<String, Verdicts>,
    /// The preferences of people with those of the judge; `None` is a judge without an answer.
    pub(super) pairs: Vec<(Preferred, Option<Comparison>)>,
}

/// A measured share with its target.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub(super) metric: &'static str,
    target: String,
    part: usize,
    pub(super) of: usize,
    /// Whether the target is met; `None` if nothing was measured.
    pub(super) met: Option<bool>,
}

impl Row {
    fn new(metric: &'static str, target: String, part: usize, of: usize, met: bool) -> Self {
        Self { metric, target, part, of, met: (of > 0).then_some(met) }
    }

    /// Returns the measured share, from 0 to 1.
    #[cfg(test)]
    pub(super) fn share(&self) -> f64 {
        self.part as f64 / self.of.max(1) as f64
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, target, part, of, met } = self;
        let measured = if *of > 0 { share(*part, *of) } else { "-".to_owned() };
        let met = met.map_or("", |met| if met { "met" } else { "MISSED" });
        write!(f, "{}", format!("{metric:<42}{target:<30}{measured:<24}{met}").trim_end())
    }
}

impl Tally {
    pub(super) fn of(judge: impl Into<String>) -> Self {
        Self { judge: judge.into(), ..Self::default() }
    }

    /// Returns the number of calls of all runs.
    pub(super) fn calls(&self) -> usize {
        self.watch.runs().calls
    }

    /// Returns the rows of the report. Runs and questions without an answer are misses of each row that they concern.
    pub(super) fn rows(&self) -> [Row; 6] {
        let runs = self.watch.runs();
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        let sum = |of: fn(&Verdicts) -> usize| self.verdicts.values().map(of).sum::<usize>();
        let all = sum(|one| one.given.len());
        let (same, right) = (sum(Verdicts::same), sum(Verdicts::right));
        // A judge has to be better than the constant verdict that is right most often.
        let holding = sum(|one| if one.holds { one.given.len() } else { 0 });
        let constant = percent(holding.max(all - holding), all);
        let shares: Vec<f64> = self.verdicts.values().map(Verdicts::share).collect();
        let agreed: Vec<f64> = self.pairs.iter().map(agrees).collect();
        let agreeing = agreed.iter().filter(|one| **one > 0.0).count();
        let labels = [Preferred::A, Preferred::B, Preferred::Indeterminate]
            .map(|label| self.pairs.iter().filter(|(truth, _)| *truth == label).count());
        let usual = percent(labels.into_iter().max().unwrap_or_default(), self.pairs.len());
        let unequal: Vec<_> =
            self.pairs.iter().filter(|(truth, _)| *truth != Preferred::Indeterminate).collect();
        let is_steady = |pair: &&&(Preferred, Option<Comparison>)| {
            pair.1.as_ref().is_some_and(|one| one.preferred != Preferred::Indeterminate)
        };
        let steady = unequal.iter().filter(is_steady).count();
        let above = |metric, least: f64, part, of| {
            Row::new(metric, format!("> {least} %"), part, of, percent(part, of) > least)
        };
        let surely = |metric, constant: f64, part, values: &[f64], of| {
            let target = format!("surely > {constant:.1} % (constant)");
            Row::new(metric, target, part, of, 100.0 * interval(values)[0] > constant)
        };
        let is_rare = percent(runs.retried, runs.all) < 5.0;
        [
            above("first completions that comply", 98.0, runs.compliant, runs.all),
            Row::new("runs with a retry or no answer", "< 5 %".into(), runs.retried, runs.all, is_rare),
            above("verdicts that repeat the usual decision", 95.0, same, all),
            surely("right verdicts", constant, right, &shares, all),
            surely("pairs: agrees with people", usual, agreeing, &agreed, self.pairs.len()),
            above("pairs: prefers one, in both orders", 95.0, steady, unequal.len()),
        ]
    }

    /// Returns whether a row is missed. Rows without a measurement do not count, unless nothing was measured.
    pub(super) fn is_missed(&self) -> bool {
        let rows = self.rows();
        rows.iter().any(|row| row.met == Some(false)) || rows.iter().all(|row| row.of == 0)
    }

    /// Returns sentences about figures that say less than they seem to.
    pub(super) fn remarks(&self) -> Vec<String> {
        let given: Vec<_> = self.verdicts.values().flat_map(|one| &one.given).collect();
        let of = |verdict| given.iter().filter(|one| ***one == Some(verdict)).count();
        let (all, passed, failed) = (given.len(), of(Verdict::Pass), of(Verdict::Fail));
        let mut remarks = Vec::new();
        if all > 0 && passed + failed == 0 {
            remarks.push(format!("the judge decided none of {all} criteria"));
        }
        for (count, word) in [(passed, "pass"), (failed, "fail")] {
            if all > 1 && count == all {
                remarks.push(format!(
                    "the judge said `{word}` {all} times of {all}: it does not distinguish texts"
                ));
            }
        }
        // The verdict on the swapped texts is `B` if the judge preferred the first one that it was shown.
        let orders = self.pairs.iter().filter_map(|(_, one)| one.as_ref());
        let orders: Vec<_> = orders
            .flat_map(|one| [(one.forward.preferred, Preferred::A), (one.swapped.preferred, Preferred::B)])
            .collect();
        let n = orders.len();
        if n > 0 && orders.iter().all(|(preferred, _)| *preferred == Preferred::Indeterminate) {
            remarks.push(format!("the judge preferred neither text {n} times of {n}"));
        }
        if n > 2 && orders.iter().all(|(preferred, first)| preferred == first) {
            remarks.push(format!("the judge preferred the text shown first {n} times of {n}"));
        }
        remarks
    }

    /// Compares the right answers of this judge with those of another one about the same criteria and pairs.
    pub(super) fn beside(&self, other: &Self) -> String {
        let verdicts = self.verdicts.iter().filter_map(|(id, own)| Some((own, other.verdicts.get(id)?)));
        let verdicts: Vec<f64> = verdicts.map(|(own, other)| own.share() - other.share()).collect();
        let pairs = self.pairs.iter().zip(&other.pairs);
        let pairs: Vec<f64> = pairs.map(|(own, other)| agrees(own) - agrees(other)).collect();
        let mut text = format!("{} beside {}", self.judge, other.judge);
        for (what, differences) in [("criteria", verdicts), ("pairs", pairs)] {
            if !differences.is_empty() {
                let n = differences.len();
                let mean = 100.0 * differences.iter().sum::<f64>() / n as f64;
                let [low, high] = interval(&differences).map(|end| 100.0 * end);
                let word = match (low > 0.0, high < 0.0) {
                    (true, _) => "better",
                    (_, true) => "worse",
                    _ => "no difference is shown",
                };
                _ = write!(
                    text,
                    "\n  right about {n} {what}: {mean:+.1} points, 95 % interval {low:+.1} to {high:+.1}: {word}"
                );
            }
        }
        text
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.judge)?;
        self.rows().iter().try_for_each(|row| writeln!(f, "  {row}"))?;
        for remark in self.remarks() {
            writeln!(f, "  {remark}")?;
        }
        let runs = self.watch.runs();
        let listed = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        if !runs.models.is_empty() {
            writeln!(f, "  model: {}", listed(&runs.models))?;
        }
        writeln!(f, "  prompts: {}; {} calls in {} runs", listed(&runs.prompts), runs.calls, runs.all)?;
        if runs.trust.leaves > 0 {
            writeln!(f, "  history of the answers: {}", runs.trust)?;
        }
        Ok(())
    }
}

/// Returns 1 if the judge has the preference of people, else 0.
fn agrees((truth, comparison): &(Preferred, Option<Comparison>)) -> f64 {
    f64::from(u8::from(comparison.as_ref().is_some_and(|one| one.preferred == *truth)))
}

/// Returns the 95 % interval of the mean: percentiles of 2,000 resamples with seed 1. Values of one criterion belong together, because
/// its verdicts depend on each other.
fn interval(values: &[f64]) -> [f64; 2] {
    let (draws, n) = (Draws::new(1), values.len());
    let mut means: Vec<f64> = (0..2000)
        .map(|_| {
            let drawn = (0..n).filter_map(|_| values.get((draws.next() * n as f64) as usize));
            drawn.sum::<f64>() / n.max(1) as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    [50, 1949].map(|at| means.get(at).copied().unwrap_or_default())
}
