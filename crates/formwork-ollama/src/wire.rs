//! The codec of Ollama's native API: requests, responses and faults.

use async_trait::async_trait;
use formwork_core::{Call, Capabilities, Fault, Time};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Transport, Wire};

use crate::request_info::RequestInfo;
use crate::{Ollama, answer, fault, request};

#[async_trait]
impl Wire for Ollama {
    fn name(&self) -> &str {
        "ollama"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        request::encode(self, call)
    }

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        answer::decoder(RequestInfo::new(&self.model, call), self.stream, head)
    }

    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        fault::of_response(&RequestInfo::new(&self.model, call), head, body, now)
    }

    fn transport_fault(&self, call: &Call, fault: Fault) -> Fault {
        fault::of_transport(&RequestInfo::new(&self.model, call), fault)
    }

    async fn probe(&self, transport: &dyn Transport) -> Result<Capabilities, Fault> {
        Ok(self.examine(transport).await?.capabilities)
    }
}
