use formwork_json::Rounded;

use crate::{Report, Stage, Violation, Warning, WarningKind};

/// Returns the effects of numbers that a value does not hold exactly: a violation of the rule `precision` for each integer and
/// each number beyond the range of a double, and a warning for each rounded fraction. Each list has at most [`Report::CAP`]
/// numbers, and the last warning the count of the others. A failure counts the other violations.
///
/// ```
/// use formwork_core::{WarningKind, precision};
///
/// let text = r#"{"id": 123456789012345678901, "share": 0.10000000000000000001}"#;
/// let (violations, warnings) = precision(&formwork_json::rounded(text));
/// assert_eq!(violations[0].path.to_string(), "$.id");
/// assert_eq!(warnings[0].kind, WarningKind::Rounded);
/// assert_eq!(warnings[0].message, "the number 0.10000000000000000001 was rounded to 0.1");
/// ```
pub fn precision(rounded: &[Rounded]) -> (Vec<Violation>, Vec<Warning>) {
    let (tolerable, refused): (Vec<_>, Vec<_>) = rounded.iter().partition(|number| number.is_tolerable());
    let violations = refused.into_iter().take(Report::CAP).map(Violation::from);
    let left_out = tolerable.len().saturating_sub(Report::CAP);
    let others = (left_out > 0)
        .then(|| Warning::new(WarningKind::Rounded, format!("{left_out} other numbers were rounded, too")));
    let warnings = tolerable.into_iter().take(Report::CAP).map(Warning::from);
    (violations.collect(), warnings.chain(others).collect())
}

/// The rule of the violation for a number that cannot be kept.
pub(crate) const PRECISION: &str = "precision";

/// A violation of the rule `precision`.
impl From<&Rounded> for Violation {
    fn from(number: &Rounded) -> Self {
        let expected = match number.kept() {
            Some(_) => format!("an integer from {} to {}, without fraction and exponent", i64::MIN, u64::MAX),
            None => format!("a number of at most {:e}", f64::MAX),
        };
        Self::new(number.path.clone(), PRECISION, Stage::Read)
            .with_expected(expected)
            .with_found(number.text.as_str())
    }
}

/// A warning of the kind [`WarningKind::Rounded`].
impl From<&Rounded> for Warning {
    fn from(number: &Rounded) -> Self {
        Self::new(WarningKind::Rounded, number.detail()).at(number.path.clone())
    }
}
