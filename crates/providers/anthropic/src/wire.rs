//! The Messages API as a codec.

use formwork_core::{Call, Capabilities, Fault};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, RequestInfo, Sse, Wire, is_event_stream};

use crate::{API, Anthropic, decode, encode};

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
        let reader = decode::MessageReader::new(self.request_info(call));
        formwork_wire::decoder::<Sse>(reader, is_event_stream(head))
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        RequestInfo::new(API, &self.model, call).with_carrier(encode::carrier(self, call))
    }
}
