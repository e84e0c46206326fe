use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The worth of the scores of a model, according to a calibration.
///
/// ```
/// use formwork_oracle::calibration::Standing;
///
/// assert_eq!(Standing::default().to_string(), "not calibrated");
/// assert_eq!(serde_json::to_value(Standing::Better)?, "better");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The model was not measured with this version of the prompt.
    #[default]
    NotCalibrated,
    /// The model's scores are nearer to the expected ranges than counting is: the whole interval is below 0.
    Better,
    /// The measurement does not show that the model's scores are nearer than counting.
    NotBetter,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCalibrated => "not calibrated",
            Self::Better => "better than counting",
            Self::NotBetter => "not better than counting",
        })
    }
}
