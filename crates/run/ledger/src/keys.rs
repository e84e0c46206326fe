//! API keys: who may ask, for how much, until when.
//!
//! A key is 256 random bits. The file has its SHA-256 alone: without the secret it is of no use, and because nobody can
//! guess 256 bits, a slow hash for passwords would only cost time. The lookup is by that hash in an index. How long it takes depends on the
//! hash of what was presented and not on the secret, so comparing in constant time would protect nothing.

use formwork_core::Time;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::insert::{amount, number};
use crate::key::{Key, KeyError, KeyId, KeyRole, NewKey, PREFIX, Secret, hash};
use crate::usd::{self, MAX_AMOUNT};
use crate::{Error, Ledger, Period};

const COLUMNS: &str = "id, name, hint, role, budget, spent, held, rpm, models, created, expires, revoked, period, period_start, \
    spent_before, tpm, max_open";

fn key(row: &Row<'_>) -> rusqlite::Result<Key> {
    let count = |column| amount(row, column);
    let models: Option<String> = row.get(8)?;
    let period: Option<String> = row.get(12)?;
    Ok(Key {
        id: KeyId(row.get(0)?),
        name: row.get(1)?,
        hint: row.get(2)?,
        role: if row.get::<_, String>(3)? == KeyRole::Admin.name() {
            KeyRole::Admin
        } else {
            KeyRole::Client
        },
        budget: count(4)?,
        spent: count(5)?.unwrap_or_default(),
        held: count(6)?.unwrap_or_default(),
        rpm: row.get(7)?,
        models: models.and_then(|models| serde_json::from_str(&models).ok()).unwrap_or_default(),
        created: Time(count(9)?.unwrap_or_default()),
        expires: count(10)?.map(Time),
        revoked: count(11)?.map(Time),
        period: period.and_then(|name| Period::from_name(&name)),
        period_start: Time(count(13)?.unwrap_or_default()),
        spent_before: count(14)?.unwrap_or_default(),
        tpm: row.get(15)?,
        max_open: row.get(16)?,
    })
}

/// Returns the key with this value in a column.
fn find(connection: &Connection, column: &str, value: impl rusqlite::ToSql) -> rusqlite::Result<Option<Key>> {
    let sql = format!("SELECT {COLUMNS} FROM key WHERE {column} = ?1");
    connection.prepare_cached(&sql)?.query_row([value], key).optional()
}

/// API keys. These methods block until the write is durable; call them on a blocking thread in a service.
impl Ledger {
    /// Adds a key and returns it with its secret, which the ledger does not store.
    ///
    /// # Errors
    /// [`Error::KeyExists`], [`Error::Invalid`] for a name or a limit that cannot be used, [`Error::Storage`].
    pub fn add_key(&self, new: NewKey, now: Time) -> Result<(Key, Secret), Error> {
        check(&new)?;
        let secret = Secret::random()?;
        let (name, hint, hashed) = (new.name.clone(), secret.hint(), hash(secret.reveal()));
        let models = (!new.models.is_empty()).then(|| serde_json::json!(new.models).to_string());
        let added = self.key_job(move |connection| {
            let rows = connection.execute(
                "INSERT INTO key (name, hash, hint, role, budget, rpm, models, created, expires, period, tpm, max_open)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (name) DO NOTHING",
                params![
                    new.name,
                    hashed,
                    hint,
                    new.role.name(),
                    new.budget.map(number),
                    new.rpm,
                    models,
                    number(now.0),
                    new.expires.map(|expires| number(expires.0)),
                    new.period.map(Period::name),
                    new.tpm,
                    new.max_open,
                ],
            )?;
            if rows == 0 { Ok(None) } else { find(connection, "name", &new.name) }
        });
        match added? {
            Some(key) => Ok((key, secret)),
            None => Err(Error::KeyExists(name)),
        }
    }

