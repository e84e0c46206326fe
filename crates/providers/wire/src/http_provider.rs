use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Fault, FaultKind, Provider};

use crate::answer::Decoding;
use crate::client;
use crate::fault::{media_type, quoted, request_id};
use crate::prefill::{Prefilled, prefilled, refuses};
use crate::transport::redacted;
use crate::{SharedTransport, Wire};

/// The maximum number of bytes that are read of an error body.
const ERROR_BYTES: usize = 64 * 1024;

/// A provider that consists of a codec and a transport.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement};
/// use formwork_wire::{Http, SharedTransport, Wire};
///
/// fn local<W: Wire>(wire: W, transport: SharedTransport) -> Http<W> {
///     let probed = Capabilities::new(Enforcement::Schema).with_temperature();
///     Http::new(wire, transport).with_name("local").with_capabilities(probed)
/// }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Http<W> {
    wire: W,
    transport: SharedTransport,
    name: Option<String>,
    capabilities: Capabilities,
    /// Whether the model refused a last message of the assistant.
    refuses_prefill: Arc<AtomicBool>,
}

impl<W: Wire> Http<W> {
    /// Creates a provider from a codec and a transport.
    pub fn new(wire: W, transport: SharedTransport) -> Self {
        let capabilities = wire.capabilities().clone();
        Self { wire, transport, name: None, capabilities, refuses_prefill: Arc::default() }
    }

    formwork_core::setters! {
        /// Sets the name of the provider in messages, traces and the ledger (default: [`Wire::name`]).
        pub fn with_name(Some(name): impl Into<String>);

        /// Sets the capabilities of the provider, for example those that a probe found (default: [`Wire::capabilities`]).
        pub fn with_capabilities(capabilities: Capabilities);
    }

    /// Returns the codec.
    pub const fn wire(&self) -> &W {
        &self.wire
    }

    /// Answers a call, with its prefill unless the model refuses it.
    async fn opened(&self, call: &Call) -> Result<Answer, Fault> {
        let prefilled = prefilled(call).filter(|_| !self.refuses_prefill.load(Ordering::Relaxed));
        let Some((longer, opening)) = prefilled else { return self.answer(call).await };
        match self.answer(&longer).await {
            Err(fault) if refuses(&fault) => {
                let answer = self.answer(call).await?;
                self.refuses_prefill.store(true, Ordering::Relaxed);
                Ok(Answer::new(Prefilled::refused(answer, &fault.message)))
            }
            answered => Ok(Answer::new(Prefilled::new(answered?, opening))),
        }
    }

    async fn answer(&self, call: &Call) -> Result<Answer, Fault> {
        let request = client::encode(&self.wire, call)?;
        let keeps = client::is_sent(&request, call);
        let response = self.transport.send(request, call.deadline).await;
        let response = response.map_err(|fault| self.wire.transport_fault(call, fault))?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let body = body.beginning(ERROR_BYTES).await;
            return match self.wire.rescue(call, &head, &body) {
                Some(completion) => Ok(completion.into()),
                None => Err(self.wire.fault(call, &head, &body, self.transport.now())),
            };
        }
        if media_type(&head) == Some("text/html") {
            let body = body.beginning(ERROR_BYTES).await;
            let message = format!(
                "the response is a web page, check the base URL: {}",
                quoted(&String::from_utf8_lossy(&body))
            );
            return Err(Fault::new(FaultKind::BadWire, message)
                .with_status(head.status.as_u16())
                .with_request_id(request_id(&head)));
        }
        let decoder = self.wire.decoder(call, &head);
        Ok(Answer::new(Decoding::new(body, decoder, self.transport.clone(), &head, keeps)))
    }
}

#[async_trait]
impl<W: Wire> Provider for Http<W> {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.wire.name())
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        self.opened(call).await.map_err(|fault| redacted(fault, &self.transport))
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        self.wire.probe(self.transport.as_ref()).await.map_err(|fault| redacted(fault, &self.transport))
    }
}
