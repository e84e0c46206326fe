//! Values that satisfied a whole contract, kept for a time.

use std::time::Duration;

use formwork_core::Time;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::insert::number;
use crate::{Error, KeyId, Ledger};

/// Of the size that is allowed, what stays when values have to make room, in percent.
const KEPT: u64 = 90;

/// The number of values after which the size is recomputed, because other processes write as well.
const RECOUNT: usize = 4096;

/// The bytes of a row besides its texts.
const ROW: u64 = 64;

/// A value that is to be cached.
pub(crate) struct Put {
    pub(crate) key: i64,
    pub(crate) digest: String,
    pub(crate) value: String,
    pub(crate) created: Time,
    pub(crate) expires: Time,
}

/// The size of the cached values, as far as this process knows it.
#[derive(Debug, Default)]
pub(crate) struct Size {
    bytes: Option<u64>,
    puts: usize,
}

impl Size {
    /// Writes values; the oldest ones make room.
    pub(crate) fn put(&mut self, connection: &Connection, puts: &[Put], max: u64) -> rusqlite::Result<()> {
        let mut now = Time(0);
        for put in puts {
            let bytes = put.value.len() as u64 + put.digest.len() as u64 + ROW;
            if bytes > max {
                continue;
            }
            now = now.max(put.created);
            connection
                .prepare_cached("INSERT OR REPLACE INTO cache VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
                .execute(params![
                    put.key,
                    put.digest,
                    put.value,
                    number(put.created.0),
                    number(put.expires.0),
                    number(bytes)
                ])?;
            // A replaced value is counted twice until the next count, which only makes that count happen earlier.
            self.bytes = self.bytes.map(|sum| sum + bytes);
        }
        self.puts += puts.len();
        if self.puts >= RECOUNT || self.bytes.is_none_or(|sum| sum > max) {
            (self.bytes, self.puts) = (Some(count(connection)?), 0);
        }
        if self.bytes.is_some_and(|sum| sum > max) {
            connection.execute("DELETE FROM cache WHERE expires <= ?1", [number(now.0)])?;
            let mut sum = count(connection)?;
            if sum > max {
                evict(connection, &mut sum, max / 100 * KEPT)?;
            }
            self.bytes = Some(sum);
        }
        Ok(())
    }
}

fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let sum: i64 = connection.query_row("SELECT coalesce(sum(bytes), 0) FROM cache", [], |row| row.get(0))?;
    Ok(sum.max(0).unsigned_abs())
}

/// Deletes the oldest values until the sum is at most `max`.
fn evict(connection: &Connection, sum: &mut u64, max: u64) -> rusqlite::Result<()> {
    let mut oldest =
        connection.prepare_cached("SELECT rowid, bytes FROM cache ORDER BY created, rowid LIMIT 256")?;
    while *sum > max {
        let rows: Vec<(i64, i64)> =
            oldest.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        if rows.is_empty() {
            break;
        }
        for (row, bytes) in rows {
            if *sum <= max {
                break;
            }
            connection.prepare_cached("DELETE FROM cache WHERE rowid = ?1")?.execute([row])?;
            *sum = sum.saturating_sub(bytes.max(0).unsigned_abs());
        }
    }
    Ok(())
}

/// The cache of validated values. What counts as the same request is the caller's: the digest must cover contract, model,
/// messages and sampling.
impl Ledger {
    /// Returns a value that was cached for this key and digest and has not expired, as it was given. Reads the file.
    ///
    /// # Errors
    /// [`Error::Storage`]; a caller can continue as without a cached value.
    pub fn cache_get(&self, key: Option<KeyId>, digest: &str, now: Time) -> Result<Option<String>, Error> {
        let sql = "SELECT value FROM cache WHERE key = ?1 AND digest = ?2 AND expires > ?3";
        let key = key.map_or(0, |key| key.0);
        self.core().store.read(|connection| {
            connection
                .prepare_cached(sql)?
                .query_row(params![key, digest, number(now.0)], |row| row.get(0))
                .optional()
        })
    }

    /// Caches a value for a key and a digest.
    ///
    /// The call never blocks. The value can be read after its group was committed
    /// ([`Settings::group_delay`](crate::Settings::group_delay)). If the queue is full, the value is dropped and counted. Values
    /// are not redacted.
    pub fn cache_put(
        &self,
        key: Option<KeyId>,
        digest: impl Into<String>,
        value: impl Into<String>,
        ttl: Duration,
        now: Time,
    ) {
        let (digest, value) = (digest.into(), value.into());
        let put =
            Put { key: key.map_or(0, |key| key.0), digest, value, created: now, expires: now.after(ttl) };
        if !self.core().queue.push_put(put, &self.core().settings) {
            self.core().counts().shed_values += 1;
        }
    }
}
