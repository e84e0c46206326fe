//! Files of calibrations: from scores to probabilities, by configuration.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Once};

use formwork::config::Defaults;
use formwork_core::{Calibration, Calibrations};
use formwork_eval::{Scored, calibrate};

use crate::exit::Failed;
use crate::stderr::say;
use crate::targets::Opened;

/// The name of the answers that all configurations give together.
pub(crate) const MERGED: &str = "merged";

/// Fits a calibration for each configuration, and writes them. Each has a name, its leaves, the number of answers beside it, and its models.
/// A warning names those that cannot be fitted, which are an error if there are no others, and those that do not order the values.
pub(super) fn write<'a>(
    path: &Path,
    sets: impl Iterator<Item = (&'a str, &'a [Scored], usize, Vec<String>)>,
    has_text: bool,
) -> Result<(), Failed> {
    let (mut calibrations, mut unfit) = (Vec::new(), Vec::new());
    for (name, scored, others, models) in sets {
        let Some(one) = calibrate(name, others, has_text, scored) else {
            unfit.push(reason(name, scored));
            continue;
        };
        let one = Calibration { models, ..one };
        say!(
            "calibrated {name} on {} values of {} documents; error on documents that were not fitted {:.3}",
            one.leaves,
            one.documents,
            one.error
        );
        if let (Some([_, lowest]), Some([_, highest])) = (one.points.first(), one.points.last())
            && lowest >= highest
        {
            say!(
                "warning: the scores of {name} do not order its values: each has the probability {highest:.2}"
            );
        }
        calibrations.push(one);
    }
    if calibrations.is_empty() {
        return Err(Failed::usage(unfit.join("; ")));
    }
    unfit.iter().for_each(|reason| say!("warning: {reason}"));
    let mut text = serde_json::to_string_pretty(&Calibrations::new(calibrations))
        .map_err(|error| Failed::usage(error.to_string()))?;
    text.push('\n');
    fs::write(path, text).map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))
}

/// Returns why no calibration was fitted.
fn reason(name: &str, scored: &[Scored]) -> String {
    let documents = scored.iter().map(|leaf| leaf.document).collect::<HashSet<_>>().len();
    let count = scored.len();
    if count < 50 || documents < 4 {
        return format!(
            "{count} values of {documents} documents are too few to calibrate {name}: at least 50 values of 4 documents are needed"
        );
    }
    let lacking = if scored.iter().any(|leaf| leaf.right) { "wrong" } else { "right" };
    format!("none of the {count} values of {name} is {lacking}, so it cannot be calibrated")
}

/// Reads the calibrations of a file, or else of the configuration's file, for answers of these targets that are each compared with a number
/// of others. A configured file that cannot be used, or has none for them, is a warning, because other commands may use other targets.
pub(crate) fn open(
    opened: &mut Opened,
    file: Option<&Path>,
    name: &str,
    others: usize,
) -> Result<(), Failed> {
    static SAID: Once = Once::new();
    let mut defaults = opened.defaults.clone();
    defaults.calibration = file.map(Path::to_owned).or(defaults.calibration);
    match read(defaults, opened, name, others) {
        Ok(defaults) => opened.defaults = defaults,
        Err(message) if file.is_some() => return Err(Failed::usage(message)),
        Err(message) => SAID.call_once(|| say!("warning: {message}; confidence is a score")),
    }
    Ok(())
}

fn read(defaults: Defaults, opened: &Opened, name: &str, others: usize) -> Result<Defaults, String> {
    let defaults = defaults.with_calibrations(Some(name)).map_err(|error| error.message().to_owned())?;
    let Some(all) = defaults.calibrations.clone() else { return Ok(defaults) };
    // The answers of another model have other probabilities, although the target has the same name.
    let models = opened.models();
    let fits =
        |one: &Calibration| one.models.is_empty() || models.values().all(|model| one.models.contains(model));
    let read =
        Arc::new(Calibrations::new(all.all().iter().filter(|one| fits(one)).cloned().collect()).named(name));
    // An ensemble has one calibration, whatever its targets have by themselves.
    let is_own = |target: &str| {
        read.find(target, others, true).is_some_and(|one| name != MERGED || one.configuration == MERGED)
    };
    if models.keys().any(|target| is_own(target)) {
        return Ok(Defaults { calibrations: Some(read), ..defaults });
    }
    let known = all.all().iter().map(|one| match one.models.as_slice() {
        [] => format!("{} beside {} others", one.configuration, one.others),
        models => format!("{} ({}) beside {} others", one.configuration, models.join(", "), one.others),
    });
    let file = defaults.calibration.as_deref().unwrap_or(Path::new("")).display();
    Err(format!(
        "{file} has no calibration with evidence for {name} beside {others} others; it has {}",
        known.collect::<Vec<_>>().join(", ")
    ))
}
