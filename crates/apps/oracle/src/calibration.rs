//! Calibration: whether a model's scores are nearer to those of people than counting is.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write as _};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wallet::{Band, Wallet, WalletError};
use crate::{PromptId, ScoreEvent, ScoreSource};

pub use crate::standing::Standing;

/// The minimum number of wallets of a calibration, and of scores by a model.
pub const MIN_WALLETS: usize = 30;

/// The seed of the resamples, so that the same scores always give the same interval.
const SEED: u64 = 1;

/// The number of resamples.
const RESAMPLES: usize = 10_000;

/// The result of a calibration of one model with one version of the prompt: a line of the file of calibrations.
///
/// The distance of a score is 0 within the expected range, else the points to its nearer end. Only wallets that the model
/// scored count: the fallback's scores are no evidence about the model.
///
/// ```
/// use formwork_oracle::calibration::{Calibration, Standing};
/// use formwork_oracle::PromptId;
///
/// let prompt = PromptId { name: "v1".into(), hash: "00".into() };
/// // The model is off by 40 points each time, counting by 100.
/// let calibration = Calibration::of("m", prompt, &[[40.0, 100.0]; 30]).unwrap();
/// assert_eq!((calibration.interval, calibration.standing()), ([-60.0, -60.0], Standing::Better));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// The model: its own name for itself, otherwise the configured model, otherwise the name of its provider.
    pub model: String,
    /// The version of the prompt.
    pub prompt: PromptId,
    /// The number of wallets that the model scored.
    pub n: u64,
    /// The mean distance of the model's scores from the expected ranges, in points.
    pub model_distance: f64,
    /// The mean distance of the fallback's scores of the same wallets, in points.
    pub fallback_distance: f64,
    /// The paired 95 % interval of the difference, model less fallback, in points: percentiles of 10,000 resamples of wallets
    /// (bootstrap, seed 1).
    pub interval: [f64; 2],
}

impl Calibration {
    /// Computes a calibration from pairs of distances, of the model and of the fallback, one for each wallet. Returns `None` for
    /// fewer than [`MIN_WALLETS`] pairs.
    pub fn of(model: impl Into<String>, prompt: PromptId, distances: &[[f64; 2]]) -> Option<Self> {
        if distances.len() < MIN_WALLETS {
            return None;
        }
        let n = distances.len() as f64;
        let mean = |of: fn(&[f64; 2]) -> f64| distances.iter().map(of).sum::<f64>() / n;
        let differences: Vec<f64> = distances.iter().map(|[model, fallback]| model - fallback).collect();
        let mut random = Random(SEED);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn =
                    differences.iter().filter_map(|_| differences.get(random.below(differences.len())));
                drawn.sum::<f64>() / n
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let at = |share: usize| means.get(RESAMPLES * share / 1000).copied();
        Some(Self {
            model: model.into(),
            prompt,
            n: distances.len() as u64,
            model_distance: mean(|[model, _]| *model),
            fallback_distance: mean(|[_, fallback]| *fallback),
            interval: [at(25)?, at(975)?],
        })
    }

    /// Returns whether the model's scores are better than counting: only if the whole interval is below 0.
    pub fn standing(&self) -> Standing {
        if self.interval[1] < 0.0 { Standing::Better } else { Standing::NotBetter }
    }
}

/// Computes the calibration of each model of these scores, in the order of their names; `Err` has the number of scores of a
/// model with fewer than [`MIN_WALLETS`]. Scores of the fallback, and of wallets without an expected range, do not count.
pub fn calibrate<'e>(
    events: impl IntoIterator<Item = &'e ScoreEvent>,
) -> BTreeMap<String, Result<Calibration, u64>> {
    let mut models: BTreeMap<String, (PromptId, Vec<[f64; 2]>)> = BTreeMap::new();
    for event in events {
        let ScoreEvent { answer: Some(answer), counted: Some(counted), expected: Some(band), .. } = event
        else {
            continue;
        };
        if event.source == Some(ScoreSource::Ai) {
            let pair = [answer.score, *counted].map(|score| f64::from(band.distance(score)));
            let model = models.entry(event.model.clone());
            model.or_insert_with(|| (event.prompt.clone(), Vec::new())).1.push(pair);
        }
    }
    let measured = models.into_iter().map(|(model, (prompt, pairs))| {
        let calibration = Calibration::of(&*model, prompt, &pairs).ok_or(pairs.len() as u64);
        (model, calibration)
    });
    measured.collect()
}

