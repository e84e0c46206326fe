use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Unexpected, Visitor};

use super::super::scalar::scalar;
use super::super::{WalletError, text};
use super::{History, Row};

/// The number of wei in one coin.
const WEI: f64 = 1e18;

/// The root of an explorer's JSON.
pub(in super::super) enum Root {
    List,
    Answer,
}

/// Returns the root of a JSON document that starts like the response of an explorer: with a list, or with a member that
/// wallets do not have.
pub(in super::super) fn root(head: &[u8]) -> Option<Root> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let rest = match head.split_first()? {
        (b'[', _) => return Some(Root::List),
        (b'{', rest) => rest.trim_ascii_start().strip_prefix(b"\"")?,
        _ => return None,
    };
    let names = ["status", "message", "result", "jsonrpc"];
    names.iter().any(|name| rest.starts_with(name.as_bytes())).then_some(Root::Answer)
}

/// The response of an explorer to `module=account&action=txlist`.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Answer {
    /// The status; `NOTOK` for an error.
    #[serde(default)]
    message: Text,
    result: Outcome,
}

/// The list of transactions, or a message in its place.
#[derive(Debug)]
enum Outcome {
    List(Vec<Tx>),
    Said(String),
}

/// A transaction. Other members, such as fees and hashes, are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Tx {
    time_stamp: Text,
    from: Text,
    #[serde(default)]
    to: Text,
    #[serde(default)]
    value: Text,
    #[serde(default)]
    is_error: Text,
    #[serde(default, rename = "txreceipt_status")]
    receipt: Text,
    #[serde(default)]
    contract_address: Text,
    #[serde(default)]
    function_name: Text,
    #[serde(default)]
    method_id: Text,
    #[serde(default)]
    input: Text,
    /// The decimals of a token. Their presence marks a token transfer, whose value is not in the chain's coin.
    #[serde(default, rename = "tokenDecimal")]
    decimals: Option<Text>,
}

impl Answer {
    /// Returns the transactions.
    ///
    /// # Errors
    /// [`WalletError`] for an error response, and for a value that cannot be read, with its location.
    pub(in super::super) fn history(self) -> Result<History, WalletError> {
        match self.result {
            Outcome::List(list) => History::of(list, "$.result"),
            Outcome::Said(result) => {
                let (result, message) = (text::quoted(&result, 200), text::plain(&self.message.0, 40));
                Err(WalletError::at("$.result", format!("the explorer answered {message}: {result}")))
            }
        }
    }
}

impl History {
    /// Returns the transactions of a list at the root of a document.
    ///
    /// # Errors
    /// [`WalletError`] for an empty list, and for a value that cannot be read, with its location.
    pub(in super::super) fn of_root(list: Vec<Tx>) -> Result<Self, WalletError> {
        if list.is_empty() {
            let message =
                "an empty list is no wallet: one that never did anything has `{\"transactions\": []}`";
            return Err(WalletError::at("$", message));
        }
        Self::of(list, "$")
    }

    fn of(list: Vec<Tx>, root: &str) -> Result<Self, WalletError> {
        let mut history = Self::default();
        for (index, tx) in list.into_iter().enumerate() {
            let pushed = tx.row().and_then(|row| history.push(row));
            pushed.map_err(|message| WalletError::at(format!("{root}[{index}]"), message))?;
        }
        Ok(history)
    }
}

impl Tx {
    fn row(self) -> Result<Row, String> {
        let Text(seconds) = self.time_stamp;
        let seconds = seconds
            .parse()
            .map_err(|_| format!("timeStamp: {} is no number of seconds", text::quoted(&seconds, 40)))?;
        let Text(value) = self.value;
        let wei = match (self.decimals, value.strip_prefix("0x")) {
            // The amount of a token has no known value in dollars.
            (Some(_), _) => Some(0.0),
            (None, _) if value.is_empty() => Some(0.0),
            (None, Some(digits)) => u128::from_str_radix(digits, 16).ok().map(|wei| wei as f64),
            (None, None) => value.parse().ok().filter(|wei: &f64| wei.is_finite() && *wei >= 0.0),
        };
        let wei = wei.ok_or_else(|| format!("value: {} is no number of wei", text::quoted(&value, 40)))?;
        let to = [self.to, self.contract_address].into_iter().find(|Text(to)| !to.is_empty());
        let called = [self.function_name, self.method_id, self.input].into_iter();
        let method = called.map(|Text(name)| name).find(|name| !name.is_empty() && name != "deprecated");
        Ok(Row {
            seconds,
            from: self.from.0,
            to: to.unwrap_or_default().0,
            // The names of the arguments identify an airdrop among methods called `claim`.
            method: method.map(|method| text::plain(&method, 200)).unwrap_or_default(),
            coins: wei / WEI,
            usd: None,
            failed: self.is_error.0 == "1" || self.receipt.0 == "0",
        })
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Outcome;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of transactions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Outcome, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Outcome::List)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Outcome, E> {
                Ok(Outcome::Said(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A text, or a number or boolean in its place; empty for `null`. Explorers disagree about the types.
#[derive(Debug, Default)]
pub(in super::super) struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a text or a number", |found| {
            Some(Ok(Self(match found {
                Unexpected::Str(text) => text.trim().to_owned(),
                Unexpected::Unsigned(number) => number.to_string(),
                Unexpected::Float(number) => number.to_string(),
                Unexpected::Bool(is) => u8::from(is).to_string(),
                Unexpected::Unit => String::new(),
                _ => return None,
            })))
        })
    }
}
