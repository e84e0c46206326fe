use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord};
use serde_json::de;

use super::explorer::{self, Answer, Given, History, Root, Tx};
use super::{Document, Fold, Survey, Timestamp, Transaction, Wallet, WalletError, text};

/// Reads wallets from JSON documents, CSV lists of transactions, and exports of block explorers.
///
/// Documents and lists are streamed in linear time. Memory holds a summary, eight bytes per address, and the names of
/// protocols. Exports of explorers are held in memory, because they can be in any order.
///
/// CSV follows RFC 4180, in UTF-8 with a header. The column `time` is required. The columns `category`, `protocol`,
/// `counterparty`, `value_usd`, `failed` (`true` or `false`) and `risk_flags` (separated by `;`) are optional, in any
/// order. An empty field counts as absent. Other columns are ignored, with a notice to
/// [`with_notices`](Self::with_notices).
///
/// # Exports of block explorers
/// Etherscan's CSV files, and the JSON response of explorers to `module=account&action=txlist` or the list in it, are
/// recognised by their columns and members. The owner is the address that takes part in all transactions. Method names
/// become categories, known contracts become protocols, and amounts (in coins, or in wei as text or number) become US
/// dollars by the prices in the export, otherwise by [`price`](Self::price); without a price they count as 0,
/// with a notice.
///
/// ```
/// use formwork_oracle::wallet::Reader;
///
/// let csv = "time,category,value_usd\n2024-02-29T12:00:00Z,swap,120.5\n2024-02-28T12:00:00Z,swap,1\n";
/// let error = Reader::new().csv(csv.as_bytes(), "history.csv").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "history.csv:3: 2024-02-28T12:00:00Z is before the one above, 2024-02-29T12:00:00Z: sort the list by time"
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// The moment after which transactions are rejected (default: they are only compared with the document's own `as_of`).
    pub now: Option<Timestamp>,
    /// The address of wallets without their own (default: none). For an explorer's export it is the owner's address.
    pub address: Option<String>,
    /// The price of the chain's coin in US dollars, for explorers' exports without prices (default: none, amounts count as
    /// 0).
    pub price: Option<f64>,
    /// The survey of wallets without their own (default: none).
    pub survey: Option<Survey>,
    notices: Notices,
}

/// A function that receives notices.
type Notice = dyn Fn(&str) + Send + Sync;

/// The receiver of notices.
#[derive(Clone, Default)]
struct Notices(Option<Arc<Notice>>);

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some" } else { "None" })
    }
}

impl Reader {
    /// Creates a reader without further settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a function that receives notices about the input that are not errors, for example unused columns (default:
    /// notices are dropped).
    #[must_use]
    pub fn with_notices(mut self, notices: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notices = Notices(Some(Arc::new(notices)));
        self
    }

