//! Folders of earlier versions, whose answers were in tables of their own.

use formwork_ledger::RecordId;
use rusqlite::{Connection, params};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::tables;
use crate::question::{digest, prompt_of};

/// Moves the answers of a folder into the store, and drops their tables. A new folder has none, and gets its id.
pub(super) fn import(file: &Connection) -> rusqlite::Result<()> {
    let has_tables = "SELECT 1 FROM folder.sqlite_schema WHERE name = 'results'";
    if !file.prepare(has_tables)?.exists([])? {
        return Ok(());
    }
    let batch = RecordId::next().to_string().replace("run_", "batch_");
    let mut inputs = file.prepare("SELECT number, input FROM inputs")?;
    let mut set = file.prepare("UPDATE rows SET digest = ?2 WHERE number = ?1")?;
    let mut rows = inputs.query([])?;
    while let Some(row) = rows.next()? {
        set.execute(params![row.get::<_, i64>(0)?, Sha256::digest(row.get_ref(1)?.as_str()?).as_slice()])?;
    }
    let current = tables::get(file, "contract")?.unwrap_or_default().to_string();
    let mut select = file.prepare("SELECT id, contract FROM contracts")?;
    let contracts =
        select.query_map([], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, String>(1)?)))?;
    let contracts = contracts.chain([Ok((None, current))]);
    for contract in contracts.collect::<Result<Vec<_>, _>>()? {
        of_contract(file, &batch, contract)?;
    }
    file.execute(
        "INSERT INTO spent SELECT ?1, calls, input_tokens, output_tokens, micro_usd, unpriced FROM totals WHERE calls > 0",
        [&batch],
    )?;
    tables::set(file, "id", &Value::from(batch))?;
    for table in ["results", "states", "attempts", "earlier", "contracts"] {
        file.execute_batch(&format!("DROP TABLE folder.{table}"))?;
    }
    for column in ["calls", "input_tokens", "output_tokens", "micro_usd", "unpriced"] {
        file.execute_batch(&format!("ALTER TABLE folder.totals DROP COLUMN {column}"))?;
    }
    Ok(())
}

/// Moves what was made under one contract: one that was replaced has its id, and the last one has the calls as well.
fn of_contract(file: &Connection, batch: &str, (id, text): (Option<i64>, String)) -> rusqlite::Result<()> {
    const INTO: &str = "INSERT INTO answer (batch, row, era, input, target, name, prompt, sampling, sample, contract, planned, call,
        ended, verdict, rule, input_tokens, output_tokens, micro_usd, outcome, line, state)";
    const NO_CALL: &str = "NULL, 0, '', NULL, 0, 0, NULL";
    let contract: Value = serde_json::from_str(&text).unwrap_or_default();
    let shared = "?1, number, era, coalesce(digest, x''), coalesce(json_extract(line, '$.origin.target'), ''), '', ?2, '', 0, ?3";
    let params = params![batch, prompt_of(&contract), digest(&text)];
    if let Some(id) = id {
        let sql = format!(
            "{INTO} SELECT {shared}, 0, {NO_CALL}, iif(json_type(line, '$.value') IS NULL, 2, 1), line, NULL
             FROM earlier JOIN rows USING (number) WHERE contract = {id} ORDER BY earlier.id"
        );
        // The era of a value that was set aside is over.
        return file.execute(&sql.replacen("number, era", "number, era - 1", 1), params).map(|_| ());
    }
    file.execute(
        &format!(
            "{INTO} SELECT ?1, number, folder.attempts.era, coalesce(digest, x''), target, target, ?2, '', 0, ?3, started, attempt,
             ended, result, rule, input_tokens, output_tokens, micro_usd, NULL, NULL, NULL
             FROM folder.attempts JOIN rows USING (number) ORDER BY started"
        ),
        params,
    )?;
    file.execute(
        &format!(
            "{INTO} SELECT {shared}, 0, {NO_CALL}, rows.state, line, NULL FROM results JOIN rows USING (number) ORDER BY number"
        ),
        params,
    )?;
    file.execute(
        &format!(
            "{INTO} SELECT {shared}, 0, {NO_CALL}, NULL, NULL, states.state
             FROM (SELECT number, NULL AS line, state FROM folder.states) AS states JOIN rows USING (number)"
        ),
        params,
    )?;
    file.execute(
        "UPDATE rows SET answer = (SELECT max(id) FROM answer WHERE batch = ?1 AND row = coalesce(leader, number) AND line IS NOT NULL)
         WHERE state > 0",
        [batch],
    )
    .map(|_| ())
}
