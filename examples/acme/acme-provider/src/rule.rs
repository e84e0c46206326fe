use formwork::core::{Context, CustomRule};
use serde_json::Value;

/// A rule that JSON Schema cannot express: the last digit of a part number is its check digit.
#[derive(Debug)]
pub struct CheckDigit;

/// Returns the check digit of a part number: the last digit of the sum of its digits.
pub fn check_digit(number: &str) -> u32 {
    number.chars().filter_map(|letter| letter.to_digit(10)).sum::<u32>() % 10
}

impl CustomRule for CheckDigit {
    fn name(&self) -> &str {
        "check-digit"
    }

    fn check(&self, value: &Value, _: &[Vec<&Value>], _: &Context<'_>) -> Result<(), String> {
        // The schema rejects other values.
        let Some((at, last)) = value.as_str().and_then(|number| number.char_indices().last()) else {
            return Ok(());
        };
        let number = value.as_str().and_then(|number| number.get(..at)).unwrap_or_default();
        let expected = check_digit(number);
        if last.to_digit(10) == Some(expected) { Ok(()) } else { Err(format!("{number}{expected}")) }
    }
}
