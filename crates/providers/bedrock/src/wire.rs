//! The Converse API as a codec.

use formwork_core::{Call, Capabilities, Fault};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, RequestInfo, Wire, media_type};

use crate::frames::Frames;
use crate::{API, Bedrock, decode, encode};

impl Wire for Bedrock {
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
        let reader = decode::ConverseReader::new(self.request_info(call));
        let is_stream = media_type(head) == Some("application/vnd.amazon.eventstream");
        formwork_wire::decoder::<Frames>(reader, is_stream)
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        RequestInfo::new(API, &self.model, call).with_carrier(encode::carrier(self, call))
    }
}
