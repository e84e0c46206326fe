//! The evaluation of many documents.

use serde_json::Value;

use crate::profile::Profile;
use crate::report::{Difference, PathReport, Report, WorstRow};
use crate::row::RowScore;
use crate::statistics::{interval, ratios, resamples};
use crate::tally::{Paths, Tally, Verdict};
use crate::{docubench, standard};

/// The maximum number of worst rows with their differences, and of differences of each.
const MAX_WORST: usize = 50;
const MAX_DIFFERENCES: usize = 100;

/// Compares answers with gold, document by document.
///
/// ```
/// use formwork_eval::{Evaluation, Profile};
/// use serde_json::json;
///
/// let mut evaluation = Evaluation::new(Profile::Docubench);
/// evaluation.add(json!(1), None, &json!({"a": "x", "b": 2}), Some(&json!({"a": "X.", "b": 3})))?;
/// evaluation.add(json!(2), None, &json!({"a": "x"}), None)?;
/// let report = evaluation.report(1);
/// assert_eq!((report.score, report.rows[0].score, report.unanswered), (0.25, 0.5, 1));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Evaluation {
    profile: Profile,
    rows: Vec<RowScore>,
    paths: Paths,
    /// The right and the stated leaves of each row and path: row, path, counts.
    counts: Vec<(u32, u32, Tally)>,
    worst: Vec<WorstRow>,
    unanswered: usize,
}

impl Evaluation {
    /// Creates an evaluation without rows.
    pub fn new(profile: Profile) -> Self {
        let (rows, counts, worst) = (Vec::new(), Vec::new(), Vec::new());
        Self { profile, rows, paths: Paths::default(), counts, worst, unanswered: 0 }
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a document: its gold and its answer (`None`: there is no answer). Returns its score.
    ///
    /// # Errors
    /// A message for an invalid `x-formwork-compare` in the schema. The document is not added.
    pub fn add(
        &mut self,
        id: Value,
        schema: Option<&Value>,
        expected: &Value,
        answer: Option<&Value>,
    ) -> Result<f64, String> {
        let answer = answer.filter(|answer| !answer.is_null());
        let (mut tallies, mut differences): (Vec<(usize, Tally)>, Vec<Difference>) = (Vec::new(), Vec::new());
        let paths = &mut self.paths;
        let mut sink = |place: &crate::tally::Place<'_>,
                        verdict: Verdict,
                        one: Option<&Value>,
                        other: Option<&Value>| {
            let number = paths.number(place);
            match tallies.iter_mut().find(|(known, _)| *known == number) {
                Some((_, tally)) => tally.add(verdict),
                None => {
                    let mut tally = Tally::default();
                    tally.add(verdict);
                    tallies.push((number, tally));
                }
            }
            let differs = !matches!(verdict, Verdict::Right | Verdict::NotStated);
            if differs && differences.len() < MAX_DIFFERENCES {
                let (path, expected, answer) = (place.to_string(), one.cloned(), other.cloned());
                differences.push(Difference { path, verdict, expected, answer });
            }
        };
        let score = match self.profile {
            Profile::Docubench => docubench::compare(schema, expected, answer, &mut sink),
            Profile::Default => {
                standard::compare(schema, expected, answer, &mut sink)?;
                let all = tallies
                    .iter()
                    .fold([0, 0], |[right, all], (_, tally)| [right + tally.right, all + tally.stated()]);
                if all[1] == 0 { 1.0 } else { all[0] as f64 / all[1] as f64 }
            }
        };
        let row = u32::try_from(self.rows.len())
            .map_err(|_| "too many rows: the maximum is 4,294,967,295".to_owned())?;
        let counts =
            tallies.into_iter().filter_map(|(path, tally)| Some((row, u32::try_from(path).ok()?, tally)));
        self.counts.extend(counts);
        self.unanswered += usize::from(answer.is_none());
        if !differences.is_empty() {
            self.worst.push(WorstRow { id: id.clone(), score, differences });
            if self.worst.len() > 4 * MAX_WORST {
                self.keep_worst();
            }
        }
        self.rows.push(RowScore { id, score });
        Ok(score)
    }

    fn keep_worst(&mut self) {
        self.worst.sort_by(|one, other| one.score.total_cmp(&other.score));
        self.worst.truncate(MAX_WORST);
    }

    /// Returns the report about all rows. `seed` determines the resamples of the intervals.
    pub fn report(mut self, seed: u64) -> Report {
        self.keep_worst();
        let documents: Vec<[f64; 2]> = self.rows.iter().map(|row| [row.score, 1.0]).collect();
        let sum: f64 = self.rows.iter().map(|row| row.score).sum();
        let mut of_paths: Vec<(Tally, Vec<[f64; 2]>)> =
            self.paths.names.iter().map(|_| Default::default()).collect();
        for (_, path, tally) in &self.counts {
            if let Some((all, documents)) =
                usize::try_from(*path).ok().and_then(|path| of_paths.get_mut(path))
            {
                all.right += tally.right;
                all.wrong += tally.wrong;
                all.invented += tally.invented;
                all.missing += tally.missing;
                all.not_stated += tally.not_stated;
                if tally.stated() > 0 {
                    documents.push([tally.right as f64, tally.stated() as f64]);
                }
            }
        }
        let paths = self.paths.names.into_iter().zip(of_paths).map(|(path, (tally, documents))| PathReport {
            path,
            tally,
            accuracy: tally.accuracy(),
            interval: interval(&ratios(&documents, seed)),
        });
        Report {
            name: None,
            spent: None,
            profile: self.profile,
            score: if self.rows.is_empty() { 0.0 } else { sum / self.rows.len() as f64 },
            interval: interval(&ratios(&documents, seed)),
            seed,
            resamples: resamples(self.rows.len()),
            unanswered: self.unanswered,
            paths: paths.collect(),
            rows: self.rows,
            baseline: None,
            gates: Vec::new(),
            notes: Vec::new(),
            worst: self.worst,
        }
    }
}
