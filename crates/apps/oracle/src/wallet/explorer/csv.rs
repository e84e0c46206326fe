use csv::StringRecord;

use super::super::text;
use super::{History, Row};

/// The positions of the columns of an export. Names of columns differ by age and chain: `Value_IN(ETH)`,
/// `Value_IN(MATIC)`.
#[derive(Debug, Default)]
pub(in super::super) struct Columns {
    seconds: usize,
    from: usize,
    to: usize,
    contract: Option<usize>,
    value: Option<usize>,
    value_in: Option<usize>,
    value_out: Option<usize>,
    /// The column with the value in US dollars.
    usd: Option<usize>,
    /// The column with the price of the coin at the time, in US dollars.
    price: Option<usize>,
    status: Option<usize>,
    error: Option<usize>,
    method: Option<usize>,
    /// The names of unused columns, as in the file.
    unknown: Vec<String>,
}

impl Columns {
    /// Finds the columns of an export; `None` if the header belongs to another format.
    pub(in super::super) fn of(header: &StringRecord) -> Option<Self> {
        let mut columns = Self::default();
        let (mut seconds, mut from, mut to) = (None, None, None);
        for (place, name) in header.iter().enumerate() {
            let plain = plain(name);
            let column = match plain.as_str() {
                "unixtimestamp" | "timestamp" => &mut seconds,
                "from" | "fromaddress" => &mut from,
                "to" | "toaddress" => &mut to,
                "contractaddress" => &mut columns.contract,
                "status" => &mut columns.status,
                "errcode" => &mut columns.error,
                "method" => &mut columns.method,
                "value" => &mut columns.value,
                "usdvaluedayoftx" => &mut columns.usd,
                name if name.starts_with("valuein") => &mut columns.value_in,
                name if name.starts_with("valueout") => &mut columns.value_out,
                name if name.starts_with("historical") => &mut columns.price,
                // The value at the time of the export.
                name if name.starts_with("currentvalue") && columns.usd.is_none() => &mut columns.usd,
                // These columns are known, and not needed: fees, positions in the chain, and the like.
                "transactionhash" | "txhash" | "blockno" | "blocknumber" | "datetime" | "tokenvalue"
                | "tokenname" | "tokensymbol" | "privatenote" | "chainid" | "chain" => continue,
                name if name.starts_with("txnfee") || name.starts_with("datetime") => continue,
                _ => {
                    columns.unknown.push(text::quoted(name, 40));
                    continue;
                }
            };
            // The first of several matching columns counts.
            column.get_or_insert(place);
        }
        (columns.seconds, columns.from, columns.to) = (seconds?, from?, to?);
        Some(columns)
    }

    /// Returns the quoted names of unused columns.
    pub(in super::super) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A message about the first field that cannot be read.
    pub(in super::super) fn push(&self, row: &StringRecord, history: &mut History) -> Result<(), String> {
        let field = |place: Option<usize>| place.and_then(|place| row.get(place)).unwrap_or_default().trim();
        let number = |name: &str, place: Option<usize>| {
            amount(field(place)).map_err(|error| format!("{name}: {error}"))
        };
        let seconds = field(Some(self.seconds));
        let seconds = seconds
            .parse()
            .map_err(|_| format!("UnixTimestamp: {} is no number of seconds", text::quoted(seconds, 40)))?;
        let moved = [number("Value_IN", self.value_in)?, number("Value_OUT", self.value_out)?];
        let coins = match number("Value", self.value)? {
            Some(coins) => coins,
            None => moved.into_iter().flatten().sum(),
        };
        let at_the_time = number("Historical Price", self.price)?.map(|price| coins * price);
        let usd = match at_the_time {
            Some(usd) => Some(usd),
            None => number("CurrentValue", self.usd)?,
        };
        let to = [field(Some(self.to)), field(self.contract)].into_iter().find(|to| !to.is_empty());
        let status = field(self.status).to_ascii_lowercase();
        history.push(Row {
            seconds,
            from: field(Some(self.from)).to_owned(),
            to: to.unwrap_or_default().to_owned(),
            method: field(self.method).to_owned(),
            coins,
            usd,
            failed: status.starts_with("error")
                || status.starts_with("fail")
                || !field(self.error).is_empty(),
        })
    }
}

/// Returns the name of a column in lower case, without brackets and their contents, spaces and marks.
fn plain(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default();
    name.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect::<String>().to_ascii_lowercase()
}

/// Parses a number in the notation of explorers: `0.5`, `1,234.5`, `$12`. An empty field, `N/A` and `-` are `None`.
fn amount(text: &str) -> Result<Option<f64>, String> {
    let digits: String = text.chars().filter(|letter| !matches!(letter, '$' | ',' | ' ')).collect();
    if digits.is_empty() || digits == "-" || digits.eq_ignore_ascii_case("n/a") {
        return Ok(None);
    }
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.map(Some).ok_or_else(|| format!("{} is no amount", text::quoted(text, 40)))
}