    /// Reads a file: a CSV list of transactions if its name ends in `.csv`, otherwise a JSON document.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the location in the file.
    pub fn file(&self, path: &Path) -> Result<Wallet, WalletError> {
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| WalletError::new(format!("cannot read {name}: {error}")))?;
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            self.csv(file, &name)
        } else {
            self.json(BufReader::new(file), &name)
        }
    }

    /// Reads a JSON document; `name` is its name in errors.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the location.
    pub fn json(&self, mut reader: impl Read, name: &str) -> Result<Wallet, WalletError> {
        // A short document is read whole, because a stream is one character ahead, which makes locations inexact.
        let mut head = Vec::new();
        let read = reader.by_ref().take(SHORT).read_to_end(&mut head);
        read.map_err(|error| WalletError::new(format!("cannot read {name}: {error}")))?;
        let wallet = if (head.len() as u64) < SHORT {
            self.slice(&head)
        } else {
            let root = explorer::root(&head);
            let read = de::IoRead::new(head.chain(reader));
            match root {
                Some(root) => self.exported(root, read),
                None => self.document(read),
            }
        };
        wallet.map_err(|error| error.in_file(name))
    }

    /// Parses a JSON document in memory, without a name in errors.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the location.
    pub fn slice(&self, json: &[u8]) -> Result<Wallet, WalletError> {
        if let Some(root) = explorer::root(json) {
            return self.exported(root, de::SliceRead::new(json));
        }
        // Tracking the path doubles the time, so it is done only for invalid documents.
        match serde_json::from_slice::<Document>(json) {
            Ok(document) => self.finish(Wallet::try_from(document)?),
            Err(_) => self.document(de::SliceRead::new(json)),
        }
    }

    /// Reads a CSV list of transactions; `name` is its name in errors.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the line.
    pub fn csv(&self, reader: impl Read, name: &str) -> Result<Wallet, WalletError> {
        self.rows(reader).and_then(|wallet| self.finish(wallet)).map_err(|error| error.in_file(name))
    }

    /// Parses a survey from a JSON document of its own, for a wallet in CSV.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the location.
    pub fn survey(json: &[u8], name: &str) -> Result<Survey, WalletError> {
        let survey: Survey =
            typed(de::SliceRead::new(json), "$.survey").map_err(|error| error.in_file(name))?;
        survey.check().map_err(|error| error.in_file(name))?;
        Ok(survey)
    }

    fn exported<'de>(&self, root: Root, read: impl de::Read<'de>) -> Result<Wallet, WalletError> {
        self.history(match root {
            Root::List => History::of_root(typed::<Vec<Tx>>(read, "$")?)?,
            Root::Answer => typed::<Answer>(read, "$")?.history()?,
        })
    }

    fn document<'de>(&self, read: impl de::Read<'de>) -> Result<Wallet, WalletError> {
        let document: Document = typed(read, "$")?;
        self.finish(Wallet::try_from(document)?)
    }

    fn rows(&self, reader: impl Read) -> Result<Wallet, WalletError> {
        let mut reader = ReaderBuilder::new().from_reader(reader);
        let header = reader.headers().map_err(broken)?;
        if let Some(columns) = explorer::Columns::of(header) {
            self.unused(columns.unknown(), None);
            let mut history = History::default();
            each(reader, |row| columns.push(row, &mut history))?;
            return self.history(history);
        }
        let (columns, unknown) = Columns::of(header)?;
        self.unused(&unknown, Some(KNOWN));
        let mut fold = Fold::new();
        each(reader, |row| columns.transaction(row).and_then(|transaction| fold.push(&transaction)))?;
        Wallet::new(fold.into_summary())
    }

    /// Converts the export of an explorer to a wallet.
    fn history(&self, history: History) -> Result<Wallet, WalletError> {
        let given = Given { address: self.address.as_deref(), price: self.price };
        let wallet = history.into_wallet(given, &mut |message| self.notice(&message))?;
        self.finish(wallet)
    }

    fn notice(&self, message: &str) {
        if let Notices(Some(notices)) = &self.notices {
            notices(message);
        }
    }

    /// Sends a notice about unused columns, with the names of the known ones.
    fn unused(&self, unknown: &[String], known: Option<&str>) {
        /// The maximum number of names in the notice.
        const MAX: usize = 10;

        if unknown.is_empty() {
            return;
        }
        let mut message =
            format!("columns that are not used: {}", unknown[..unknown.len().min(MAX)].join(", "));
        if let Some(more) = unknown.len().checked_sub(MAX).filter(|more| *more > 0) {
            message.push_str(&format!(" and {more} more"));
        }
        if let Some(known) = known {
            message.push_str(&format!(" (those that are: {known})"));
        }
        self.notice(&message);
    }

    /// Applies the reader's settings, and checks the wallet.
    fn finish(&self, mut wallet: Wallet) -> Result<Wallet, WalletError> {
        let is_complete = (self.address.is_none() || wallet.address.is_some())
            && (self.survey.is_none() || wallet.survey.is_some());
        if !is_complete {
            wallet.address = wallet.address.or_else(|| self.address.clone());
            wallet.survey = wallet.survey.or_else(|| self.survey.clone());
            wallet.check()?;
        }
        if let Some(now) = self.now {
            let dates = [("$.as_of", wallet.as_of), ("$.summary.last", wallet.summary.last)];
            if let Some((path, date)) =
                dates.iter().find_map(|(path, date)| Some((path, (*date)?)).filter(|(_, date)| *date > now))
            {
                let message = format!("{date} is in the future, it is {now}: give what has happened");
                return Err(WalletError::at(*path, message));
            }
        }
        Ok(wallet)
    }
}

/// The maximum number of characters of the document in a message.
const MAX_MESSAGE: usize = 400;
const MAX_PATH: usize = 200;

/// The maximum size in bytes of a document that is read whole.
const SHORT: u64 = 1 << 20;

