//! Chat Completions and the Responses API as a codec.

use async_trait::async_trait;
use formwork_core::{Call, Capabilities, Completion, Fault, Time};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Transport, Wire};

use crate::fault::RequestInfo;
use crate::{Api, OpenAi, decode, encode, fault, probe, responses};

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
        decode::decoder(RequestInfo::of(self, call), head)
    }

    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        fault::fault(&RequestInfo::of(self, call), head, body, now)
    }

    fn rescue(&self, call: &Call, _: &Parts, body: &[u8]) -> Option<Completion> {
        fault::rescue(&RequestInfo::of(self, call), &serde_json::from_slice(body).ok()?)
    }

    async fn probe(&self, transport: &dyn Transport) -> Result<Capabilities, Fault> {
        probe::probe(self, transport).await
    }
}
