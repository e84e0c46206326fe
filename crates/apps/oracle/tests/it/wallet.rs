//! Wallets from files: accepted and rejected ones, and the messages.

use std::io::{self, Read};
use std::path::Path;

use formwork_oracle::wallet::{Reader, Summary, Timestamp, Wallet, WalletError};
use proptest::prelude::*;

fn refused(json: &str) -> WalletError {
    match Wallet::from_json(json.as_bytes()) {
        Ok(wallet) => panic!("{json} was read as {wallet:?}"),
        Err(error) => error,
    }
}

/// A valid summary with this value in place of its own.
fn summary(name: &str, value: &str) -> String {
    let mut all = vec![
        ("transactions", "120"),
        ("failed", "3"),
        ("first", "\"2024-01-01\""),
        ("last", "\"2024-06-01\""),
        ("active_days", "40"),
        ("counterparties", "25"),
        ("categories", r#"{"swap": 80, "nft": 40}"#),
        ("protocols", r#"{"Uniswap": 80}"#),
        ("risk_flags", r#"{"mixer": 2}"#),
        ("volume_usd", "1000.5"),
        ("largest_usd", "100"),
    ];
    all.retain(|(other, _)| *other != name);
    let mut fields: Vec<String> = all.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    if !value.is_empty() {
        fields.push(format!("\"{name}\": {value}"));
    }
    format!("{{\"summary\": {{{}}}}}", fields.join(", "))
}

#[test]
fn each_figure_that_cannot_be_is_refused_at_its_place() {
    Wallet::from_json(summary("balance_usd", "7").as_bytes()).unwrap();
    for (name, value, path, words) in [
        ("transactions", "-5", "$.summary.transactions", "-5 is negative"),
        ("transactions", "1.5", "$.summary.transactions", "whole number"),
        ("transactions", "\"120\"", "$.summary.transactions", "expected a count"),
        ("transactions", "null", "$.summary.transactions", "expected a count"),
        ("transactions", "", "$.summary", "missing field `transactions`"),
        ("transactions", "0", "$.summary.first", "leave it out"),
        ("failed", "121", "$.summary.failed", "too many"),
        ("first", "", "$.summary.first", "say when"),
        ("last", "", "$.summary.last", "say when"),
        ("first", "\"2024-06-02\"", "$.summary.first", "comes first"),
        ("first", "\"2024-02-30\"", "$.summary.first", "no day"),
        ("first", "1704067200000", "$.summary.first", "milliseconds"),
        ("first", "true", "$.summary.first", "expected a moment"),
        ("active_days", "0", "$.summary.active_days", "at least 1"),
        ("active_days", "121", "$.summary.active_days", "too many"),
        ("counterparties", "120001", "$.summary.counterparties", "too many"),
        ("categories", r#"{"swap": 121}"#, "$.summary.categories", "add up to 121"),
        ("categories", r#"{"swap": -1}"#, "$.summary.categories.swap", "-1 is negative"),
        (
            "categories",
            r#"{"gambling": 1}"#,
            "$.summary.categories.gambling",
            "\"gambling\" is unknown: write one of transfer",
        ),
        ("categories", r#"{"swap": 1, "swap": 2}"#, "$.summary.categories", "twice"),
        ("categories", "[]", "$.summary.categories", "expected an object"),
        ("protocols", r#"{"Uni\nswap": 1}"#, "$.summary.protocols", "no name of a protocol"),
        ("protocols", r#"{" ": 1}"#, "$.summary.protocols", "has no name"),
        ("risk_flags", r#"{"mixer": 121}"#, "$.summary.risk_flags.mixer", "too many"),
        ("volume_usd", "-0.01", "$.summary.volume_usd", "negative"),
        ("volume_usd", "1e15", "$.summary.volume_usd", "smallest unit"),
        ("volume_usd", "\"1000\"", "$.summary.volume_usd", "expected an amount"),
        ("largest_usd", "1000.51", "$.summary.largest_usd", "more than `volume_usd`"),
        ("balance", "7", "$.summary.balance", "unknown field `balance`"),
    ] {
        let error = refused(&summary(name, value));
        assert_eq!(error.path(), Some(path), "{name} = {value}: {error}");
        assert!(error.message().contains(words), "{name} = {value}: {error}");
    }
}

#[test]
fn nothing_outside_of_the_schema_is_read() {
    for (json, path, words) in [
        ("{}", Some("$"), "there is no history"),
        (
            r#"{"transactions": [], "summary": {"transactions": 0, "active_days": 0}}"#,
            Some("$.transactions"),
            "one of",
        ),
        (r#"{"transactions": {}}"#, Some("$.transactions"), "expected a list"),
        (r#"{"transactions": [], "note": 1}"#, Some("$.note"), "unknown field `note`"),
        (r#"{"transactions": [], "address": "0x1 2"}"#, Some("$.address"), "no address"),
        (r#"{"transactions": [], "expected": {"min": 2, "max": 1}}"#, Some("$.expected"), "no band"),
        (r#"{"transactions": [], "expected": {"min": 0, "max": 1001}}"#, Some("$.expected"), "no band"),
        (
            r#"{"transactions": [], "survey": {"experience": "god"}}"#,
            Some("$.survey.experience"),
            "unknown variant",
        ),
        (r#"{"transactions": [], "survey": {"uses": ["nft", "nft"]}}"#, Some("$.survey.uses[1]"), "once"),
        (
            r#"{"transactions": [{"time": "2024-01-01", "value_usd": "5"}]}"#,
            Some("$.transactions[0].value_usd"),
            "amount",
        ),
        (r#"{"transactions": [{"value_usd": 5}]}"#, Some("$.transactions[0]"), "missing field `time`"),
        (
            r#"{"transactions": [{"time": "2024-01-01", "hash": "0x1"}]}"#,
            Some("$.transactions[0].hash"),
            "unknown field",
        ),
        (
            r#"{"transactions": [{"time": "2024-01-02"}, {"time": "2024-01-01"}]}"#,
            Some("$.transactions[1]"),
            "sort the list by time",
        ),
        (
            r#"{"as_of": "2023-01-01", "transactions": [{"time": "2024-01-02"}]}"#,
            Some("$.as_of"),
            "in the future",
        ),
        (
            r#"{"as_of": "2023-01-01", "transactions": [], "survey": {"active_since": "2024-01-01"}}"#,
            Some("$.survey.active_since"),
            "in the future",
        ),
        ("[]", Some("$"), ""),
        ("", None, "no JSON"),
        ("{\"transactions\": []", None, "no JSON"),
        ("{\"transactions\": []} {}", None, "no JSON"),
        ("{\"transactions\": NaN}", None, "NaN"),
        ("{\"transactions\": tru}", None, "no JSON: expected value"),
    ] {
        let error = refused(json);
        assert_eq!(error.path(), path, "{json}: {error}");
        assert!(error.message().contains(words), "{json}: {error}");
    }
}

#[test]
fn what_a_stranger_writes_is_cut_where_it_is_repeated() {
    let long = "x\\u001b[31m\\n".repeat(5_000);
    for json in [
        format!(r#"{{"transactions": [], "{long}": 1}}"#),
        format!(r#"{{"summary": {{"transactions": 1, "categories": {{"{long}": 1}}}}}}"#),
        format!(r#"{{"summary": {{"transactions": 1, "protocols": {{"{long}": 1}}}}}}"#),
        format!(r#"{{"transactions": [], "address": "{long}"}}"#),
        format!(r#"{{"transactions": "{long}"}}"#),
        format!(r#"{{"transactions": [{{"time": "{long}"}}]}}"#),
    ] {
        let error = refused(&json).to_string();
        assert!(error.chars().count() < 1_000 && !error.contains(char::is_control), "{error}");
    }
}

#[test]
fn a_survey_has_limits() {
    let survey = |answers: &str| format!(r#"{{"transactions": [], "survey": {{"answers": [{answers}]}}}}"#);
    let answer = |length: usize| format!(r#"{{"question": "?", "answer": "{}"}}"#, "x".repeat(length));
    Wallet::from_json(survey(&vec![answer(10_000); 50].join(", ")).as_bytes()).unwrap();
    assert_eq!(refused(&survey(&answer(10_001))).path(), Some("$.survey.answers[0].answer"));
    let error = refused(&survey(&vec![answer(1); 51].join(", ")));
    assert_eq!(error.to_string(), "$.survey.answers: 51 answers: give at most 50");
}

#[test]
fn errors_name_the_file_and_the_line() {
    let json = "{\n  \"summary\": {\n    \"transactions\": -5\n  }\n}";
    let error = Reader::new().json(json.as_bytes(), "whale.json").unwrap_err();
    assert_eq!(
        error.to_string(),
        "whale.json:3:22: $.summary.transactions: -5 is negative: a count is a whole number from 0"
    );
    let error = Reader::new().file(Path::new("no/such.csv")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read no/such.csv: "), "{error}");
}

#[test]
fn what_is_after_now_is_refused_where_there_is_a_now() {
    let json = r#"{"transactions": [{"time": "2026-10-01"}]}"#;
    let reader = |now: &str| {
        let mut reader = Reader::new();
        reader.now = Some(now.parse().unwrap());
        reader
    };
    reader("2026-10-01").slice(json.as_bytes()).unwrap();
    let error = reader("2026-09-30").slice(json.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("is in the future"), "{error}");
}

#[test]
fn csv_is_read_whatever_its_columns_and_refused_by_line() {
    let good = "\u{feff}value_usd,time,category,failed,risk_flags,protocol,counterparty\r\n\
                12.5,2024-01-01T10:00:00Z,swap,true,mixer;phishing,\"Uni,swap\",0xAB\r\n\
                ,1704200000,,,,,0xab\r\n";
    let good = good.replace("Uni,swap", "Uniswap V3");
    let Summary { transactions, failed, active_days, counterparties, volume_usd, .. } =
        Reader::new().csv(good.as_bytes(), "a.csv").unwrap().summary;
    assert_eq!((transactions, failed, active_days, counterparties, volume_usd.cents()), (2, 1, 2, 1, 1250));
    for (csv, error) in [
        ("", "a.csv:1: there is no column `time`"),
        ("category\nswap\n", "a.csv:1: there is no column `time`"),
        ("time,time\n", "a.csv:1: column \"time\" is there twice"),
        ("time\n2024-01-01\nsoon\n", "a.csv:3: time: \"soon\" is no moment"),
        ("time,value_usd\n2024-01-01,NaN\n", "a.csv:2: value_usd: NaN is no amount"),
        ("time,value_usd\n2024-01-01,-1\n", "a.csv:2: value_usd: -1 is negative"),
        ("time,value_usd\n2024-01-01\n", "a.csv:2: 1 fields, and the header has 2"),
        ("time,failed\n2024-01-01,maybe\n", "a.csv:2: failed: \"maybe\" is neither true nor false"),
        (
            "time,category\n2024-01-01,gambling\n",
            "a.csv:2: category: \"gambling\" is unknown: write one of transfer",
        ),
        ("time,risk_flags\n2024-01-01,mixer;bad\n", "a.csv:2: risk_flags: \"bad\" is unknown"),
        ("time,category\n,swap\n", "a.csv:2: time: missing"),
        ("time,counterparty\n2024-01-01,\"a b\"\n", "a.csv:2: \"a b\" is no address"),
        ("time,protocol\n2024-01-01,\"a\nb\"\n2024-01-01,c\n", "a.csv:2: \"a\\nb\" is no name"),
        ("time\n2024-01-02\n2024-01-01\n", "a.csv:3: 2024-01-01T00:00:00Z is before the one above"),
    ] {
        let message = Reader::new().csv(csv.as_bytes(), "a.csv").unwrap_err().to_string();
        assert!(message.starts_with(error), "{csv:?}: {message}");
    }
    let latin = [b"time,protocol\n2024-01-01,caf".as_slice(), &[0xe9], b"\n"].concat();
    let message = Reader::new().csv(latin.as_slice(), "a.csv").unwrap_err().to_string();
    assert!(message.starts_with("a.csv:2: no UTF-8"), "{message}");
}

#[test]
fn the_same_wallet_has_the_same_bytes_however_it_is_written() {
    let list = r#"{"transactions": [
        {"time": "2024-01-01T23:00:00-01:00", "category": "swap", "value_usd": 10, "counterparty": "0xAA"},
        {"time": 1704200000, "category": "nft", "value_usd": 2.50, "counterparty": "0xaa", "failed": true}]}"#;
    let figures = r#"{"expected": {"min": 1, "max": 2}, "as_of": 1704200000, "summary": {
        "volume_usd": 1.25e1, "largest_usd": 10.0, "categories": {"nft": 1, "swap": 1.0}, "active_days": 1, "failed": 1,
        "counterparties": 1, "last": "2024-01-02T12:53:20Z", "first": "2024-01-02", "transactions": 2}}"#;
    let csv = "time,category,value_usd,counterparty,failed\n2024-01-02T00:00:00Z,swap,10,0xaa,\n1704200000,nft,2.5,0xaa,true\n";
    let list = Wallet::from_json(list.as_bytes()).unwrap();
    let figures = Wallet::from_json(figures.as_bytes()).unwrap();
    let csv = Reader::new().csv(csv.as_bytes(), "a.csv").unwrap();
    assert_eq!(String::from_utf8(list.canonical()).unwrap(), String::from_utf8(figures.canonical()).unwrap());
    assert_eq!((list.hash(), csv.hash()), (figures.hash(), figures.hash()));
    assert_eq!(list.hash().len(), 64);
    let later = Wallet { as_of: "2025-01-01".parse().ok(), ..list.clone() };
    assert_ne!(later.hash(), list.hash(), "it is older then");
}

/// Transactions that are generated while they are read.
struct Endless {
    head: &'static str,
    tail: &'static str,
    row: fn(u64) -> String,
    rows: std::ops::Range<u64>,
    left: io::Cursor<Vec<u8>>,
    state: u8,
}

impl Endless {
    fn new(head: &'static str, row: fn(u64) -> String, tail: &'static str, rows: u64) -> Self {
        Self { head, tail, row, rows: 0..rows, left: io::Cursor::default(), state: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.left.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let next = match self.state {
                0 => {
                    self.state = 1;
                    self.head.to_owned()
                }
                1 => match self.rows.next() {
                    Some(row) => (self.row)(row),
                    None => {
                        self.state = 2;
                        self.tail.to_owned()
                    }
                },
                _ => return Ok(0),
            };
            self.left = io::Cursor::new(next.into_bytes());
        }
    }
}

/// Returns the peak memory of this process in bytes, on systems that report it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

const MILLION: u64 = 1_000_000;

/// Runs alone in its own process, because the memory of other tests would count.
const ALONE: &str = "FORMWORK_ORACLE_MILLION";

#[test]
fn a_million_transactions_are_folded_without_being_kept() {
    if std::env::var_os(ALONE).is_none() {
        let name = "wallet::a_million_transactions_are_folded_without_being_kept";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args([name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let row = |row: u64| format!("{},swap,Uniswap,0x{row:040x},1.5\n", 1_600_000_000 + row * 60);
    let before = peak();
    let head = "time,category,protocol,counterparty,value_usd\n";
    let wallet = Reader::new().csv(Endless::new(head, row, "", MILLION), "a.csv").unwrap();
    assert_eq!((wallet.summary.transactions, wallet.summary.counterparties), (MILLION, MILLION));
    assert_eq!(wallet.summary.volume_usd.cents(), 150 * MILLION);
    if let (Some(before), Some(after)) = (before, peak()) {
        // The text takes 80 MB; a million addresses alone take 19 MB.
        assert!(after - before < 40 << 20, "{} MB more", (after - before) >> 20);
    }
}

#[test]
fn the_time_of_a_list_grows_with_its_length() {
    let time = |rows: u64| {
        let row = |row: u64| format!("{},swap,Uniswap,0x{row:040x},1.5\n", 1_600_000_000 + row * 60);
        let start = std::time::Instant::now();
        let list = Endless::new("time,category,protocol,counterparty,value_usd\n", row, "", rows);
        Reader::new().csv(list, "a.csv").unwrap();
        start.elapsed()
    };
    time(1_000);
    let (short, long) = (time(10_000), time(100_000));
    assert!(long < short * 40, "{short:?} and ten times as much {long:?}");
}

#[test]
fn a_long_json_list_is_folded_too() {
    let row = |row: u64| {
        let comma = if row == 0 { "" } else { "," };
        format!(r#"{comma}{{"time": {}, "category": "swap", "value_usd": 1.5}}"#, 1_600_000_000 + row * 60)
    };
    let list = Endless::new("{\"transactions\": [", row, "]}", MILLION / 10);
    let wallet = Reader::new().json(io::BufReader::new(list), "a.json").unwrap();
    assert_eq!(wallet.summary.transactions, MILLION / 10);
    let errors = |row: u64| {
        let comma = if row == 0 { "" } else { "," };
        format!(r#"{comma}{{"time": {}}}"#, 1_600_000_000 - row / 5_000)
    };
    let list = Endless::new("{\"transactions\": [", errors, "]}", MILLION);
    let error = Reader::new().json(io::BufReader::new(list), "a.json").unwrap_err();
    assert_eq!(error.path(), Some("$.transactions[5000]"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Wallet::from_json(&bytes);
        let _ = Reader::new().csv(bytes.as_slice(), "a.csv");
        let csv = [b"time,category,value_usd\n".as_slice(), &bytes].concat();
        let _ = Reader::new().csv(csv.as_slice(), "a.csv");
    }

    #[test]
    fn a_clock_and_a_timestamp_agree(milliseconds in 1_230_768_000_000_u64..7_258_118_400_000) {
        let stamp = Timestamp::try_from(formwork_core::Time(milliseconds)).unwrap();
        prop_assert_eq!(stamp.seconds(), milliseconds / 1000);
    }
}