/// Deserializes a whole document; an error has its location.
fn typed<'de, T: serde::Deserialize<'de>>(read: impl de::Read<'de>, root: &str) -> Result<T, WalletError> {
    let mut json = serde_json::Deserializer::new(read);
    let mut track = serde_path_to_error::Track::new();
    let value = T::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
    let read = value.and_then(|value| json.end().map(|()| value));
    read.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place = format!(" at line {line} column {column}");
        // The parser's word for the beginning of `true`, `false` and `null`.
        let text_of_error = error.to_string().replacen("expected ident", "expected value", 1);
        // serde repeats names of the document verbatim, so they may contain control characters.
        let message = text::plain(text_of_error.strip_suffix(&place).unwrap_or(&text_of_error), MAX_MESSAGE);
        let error = if error.is_data() {
            let path = text::plain(&track.path().to_string(), MAX_PATH);
            let path = match path.as_str() {
                "." => root.to_owned(),
                path if path.starts_with('[') => format!("{root}{path}"),
                path => format!("{root}.{path}"),
            };
            WalletError::at(path, message)
        } else if error.is_io() {
            return WalletError::new(format!("cannot read it: {message}"));
        } else {
            WalletError::new(format!(
                "no JSON: {message} (comments, trailing commas, NaN and Infinity are none)"
            ))
        };
        if line == 0 { error } else { error.on_line(line, column) }
    })
}

/// Reads rows; an error has its line.
fn each(
    mut reader: csv::Reader<impl Read>,
    mut take: impl FnMut(&StringRecord) -> Result<(), String>,
) -> Result<(), WalletError> {
    let mut row = StringRecord::new();
    while reader.read_record(&mut row).map_err(broken)? {
        take(&row).map_err(|message| {
            let line = row.position().map_or(0, csv::Position::line);
            WalletError::new(message).on_line(usize::try_from(line).unwrap_or(usize::MAX), 0)
        })?;
    }
    Ok(())
}

/// Returns the error for a file that the csv crate cannot read.
fn broken(error: csv::Error) -> WalletError {
    let line = error.position().map_or(0, csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, and the header has {expected_len}: fill the row up, or quote its commas")
        }
        csv::ErrorKind::Utf8 { err, .. } => format!("no UTF-8 ({err}): save the file as UTF-8"),
        _ => format!("cannot read it: {error}"),
    };
    let error = WalletError::new(message);
    if line == 0 { error } else { error.on_line(usize::try_from(line).unwrap_or(usize::MAX), 0) }
}

/// The positions of the columns.
#[derive(Debug, Default)]
struct Columns([Option<usize>; 7]);

/// The names of the columns as words.
const KNOWN: &str = "time, category, protocol, counterparty, value_usd, failed and risk_flags";

impl Columns {
    const NAMES: [&str; 7] =
        ["time", "category", "protocol", "counterparty", "value_usd", "failed", "risk_flags"];

    /// Returns the columns, and the names of unknown ones.
    fn of(header: &StringRecord) -> Result<(Self, Vec<String>), WalletError> {
        let (mut columns, mut unknown) = (Self::default(), Vec::new());
        for (place, name) in header.iter().enumerate() {
            let plain = name.trim_start_matches('\u{feff}').trim();
            match Self::NAMES.iter().position(|known| *known == plain) {
                None => unknown.push(text::quoted(plain, 40)),
                Some(known) if columns.0[known].replace(place).is_some() => {
                    let message = format!("column {} is there twice: leave one out", text::quoted(name, 40));
                    return Err(WalletError::new(message).on_line(1, 0));
                }
                Some(_) => {}
            }
        }
        if columns.0[0].is_none() {
            let message = "there is no column `time`: begin with a header such as time,category,value_usd, or give an \
                           explorer's export with its columns UnixTimestamp, From and To";
            return Err(WalletError::new(message).on_line(1, 0));
        }
        Ok((columns, unknown))
    }

    fn transaction(&self, row: &StringRecord) -> Result<Transaction, String> {
        let field = |place: Option<usize>| row.get(place?).map(str::trim).filter(|text| !text.is_empty());
        let [time, category, protocol, counterparty, value_usd, failed, risk_flags] = self.0.map(field);
        let named = |name: &str, message: String| format!("{name}: {message}");
        let time = time.ok_or("time: missing: every transaction has one")?;
        let mut transaction = Transaction::new(time.parse().map_err(|message| named("time", message))?);
        if let Some(text) = category {
            transaction.category = text.parse().map_err(|message| named("category", message))?;
        }
        if let Some(text) = value_usd {
            transaction.value_usd = text.parse().map_err(|message| named("value_usd", message))?;
        }
        transaction.failed = match failed {
            None | Some("false") => false,
            Some("true") => true,
            Some(text) => {
                return Err(format!("failed: {} is neither true nor false", text::quoted(text, 40)));
            }
        };
        for text in risk_flags.into_iter().flat_map(|flags| flags.split(';')) {
            transaction.risk_flags.push(text.trim().parse().map_err(|message| named("risk_flags", message))?);
        }
        transaction.protocol = protocol.map(str::to_owned);
        transaction.counterparty = counterparty.map(str::to_owned);
        Ok(transaction)
    }
}
