//! The chat API as a codec.

use formwork_core::{Call, Capabilities, Fault};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Deltas, Framed, RequestInfo, Sse, Whole, Wire, media_type};

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

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        let request = self.request_info(call);
        if media_type(head).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream")) {
            return Box::new(Framed::<Sse, _>::new(decode::StreamReader::new(request)));
        }
        let read = move |body: &[u8], out: &mut Deltas| decode::document(request.clone(), body, out);
        Box::new(Whole::new(read))
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        RequestInfo::new("cohere", &self.model, call).with_carrier(encode::carrier(call))
    }
}