/// The known calibrations. A later one of the same model and version of the prompt replaces an earlier one.
///
/// ```
/// use formwork_oracle::calibration::{Calibrations, Standing};
/// use formwork_oracle::PromptId;
///
/// let none = Calibrations::default();
/// let prompt = PromptId { name: "v1".into(), hash: "00".into() };
/// assert_eq!(none.standing("m", &prompt), Standing::NotCalibrated);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibrations(Vec<Calibration>);

impl Calibrations {
    /// Reads a file of calibrations: JSON Lines. A file that does not exist has none.
    ///
    /// # Errors
    /// [`io::Error`] with the file and the line, if the file cannot be read or a line is no calibration.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(|error| {
                io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
            })?,
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = lines.map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| {
                let place = format!("{}:{}", path.display(), index + 1);
                io::Error::other(format!("{place}: this is no calibration: {error}: delete the line"))
            })
        });
        Ok(Self(read.collect::<io::Result<_>>()?))
    }

    /// Appends a calibration to a file, or creates the file with its folder.
    ///
    /// # Errors
    /// [`io::Error`] with the file.
    pub fn append(path: &Path, calibration: &Calibration) -> io::Result<()> {
        let mut line = serde_json::to_vec(calibration)?;
        line.push(b'\n');
        if let Some(folder) = path.parent() {
            // Opening the file reports errors of the folder.
            _ = std::fs::create_dir_all(folder);
        }
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.and_then(|mut file| file.write_all(&line)).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        })
    }

    /// Returns what is known about the scores of a model with a version of the prompt.
    pub fn standing(&self, model: &str, prompt: &PromptId) -> Standing {
        let is_of = |one: &&Calibration| one.model == model && one.prompt.hash == prompt.hash;
        self.0.iter().rfind(is_of).map_or(Standing::NotCalibrated, Calibration::standing)
    }
}

/// Parses the wallets of a calibration: JSON Lines, each `{"wallet": …, "expected": [low, high]}`. The returned wallets have
/// this range as their `expected`. A wallet that is given again counts once, with its first range. `file` is the name in errors.
///
/// # Errors
/// [`WalletError`] with the line for the first mistake, and for fewer than [`MIN_WALLETS`] different wallets.
pub fn wallets(file: &str, bytes: &[u8]) -> Result<Vec<Wallet>, WalletError> {
    let (mut wallets, mut seen) = (Vec::new(), HashSet::new());
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            let wallet =
                row(line).map_err(|(column, error)| error.on_line(index + 1, column).in_file(file))?;
            if seen.insert(wallet.hash()) {
                wallets.push(wallet);
            }
        }
    }
    if wallets.len() < MIN_WALLETS {
        let message = format!(
            "{} different wallets: a calibration takes at least {MIN_WALLETS}, each in a line {{\"wallet\": …, \"expected\": [low, high]}}",
            wallets.len()
        );
        return Err(WalletError::new(message).in_file(file));
    }
    Ok(wallets)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    wallet: Wallet,
    expected: [i64; 2],
}

/// Parses a line. An error has its column, or 0 if it is unknown.
fn row(line: &[u8]) -> Result<Wallet, (usize, WalletError)> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let row: Row = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        let at = format!(" at line {} column {}", error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&at).unwrap_or(&text);
        let path = if path == "." { "$".to_owned() } else { format!("$.{path}") };
        (error.column(), WalletError::at(path, message))
    })?;
    let trailing = "there is more after the object: give one object in each line";
    json.end().map_err(|error| (error.column(), WalletError::new(trailing)))?;
    let Row { mut wallet, expected: [low, high] } = row;
    match (u16::try_from(low), u16::try_from(high)) {
        (Ok(min), Ok(max)) if min <= max && max <= 1000 => wallet.expected = Some(Band { min, max }),
        _ => {
            let message = format!("[{low}, {high}] is no range of scores: 0 <= low <= high <= 1000");
            return Err((0, WalletError::at("$.expected", message)));
        }
    }
    Ok(wallet)
}

/// A generator of pseudo-random numbers (SplitMix64): the same seed gives the same numbers on every machine.
struct Random(u64);

