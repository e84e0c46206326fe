//! The end of a reservation in the file.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::insert::number;

/// Replaces a reservation in the file by the actual cost, unless that was done before.
pub(crate) fn settle(connection: &Connection, id: i64, actual: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE spending SET actual = ?2 WHERE id = ?1 AND actual IS NULL RETURNING key, reserved";
    let settled: Option<(i64, i64)> = connection
        .prepare_cached(sql)?
        .query_row(params![id, number(actual)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((key, reserved)) = settled {
        connection
            .prepare_cached("UPDATE key SET held = held - ?2, spent = spent + ?3 WHERE id = ?1")?
            .execute(params![key, reserved, number(actual)])?;
    }
    Ok(())
}
