//! Files of calibrations: from scores to probabilities, by configuration.

use std::fs;
use std::path::Path;

use formwork_eval::{Calibration, Scored};
use serde::{Deserialize, Serialize};

use crate::exit::Failed;
use crate::files;
use crate::stderr::say;

/// The name of the answers that all configurations give together.
pub(crate) const MERGED: &str = "merged";

/// A file of calibrations.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    calibrations: Vec<Calibration>,
}

/// Fits a calibration for each configuration, and writes them. Each has a name, its leaves, and the number of answers beside it.
pub(super) fn write<'a>(
    path: &Path,
    sets: impl Iterator<Item = (&'a str, &'a [Scored], usize)>,
    has_text: bool,
) -> Result<(), Failed> {
    let mut calibrations = Vec::new();
    for (name, scored, others) in sets {
        let Some(one) = Calibration::fit(name, others, has_text, scored) else {
            return Err(Failed::usage(format!(
                "{} values are too few to calibrate {name}: at least 50 values of 4 documents are needed, and some of them wrong",
                scored.len()
            )));
        };
        say!(
            "calibrated {name} on {} values of {} documents; error on documents that were not fitted {:.3}",
            one.leaves,
            one.documents,
            one.error
        );
        calibrations.push(one);
    }
    let mut text = serde_json::to_string_pretty(&Written { calibrations })
        .map_err(|error| Failed::usage(error.to_string()))?;
    text.push('\n');
    fs::write(path, text).map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))
}

/// Reads the calibration of a configuration for scores with the evidence in the input.
pub(crate) fn read(path: &Path, configuration: &str, others: usize) -> Result<Calibration, Failed> {
    let name = files::name(path);
    let written: Written = serde_json::from_slice(&files::bytes(path)?).map_err(|error| {
        Failed::usage(format!("{name} is no file of `formwork eval --calibrate`: {error}"))
    })?;
    let known: Vec<String> = written
        .calibrations
        .iter()
        .map(|one| format!("{} beside {} others", one.configuration, one.others))
        .collect();
    let fits = |one: &Calibration| one.configuration == configuration && one.others == others && one.evidence;
    written.calibrations.into_iter().find(fits).ok_or_else(|| {
        Failed::usage(format!(
            "{name} has no calibration with evidence for {configuration} beside {others} others; it has {}",
            known.join(", ")
        ))
    })
}
