//! The codec of Ollama's native API: requests, responses and faults.

use async_trait::async_trait;
use formwork_core::{Call, Capabilities, Fault, FaultKind};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, RequestInfo, Transport, Wire, is_closed_early};

use crate::{Ollama, PROTOCOL, answer, pattern, request};

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
        answer::decoder(self.request_info(call), self.stream, head)
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        let has_pattern = pattern::has_pattern(&call.lowered);
        RequestInfo { has_pattern, ..RequestInfo::new(PROTOCOL, &self.model, call) }
    }

    /// A server that a pattern crashes closes the connection (0.17.4).
    fn transport_fault(&self, call: &Call, mut fault: Fault) -> Fault {
        if is_closed_early(&fault) && pattern::has_pattern(&call.lowered) {
            fault.kind = FaultKind::SchemaRefused;
            fault.message.push_str("; the schema has a `pattern`, and some patterns crash Ollama servers");
        }
        fault
    }

    async fn probe(&self, transport: &dyn Transport) -> Result<Capabilities, Fault> {
        Ok(self.examine(transport).await?.capabilities)
    }
}
