//! Amounts of money as people write them.

use crate::Error;

/// Millionths in a dollar.
const MICRO: u64 = 1_000_000;

/// A million dollars: more cannot be reserved or budgeted.
pub(crate) const MAX_AMOUNT: u64 = 1_000_000_000_000;

/// Returns an amount in US dollars (`5`, `0.25`, `$12.50`) in millionths of a dollar, exactly.
///
/// # Errors
/// [`Error::Invalid`] for anything else: signs, exponents, separators, more than six decimals, amounts beyond 2^64.
///
/// ```
/// assert_eq!(formwork_ledger::parse_usd("5.00")?, 5_000_000);
/// # Ok::<(), formwork_ledger::Error>(())
/// ```
pub fn parse(text: &str) -> Result<u64, Error> {
    let wrong = || {
        Error::Invalid(format!(
            "`{text}` is no amount of US dollars: write 5 or 0.25, with at most six decimals"
        ))
    };
    let number = text.strip_prefix('$').unwrap_or(text);
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_dot_last = number.ends_with('.');
    if whole.is_empty() || is_dot_last || decimals.len() > 6 || !are_digits(whole) || !are_digits(decimals) {
        return Err(wrong());
    }
    let dollars: u64 = whole.parse().map_err(|_| wrong())?;
    let millionths: u64 = format!("{decimals:0<6}").parse().map_err(|_| wrong())?;
    dollars.checked_mul(MICRO).and_then(|micro| micro.checked_add(millionths)).ok_or_else(wrong)
}

/// Returns millionths of a dollar as dollars: at least two decimals, and as many more as the amount has.
///
/// ```
/// assert_eq!(formwork_ledger::format_usd(5_000_000), "5.00");
/// assert_eq!(formwork_ledger::format_usd(1_234), "0.001234");
/// ```
pub fn format(micro: u64) -> String {
    let decimals = format!("{:06}", micro % MICRO);
    let digits = decimals.trim_end_matches('0').len().max(2);
    format!("{}.{}", micro / MICRO, &decimals[..digits])
}
