//! Chat Completions and the Responses API as a codec.

use async_trait::async_trait;
use formwork_core::{Call, Capabilities, Completion, Enforcement, Fault};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, RequestInfo, Transport, Wire, safe_name};

use crate::fault::rescue;
use crate::{Api, OpenAi, decode, encode, probe, responses};

#[async_trait]
impl Wire for OpenAi {
    fn name(&self) -> &str {
        "openai"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        match self.api {
            Api::Chat => encode::request(self, call),
            Api::Responses => responses::request(self, call),
        }
    }

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        decode::decoder(self.request_info(call), head)
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        let is_tool = call.enforcement() == Enforcement::Tool;
        RequestInfo::new(self.api.protocol(), &self.model, call)
            .with_carrier(is_tool.then(|| safe_name(&call.schema_name)))
    }

    fn rescue(&self, call: &Call, _: &Parts, body: &[u8]) -> Option<Completion> {
        rescue(&self.request_info(call), &serde_json::from_slice(body).ok()?)
    }

    async fn probe(&self, transport: &dyn Transport) -> Result<Capabilities, Fault> {
        probe::probe(self, transport).await
    }
}