impl Random {
    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let wide = u128::from(bits ^ (bits >> 31)) * end as u128;
        usize::try_from(wide >> 64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prompt(hash: &str) -> PromptId {
        PromptId { name: "v1".into(), hash: hash.into() }
    }

    fn of(pairs: &[[f64; 2]]) -> Calibration {
        Calibration::of("m", prompt("1"), pairs).unwrap()
    }

    proptest! {
        // Each case resamples thrice.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_model_is_better_only_if_the_interval_says_so(
            pairs in prop::collection::vec([0_u16..1000, 0_u16..1000], MIN_WALLETS..80)
        ) {
            let pairs: Vec<[f64; 2]> = pairs.into_iter().map(|pair| pair.map(f64::from)).collect();
            let found = of(&pairs);
            let [low, high] = found.interval;
            let difference = found.model_distance - found.fallback_distance;
            prop_assert!(low <= difference && difference <= high, "{found:?}");
            prop_assert_eq!(&found, &of(&pairs));
            // The same pairs the other way round are the mirror image, up to the resamples' ends.
            let mirror: Vec<[f64; 2]> = pairs.iter().map(|[model, fallback]| [*fallback, *model]).collect();
            let both = (found.standing(), of(&mirror).standing());
            prop_assert_ne!(both, (Standing::Better, Standing::Better));
        }
    }

    #[test]
    fn a_difference_within_the_noise_is_not_better() {
        let noise: Vec<[f64; 2]> =
            (0..40).map(|n| if n % 2 == 0 { [0.0, 300.0] } else { [299.0, 0.0] }).collect();
        assert!(of(&noise).model_distance < of(&noise).fallback_distance);
        assert_eq!(of(&noise).standing(), Standing::NotBetter);
        assert_eq!(of(&[[10.0, 60.0]; 30]).standing(), Standing::Better);
        assert_eq!(of(&[[60.0, 60.0]; 30]).standing(), Standing::NotBetter, "the same is not better");
        assert_eq!(Calibration::of("m", prompt("1"), &[[0.0, 9.0]; 29]), None);
    }

    #[test]
    fn a_calibration_holds_for_its_model_and_its_prompt() {
        let (worse, better) = (of(&[[90.0, 60.0]; 30]), of(&[[10.0, 60.0]; 30]));
        let known = Calibrations(vec![worse.clone(), better]);
        assert_eq!(known.standing("m", &prompt("1")), Standing::Better, "the later one counts");
        assert_eq!(known.standing("n", &prompt("1")), Standing::NotCalibrated);
        assert_eq!(known.standing("m", &prompt("2")), Standing::NotCalibrated);
        assert_eq!(Calibrations(vec![worse]).standing("m", &prompt("1")), Standing::NotBetter);
    }

    #[test]
    fn every_mistake_in_a_file_has_its_line() {
        let row = |nth: usize| {
            format!(
                r#"{{"wallet": {{"address": "0x{nth:040x}", "transactions": []}}, "expected": [0, 100]}}"#
            )
        };
        let good: Vec<String> = (0..30).map(row).collect();
        let file = |line: &str| {
            let lines = [&[row(30), String::new(), line.to_owned()], &good[..]].concat().join("\n");
            wallets("w.jsonl", lines.as_bytes()).map_err(|error| error.to_string())
        };
        let all = file(&row(31)).unwrap();
        assert!(all.len() == 32 && all.iter().all(|one| one.expected == Some(Band { min: 0, max: 100 })));
        assert_eq!(file(&row(30)).unwrap().len(), 31, "a repeated wallet counts once");
        for (line, says) in [
            (r#"{"wallet": {"transactions": []}}"#, "w.jsonl:3:32: $: missing field `expected`"),
            (
                r#"{"wallet": {"transactions": []}, "expected": [9, 8]}"#,
                "w.jsonl:3: $.expected: [9, 8] is no range of scores: 0 <= low <= high <= 1000",
            ),
            (r#"{"wallet": {"transactions": []}, "expected": [0, 1001]}"#, "[0, 1001] is no range"),
            (r#"{"wallet": {"transactions": []}, "expected": [-1, 5]}"#, "[-1, 5] is no range"),
            (r#"{"wallet": {"transactions": []}, "expected": 5}"#, "w.jsonl:3:46: $.expected: invalid type"),
            (r#"{"wallet": {"transactions": []}, "expected": [0, 5], "note": 1}"#, "unknown field `note`"),
            (r#"{"wallet": {"transactions": [], "x": 1}, "expected": [0, 5]}"#, "unknown field `x`"),
            (r#"{"wallet": {}, "expected": [0, 5]}"#, "there is no history"),
            ("{} {}", "w.jsonl:3:2: $: missing field"),
            ("nonsense", "w.jsonl:3:"),
        ] {
            let error = file(line).unwrap_err();
            assert!(error.starts_with("w.jsonl:3") && error.contains(says), "{line}: {error}");
        }
        let few = [&good[..29], &vec![row(0); 30]].concat().join("\n");
        let error = wallets("w.jsonl", few.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("w.jsonl: 29 different wallets: a calibration takes at least 30"),
            "{error}"
        );
    }
}
