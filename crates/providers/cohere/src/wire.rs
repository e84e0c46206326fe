//! The chat API as a codec.

use formwork_core::{Call, Capabilities, Fault};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Deltas, RequestInfo, Whole, Wire};

use crate::{Cohere, decode, encode};

impl Wire for Cohere {
    fn name(&self) -> &str {
        "cohere"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        encode::request(self, call)
    }

    fn decoder(&self, call: &Call, _: &Parts) -> Box<dyn Decoder> {
        let request = self.request_info(call);
        let read = move |body: &[u8], out: &mut Deltas| decode::document(request.clone(), body, out);
        Box::new(Whole::new(read))
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        RequestInfo::new("cohere", &self.model, call).with_carrier(encode::carrier(call))
    }
}
