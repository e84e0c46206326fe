//! The evaluation of many documents.

use serde_json::Value;

use crate::profile::Profile;
use crate::report::{Difference, PathReport, Report, WorstRow};
use crate::row::RowScore;
use crate::rows::Rows;
use crate::statistics::{MAX_RESAMPLED, Sums, interval, ratios, resamples};
use crate::tally::{Grade, Paths, Tally};
use crate::{docubench, standard};

/// The maximum number of worst rows with their differences, and of differences of each.
const MAX_WORST: usize = 50;
const MAX_DIFFERENCES: usize = 100;

/// The counts of a path.
#[derive(Debug, Default)]
struct OfPath {
    tally: Tally,
    /// The right and the stated leaves of each document that states any.
    documents: Vec<[f64; 2]>,
    sums: Sums,
}

impl OfPath {
    fn add(&mut self, tally: Tally, is_resampled: bool) {
        self.tally.merge(tally);
        if tally.stated() > 0 {
            let counts = [tally.right as f64, tally.stated() as f64];
            self.sums.add(counts);
            self.documents.extend(is_resampled.then_some(counts));
        }
    }
}

/// Compares answers with gold, document by document.
///
/// Memory grows by the id and the score of a row, about 25 bytes: [`Rows`].
///
/// ```
/// use formwork_eval::{Evaluation, Profile};
/// use serde_json::json;
///
/// let mut evaluation = Evaluation::new(Profile::Docubench);
/// evaluation.add(json!(1), None, &json!({"a": "x", "b": 2}), Some(&json!({"a": "X.", "b": 3})))?;
/// evaluation.add(json!(2), None, &json!({"a": "x"}), None)?;
/// let report = evaluation.report(1);
/// assert_eq!((report.score, report.rows.iter().next().unwrap().score, report.unanswered), (0.25, 0.5, 1));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Evaluation {
    profile: Profile,
    rows: Rows,
    paths: Paths,
    /// The counts of each path, in the order of `paths`.
    counts: Vec<OfPath>,
    /// The sum of all scores.
    scores: Sums,
    worst: Vec<WorstRow>,
    unanswered: usize,
}

impl Evaluation {
    /// Creates an evaluation without rows.
    pub fn new(profile: Profile) -> Self {
        let (rows, counts, worst) = (Rows::default(), Vec::new(), Vec::new());
        let (paths, scores) = (Paths::default(), Sums::default());
        Self { profile, rows, paths, counts, scores, worst, unanswered: 0 }
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
        let mut sink =
            |place: &crate::tally::Place<'_>, grade: Grade, one: Option<&Value>, other: Option<&Value>| {
                let number = paths.number(place);
                match tallies.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, tally)) => tally.add(grade),
                    None => {
                        let mut tally = Tally::default();
                        tally.add(grade);
                        tallies.push((number, tally));
                    }
                }
                let differs = !matches!(grade, Grade::Right | Grade::NotStated);
                if differs && differences.len() < MAX_DIFFERENCES {
                    let (path, expected, answer) = (place.to_string(), one.cloned(), other.cloned());
                    differences.push(Difference { path, grade, expected, answer });
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
        self.counts.resize_with(self.paths.names.len(), OfPath::default);
        let is_resampled = self.rows.len() < MAX_RESAMPLED;
        if self.rows.len() == MAX_RESAMPLED {
            self.counts.iter_mut().for_each(|counts| counts.documents = Vec::new());
        }
        for (path, tally) in tallies {
            if let Some(counts) = self.counts.get_mut(path) {
                counts.add(tally, is_resampled);
            }
        }
        self.scores.add([score, 1.0]);
        self.unanswered += usize::from(answer.is_none());
        if !differences.is_empty() {
            self.worst.push(WorstRow { id: id.clone(), score, differences });
            if self.worst.len() > 4 * MAX_WORST {
                self.keep_worst();
            }
        }
        self.rows.push(&RowScore { id, score });
        Ok(score)
    }

    fn keep_worst(&mut self) {
        self.worst.sort_by(|one, other| one.score.total_cmp(&other.score));
        self.worst.truncate(MAX_WORST);
    }

    /// Returns the report about all rows. `seed` determines the resamples of the intervals.
    pub fn report(mut self, seed: u64) -> Report {
        self.keep_worst();
        let is_resampled = self.rows.len() <= MAX_RESAMPLED;
        let documents = self.rows.texts().filter(|_| is_resampled).map(|(_, score)| [score, 1.0]);
        let documents: Vec<[f64; 2]> = documents.collect();
        let sum: f64 = self.rows.texts().map(|(_, score)| score).sum();
        let of = |documents: &[[f64; 2]], sums: &Sums| match is_resampled {
            true => interval(&ratios(documents, seed)),
            false => sums.interval(),
        };
        let paths = self.paths.names.into_iter().zip(self.counts).map(|(path, counts)| PathReport {
            path,
            tally: counts.tally,
            accuracy: counts.tally.accuracy(),
            interval: of(&counts.documents, &counts.sums),
        });
        Report {
            name: None,
            spent: None,
            profile: self.profile,
            score: if self.rows.is_empty() { 0.0 } else { sum / self.rows.len() as f64 },
            interval: of(&documents, &self.scores),
            seed,
            resamples: if is_resampled { resamples(self.rows.len()) } else { 0 },
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
