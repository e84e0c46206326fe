//! Sessions of admins in a browser.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, header};
use formwork_core::Time;
use formwork_ledger::{Key, KeyRole, Ledger};
use sha2::{Digest as _, Sha256};

use crate::access::hex;
use crate::problem::{Kind, Problem};

/// The name of the cookie.
const COOKIE: &str = "formwork-session";

/// The duration of a session, in milliseconds: 12 hours.
const LIFE: u64 = 12 * 3_600_000;

/// The maximum number of open sessions; the one that ends first makes room.
const MAX: usize = 256;

/// A session. It ends with its key.
#[derive(Debug, Clone)]
struct Session {
    csrf: String,
    key: String,
    hint: String,
    ends: Time,
}

/// The open sessions, by the hash of the id in the cookie.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

/// The admin who reads a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Visitor {
    /// The name of the key; empty for a service without keys.
    pub(crate) name: String,
    /// The token of the session's forms; `None` without a session, which may only read.
    pub(crate) csrf: Option<String>,
}

impl Visitor {
    /// Checks the token of a form.
    ///
    /// # Errors
    /// [`Kind::Forbidden`] without a session or with another token.
    pub(super) fn check(&self, token: &str) -> Result<(), Problem> {
        match &self.csrf {
            Some(csrf) if hash(csrf) == hash(token) => Ok(()),
            _ => Err(Problem::new(Kind::Forbidden, "the form is not of this session: load the page again")),
        }
    }
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session of an admin's key; returns the value of `Set-Cookie`.
    ///
    /// # Errors
    /// [`Kind::Internal`] if the system has no random numbers.
    pub(super) fn begin(&self, key: &Key, is_secure: bool, now: Time) -> Result<String, Problem> {
        let (id, csrf) = (random()?, random()?);
        let ends = Time(now.0.saturating_add(LIFE));
        let mut open = self.open();
        open.retain(|_, session| session.ends > now);
        if open.len() >= MAX {
            let first = open.iter().min_by_key(|(_, session)| session.ends).map(|(id, _)| *id);
            first.map(|first| open.remove(&first));
        }
        let (key, hint) = (key.name.clone(), key.hint.clone());
        open.insert(hash(&id), Session { csrf, key, hint, ends });
        drop(open);
        Ok(cookie(&id, LIFE / 1000, is_secure))
    }

    /// Returns the visitor whose session the cookie names, if its key may still be used.
    pub(super) fn find(&self, headers: &HeaderMap, ledger: &Ledger, now: Time) -> Option<Visitor> {
        let id = hash(presented(headers)?);
        let session = self.open().get(&id).filter(|session| session.ends > now).cloned()?;
        let key = ledger.key(&session.key).ok()?;
        let is_valid = key.role == KeyRole::Admin
            && key.revoked.is_none()
            && key.expires.is_none_or(|expires| expires > now)
            // A key that was rotated has another hint.
            && key.hint == session.hint;
        is_valid.then_some(Visitor { name: key.name, csrf: Some(session.csrf) })
    }

    /// Ends the session of the cookie; returns the value of `Set-Cookie`.
    pub(super) fn end(&self, headers: &HeaderMap, is_secure: bool) -> String {
        presented(headers).map(|id| self.open().remove(&hash(id)));
        cookie("", 0, is_secure)
    }
}

fn cookie(id: &str, seconds: u64, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

fn presented(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
    Ok(hex(&bytes))
}
