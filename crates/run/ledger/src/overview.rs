//! The runs of a period by contract, model, key and day, with percentiles of their durations, for pages.

use std::collections::{BTreeMap, HashMap};

use formwork_core::Time;
use rusqlite::params;
use serde::Serialize;

use crate::bucket::middle;
use crate::insert::{DAY, count, number};
use crate::{Error, Ledger};

/// The runs of a period. It is read from rollups, whose size depends on the days and not on the runs. Days are those of UTC.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, RunRecord, Settings, StoredCall};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let mut run = RunRecord::new("extract", Time(1_795_000_000_000)).with_contract(Some("person".to_owned()), None);
/// run.ended = Time(run.started.0 + 250);
/// run.calls.push(StoredCall::new("primary", "gpt-5.4-mini", run.started, run.ended));
/// ledger.record(run);
/// ledger.flush_blocking()?;
/// let overview = ledger.overview(Time(1_795_000_000_000))?;
/// assert_eq!((overview.all.runs, overview.contracts[0].name.as_str()), (1, "person"));
/// assert!((227..=275).contains(&overview.all.percentile(50)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// All runs.
    pub all: Group,
    /// The runs of each contract, the most runs first: its name, else its digest, else empty.
    pub contracts: Vec<Group>,
    /// The runs of each model of a last call, the most runs first.
    pub models: Vec<Group>,
    /// The runs of each key by its name, the most runs first; empty for runs without one.
    pub keys: Vec<Group>,
    /// The runs of each day that has any, the first day first.
    pub days: Vec<Group>,
}

/// Sums of a group of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// The name.
    pub name: String,
    /// The start of the day; 0 for other groups.
    pub day: Time,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs with a call; those of earlier versions of Formwork are all that the cache did not answer.
    pub called: u64,
    /// The number of these that were accepted with one call.
    pub first_try: u64,
    /// The number of runs without an answer.
    pub failed: u64,
    /// The number of calls.
    pub calls: u64,
    /// The known cost in millionths of a US dollar.
    pub micro_usd: u64,
    /// The number of runs with an unknown cost.
    pub unpriced: u64,
    /// The number of runs of each class of durations.
    #[serde(skip)]
    durations: BTreeMap<i64, u64>,
}

impl Group {
    fn add(&mut self, row: &Self, bucket: i64) {
        self.runs += row.runs;
        self.first_try += row.first_try;
        self.failed += row.failed;
        self.calls += row.calls;
        self.micro_usd = self.micro_usd.saturating_add(row.micro_usd);
        self.unpriced += row.unpriced;
        if bucket >= 0 {
            self.called += row.runs;
            *self.durations.entry(bucket).or_default() += row.runs;
        }
    }

    /// Returns the duration in milliseconds that this share of the runs (0 to 100) did not exceed, within 10 %; 0 without runs. Runs
    /// without a call do not count.
    pub fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.called * percent.min(100)).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, runs) in &self.durations {
            seen += runs;
            if seen >= rank {
                return middle(*bucket);
            }
        }
        0
    }
}

/// A version of a contract, by the digest of its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Version {
    /// The digest.
    pub digest: String,
    /// The number of runs.
    pub runs: u64,
    /// The start of the first run.
    pub first: Time,
    /// The start of the last run.
    pub last: Time,
}

pub(crate) const VERSIONS: &str = "SELECT digest, count(*), min(started), max(started) FROM
    (SELECT digest, contract, started FROM run ORDER BY id DESC LIMIT 20000)
    WHERE contract = ?1 AND digest IS NOT NULL GROUP BY digest ORDER BY 4 DESC";
pub(crate) const OVERVIEW: &str =
    "SELECT day, dimension, name, bucket, runs, first_try, failed, attempts, micro_usd, unpriced
    FROM daily_run WHERE day >= ?1";

impl Ledger {
    /// Returns the versions of a contract among the last 20,000 runs, the newest first.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn versions(&self, contract: &str) -> Result<Vec<Version>, Error> {
        self.core().store.read(|connection| {
            let mut rows = connection.prepare_cached(VERSIONS)?;
            let version = |row: &rusqlite::Row<'_>| {
                let (first, last) = (Time(count(row, 2)?), Time(count(row, 3)?));
                Ok(Version { digest: row.get(0)?, runs: count(row, 1)?, first, last })
            };
            rows.query_map([contract], version)?.collect()
        })
    }

    /// Returns the runs of the days from the day of `since`. Runs that wait in memory are not among them.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn overview(&self, since: Time) -> Result<Overview, Error> {
        let keys: HashMap<String, String> =
            self.keys()?.into_iter().map(|key| (key.id.0.to_string(), key.name)).collect();
        let (mut all, mut days) = (Group::default(), BTreeMap::<u64, Group>::new());
        let mut dimensions: [HashMap<String, Group>; 3] = Default::default();
        self.core().store.read(|connection| {
            let mut rows = connection.prepare_cached(OVERVIEW)?;
            let mut rows = rows.query(params![number(since.0 / DAY)])?;
            while let Some(row) = rows.next()? {
                let bucket = row.get(3)?;
                let sums = Group {
                    runs: count(row, 4)?,
                    first_try: count(row, 5)?,
                    failed: count(row, 6)?,
                    calls: count(row, 7)?,
                    micro_usd: count(row, 8)?,
                    unpriced: count(row, 9)?,
                    ..Group::default()
                };
                let dimension = usize::try_from(count(row, 1)?).unwrap_or_default();
                let Some(groups) = dimension.checked_sub(1).and_then(|nth| dimensions.get_mut(nth)) else {
                    all.add(&sums, bucket);
                    days.entry(count(row, 0)?).or_default().add(&sums, bucket);
                    continue;
                };
                let name = row.get_ref(2)?.as_str()?;
                match groups.get_mut(name) {
                    Some(group) => group.add(&sums, bucket),
                    None => groups.entry(name.to_owned()).or_default().add(&sums, bucket),
                }
            }
            Ok(())
        })?;
        let [contracts, models, of_keys] = dimensions;
        let named = |(name, group): (String, Group)| Group { name, ..group };
        let sorted = |mut groups: Vec<Group>| {
            groups.sort_by(|a, b| b.runs.cmp(&a.runs).then_with(|| a.name.cmp(&b.name)));
            groups
        };
        let of_keys = of_keys.into_iter().map(|(id, group)| {
            let name = keys.get(&id).cloned().unwrap_or_default();
            Group { name, ..group }
        });
        let days = days.into_iter().map(|(day, group)| Group { day: Time(day.saturating_mul(DAY)), ..group });
        Ok(Overview {
            all,
            contracts: sorted(contracts.into_iter().map(named).collect()),
            models: sorted(models.into_iter().map(named).collect()),
            keys: sorted(of_keys.collect()),
            days: days.collect(),
        })
    }
}
