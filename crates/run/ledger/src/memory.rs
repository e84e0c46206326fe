//! Spending that cannot be written now: it is kept in memory, and counts as reserved.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use formwork_core::Time;

use crate::{Error, Key, KeyId};

/// The most reservations and charges in memory. Beyond it, spending is not known any more.
const MAX: u64 = 16_384;

/// The amounts in memory by key, and the settlements that are not written.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    amounts: Mutex<HashMap<KeyId, Amounts>>,
    /// Their number, and their sum in millionths of a US dollar: also of those whose first write is still to come.
    unwritten: Mutex<(u64, u64)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Amounts {
    count: u64,
    /// The reservations and costs, in millionths of a US dollar.
    sum: u64,
    /// The reservations in the file whose calls have ended: their costs are part of `sum`.
    released: u64,
}

impl Memory {
    /// Keeps an amount, and returns `None`; or all that is reserved, if the budget of the key does not allow it.
    ///
    /// # Errors
    /// The error of the file, if there is no room for another amount.
    pub(crate) fn reserve(
        &self,
        key: &Key,
        amount: u64,
        now: Time,
        error: Error,
    ) -> Result<Option<u64>, Error> {
        let mut all = self.lock();
        if is_full(&all) {
            return Err(error);
        }
        let amounts = all.entry(key.id).or_default();
        let held = key.held.saturating_sub(amounts.released).saturating_add(amounts.sum);
        let taken = key.spent_in_period(now).saturating_add(held);
        if key.budget.is_some_and(|budget| amount > budget.saturating_sub(taken)) {
            return Ok(Some(held));
        }
        (amounts.count, amounts.sum) = (amounts.count + 1, amounts.sum.saturating_add(amount));
        Ok(None)
    }

    /// Replaces a reserved amount by the actual one.
    pub(crate) fn settle(&self, key: KeyId, reserved: u64, actual: u64) {
        if let Some(amounts) = self.lock().get_mut(&key) {
            amounts.sum = amounts.sum.saturating_sub(reserved).saturating_add(actual);
        }
    }

    /// Keeps the cost of a call whose reservation is in the file, and cannot be settled there.
    pub(crate) fn ended(&self, key: KeyId, reserved: u64, actual: u64) {
        let mut all = self.lock();
        let amounts = all.entry(key).or_default();
        amounts.count += 1;
        amounts.sum = amounts.sum.saturating_add(actual);
        amounts.released = amounts.released.saturating_add(reserved);
    }

    /// Removes a cost that was written, and the reservation in the file that it replaces.
    pub(crate) fn written(&self, key: KeyId, reserved: u64, actual: u64) {
        let mut all = self.lock();
        if let Some(amounts) = all.get_mut(&key) {
            amounts.sum = amounts.sum.saturating_sub(actual);
            amounts.released = amounts.released.saturating_sub(reserved);
            amounts.count = amounts.count.saturating_sub(1);
            if amounts.count == 0 {
                all.remove(&key);
            }
        }
    }

    /// Notes a settlement that is to be written.
    pub(crate) fn settling(&self, actual: u64) {
        let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        *unwritten = (unwritten.0 + 1, unwritten.1.saturating_add(actual));
    }

    /// Notes that a settlement was written.
    pub(crate) fn settled(&self, actual: u64) {
        let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        *unwritten = (unwritten.0.saturating_sub(1), unwritten.1.saturating_sub(actual));
    }

    /// Returns the number of settlements that are not written, and their sum.
    pub(crate) fn unwritten(&self) -> (u64, u64) {
        *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is no room for another amount.
    pub(crate) fn is_full(&self) -> bool {
        is_full(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Amounts>> {
        self.amounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_full(all: &HashMap<KeyId, Amounts>) -> bool {
    all.values().map(|amounts| amounts.count).sum::<u64>() >= MAX
}
