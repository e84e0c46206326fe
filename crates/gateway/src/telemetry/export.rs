//! The parts around the SDK's exporters: requests over our own transport, and the number of spans that wait.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::http::{Request, Response, header};
use formwork_http::HttpTransport;
use formwork_wire::{Bytes, Transport as _};
use opentelemetry::Context;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use tokio::runtime::Handle;

use super::MAX_SPANS;
use crate::access::now;

/// The minimum time between two warnings about a collector.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

/// The maximum size of a collector's response in bytes.
const MAX_RESPONSE: usize = 64 * 1024;

/// The runtime that serves, in which the requests to the collector are tasks: the threads of the SDK have none.
#[derive(Debug, Clone, Default)]
pub(super) struct Runtime(Arc<Mutex<Option<Handle>>>);

impl Runtime {
    /// Uses the current runtime from now on.
    pub(super) fn enter(&self) {
        self.set(Handle::try_current().ok());
    }

    /// Sends no further request.
    pub(super) fn leave(&self) {
        self.set(None);
    }

    fn set(&self, handle: Option<Handle>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    fn current(&self) -> Option<Handle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends exports to the base URL of a transport.
#[derive(Debug)]
pub(super) struct Client {
    signal: &'static str,
    transport: HttpTransport,
    runtime: Runtime,
    timeout: Duration,
    warned: Mutex<Option<Instant>>,
}

impl Client {
    pub(super) fn new(
        signal: &'static str,
        transport: HttpTransport,
        runtime: Runtime,
        timeout: Duration,
    ) -> Self {
        let transport = transport.with_max_body_bytes(MAX_RESPONSE);
        Self { signal, transport, runtime, timeout, warned: Mutex::default() }
    }

    fn warn(&self, problem: &str) {
        if self.is_warning_due() {
            tracing::warn!(target: "formwork_gateway", signal = self.signal, problem, "the collector did not take an export; \
                           further failures are not logged for a minute");
        }
    }

    fn is_warning_due(&self) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = warned.is_none_or(|warned| warned.elapsed() >= BETWEEN_WARNINGS);
        if is_due {
            *warned = Some(Instant::now());
        }
        is_due
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.current().ok_or("no service runs")?;
        let (head, body) = request.into_parts();
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut()) = (head.method, head.uri);
        // Other headers are those of the environment, which are a setting of the transport.
        for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING] {
            if let Some(value) = head.headers.get(&name) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let (transport, deadline) = (self.transport.clone(), now().after(self.timeout));
        let sent = runtime.spawn(async move {
            let (head, body) = transport.send(request, Some(deadline)).await?.into_parts();
            Ok(Response::from_parts(head, Bytes::from(body.collect(MAX_RESPONSE).await?)))
        });
        // A task that is cancelled belongs to a service that has ended.
        let sent: Result<_, formwork_core::Fault> = sent.await?;
        match &sent {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => self.warn(&response.status().to_string()),
            Err(fault) => self.warn(&fault.message),
        }
        sent.map_err(|fault| fault.message.into())
    }
}

/// The number of spans that wait for the collector, and of those that were left out.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) waiting: AtomicUsize,
    pub(super) dropped: AtomicU64,
}

/// Leaves out spans above [`MAX_SPANS`], and counts them: the SDK drops them as well, but keeps the number to itself.
#[derive(Debug)]
pub(super) struct Bounded {
    inner: BatchSpanProcessor,
    spans: Arc<Spans>,
}

impl Bounded {
    pub(super) const fn new(inner: BatchSpanProcessor, spans: Arc<Spans>) -> Self {
        Self { inner, spans }
    }
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.spans.waiting.fetch_add(1, Ordering::AcqRel) < MAX_SPANS {
            self.inner.on_end(span);
        } else {
            self.spans.waiting.fetch_sub(1, Ordering::AcqRel);
            self.spans.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Counts the spans that leave the queue, and those that the collector did not take.
#[derive(Debug)]
pub(super) struct Counted {
    inner: opentelemetry_otlp::SpanExporter,
    spans: Arc<Spans>,
}

impl Counted {
    pub(super) const fn new(inner: opentelemetry_otlp::SpanExporter, spans: Arc<Spans>) -> Self {
        Self { inner, spans }
    }
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let number = batch.len();
        let exported = self.inner.export(batch).await;
        self.spans.waiting.fetch_sub(number, Ordering::AcqRel);
        if exported.is_err() {
            self.spans.dropped.fetch_add(number as u64, Ordering::Relaxed);
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_of_many_is_logged() {
        let transport = HttpTransport::new("http://127.0.0.1:1").unwrap();
        let client = Client::new("traces", transport, Runtime::default(), Duration::from_secs(1));
        let due = [(); 3].map(|()| client.is_warning_due());
        assert_eq!(due, [true, false, false]);
        *client.warned.lock().unwrap() = Instant::now().checked_sub(BETWEEN_WARNINGS);
        assert!(client.is_warning_due());
    }
}
