//! The services of a pool. Their names are known when the worker starts, which the SDK allows only for services that are traits.
#![expect(deprecated, reason = "services whose name is fixed when they are compiled have no pool")]

use restate_sdk::discovery::ServiceName;
use restate_sdk::prelude::Json;
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Discoverable, Service, ServiceDefinition};
use serde_json::Value;

use super::message::{Hello, RowReply, RowRequest};
use super::slots::Take;

/// The service that takes rows to their results.
#[restate_sdk::service]
pub(super) trait Rows {
    /// Takes a row to its result.
    async fn run(request: Json<RowRequest>) -> HandlerResult<Json<RowReply>>;
    /// Returns the version of the worker, and the digest of its providers.
    async fn hello(nothing: Json<Value>) -> HandlerResult<Json<Hello>>;
    /// Cancels rows by the ids of their invocations.
    async fn cancel(ids: Json<Vec<String>>) -> HandlerResult<()>;
}

/// The service that keeps contracts, by their digests.
#[restate_sdk::object]
pub(super) trait Contracts {
    /// Keeps a contract.
    async fn put(contract: Json<Value>) -> HandlerResult<()>;
    /// Returns a contract; null if there is none.
    #[shared]
    async fn get(nothing: Json<Value>) -> HandlerResult<Json<Value>>;
}

/// The service that gives the calls to one target their times.
#[restate_sdk::object]
pub(super) trait Paces {
    /// Takes slots that follow each other. Returns the milliseconds until the first one.
    async fn take(take: Json<Take>) -> HandlerResult<u64>;
}

/// Returns the definition of a service under a name.
pub(super) fn named<S>(service: S, name: String) -> ServiceDefinition
where
    S: Service<Future = ServiceBoxFuture> + Discoverable + Send + Sync + 'static,
{
    let mut discovery = S::discover();
    // The names of pools have no other letters than those of services.
    if let Ok(name) = ServiceName::try_from(name) {
        discovery.name = name;
    }
    service_definition(service, discovery)
}
