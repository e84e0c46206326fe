//! Reads the transactions of one address as block explorers export them: Etherscan's CSV files and the JSON of
//! `txlist`, which Blockscout and the explorers of other chains share.
//!
//! A row states who called which method of which contract, and the amount in the chain's own coin.
//! [`History::into_wallet`] converts the rows to a [`Wallet`]: the owner's view, in US dollars.

mod csv;
mod json;
mod names;

use std::collections::BTreeMap;

pub(super) use csv::Columns;
pub(super) use json::{Answer, Root, Tx, root};

use super::transaction::check_address;
use super::{Fold, Timestamp, Transaction, Usd, Wallet, WalletError};

/// The maximum number of transactions of an export, which is sorted in memory.
const MAX_ROWS: usize = 1_000_000;

/// One row of an export.
#[derive(Debug, Clone, Default, PartialEq)]
struct Row {
    seconds: u64,
    from: String,
    to: String,
    /// The name of the called method, as the explorer writes it; empty for a plain transfer.
    method: String,
    /// The amount in the chain's coin.
    coins: f64,
    /// The value in US dollars, if the export has it.
    usd: Option<f64>,
    failed: bool,
}

/// The rows of an export, in any order.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Row>);

/// The settings of the reader for exports.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Given<'g> {
    /// The owner's address.
    pub(super) address: Option<&'g str>,
    /// The price of the chain's coin in US dollars.
    pub(super) price: Option<f64>,
}

impl History {
    fn push(&mut self, row: Row) -> Result<(), String> {
        if self.0.len() == MAX_ROWS {
            return Err(format!("there are more than {MAX_ROWS} transactions: give a summary instead"));
        }
        self.0.push(row);
        Ok(())
    }

    /// Converts the rows to a wallet. `notice` receives notices for the user.
    ///
    /// # Errors
    /// [`WalletError`] if no address takes part in all rows, or a value is out of range.
    pub(super) fn into_wallet(
        self,
        given: Given<'_>,
        notice: &mut dyn FnMut(String),
    ) -> Result<Wallet, WalletError> {
        let Self(mut rows) = self;
        let owner = match given.address {
            Some(address) => {
                check_address(address).map_err(WalletError::new)?;
                let all = rows.len();
                rows.retain(|row| [&row.from, &row.to].iter().any(|side| side.eq_ignore_ascii_case(address)));
                if rows.is_empty() && all > 0 {
                    return Err(WalletError::new(format!(
                        "{address} has no part in any of {all} transactions"
                    )));
                }
                if rows.len() < all {
                    let others = all - rows.len();
                    notice(format!("{others} of {all} transactions are those of others, and are left out"));
                }
                Some(address.to_owned())
            }
            None => owner(&rows)?,
        };
        rows.sort_by_key(|row| row.seconds);
        let mut fold = Fold::new();
        let mut unpriced = 0_usize;
        for row in &rows {
            let usd = row.usd.or_else(|| Some(row.coins * given.price?));
            unpriced += usize::from(usd.is_none() && row.coins > 0.0);
            let transaction = row.transaction(owner.as_deref(), usd.unwrap_or(0.0));
            transaction.and_then(|transaction| fold.push(&transaction)).map_err(WalletError::new)?;
        }
        if unpriced > 0 {
            notice(format!(
                "the export has no price of the coin, so the value of {unpriced} transactions counts as 0 dollars: give the \
                 price with `formwork oracle import --usd-per-coin`"
            ));
        }
        let mut wallet = Wallet::new(fold.into_summary())?;
        wallet.address = owner;
        wallet.check()?;
        Ok(wallet)
    }
}

impl Row {
    fn transaction(&self, owner: Option<&str>, usd: f64) -> Result<Transaction, String> {
        let Self { from, to, method, .. } = self;
        let is_owner = |address: &str| owner.is_some_and(|owner| owner.eq_ignore_ascii_case(address));
        let other = if is_owner(from) { to } else { from };
        let known = names::known(to).or_else(|| names::known(from));
        let mut transaction = Transaction::new(Timestamp::from_seconds(self.seconds)?);
        transaction.category = names::category(method);
        transaction.protocol = known.map(|known| known.protocol.to_owned());
        transaction.counterparty = Some(other.clone()).filter(|other| !other.is_empty() && !is_owner(other));
        transaction.value_usd = Usd::from_dollars(usd)?;
        transaction.failed = self.failed;
        transaction.risk_flags = known.and_then(|known| known.risk).into_iter().collect();
        Ok(transaction)
    }
}

/// Returns the address that takes part in every row; of two, the one that sends more of them.
fn owner(rows: &[Row]) -> Result<Option<String>, WalletError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let mut sent: BTreeMap<String, usize> = [&first.from, &first.to]
        .into_iter()
        .filter(|side| !side.is_empty())
        .map(|side| (side.to_ascii_lowercase(), 0))
        .collect();
    for row in rows {
        let (from, to) = (row.from.to_ascii_lowercase(), row.to.to_ascii_lowercase());
        sent.retain(|address, _| *address == from || *address == to);
        if let Some(count) = sent.get_mut(&from) {
            *count += 1;
        }
    }
    let owner = sent.into_iter().max_by_key(|(_, count)| *count);
    let (owner, _) = owner.ok_or_else(|| {
        WalletError::new(
            "no address has a part in all transactions: export those of one address, or name it with `formwork oracle \
             import --address`",
        )
    })?;
    Ok(Some(owner))
}
