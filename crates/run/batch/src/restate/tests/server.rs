//! A played Restate server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Fault, FaultKind, Time};
use formwork_wire::http::{Request, Response, StatusCode};
use formwork_wire::{Body, Bytes, Transport};
use serde_json::json;

use super::journal::{Died, Journal};
use super::provider::{Played, calls, extractor};
use crate::restate::message::{Hello, PROTOCOL, RowReply, RowRequest, digest as digest_of};
use crate::restate::row::row;
use crate::restate::slots::Take;

/// A Restate with one worker: it carries each key out once, and fails in the ways of a server that restarts.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) provider: Arc<Played>,
    pub(super) protocol: u32,
    /// The digest of the worker's providers.
    pub(super) target: Option<String>,
    /// The largest number of rows that were waited for at a time, and their number now.
    pub(super) waited: Mutex<(usize, usize)>,
    /// The keys of the rows that were submitted without a wait.
    pub(super) sent: Mutex<Vec<String>>,
    pub(super) has_worker: bool,
    pub(super) done: tokio::sync::Mutex<HashMap<String, String>>,
    pub(super) requests: AtomicUsize,
    pub(super) cancelled: AtomicUsize,
    /// The moment of each row at which its worker dies.
    pub(super) dies_at: Option<usize>,
    /// Whether no row ends.
    pub(super) holds: AtomicBool,
    pub(super) contracts: Mutex<Vec<String>>,
    /// The next slot of the target.
    pub(super) next: tokio::sync::Mutex<Option<tokio::time::Instant>>,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            provider: Arc::default(),
            protocol: PROTOCOL,
            target: None,
            waited: Mutex::default(),
            sent: Mutex::default(),
            has_worker: true,
            done: tokio::sync::Mutex::default(),
            requests: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
            dies_at: None,
            holds: AtomicBool::new(false),
            contracts: Mutex::default(),
            next: tokio::sync::Mutex::default(),
        }
    }

    async fn answer(&self, path: &str, key: Option<String>, body: &[u8]) -> (u16, String) {
        match path {
            "/restate/health" => (200, "{}".to_owned()),
            _ if !self.has_worker => (404, json!({"message": "service not found"}).to_string()),
            _ if !path.contains("_own/") && path.starts_with("/Formwork") => {
                (404, json!({"message": "service not found"}).to_string())
            }
            "/FormworkRow_own/hello" => {
                let hello = Hello { protocol: self.protocol, ..Hello::own(self.target.as_deref()) };
                (200, serde_json::to_string(&hello).unwrap())
            }
            "/FormworkRow_own/run" => {
                let _wait = Wait::new(&self.waited);
                if self.requests.fetch_add(1, Ordering::SeqCst) % 5 == 4 {
                    return (503, json!({"message": "not yet"}).to_string());
                }
                while self.holds.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let mut done = self.done.lock().await;
                let key = key.unwrap();
                if let Some(reply) = done.get(&key) {
                    return (200, reply.clone());
                }
                let request: RowRequest = serde_json::from_slice(body).unwrap();
                assert!(self.contracts.lock().unwrap().contains(&request.contract));
                let mut journal = Journal { dies_at: self.dies_at, ..Journal::default() };
                let mut reply: Result<RowReply, Died> =
                    row(&journal, &extractor(&self.provider), &calls(), request.clone()).await;
                if reply.is_err() {
                    (journal.dies_at, journal.at) = (None, AtomicUsize::new(0));
                    reply = row(&journal, &extractor(&self.provider), &calls(), request).await;
                }
                let reply = serde_json::to_string(&reply.unwrap()).unwrap();
                done.insert(key, reply.clone());
                (200, reply)
            }
            "/FormworkRow_own/run/send" => {
                self.sent.lock().unwrap().extend(key.clone());
                (202, json!({"invocationId": key}).to_string())
            }
            "/FormworkRow_own/cancel" => {
                let ids: Vec<String> = serde_json::from_slice(body).unwrap();
                self.cancelled.fetch_add(ids.len(), Ordering::SeqCst);
                (200, "null".to_owned())
            }
            "/FormworkPace_own/played/take" => {
                let take: Take = serde_json::from_slice(body).unwrap();
                let (mut next, now) = (self.next.lock().await, tokio::time::Instant::now());
                let slot = next.unwrap_or(now).max(now);
                *next = Some(slot + Duration::from_secs_f64(f64::from(take.count) / take.calls_per_second));
                (200, (slot - now).as_millis().to_string())
            }
            "/version" => (200, json!({"version": "1.6.9"}).to_string()),
            "/deployments" => (409, json!({"message": "exists"}).to_string()),
            path => {
                let digest = path.trim_start_matches("/FormworkContract_own/").trim_end_matches("/put");
                assert_eq!(digest, digest_of(&serde_json::from_slice(body).unwrap()));
                self.contracts.lock().unwrap().push(digest.to_owned());
                (200, "null".to_owned())
            }
        }
    }
}

/// A request for the result of a row.
struct Wait<'s>(&'s Mutex<(usize, usize)>);

impl<'s> Wait<'s> {
    fn new(waited: &'s Mutex<(usize, usize)>) -> Self {
        let mut counts = waited.lock().unwrap();
        counts.1 += 1;
        counts.0 = counts.0.max(counts.1);
        drop(counts);
        Self(waited)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().1 -= 1;
    }
}

#[async_trait]
impl Transport for Server {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let path = request.uri().path().to_owned();
        let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        let (status, body) = self.answer(&path, key, request.body()).await;
        let mut response = Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok(response)
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

/// A server that is not there.
#[derive(Debug)]
pub(super) struct Nowhere;

#[async_trait]
impl Transport for Nowhere {
    async fn send(&self, _: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        Err(Fault::new(FaultKind::Unreachable, "nothing listens"))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

/// A server whose workers come back after some requests.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) server: Arc<Server>,
    pub(super) away: AtomicUsize,
}

#[async_trait]
impl Transport for Later {
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault> {
        let is_away = |left: usize| left.checked_sub(1);
        match self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_away) {
            Ok(_) => Nowhere.send(request, deadline).await,
            Err(_) => self.server.send(request, deadline).await,
        }
    }

    fn now(&self) -> Time {
        Time(0)
    }
}
