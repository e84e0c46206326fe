//! The columns of rows that only exports use, in the table of keys and values.

use rusqlite::{Connection, params};

use super::tables::int;

/// The key of the columns of a row in SQL, whose number is `rows.number`. Keys sort as numbers do.
pub(super) const KEY: &str = "printf('columns %012d', rows.number)";

/// Stores the further columns of a row: the text of a JSON object, or an empty text for none.
pub(super) fn set(file: &Connection, number: u64, columns: &str) -> rusqlite::Result<()> {
    if !columns.is_empty() {
        file.prepare_cached("INSERT OR REPLACE INTO batch VALUES (printf('columns %012d', ?1), ?2)")?
            .execute(params![int(number), columns])?;
    }
    Ok(())
}
