//! Writes values into the cache and keeps its size.

use std::sync::Arc;

use formwork_core::Time;
use rusqlite::{Connection, params};

use crate::insert::number;
use crate::queue::Put;

/// Of the size that is allowed, what stays when values have to make room, in percent.
const KEPT: u64 = 90;

/// The number of values after which the size is recomputed, because other processes write as well.
const RECOUNT: usize = 4096;

/// The bytes of a row besides its texts.
const ROW: u64 = 64;

/// Deletes the oldest values, as many as it takes for the sum of the others to be at most ?1.
const EVICT: &str = "DELETE FROM cache WHERE rowid IN (SELECT rowid FROM
    (SELECT rowid, sum(bytes) OVER (ORDER BY created DESC, rowid DESC ROWS UNBOUNDED PRECEDING) AS total FROM cache)
    WHERE total > ?1)";

/// The size of the cached values, as far as this process knows it.
#[derive(Debug, Default)]
pub(crate) struct Size {
    bytes: Option<u64>,
    puts: usize,
}

impl Size {
    /// Writes values; the oldest ones make room.
    pub(crate) fn put(
        &mut self,
        connection: &Connection,
        puts: &[Arc<Put>],
        max: u64,
    ) -> rusqlite::Result<()> {
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
            if count(connection)? > max {
                connection.execute(EVICT, [number(max / 100 * KEPT)])?;
            }
            self.bytes = Some(count(connection)?);
        }
        Ok(())
    }
}

fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let sum: i64 = connection.query_row("SELECT coalesce(sum(bytes), 0) FROM cache", [], |row| row.get(0))?;
    Ok(sum.max(0).unsigned_abs())
}
