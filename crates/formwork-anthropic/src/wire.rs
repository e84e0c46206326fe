//! The Messages API as a codec.

use formwork_core::{Call, Capabilities, Fault, Time};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Wire};

use crate::fault::RequestInfo;
use crate::{API, Anthropic, decode, encode, fault};

impl Wire for Anthropic {
    fn name(&self) -> &str {
        API
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        encode::request(self, call)
    }

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        decode::decoder(RequestInfo::of(self, call), head)
    }

    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        fault::of_response(&RequestInfo::of(self, call), head, body, now)
    }
}