    /// Returns all keys, revoked ones included, in the order in which they were added.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn keys(&self) -> Result<Vec<Key>, Error> {
        self.core().store.read(|connection| {
            let mut rows = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM key ORDER BY id"))?;
            rows.query_map([], key)?.collect()
        })
    }

    /// Returns the key with this name.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Storage`], [`Error::Replaced`].
    pub fn key(&self, name: &str) -> Result<Key, Error> {
        self.core().in_place()?;
        self.core()
            .store
            .read(|connection| find(connection, "name", name))?
            .ok_or_else(|| self.no_such_key(name))
    }

    /// Returns whether the ledger has any key, revoked ones included. A service without keys may be open to this machine. That
    /// there is none is remembered for a second, so the first key of another process may be noticed that late; a key that this
    /// process adds counts at once.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Replaced`].
    pub fn has_keys(&self, now: Time) -> Result<bool, Error> {
        let (known, store) = (&self.core().known, &self.core().store);
        if let Some(has_keys) = known.has_keys(now) {
            return Ok(has_keys);
        }
        self.core().in_place()?;
        let changes = known.changes();
        let sql = "SELECT EXISTS (SELECT 1 FROM key)";
        let has_keys =
            store.read(|connection| connection.prepare_cached(sql)?.query_row([], |row| row.get(0)))?;
        known.put_has_keys(has_keys, now, changes);
        Ok(has_keys)
    }

    /// Ends a key for good. Its runs and its spending stay. Revoking again changes nothing.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Storage`].
    pub fn revoke_key(&self, name: &str, now: Time) -> Result<Key, Error> {
        let key_name = name.to_owned();
        let revoked = self.key_job(move |connection| {
            let sql = "UPDATE key SET revoked = coalesce(revoked, ?2) WHERE name = ?1";
            connection.execute(sql, params![key_name, number(now.0)])?;
            find(connection, "name", &key_name)
        });
        revoked?.ok_or_else(|| self.no_such_key(name))
    }

    /// Gives a key a new secret; the old one ends at once. Limits, spending and runs stay. A revoked key cannot be rotated.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Invalid`] for a revoked key, [`Error::Storage`].
    pub fn rotate_key(&self, name: &str) -> Result<(Key, Secret), Error> {
        let secret = Secret::random()?;
        let (key_name, hint, hashed) = (name.to_owned(), secret.hint(), hash(secret.reveal()));
        let rotated = self.key_job(move |connection| {
            let sql = "UPDATE key SET hash = ?2, hint = ?3 WHERE name = ?1 AND revoked IS NULL";
            let rows = connection.execute(sql, params![key_name, hashed, hint])?;
            Ok(find(connection, "name", &key_name)?.map(|key| (key, rows > 0)))
        });
        match rotated? {
            Some((key, true)) => Ok((key, secret)),
            Some(_) => Err(Error::Invalid(format!("the key `{name}` has been revoked: add another one"))),
            None => Err(self.no_such_key(name)),
        }
    }

    /// Returns the key with this secret, if it may be used now. A key that was found is remembered for a second, so what
    /// [`Key::spent`] and [`Key::held`] say may be as old; revoking and rotating in this process work at once. While the file cannot be
    /// read, a key is what it was within the last hour. The keys of a file that was deleted or replaced are not used: the file in its place
    /// may have other ones.
    ///
    /// # Errors
    /// [`KeyError`] says why the request must be refused. Its message names the key, never the secret.
    pub fn find_key(&self, presented: &str, now: Time) -> Result<Key, KeyError> {
        if !presented.starts_with(PREFIX) {
            return Err(KeyError::Unknown);
        }
        let hashed = hash(presented);
        let core = self.core();
        let key = match core.known.get(&hashed, now) {
            Some(key) => key,
            None => {
                core.in_place()?;
                let changes = core.known.changes();
                let found = core.store.read(|connection| find(connection, "hash", hashed));
                match found {
                    Ok(key) => {
                        let key = key.ok_or(KeyError::Unknown)?;
                        core.known.put(hashed, key.clone(), now, changes);
                        key
                    }
                    Err(error) => core.known.stale(&hashed, now).ok_or(error)?,
                }
            }
        };
        if key.revoked.is_some() {
            return Err(KeyError::Revoked(key.name));
        }
        if key.expires.is_some_and(|expires| expires <= now) {
            return Err(KeyError::Expired(key.name));
        }
        Ok(key)
    }

    /// Returns a key by its number, as far as it is known.
    pub(crate) fn known_key(&self, id: KeyId) -> Option<Key> {
        let core = self.core();
        core.store.read(|connection| find(connection, "id", id.0)).unwrap_or_else(|_| core.known.by_id(id))
    }

    /// Writes, and forgets the keys that were looked up before anybody hears of it.
    fn key_job<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let done = self.submit(write).wait();
        self.core().known.clear();
        done
    }

    fn no_such_key(&self, name: &str) -> Error {
        let known = self.keys().unwrap_or_default().into_iter().map(|key| key.name).collect();
        Error::NoSuchKey { name: name.to_owned(), known }
    }
}

fn check(new: &NewKey) -> Result<(), Error> {
    /// Characters of the longest name.
    const MAX_NAME: usize = 64;
    let name = &new.name;
    let is_odd = name.trim() != name
        || name.is_empty()
        || name.chars().count() > MAX_NAME
        || name.chars().any(char::is_control);
    let flaw = if is_odd {
        "a key's name has 1 to 64 characters, no control characters, and no spaces around it".to_owned()
    } else if new.rpm == Some(0) {
        "a key needs at least one request a minute".to_owned()
    } else if new.tpm == Some(0) || new.max_open == Some(0) {
        "a key needs at least one token a minute and one open request".to_owned()
    } else if new.period.is_some() && new.budget.is_none() {
        "a period needs a budget".to_owned()
    } else if new.models.iter().any(String::is_empty) {
        "the name of a model is empty".to_owned()
    } else if new.budget.is_some_and(|budget| budget > MAX_AMOUNT) {
        format!("a budget is at most {} US dollars", usd::format(MAX_AMOUNT))
    } else {
        return Ok(());
    };
    Err(Error::Invalid(flaw))
}
